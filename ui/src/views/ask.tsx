// Ask: a question, its answer, why each memory is in it, and why another one is not.
import { useEffect, useState } from "preact/hooks";
import { ApiError, call, forPeople } from "../lib/api";
import { count, milliseconds, percent, plural, score, statusWords } from "../lib/format";
import { FILTERS, questionOf, useInspected, type Hit as InspectedHit, type Inspected } from "../lib/question";
import { useResource } from "../lib/resource";
import { drop, loadSaved, save, saved, savedOf, saveQuestionsFile } from "../lib/saved";
import { may, session } from "../lib/session";
import { oneLine } from "../lib/text";
import { link, memoryLink, useAddress } from "../lib/url";
import { Badge, Card, Empty, ErrorNote, Loading, MemoryText, Page, tell } from "../parts/basics";
import { partName } from "../lib/evidence";
import { Hit, relationWords, usualOrigin } from "../parts/memory";
import { QuestionForm } from "../parts/question";
import { EvidenceWaterfall, ReasonBars } from "../parts/waterfall";

export function Ask() {
  const address = useAddress();
  const subject = address.get("why");
  const asked = questionOf(address, { candidates: 0, ...(subject && { id: subject }) });
  const { data, error, loading } = useInspected(asked);
  useEffect(() => void loadSaved(), []);
  return (
    <Page title="Ask" lead="What would be remembered, and why.">
      <QuestionForm />
      <Loading on={loading} />
      <ErrorNote error={error} />
      {!asked && (
        <>
          <SavedQuestions />
          <Welcome />
        </>
      )}
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

const SHOWN = 8;

function SavedQuestions() {
  const [all, setAll] = useState(false);
  const questions = saved.value ?? [];
  if (!questions.length) return null;
  const marked = questions.filter((one) => one.relevant !== null).length;
  return (
    <Card title="Saved questions">
      <ul class="rows">
        {questions.slice(0, all ? undefined : SHOWN).map((one) => (
          <li key={one.query} class="row nowrap-row">
            <a class="line grow" href={link("/ask", { ...(one.filters as Record<string, string>), q: one.query })} dir="auto">
              {oneLine(one.query, 160)}
            </a>
            <span class="muted small nowrap">
              {one.relevant === null ? "not judged" : one.relevant.length ? `${count(one.relevant.length)} right` : "no answer stored"}
            </span>
            {may("save_question") && (
              <button type="button" class="button small quiet" aria-label={`Remove ${oneLine(one.query, 60)}`} onClick={() => void attempt(() => drop(one.query))}>
                ✕
              </button>
            )}
          </li>
        ))}
      </ul>
      <p class="row small muted after">
        {questions.length > SHOWN && (
          <button type="button" class="button small" onClick={() => setAll(!all)}>
            {all ? "Fewer" : `All ${count(questions.length)}`}
          </button>
        )}
        {marked > 0 && (
          <>
            <button type="button" class="button small" onClick={saveQuestionsFile}>
              Download {plural(marked, "judged question")}
            </button>
            <span>
              <code>bethink eval jsonl --space {session.value?.space}</code> measures with them, <code>bethink tune jsonl --space {session.value?.space} --out mine.toml</code> searches better weights with them.
            </span>
          </>
        )}
      </p>
    </Card>
  );
}

/** Work that may be refused: the refusal is told. */
async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    tell(error.message);
  }
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
          <ul class="rows">
            {newest?.memories.map((memory) => (
              <li key={memory.id} class="row nowrap-row">
                <a class="line grow" href={memoryLink(memory.id)} dir="auto">
                  {memory.speaker && <strong>{oneLine(memory.speaker, 30)}: </strong>}
                  {oneLine(memory.text, 160)}
                </a>
                <span class="muted small nowrap">{memory.kind}</span>
              </li>
            ))}
          </ul>
        </div>
      ) : (
        <div class="stack-s">
          <p class="muted">
            A memory is one fact, decision or event in plain words. Agents store them by themselves once they are connected (<code>bethink install codex</code>, for example);
            a sample is there after <code>bethink demo --keep</code>.
          </p>
          {may("remember") && (
            <p class="row">
              <a class="button primary" href={link("/memories", { do: "add" })}>
                Add a memory
              </a>
              <a class="button" href={link("/memories", { do: "import" })}>
                Import a file
              </a>
            </p>
          )}
        </div>
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
        <span class="row tier-links">
          <SaveButton answer={props.answer} />
          <a class="button small" href={link("/trace", address.search)}>
            Trace
          </a>
          <a class="button small" href={link("/compare", { q: address.get("q") })}>
            Compare
          </a>
        </span>
      </div>
      <p class="muted small">
        {hits.length < total ? `${count(hits.length)} of ${plural(total, "memory", "memories")} that passed every step` : reason},{" "}
        {milliseconds(trace.milliseconds)}, profile {props.answer.profile}
      </p>
      {props.answer.confidence_reasons.length > 0 && (
        <details>
          <summary class="muted small">
            {percent(confidence)} sure that something is stored on this subject. Why?
          </summary>
          <ReasonBars reasons={props.answer.confidence_reasons} />
        </details>
      )}
    </section>
  );
}

/** What is said of the answers to this question, and how to change it. */
function useMarks(answer: Inspected) {
  const address = useAddress();
  const query = answer.query.text;
  const filters = Object.fromEntries(FILTERS.filter((name) => address.get(name)).map((name) => [name, address.get(name)]));
  const known = savedOf(query);
  const set = (marks: { relevant: string[] | null; wrong: string[] }) => attempt(() => save(query, filters, marks));
  const mark = (id: string, as: "right" | "wrong") => {
    const right = (known?.relevant ?? []).filter((one) => one !== id);
    const wrong = (known?.wrong ?? []).filter((one) => one !== id);
    const was = known?.relevant?.includes(id) ? "right" : known?.wrong.includes(id) ? "wrong" : "";
    if (as !== was) (as === "right" ? right : wrong).push(id);
    return set({ relevant: right.length ? right : null, wrong });
  };
  return { query, known, set, mark, can: may("save_question") && query !== "" && saved.value !== null };
}

function SaveButton(props: { answer: Inspected }) {
  const { query, known, set, can } = useMarks(props.answer);
  if (!can) return null;
  return (
    <button
      type="button"
      class="button small"
      aria-pressed={Boolean(known)}
      onClick={() => void (known ? attempt(() => drop(query)) : set({ relevant: null, wrong: [] }))}
    >
      {known ? "★ Saved" : "☆ Save"}
    </button>
  );
}

/** Say that nothing stored answers the question: abstaining is then right. */
function NoAnswer(props: { answer: Inspected }) {
  const { known, set, can } = useMarks(props.answer);
  if (!can || known?.relevant?.length) return null;
  const said = known?.relevant !== undefined && known.relevant !== null;
  return (
    <p class="row small muted after">
      <label class="check">
        <input type="checkbox" checked={said} onChange={() => void set({ relevant: said ? null : [], wrong: known?.wrong ?? [] })} />
        Nothing that is stored answers this question
      </label>
    </p>
  );
}

function Notes(props: { answer: Inspected }) {
  const { warnings, degraded } = props.answer;
  if (!warnings.length && !degraded.length) return null;
  return (
    <div class="notice warn stack-s">
      {degraded.map((part) => (
        <p key={part.part}>
          {part.part !== "store" && (
            <>
              Answered without <strong>{partName(part.part)}</strong>:{" "}
            </>
          )}
          {forPeople(part.reason)}
        </p>
      ))}
      {warnings.map((warning) => (
        <p key={warning} class="text" dir="auto">
          {oneLine(forPeople(warning), 400)}
        </p>
      ))}
    </div>
  );
}

function Hits(props: { answer: Inspected }) {
  const { hits, nearest_miss: miss } = props.answer;
  const usual = usualOrigin(hits);
  return (
    <Card
      title={
        <>
          {plural(hits.length, "memory", "memories")}
          {usual && (
            <span class="muted small aside" dir="auto">
              {usual.count === hits.length ? "all" : "most"} from {usual.words}
            </span>
          )}
        </>
      }
    >
      {hits.length ? (
        <ol>
          {hits.map((hit, place) => (
            <HitRow key={hit.id} hit={hit} rank={place + 1} usual={usual?.words ?? ""} answer={props.answer} />
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
      <NoAnswer answer={props.answer} />
    </Card>
  );
}

function HitRow(props: { hit: InspectedHit; rank: number; usual: string; answer: Inspected }) {
  const { hit, rank } = props;
  const address = useAddress();
  const { known, mark, can } = useMarks(props.answer);
  const [isRight, isWrong] = [Boolean(known?.relevant?.includes(hit.id)), Boolean(known?.wrong.includes(hit.id))];
  const isOpen = address.all("open").includes(hit.id);
  const toggle = () => address.set({ open: isOpen ? null : hit.id }, { replace: true });
  const actions = (
    <>
      {can && (
        <>
          <button type="button" class="button small quiet mark good" aria-pressed={isRight} title="It answers the question" onClick={() => void mark(hit.id, "right")}>
            ✓ Right<span class="sr"> at rank {rank}</span>
          </button>
          <button type="button" class="button small quiet mark bad" aria-pressed={isWrong} title="It does not answer the question" onClick={() => void mark(hit.id, "wrong")}>
            ✗ Wrong<span class="sr"> at rank {rank}</span>
          </button>
        </>
      )}
      <button type="button" class="button small quiet" aria-expanded={isOpen} onClick={toggle} title="How the score came about">
        {isOpen ? "Hide" : "Evidence"}
        <span class="sr"> of rank {rank}</span>
      </button>
      <a class="button small quiet" href={memoryLink(hit.id)}>
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
    <Hit hit={hit} rank={rank} usual={props.usual} clamp actions={actions} facts={facts}>
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
      <p>{forPeople(judged.reason)}.</p>
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
                  <div class="muted small">{forPeople(look.why)}</div>
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
          To have it in the answer: <strong>{forPeople(judged.remedy)}</strong>.
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
