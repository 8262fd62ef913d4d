// Memories: all of them, newest first, with filters and a search that answers while one types.
import { useEffect, useRef, useState } from "preact/hooks";
import { call, type Answer } from "../lib/api";
import { count, day, plural, trustWords } from "../lib/format";
import { useResource } from "../lib/resource";
import { oneLine } from "../lib/text";
import { memoryLink, useAddress } from "../lib/url";
import { may } from "../lib/session";
import { Badge, Card, Empty, ErrorNote, Loading, Page } from "../parts/basics";
import { useRows, VirtualTable } from "../parts/vtable";
import { AddDialog, ImportDialog } from "./memory-new";

type Row = Answer<"GET /v1/memories">["memories"][number];

const FILTERS = ["kind", "topic", "tag", "entity", "source", "session", "since", "until", "stored_by"] as const;
const HINTS: Record<string, string> = { since: "last week", until: "2026-05-07", entity: "person, project …" };
const LABELS: Record<string, string> = { since: "Happened since", until: "Happened until", stored_by: "Stored by" };

const PAUSE_MS = 150;
const LONGEST_MS = 400;

export function Memories() {
  const address = useAddress();
  const [words, setWords] = useState(address.get("q"));
  const searched = useRef(0); // when the last search began
  useEffect(() => {
    // After a pause, but no later than while one goes on typing.
    const wait = Math.max(0, Math.min(PAUSE_MS, searched.current + LONGEST_MS - performance.now()));
    const timer = setTimeout(() => {
      searched.current = performance.now();
      address.set({ q: words.trim() }, { replace: true });
    }, wait);
    return () => clearTimeout(timer);
  }, [words]);
  const filters = Object.fromEntries(FILTERS.filter((name) => address.get(name)).map((name) => [name, address.get(name)]));
  const filtered = Object.keys(filters).length > 0;
  const [turn, setTurn] = useState(0);
  const renew = () => setTurn((before) => before + 1);
  const open = (what: string) => address.set({ do: what }, { replace: true });
  const [isOpen, setOpen] = useState(filtered);
  return (
    <Page
      title="Memories"
      lead="Everything, what was stored last first."
      actions={
        may("remember") && (
          <>
            <button type="button" class="button primary" onClick={() => open("add")}>
              Add
            </button>
            <button type="button" class="button" onClick={() => open("import")}>
              Import
            </button>
          </>
        )
      }
    >
      {may("remember") && (
        <>
          <AddDialog open={address.get("do") === "add"} onClose={() => open("")} onDone={renew} />
          <ImportDialog open={address.get("do") === "import"} onClose={() => open("")} onDone={renew} />
        </>
      )}
      <div class="search-row" role="search">
        <input
          class="input grow"
          type="search"
          data-search
          aria-label="Search the memories"
          placeholder="Search while you type"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </div>
      <details open={filtered} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary class="muted small">Filters{filtered ? ` (${Object.keys(filters).length} set)` : ""}</summary>
        {isOpen && <FilterFields />}
      </details>
      {address.get("q") ? <Found query={address.get("q")} filters={filters} /> : <All filters={filters} turn={turn} />}
    </Page>
  );
}

function FilterFields() {
  const address = useAddress();
  const stats = useResource("stats", (abort) => call("GET /v1/stats", {}, abort)).data;
  // The chosen one is there before the others are known.
  const chosen = address.get("kind");
  const kinds = [...new Set([...Object.keys(stats?.by_kind ?? {}), ...(chosen ? [chosen] : [])])];
  return (
    <div class="card fields">
      {FILTERS.map((name) => (
        <label class="field" key={name}>
          {LABELS[name] ?? name.charAt(0).toUpperCase() + name.slice(1)}
          {name === "kind" ? (
            <select class="input" value={address.get(name)} onChange={(event) => address.set({ kind: event.currentTarget.value })}>
              <option value="">any</option>
              {kinds.map((kind) => (
                <option key={kind} value={kind}>
                  {kind}
                </option>
              ))}
            </select>
          ) : (
            <input
              class="input"
              type={name === "stored_by" ? "date" : "text"}
              placeholder={HINTS[name] ?? ""}
              value={address.get(name)}
              onChange={(event) => address.set({ [name]: event.currentTarget.value.trim() })}
            />
          )}
        </label>
      ))}
    </div>
  );
}

const HEAD = ["Memory", "Kind", "From", "Happened"];
const DOUBTFUL = 1; // trust up to which it is said of each

function cells(row: Row) {
  return [
    <>
      {row.pinned && <Badge tone="accent">pinned</Badge>} {row.audience && <Badge tone="accent">{oneLine(row.audience, 40)}</Badge>}{" "}
      {oneLine(row.text, 220)}
    </>,
    row.kind,
    <span title={`${row.source}, ${trustWords(row.trust)}`}>
      {row.trust <= DOUBTFUL && <Badge tone="warn">{trustWords(row.trust)}</Badge>} {oneLine(row.speaker || row.source, 60)}
    </span>,
    day(row.when),
  ];
}

function All(props: { filters: Record<string, string>; turn: number }) {
  const key = JSON.stringify([props.filters, props.turn]);
  const rows = useRows<Row>(key, async (offset, limit, abort) => {
    // Counted once: the other pages are parts of the same list.
    const place = offset ? { offset } : { with_total: true };
    const page = await call("GET /v1/memories", { ...props.filters, limit, preview: 300, ...place }, abort);
    return { rows: page.memories, total: page.total };
  });
  if (rows.error && rows.total === null) return <ErrorNote error={rows.error} />;
  if (rows.total === 0) {
    return (
      <Card>
        <Empty>
          {Object.keys(props.filters).length ? "No memory matches these filters." : "Nothing is stored yet. Add a memory, import a file, or connect an agent: bethink install HOST."}
        </Empty>
      </Card>
    );
  }
  return (
    <div class="stack-s">
      <Loading on={rows.loading} />
      <p class="muted small" role="status">
        {rows.total === null ? "" : plural(rows.total, "memory", "memories")}
      </p>
      <VirtualTable
        label="Memories"
        head={HEAD}
        length={rows.total ?? 0}
        at={rows.at}
        want={rows.want}
        resetKey={key}
        row={(row) => ({ href: memoryLink(row.id), cells: cells(row) })}
      />
      <ErrorNote error={rows.error} />
    </div>
  );
}

/** The best for what is typed. A word without an end is not known yet: its letters are looked for. */
async function searchFor<T extends { query: string }>(asked: T, abort: AbortSignal) {
  const found = await call("POST /v1/recall", asked, abort);
  if (found.status === "found" || /\s/.test(asked.query.trim())) return found;
  const letters = await call("POST /v1/recall", { ...asked, profile: "linksee" }, abort);
  return letters.status === "found" ? letters : found;
}

function Found(props: { query: string; filters: Record<string, string> }) {
  // A search has no filters for these.
  const { source, session, stored_by: storedBy, ...filters } = props.filters;
  const asked = { query: props.query, ...filters, k: 50, max_tokens: 20_000, min_confidence: 0, min_relevance: 0, mark_accessed: false };
  const found = useResource(JSON.stringify(asked), (abort) => searchFor(asked, abort));
  const rows = found.data?.memories ?? [];
  return (
    <div class="stack-s">
      <Loading on={found.loading} />
      <ErrorNote error={found.error} />
      {(source || session || storedBy) && (
        <p class="notice warn">A search looks at all sources, sessions and times of storing; without words these filters apply.</p>
      )}
      {found.data && (
        <>
          <p class="muted small" role="status">
            {!rows.length && "Nothing found"}
            {rows.length > 0 && (found.data.status === "found" ? `The best ${count(rows.length)}, most relevant first` : `Perhaps none of these: the nearest ${count(rows.length)}`)}
          </p>
          {rows.length > 0 && (
            <VirtualTable
              label="Memories found"
              head={HEAD}
              length={rows.length}
              at={(place) => rows[place]}
              want={() => {}}
              resetKey={props.query}
              row={(row) => ({ href: memoryLink(row.id), cells: cells(row) })}
            />
          )}
        </>
      )}
    </div>
  );
}
