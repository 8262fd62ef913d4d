// The official TypeScript client against our server: everything listed, every tool called.
import { text } from "node:stream/consumers";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const told = JSON.parse(await text(process.stdin));
const transport = told.url
  ? new StreamableHTTPClientTransport(new URL(told.url))
  : new StdioClientTransport({ ...told.server, stderr: "ignore" });
const client = new Client({ name: "typescript", version: "1" });
await client.connect(transport);

const report = { calls: {} };
report.tools = (await client.listTools()).tools.map((tool) => tool.name);
report.resources = (await client.listResources()).resources.map((one) => one.uri);
report.prompts = (await client.listPrompts()).prompts.map((one) => one.name);
for (const [name, args] of told.calls) {
  // The client checks structured content against the tool's output schema by itself.
  const reply = await client.callTool({ name, arguments: args });
  if (reply.isError) throw new Error(`${name}: ${JSON.stringify(reply.content)}`);
  report.calls[name] = reply.structuredContent;
}
for (const uri of report.resources) {
  if (!(await client.readResource({ uri })).contents.length) throw new Error(uri);
}
for (const name of report.prompts) {
  const given = { begin: { task: "release" }, review: { subject: "releases" } }[name] ?? {};
  if (!(await client.getPrompt({ name, arguments: given })).messages.length) throw new Error(name);
}
await client.close();
process.stdout.write(JSON.stringify(report));
process.exit(0);
