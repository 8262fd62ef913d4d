/** Tools for the Vercel AI SDK: a model that recalls and remembers by itself. */

import { jsonSchema, type Tool, tool } from "ai";
import type { Bethink, NewMemory, RecallOptions } from "./client.js";

export interface MemoryToolsOptions {
  /** Arguments of every recall, such as `k`, `topic` or `profile`. */
  recall?: Omit<RecallOptions, "query" | "cursor">;
  /** Fields of every memory that is stored, such as `topic`, `user` or `session`. */
  remember?: Omit<NewMemory, "text" | "key">;
}

export interface RecallInput {
  query: string;
}

/** What the model reads: texts are data, which `notice` says. */
export interface RecallOutput {
  status: string;
  notice: string;
  memories: { id: string; text: string; when: string; trust: number; source: string; see_newer?: string }[];
}

export interface RememberInput {
  text: string;
  kind?: string;
}

export interface RememberOutput {
  status: string;
  id: string;
  collisions: { id: string; kind: string; text: string }[];
}

export type MemoryTools = {
  recall: Tool<RecallInput, RecallOutput>;
  remember: Tool<RememberInput, RememberOutput>;
};

/** The tools `recall` and `remember` on a memory: `generateText({ tools: memoryTools(memory) })`. */
export function memoryTools(memory: Bethink, options: MemoryToolsOptions = {}): MemoryTools {
  return {
    recall: tool<RecallInput, RecallOutput>({
      description:
        "Find memories that answer a question: decisions, facts, preferences, earlier work. Call it before a " +
        "task and whenever earlier work may matter. status unsure: they may be related; nothing_matched: say so.",
      inputSchema: jsonSchema<RecallInput>({
        type: "object",
        properties: { query: { type: "string", description: "The question in plain words." } },
        required: ["query"],
        additionalProperties: false,
      }),
      execute: async ({ query }, { abortSignal }) => {
        const answer = await memory.recall(query, options.recall, within(abortSignal));
        const memories = answer.memories.map(({ id, text, when, trust, source, see_newer }) => ({
          id,
          text,
          when,
          trust,
          source,
          ...(see_newer === null ? {} : { see_newer }),
        }));
        return { status: answer.status, notice: answer.notice, memories };
      },
    }),
    remember: tool<RememberInput, RememberOutput>({
      description:
        "Store one memory that will matter later: a decision and its reason, a fact, a preference. One " +
        "statement that makes sense without this conversation; not logs, not what recall returned.",
      inputSchema: jsonSchema<RememberInput>({
        type: "object",
        properties: {
          text: { type: "string", description: "What to remember." },
          kind: { type: "string", description: "Such as decision, fact, preference, event." },
        },
        required: ["text"],
        additionalProperties: false,
      }),
      execute: async (given, { abortSignal, toolCallId }) => {
        // A call that is repeated stores nothing new.
        const stored = await memory.remember({ ...options.remember, ...given, key: keyOf(toolCallId, given) }, {}, within(abortSignal));
        const collisions = stored.collisions.map(({ id, kind, text }) => ({ id, kind, text }));
        return { status: stored.status, id: stored.id, collisions };
      },
    }),
  };
}

function within(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** A key for a call of a model: some providers count calls from 1 anew, so the text is part of it. */
function keyOf(toolCallId: string, given: RememberInput): string {
  let hash = 0xcbf29ce484222325n; // FNV-1a
  for (const byte of new TextEncoder().encode(`${toolCallId} ${given.kind ?? ""} ${given.text}`)) {
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  }
  return `ai:${hash.toString(16)}`;
}
