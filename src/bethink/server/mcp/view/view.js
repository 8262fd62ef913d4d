// Draws an answer of recall. What a memory says only ever becomes text.
const EVIDENCE = "bethink/evidence";
const SHOWN = 700; // characters of a memory before it is cut
const SIGNS = { add: "+", times: "×", set: "=", seen: "·" };
const TRUST = ["unknown source", "imported or by a tool", "user or agent", "the owner"];
const FILTERS = ["entity", "kind", "layer", "band", "topic", "tag", "since", "until", "as_of", "profile"];
const EMPTY = {
  nothing_stored: "Nothing is stored here yet.",
  nothing_matched: "I know nothing about that.",
  below_gate: "I know nothing about that.",
};
const REASONS = new Map([
  ["content_match_fts", "shares words"], ["content_match_dual", "shares words, as asked"],
  ["content_substring", "holds the phrase"], ["entity_name_match", "names it"],
  ["meaning_match", "near in meaning"], ["time_match", "of that time"],
]);
const SIDES = { contradicts: ["contradicts", "is contradicted by"], supersedes: ["corrects", "is corrected by"] };

const seen = { input: {}, hits: [], evidence: {}, result: null, cursor: null, leftOut: 0 };
const host = { tools: false, locale: undefined, timeZone: undefined };
const at = (id) => document.getElementById(id);

// An element with text and elements in it. Nothing here reads markup.
function made(tag, about, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(about ?? {})) {
    if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...inside.filter((part) => part !== null && part !== undefined));
  return element;
}

const list = (value) => (Array.isArray(value) ? value : []);
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const chip = (text, kind) => made("span", { class: kind ? `chip ${kind}` : "chip", dir: "auto" }, String(text));

function button(text, act) {
  const element = made("button", { type: "button" }, text);
  element.addEventListener("click", act);
  return element;
}

// --- A memory ---------------------------------------------------------------------------

function card(hit, { place, best, miss = false }) {
  const parts = [head(hit, place, best), words(hit.text), facts(hit)];
  parts.push(...list(hit.relations).map(relation));
  if (miss) parts.push(whyNot(hit.id));
  else parts.push(arithmetic(hit));
  return made("article", { "aria-label": `Memory ${place || "not returned"}` }, ...parts);
}

function head(hit, place, best) {
  const share = best > 0 ? Math.max(0, Math.min(1, number(hit.score) / best)) : 0;
  const score = number(hit.score).toFixed(3);
  const meter = made("div", {
    class: "meter", role: "meter", "aria-label": "score", "aria-valuemin": 0,
    "aria-valuemax": Math.max(best, number(hit.score)), "aria-valuenow": score, "aria-valuetext": score,
  }, made("div", { class: "bar" }));
  meter.firstChild.style.width = `${(100 * share).toFixed(1)}%`;
  return made("div", { class: "head" }, made("span", { class: "place" }, place ? `${place}` : "–"), meter,
    made("span", { class: "score" }, score));
}

function words(told) {
  const text = String(told ?? "");
  const shown = made("p", { class: "text", dir: "auto" }, text.slice(0, SHOWN));
  if (text.length <= SHOWN) return shown;
  shown.append("… ");
  shown.append(button("all of it", () => shown.replaceChildren(text)));
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
    made("code", { class: "id" }, String(hit.id)),
  ];
  return made("p", { class: "chips" }, ...chips);
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
  return made("time", { class: "chip", datetime: moment.toISOString(), title: String(when) }, shown);
}

function relation(told) {
  const side = SIDES[told.type]?.[told.inbound ? 1 : 0] ?? String(told.type);
  return made("p", { class: "relation", dir: "auto" }, made("strong", null, side), " ",
    made("code", { class: "id" }, String(told.other)), ` ${told.text}`);
}

// --- Why ----------------------------------------------------------------------------------

function arithmetic(hit) {
  const details = made("details", null, made("summary", null, "Why this score"));
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
  if (!host.tools) return made("p", { class: "quiet" }, "This host passes no reasons on; ask explain.");
  return asked("explain", { ...asExplained(), id: hit.id }, (told) => {
    const evidence = told.details?.evidence;
    return Array.isArray(evidence) ? table(evidence) : made("pre", { dir: "auto" }, String(told.explanation));
  });
}

// The score as it grows, reason by reason: the same sums that ranked it.
function table(evidence) {
  let score = 0;
  const rows = evidence.map((one) => {
    const value = number(one.value);
    if (one.op === "add") score += value;
    else if (one.op === "times") score *= value;
    else if (one.op === "set") score = value;
    const why = [one.why, one.via, one.rank ? `rank ${one.rank}` : ""].filter(Boolean).join(" · ");
    return made("tr", { class: one.op === "seen" ? "quiet" : null },
      made("td", { class: "sum" }, one.op === "seen" ? "" : score.toFixed(4)),
      made("td", { class: "sum" }, `${SIGNS[one.op] ?? ""} ${value.toFixed(4)}`),
      made("td", null, String(one.by)), made("td", { dir: "auto" }, why));
  });
  const titles = ["score", "by", "what", "why"].map((title) => made("th", { scope: "col" }, title));
  return made("div", { class: "wide" },
    made("table", null, made("thead", null, made("tr", null, ...titles)), made("tbody", null, ...rows)));
}

function whyNot(id) {
  if (!host.tools) return null;
  const place = made("div", { role: "status" });
  const ask = button("Why not?", async () => {
    ask.disabled = true;
    place.replaceChildren(await missed(id));
    ask.disabled = false;
  });
  return made("div", null, ask, place);
}

function missed(id) {
  return asked("explain", { ...asExplained(), id }, (told) => made("div", null,
    made("pre", { dir: "auto" }, String(told.explanation)),
    told.remedy ? made("p", null, `To bring it in: ${told.remedy}`) : null));
}

function asExplained() {
  const { query = "", k, profile } = seen.input;
  return { query, ...(k ? { k } : {}), ...(profile ? { profile } : {}) };
}

// What a tool answers, drawn; or the sentence that says why it does not.
async function asked(tool, args, draw) {
  try {
    const reply = await line.call(tool, args);
    return draw(reply.structuredContent ?? {});
  } catch (error) {
    return made("p", { class: "warn" }, String(error.message));
  }
}

// --- The answer ---------------------------------------------------------------------------

function drawInput(input) {
  seen.input = input && typeof input === "object" ? input : {};
  at("question").textContent = String(seen.input.query || "") || "What is remembered";
  const filters = FILTERS.filter((name) => seen.input[name]);
  at("asked").replaceChildren(...filters.map((name) => chip(`${name.replace("_", " ")}: ${seen.input[name]}`)));
}

function drawResult(result) {
  const told = result.structuredContent;
  if (result.isError || !told || !Array.isArray(told.memories)) {
    // Another tool's result, or a host that passes texts alone.
    if (result.isError || !seen.result) plain(result);
    return;
  }
  seen.result = told;
  seen.hits = told.memories;
  seen.evidence = result._meta?.[EVIDENCE] ?? {};
  drawPage(told);
  at("hits").replaceChildren();
  drawHits(seen.hits, 0);
  drawNotes(told);
  at("missing").hidden = !(host.tools && seen.input.query);
}

function plain(result) {
  at("status").textContent = result.isError ? "It failed." : "";
  at("hits").replaceChildren(made("li", null, made("p", { class: "text", dir: "auto" }, textOf(result) || "No answer.")));
}

function drawPage(told) {
  seen.cursor = told.cursor ?? null;
  seen.leftOut = number(told.left_out);
  const count = seen.hits.length;
  const empty = EMPTY[told.status] ?? "I know nothing about that.";
  at("status").textContent = count ? `${count} of ${count + seen.leftOut} memories, best first` : empty;
  at("status").className = count ? "" : "empty";
  at("filter").hidden = count < 2;
  at("more").hidden = !(host.tools && seen.cursor && seen.leftOut);
  at("more").textContent = `${seen.leftOut} more`;
}

function drawHits(hits, before) {
  const best = Math.max(0, ...seen.hits.map((hit) => number(hit.score)));
  const cards = hits.map((hit, index) => made("li", null, card(hit, { place: before + index + 1, best })));
  at("hits").append(...cards);
  filter();
}

function drawNotes(told) {
  const notes = [];
  if (!seen.hits.length && told.reason) notes.push(made("p", { dir: "auto" }, String(told.reason)));
  notes.push(...list(told.warnings).map((text) => made("p", { class: "warn", dir: "auto" }, String(text))));
  notes.push(...list(told.degraded).map((part) =>
    made("p", { class: "warn", dir: "auto" }, `Answered without ${part.part}: ${part.reason}`)));
  const miss = told.nearest_miss;
  if (miss && !seen.hits.length) {
    notes.push(made("h2", null, "The nearest, but not relevant enough"));
    notes.push(card(miss, { best: Math.max(1, number(miss.score)), miss: true }));
  }
  at("notes").replaceChildren(...notes);
}

async function drawMore() {
  const { offset, ...input } = seen.input;
  at("more").disabled = true;
  try {
    const reply = await line.call("recall", { ...input, cursor: seen.cursor });
    const told = reply.structuredContent ?? {};
    const before = seen.hits.length;
    Object.assign(seen.evidence, reply._meta?.[EVIDENCE]);
    seen.hits = [...seen.hits, ...list(told.memories)];
    drawPage(told);
    drawHits(list(told.memories), before);
  } catch (error) {
    at("status").textContent = String(error.message);
  } finally {
    at("more").disabled = false;
  }
}

function filter() {
  const wanted = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  seen.hits.forEach((hit, index) => {
    const row = at("hits").children[index];
    if (!row) return;
    const about = [hit.id, hit.text, hit.kind, hit.topic, hit.source, hit.speaker].join(" ").toLowerCase();
    row.hidden = !wanted.every((word) => about.includes(word));
    shown += row.hidden ? 0 : 1;
  });
  if (wanted.length) at("status").textContent = `${shown} of ${seen.hits.length} shown`;
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
  let told = "";
  new ResizeObserver(() => {
    const box = document.documentElement.getBoundingClientRect();
    const size = { width: Math.ceil(box.width), height: Math.ceil(box.height) };
    if (told === `${size.width} ${size.height}`) return;
    told = `${size.width} ${size.height}`;
    line.tell("ui/notifications/size-changed", size);
  }).observe(document.documentElement);
}

const line = lineTo(window, {
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
  const told = await line.greet({ name: "bethink", version: "{version}" });
  host.tools = Boolean(told.hostCapabilities?.serverTools);
  dress(told.hostContext ?? {});
  watchSize();
}

begin().catch((error) => {
  at("question").textContent = "The host does not answer.";
  at("status").textContent = String(error.message);
});
