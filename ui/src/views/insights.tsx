// Insights and threads: what was derived from memories, with its evidence, and topics over time.
import { scaleTime } from "d3-scale";
import { call } from "../lib/api";
import { count, day, moment, plural } from "../lib/format";
import { useResource } from "../lib/resource";
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
      {found.data && !tree.length && (
        <Empty>
          There are no insights yet. <code>bethink maintain insights</code> derives them; it needs a language model.
        </Empty>
      )}
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

function Branch(props: { insight: Insight; open?: boolean }) {
  const { insight } = props;
  return (
    <li>
      <details open={props.open}>
        <summary>
          <strong dir="auto">{oneLine(insight.title || insight.text, 120)}</strong> <Badge>{insight.kind}</Badge>{" "}
          {insight.stale && <Badge tone="warn">stale: its sources changed</Badge>}
        </summary>
        <div class="stack-s">
          <MemoryText text={insight.text} clamp />
          <p class="small muted">
            trust {insight.trust} of 3{insight.made_by && `, made by ${insight.made_by}`} · <a href={memoryLink(insight.id)}>open</a>
          </p>
          {insight.points.map((point, place) => (
            <div key={place} class="revision">
              <p class="text" dir="auto">
                {oneLine(point.text, 400)}
              </p>
              <ul class="small">
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
        <Empty>
          There are no threads yet. <code>bethink maintain threads</code> finds them.
        </Empty>
      )}
      {threads.length > 0 && <Lanes threads={threads} chosen={chosen} />}
      {chosen && <OneThread id={chosen} />}
    </Page>
  );
}

const TONES: Record<string, "good" | "warn" | ""> = { active: "good", dormant: "warn" };
const LANE = 40;

function Lanes(props: { threads: Thread[]; chosen: string }) {
  const address = useAddress();
  const moments = props.threads.flatMap((thread) => [thread.created_at, thread.updated_at, ...thread.events.map((event) => event.at)]).filter((at): at is string => Boolean(at));
  const first = Math.min(...moments.map((at) => Date.parse(at)));
  const last = Math.max(...moments.map((at) => Date.parse(at)), first + 3_600_000);
  const x = scaleTime().domain([new Date(first), new Date(last)]).range([8, 992]);
  const height = props.threads.length * LANE + 24;
  return (
    <Card title={plural(props.threads.length, "thread")}>
      <svg class="chart" viewBox={`0 0 1000 ${height}`} role="img" aria-label="Threads as lanes; the list below has the same">
        {props.threads.map((thread, place) => {
          const y = place * LANE;
          const begin = x(new Date(thread.created_at ?? first));
          const end = x(new Date(thread.updated_at ?? last));
          return (
            <g key={thread.id} class={`lane ${thread.id === props.chosen ? "on" : ""}`} onClick={() => address.set({ thread: thread.id === props.chosen ? null : thread.id })}>
              <text x="8" y={y + 14} font-size="12.5">
                {oneLine(thread.headline, 110)}
              </text>
              <rect class="bar base" x={begin} y={y + 20} width={Math.max(6, end - begin)} height="9" rx="4.5" />
              {thread.events.map((event) => (
                <circle key={event.seq} class="bump-dot event" cx={x(new Date(event.at))} cy={y + 24.5} r="5">
                  <title>{`${moment(event.at)}: ${event.kind}`}</title>
                </circle>
              ))}
            </g>
          );
        })}
        {x.ticks(6).map((tick) => (
          <text key={tick.getTime()} class="axis" x={x(tick)} y={height - 4} font-size="11" text-anchor="middle">
            {x.tickFormat(6)(tick)}
          </text>
        ))}
      </svg>
      <ul class="stack-s">
        {props.threads.map((thread) => (
          <li key={thread.id} class="row">
            <button type="button" class="button small quiet pick grow" aria-expanded={thread.id === props.chosen} onClick={() => address.set({ thread: thread.id === props.chosen ? null : thread.id })}>
              <span class="line" dir="auto">
                {oneLine(thread.headline, 120)}
              </span>
            </button>
            <Badge tone={TONES[thread.lifecycle] ?? ""}>{thread.lifecycle}</Badge>
            <Badge>{thread.state}</Badge>
            <span class="muted small">
              {plural(thread.memories, "memory", "memories")}, {day(thread.updated_at)}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function OneThread(props: { id: string }) {
  const found = useResource(`thread ${props.id}`, (abort) => call("GET /v1/threads/{id}", { id: props.id, limit: 100 }, abort));
  const thread = found.data?.threads[0] as unknown as Thread | undefined;
  return (
    <Card title={thread ? oneLine(thread.headline, 160) : "Thread"}>
      <ErrorNote error={found.error} />
      {thread && (
        <div class="stack-s">
          <p class="muted small">
            {thread.kind}, {thread.lifecycle}, {thread.state}
            {thread.anchor && (
              <>
                {" "}
                · about <a href={link("/graph", { node: thread.anchor })}>{oneLine(thread.anchor, 60)}</a>
              </>
            )}
          </p>
          <ol class="stack-s">
            {thread.members.map((member) => (
              <li key={member.item} class="row">
                <Badge>{member.role}</Badge>
                <a class="line grow" href={memoryLink(member.item)} dir="auto">
                  {oneLine(member.text ?? member.item, 160)}
                </a>
              </li>
            ))}
          </ol>
          {Boolean(found.data?.left_out) && <p class="muted small">{count(found.data!.left_out)} older memories not shown</p>}
        </div>
      )}
    </Card>
  );
}
