// What the shell knows beside the views: conflicts to settle, memories to review, who there is.
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

/** The people of the space. */
export const members = signal<Answer<"GET /v1/members">["members"]>([]);

export async function loadMembers(): Promise<void> {
  await quietly(async () => void (members.value = (await call("GET /v1/members", {})).members));
}

/** Who did something, by name: the journal has the id of a person, and how a program came in. */
export function actorName(actor: string): string {
  const id = actor.slice(actor.lastIndexOf(":") + 1);
  return members.value.find((one) => one.id === id)?.name ?? (id || actor);
}

/** Load what only is a hint; the views say what does not work. */
async function quietly(load: () => Promise<void>): Promise<void> {
  try {
    await load();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}
