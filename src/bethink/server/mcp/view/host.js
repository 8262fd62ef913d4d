"use strict";
// The line to the host: JSON-RPC by postMessage, as MCP Apps writes it (2026-01-26).
const PROTOCOL = "2026-01-26";
const PATIENCE_MS = 30_000;

// Asks and tells the frame's parent; `heard` has a function for each notification.
function lineTo(frame, heard) {
  const waiting = new Map();
  let last = 0;

  const post = (message) => frame.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

  function settle({ id, result, error }) {
    const asked = waiting.get(id);
    if (!asked) return;
    waiting.delete(id);
    clearTimeout(asked.timer);
    if (error) asked.fail(new Error(String(error.message ?? "the host refused")));
    else asked.done(result ?? {});
  }

  // What a host may ask of any view; this one has no tools of its own.
  function serve({ id, method }) {
    if (method === "ping" || method === "ui/resource-teardown") post({ id, result: {} });
    else post({ id, error: { code: -32601, message: `no method ${String(method).slice(0, 80)}` } });
  }

  frame.addEventListener("message", (event) => {
    const told = event.data;
    if (event.source !== frame.parent || told === null || typeof told !== "object") return;
    if (told.jsonrpc !== "2.0") return;
    if (typeof told.method !== "string") settle(told);
    else if (told.id !== undefined) serve(told);
    else if (Object.hasOwn(heard, told.method)) heard[told.method](told.params ?? {});
  });

  function tell(method, params = {}) {
    post({ method, params });
  }

  function ask(method, params) {
    const id = ++last;
    return new Promise((done, fail) => {
      const timer = setTimeout(() => settle({ id, error: { message: "the host did not answer" } }), PATIENCE_MS);
      waiting.set(id, { done, fail, timer });
      post({ id, method, params });
    });
  }

  // The greeting; nothing else may be said before the host has answered it.
  async function greet(appInfo) {
    const appCapabilities = { availableDisplayModes: ["inline", "fullscreen"] };
    const host = await ask("ui/initialize", { appInfo, appCapabilities, protocolVersion: PROTOCOL });
    tell("ui/notifications/initialized");
    return host;
  }

  // A tool of the server's own, through the host. Its refusal is an error with its words.
  async function call(name, args) {
    const reply = await ask("tools/call", { name, arguments: args });
    if (reply.isError) throw new Error(textOf(reply) || `${name} failed`);
    return reply;
  }

  return { ask, tell, greet, call };
}

function textOf(reply) {
  const parts = Array.isArray(reply?.content) ? reply.content : [];
  return parts.filter((part) => part?.type === "text").map((part) => String(part.text)).join("\n");
}

