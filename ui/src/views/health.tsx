// Health: checks of the store, what it holds, its journal, and maintenance with preview and undo.
import { useState } from "preact/hooks";
import { ApiError, call, download, forPeople, type Answer } from "../lib/api";
import { actorName } from "../lib/counts";
import { bytes, count, moment, plural } from "../lib/format";
import { useResource } from "../lib/resource";
import { may } from "../lib/session";
import { oneLine } from "../lib/text";
import { memoryLink, useAddress } from "../lib/url";
import { Badge, Card, Empty, ErrorNote, Loading, Page, tell } from "../parts/basics";
import { Evaluation } from "./evaluation";

export function Health() {
  const [turn, setTurn] = useState(0);
  const stats = useResource(`stats ${turn}`, (abort) => call("GET /v1/stats", {}, abort));
  const known = stats.data as Record<string, unknown> | null;
  return (
    <Page title="Health" lead="What the store holds, and whether it is in order.">
      <div class="columns">
        <div class="stack">
          {may("checks") && known && <Checks memories={Number(known.memories ?? 0)} />}
          <Maintenance turn={turn} onDone={() => setTurn(turn + 1)} />
          {known && <Journal turn={turn} total={Number(known.events ?? 0)} />}
          <Evaluation />
        </div>
        {known ? <Stats stats={known} /> : <ErrorNote error={stats.error} />}
      </div>
    </Page>
  );
}

const AT_ONCE = 20_000; // memories that are checked without being asked

function Checks(props: { memories: number }) {
  const [asked, setAsked] = useState(props.memories <= AT_ONCE);
  const found = useResource(asked ? "checks" : null, (abort) => call("GET /v1/checks", {}, abort));
  const bad = found.data?.checks.filter((check) => !check.ok) ?? [];
  return (
    <Card title="Checks">
      <Loading on={found.loading} />
      <ErrorNote error={found.error} />
      {!found.data && !found.error && props.memories > AT_ONCE && (
        <div class="row">
          <button type="button" class="button" disabled={asked} onClick={() => setAsked(true)}>
            {asked ? "Checking …" : "Check"}
          </button>
          <span class="muted small">Everything is read, which takes a while for {plural(props.memories, "memory", "memories")}.</span>
        </div>
      )}
      {found.data && (
        <div class="stack-s">
          <p>
            {bad.length === 0 ? (
              <Badge tone="good">everything is in order</Badge>
            ) : (
              <Badge tone={found.data.ok ? "warn" : "bad"}>{plural(bad.length, "finding")}</Badge>
            )}{" "}
            <button type="button" class="button small quiet" onClick={found.reload}>
              Check again
            </button>
          </p>
          <table class="waterfall">
            <caption class="sr">Checks of the store</caption>
            <tbody>
              {found.data.checks.map((check) => (
                <tr key={check.name}>
                  <th scope="row">{check.name}</th>
                  <td>
                    <Badge tone={check.ok ? "good" : check.warning ? "warn" : "bad"}>{check.ok ? "ok" : check.warning ? "warning" : "broken"}</Badge>
                  </td>
                  <td class="muted">{oneLine(check.detail, 300)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {!found.data.ok && (
            <p class="notice warn">
              <code>bethink doctor --repair</code> on the server mends what can be derived again.
            </p>
          )}
        </div>
      )}
    </Card>
  );
}

type Plan = Answer<"POST /v1/consolidate">;

/** Count the steps of a run in the journal while it works; call what is returned to stop. */
function watchSteps(report: (steps: number) => void): () => void {
  let after: number | null = null;
  let steps = 0;
  let over = false;
  const look = async () => {
    if (over) return;
    try {
      if (after === null) after = Number((await call("GET /v1/stats", {}) as { events?: number }).events ?? 0);
      const { events } = await call("GET /v1/events", { after, limit: 1000 });
      for (const event of events) {
        after = Math.max(after, event.seq);
        if (event.kind === "maintained") steps += 1;
      }
      if (!over) report(steps);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error; // the run itself reports what is wrong
    }
    if (!over) setTimeout(look, 600);
  };
  report(0);
  void look();
  return () => {
    over = true;
  };
}

function Maintenance(props: { turn: number; onDone: () => void }) {
  const runs = useResource(`runs ${props.turn}`, (abort) => call("GET /v1/maintenance", {}, abort));
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState("");
  const [steps, setSteps] = useState(0);
  const attempt = async (name: string, work: () => Promise<void>) => {
    setBusy(name);
    setError(null);
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem;
      setError(problem);
    } finally {
      setBusy("");
    }
  };
  const preview = () => attempt("preview", async () => setPlan(await call("POST /v1/consolidate", {})));
  const run = () =>
    attempt("run", async () => {
      const stop = watchSteps(setSteps);
      const done = await call("POST /v1/consolidate", { token: plan!.token }).finally(stop);
      setPlan(null);
      tell(done.run ? `Done: ${plural(done.proposals.length, "change")}.` : "Nothing was done.");
      props.onDone();
    });
  const undo = (id: string) =>
    attempt("undo", async () => {
      const undone = await call("POST /v1/undo", { id });
      tell(`Undone: ${undone.doing}.`);
      props.onDone();
    });
  return (
    <Card title="Maintenance">
      <div class="stack-s">
        <p class="muted">Merge near-duplicates and condense unused memories. A preview comes first; every run can be undone.</p>
        {may("consolidate") && (
          <div class="row">
            <button type="button" class="button" disabled={busy !== ""} onClick={() => void preview()}>
              {busy === "preview" ? "Looking …" : "Preview"}
            </button>
            {plan?.token && (
              <button type="button" class="button primary" disabled={busy !== ""} onClick={() => void run()}>
                {busy === "run" ? "Working …" : `Carry out ${plural(plan.proposals.length + plan.left_out, "change")}`}
              </button>
            )}
          </div>
        )}
        {busy === "run" && plan && (
          <label class="field">
            {plural(steps, "change")} of {count(plan.proposals.length + plan.left_out)} done
            <progress value={steps} max={Math.max(1, plan.proposals.length + plan.left_out)} />
          </label>
        )}
        <ErrorNote error={error} />
        {plan && (
          <div class="stack-s" role="status">
            {!plan.proposals.length && <Empty>Nothing to do.</Empty>}
            {plan.proposals.map((proposal, place) => (
              <div key={place} class="notice">
                <p>
                  <Badge>{proposal.job}</Badge> {oneLine(proposal.why, 300)}
                </p>
                <p class="small muted">
                  {plural(proposal.leaves.length, "memory", "memories")} leave recall:{" "}
                  {proposal.leaves.slice(0, 5).map((id) => (
                    <a key={id} class="mono" href={memoryLink(id)}>
                      {id}{" "}
                    </a>
                  ))}
                </p>
              </div>
            ))}
            {plan.left.map((line) => (
              <p key={line} class="small muted">
                {forPeople(line)}
              </p>
            ))}
          </div>
        )}
        <h3>Runs</h3>
        <ErrorNote error={runs.error} />
        {runs.data && !runs.data.runs.length && <Empty>There was no maintenance yet.</Empty>}
        <ul class="stack-s">
          {runs.data?.runs.map((one) => (
            <li key={one.run} class="row run">
              <span class="mono">{one.run}</span>
              <span class="muted small">{moment(one.at)}</span>
              <span class="grow">
                {Object.entries(one.jobs)
                  .map(([job, times]) => `${job}: ${times}`)
                  .join(", ")}
              </span>
              {may("undo") && (
                <button type="button" class="button small" disabled={busy !== ""} onClick={() => void undo(one.run)}>
                  Undo
                </button>
              )}
            </li>
          ))}
        </ul>
      </div>
    </Card>
  );
}

const PAGE = 50;

/** A detail of the journal in words; maintenance writes JSON. */
function detail(text: string): string {
  if (!text.startsWith("{")) return text;
  try {
    const parsed = JSON.parse(text) as Record<string, unknown>;
    return [parsed.job, parsed.why].filter(Boolean).join(": ") || Object.keys(parsed).join(", ");
  } catch {
    return text;
  }
}

function Journal(props: { turn: number; total: number }) {
  const address = useAddress();
  const { total } = props;
  const after = address.get("after") ? Number(address.get("after")) : Math.max(0, total - PAGE);
  const found = useResource(`events ${after} ${props.turn}`, (abort) => call("GET /v1/events", { after, limit: PAGE }, abort));
  const events = [...(found.data?.events ?? [])].reverse();
  return (
    <Card title={`Journal, ${plural(total, "entry", "entries")}`}>
      <ErrorNote error={found.error} />
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Journal">
        <table class="waterfall fold" role="table">
          <caption class="sr">The last changes</caption>
          <thead role="rowgroup">
            <tr role="row">
              <th scope="col" role="columnheader" class="num">
                No.
              </th>
              <th scope="col" role="columnheader">When</th>
              <th scope="col" role="columnheader">Change</th>
              <th scope="col" role="columnheader">Memory</th>
              <th scope="col" role="columnheader">By</th>
              <th scope="col" role="columnheader">Detail</th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {events.map((event) => (
              <tr key={event.seq} role="row">
                <td role="cell" data-label="No." class="num">{count(event.seq)}</td>
                <td role="cell" data-label="When" class="nowrap">{moment(event.at)}</td>
                <td role="cell" data-label="Change">{event.kind}</td>
                <td role="cell" data-label="Memory">
                  {event.item?.startsWith("run-") ? (
                    <span class="mono nowrap">{event.item.split(":")[0]}</span>
                  ) : event.item ? (
                    <a class="mono nowrap" href={memoryLink(event.item)}>
                      {event.item}
                    </a>
                  ) : (
                    "–"
                  )}
                </td>
                <td role="cell" data-label="By">{oneLine(actorName(event.actor), 40)}</td>
                <td role="cell" data-label="Detail" class="muted">{oneLine(detail(event.detail), 100)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="row">
        <button type="button" class="button small" disabled={after <= 0} onClick={() => address.set({ after: String(Math.max(0, after - PAGE)) })}>
          Older
        </button>
        <button type="button" class="button small" disabled={!address.get("after")} onClick={() => address.set({ after: after + PAGE >= total - PAGE ? null : String(after + PAGE) })}>
          Newer
        </button>
      </div>
    </Card>
  );
}

function Stats(props: { stats: Record<string, unknown> }) {
  const { stats } = props;
  const [saving, setSaving] = useState(false);
  const [failed, setFailed] = useState<ApiError | null>(null);
  const save = async () => {
    setSaving(true);
    setFailed(null);
    try {
      await download("/v1/export", `bethink-${String(stats.space)}.jsonl`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailed(error);
    } finally {
      setSaving(false);
    }
  };
  const groups: [string, string][] = [
    ["by_kind", "By kind"],
    ["by_status", "By status"],
    ["by_source_class", "By origin"],
  ];
  const simple: [string, string][] = [
    ["memories", "Memories"],
    ["forgotten", "Forgotten"],
    ["revisions", "Revisions"],
    ["entities", "Entities"],
    ["links", "Links"],
    ["threads", "Threads"],
    ["vectors", "Vectors"],
    ["unembedded", "Without vector"],
    ["erased", "Erased"],
  ];
  return (
    <div class="stack">
      <Card title="Holds">
        <dl class="facts">
          {simple
            .filter(([name]) => typeof stats[name] === "number")
            .map(([name, label]) => (
              <>
                <dt>{label}</dt>
                <dd class="num">{count(stats[name] as number)}</dd>
              </>
            ))}
          {typeof stats.bytes === "number" && (
            <>
              <dt>Size</dt>
              <dd class="num">{bytes(stats.bytes)}</dd>
            </>
          )}
          <dt>Embedder</dt>
          <dd class="num">{String(stats.embedder ?? "–")}</dd>
        </dl>
        {may("export") && (
          <p>
            <button type="button" class="button small" disabled={saving} onClick={() => void save()}>
              {saving ? "Exporting …" : "Export everything"}
            </button>
          </p>
        )}
        <ErrorNote error={failed} />
      </Card>
      {groups.map(([name, label]) => {
        const table = (stats[name] ?? {}) as Record<string, number>;
        const most = Math.max(1, ...Object.values(table));
        if (!Object.keys(table).length) return null;
        return (
          <Card key={name} title={label}>
            <table>
              <caption class="sr">{label}</caption>
              <tbody>
                {Object.entries(table).map(([key, value]) => (
                  <tr key={key}>
                    <th scope="row">{oneLine(key, 30)}</th>
                    <td class="bar-half">
                      <svg class="bar-svg" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                        <rect class="bar" width={(value / most) * 100} y="2" height="6" />
                      </svg>
                    </td>
                    <td class="num">{count(value)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Card>
        );
      })}
    </div>
  );
}
