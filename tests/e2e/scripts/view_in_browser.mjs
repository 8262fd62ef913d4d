// The view in a real browser, a real server behind it, and the official host between them.
//
// Node is the host: the official client speaks to the server by standard input and output,
// the official bridge of MCP Apps to the view, which runs in a sandboxed frame of Chromium.
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { AppBridge, RESOURCE_MIME_TYPE } from "@modelcontextprotocol/ext-apps/app-bridge";
import { chromium } from "playwright-core";

const told = JSON.parse(await text(process.stdin));

const HOST = "http://host.test/";
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
  "--disable-background-networking", "--disable-component-update",
];
const HOST_PAGE = `<!doctype html><title>host</title><body style="margin:0;background:#888">
<iframe sandbox="allow-scripts" style="width:640px;height:300px;border:0"></iframe><script>
const frame = document.querySelector("iframe");
window.deliver = (message) => frame.contentWindow.postMessage(message, "*");
window.show = (html) => { frame.srcdoc = html; };
addEventListener("message", (event) => {
  if (event.source === frame.contentWindow) window.fromView(JSON.stringify(event.data));
});
</script>`;

// --- The server ---------------------------------------------------------------------------

const client = new Client({ name: "test host", version: "1" }, {
  capabilities: { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } } },
});
await client.connect(new StdioClientTransport({ ...told.server, stderr: "ignore" }));
const { tools } = await client.listTools();
const uri = tools.find((tool) => tool.name === "recall")._meta.ui.resourceUri;
const [resource] = (await client.readResource({ uri })).contents;
for (const about of told.memories) {
  await client.callTool({ name: "remember", arguments: { ...about, force: true } });
}

// --- The browser --------------------------------------------------------------------------

const seen = { console: [], requests: [], dialogs: 0, mime: resource.mimeType, sizes: 0, calls: [] };
const browser = await chromium.launch({ executablePath: told.chromium, args: FLAGS, timeout: 110_000 });
const page = await browser.newPage({ viewport: { width: 660, height: 1400 } });
page.setDefaultTimeout(110_000);
page.on("console", (line) => seen.console.push(`${line.type()}: ${line.text()}`));
page.on("pageerror", (error) => seen.console.push(String(error)));
page.on("dialog", (dialog) => { seen.dialogs += 1; dialog.dismiss(); });
await page.route("**/*", (route) => {
  if (route.request().url() === HOST) return route.fulfill({ contentType: "text/html", body: HOST_PAGE });
  seen.requests.push(route.request().url());
  return route.abort();
});

// One view of one call, with a host that can do this.
async function view(args, { capabilities = { serverTools: {} }, context = {}, result } = {}) {
  const transport = {
    start: async () => {},
    send: (message) => page.evaluate((one) => window.deliver(one), message),
    close: async () => {},
  };
  view.transport = transport;
  const bridge = new AppBridge(client, { name: "test host", version: "1" }, capabilities, {
    hostContext: { theme: "light", locale: "en-GB", timeZone: "UTC", ...context },
  });
  bridge.onsizechange = ({ height }) => {
    seen.sizes += 1;
    return page.evaluate((to) => { document.querySelector("iframe").style.height = `${to}px`; }, height);
  };
  const ready = new Promise((done) => { bridge.oninitialized = done; });
  await bridge.connect(transport);
  await page.goto(HOST);
  await page.evaluate((html) => window.show(html), resource.text);
  await ready;
  await bridge.sendToolInput({ arguments: args });
  const answer = result ?? (await client.callTool({ name: "recall", arguments: args }));
  await bridge.sendToolResult(answer);
  const frame = page.frames()[1];
  await frame.waitForFunction(() => document.getElementById("status")?.textContent);
  return { bridge, frame, answer };
}
// exposeFunction holds for the page's life: messages go to whichever view is on.
await page.exposeFunction("fromView", (message) => view.transport.onmessage?.(JSON.parse(message)));

const shot = async (name) => {
  await page.waitForTimeout(300);
  await page.locator("iframe").screenshot({ path: `${told.shots}/${name}.png` });
};
const texts = (frame, selector) => frame.$$eval(selector, (found) => found.map((one) => one.textContent));
const report = {};

// --- What is hostile stays text -----------------------------------------------------------
{
  const { bridge, frame, answer } = await view({ query: told.hostile, k: 50, max_tokens: 20000 });
  await frame.$$eval("#hits button[aria-expanded=false]", (all) => all.forEach((one) => one.click()));
  await frame.waitForFunction(() =>
    document.querySelectorAll("table").length === document.querySelectorAll(".hit").length
    && !document.querySelector("#hits button[aria-expanded=false]"));
  report.hostile = {
    given: answer.structuredContent.memories.map((one) => one.text),
    // A character that is not visible is drawn by its number.
    drawn: await frame.$$eval("#hits .text", (all) => all.map((one) => [...one.childNodes].map((part) =>
      part.className === "hidden-char" ? String.fromCodePoint(parseInt(part.textContent.slice(2), 16)) : part.textContent).join(""))),
    facts: await texts(frame, "#hits .hit-meta > *"),
    drawings: await frame.$$eval("svg", (all) =>
      [...new Set(all.flatMap((one) => [one.getAttribute("class"), ...[...one.children].map((part) => part.tagName)]))].sort()),
    tags: await frame.$$eval("body *", (all) => [...new Set(all.map((one) => one.tagName.toLowerCase()))].sort()),
    attributes: await frame.$$eval("body *", (all) =>
      [...new Set(all.flatMap((one) => one.getAttributeNames()))].sort()),
    scripts: await frame.$$eval("script", (all) => all.length),
    pwned: await frame.evaluate(() => typeof window.pwned),
  };
  await bridge.teardownResource({});
}

// --- Found: by mouse and by keyboard ------------------------------------------------------
{
  const { bridge, frame, answer } = await view({ query: told.query, k: 3 });
  report.found = {
    question: (await texts(frame, "#question"))[0],
    status: (await texts(frame, "#status"))[0],
    scores: await texts(frame, "#hits .score"),
    answer: answer.structuredContent.memories.map((one) => one.score),
    relevance: answer.structuredContent.memories.map((one) => one.relevance),
    leftOut: answer.structuredContent.left_out,
  };
  await frame.focus("#filter");
  await page.keyboard.press("Tab");
  report.focused = await frame.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("Enter");
  await frame.waitForSelector("table");
  report.sum = (await texts(frame, "#hits li:first-child tfoot .num")).at(-1);
  await shot("found-light");
  const name = told.names.find((one) => answer.structuredContent.memories[0].text.includes(one));
  await frame.fill("#filter", `release ${name.toLowerCase()}`);
  await frame.waitForFunction(() => document.getElementById("status").textContent.endsWith("shown"));
  report.filtered = {
    shown: await frame.$$eval("#hits > li", (all) => all.filter((one) => !one.hidden).length),
    status: (await texts(frame, "#status"))[0],
  };
  await frame.fill("#filter", "");
  await frame.waitForFunction(() => document.querySelectorAll("#hits > li").length === 3);
  await frame.click("#more");
  await frame.waitForFunction((before) => document.querySelectorAll("#hits > li").length > before, 3);
  report.more = { hits: (await texts(frame, "#hits > li")).length, status: (await texts(frame, "#status"))[0] };
  await frame.fill("#missed", told.missed);
  await page.keyboard.press("Enter");
  await frame.waitForSelector("#answer .notice");
  report.missed = (await texts(frame, "#answer .notice"))[0];
  await bridge.sendHostContextChange({ theme: "dark" });
  await frame.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  report.dark = await frame.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await shot("found-dark");
  await bridge.teardownResource({});
}

// --- Nothing known, with a host that passes no calls on and one that does -----------------
for (const [name, capabilities] of [["silent", {}], ["helpful", { serverTools: {} }]]) {
  const { bridge, frame } = await view({ query: told.unknown, min_confidence: 1 }, { capabilities });
  report[name] = {
    status: (await texts(frame, "#status"))[0],
    notes: (await texts(frame, "#notes"))[0],
    buttons: await frame.$$eval("button", (all) => all.filter((one) => one.offsetParent).map((one) => one.textContent)),
  };
  if (name === "helpful" && report[name].buttons.includes("Why not?")) {
    await frame.click("#notes button");
    await frame.waitForSelector("#notes pre");
    report[name].why = (await texts(frame, "#notes pre"))[0];
  }
  await shot(`unknown-${name}`);
  await bridge.teardownResource({});
}

// --- A refusal, and a host that passes texts alone ----------------------------------------
{
  const refused = await client.callTool({ name: "recall", arguments: { query: "a", k: 500 } });
  const { frame } = await view({ query: "a", k: 500, entity: told.markup }, { result: refused });
  report.refused = (await texts(frame, "#hits"))[0];
  report.asked = await texts(frame, "#filters .badge");
}

report.seen = seen;
await browser.close();
await client.close();
process.stdout.write(JSON.stringify(report));
process.exit(0);
