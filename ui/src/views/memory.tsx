// One memory: what it says, where it comes from, how it changed, how it is used, what it is linked to.
import { Fragment } from "preact";
import { useRoute } from "preact-iso";
import { useState } from "preact/hooks";
import { ApiError, call, type Answer } from "../lib/api";
import { classWords, count, moment, plural, score, trustWords } from "../lib/format";
import { useResource } from "../lib/resource";
import { may } from "../lib/session";
import { diff, oneLine } from "../lib/text";
import { link, memoryLink, useAddress } from "../lib/url";
import { Badge, Card, Empty, ErrorNote, Loading, MemoryText, Menu, Page, tell, Time } from "../parts/basics";
import { Settle } from "../parts/settle";
import { actorName, conflicts } from "../lib/counts";
import { CorrectDialog, EraseDialog, ForgetDialog, LinkDialog } from "./memory-actions";

export type Item = Answer<"GET /v1/memories/{id}">["memory"];

export function Memory() {
  const { params } = useRoute();
  const id = decodeURIComponent(params.id ?? "");
  const found = useResource(`memory ${id}`, (abort) => call("GET /v1/memories/{id}", { id }, abort));
  const [turn, setTurn] = useState(0);
  const reload = () => {
    found.reload();
    setTurn((count) => count + 1);
  };
  const item = found.data?.memory ?? null;
  return (
    <Page title="Memory" lead={<span class="mono">{id}</span>} actions={item && <Actions item={item} onDone={reload} />}>
      <Loading on={found.loading} />
      <ErrorNote error={found.error} />
      {item && (
        <div class="columns" key={item.id}>
          <div class="stack">
            {conflicts.value
              .filter((one) => one.memory.id === item.id)
              .map((one) => (
                <Settle key={item.id} conflict={one} onDone={reload} />
              ))}
            <Text item={item} />
            <Revisions id={item.id} turn={turn} />
            <Links item={item} turn={turn} onDone={reload} />
            <Origin id={item.id} turn={turn} />
            <Around id={item.id} turn={turn} />
          </div>
          <div class="stack">
            <Facts item={item} />
            <Usage id={item.id} />
          </div>
        </div>
      )}
    </Page>
  );
}

function Text(props: { item: Item }) {
  const { item } = props;
  return (
    <section class="card stack-s" aria-label="Text">
      <p class="row">
        {item.speaker && <strong dir="auto">{oneLine(item.speaker, 60)}</strong>}
        <State item={item} />
        <Badge>{item.kind}</Badge>
        {item.topic && <Badge>{oneLine(item.topic, 60)}</Badge>}
        {item.pinned && <Badge tone="accent">pinned</Badge>}
        {item.flags.map((flag) => (
          <Badge key={flag} tone="warn">
            {flag}
          </Badge>
        ))}
      </p>
      <MemoryText text={item.text} />
      {item.caption && (
        <p class="muted text" dir="auto">
          {oneLine(item.caption, 400)}
        </p>
      )}
      {item.entities.length > 0 && (
        <p class="row">
          <span class="muted small">Mentions</span>
          {item.entities.map((entity) => (
            <a key={entity} class="badge accent" href={link("/memories", { entity })}>
              {oneLine(entity, 60)}
            </a>
          ))}
        </p>
      )}
    </section>
  );
}

export function State(props: { item: Item }) {
  const { item } = props;
  if (item.live_to) return <Badge tone="bad">forgotten {moment(item.live_to)}</Badge>;
  if (item.status !== "active") return <Badge tone="warn">{item.status}</Badge>;
  return <Badge tone="good">active</Badge>;
}

function Facts(props: { item: Item }) {
  const { item } = props;
  const facts: [string, preact.ComponentChildren][] = [
    ["Happened", <Time at={item.occurred_at} />],
    ["Stored", <Time at={item.stored_at} />],
    ["Revision", `${item.rev}, since ${moment(item.live_from)}`],
    ["Source", oneLine(item.source || "–", 200)],
    ["Written by", `${actorName(item.writer) || "–"} (${item.source_class})`],
    ["Trust", `${trustWords(item.trust)} (${item.trust} of 3)`],
    ["Class", classWords(item.classification)],
    ["Importance", score(item.importance, 2)],
    ["Confidence", score(item.confidence, 2)],
    ["Tokens", count(item.tokens)],
  ];
  const optional: [string, preact.ComponentChildren][] = [
    ["Speaker", item.speaker],
    ["Session", item.session && <a href={link("/memories", { session: item.session })}>{oneLine(item.session, 60)}</a>],
    ["Layer", item.layer],
    ["Level", item.level !== "item" && item.level],
    ["Subject", item.subject && `${item.subject}${item.attribute ? `: ${item.attribute}` : ""}`],
    ["Valid until", item.valid_to && <Time at={item.valid_to} />],
    ["Tags", item.tags.length > 0 && item.tags.map((tag) => oneLine(tag, 40)).join(", ")],
    ["Language", item.language],
    ["Ended by", item.ended_by],
  ];
  return (
    <Card title="Facts">
      <dl class="facts">
        {[...facts, ...optional.filter(([, value]) => value)].map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd dir="auto">{value}</dd>
          </>
        ))}
      </dl>
    </Card>
  );
}

function Revisions(props: { id: string; turn: number }) {
  const found = useResource(`history ${props.id} ${props.turn}`, (abort) =>
    call("GET /v1/memories/{id}/history", { id: props.id, limit: 50 }, abort),
  );
  const revisions = found.data?.revisions ?? [];
  return (
    <Card title="Revisions" class={revisions.length < 2 ? "flat" : ""}>
      <ErrorNote error={found.error} />
      {revisions.length < 2 ? (
        <Empty>It was never corrected.</Empty>
      ) : (
        <ol class="stack-s">
          {revisions.map((revision, place) => {
            const before = place ? revisions[place - 1]!.text : null;
            return (
              <li key={revision.rev} class="revision">
                <p class="muted small">
                  Revision {revision.rev}, {moment(revision.from)}
                  {revision.to && ` to ${moment(revision.to)}`}
                </p>
                {before === null ? <MemoryText text={revision.text} clamp /> : <Changed before={before} after={revision.text} />}
              </li>
            );
          })}
        </ol>
      )}
    </Card>
  );
}

function Changed(props: { before: string; after: string }) {
  if (props.before === props.after) return <p class="muted small">The text stayed; other fields were changed.</p>;
  return (
    <p class="text" dir="auto">
      {diff(props.before, props.after).map((part, place, parts) =>
        part.kind === "same" ? (
          part.text
        ) : part.kind === "added" ? (
          <Fragment key={place}>
            {parts[place - 1]?.kind === "removed" && <span class="muted"> → </span>}
            <ins class="added">{part.text}</ins>
          </Fragment>
        ) : (
          <del key={place} class="removed">
            {part.text}
          </del>
        ),
      )}
    </p>
  );
}

function Links(props: { item: Item; turn: number; onDone: () => void }) {
  const { id } = props.item;
  const found = useResource(`links ${id} ${props.turn}`, (abort) => call("GET /v1/memories/{id}/links", { id, limit: 200 }, abort));
  const links = found.data?.links ?? [];
  // One request for the texts of all of them.
  const near = useResource(links.length ? `near ${id} ${props.turn}` : null, (abort) =>
    call("GET /v1/graph", { node: id, depth: 1, limit: 300 }, abort),
  );
  const labels = new Map(near.data?.nodes.map((node) => [node.id, node.label]));
  const remove = async (relation: string, other: string) => {
    try {
      await call("POST /v1/memories/{id}/links", { id, relation: relation as "implies", other, remove: true });
      tell("The link is removed.");
      props.onDone();
    } catch (error) {
      if (error instanceof ApiError) tell(error.message);
      else throw error;
    }
  };
  return (
    <Card title="Links" class={links.length ? "" : "flat"}>
      <ErrorNote error={found.error} />
      {!links.length && <Empty>It has no links to other memories.</Empty>}
      {links.length > 0 && (
        <ul class="stack-s">
          {links.map((one) => {
            const outgoing = one.from.id === id;
            const other = outgoing ? one.to : one.from;
            return (
              <li key={`${one.from.id} ${one.type} ${one.to.id}`} class="link-row">
                <Badge>
                  {outgoing ? "" : "← "}
                  {one.type.replace(/_/g, " ")}
                  {outgoing ? " →" : ""}
                </Badge>
                <a class="line" href={memoryLink(other.id)} dir="auto">
                  {oneLine(labels.get(other.id) ?? other.id, 140)}
                </a>
                <span class="muted small nowrap">
                  {score(one.weight, 2)} · {one.source}
                </span>
                {outgoing && may("link") && (
                  <button type="button" class="button small quiet" onClick={() => void remove(one.type, other.id)}>
                    Remove
                  </button>
                )}
              </li>
            );
          })}
        </ul>
      )}
      {Boolean(found.data?.left_out) && <p class="muted small">{plural(found.data!.left_out, "more link")}</p>}
    </Card>
  );
}

interface Edge {
  depth: number;
  type: string;
  to: { id: string; kind: string };
  text: string | null;
}

function Origin(props: { id: string; turn: number }) {
  const found = useResource(`origin ${props.id} ${props.turn}`, (abort) => call("POST /v1/explain", { id: props.id }, abort));
  const edges = ((found.data?.details.edges as Edge[] | undefined) ?? []).slice(0, 60);
  return (
    <Card title="Where it comes from" class={edges.length ? "" : "flat"}>
      <ErrorNote error={found.error} />
      {!edges.length && <Empty>It is not derived from another memory.</Empty>}
      {edges.length > 0 && (
        <ul class="stack-s">
          {edges.map((edge, place) => (
            <li key={place} class={`row nowrap-row depth-${Math.min(edge.depth, 5)}`}>
              <Badge>{edge.type.replace(/_/g, " ")}</Badge>
              {edge.text === null ? (
                <span class="mono line grow">{edge.to.id}</span>
              ) : (
                <a class="line grow" href={memoryLink(edge.to.id)} dir="auto">
                  {oneLine(edge.text, 140)}
                </a>
              )}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Around(props: { id: string; turn: number }) {
  const found = useResource(`around ${props.id} ${props.turn}`, (abort) => call("GET /v1/memories/{id}/timeline", { id: props.id, window: 4 }, abort));
  const memories = found.data?.memories ?? [];
  if (memories.length < 2) return null;
  return (
    <Card title="Before and after">
      <ol class="stack-s">
        {memories.map((memory) => (
          <li key={memory.id} class="dated">
            <span class="muted small nowrap">{moment(memory.when)}</span>
            {memory.id === props.id ? (
              <strong class="line grow" dir="auto">
                {memory.speaker && `${oneLine(memory.speaker, 30)}: `}
                {oneLine(memory.text, 140)}
              </strong>
            ) : (
              <a class="line grow" href={memoryLink(memory.id)} dir="auto">
                {memory.speaker && <span class="muted">{oneLine(memory.speaker, 30)}: </span>}
                {oneLine(memory.text, 140)}
              </a>
            )}
          </li>
        ))}
      </ol>
    </Card>
  );
}

const WEEKS = 26;
const WEEK = 604_800_000;

function Usage(props: { id: string }) {
  const used = useResource(`usage ${props.id}`, (abort) => call("GET /v1/memories/{id}/usage", { id: props.id }, abort)).data;
  if (!used) return null;
  const now = Date.now();
  const weeks = new Array<number>(WEEKS).fill(0);
  for (const stamp of used.stamps) {
    const place = WEEKS - 1 - Math.floor((now - new Date(stamp).getTime()) / WEEK);
    if (place >= 0 && place < WEEKS) weeks[place]! += 1;
  }
  const most = Math.max(1, ...weeks);
  return (
    <Card title="Use">
      <div class="stack-s">
        <p>
          {used.recalls ? `Recalled ${plural(used.recalls, "time")}` : "Never recalled"}
          {used.last_at && <span class="muted">, last {moment(used.last_at)}</span>}
        </p>
        {used.recalls > 0 && (
          <figure>
            <svg class="chart" viewBox="0 0 260 60" role="img" aria-label={`Recalls by week: ${used.in_30_days} in 30 days, ${used.in_90_days} in 90 days`}>
              <line class="grid" x1="0" x2="260" y1="50.5" y2="50.5" />
              {weeks.map((times, place) => (
                <rect key={place} class="bar" x={place * 10 + 1} width="8" y={50 - (times / most) * 46} height={(times / most) * 46} />
              ))}
              <text class="axis" x="0" y="60" font-size="9">
                26 weeks ago
              </text>
              <text class="axis" x="260" y="60" font-size="9" text-anchor="end">
                now
              </text>
            </svg>
            <figcaption class="muted small">
              {plural(used.in_30_days, "recall")} in 30 days, {count(used.in_90_days)} in 90; the last {count(used.stamps.length)} are drawn
            </figcaption>
          </figure>
        )}
      </div>
    </Card>
  );
}

type Open = "correct" | "link" | "forget" | "erase" | "";

function Actions(props: { item: Item; onDone: () => void }) {
  const { item, onDone } = props;
  const address = useAddress();
  const open = address.get("do") as Open;
  const setOpen = (which: Open) => address.set({ do: which || null }, { replace: true });
  const done = (told: string, undoable = true) => {
    setOpen("");
    tell(told, undoable && may("undo") ? { label: "Undo", run: () => void undo() } : undefined);
    onDone();
  };
  const attempt = async (work: () => Promise<string>) => {
    try {
      done(await work());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      tell(`${error.message}${error.remedy ? ` (${error.remedy})` : ""}`);
    }
  };
  const undo = () =>
    attempt(async () => {
      const undone = await call("POST /v1/undo", { id: item.id });
      return `Undone: ${undone.doing}.`;
    });
  const isForgotten = item.live_to !== null;
  return (
    <>
      {may("update_memory") && !isForgotten && (
        <>
          <button type="button" class="button" onClick={() => setOpen("correct")}>
            Correct
          </button>
          <button
            type="button"
            class="button"
            onClick={() =>
              void attempt(async () => {
                await call("PATCH /v1/memories/{id}", { id: item.id, pinned: !item.pinned });
                return item.pinned ? "No longer pinned." : "Pinned: it is never tidied away.";
              })
            }
          >
            {item.pinned ? "Unpin" : "Pin"}
          </button>
        </>
      )}
      {may("forget") && !isForgotten && (
        <button type="button" class="button" onClick={() => setOpen("forget")}>
          Forget
        </button>
      )}
      {may("restore") && isForgotten && (
        <button
          type="button"
          class="button primary"
          onClick={() =>
            void attempt(async () => {
              await call("POST /v1/restore", { ids: [item.id] });
              return "Restored.";
            })
          }
        >
          Restore
        </button>
      )}
      <Menu label="More">
        <a class="button quiet" href={link("/graph", { node: item.id })}>
          Show in the graph
        </a>
        {may("link") && !isForgotten && (
          <button type="button" class="button quiet" onClick={() => setOpen("link")}>
            Link to another …
          </button>
        )}
        {may("undo") && (
          <button type="button" class="button quiet" onClick={() => void undo()}>
            Undo the last change
          </button>
        )}
        {may("forget with erase") && (
          <button type="button" class="button quiet danger" onClick={() => setOpen("erase")}>
            Erase for good …
          </button>
        )}
      </Menu>
      <CorrectDialog item={item} open={open === "correct"} onClose={() => setOpen("")} onDone={done} />
      <LinkDialog item={item} open={open === "link"} onClose={() => setOpen("")} onDone={done} />
      <ForgetDialog item={item} open={open === "forget"} onClose={() => setOpen("")} onDone={done} />
      <EraseDialog item={item} open={open === "erase"} onClose={() => setOpen("")} />
    </>
  );
}

