// Ask: a question, its answer, why each memory is in it, and why another one is not.
import { useEffect, useState } from "preact/hooks";
import { call } from "../lib/api";
import { count, milliseconds, percent, plural, score, statusWords } from "../lib/format";
import { questionOf, useInspected, type Hit as InspectedHit, type Inspected } from "../lib/question";
import { useResource } from "../lib/resource";
import { oneLine } from "../lib/text";
import { link, memoryLink, useAddress } from "../lib/url";
import { Badge, Card, Empty, ErrorNote, Loading, MemoryText, Page } from "../parts/basics";
import { partName } from "../lib/evidence";
import { Hit, relationWords } from "../parts/memory";
import { QuestionForm } from "../parts/question";
import { EvidenceWaterfall, ReasonBars } from "../parts/waterfall";

export function Ask() {
  const address = useAddress();
  const subject = address.get("why");
  const asked = questionOf(address, { candidates: 0, ...(subject && { id: subject }) });
  const { data, error, loading } = useInspected(asked);
  return (
    <Page title="Ask" lead="What would be remembered, and why.">
      <QuestionForm />
      <Loading on={loading} />
      <ErrorNote error={error} />
      {!asked && <Welcome />}
      {asked && data && (
        <>
          <Tier answer={data} />
          <Notes answer={data} />
          <div class="columns">
            <Hits answer={data} />
            <div class="stack">
              <Context answer={data} />
              <WhyNot answer={data} />
            </div>
          </div>
        </>
      )}
    </Page>
  );
}

function Welcome() {
  const stats = useResource("stats", (abort) => call("GET /v1/stats", {}, abort)).data;
  const newest = useResource("newest", (abort) => call("GET /v1/memories", { limit: 5 }, abort)).data;
  if (!stats) return null;
  return (
    <Card title={stats.memories ? `${plural(stats.memories, "memory", "memories")} in ${stats.space}` : "Nothing is stored yet"}>
      {stats.memories ? (
        <div class="stack-s">
          <p class="muted">Ask a question above, or look at what was stored last.</p>
          <ul class="stack-s">
            {newest?.memories.map((memory) => (
              <li key={memory.id} class="row">
                <a class="line grow" href={memoryLink(memory.id)} dir="auto">
                  {oneLine(memory.text, 160)}
                </a>
                <Badge>{memory.kind}</Badge>
              </li>
            ))}
          </ul>
        </div>
      ) : (
        <p class="muted">
          Store something first: <code>bethink remember "The release is on Tuesdays"</code>, or look at a sample with{" "}
          <code>bethink demo --keep</code> and <code>bethink ui --space demo</code>.
        </p>
      )}
    </Card>
  );
}

const TONES: Record<string, "good" | "warn" | ""> = { found: "good", unsure: "warn" };

function Tier(props: { answer: Inspected }) {
  const address = useAddress();
  const { status, confidence, reason, trace, hits, total } = props.answer;
  const [name, meaning] = statusWords(status);
  return (
    <section class="card stack-s" aria-label="What is stored on this subject">
      <div class="tier">
        <Badge tone={TONES[status] ?? ""}>
          <strong>{name}</strong>
        </Badge>
        {props.answer.query.text && <span>{meaning}</span>}
        <span class="muted">
          {plural(hits.length, "memory", "memories")} of {count(total)}, {milliseconds(trace.milliseconds)}, profile{" "}
          {props.answer.profile}; {reason}
        </span>
        <span class="row">
          <a href={link("/trace", address.search)}>Trace</a>
          <a href={link("/compare", { q: address.get("q") })}>Compare</a>
        </span>
      </div>
      {props.answer.confidence_reasons.length > 0 && (
        <details>
          <summary class="muted small">Why: confidence {percent(confidence)} that something stored is on this subject</summary>
          <ReasonBars reasons={props.answer.confidence_reasons} />
        </details>
      )}
    </section>
  );
}

function Notes(props: { answer: Inspected }) {
  const { warnings, degraded } = props.answer;
  if (!warnings.length && !degraded.length) return null;
  return (
    <div class="notice warn stack-s">
      {degraded.map((part) => (
        <p key={part.part}>
          Answered without <strong>{partName(part.part)}</strong>: {part.reason}
        </p>
      ))}
      {warnings.map((warning) => (
        <p key={warning} class="text" dir="auto">
          {oneLine(warning, 400)}
        </p>
      ))}
    </div>
  );
}

function Hits(props: { answer: Inspected }) {
  const { hits, nearest_miss: miss } = props.answer;
  return (
    <Card title="Memories">
      {hits.length ? (
        <ol>
          {hits.map((hit, place) => (
            <HitRow key={hit.id} hit={hit} rank={place + 1} />
          ))}
        </ol>
      ) : (
        <div class="stack-s">
          <Empty>No memory is returned: {props.answer.reason}.</Empty>
          {miss && (
            <>
              <h3>Nearest</h3>
              <MemoryText text={miss.text} clamp />
              <p class="hit-meta">
                <span>relevance {percent(miss.relevance)}</span>
                <a href={memoryLink(miss.id)}>Open</a>
              </p>
            </>
          )}
        </div>
      )}
    </Card>
  );
}

function HitRow(props: { hit: InspectedHit; rank: number }) {
  const { hit, rank } = props;
  const address = useAddress();
  const isOpen = address.all("open").includes(hit.id);
  const toggle = () => address.set({ open: isOpen ? null : hit.id }, { replace: true });
  const actions = (
    <>
      <button type="button" class="button small" aria-expanded={isOpen} onClick={toggle} title="How the score came about">
        {isOpen ? "Hide" : "Evidence"}
        <span class="sr"> of rank {rank}</span>
      </button>
      <a class="button small" href={memoryLink(hit.id)}>
        Open<span class="sr"> memory {rank}</span>
      </a>
    </>
  );
  const facts = (
    <>
      {!hit.in_context && <Badge tone="warn">not in the agent's text</Badge>}
      {hit.passage && (
        <Badge title="Only the best passage of a long memory is shown">
          {hit.passage.tokens} of {count(hit.passage.of_tokens)} tokens
        </Badge>
      )}
    </>
  );
  return (
    <Hit hit={hit} rank={rank} clamp actions={actions} facts={facts}>
      {hit.see_newer && (
        <p class="small">
          A newer memory is about the same: <a href={memoryLink(hit.see_newer)}>see it</a>
        </p>
      )}
      {hit.relations.map((relation) => (
        <p key={relation.type + relation.other} class="small">
          <strong>{relationWords(relation.type, relation.inbound)}</strong>:{" "}
          <a href={memoryLink(relation.other)}>{oneLine(relation.text, 120)}</a>
        </p>
      ))}
      {isOpen && <EvidenceWaterfall evidence={hit.evidence} score={hit.score} caption={`Evidence of rank ${rank}`} />}
    </Hit>
  );
}

function Context(props: { answer: Inspected }) {
  const { text, tokens } = props.answer.context;
  return (
    <Card title="What an agent gets">
      <p class="muted small">
        {plural(tokens, "token")} of at most {count(props.answer.query.max_tokens)}, exactly as the recall tool returns it.
      </p>
      <pre class="pre" dir="auto" tabIndex={0}>
        {text}
      </pre>
    </Card>
  );
}

function WhyNot(props: { answer: Inspected }) {
  const address = useAddress();
  const [words, setWords] = useState("");
  const [search, setSearch] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSearch(words.trim()), 180);
    return () => clearTimeout(timer);
  }, [words]);
  const found = useResource(search ? `pick ${search}` : null, (abort) =>
    call("POST /v1/recall", { query: search, k: 6, min_confidence: 0, min_relevance: 0, mark_accessed: false }, abort),
  );
  const judged = props.answer.why_not;
  return (
    <Card title="Why not another one?">
      <div class="stack-s">
        <label class="field">
          Words or id of a memory that you expected
          <input class="input" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
        {found.data && search && (
          <ul class="stack-s">
            {found.data.memories.map((memory) => (
              <li key={memory.id}>
                <button
                  type="button"
                  class="button small quiet pick"
                  onClick={() => {
                    address.set({ why: memory.id }, { replace: true });
                    setWords("");
                  }}
                >
                  <span class="line" dir="auto">
                    {oneLine(memory.text, 90)}
                  </span>
                </button>
              </li>
            ))}
            {!found.data.memories.length && (
              <li>
                <button type="button" class="button small quiet" onClick={() => address.set({ why: search }, { replace: true })}>
                  Use “{oneLine(search, 40)}” as an id
                </button>
              </li>
            )}
          </ul>
        )}
        {judged && <Judged judged={judged} answer={props.answer} />}
      </div>
    </Card>
  );
}

export function Judged(props: { judged: NonNullable<Inspected["why_not"]>; answer: Inspected }) {
  const { judged } = props;
  const address = useAddress();
  return (
    <div class="stack-s">
      <p class="line" dir="auto">
        <a href={memoryLink(judged.id)}>{oneLine(judged.text, 140)}</a>
      </p>
      <p>
        {judged.returned ? (
          <Badge tone="good">in the answer</Badge>
        ) : (
          <>
            <Badge tone="warn">fell out at {partName(judged.stage)}</Badge>
          </>
        )}
      </p>
      <p>{judged.reason}.</p>
      {judged.score !== null && !judged.returned && (
        <p class="muted small">
          Its score there was {score(judged.score)}
          {judged.needed !== null && `; the last one that stayed had ${score(judged.needed)}`}.
        </p>
      )}
      {judged.channels.length > 0 && (
        <table class="waterfall">
          <caption class="sr">How each retriever sees it</caption>
          <thead>
            <tr>
              <th scope="col">Retriever</th>
              <th scope="col" class="num">
                Score
              </th>
              <th scope="col" class="num">
                Needed
              </th>
            </tr>
          </thead>
          <tbody>
            {judged.channels.map((look) => (
              <tr key={look.channel}>
                <td>
                  {partName(`channel.${look.channel}`)}
                  <div class="muted small">{look.why}</div>
                </td>
                <td class="num">{score(look.score)}</td>
                <td class="num">{score(look.needed)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {judged.remedy && (
        <p class="notice">
          To have it in the answer: <strong>{judged.remedy}</strong>.
        </p>
      )}
      <div>
        <button type="button" class="button small quiet" onClick={() => address.set({ why: null }, { replace: true })}>
          Clear
        </button>
      </div>
    </div>
  );
}
