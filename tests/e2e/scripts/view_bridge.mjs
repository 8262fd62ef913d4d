// The view's line to its host with the official host at the other end, without a browser.
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { AppBridge } from "@modelcontextprotocol/ext-apps/app-bridge";

const { script } = JSON.parse(await text(process.stdin));
const report = { heard: [], answers: [], warnings: [] };
console.warn = (...told) => report.warnings.push(told.join(" "));

// Two ends of a window: what the view posts, the bridge receives, and the other way round.
const listeners = [];
const parent = { postMessage: (message) => queueMicrotask(() => transport.onmessage?.(structuredClone(message))) };
const frame = { parent, addEventListener: (_, listener) => listeners.push(listener) };
const transport = {
  start: async () => {},
  close: async () => {},
  send: async (message) => listeners.forEach((listener) => listener({ data: structuredClone(message), source: parent })),
};

const bridge = new AppBridge(null, { name: "test host", version: "1" }, { serverTools: {} }, {
  hostContext: { theme: "dark" },
});
bridge.oncalltool = async ({ name, arguments: args }) => {
  if (!report.called) {
    report.called = { name, arguments: args };
    return { content: [], structuredContent: { about: "why" } };
  }
  return { content: [{ type: "text", text: "it is refused" }], isError: true };
};
bridge.onsizechange = (size) => { report.size = size; };
const initialized = new Promise((done) => { bridge.oninitialized = done; });
await bridge.connect(transport);

const { connectHost } = await import(pathToFileURL(script));
const heard = Object.fromEntries(["tool-input", "tool-result", "host-context-changed"].map((name) =>
  [`ui/notifications/${name}`, () => report.heard.push(name)]));
const line = connectHost(frame, heard);
await line.initialize({ name: "bethink", version: "1" });
await initialized;
report.app = bridge.getAppVersion();

await bridge.sendToolInput({ arguments: { query: "a" } });
await bridge.sendToolResult({ content: [{ type: "text", text: "b" }] });
await bridge.sendHostContextChange({ theme: "light" });
report.answers.push((await line.call("explain", { query: "a", id: "b" })).structuredContent.about);
await line.call("recall", {}).catch((error) => report.answers.push(error.message));
line.notify("ui/notifications/size-changed", { width: 600, height: 321 });
await bridge.teardownResource({});
process.stdout.write(JSON.stringify(report));
process.exit(0);
