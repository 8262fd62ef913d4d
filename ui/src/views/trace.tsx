// Trace: every step of a recall, how long it took, and how the candidates moved.
import { useMemo, useRef } from "preact/hooks";
import { count, milliseconds, plural, score, statusWords } from "../lib/format";
import { partMeaning, partName } from "../lib/evidence";
import { questionOf, useInspected, type Inspected, type Step } from "../lib/question";
import { oneLine } from "../lib/text";
import { link, memoryLink, useAddress } from "../lib/url";
import { useWidth } from "../lib/width";
import { Badge, Card, Empty, ErrorNote, Loading, Page } from "../parts/basics";
import { QuestionForm } from "../parts/question";

const CANDIDATES = 40;

export function Trace() {
  const address = useAddress();
  const asked = questionOf(address, { candidates: CANDIDATES });
  const { data, error, loading } = useInspected(asked);
  return (
    <Page title="Trace" lead="What happened between the question and the answer, step by step.">
      <QuestionForm />
      <Loading on={loading} />
      <ErrorNote error={error} />
      {!asked && <Empty>Ask a question to see its steps.</Empty>}
      {asked && data && (
        <>
          <Summary answer={data} />
          <Steps answer={data} />
          <Ranks answer={data} />
          <Deep answer={data} />
        </>
      )}
    </Page>
  );
}

function Summary(props: { answer: Inspected }) {
  const address = useAddress();
  const { trace, status, hits } = props.answer;
  const skipped = trace.steps.filter((step) => step.status === "skipped").length;
  const failed = trace.steps.filter((step) => step.status !== "skipped" && step.status !== "ok").length;
  return (
    <p class="row">
      <Badge tone={status === "found" ? "good" : status === "unsure" ? "warn" : ""}>{statusWords(status)[0]}</Badge>
      <span>{plural(hits.length, "memory", "memories")}</span>
      <span>
        {plural(trace.steps.length, "step")} in {milliseconds(trace.milliseconds)}
      </span>
      <span>
        {plural(trace.merge.channels, "retriever")} found {count(trace.merge.came_in)}, {count(trace.merge.duplicates)} of them twice
      </span>
      {skipped > 0 && <Badge>{count(skipped)} skipped</Badge>}
      {failed > 0 && <Badge tone="bad">{count(failed)} degraded</Badge>}
      {trace.cached && <Badge>from the cache</Badge>}
      <a href={link("/ask", address.search)}>To the answer</a>
    </p>
  );
}

function Steps(props: { answer: Inspected }) {
  const { steps, milliseconds: whole } = props.answer.trace;
  let begin = 0;
  const placed = steps.map((step) => {
    const from = begin;
    begin += step.milliseconds;
    return { step, from };
  });
  const total = Math.max(whole, begin, 0.001);
  return (
    <Card title="Steps">
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Steps">
        <table class="waterfall fold steps" role="table">
          <caption class="sr">Steps of the recall in order, with their time</caption>
          <thead role="rowgroup">
            <tr role="row">
              <th scope="col" role="columnheader">
                Step
              </th>
              <th scope="col" role="columnheader" class="bar-cell">
                Time
              </th>
              <th scope="col" role="columnheader" class="num">
                Took
              </th>
              <th scope="col" role="columnheader" class="num">
                In
              </th>
              <th scope="col" role="columnheader" class="num">
                Left
              </th>
              <th scope="col" role="columnheader">
                Remark
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {placed.map(({ step, from }, place) => (
              <tr key={place} role="row" class={step.status === "skipped" ? "muted" : ""}>
                <th scope="row" role="rowheader" title={step.step}>
                  {partName(step.step)}
                  <span class="meaning">{partMeaning(step.step)}</span>
                </th>
                <td role="cell" class="bar-cell">
                  <svg class="bar-svg" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                    <rect class="bar base" x="0" width="100" y="4.6" height="0.8" />
                    {step.status !== "skipped" && (
                      <rect class="bar" x={(from / total) * 100} width={Math.max(0.5, (step.milliseconds / total) * 100)} y="1" height="8" />
                    )}
                  </svg>
                </td>
                <td role="cell" class="num">
                  {step.status === "skipped" ? "" : milliseconds(step.milliseconds)}
                </td>
                <td role="cell" class="num" data-label="In">
                  {step.step.startsWith("channel.") || ["plan", "fuse"].includes(step.step) ? "" : count(step.came_in)}
                </td>
                <td role="cell" class="num" data-label="Left">
                  {step.step === "plan" ? "" : count(step.left)}
                </td>
                <td role="cell">
                  {step.status === "skipped" ? <Badge>skipped</Badge> : step.status !== "ok" ? <Badge tone="bad">{step.status}</Badge> : null}{" "}
                  <span class="muted">{oneLine(step.note, 200)}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

const ROWS = 12; // memories that are followed
const WIDEST = 118; // of a column
const ROW = 26;
const LEFT = 34;
const NAMES = 210; // room for the texts at the right
const NARROW = 700; // below: no texts, and the names of steps are slanted

interface Column {
  name: string;
  ranks: Map<string, number>;
}

/** The steps after which the order or the number of candidates is another one. */
export function changingColumns(steps: readonly Step[]): Column[] {
  const columns: Column[] = [];
  let before = "";
  for (const step of steps) {
    if (!step.candidates.length || step.step.startsWith("assemble.") || step.step.startsWith("deep.")) continue;
    const order = `${step.left}:${step.candidates.map((one) => one.id).join()}`;
    if (order === before) continue;
    before = order;
    columns.push({ name: step.step, ranks: new Map(step.candidates.map((one) => [one.id, one.rank])) });
  }
  return columns;
}

function Ranks(props: { answer: Inspected }) {
  const { steps } = props.answer.trace;
  const columns = useMemo(() => changingColumns(steps), [steps]);
  return columns.length < 2 ? null : <RankChart answer={props.answer} columns={columns} />;
}

function RankChart(props: { answer: Inspected; columns: Column[] }) {
  const address = useAddress();
  const chosen = address.get("follow");
  const { columns } = props;
  const { steps } = props.answer.trace;
  const texts = useMemo(() => new Map(steps.flatMap((step) => step.candidates.map((one) => [one.id, one.text]))), [steps]);
  const followed = useMemo(() => {
    const last = columns[columns.length - 1];
    const best = (id: string) => Math.min(...columns.map((column) => column.ranks.get(id) ?? Infinity));
    const kept = last ? [...last.ranks.keys()] : [];
    const others = [...texts.keys()].filter((id) => !kept.includes(id)).sort((a, b) => best(a) - best(b));
    return [...kept.slice(0, ROWS), ...others.slice(0, Math.max(4, ROWS - kept.length))];
  }, [columns, texts]);
  const drawing = useRef<HTMLDivElement>(null);
  const room = useWidth(drawing);
  const kept = columns[columns.length - 1]!.ranks;
  const deepest = Math.min(
    30,
    Math.max(...followed.map((id) => Math.max(...columns.map((column) => column.ranks.get(id) ?? 0)))),
  );
  const isNarrow = room < NARROW;
  const column = Math.min(WIDEST, (room - LEFT - (isNarrow ? 0 : NAMES)) / columns.length);
  const isSlanted = column < 112;
  const top = isSlanted ? 124 : 36;
  const width = LEFT + column * columns.length + (isNarrow ? 0 : NAMES);
  const height = top + ROW * deepest + 10;
  const x = (place: number) => LEFT + Math.min(20, column / 2) + column * place;
  const y = (rank: number) => top + ROW * (Math.min(rank, deepest) - 0.5);
  return (
    <Card title="How the ranks moved">
      <p class="muted small">
        Each line is a memory; the best are at the top. Lines that end fell out at the next step. Choose a line to follow it.
      </p>
      <div ref={drawing}>
        <svg class="chart bump-chart" viewBox={`0 0 ${width} ${height}`} width={width} role="img" aria-label="Ranks from step to step; the table below has the same numbers">
          {columns.map((column, place) => (
            <g key={column.name}>
              <title>{partMeaning(column.name)}</title>
              <line class="grid" x1={x(place)} x2={x(place)} y1={top - 4} y2={height - 6} />
              {isSlanted ? (
                <text transform={`translate(${x(place) + 4} ${top - 10}) rotate(-62)`} font-size="11.5">
                  {partName(column.name)}
                </text>
              ) : (
                <text x={x(place)} y={top - 12} text-anchor="middle" font-size="12.5">
                  {partName(column.name)}
                </text>
              )}
            </g>
          ))}
          {Array.from({ length: deepest }, (_, place) => (
            <text key={place} class="axis" x={LEFT - 4} y={y(place + 1) + 4} text-anchor="end" font-size="11.5">
              {place + 1}
            </text>
          ))}
          {[...followed].reverse().map((id) => {
            const points = columns.flatMap((column, place) => {
              const rank = column.ranks.get(id);
              return rank !== undefined && rank <= deepest ? [[x(place), y(rank)] as const] : [];
            });
            if (!points.length) return null;
            const [endX, endY] = points[points.length - 1]!;
            return (
              <g
                key={id}
                class={`bump ${kept.has(id) ? "kept" : ""} ${id === chosen ? "on" : ""}`}
                onClick={() => address.set({ follow: id === chosen ? null : id }, { replace: true })}
              >
                <path class="bump-line" d={curve(points)} />
                {points.map(([px, py]) => (
                  <circle key={px} class="bump-dot" cx={px} cy={py} r="5" />
                ))}
                {kept.has(id) && !isNarrow && (
                  <text x={endX + 12} y={endY + 4} font-size="12.5">
                    {oneLine(texts.get(id) ?? id, 30)}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      </div>
      <details open={Boolean(chosen)}>
        <summary class="muted small">The same as a table</summary>
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Table of ranks">
          <table class="waterfall fold" role="table">
            <caption class="sr">Rank of each memory after each step</caption>
            <thead role="rowgroup">
              <tr role="row">
                <th scope="col" role="columnheader">
                  Memory
                </th>
                {columns.map((column) => (
                  <th scope="col" role="columnheader" class="num" key={column.name} title={partMeaning(column.name)}>
                    {partName(column.name)}
                  </th>
                ))}
                <th scope="col" role="columnheader" class="num">
                  Score
                </th>
              </tr>
            </thead>
            <tbody role="rowgroup">
              {followed.map((id) => {
                const hit = props.answer.hits.find((one) => one.id === id);
                return (
                  <tr key={id} role="row">
                    <td role="cell" class="cell-memory">
                      <a href={memoryLink(id)}>{id === chosen ? <strong>{oneLine(texts.get(id) ?? id, 70)}</strong> : oneLine(texts.get(id) ?? id, 70)}</a>
                    </td>
                    {columns.map((column) => (
                      <td role="cell" class="num" data-label={partName(column.name)} key={column.name}>
                        {column.ranks.get(id) ?? "–"}
                      </td>
                    ))}
                    <td role="cell" class="num" data-label="Score">
                      {score(hit?.score)}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      </details>
    </Card>
  );
}

/** A line through points that leaves and reaches each of them level. */
export function curve(points: readonly (readonly [number, number])[]): string {
  return points
    .map(([px, py], place) => {
      if (!place) return `M${px},${py}`;
      const [ox, oy] = points[place - 1]!;
      const middle = (ox + px) / 2;
      return `C${middle},${oy} ${middle},${py} ${px},${py}`;
    })
    .join("");
}

const WAYS: Record<string, string> = { VEC: "by meaning", LEX: "by words", HYDE: "by a likely answer" };

interface Expansion {
  way: string;
  query: string;
  why: string;
}

/** The further searches that a step names: VEC "..." (why); LEX "..." (why). */
export function expansionsOf(note: string): Expansion[] {
  return [...note.matchAll(/(VEC|LEX|HYDE) "([^"]*)" \(([^)]*)\)/g)].map((found) => ({
    way: WAYS[found[1]!]!,
    query: found[2]!,
    why: found[3]!,
  }));
}

/** What a deep profile did beyond the first search: judgements, expansions, second searches. */
function Deep(props: { answer: Inspected }) {
  const steps = props.answer.trace.steps.filter((step) => step.step.startsWith("deep."));
  if (!steps.length) return null;
  return (
    <Card title="Deep recall">
      <ol class="stack-s">
        {steps.map((step, place) => {
          const expansions = expansionsOf(step.note);
          return (
            <li key={place} class="revision">
              <p class="row">
                <Badge tone={step.status === "ok" ? "accent" : "warn"}>{partName(step.step)}</Badge>
                <span class="muted small">{milliseconds(step.milliseconds)}</span>
                <span>{expansions.length ? plural(expansions.length, "further search", "further searches") : oneLine(step.note || step.status, 400)}</span>
              </p>
              {expansions.length > 0 && (
                <table class="waterfall">
                  <caption class="sr">Further searches</caption>
                  <tbody>
                    {expansions.map((one, number) => (
                      <tr key={number}>
                        <th scope="row">{one.way}</th>
                        <td dir="auto">{oneLine(one.query, 240)}</td>
                        <td class="muted">{one.why}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
            </li>
          );
        })}
      </ol>
    </Card>
  );
}
