/** Changes as they happen: server-sent events, resumed where the stream broke off. */

import { BethinkError, Unreachable } from "./errors.js";
import { Following, isPassing, pause, type Transport, waitBefore } from "./transport.js";

/** What happened. `ready` begins a stream; after `reset` read again what you need. */
export type Change =
  | { type: "ready" | "reset"; id: string }
  | {
      type: "change";
      /** Continues here: `watch({ lastEventId: id })`, up to a day later. */
      id: string;
      /** stored, revised, ended, restored, erased, linked, merged ... */
      kind: string;
      /** The memory's id; null where it is not about one memory. */
      item: string | null;
      /** Its number in the journal. */
      seq: number;
      at: string;
    };

export interface WatchOptions {
  /** The `id` of the last event that you have seen; what came since is told first. */
  lastEventId?: string;
  /** Ends the stream, and with it the loop. */
  signal?: AbortSignal;
  /** Go on after a broken connection; default true. */
  reconnect?: boolean;
  /** A connection that is silent for longer is broken, in milliseconds; default 60,000. */
  silenceMs?: number;
}

interface Message {
  event: string;
  data: string;
  id: string;
}

/** Follow changes for as long as the caller listens. */
export async function* watch(transport: Transport, options: WatchOptions = {}): AsyncGenerator<Change, void, void> {
  let last = options.lastEventId ?? "";
  let failed = 0;
  while (!options.signal?.aborted) {
    const stop = new Following(options.signal);
    let problem: BethinkError;
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (last) headers["Last-Event-ID"] = last;
      const response = await transport.open("/v1/events/stream", headers, stop.signal);
      for await (const message of messages(response, stop, options.silenceMs ?? 60_000)) {
        failed = 0;
        last = message.id || last;
        yield changeOf(message);
      }
      problem = new Unreachable("the stream ended", { kind: "stream_ended" });
    } catch (error) {
      if (options.signal?.aborted) return;
      problem = isPassing(error) || error instanceof BethinkError ? error : broken(error);
      if (!isPassing(problem)) throw problem;
    } finally {
      stop.release();
      stop.abort();
    }
    if (options.reconnect === false) throw problem;
    try {
      await pause(waitBefore(Math.min(failed++, 6), problem), options.signal);
    } catch {
      return; // aborted while waiting
    }
  }
}

function broken(cause: unknown): Unreachable {
  return new Unreachable("the stream broke off", { kind: "stream_broken", cause });
}

function changeOf(message: Message): Change {
  if (message.event === "ready" || message.event === "reset") return { type: message.event, id: message.id };
  return { type: "change", id: message.id, ...JSON.parse(message.data) };
}

/** The messages of a stream, by the rules of the HTML standard. */
async function* messages(response: Response, stop: AbortController, silenceMs: number): AsyncGenerator<Message> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let lines: string[] = [];
  let id = "";
  for (;;) {
    const timer = setTimeout(() => stop.abort(new Unreachable("the stream fell silent")), silenceMs);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    // A line that ends in a carriage return may go on with a line feed: wait for it.
    const parts = rest.split(/\r\n|\n|\r(?!$)/);
    rest = parts.pop() ?? "";
    for (const line of parts) {
      if (line !== "") {
        lines.push(line);
        continue;
      }
      const message = parseMessage(lines, id);
      lines = [];
      id = message.id;
      if (message.data) yield message;
    }
  }
}

function parseMessage(lines: string[], lastId: string): Message {
  const message: Message = { event: "message", data: "", id: lastId };
  const data: string[] = [];
  for (const line of lines) {
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "event") message.event = value;
    else if (name === "data") data.push(value);
    else if (name === "id") message.id = value;
  }
  return { ...message, data: data.join("\n") };
}
