// Prints every change of a memory until it is stopped: node watch.mjs [URL] [TOKEN]
import { Bethink } from "bethink";

const [, , url = "http://127.0.0.1:8765", token] = process.argv;
const memory = new Bethink({ url, ...(token && { token }) });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());

for await (const change of memory.watch({ signal: stop.signal })) {
  if (change.type === "change") console.log(change.at, change.kind, change.item ?? "");
  else console.log(change.type);
}
