// Renders an answer of recall. The text of a memory is only ever inserted as text.
const EVIDENCE = "bethink/evidence";
const SHOWN = 700; // characters of a memory before it is cut
const SIGNS = { add: "+", times: "×", set: "=", seen: "·" };
const TRUST = ["unknown source", "imported or by a tool", "user or agent", "the owner"];
const FILTERS = ["entity", "kind", "layer", "band", "topic", "tag", "since", "until", "as_of", "profile"];
const EMPTY = {
  nothing_stored: "Nothing is stored here yet.",
  nothing_matched: "Nothing relevant is stored.",
};
const REASONS = new Map([
  ["content_match_fts", "matches words"], ["content_match_dual", "matches words and word parts"],
  ["content_substring", "contains the phrase"], ["entity_name_match", "matches the entity"],
  ["meaning_match", "similar in meaning"], ["time_match", "matches the time"],
]);
const SIDES = { contradicts: ["contradicts", "is contradicted by"], supersedes: ["corrects", "is corrected by"] };

const seen = { input: {}, hits: [], evidence: {}, result: null, cursor: null, leftOut: 0 };
const host = { tools: false, locale: undefined, timeZone: undefined };
const at = (id) => document.getElementById(id);

// Creates an element with text and child elements; never parses markup.
function createElement(tag, about, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(about ?? {})) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...inside.filter((part) => part !== null && part !== undefined));
  return element;
}

const list = (value) => (Array.isArray(value) ? value : []);
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const chip = (text, kind) => createElement("span", { class: kind ? `chip ${kind}` : "chip", dir: "auto" }, String(text));

function button(text, act) {
  const element = createElement("button", { type: "button" }, text);
  element.addEventListener("click", act);
  return element;
}

// --- A memory ---------------------------------------------------------------------------

function card(hit, { place, best, miss = false }) {
  const parts = [head(hit, place, best), words(hit.text), facts(hit)];
  parts.push(...list(hit.relations).map(relation));
  if (miss) parts.push(whyNot(hit.id));
  else parts.push(arithmetic(hit));
  return createElement("article", { "aria-label": `Memory ${place || "not returned"}` }, ...parts);
}

function head(hit, place, best) {
  const known = typeof hit.relevance === "number";
  const value = known ? hit.relevance : number(hit.score);
  const most = known ? 1 : Math.max(best, value);
  const share = most > 0 ? Math.max(0, Math.min(1, value / most)) : 0;
  const score = known ? `${Math.round(100 * value)} %` : value.toFixed(3);
  const meter = createElement("div", {
    class: "meter", role: "meter", "aria-label": known ? "relevance" : "score", "aria-valuemin": 0,
    "aria-valuemax": most, "aria-valuenow": value.toFixed(3), "aria-valuetext": score,
  }, createElement("div", { class: "bar" }));
  meter.firstChild.style.width = `${(100 * share).toFixed(1)}%`;
  return createElement("div", { class: "head" }, createElement("span", { class: "place" }, place ? `${place}` : "–"), meter,
    createElement("span", { class: "score" }, score));
}

function words(value) {
  const text = String(value ?? "");
  const shown = createElement("p", { class: "text", dir: "auto" }, text.slice(0, SHOWN));
  if (text.length <= SHOWN) return shown;
  shown.append("… ");
  shown.append(button("show all", () => shown.replaceChildren(text)));
  return shown;
}

function facts(hit) {
  const trust = Math.trunc(number(hit.trust));
  const chips = [
    chip(hit.kind, "kind"),
    day(hit.when),
    chip(`trust ${trust}: ${TRUST[trust] ?? "?"}`, trust < 2 ? "warn" : "calm"),
    hit.speaker ? chip(`said by ${hit.speaker}`) : null,
    hit.source ? chip(hit.source) : null,
    hit.topic ? chip(`topic ${hit.topic}`) : null,
    hit.pinned ? chip("pinned") : null,
    hit.status && hit.status !== "active" ? chip(hit.status, "warn") : null,
    ...list(hit.flags).map((flag) => chip(`flagged: ${flag}`, "warn")),
    ...list(hit.reasons).map((reason) => chip(REASONS.get(reason) ?? String(reason).replaceAll("_", " "), "reason")),
    createElement("code", { class: "id" }, String(hit.id)),
  ];
  return createElement("p", { class: "chips" }, ...chips);
}

function day(when) {
  const moment = new Date(String(when));
  if (Number.isNaN(moment.getTime())) return null;
  const form = { dateStyle: "medium", timeZone: host.timeZone };
  let shown;
  try {
    shown = new Intl.DateTimeFormat(host.locale, form).format(moment);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    shown = String(when).slice(0, 10); // a locale or time zone that this browser does not know
  }
  return createElement("time", { class: "chip", datetime: moment.toISOString(), title: String(when) }, shown);
}

function relation(link) {
  const side = SIDES[link.type]?.[link.inbound ? 1 : 0] ?? String(link.type);
  return createElement("p", { class: "relation", dir: "auto" }, createElement("strong", null, side), " ",
    createElement("code", { class: "id" }, String(link.other)), ` ${link.text}`);
}

// --- Why ----------------------------------------------------------------------------------

function arithmetic(hit) {
  const details = createElement("details", null, createElement("summary", null, "Why this score"));
  details.addEventListener("toggle", async () => {
    if (!details.open || details.dataset.drawn) return;
    details.dataset.drawn = "yes";
    details.append(await reasons(hit));
  });
  return details;
}

async function reasons(hit) {
  const own = seen.evidence[hit.id];
  if (Array.isArray(own)) return table(own);
  if (!host.tools) return createElement("p", { class: "quiet" }, "This host does not pass on the evidence; use the tool explain.");
  return callTool("explain", { ...asExplained(), id: hit.id }, (answer) => {
    const evidence = answer.details?.evidence;
    return Array.isArray(evidence) ? table(evidence) : createElement("pre", { dir: "auto" }, String(answer.explanation));
  });
}

// The score after each piece of evidence: the same arithmetic that ranked it.
function table(evidence) {
  let score = 0;
  const rows = evidence.map((one) => {
    const value = number(one.value);
    if (one.op === "add") score += value;
    else if (one.op === "times") score *= value;
    else if (one.op === "set") score = value;
    const why = [one.why, one.via, one.rank ? `rank ${one.rank}` : ""].filter(Boolean).join(" · ");
    return createElement("tr", { class: one.op === "seen" ? "quiet" : null },
      createElement("td", { class: "sum" }, one.op === "seen" ? "" : score.toFixed(4)),
      createElement("td", { class: "sum" }, `${SIGNS[one.op] ?? ""} ${value.toFixed(4)}`),
      createElement("td", null, String(one.by)), createElement("td", { dir: "auto" }, why));
  });
  const titles = ["score", "by", "what", "why"].map((title) => createElement("th", { scope: "col" }, title));
  return createElement("div", { class: "wide" },
    createElement("table", null, createElement("thead", null, createElement("tr", null, ...titles)), createElement("tbody", null, ...rows)));
}

function whyNot(id) {
  if (!host.tools) return null;
  const place = createElement("div", { role: "status" });
  const ask = button("Why not?", async () => {
    ask.disabled = true;
    place.replaceChildren(await missed(id));
    ask.disabled = false;
  });
  return createElement("div", null, ask, place);
}

function missed(id) {
  return callTool("explain", { ...asExplained(), id }, (answer) => createElement("div", null,
    createElement("pre", { dir: "auto" }, String(answer.explanation)),
    answer.remedy ? createElement("p", null, `To include it: ${answer.remedy}`) : null));
}

function asExplained() {
  const { query = "", k, profile } = seen.input;
  return { query, ...(k ? { k } : {}), ...(profile ? { profile } : {}) };
}

// Calls a tool and renders its answer, or the message of its error.
async function callTool(tool, args, draw) {
  try {
    const reply = await line.call(tool, args);
    return draw(reply.structuredContent ?? {});
  } catch (error) {
    return createElement("p", { class: "warn" }, String(error.message));
  }
}

// --- The answer ---------------------------------------------------------------------------

function drawInput(input) {
  seen.input = input && typeof input === "object" ? input : {};
  at("question").textContent = String(seen.input.query || "") || "Memories";
  const filters = FILTERS.filter((name) => seen.input[name]);
  at("filters").replaceChildren(...filters.map((name) => chip(`${name.replace("_", " ")}: ${seen.input[name]}`)));
}

function drawResult(result) {
  const answer = result.structuredContent;
  if (result.isError || !answer || !Array.isArray(answer.memories)) {
    // Another tool's result, or a host that passes only text.
    if (result.isError || !seen.result) plain(result);
    return;
  }
  seen.result = answer;
  seen.hits = answer.memories;
  seen.evidence = result._meta?.[EVIDENCE] ?? {};
  drawPage(answer);
  at("hits").replaceChildren();
  drawHits(seen.hits, 0);
  drawNotes(answer);
  at("missing").hidden = !(host.tools && seen.input.query);
}

function plain(result) {
  at("status").textContent = result.isError ? "The call failed." : "";
  at("hits").replaceChildren(createElement("li", null, createElement("p", { class: "text", dir: "auto" }, textOf(result) || "No answer.")));
}

function drawPage(answer) {
  seen.cursor = answer.cursor ?? null;
  seen.leftOut = number(answer.left_out);
  const count = seen.hits.length;
  const empty = EMPTY[answer.status] ?? "Nothing relevant is stored.";
  const unsure = answer.status === "unsure" ? "Not sure these are related: " : "";
  at("status").textContent = count ? `${unsure}${count} of ${count + seen.leftOut} ${count + seen.leftOut === 1 ? "memory" : "memories"}, best match first` : empty;
  at("status").className = count ? "" : "empty";
  at("filter").hidden = count < 2;
  at("more").hidden = !(host.tools && seen.cursor && seen.leftOut);
  at("more").textContent = `${seen.leftOut} more`;
}

function drawHits(hits, before) {
  const best = Math.max(0, ...seen.hits.map((hit) => number(hit.score)));
  const cards = hits.map((hit, index) => createElement("li", null, card(hit, { place: before + index + 1, best })));
  at("hits").append(...cards);
  filter();
}

function drawNotes(answer) {
  const notes = [];
  if (!seen.hits.length && answer.reason) notes.push(createElement("p", { dir: "auto" }, String(answer.reason)));
  notes.push(...list(answer.warnings).map((text) => createElement("p", { class: "warn", dir: "auto" }, String(text))));
  notes.push(...list(answer.degraded).map((part) =>
    createElement("p", { class: "warn", dir: "auto" }, `Answered without ${part.part}: ${part.reason}`)));
  const miss = answer.nearest_miss;
  if (miss && !seen.hits.length) {
    notes.push(createElement("h2", null, "Nearest miss, not relevant enough"));
    notes.push(card(miss, { best: Math.max(1, number(miss.score)), miss: true }));
  }
  at("notes").replaceChildren(...notes);
}

async function drawMore() {
  const { offset, ...input } = seen.input;
  at("more").disabled = true;
  try {
    const reply = await line.call("recall", { ...input, cursor: seen.cursor });
    const answer = reply.structuredContent ?? {};
    const before = seen.hits.length;
    Object.assign(seen.evidence, reply._meta?.[EVIDENCE]);
    seen.hits = [...seen.hits, ...list(answer.memories)];
    drawPage(answer);
    drawHits(list(answer.memories), before);
  } catch (error) {
    at("status").textContent = String(error.message);
  } finally {
    at("more").disabled = false;
  }
}

function filter() {
  const terms = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  seen.hits.forEach((hit, index) => {
    const row = at("hits").children[index];
    if (!row) return;
    const about = [hit.id, hit.text, hit.kind, hit.topic, hit.source, hit.speaker].join(" ").toLowerCase();
    row.hidden = !terms.every((word) => about.includes(word));
    shown += row.hidden ? 0 : 1;
  });
  if (terms.length) at("status").textContent = `${shown} of ${seen.hits.length} shown`;
  else if (seen.result) drawPage({ ...seen.result, cursor: seen.cursor, left_out: seen.leftOut });
}

// --- The host -----------------------------------------------------------------------------

function dress(context) {
  const root = document.documentElement;
  if (context.theme === "light" || context.theme === "dark") root.dataset.theme = context.theme;
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    if (name.startsWith("--") && typeof value === "string") root.style.setProperty(name, value);
  }
  if (typeof context.locale === "string") host.locale = context.locale;
  if (typeof context.timeZone === "string") host.timeZone = context.timeZone;
}

function watchSize() {
  let lastSize = "";
  new ResizeObserver(() => {
    const box = document.documentElement.getBoundingClientRect();
    const size = { width: Math.ceil(box.width), height: Math.ceil(box.height) };
    if (lastSize === `${size.width} ${size.height}`) return;
    lastSize = `${size.width} ${size.height}`;
    line.notify("ui/notifications/size-changed", size);
  }).observe(document.documentElement);
}

const line = connectHost(window, {
  "ui/notifications/tool-input": (params) => drawInput(params.arguments),
  "ui/notifications/tool-input-partial": (params) => drawInput(params.arguments),
  "ui/notifications/tool-result": drawResult,
  "ui/notifications/tool-cancelled": (params) => {
    at("status").textContent = `Cancelled${params.reason ? `: ${params.reason}` : ""}.`;
  },
  "ui/notifications/host-context-changed": dress,
});

async function begin() {
  at("filter").addEventListener("input", filter);
  at("more").addEventListener("click", drawMore);
  const askWhyNot = async () => {
    const id = at("missed").value.trim();
    if (id) at("answer").replaceChildren(await missed(id));
  };
  at("why-not").addEventListener("click", askWhyNot);
  at("missed").addEventListener("keydown", (event) => (event.key === "Enter" ? askWhyNot() : null));
  const reply = await line.initialize({ name: "bethink", version: "{version}" });
  host.tools = Boolean(reply.hostCapabilities?.serverTools);
  dress(reply.hostContext ?? {});
  watchSize();
}

begin().catch((error) => {
  at("question").textContent = "The host does not answer.";
  at("status").textContent = String(error.message);
});
