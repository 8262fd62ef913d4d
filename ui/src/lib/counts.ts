// What the shell counts beside the names of views: conflicts to settle, memories to review.
import { signal } from "@preact/signals";
import { ApiError, call, type Answer } from "./api";
import { may } from "./session";

export type Conflict = Answer<"GET /v1/conflicts">["conflicts"][number];

export const conflicts = signal<Conflict[]>([]);

export async function loadConflicts(): Promise<void> {
  if (!may("conflicts")) return;
  await quietly(async () => void (conflicts.value = (await call("GET /v1/conflicts", {})).conflicts));
}

/** How many memories wait in the inbox. */
export const waiting = signal(0);

export async function loadWaiting(): Promise<void> {
  if (!may("inbox")) return;
  await quietly(async () => void (waiting.value = (await call("GET /v1/inbox", { limit: 1 })).total));
}

/** Load what only is a hint; the views say what does not work. */
async function quietly(load: () => Promise<void>): Promise<void> {
  try {
    await load();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}
