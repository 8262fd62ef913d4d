/** Requests to a server: their types from the API's description, retries and time limits. */

import { BethinkError, errorOfResponse, Malformed, Unreachable } from "./errors.js";
import type { components, paths } from "./schema.js";

type Methods = "get" | "post" | "patch" | "delete";
type Operation = { responses: { 200: { content: { "application/json": unknown } } } };
type OperationAt<P extends keyof paths, M extends Methods> = Exclude<paths[P][M], undefined>;

/** Every route that answers with JSON, as `POST /v1/recall`. */
export type Route = {
  [P in keyof paths]: {
    [M in Methods]: OperationAt<P, M> extends Operation ? `${Uppercase<M>} ${P}` : never;
  }[Methods];
}[keyof paths];

type OperationOf<R extends Route> = R extends `${infer M} ${infer P extends keyof paths}`
  ? Lowercase<M> extends infer L extends Methods
    ? OperationAt<P, L>
    : never
  : never;

/** What a parameter's place holds; absent ones are declared as never. */
type Part<O, K extends "path" | "query"> = O extends { parameters: { [N in K]?: infer V } }
  ? [Exclude<V, undefined>] extends [never]
    ? unknown
    : Exclude<V, undefined>
  : unknown;
type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : unknown;
type Flat<T> = { [K in keyof T]: T[K] };

/** The arguments of a route: those in its path, its query and its body. */
export type Arguments<R extends Route> = Flat<
  Part<OperationOf<R>, "path"> & Part<OperationOf<R>, "query"> & Body<OperationOf<R>>
>;

/** The answer of a route. */
export type Answer<R extends Route> =
  OperationOf<R> extends { responses: { 200: { content: { "application/json": infer A } } } } ? A : never;

/** A part of an answer by its name in the API's description. */
export type Schema<N extends keyof components["schemas"]> = components["schemas"][N];

export interface ClientOptions {
  /** Where `bethink serve` listens; default `http://127.0.0.1:8765`. */
  url?: string;
  /** A token of `bethink token create`; a program on the server's machine may need none. */
  token?: string;
  /** One of the server's further spaces (`--also-space`); default: its own. */
  space?: string;
  /** How often a request is tried again; default 3. */
  retries?: number;
  /** How long a request may take, in milliseconds; default 30,000. */
  timeoutMs?: number;
  /** Further headers of every request. */
  headers?: Record<string, string>;
  /** The function that fetches; default: the global one. */
  fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  /** Ends the request. */
  signal?: AbortSignal;
  /** How long this request may take, in milliseconds. */
  timeoutMs?: number;
}

const DEFAULT_URL = "http://127.0.0.1:8765";
const RETRIED = new Set([429, 503]);
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 60_000;
/** Routes that change nothing, or nothing more when they are repeated. */
const REPEATABLE = new Set<string>([
  "POST /v1/recall",
  "POST /v1/explain",
  "POST /v1/inspect",
  "POST /v1/values",
  "POST /v1/values/find",
]);

/** Sends requests to one space of a server. */
export class Transport {
  readonly base: string;
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    const url = (options.url ?? DEFAULT_URL).replace(/\/+$/, "");
    this.base = options.space === undefined ? url : `${url}/spaces/${encodeURIComponent(options.space)}`;
    this.#options = options;
  }

  /** Call a route; a bad answer throws the error of its kind. */
  async call<R extends Route>(route: R, given: Arguments<R>, options: CallOptions = {}): Promise<Answer<R>> {
    const [method, template] = route.split(" ") as [string, string];
    const rest: Record<string, unknown> = { ...(given as object) };
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = String(rest[name] ?? "");
      delete rest[name];
      // In an address these would stand for another route, however they are written.
      if (/^\.{0,2}$/.test(value)) throw new Malformed(`${name} is missing or "${value}"`, { kind: "malformed" });
      return encodeURIComponent(value);
    });
    const query = method === "GET" ? queryOf(rest) : "";
    const init: RequestInit = { method };
    if (method !== "GET") init.body = JSON.stringify(rest);
    const repeatable = method === "GET" || REPEATABLE.has(route) || hasKey(rest);
    return (await this.#send(`${path}${query}`, init, repeatable, options)) as Answer<R>;
  }

  /** Open a stream of server-sent events; it is not retried and has no time limit of its own. */
  async open(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    return this.#once(path, { method: "GET", headers, signal }, async (response) => response);
  }

  async #send(path: string, init: RequestInit, repeatable: boolean, options: CallOptions): Promise<unknown> {
    const most = repeatable ? (this.#options.retries ?? 3) : 0;
    const limit = options.timeoutMs ?? this.#options.timeoutMs ?? 30_000;
    for (let tried = 0; ; tried++) {
      const stop = new Following(options.signal);
      const timer = setTimeout(() => stop.abort(new DOMException("the time is up", "TimeoutError")), limit);
      try {
        return await this.#once(path, { ...init, signal: stop.signal }, (response) => response.json());
      } catch (error) {
        if (options.signal?.aborted) throw options.signal.reason;
        if (tried >= most || !isPassing(error)) throw error;
        await pause(waitBefore(tried, error), options.signal);
      } finally {
        clearTimeout(timer);
        stop.release();
      }
    }
  }

  async #once<T>(path: string, init: RequestInit, read: (response: Response) => Promise<T>): Promise<T> {
    const headers: Record<string, string> = { Accept: "application/json", ...this.#options.headers };
    if (this.#options.token !== undefined) headers["Authorization"] = `Bearer ${this.#options.token}`;
    if (init.body != null) headers["Content-Type"] = "application/json";
    const send = this.#options.fetch ?? globalThis.fetch;
    try {
      const response = await send(this.base + path, { ...init, headers: { ...headers, ...(init.headers as object) } });
      if (!response.ok) throw await errorOfResponse(response);
      return await read(response);
    } catch (cause) {
      if (cause instanceof BethinkError) throw cause;
      if (isTimeout(cause)) throw new Unreachable(`${this.base} did not answer in time`, { kind: "timeout", cause });
      if (init.signal?.aborted) throw cause;
      const remedy = "start it: bethink serve";
      throw new Unreachable(`${this.base} cannot be reached`, { kind: "unreachable", remedy, cause });
    }
  }
}

/** A controller that is aborted with a signal as well, until it is released. */
export class Following extends AbortController {
  readonly #signal: AbortSignal | undefined;
  readonly #stop = () => this.abort(this.#signal?.reason);

  constructor(signal?: AbortSignal) {
    super();
    this.#signal = signal;
    if (signal?.aborted) this.#stop();
    else signal?.addEventListener("abort", this.#stop, { once: true });
  }

  release(): void {
    this.#signal?.removeEventListener("abort", this.#stop);
  }
}

function queryOf(given: Record<string, unknown>): string {
  const told = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  const pairs = told.flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)] as [string, string]),
  );
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

/** Whether a write has an idempotency key, or many writes have one each. */
function hasKey(given: Record<string, unknown>): boolean {
  const each = given["memories"];
  return Array.isArray(each) ? each.every((one) => one?.key != null) : given["key"] != null;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

/** Whether another try may go better. */
export function isPassing(error: unknown): error is BethinkError {
  return error instanceof Unreachable || (error instanceof BethinkError && RETRIED.has(error.status));
}

/** How long to wait before the next try: what the server says, else twice as long each time. */
export function waitBefore(tried: number, error: BethinkError): number {
  const usual = FIRST_WAIT_MS * 2 ** tried * (0.75 + Math.random() / 2);
  return Math.min(LONGEST_WAIT_MS, error.retryAfter === undefined ? usual : error.retryAfter * 1000);
}

/** Wait; a signal ends it with its reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
