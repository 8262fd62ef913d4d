// Memories that were changed on two machines at once: the shell counts them, two views settle them.
import { signal } from "@preact/signals";
import { ApiError, call, type Answer } from "./api";
import { may } from "./session";

export type Conflict = Answer<"GET /v1/conflicts">["conflicts"][number];

export const conflicts = signal<Conflict[]>([]);

export async function loadConflicts(): Promise<void> {
  if (!may("conflicts")) return;
  try {
    conflicts.value = (await call("GET /v1/conflicts", {})).conflicts;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // the views say what does not work
  }
}
