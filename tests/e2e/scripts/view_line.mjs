// The view's line to its host, without a browser: a host of ours at the other end.
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const { script } = JSON.parse(await text(process.stdin));
const sent = [];
const listeners = [];
const parent = { postMessage: (message, to) => sent.push({ message: structuredClone(message), to }) };
const frame = { parent, addEventListener: (_, listener) => listeners.push(listener) };
const hear = (data, source = parent) => listeners.forEach((listener) => listener({ data, source }));
const turn = () => new Promise((done) => setImmediate(done));
const notified = [];

const { connectHost } = await import(pathToFileURL(script));
const heard = { "ui/notifications/tool-result": (params) => notified.push(params) };
const line = connectHost(frame, heard);

// The greeting comes first, and "initialized" only after its answer.
const greeted = line.initialize({ name: "bethink", version: "1" });
assert.equal(sent.length, 1);
const [{ message: hello, to }] = sent;
assert.equal(to, "*");
assert.equal(hello.jsonrpc, "2.0");
assert.equal(hello.method, "ui/initialize");
assert.equal(hello.params.protocolVersion, "2026-01-26");
assert.deepEqual(Object.keys(hello.params).sort(), ["appCapabilities", "appInfo", "protocolVersion"]);
hear({ jsonrpc: "2.0", id: hello.id, result: { hostCapabilities: { serverTools: {} } } });
assert.deepEqual((await greeted).hostCapabilities, { serverTools: {} });
assert.equal(sent[1].message.method, "ui/notifications/initialized");
assert.equal("id" in sent[1].message, false);

// What is no message of the host's is not heard.
const result = { jsonrpc: "2.0", method: "ui/notifications/tool-result", params: { content: [] } };
for (const other of [null, 7, "text", [], {}, { jsonrpc: "1.0" }, { ...result, jsonrpc: undefined }]) hear(other);
hear(result, {});
hear({ jsonrpc: "2.0", method: "constructor" });
hear({ jsonrpc: "2.0", method: "toString", params: {} });
hear({ jsonrpc: "2.0", id: 999, result: {} });
assert.deepEqual(notified, []);
hear(result);
assert.deepEqual(notified, [{ content: [] }]);

// A host may ask whether we are there and say that we are done; nothing else.
for (const [method, key] of [["ping", "result"], ["ui/resource-teardown", "result"], ["tools/list", "error"]]) {
  hear({ jsonrpc: "2.0", id: method, method, params: {} });
  const { message } = sent.at(-1);
  assert.equal(message.id, method);
  assert.ok(key in message);
}

// A tool's answer, its refusal and the host's refusal.
const answers = [
  { result: { structuredContent: { status: "found" } } },
  { result: { isError: true, content: [{ type: "text", text: "k is 500" }] } },
  { error: { code: -32000, message: "denied" } },
  {},
];
const told = [];
for (const answer of answers) {
  const call = line.call("recall", { query: "a" });
  const { message } = sent.at(-1);
  assert.equal(message.method, "tools/call");
  assert.deepEqual(message.params, { name: "recall", arguments: { query: "a" } });
  hear({ jsonrpc: "2.0", id: message.id, ...answer });
  told.push(await call.then((reply) => reply.structuredContent?.status ?? "nothing", (error) => error.message));
  await turn();
}
assert.equal(new Set(sent.map(({ message }) => message.id).filter((id) => typeof id === "number")).size, 5);
process.stdout.write(JSON.stringify({ told }));
process.exit(0);
