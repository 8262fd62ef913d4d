// New memories: one that is written here, or those of a file, which is read in the browser first.
import { useState } from "preact/hooks";
import { call, importExport, type Answer, type Arguments } from "../lib/api";
import { count, plural } from "../lib/format";
import { savesOnEnter } from "../lib/keys";
import { may } from "../lib/session";
import { oneLine } from "../lib/text";
import { memoryLink } from "../lib/url";
import { Dialog, ErrorNote } from "../parts/basics";
import { Audience, listed, useAttempt } from "./memory-actions";

interface Common {
  open: boolean;
  onClose: () => void;
  onDone: () => void;
}

export function AddDialog(props: Common) {
  return (
    <Dialog open={props.open} title="Add a memory" onClose={props.onClose}>
      <AddForm {...props} />
    </Dialog>
  );
}

const KINDS = ["fact", "decision", "preference", "event", "goal", "learning", "caveat", "context"];
type Stored = Answer<"POST /v1/memories">;

function AddForm(props: Common) {
  const [text, setText] = useState("");
  const [fields, setFields] = useState<Record<string, string>>({});
  const [stored, setStored] = useState<Stored | null>(null);
  const { error, busy, attempt } = useAttempt();
  const set = (name: string) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget;
    setFields((before) => ({ ...before, [name]: value }));
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (busy || !text.trim()) return;
    const { tags = "", ...rest } = fields;
    const given: Arguments<"POST /v1/memories"> = { text, ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value.trim())) };
    if (listed(tags).length) given.tags = listed(tags);
    void attempt(async () => {
      setStored(null);
      setStored(await call("POST /v1/memories", given));
      setText("");
      props.onDone();
    });
  };
  return (
    <form class="stack" onSubmit={submit} onKeyDown={savesOnEnter}>
      <label class="field">
        One fact, decision or event, in plain words
        <textarea class="input" dir="auto" autofocus maxLength={65_536} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="fields">
        <label class="field">
          Kind
          <input class="input" list="kinds" placeholder="fact" value={fields.kind ?? ""} onInput={set("kind")} />
          <datalist id="kinds">
            {KINDS.map((kind) => (
              <option key={kind} value={kind} />
            ))}
          </datalist>
        </label>
        <label class="field">
          Topic
          <input class="input" value={fields.topic ?? ""} onInput={set("topic")} />
        </label>
        <label class="field">
          Tags
          <input class="input" placeholder="with commas" value={fields.tags ?? ""} onInput={set("tags")} />
        </label>
        <label class="field">
          Happened
          <input class="input" placeholder="yesterday" value={fields.occurred_at ?? ""} onInput={set("occurred_at")} />
        </label>
        <Audience value={fields.audience ?? ""} onInput={set("audience")} />
      </div>
      <ErrorNote error={error} />
      {stored && <Told stored={stored} />}
      <div class="row">
        <button class="button primary" disabled={busy || !text.trim()} title="Ctrl+Enter">
          Save
        </button>
        <button type="button" class="button" onClick={props.onClose}>
          {stored ? "Close" : "Cancel"}
        </button>
      </div>
    </form>
  );
}

const STATUS: Record<string, string> = { stored: "Stored.", duplicate: "It was there already.", repeated: "It was stored before." };

function Told(props: { stored: Stored }) {
  const { id, status, redacted, collisions } = props.stored;
  return (
    <div class="notice good stack-s" role="status">
      <p>
        {STATUS[status] ?? status} <a href={memoryLink(id)}>Open it</a>
      </p>
      {redacted.length > 0 && <p class="muted">Secrets were taken out: {redacted.join(", ")}.</p>}
      {collisions.slice(0, 3).map((one) => (
        <p key={one.id} class="muted line" dir="auto">
          Near to: <a href={memoryLink(one.id)}>{oneLine(one.text, 100)}</a>
        </p>
      ))}
    </div>
  );
}

export type Draft = Record<string, unknown> & { text: string };
/** What a file holds: an export, which is taken whole, or memories to store. */
export type Content = { kind: "export"; lines: string; count: number } | { kind: "memories"; memories: Draft[] };

const BULLET = /^\s*(?:[-*+]|\d+[.)])\s+/;

/** Read a file: an export of Bethink, JSON with texts, or plain text with a memory per paragraph or list item. */
export function contentOf(text: string): Content {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  const parsed = lines.length && /^[[{]/.test(text.trim()) ? parse(text, lines) : null;
  if (parsed) {
    if (parsed.some((one) => typeof one === "object" && one !== null && (one as { type?: string }).type === "bethink")) {
      return { kind: "export", lines: text, count: parsed.filter((one) => (one as { type?: string }).type === "item").length };
    }
    const memories = parsed.map((one) => (typeof one === "string" ? { text: one } : one)).filter(isDraft);
    if (memories.length) return { kind: "memories", memories };
  }
  const paragraphs = text
    .split(/\r?\n\s*\r?\n|\r?\n(?=\s*(?:[-*+]|\d+[.)])\s)/)
    .map((part) => part.replace(BULLET, "").replace(/\s*\r?\n\s*/g, " ").trim())
    .filter((part) => part && !/^(#+\s|-{3,}$)/.test(part));
  return { kind: "memories", memories: paragraphs.map((part) => ({ text: part })) };
}

function isDraft(value: unknown): value is Draft {
  return typeof value === "object" && value !== null && typeof (value as Draft).text === "string";
}

function parse(text: string, lines: string[]): unknown[] | null {
  for (const read of [() => JSON.parse(text) as unknown, () => lines.map((line) => JSON.parse(line) as unknown)]) {
    try {
      const value = read();
      return Array.isArray(value) ? value : [value];
    } catch {
      // Another shape, or no JSON at all.
    }
  }
  return null;
}

export function ImportDialog(props: Common) {
  return (
    <Dialog open={props.open} title="Import a file" onClose={props.onClose}>
      <ImportForm {...props} />
    </Dialog>
  );
}

const BATCH = 200;
const SHOWN = 4;

function ImportForm(props: Common) {
  const [content, setContent] = useState<Content | null>(null);
  const [done, setDone] = useState(0);
  const [result, setResult] = useState<{ stored: number; refused: string[] } | null>(null);
  const { error, busy, attempt } = useAttempt();
  const read = async (file: File | undefined) => {
    setResult(null);
    setContent(file ? contentOf(await file.text()) : null);
  };
  const run = () =>
    attempt(async () => {
      if (content!.kind === "export") {
        const { stored } = await importExport(content!.lines);
        setResult({ stored, refused: [] });
      } else {
        setResult(await storeAll(content!.memories, setDone));
      }
      setContent(null);
      props.onDone();
    });
  const isMissing = content?.kind === "export" && !may("import");
  const size = content ? (content.kind === "export" ? content.count : content.memories.length) : 0;
  return (
    <div class="stack">
      <label class="field">
        <span>
          Text or Markdown (a memory per paragraph or list item), JSON lines with <code>text</code>, or an export of Bethink
        </span>
        <input class="input" type="file" accept=".txt,.md,.json,.jsonl,.ndjson" onChange={(event) => void read(event.currentTarget.files?.[0])} />
      </label>
      {content && (
        <div class="notice stack-s">
          <p>
            {content.kind === "export" ? `An export with ${plural(size, "memory", "memories")}, taken whole or not at all.` : `${plural(size, "memory", "memories")}, each stored or refused on its own:`}
          </p>
          {content.kind === "memories" && (
            <ul class="small muted">
              {content.memories.slice(0, SHOWN).map((memory, place) => (
                <li key={place} class="line" dir="auto">
                  {oneLine(memory.text, 120)}
                </li>
              ))}
              {size > SHOWN && <li>and {count(size - SHOWN)} more</li>}
            </ul>
          )}
          {isMissing && <p>An export is imported with a token of the scope admin.</p>}
        </div>
      )}
      {busy && content?.kind === "memories" && <progress value={done} max={Math.max(1, size)} aria-label="Stored so far" />}
      {result && (
        <div class="notice good stack-s" role="status">
          <p>{plural(result.stored, "memory", "memories")} stored.</p>
          {result.refused.slice(0, 5).map((why, place) => (
            <p key={place} class="small muted" dir="auto">
              {why}
            </p>
          ))}
          {result.refused.length > 5 && <p class="small muted">and {count(result.refused.length - 5)} more that were not stored</p>}
        </div>
      )}
      <ErrorNote error={error} />
      <p class="small muted">
        Chats, vaults and other programs: <code>bethink import FILE</code> knows their formats.
      </p>
      <div class="row">
        <button type="button" class="button primary" disabled={busy || !size || isMissing} onClick={() => void run()}>
          {size ? `Import ${count(size)}` : "Import"}
        </button>
        <button type="button" class="button" onClick={props.onClose}>
          {result ? "Close" : "Cancel"}
        </button>
      </div>
    </div>
  );
}

async function storeAll(memories: Draft[], report: (done: number) => void): Promise<{ stored: number; refused: string[] }> {
  let stored = 0;
  const refused: string[] = [];
  for (let place = 0; place < memories.length; place += BATCH) {
    const batch = memories.slice(place, place + BATCH);
    const answer = await call("POST /v1/memories/batch", { memories: batch });
    stored += answer.stored;
    answer.results.forEach((one, number) => {
      if (one.status === "stored") return;
      refused.push(`${oneLine(batch[number]!.text, 60)}: ${one.error?.message ?? (one.status === "duplicate" ? "is there already" : one.status)}`);
    });
    report(place + batch.length);
  }
  return { stored, refused };
}
