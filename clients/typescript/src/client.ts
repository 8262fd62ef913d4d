/** The client: what one can do with a memory, each operation of the server as a method. */

import { errorOf } from "./errors.js";
import { type Change, watch, type WatchOptions } from "./events.js";
import { type Answer, type Arguments, type CallOptions, type ClientOptions, type Route, type Schema, Transport } from "./transport.js";

export type Recall = Answer<"POST /v1/recall">;
export type RecallOptions = Arguments<"POST /v1/recall">;
export type NewMemory = Arguments<"POST /v1/memories">;
export type Remembered = Answer<"POST /v1/memories">;
export type Stored = Schema<"StoredOrRefused">;
export type MemoryFilter = Omit<Arguments<"GET /v1/memories">, "after" | "offset" | "with_total">;
export type MemoryChanges = Omit<Arguments<"PATCH /v1/memories/{id}">, "id">;
export type Hit = Schema<"Hit">;
export type Memory = Schema<"Memory">;
export type FullMemory = Schema<"FullMemory">;
export type JournalEvent = Schema<"Event">;
export type Value = Schema<"Value">;

const MOST_AT_ONCE = 500;

/** A memory that `bethink serve` gives out. */
export class Bethink {
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options);
  }

  /** Call any route of the API: `call("GET /v1/graph", { node: id })`. */
  call<R extends Route>(route: R, given: Arguments<R>, options?: CallOptions): Promise<Answer<R>> {
    return this.#transport.call(route, given, options);
  }

  /** Find what answers a question, the best first; `status` says how sure the answer is. */
  recall(question: string | RecallOptions, more: RecallOptions = {}, options?: CallOptions): Promise<Recall> {
    const asked = typeof question === "string" ? { query: question, ...more } : { ...question, ...more };
    return this.call("POST /v1/recall", asked, options);
  }

  /** Every hit of a question, page after page as they are asked for. */
  async *recallAll(question: string | RecallOptions, options?: CallOptions): AsyncGenerator<Hit, void, void> {
    let cursor: RecallOptions["cursor"] = null;
    do {
      const page: Recall = await this.recall(question, cursor === null ? {} : { cursor }, options);
      yield* page.memories;
      cursor = page.memories.length > 0 ? page.cursor : null;
    } while (cursor !== null);
  }

  /** Store one memory. It gets a key of its own unless it has one, so that a retry stores it once. */
  remember(text: string | NewMemory, more: Omit<NewMemory, "text"> = {}, options?: CallOptions): Promise<Remembered> {
    const given = typeof text === "string" ? { ...more, text } : { ...text, ...more };
    return this.call("POST /v1/memories", withKey(given), options);
  }

  /** Store many memories, each stored or refused by itself; the results are in their order. */
  async rememberMany(memories: Iterable<string | NewMemory>, options?: CallOptions): Promise<Stored[]> {
    const all = [...memories].map((one) => withKey(typeof one === "string" ? { text: one } : one));
    const results: Stored[] = [];
    for (let at = 0; at < all.length; at += MOST_AT_ONCE) {
      const page = all.slice(at, at + MOST_AT_ONCE);
      results.push(...(await this.call("POST /v1/memories/batch", { memories: page }, options)).results);
    }
    return results;
  }

  /** One memory with all its fields. */
  async get(id: string, options?: CallOptions): Promise<FullMemory> {
    return (await this.call("GET /v1/memories/{id}", { id }, options)).memory;
  }

  /** Every stored memory that passes the filters, newest first, page after page. */
  async *list(filter: MemoryFilter = {}, options?: CallOptions): AsyncGenerator<Memory, void, void> {
    let after: string | null = null;
    do {
      const where: Arguments<"GET /v1/memories"> = after === null ? filter : { ...filter, after };
      const page = await this.call("GET /v1/memories", where, options);
      yield* page.memories;
      after = page.cursor;
    } while (after !== null);
  }

  /** Correct a memory; its id stays. */
  update(id: string, changes: MemoryChanges, options?: CallOptions): Promise<Answer<"PATCH /v1/memories/{id}">> {
    return this.call("PATCH /v1/memories/{id}", { id, ...changes }, options);
  }

  /** Forget in two steps: the first answer is a preview with a `token`, which does it. */
  forget(given: Arguments<"POST /v1/forget">, options?: CallOptions): Promise<Answer<"POST /v1/forget">> {
    return this.call("POST /v1/forget", given, options);
  }

  /** Bring forgotten memories back; returns the ids of those that had been forgotten. */
  async restore(ids: string[], options?: CallOptions): Promise<string[]> {
    return (await this.call("POST /v1/restore", { ids }, options)).restored;
  }

  /** Take back the last change, of one memory or of this caller. */
  undo(given: Arguments<"POST /v1/undo"> = {}, options?: CallOptions): Promise<Answer<"POST /v1/undo">> {
    return this.call("POST /v1/undo", given, options);
  }

  /** Why a memory is in an answer, why not, or where it comes from. */
  explain(given: Arguments<"POST /v1/explain">, options?: CallOptions): Promise<Answer<"POST /v1/explain">> {
    return this.call("POST /v1/explain", given, options);
  }

  /** Counts of what is stored. */
  stats(options?: CallOptions): Promise<Answer<"GET /v1/stats">> {
    return this.call("GET /v1/stats", {}, options);
  }

  /** The journal, oldest first: who changed which memory, and when. */
  async *journal(after = 0, options?: CallOptions): AsyncGenerator<JournalEvent, void, void> {
    for (;;) {
      const { events } = await this.call("GET /v1/events", { after, limit: 1000 }, options);
      yield* events;
      const last = events.at(-1);
      if (last === undefined || last.seq <= after) return;
      after = last.seq;
    }
  }

  /** Follow changes as they happen; a broken connection is resumed where it broke off. */
  watch(options?: WatchOptions): AsyncGenerator<Change, void, void> {
    return watch(this.#transport, options);
  }
}

/** The error that refused one of many memories; undefined for one that was stored. */
export function refusalOf(result: Stored): Error | undefined {
  return result.error === undefined ? undefined : errorOf(result.error);
}

function withKey<T extends { key?: string | null }>(given: T): T & { key: string } {
  return { ...given, key: given.key ?? randomKey() };
}

function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `ts:${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
