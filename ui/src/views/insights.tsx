// Insights and threads: what was derived from memories, with its evidence, and topics over time.
import { scaleTime } from "d3-scale";
import { call } from "../lib/api";
import { count, day, moment, plural } from "../lib/format";
import { useResource } from "../lib/resource";
import { session } from "../lib/session";
import { oneLine } from "../lib/text";
import { link, memoryLink, useAddress } from "../lib/url";
import { Badge, Card, Empty, ErrorNote, Loading, MemoryText, Page } from "../parts/basics";

interface Insight {
  id: string;
  kind: string;
  title: string | null;
  text: string;
  stale: boolean;
  trust: number;
  confidence: number;
  made_by: string | null;
  points: { text: string; sources: { id: string; text: string }[] }[];
  below: Insight[];
}

interface Thread {
  id: string;
  headline: string;
  kind: string;
  anchor: string | null;
  lifecycle: string;
  state: string;
  created_at: string | null;
  updated_at: string | null;
  members: { item: string; role: string; weight: number; text?: string }[];
  events: { seq: number; at: string; kind: string; item: string | null; text?: string; note?: string }[];
  memories: number;
}

export function Insights() {
  const found = useResource("insights", (abort) => call("GET /v1/insights", {}, abort));
  const tree = (found.data?.insights ?? []) as unknown as Insight[];
  return (
    <Page title="Insights" lead="What was derived from the memories, and what it rests on.">
      <Loading on={found.loading} />
      <ErrorNote error={found.error} />
      {found.data && !tree.length && <WhyNone />}
      {tree.length > 0 && (
        <Card>
          <ul class="tree">
            {tree.map((one) => (
              <Branch key={one.id} insight={one} open />
            ))}
          </ul>
        </Card>
      )}
      {Boolean(found.data?.left_out) && <p class="muted">{plural(found.data!.left_out, "lower insight")} not shown</p>}
    </Page>
  );
}

// What maintenance needs: docs/maintain.md.
const SMALL = 100; // memories: below it fewer are enough
const NEEDED = { small: [8, 4], large: [20, 10] } as const;

/** Why there are no insights: too few memories, or none of them on one subject. */
function WhyNone() {
  const stats = useResource("stats", (abort) => call("GET /v1/stats", {}, abort)).data as Record<string, unknown> | null;
  if (!stats) return null;
  const levels = (stats.by_level ?? {}) as Record<string, number>;
  const [own, turns] = [levels.item ?? 0, levels.raw ?? 0];
  const [loose, each] = own < SMALL ? NEEDED.small : NEEDED.large;
  return (
    <Card>
      <Empty>
        <p>
          <strong>There are no insights yet.</strong>{" "}
          {own < loose
            ? `They are made from ${loose} memories on, and there ${own === 1 ? "is" : "are"} ${count(own)}${turns ? `; the ${plural(turns, "turn")} of conversations do not count` : ""}.`
            : `It takes ${each} memories with one topic or entity, or of one kind, that no insight holds yet.`}
        </p>
        {own >= loose && (
          <p>
            Maintenance derives them: <code>bethink maintain --job insights --space {session.value?.space}</code>. If it has nothing to do, no group is large
            enough; topics and tags on memories make groups.
          </p>
        )}
      </Empty>
    </Card>
  );
}

function Branch(props: { insight: Insight; open?: boolean }) {
  const { insight } = props;
  const sources = insight.points.reduce((sum, point) => sum + point.sources.length, 0);
  return (
    <li>
      <details open={props.open}>
        <summary>
          <strong dir="auto">{oneLine(insight.title || insight.text, 120)}</strong> <Badge>{insight.kind}</Badge>{" "}
          {insight.stale && <Badge tone="warn">stale: its sources changed</Badge>}
        </summary>
        <div class="stack-s">
          {!insight.points.length && <MemoryText text={insight.text} clamp />}
          <p class="small muted">
            {insight.made_by && `made by ${insight.made_by} · `}
            <a href={memoryLink(insight.id)}>open</a>
          </p>
          {insight.points.length > 0 && (
            <details open={!insight.below.length}>
              <summary class="small">
                {plural(insight.points.length, "point")} from {plural(sources, "source")}
              </summary>
              <Points points={insight.points} />
            </details>
          )}
          {insight.below.length > 0 && (
            <ul class="tree">
              {insight.below.map((one) => (
                <Branch key={one.id} insight={one} />
              ))}
            </ul>
          )}
        </div>
      </details>
    </li>
  );
}

function Points(props: { points: Insight["points"] }) {
  return (
    <div class="stack-s">
      {props.points.map((point, place) => (
        <div key={place} class="revision">
          <p class="text" dir="auto">
            {oneLine(point.text, 400)}
          </p>
          <ul class="small muted">
            {point.sources.map((source) => (
              <li key={source.id} class="line">
                <a href={memoryLink(source.id)} dir="auto">
                  {oneLine(source.text, 140)}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </div>
  );
}

export function Threads() {
  const address = useAddress();
  const chosen = address.get("thread");
  const found = useResource("threads", (abort) => call("GET /v1/threads", { limit: 60 }, abort));
  const threads = (found.data?.threads ?? []) as unknown as Thread[];
  return (
    <Page title="Threads" lead="Topics that go on over time.">
      <Loading on={found.loading} />
      <ErrorNote error={found.error} />
      {found.data && !threads.length && (
        <Card>
          <Empty>
            <p>
              <strong>There are no threads yet.</strong> A thread is a topic that comes back over days: a project, an incident, a plan.
            </p>
            <p>
              Maintenance finds them: <code>bethink maintain --job threads --space {session.value?.space}</code>.
            </p>
          </Empty>
        </Card>
      )}
      {threads.length > 0 && <Lanes threads={threads} chosen={chosen} />}
    </Page>
  );
}

const TONES: Record<string, "good" | "warn" | ""> = { active: "good", dormant: "warn" };

function Lanes(props: { threads: Thread[]; chosen: string }) {
  const address = useAddress();
  const state = address.get("state");
  const shown = props.threads.filter((thread) => !state || thread.lifecycle === state);
  const moments = props.threads
    .flatMap((thread) => [thread.created_at, thread.updated_at, ...thread.events.map((event) => event.at)])
    .filter((at): at is string => Boolean(at))
    .map((at) => Date.parse(at));
  const first = Math.min(...moments);
  const last = Math.max(...moments, first + 3_600_000);
  const x = scaleTime().domain([new Date(first), new Date(last)]).range([1, 99]);
  const states = [...new Set(props.threads.map((thread) => thread.lifecycle))];
  return (
    <Card title={plural(shown.length, "thread")}>
      <p class="row small muted">
        <label class="row">
          Show
          <select class="input narrow" value={state} onChange={(event) => address.set({ state: event.currentTarget.value })}>
            <option value="">all</option>
            {states.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <span>
          The lanes go from {day(new Date(first).toISOString())} to {day(new Date(last).toISOString())}; a dot is an event.
        </span>
      </p>
      <ul class="lanes">
        {shown.map((thread) => {
          const begin = x(new Date(thread.created_at ?? first));
          const end = x(new Date(thread.updated_at ?? last));
          const isOpen = thread.id === props.chosen;
          return (
            <li key={thread.id} class="lane-row">
              <button type="button" class="lane-name" aria-expanded={isOpen} onClick={() => address.set({ thread: isOpen ? null : thread.id }, { replace: true })}>
                <span class="line" dir="auto">
                  {oneLine(thread.headline, 120)}
                </span>
              </button>
              <svg class="lane-svg" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`${day(thread.created_at)} to ${day(thread.updated_at)}, ${plural(thread.events.length, "event")}`}>
                <rect class="bar base" x={begin} y="3.5" width={Math.max(0.6, end - begin)} height="3" />
                {thread.events.map((event) => (
                  <rect key={event.seq} class="bar" x={x(new Date(event.at)) - 0.3} y="1.5" width="0.7" height="7" />
                ))}
              </svg>
              <span class="row lane-facts">
                <Badge tone={TONES[thread.lifecycle] ?? ""}>{thread.lifecycle}</Badge>
                <Badge>{thread.state}</Badge>
                <span class="muted small">{plural(thread.memories, "memory", "memories")}</span>
              </span>
              {isOpen && <OneThread id={thread.id} />}
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

function OneThread(props: { id: string }) {
  const found = useResource(`thread ${props.id}`, (abort) => call("GET /v1/threads/{id}", { id: props.id, limit: 100 }, abort));
  const thread = found.data?.threads[0] as unknown as Thread | undefined;
  return (
    <div class="lane-open">
      <ErrorNote error={found.error} />
      {thread && (
        <div class="stack-s">
          <p class="muted small">
            {thread.kind}, {thread.lifecycle}, {thread.state}, since {day(thread.created_at)}
            {thread.anchor && (
              <>
                {" "}
                · about <a href={link("/graph", { node: thread.anchor })}>{oneLine(thread.anchor, 60)}</a>
              </>
            )}
          </p>
          <ol class="stack-s">
            {thread.members.map((member) => (
              <li key={member.item} class="row nowrap-row">
                <Badge>{member.role}</Badge>
                <a class="line grow" href={memoryLink(member.item)} dir="auto">
                  {oneLine(member.text ?? member.item, 160)}
                </a>
              </li>
            ))}
          </ol>
          {Boolean(found.data?.left_out) && <p class="muted small">{count(found.data!.left_out)} older memories not shown</p>}
          {thread.events.length > 0 && (
            <>
              <h3>Events</h3>
              <ol>
                {thread.events.map((event) => (
                  <li key={event.seq} class="dated">
                    <span class="muted small">{moment(event.at)}</span>
                    <span>{event.kind.replace(/_/g, " ")}</span>
                  </li>
                ))}
              </ol>
            </>
          )}
        </div>
      )}
    </div>
  );
}
