// Lets the conformance suite start on Node 20, which lacks a function it imports and, for
// testing servers, never calls.
import { register } from "node:module";

const standIn = `export * from "node:fs"; export { default } from "node:fs";
export function globSync() { throw new Error("needs Node 22"); }`;
const hook = `export async function resolve(name, context, next) {
  const asked = name === "fs" && context.parentURL?.includes("/conformance/");
  return asked ? { shortCircuit: true, url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(standIn)}`)} } : next(name, context);
}`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);
