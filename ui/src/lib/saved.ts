// Questions that were saved, with the memories that answer them: `bethink eval` measures with them.
import { signal } from "@preact/signals";
import { ApiError, call, saveAs, type Answer } from "./api";
import { may, session } from "./session";

export type Saved = Answer<"GET /v1/questions">["questions"][number];

export const saved = signal<Saved[] | null>(null);

export async function loadSaved(): Promise<void> {
  if (!may("questions")) return;
  try {
    saved.value = (await call("GET /v1/questions", {})).questions;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // the answer itself says what does not work
  }
}

export function savedOf(query: string): Saved | undefined {
  return saved.value?.find((one) => one.query === query);
}

/** Save a question, or change what is said of its answers. */
export async function save(query: string, filters: object, marks: { relevant: string[] | null; wrong: string[] }): Promise<void> {
  const { relevant, wrong } = marks;
  const answer = await call("POST /v1/questions", { query, ...filters, wrong, ...(relevant && { relevant }) });
  saved.value = answer.questions;
}

export async function drop(query: string): Promise<void> {
  saved.value = (await call("POST /v1/questions", { query, remove: true })).questions;
}

/** A file for `bethink eval jsonl`, on this machine or another. */
export function saveQuestionsFile(): void {
  const lines = (saved.value ?? []).filter((one) => one.relevant !== null).map((one) => JSON.stringify(one));
  saveAs(new Blob([`${lines.join("\n")}\n`], { type: "application/jsonl" }), `${session.value?.space ?? "space"}.questions.jsonl`);
}
