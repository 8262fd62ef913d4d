// The one way to the engine: the REST API, with its types.
import { signal } from "@preact/signals";
import type { Operations } from "./types";

export type Operation = keyof Operations;
export type Arguments<K extends Operation> = Operations[K]["arguments"];
export type Answer<K extends Operation> = Operations[K]["answer"];

/** Where the API of the space that is shown begins: "" for the first space of a server. */
export const base = /^\/spaces\/[^/]+(?=\/ui(?:\/|$))/.exec(location.pathname)?.[0] ?? "";

/** Whether the server can be reached; the shell shows a notice while it cannot. */
export const connected = signal(true);

/** An answer that says no: what went wrong, in words, and what to do about it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly remedy: string,
  ) {
    super(message);
  }
}

/** The server could not be reached. */
export class Unreachable extends ApiError {
  constructor() {
    super(0, "unreachable", "The server does not answer.", "Is bethink still running? This page tries again by itself.");
  }
}

const PAGE_KEY = "bethink-page-key";
let pageKey = kept();

function kept(): string {
  try {
    return localStorage.getItem(PAGE_KEY) ?? "";
  } catch {
    return ""; // storage may be switched off
  }
}

/** Keep what belongs to the cookie: storage has a port, cookies have none. */
export function keepPageKey(key: string): void {
  pageKey = key;
  try {
    if (key) localStorage.setItem(PAGE_KEY, key);
    else localStorage.removeItem(PAGE_KEY);
  } catch {
    // The session then lasts as long as the page.
  }
}

// Another tab signed in or out.
addEventListener("storage", (event) => {
  if (event.key === PAGE_KEY) pageKey = event.newValue ?? "";
});

function ownHeaders(): Record<string, string> {
  return pageKey ? { "x-bethink-page": pageKey } : {};
}

let onSignedOut = () => {};

/** Say what to do when the server no longer knows this browser. */
export function whenSignedOut(action: () => void): void {
  onSignedOut = action;
}

export async function call<K extends Operation>(
  operation: K,
  given: Arguments<K>,
  abort?: AbortSignal,
  place = base,
): Promise<Answer<K>> {
  const [method, template] = operation.split(" ") as [string, string];
  const rest: Record<string, unknown> = { ...given };
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(rest[name]);
    delete rest[name];
    return encodeURIComponent(value);
  });
  const init = { method, credentials: "same-origin", cache: "no-store", redirect: "error", headers: ownHeaders() } as RequestInit & {
    headers: Record<string, string>;
  };
  if (abort) init.signal = abort;
  let url = place + path;
  if (method === "GET") {
    const query = queryString(rest);
    url += query && `?${query}`;
  } else if (Object.keys(rest).length) {
    init.body = JSON.stringify(rest);
    init.headers["content-type"] = "application/json";
  }
  return answerOf<Answer<K>>(await reach(url, init));
}

async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, init);
    connected.value = true;
    return response;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    if (connected.value) {
      connected.value = false;
      watchConnection();
    }
    throw new Unreachable();
  }
}

async function answerOf<T>(response: Response): Promise<T> {
  let body: unknown = null;
  try {
    body = await response.json();
  } catch (error) {
    if (error instanceof DOMException) throw error;
  }
  if (response.ok && body !== null) return body as T;
  const told = (body as { error?: { kind: string; message: string; remedy: string } } | null)?.error;
  if (response.status === 401) onSignedOut();
  throw new ApiError(
    response.status,
    told?.kind ?? "unknown",
    forPeople(told?.message ?? `The server answered with status ${response.status}.`),
    forPeople(told?.remedy ?? ""),
  );
}

/** A message of the API, which speaks to programs and agents, in words for who looks at the page. */
export function forPeople(text: string): string {
  return text
    .replace(/ask the user to run:? /g, "run: ")
    .replace(/call undo with id \S+/g, "undo the last change")
    .replace("use recall to find memories and their ids", "search for it under Memories")
    .replace(/list the entities with GET \S+/g, "choose one of the list");
}

/** Import an export, whole or not at all. */
export async function importExport(lines: string): Promise<Answer<"POST /v1/import">> {
  const headers = { ...ownHeaders(), "content-type": "application/x-ndjson" };
  const init: RequestInit = { method: "POST", body: lines, credentials: "same-origin", cache: "no-store", redirect: "error", headers };
  return answerOf(await reach(`${base}/v1/import`, init));
}

/** Download an answer as a file. */
export async function download(path: string, name: string): Promise<void> {
  const init: RequestInit = { credentials: "same-origin", cache: "no-store", redirect: "error", headers: ownHeaders() };
  const response = await reach(base + path, init);
  if (!response.ok) await answerOf(response);
  saveAs(await response.blob(), name);
}

/** Let the browser save a file. */
export function saveAs(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function queryString(values: Record<string, unknown>): string {
  const made = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) made.append(name, String(one));
  }
  return made.toString();
}

/** How often the connection came back: views load again when it changes. */
export const reconnections = signal(0);

function watchConnection(): void {
  let wait = 1000;
  const attempt = async () => {
    try {
      await fetch("/health", { cache: "no-store" });
      connected.value = true;
      reconnections.value += 1;
    } catch {
      wait = Math.min(wait * 1.5, 10_000);
      setTimeout(attempt, wait);
    }
  };
  setTimeout(attempt, wait);
}
