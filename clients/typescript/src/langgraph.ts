/** A LangGraph.js store on Bethink: the same values that `BethinkStore` has in Python. */

import {
  BaseStore,
  type GetOperation,
  getTextAtPath,
  type Item,
  type ListNamespacesOperation,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { Bethink, Value } from "./client.js";
import type { Schema } from "./transport.js";

export interface BethinkStoreOptions {
  /** The profile of searches with a query; default: the space's. */
  profile?: string;
  /** Return only what is relevant to a query, possibly nothing. */
  abstain?: boolean;
  /** The paths of a value that are searched unless a put names its own; default `$`, all of it. */
  fields?: string[];
  /** How long a value lives after its last use, in minutes. */
  ttlMinutes?: number;
  /** Called with what was redacted: secrets are never stored. */
  onRedaction?: (place: string, kinds: string[]) => void;
}

/** A value that a search found; `status` and `confidence` tell how sure the answer is. */
export interface RecalledItem extends SearchItem {
  /** The id of the memory that holds it. */
  id: string;
  status?: string;
  confidence?: number;
}

const WHOLE = "$";
const MOST_AT_ONCE = 32;
const MOST_BYTES = 900_000; // a request has at most a mebibyte
const LONGEST_PAGE = 1000;

/** A store in a space of Bethink, for `compile({ store })`. */
export class BethinkStore extends BaseStore {
  readonly #memory: Bethink;
  readonly #options: BethinkStoreOptions;

  constructor(memory: Bethink, options: BethinkStoreOptions = {}) {
    super();
    this.#memory = memory;
    this.#options = options;
  }

  /** Run operations. All read the state before the batch; the last write to a key wins. */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results: unknown[] = new Array(operations.length).fill(undefined);
    const gets: [number, GetOperation][] = [];
    const puts: PutOperation[] = [];
    for (const [place, op] of operations.entries()) {
      if ("namespacePrefix" in op) results[place] = await this.#search(op);
      else if ("value" in op) puts.push(op);
      else if ("key" in op) gets.push([place, op]);
      else results[place] = await this.#namespaces(op);
    }
    for (let at = 0; at < gets.length; at += MOST_AT_ONCE) {
      const page = gets.slice(at, at + MOST_AT_ONCE);
      const get = page.map(([, { namespace, key }]) => ({ namespace, key }));
      const found = await this.#memory.call("POST /v1/values/find", { get });
      for (const [n, [place]] of page.entries()) results[place] = itemOf(found.get[n] ?? null);
    }
    await this.#write(puts);
    return results as OperationResults<Op>;
  }

  async #search(op: SearchOperation): Promise<RecalledItem[]> {
    const { profile, abstain } = this.#options;
    const limit = op.limit ?? 10;
    const found: Value[] = [];
    for (let more = limit > 0; more && found.length < limit; ) {
      const search = {
        namespace: op.namespacePrefix,
        limit: Math.min(LONGEST_PAGE, limit - found.length),
        offset: (op.offset ?? 0) + found.length,
        abstain: abstain ?? false,
        ...(op.filter === undefined ? {} : { filter: op.filter }),
        ...(op.query === undefined ? {} : { query: op.query }),
        ...(profile === undefined ? {} : { profile }),
      };
      const page = (await this.#memory.call("POST /v1/values/find", { search: [search] })).search[0]!;
      found.push(...page.values);
      more = page.values.length > 0 && (page.more || page.values.length === LONGEST_PAGE);
    }
    return found.map(searchItemOf);
  }

  async #namespaces(op: ListNamespacesOperation): Promise<string[][]> {
    const paths = Object.fromEntries((op.matchConditions ?? []).map((one) => [one.matchType, one.path]));
    const depth = op.maxDepth === undefined ? {} : { max_depth: op.maxDepth };
    const asked = { ...paths, ...depth, limit: Math.min(LONGEST_PAGE, op.limit), offset: op.offset };
    return (await this.#memory.call("POST /v1/values/find", { namespaces: [asked] })).namespaces[0]!;
  }

  async #write(puts: PutOperation[]): Promise<void> {
    const last = new Map(puts.map((op) => [JSON.stringify([op.namespace, op.key]), op]));
    const values = [...last.values()].map((op) => this.#valueOf(op));
    for (const page of pagesOf(values)) {
      const { redacted } = await this.#memory.call("POST /v1/values", { values: page });
      for (const one of redacted) this.#options.onRedaction?.(one.place, one.kinds);
    }
  }

  #valueOf(op: PutOperation): Schema<"NewValue"> {
    const place = { namespace: op.namespace, key: op.key };
    if (op.value === null) return place;
    const { fields = [WHOLE], ttlMinutes } = this.#options;
    const life = ttlMinutes === undefined ? {} : { ttl_minutes: ttlMinutes };
    if (op.index === false) return { ...place, value: op.value, indexed: false, ...life };
    const paths = op.index ?? fields;
    if (paths.includes(WHOLE)) return { ...place, value: op.value, ...life };
    const texts = paths.flatMap((path) => textsAt(op.value, path));
    return { ...place, value: op.value, texts, ...life };
  }
}

/** LangGraph's own reading of a path, which fails on one that goes through a null. */
function textsAt(value: unknown, path: string): string[] {
  try {
    return getTextAtPath(value, path);
  } catch {
    return [];
  }
}

function* pagesOf(values: Schema<"NewValue">[]): Generator<Schema<"NewValue">[]> {
  let page: Schema<"NewValue">[] = [];
  let bytes = 0;
  for (const value of values) {
    const size = new TextEncoder().encode(JSON.stringify(value)).length;
    if (page.length >= MOST_AT_ONCE || (page.length > 0 && bytes + size > MOST_BYTES)) {
      yield page;
      [page, bytes] = [[], 0];
    }
    page.push(value);
    bytes += size;
  }
  if (page.length > 0) yield page;
}

function itemOf(found: Value | null): Item | null {
  if (found === null) return null;
  return {
    value: found.value,
    key: found.key,
    namespace: found.namespace,
    createdAt: new Date(found.created_at),
    updatedAt: new Date(found.updated_at),
  };
}

function searchItemOf(found: Value): RecalledItem {
  return {
    ...itemOf(found)!,
    id: found.id,
    ...(found.score === null ? {} : { score: found.score }),
    ...(found.status === undefined ? {} : { status: found.status }),
    ...(found.confidence === undefined ? {} : { confidence: found.confidence }),
  };
}

