// The view of a recall in a host of MCP Apps: a memory looks as it does in the inspector.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Evidence } from "../lib/evidence";
import { partName } from "../lib/evidence";
import { setCustoms } from "../lib/format";
import { oneLine } from "../lib/text";
import { Badge, Hit, relationWords, usualOrigin, type Facts } from "../parts/memory";
import { EvidenceWaterfall } from "../parts/waterfall";
import { connectHost, textOf } from "./host";

const EVIDENCE = "bethink/evidence";
const VERSION = "{version}"; // of the package: put in when the page is served
const FILTERS = ["entity", "kind", "layer", "band", "topic", "tag", "since", "until", "as_of", "profile"];
const EMPTY: Record<string, string> = {
  nothing_stored: "Nothing is stored here yet.",
  nothing_matched: "No memory is returned.",
};
const REASONS = new Map([
  ["content_match_fts", "matches words"],
  ["content_match_dual", "matches words and word parts"],
  ["content_substring", "contains the phrase"],
  ["entity_name_match", "matches the entity"],
  ["meaning_match", "similar in meaning"],
  ["time_match", "matches the time"],
]);

// What comes from a host may be anything: it is read field by field.
type Anything = Record<string, any>;

interface Memory extends Facts {
  id: string;
  speaker: string;
  status: string;
  reasons: string[];
  relations: Anything[];
}

interface Answer {
  status: string;
  reason: string;
  memories: Memory[];
  warnings: string[];
  degraded: Anything[];
  miss: Memory | null;
  cursor: string | null;
  leftOut: number;
  evidence: Record<string, Evidence[]>;
}

const list = (value: unknown): any[] => (Array.isArray(value) ? value : []);
const number = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const text = (value: unknown): string => (value === null || value === undefined ? "" : String(value));
const object = (value: unknown): Anything => (value !== null && typeof value === "object" ? (value as Anything) : {});

function memoryOf(raw: unknown): Memory {
  const given = object(raw);
  return {
    id: text(given.id),
    text: text(given.text),
    relevance: typeof given.relevance === "number" ? given.relevance : null,
    score: typeof given.score === "number" ? given.score : null,
    kind: text(given.kind),
    topic: text(given.topic) || null,
    when: text(given.when),
    source: text(given.source) || null,
    trust: Math.trunc(number(given.trust)),
    pinned: given.pinned === true,
    flags: list(given.flags).map(text),
    speaker: text(given.speaker),
    status: text(given.status),
    reasons: list(given.reasons).map(text),
    relations: list(given.relations).map(object),
  };
}

function answerOf(result: Anything): Answer {
  const given = object(result.structuredContent);
  return {
    status: text(given.status),
    reason: text(given.reason),
    memories: list(given.memories).map(memoryOf),
    warnings: list(given.warnings).map(text),
    degraded: list(given.degraded).map(object),
    miss: given.nearest_miss ? memoryOf(given.nearest_miss) : null,
    cursor: text(given.cursor) || null,
    leftOut: number(given.left_out),
    evidence: object(object(result._meta)[EVIDENCE]),
  };
}

function dress(context: Anything): void {
  const root = document.documentElement;
  if (context.theme === "light" || context.theme === "dark") root.dataset.theme = context.theme;
  for (const [name, value] of Object.entries(object(object(context.styles).variables))) {
    if (name.startsWith("--") && typeof value === "string") root.style.setProperty(name, value);
  }
  if (context.locale || context.timeZone) setCustoms(text(context.locale) || undefined, text(context.timeZone) || undefined);
}

function watchSize(notify: (method: string, params: Anything) => void): void {
  let before = "";
  new ResizeObserver(() => {
    const box = document.documentElement.getBoundingClientRect();
    const size = { width: Math.ceil(box.width), height: Math.ceil(box.height) };
    if (before === `${size.width} ${size.height}`) return;
    before = `${size.width} ${size.height}`;
    notify("ui/notifications/size-changed", size);
  }).observe(document.documentElement);
}

interface Host {
  /** Whether the host passes calls of tools on. */
  tools: boolean;
  /** Call a tool and return its structured answer and what lies beside it. */
  call: (name: string, args: Anything) => Promise<Anything>;
}

export function RecallView() {
  const [input, setInput] = useState<Anything>({});
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [plain, setPlain] = useState<{ text: string; failed: boolean } | null>(null);
  const [told, setTold] = useState("");
  const [tools, setTools] = useState(false);
  const [, setDressed] = useState(0);
  const known = useRef(false);
  const line = useMemo(() => {
    const onResult = (result: Anything) => {
      if (!result.isError && Array.isArray(object(result.structuredContent).memories)) {
        known.current = true;
        setPlain(null);
        setTold("");
        setAnswer(answerOf(result));
      } else if (result.isError || !known.current) {
        // Another tool's result, or a host that passes only text.
        setPlain({ text: textOf(result) || "No answer.", failed: Boolean(result.isError) });
      }
    };
    return connectHost(window, {
      "ui/notifications/tool-input": (params: Anything) => setInput(object(params.arguments)),
      "ui/notifications/tool-input-partial": (params: Anything) => setInput(object(params.arguments)),
      "ui/notifications/tool-result": onResult,
      "ui/notifications/tool-cancelled": (params: Anything) => setTold(`Cancelled${params.reason ? `: ${params.reason}` : ""}.`),
      "ui/notifications/host-context-changed": (params: Anything) => {
        dress(params);
        setDressed((times) => times + 1);
      },
    });
  }, []);
  const [silent, setSilent] = useState(false);
  useLayoutEffect(() => {
    line.initialize({ name: "bethink", version: VERSION }).then(
      (reply: Anything) => {
        dress(object(reply.hostContext));
        setTools(Boolean(object(reply.hostCapabilities).serverTools));
        watchSize(line.notify);
      },
      (error: Error) => {
        setSilent(true);
        setTold(error.message);
      },
    );
  }, []);
  const host: Host = { tools, call: line.call };
  const filters = FILTERS.filter((name) => input[name]);
  return (
    <div class="stack">
      <header class="stack-s">
        <h1 id="question" dir="auto">
          {silent ? "The host does not answer." : text(input.query) || (answer || plain ? "Memories" : "Recalling …")}
        </h1>
        {filters.length > 0 && (
          <p id="filters" class="row">
            {filters.map((name) => (
              <Badge key={name}>{`${name.replace("_", " ")}: ${oneLine(text(input[name]), 120)}`}</Badge>
            ))}
          </p>
        )}
      </header>
      {plain ? (
        <main id="hits" class="stack-s">
          <p id="status" role="status">
            {plain.failed ? "The call failed." : "An answer as text:"}
          </p>
          <p class="text" dir="auto">
            {plain.text}
          </p>
        </main>
      ) : answer ? (
        <Found answer={answer} input={input} host={host} told={told} onMore={setAnswer} />
      ) : (
        <p id="status" role="status">
          {told}
        </p>
      )}
    </div>
  );
}

function Found(props: { answer: Answer; input: Anything; host: Host; told: string; onMore: (answer: Answer) => void }) {
  const { answer, input, host } = props;
  const [words, setWords] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState("");
  const { memories } = answer;
  const terms = words.toLowerCase().split(/\s+/).filter(Boolean);
  const isShown = (one: Memory) => {
    const about = [one.id, one.text, one.kind, one.topic, one.source, one.speaker].join(" ").toLowerCase();
    return terms.every((word) => about.includes(word));
  };
  const shown = memories.map((hit, place) => ({ hit, rank: place + 1 })).filter(({ hit }) => isShown(hit));
  const more = async () => {
    const { offset: _, ...given } = input;
    setBusy(true);
    setFailed("");
    try {
      const next = answerOf(await host.call("recall", { ...given, cursor: answer.cursor }));
      const evidence = { ...answer.evidence, ...next.evidence };
      props.onMore({ ...answer, memories: [...memories, ...next.memories], cursor: next.cursor, leftOut: next.leftOut, evidence });
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  const usual = usualOrigin(memories);
  return (
    <>
      <p id="status" role="status" class={memories.length ? "muted" : "empty"}>
        {failed || props.told || (terms.length ? `${shown.length} of ${memories.length} shown` : statusOf(answer))}
      </p>
      {memories.length > 1 && (
        <input
          id="filter"
          class="input"
          type="search"
          autocomplete="off"
          placeholder="Filter"
          aria-label="Filter these memories"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      )}
      <main class="stack-s">
        <Notes answer={answer} input={input} host={host} />
        {usual && (
          <p class="muted small" dir="auto">
            {usual.count === memories.length ? "All" : "Most"} from {usual.words}
          </p>
        )}
        <ol id="hits">
          {shown.map(({ hit, rank }) => (
            <FoundHit key={hit.id} hit={hit} rank={rank} usual={usual?.words} evidence={answer.evidence[hit.id]} input={input} host={host} />
          ))}
        </ol>
        {host.tools && answer.cursor && answer.leftOut > 0 && (
          <button id="more" type="button" class="button" disabled={busy} onClick={() => void more()}>
            {answer.leftOut} more
          </button>
        )}
      </main>
      {host.tools && input.query && <Missing input={input} host={host} />}
    </>
  );
}

function statusOf(answer: Answer): string {
  const [here, all] = [answer.memories.length, answer.memories.length + answer.leftOut];
  if (!here) return EMPTY[answer.status] ?? "No memory is returned.";
  const unsure = answer.status === "unsure" ? "May be related: " : "";
  return `${unsure}${here} of ${all} ${all === 1 ? "memory" : "memories"}, best match first`;
}

function Notes(props: { answer: Answer; input: Anything; host: Host }) {
  const { answer } = props;
  const miss = answer.memories.length ? null : answer.miss;
  return (
    <div id="notes" class="stack-s">
      {!answer.memories.length && answer.reason && <p dir="auto">{answer.reason}</p>}
      {answer.warnings.map((warning) => (
        <p key={warning} class="notice warn" dir="auto">
          {warning}
        </p>
      ))}
      {answer.degraded.map((part) => (
        <p key={text(part.part)} class="notice warn" dir="auto">
          Answered without {partName(text(part.part))}: {text(part.reason)}
        </p>
      ))}
      {miss && (
        <>
          <h2>Nearest, but left out</h2>
          <ul>
            <FoundHit hit={miss} rank={null} input={props.input} host={props.host} />
          </ul>
        </>
      )}
    </div>
  );
}

/** What `explain` needs to answer the same question. */
function asExplained({ query = "", k, profile }: Anything): Anything {
  return { query, ...(k ? { k } : {}), ...(profile ? { profile } : {}) };
}

function FoundHit(props: { hit: Memory; rank: number | null; usual?: string; evidence?: Evidence[]; input: Anything; host: Host }) {
  const { hit, rank, host } = props;
  const [isOpen, setOpen] = useState(false);
  const actions = (rank !== null || host.tools) && (
    <button type="button" class="button small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
      {isOpen ? "Hide" : rank === null ? "Why not?" : "Evidence"}
      {rank !== null && <span class="sr"> of rank {rank}</span>}
    </button>
  );
  const facts = (
    <>
      {hit.status && hit.status !== "active" && <Badge tone="warn">{hit.status}</Badge>}
      {hit.reasons.map((reason) => (
        <Badge key={reason}>{REASONS.get(reason) ?? oneLine(reason.replaceAll("_", " "), 80)}</Badge>
      ))}
      <code class="id">{hit.id}</code>
    </>
  );
  return (
    <Hit hit={hit} rank={rank} usual={props.usual} actions={actions} facts={facts}>
      {hit.relations.map((relation) => (
        <p key={text(relation.type) + text(relation.other)} class="small" dir="auto">
          <strong>{relationWords(text(relation.type), relation.inbound === true)}</strong>: {text(relation.text)}{" "}
          <code class="id">{text(relation.other)}</code>
        </p>
      ))}
      {isOpen && (rank === null ? <Explained id={hit.id} input={props.input} host={host} /> : <Why {...props} rank={rank} />)}
    </Hit>
  );
}

function Why(props: { hit: Memory; rank: number; evidence?: Evidence[]; input: Anything; host: Host }) {
  const { hit, rank, evidence, host } = props;
  if (Array.isArray(evidence)) return <Waterfall hit={hit} rank={rank} evidence={evidence} />;
  if (!host.tools) return <p class="muted">This host does not pass on the evidence; use the tool explain.</p>;
  return <Explained id={hit.id} input={props.input} host={host} draw={(found) => <Waterfall hit={hit} rank={rank} evidence={found} />} />;
}

function Waterfall(props: { hit: Memory; rank: number; evidence: Evidence[] }) {
  return <EvidenceWaterfall evidence={props.evidence} score={props.hit.score} caption={`Evidence of rank ${props.rank}`} />;
}

/** What `explain` says about a memory; its evidence, where it has some, is drawn. */
function Explained(props: { id: string; input: Anything; host: Host; draw?: (evidence: Evidence[]) => ComponentChildren }) {
  const [said, setSaid] = useState<Anything | null>(null);
  const [failed, setFailed] = useState("");
  useLayoutEffect(() => {
    let gone = false;
    setSaid(null);
    setFailed("");
    props.host.call("explain", { ...asExplained(props.input), id: props.id }).then(
      (reply) => !gone && setSaid(object(reply.structuredContent)),
      (error: Error) => !gone && setFailed(error.message),
    );
    return () => {
      gone = true;
    };
  }, [props.id]);
  if (failed) return <p class="notice warn">{failed}</p>;
  if (!said) return <p class="muted">Asking …</p>;
  const evidence = object(said.details).evidence;
  if (props.draw && Array.isArray(evidence)) return <>{props.draw(evidence)}</>;
  return (
    <div class="stack-s">
      <pre class="pre" dir="auto">
        {text(said.explanation)}
      </pre>
      {said.remedy && (
        <p>
          To include it: <strong>{text(said.remedy)}</strong>
        </p>
      )}
    </div>
  );
}

/** Why a memory that one expected is not in the answer. */
function Missing(props: { input: Anything; host: Host }) {
  const [words, setWords] = useState("");
  const [asked, setAsked] = useState("");
  const ask = () => setAsked(words.trim());
  // Not a form: a sandboxed frame sends none.
  return (
    <footer class="stack-s">
      <div class="missing">
        <label class="field grow">
          Did you expect another memory? Its id:
          <input
            id="missed"
            class="input"
            autocomplete="off"
            maxLength={200}
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && ask()}
          />
        </label>
        <button id="why-not" type="button" class="button" onClick={ask}>
          Why not?
        </button>
      </div>
      <div id="answer" role="status">
        {asked && <Explained id={asked} input={props.input} host={props.host} />}
      </div>
    </footer>
  );
}
