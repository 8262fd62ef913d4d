// Inbox: what waits for a review, outside of every recall, with the reasons; decided one by one or many at once.
import { useEffect, useState } from "preact/hooks";
import { call, type Answer, type Arguments } from "../lib/api";
import { loadWaiting } from "../lib/counts";
import { count, percent, plural } from "../lib/format";
import { savesOnEnter } from "../lib/keys";
import { useResource } from "../lib/resource";
import { may } from "../lib/session";
import { oneLine } from "../lib/text";
import { useAddress } from "../lib/url";
import { Badge, Card, Dialog, Empty, ErrorNote, Loading, MemoryText, Page, Tabs, tell, Time } from "../parts/basics";
import { Choose, useAttempt, type Chosen } from "./memory-actions";

type Row = Answer<"GET /v1/inbox">["waiting"][number];
type Review = Arguments<"POST /v1/inbox">;

const PAGE = 200;
const AT_ONCE = 500; // ids of one request
const DONE: Record<Review["decision"], string> = { accept: "accepted", refuse: "refused", merge: "merged", undo: "taken back" };

export function Inbox() {
  const address = useAddress();
  const refused = address.get("show") === "refused";
  const source = address.get("source");
  const [length, setLength] = useState(PAGE);
  const found = useResource(`inbox ${refused} ${source} ${length}`, (abort) => readUpTo(length, { refused, source }, abort));
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<{ merge: boolean; rows: Row[] } | null>(null);
  const { error, busy, attempt } = useAttempt();
  useEffect(() => setPicked(new Set()), [refused, source]);
  const rows = found.data?.rows ?? [];
  const total = found.data?.total ?? 0;
  const chosen = rows.filter((row) => picked.has(row.id));
  const review = (given: Review) =>
    attempt(async () => {
      await inParts(given);
      done(given);
    });
  const done = (given: Review) => {
    const touched = given.into ? [...given.ids, given.into] : given.ids;
    const undo = { label: "Undo", run: () => void review({ ids: touched, decision: "undo" }) };
    const what = `${plural(given.ids.length, "memory", "memories")} ${DONE[given.decision]}.`;
    tell(what, given.decision === "undo" ? undefined : undo);
    setPicked(new Set());
    setDialog(null);
    found.reload();
    void loadWaiting();
  };
  const pick = (id: string, on: boolean) => {
    const next = new Set(picked);
    if (on) next.add(id);
    else next.delete(id);
    setPicked(next);
  };
  const show = (what: string) => address.set({ show: what === "waiting" ? "" : what, source: "" });
  return (
    <Page title="Inbox" lead="What nobody vouches for waits here. It is in no recall until you accept it.">
      <Tabs label="Memories of the inbox" tabs={[["waiting", "Waiting"], ["refused", "Refused"]]} chosen={refused ? "refused" : "waiting"} onChoose={show} />
      <Loading on={found.loading} />
      <ErrorNote error={found.error ?? error} />
      {found.data && !rows.length && (
        <Card>
          <Nothing refused={refused} source={source} />
        </Card>
      )}
      {(rows.length > 0 || source) && (
        <>
          <Card class="bulk">
            <label class="check">
              <input
                type="checkbox"
                checked={chosen.length > 0 && chosen.length === rows.length}
                onChange={(event) => setPicked(new Set(event.currentTarget.checked ? rows.map((row) => row.id) : []))}
              />
              {chosen.length ? `${count(chosen.length)} of ${count(total)} selected` : `Select all ${count(rows.length)}`}
            </label>
            <Sources rows={rows} chosen={source} onChoose={(name) => address.set({ source: name })} />
            {may("review") && (
              <span class="row">
                <button type="button" class="button" disabled={busy || !chosen.length} onClick={() => void review({ ids: idsOf(chosen), decision: "accept" })}>
                  Accept
                </button>
                {!refused && (
                  <>
                    <button type="button" class="button" disabled={busy || !chosen.length} onClick={() => setDialog({ merge: true, rows: chosen })}>
                      Merge
                    </button>
                    <button type="button" class="button" disabled={busy || !chosen.length} onClick={() => void review({ ids: idsOf(chosen), decision: "refuse" })}>
                      Refuse
                    </button>
                  </>
                )}
              </span>
            )}
          </Card>
          {rows.length > 0 && (
            <Card>
              <ul>
                {rows.map((row) => (
                  <Entry
                    key={row.id}
                    row={row}
                    picked={picked.has(row.id)}
                    busy={busy}
                    onPick={(on) => pick(row.id, on)}
                    onReview={(decision) => void review({ ids: [row.id], decision })}
                    onEdit={() => setDialog({ merge: false, rows: [row] })}
                  />
                ))}
              </ul>
              {rows.length < total && (
                <p class="row after">
                  <span class="muted">
                    {count(rows.length)} of {count(total)} are shown.
                  </span>
                  <button type="button" class="button small" onClick={() => setLength(length + PAGE)}>
                    Show more
                  </button>
                </p>
              )}
            </Card>
          )}
        </>
      )}
      <Dialog open={dialog !== null} title={dialog?.merge ? "Make one memory of these" : "Edit and accept"} onClose={() => setDialog(null)}>
        {dialog && <WriteForm {...dialog} onDone={done} onClose={() => setDialog(null)} />}
      </Dialog>
    </Page>
  );
}

function idsOf(rows: readonly Row[]): string[] {
  return rows.map((row) => row.id);
}

/** Read the first rows: an answer has as many as fit into it. */
async function readUpTo(length: number, filter: { refused: boolean; source: string }, abort: AbortSignal): Promise<{ rows: Row[]; total: number }> {
  const rows: Row[] = [];
  for (;;) {
    const page = await call("GET /v1/inbox", { ...filter, limit: Math.min(length - rows.length, AT_ONCE), offset: rows.length }, abort);
    rows.push(...page.waiting);
    if (!page.waiting.length || rows.length >= Math.min(length, page.total)) return { rows, total: page.total };
  }
}

async function inParts(given: Review): Promise<void> {
  for (let first = 0; first < given.ids.length; first += AT_ONCE) {
    await call("POST /v1/inbox", { ...given, ids: given.ids.slice(first, first + AT_ONCE) });
  }
}

function Nothing(props: { refused: boolean; source: string }) {
  if (props.source) return <Empty>Nothing of this source.</Empty>;
  if (props.refused) return <Empty>Nothing was refused or left out.</Empty>;
  return (
    <Empty>
      <p>Nothing waits.</p>
      <p>
        Web pages and the output of tools wait here when an agent stores or an import brings them. <code>bethink config</code> shows the settings{" "}
        <code>review_web</code>, <code>review_tool</code>, <code>review_agent</code> and <code>review_import</code>.
      </p>
    </Empty>
  );
}

/** The classes of sources and the sources of what is shown, to choose one of them. */
function Sources(props: { rows: readonly Row[]; chosen: string; onChoose: (name: string) => void }) {
  const counts = new Map<string, number>(props.chosen ? [[props.chosen, 0]] : []);
  for (const row of props.rows) for (const name of new Set([row.source_class, row.source])) counts.set(name, (counts.get(name) ?? 0) + 1);
  return (
    <label class="check grow">
      Source
      <select class="input" value={props.chosen} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        <option value="">any</option>
        {[...counts].map(([name, times]) => (
          <option key={name} value={name}>
            {oneLine(name, 80)} ({count(times)})
          </option>
        ))}
      </select>
    </label>
  );
}

function Entry(props: {
  row: Row;
  picked: boolean;
  busy: boolean;
  onPick: (on: boolean) => void;
  onReview: (decision: Review["decision"]) => void;
  onEdit: () => void;
}) {
  const { row } = props;
  return (
    <li class="hit">
      <span class="hit-rank">
        <input
          type="checkbox"
          aria-label={`Select: ${oneLine(row.text, 60)}`}
          checked={props.picked}
          onChange={(event) => props.onPick(event.currentTarget.checked)}
        />
      </span>
      <div class="stack-s">
        <MemoryText text={row.text} clamp />
        <div class="hit-meta">
          <span dir="auto">{oneLine(row.reason, 200)}</span>
          {row.worth !== null && <span title="How much it seems worth keeping">worth {percent(row.worth)}</span>}
          {row.speaker && <strong dir="auto">{oneLine(row.speaker, 60)}</strong>}
          {row.kind && <span>{oneLine(row.kind, 80)}</span>}
          <span title="Where it comes from" dir="auto">
            {oneLine(row.source, 80)} ({oneLine(row.source_class, 40)})
          </span>
          <Time at={row.since} relative />
          {row.flags.map((flag) => (
            <Badge key={flag} tone="warn">
              {oneLine(flag, 60)}
            </Badge>
          ))}
          {may("review") && (
            <span class="hit-actions">
              <button type="button" class="button quiet small" disabled={props.busy} onClick={() => props.onReview("accept")}>
                Accept
              </button>
              <button type="button" class="button quiet small" disabled={props.busy} onClick={props.onEdit}>
                Edit
              </button>
              {row.state === "waiting" && (
                <button type="button" class="button quiet small" disabled={props.busy} onClick={() => props.onReview("refuse")}>
                  Refuse
                </button>
              )}
            </span>
          )}
        </div>
      </div>
    </li>
  );
}

/** The text with which one is accepted, or several become one. */
function WriteForm(props: { merge: boolean; rows: Row[]; onDone: (given: Review) => void; onClose: () => void }) {
  const [into, setInto] = useState<Chosen | null>(null);
  const proposed = [...(into ? [into.text] : []), ...props.rows.map((row) => row.text)].join("\n");
  const [own, setOwn] = useState<string | null>(null);
  const text = own ?? proposed;
  const { error, busy, attempt } = useAttempt();
  // The whole text: what a search finds may be a part of it.
  const choose = (one: Chosen | null) =>
    attempt(async () => setInto(one && (await call("GET /v1/memories/{id}", { id: one.id })).memory));
  const given: Review = { ids: idsOf(props.rows), decision: props.merge ? "merge" : "accept", text };
  if (into) given.into = into.id;
  const ready = text.trim() !== "" && (!props.merge || props.rows.length > 1 || into !== null);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (busy || !ready) return;
    void attempt(async () => {
      await call("POST /v1/inbox", given);
      props.onDone(given);
    });
  };
  return (
    <form class="stack" onSubmit={submit} onKeyDown={savesOnEnter}>
      <label class="field">
        Text
        <textarea class="input" dir="auto" maxLength={65_536} value={text} onInput={(event) => setOwn(event.currentTarget.value)} />
      </label>
      {props.merge && <Choose label="Add them to a stored memory: words of it" chosen={into} onChoose={(one) => void choose(one)} />}
      <ErrorNote error={error} />
      <div class="row">
        <button class="button primary" disabled={busy || !ready} title="Ctrl+Enter">
          {props.merge ? "Merge" : "Accept"}
        </button>
        <button type="button" class="button" onClick={props.onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}
