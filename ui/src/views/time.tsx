// Time: when things happened, with a brush to choose a period, and conversations as lanes.
import { scaleLinear, scaleUtc } from "d3-scale";
import { useMemo, useRef, useState } from "preact/hooks";
import { call, type Answer } from "../lib/api";
import { count, day, plural } from "../lib/format";
import { useResource } from "../lib/resource";
import { commonBeginning, oneLine } from "../lib/text";
import { link, memoryLink, useAddress } from "../lib/url";
import { useWidth } from "../lib/width";
import { Card, Empty, ErrorNote, Loading, Page } from "../parts/basics";

type Times = Answer<"GET /v1/times">;
const DAY = 86_400_000;

export function Time() {
  const address = useAddress();
  const kind = address.get("kind");
  const times = useResource(`times ${kind}`, (abort) => call("GET /v1/times", kind ? { kind } : {}, abort));
  const [from, to] = ["from", "to"].map((name) => (Number.isNaN(Date.parse(address.get(name))) ? "" : address.get(name))) as [string, string];
  return (
    <Page title="Time" lead="When what is remembered happened.">
      <Loading on={times.loading} />
      <ErrorNote error={times.error} />
      {times.data && !times.data.days.length && <Empty>Nothing is stored yet.</Empty>}
      {times.data && times.data.days.length > 0 && (
        <>
          <Histogram times={times.data} from={from} to={to} />
          <div class="columns">
            <Chosen from={from} to={to} kind={kind} />
            {from || to ? <SessionsOf from={from} to={to} kind={kind} /> : <Sessions sessions={times.data.sessions} />}
          </div>
        </>
      )}
    </Page>
  );
}

const HEIGHT = 190;
const BOTTOM = 26;
const LEFT = 40; // room for the numbers

interface Bucket {
  start: number;
  end: number;
  count: number;
}

const FAR = 10; // times the spread of the middle half

/** The days that belong together: not those far from the middle half of all memories. */
export function usualDays(days: Times["days"]): Times["days"] {
  const quarter = days.reduce((sum, one) => sum + one.count, 0) / 4;
  let seen = 0;
  const quarters = days.filter((one) => {
    const before = seen;
    seen += one.count;
    return [quarter, 2 * quarter, 3 * quarter].some((edge) => before < edge && edge <= seen);
  });
  const [low, high] = [Date.parse(quarters[0]!.day), Date.parse(quarters[quarters.length - 1]!.day)];
  const most = FAR * Math.max(high - low, 30 * DAY);
  return days.filter((one) => Date.parse(one.day) >= low - most && Date.parse(one.day) <= high + most);
}

/** Days joined to as many buckets as can be told apart. */
export function buckets(days: Times["days"]): Bucket[] {
  const first = Date.parse(days[0]!.day);
  const last = Date.parse(days[days.length - 1]!.day) + DAY;
  const length = (last - first) / DAY;
  const size = ([1, 2, 7, 14, 30, 90, 365].find((one) => length / one <= 120) ?? Math.ceil(length / 365 / 120) * 365) * DAY;
  const made: Bucket[] = [];
  for (let start = first; start < last; start += size) made.push({ start, end: start + size, count: 0 });
  for (const one of days) made[Math.floor((Date.parse(one.day) - first) / size)]!.count += one.count;
  return made;
}

function iso(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10);
}

const MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", timeZone: "UTC" });

/** A mark of the axis: the year stands at the first one and where it begins. */
export function dateWords(tick: Date, before: Date | null): string {
  const isYear = tick.getUTCMonth() === 0 && tick.getUTCDate() === 1;
  const first = tick.getUTCDate() === 1 ? MONTH.format(tick) : `${tick.getUTCDate()} ${MONTH.format(tick)}`;
  if (isYear && before && before.getUTCFullYear() !== tick.getUTCFullYear()) return String(tick.getUTCFullYear());
  return before && before.getUTCFullYear() === tick.getUTCFullYear() ? first : `${first} ${tick.getUTCFullYear()}`;
}

function Histogram(props: { times: Times; from: string; to: string }) {
  const address = useAddress();
  const { counted } = props.times;
  const usual = useMemo(() => usualDays(props.times.days), [props.times]);
  const days = address.get("all") ? props.times.days : usual;
  const far = counted - usual.reduce((sum, one) => sum + one.count, 0);
  const made = useMemo(() => buckets(days), [days]);
  const svg = useRef<SVGSVGElement>(null);
  const wide = useWidth(svg);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const x = scaleUtc()
    .domain([new Date(made[0]!.start), new Date(made[made.length - 1]!.end)])
    .range([LEFT, wide]);
  const y = scaleLinear()
    .domain([0, Math.max(...made.map((one) => one.count))])
    .range([HEIGHT - BOTTOM, 8])
    .nice();
  const place = (event: PointerEvent) => {
    const box = svg.current!.getBoundingClientRect();
    return Math.max(LEFT, Math.min(wide, ((event.clientX - box.left) / box.width) * wide));
  };
  const chosen: [number, number] | null =
    drag ?? (props.from && props.to ? [x(new Date(props.from)), x(new Date(Date.parse(props.to) + DAY))] : null);
  const finish = () => {
    if (!drag) return;
    const [a, b] = [Math.min(...drag), Math.max(...drag)];
    setDrag(null);
    if (b - a < 3) address.set({ from: null, to: null });
    else address.set({ from: iso(x.invert(a).getTime()), to: iso(x.invert(b).getTime()) });
  };
  const ticks = x.ticks(Math.round(wide / 110)).filter((tick) => tick.getTime() % DAY === 0);
  const peak = made.reduce((best, one) => (one.count > best.count ? one : best));
  return (
    <Card title={plural(counted, "memory", "memories")}>
      <svg
        ref={svg}
        class="chart brush"
        viewBox={`0 0 ${wide} ${HEIGHT}`}
        role="img"
        aria-label={`Memories by time, from ${day(days[0]!.day)} to ${day(days[days.length - 1]!.day)}; most around ${day(iso(peak.start))}: ${peak.count}`}
        onPointerDown={(event) => {
          svg.current!.setPointerCapture(event.pointerId);
          setDrag([place(event), place(event)]);
        }}
        onPointerMove={(event) => drag && setDrag([drag[0], place(event)])}
        onPointerUp={finish}
        onPointerCancel={() => setDrag(null)}
      >
        {y.ticks(3).filter(Number.isInteger).map((tick) => (
          <g key={tick}>
            <line class="grid" x1={LEFT} x2={wide} y1={y(tick)} y2={y(tick)} />
            <text class="axis" x={LEFT - 8} y={y(tick) + 4} font-size="11" text-anchor="end">
              {count(tick)}
            </text>
          </g>
        ))}
        {made.map((one) => (
          <rect key={one.start} class="bar" x={x(new Date(one.start)) + 0.5} width={Math.max(1, x(new Date(one.end)) - x(new Date(one.start)) - 1)} y={y(one.count)} height={Math.max(0, HEIGHT - BOTTOM - y(one.count))}>
            <title>{`${day(iso(one.start))}: ${one.count}`}</title>
          </rect>
        ))}
        {ticks.map((tick, place) => (
          <text key={tick.getTime()} class="axis" x={x(tick)} y={HEIGHT - 8} font-size="11" text-anchor={x(tick) > wide - 40 ? "end" : "middle"}>
            {dateWords(tick, place ? ticks[place - 1]! : null)}
          </text>
        ))}
        {chosen && <rect class="brushed" x={Math.min(...chosen)} width={Math.max(2, Math.abs(chosen[1] - chosen[0]))} y="2" height={HEIGHT - BOTTOM} />}
      </svg>
      <div class="row">
        <label class="row small muted">
          From
          <input class="input narrow-date" type="date" value={props.from} onChange={(event) => address.set({ from: event.currentTarget.value })} />
        </label>
        <label class="row small muted">
          To
          <input class="input narrow-date" type="date" value={props.to} onChange={(event) => address.set({ to: event.currentTarget.value })} />
        </label>
        {props.from && props.to && (
          <>
            <button type="button" class="button small quiet" onClick={() => address.set({ from: null, to: null })}>
              The whole time
            </button>
            <a class="small" href={link("/memories", { since: props.from, until: iso(Date.parse(props.to) + DAY) })}>
              As a list
            </a>
            <a class="small" href={link("/ask", { as_of: `${props.to}T23:59:59Z` })}>
              Ask as of {day(props.to)}
            </a>
          </>
        )}
        <span class="small muted">Drag over the bars to choose a period.</span>
        {far > 0 && (
          <button type="button" class="button small quiet" onClick={() => address.set({ all: address.get("all") ? null : "1" })}>
            {address.get("all") ? "Without those far from the others" : `${plural(far, "memory", "memories")} long before or after`}
          </button>
        )}
      </div>
    </Card>
  );
}

interface Period {
  from: string;
  to: string;
  kind: string;
}

/** A period as the filters of a request; its last day belongs to it. */
function filtersOf(period: Period) {
  return {
    ...(period.from && { since: period.from }),
    ...(period.to && { until: iso(Date.parse(period.to) + DAY) }),
    ...(period.kind && { kind: period.kind }),
  };
}

function Chosen(props: Period) {
  const given = { limit: 40, preview: 240, ...filtersOf(props) };
  const found = useResource(`chosen ${JSON.stringify(given)}`, (abort) => call("GET /v1/memories", given, abort));
  const rows = [...(found.data?.memories ?? [])].sort((a, b) => b.when.localeCompare(a.when));
  return (
    <Card title={props.from && props.to ? `${day(props.from)} to ${day(props.to)}` : "Last stored"}>
      <ErrorNote error={found.error} />
      {found.data && !rows.length && <Empty>Nothing happened in this period.</Empty>}
      <ol class="stack-s">
        {rows.map((memory) => (
          <li key={memory.id} class="dated short">
            <span class="muted small nowrap">{day(memory.when)}</span>
            <a class="line" href={memoryLink(memory.id)} dir="auto">
              {memory.speaker && <span class="muted">{oneLine(memory.speaker, 30)}: </span>}
              {oneLine(memory.text, 140)}
            </a>
          </li>
        ))}
      </ol>
    </Card>
  );
}

/** The conversations of a period: the answer for all times has only the last ones. */
function SessionsOf(props: Period) {
  const given = filtersOf(props);
  const found = useResource(`sessions ${JSON.stringify(given)}`, (abort) => call("GET /v1/times", given, abort));
  if (found.error) return <ErrorNote error={found.error} />;
  return found.data && <Sessions sessions={found.data.sessions} />;
}

const FEW = 12; // at first
const MOST_SESSIONS = 60; // that the server tells of

function Sessions(props: { sessions: Times["sessions"] }) {
  const lanes = props.sessions;
  const [all, setAll] = useState(false);
  const common = useMemo(() => commonBeginning(lanes.map((one) => one.session)), [lanes]);
  if (!lanes.length) return null;
  const first = Math.min(...lanes.map((one) => Date.parse(one.first)));
  const last = Math.max(...lanes.map((one) => Date.parse(one.last)), first + DAY / 24);
  const x = scaleUtc().domain([new Date(first), new Date(last)]).range([0, 100]);
  return (
    <Card title={lanes.length < MOST_SESSIONS ? plural(lanes.length, "conversation") : `The last ${lanes.length} conversations`}>
      <p class="small muted">
        {day(new Date(first).toISOString())} to {day(new Date(last).toISOString())}
      </p>
      <ul class="lanes">
        {lanes.slice(0, all ? undefined : FEW).map((one) => (
          <li key={one.session} class="lane-row narrow-lane">
            <a class="lane-title" href={link("/memories", { session: one.session })} title={one.session} dir="auto">
              <Opening session={one.session} turns={one.count} />
            </a>
            <span class="muted small line">
              {day(one.first)} · {plural(one.count, "turn")} · {oneLine(one.session.slice(common.length).replace(/^\d+$/, "no. $&"), 40)}
            </span>
            <svg class="lane-svg" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`${day(one.first)} to ${day(one.last)}`}>
              <rect class="bar base" x="0" y="4.5" width="100" height="1" />
              <rect class="bar" x={Math.min(98.5, x(new Date(one.first)))} y="2" width={Math.max(1.5, x(new Date(one.last)) - x(new Date(one.first)))} height="6" />
            </svg>
          </li>
        ))}
      </ul>
      {lanes.length > FEW && (
        <button type="button" class="button small quiet" onClick={() => setAll(!all)}>
          {all ? "Fewer" : `${count(lanes.length - FEW)} more`}
        </button>
      )}
    </Card>
  );
}

/** How a conversation began: it tells more than its id. */
function Opening(props: { session: string; turns: number }) {
  const { session, turns } = props;
  const found = useResource(`opening ${session}`, (abort) =>
    call("GET /v1/memories", { session, limit: 1, offset: Math.max(0, turns - 1), preview: 100 }, abort),
  );
  const first = found.data?.memories[0];
  return <span class="line">{first ? `${first.speaker ? `${oneLine(first.speaker, 20)}: ` : ""}${oneLine(first.text, 80)}` : session}</span>;
}
