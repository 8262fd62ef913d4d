// The connection to the host: JSON-RPC over postMessage, as in MCP Apps (2026-01-26).
const PROTOCOL = "2026-01-26";
const TIMEOUT_MS = 30_000;

// Sends requests and notifications to the frame's parent; `handlers` has a function per notification.
export function connectHost(frame, handlers) {
  const waiting = new Map();
  let last = 0;

  const post = (message) => frame.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

  function settle({ id, result, error }) {
    const pending = waiting.get(id);
    if (!pending) return;
    waiting.delete(id);
    clearTimeout(pending.timer);
    if (error) pending.fail(new Error(String(error.message ?? "the host refused")));
    else pending.done(result ?? {});
  }

  // Requests that a host may send to any view; this one has no tools of its own.
  function serve({ id, method }) {
    if (method === "ping" || method === "ui/resource-teardown") post({ id, result: {} });
    else post({ id, error: { code: -32601, message: `no method ${String(method).slice(0, 80)}` } });
  }

  frame.addEventListener("message", (event) => {
    const message = event.data;
    if (event.source !== frame.parent || message === null || typeof message !== "object") return;
    if (message.jsonrpc !== "2.0") return;
    if (typeof message.method !== "string") settle(message);
    else if (message.id !== undefined) serve(message);
    else if (Object.hasOwn(handlers, message.method)) handlers[message.method](message.params ?? {});
  });

  function notify(method, params = {}) {
    post({ method, params });
  }

  function request(method, params) {
    const id = ++last;
    return new Promise((done, fail) => {
      const timer = setTimeout(() => settle({ id, error: { message: "the host did not answer" } }), TIMEOUT_MS);
      waiting.set(id, { done, fail, timer });
      post({ id, method, params });
    });
  }

  // The handshake; nothing else may be sent before the host has answered it.
  async function initialize(appInfo) {
    const appCapabilities = { availableDisplayModes: ["inline", "fullscreen"] };
    const host = await request("ui/initialize", { appInfo, appCapabilities, protocolVersion: PROTOCOL });
    notify("ui/notifications/initialized");
    return host;
  }

  // Calls a tool of the server through the host; a refusal becomes an Error with its message.
  async function call(name, args) {
    const reply = await request("tools/call", { name, arguments: args });
    if (reply.isError) throw new Error(textOf(reply) || `${name} failed`);
    return reply;
  }

  return { request, notify, initialize, call };
}

export function textOf(reply) {
  const parts = Array.isArray(reply?.content) ? reply.content : [];
  return parts.filter((part) => part?.type === "text").map((part) => String(part.text)).join("\n");
}
