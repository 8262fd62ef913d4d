// Compare: the same question with two to four profiles, and where their answers differ.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../lib/api";
import { milliseconds, plural, score, statusWords } from "../lib/format";
import { partName } from "../lib/evidence";
import { questionOf, type Inspected } from "../lib/question";
import { useResource } from "../lib/resource";
import { oneLine } from "../lib/text";
import { link, memoryLink, useAddress } from "../lib/url";
import { useWidth } from "../lib/width";
import { Badge, Card, Empty, ErrorNote, Loading, Page } from "../parts/basics";
import { ProfileSelect, QuestionForm } from "../parts/question";
import { curve } from "./trace";

const MOST = 4;
const USUAL = ["default", "remind"];

export function Compare() {
  const address = useAddress();
  const named = address.get("profiles").split(",").filter(Boolean).slice(0, MOST);
  const profiles = named.length >= 2 ? named : USUAL;
  const asked = questionOf(address, { candidates: 0 });
  const key = asked && JSON.stringify([asked, profiles]);
  const { data, error, loading } = useResource(key, (abort) =>
    Promise.all(profiles.map((profile) => call("POST /v1/inspect", { ...asked, profile }, abort))),
  );
  const choose = (place: number, name: string | null) => {
    const next = [...profiles];
    if (name === null) next.splice(place, 1);
    else next[place] = name;
    address.set({ profiles: next.join(",") });
  };
  return (
    <Page title="Compare" lead="One question, several profiles.">
      <QuestionForm withProfile={false} />
      <div class="row end">
        {profiles.map((name, place) => (
          <div key={place} class={`row series-${place + 1}`}>
            <ProfileSelect label={`Profile ${place + 1}`} value={name} onChoose={(chosen) => choose(place, chosen)} />
            {profiles.length > 2 && (
              <button type="button" class="button small quiet" aria-label={`Remove ${name}`} onClick={() => choose(place, null)}>
                ✕
              </button>
            )}
          </div>
        ))}
        {profiles.length < MOST && (
          <button type="button" class="button small" onClick={() => choose(profiles.length, "abmind")}>
            Add a profile
          </button>
        )}
      </div>
      <Loading on={loading} />
      <ErrorNote error={error} />
      {!asked && <Empty>Ask a question to compare its answers.</Empty>}
      {asked && data && data.length === profiles.length && (
        <>
          <Answers answers={data} profiles={profiles} />
          <Slopes answers={data} profiles={profiles} />
          <Differences answers={data} profiles={profiles} />
        </>
      )}
    </Page>
  );
}

interface Compared {
  answers: Inspected[];
  profiles: string[];
}

function Answers(props: Compared) {
  const address = useAddress();
  return (
    <div class="fields wide">
      {props.answers.map((answer, place) => (
        <section class={`card stack-s series series-${place + 1}`} key={place}>
          <h2>
            <a href={link("/ask", { q: address.get("q"), profile: props.profiles[place] })}>{props.profiles[place]}</a>
          </h2>
          <p class="row">
            <Badge tone={answer.status === "found" ? "good" : answer.status === "unsure" ? "warn" : ""}>{statusWords(answer.status)[0]}</Badge>
            <span class="muted">
              {plural(answer.hits.length, "memory", "memories")}, {plural(answer.context.tokens, "token")}, {milliseconds(answer.trace.milliseconds)}
            </span>
          </p>
        </section>
      ))}
    </div>
  );
}

const WIDEST = 1180; // of the whole drawing
const ROW = 34;
const HEAD = 34;

function Slopes(props: Compared) {
  const address = useAddress();
  const chosen = address.get("follow");
  const ranks = props.answers.map((answer) => new Map(answer.hits.map((hit, place) => [hit.id, place])));
  const rows = Math.max(1, ...props.answers.map((answer) => answer.hits.length));
  const drawing = useRef<HTMLDivElement>(null);
  const room = useWidth(drawing);
  const gap = room < 700 ? 26 : 100;
  const box = Math.min(420, (Math.min(room, WIDEST) - gap * (props.answers.length - 1)) / props.answers.length);
  const letters = Math.max(2, Math.floor((box - 46) / 6.6));
  const width = box * props.answers.length + gap * (props.answers.length - 1);
  const height = HEAD + rows * ROW;
  const x = (place: number) => place * (box + gap);
  const y = (rank: number) => HEAD + rank * ROW + ROW / 2;
  return (
    <Card title="Ranks side by side">
      <div ref={drawing}>
        <svg class="chart slope-chart" viewBox={`0 0 ${width} ${height}`} width={width} role="img" aria-label="Ranks by profile; the table below has the same numbers">
          {props.answers.slice(0, -1).map((answer, place) =>
            answer.hits.map((hit, rank) => {
              const other = ranks[place + 1]!.get(hit.id);
              if (other === undefined) return null;
              const points = [
                [x(place) + box, y(rank)],
                [x(place + 1), y(other)],
              ] as const;
              return <path key={`${place} ${hit.id}`} class={hit.id === chosen ? "slope-line on" : "slope-line"} d={curve(points)} />;
            }),
          )}
          {props.answers.map((answer, place) => (
            <g key={place} class={`series-${place + 1}`}>
              <text x={x(place)} y={16} font-size="13" font-weight="600">
                {props.profiles[place]}
              </text>
              {answer.hits.map((hit, rank) => {
                const alone = ranks.every((others, at) => at === place || !others.has(hit.id));
                return (
                  <g key={hit.id} class={`slope-box ${alone ? "alone" : ""} ${hit.id === chosen ? "on" : ""}`} onClick={() => address.set({ follow: hit.id === chosen ? null : hit.id }, { replace: true })}>
                    <rect x={x(place) + 0.5} y={y(rank) - ROW / 2 + 3} width={box - 1} height={ROW - 6} rx="6" />
                    <text class="axis" x={x(place) + 10} y={y(rank) + 4} font-size="12">
                      {rank + 1}
                    </text>
                    <svg x={x(place) + 32} y={y(rank) - ROW / 2} width={Math.max(1, box - 42)} height={ROW}>
                      <text x="0" y={ROW / 2 + 4} font-size="12">
                        {oneLine(hit.text, letters)}
                      </text>
                    </svg>
                  </g>
                );
              })}
            </g>
          ))}
        </svg>
      </div>
      <p class="muted small">A dashed frame: only this profile returns it.</p>
    </Card>
  );
}

function Differences(props: Compared) {
  const { answers, profiles } = props;
  const ids = [...new Set(answers.flatMap((answer) => answer.hits.map((hit) => hit.id)))];
  const differing = ids.filter((id) => {
    const places = answers.map((answer) => answer.hits.findIndex((hit) => hit.id === id));
    return new Set(places).size > 1;
  });
  return (
    <Card title="Differences">
      {differing.length === 0 ? (
        <Empty>The profiles return the same memories in the same order.</Empty>
      ) : (
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Differences">
          <table class="waterfall fold" role="table">
            <caption class="sr">Memories whose rank differs, with the rank and what it rests on by profile</caption>
            <thead role="rowgroup">
              <tr role="row">
                <th scope="col" role="columnheader">
                  Memory
                </th>
                {profiles.map((name, place) => (
                  <th scope="col" role="columnheader" key={place}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody role="rowgroup">
              {differing.map((id) => (
                <tr key={id} role="row">
                  <td role="cell" class="cell-memory">
                    <a href={memoryLink(id)}>{oneLine(answers.flatMap((answer) => answer.hits).find((hit) => hit.id === id)!.text, 90)}</a>
                  </td>
                  {answers.map((answer, place) => (
                    <td key={place} role="cell" data-label={profiles[place]}>
                      <div>
                        <Place answer={answer} profile={profiles[place]!} id={id} />
                      </div>
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

/** The rank of a memory with one profile and its strongest evidence, or why it is missing. */
function Place(props: { answer: Inspected; profile: string; id: string }) {
  const place = props.answer.hits.findIndex((hit) => hit.id === props.id);
  if (place < 0) return <Missing profile={props.profile} id={props.id} />;
  const hit = props.answer.hits[place]!;
  const strongest = hit.evidence.filter((one) => one.op === "add").sort((a, b) => Math.abs(b.value ?? 0) - Math.abs(a.value ?? 0))[0];
  return (
    <>
      <strong>#{place + 1}</strong> <span class="muted">score {score(hit.score)}</span>
      {strongest && (
        <div class="muted small">
          most from {partName(strongest.by)}: {strongest.why}
        </div>
      )}
    </>
  );
}

const LOOKING = "Looking for the reason …";

function Missing(props: { profile: string; id: string }) {
  const address = useAddress();
  const [told, setTold] = useState<string>(LOOKING);
  const asked = questionOf(address, { candidates: 0, profile: props.profile, id: props.id });
  const key = JSON.stringify(asked);
  useEffect(() => {
    const abort = new AbortController();
    setTold(LOOKING);
    call("POST /v1/inspect", asked!, abort.signal).then(
      (answer) => setTold(answer.why_not ? `${partName(answer.why_not.stage)}: ${answer.why_not.reason}` : ""),
      (error: unknown) => {
        if (error instanceof ApiError) setTold(error.message);
      },
    );
    return () => abort.abort();
  }, [key]);
  return (
    <>
      <Badge>not returned</Badge>
      <div class="muted small">{told}</div>
    </>
  );
}
