// Graph: what surrounds a memory or an entity, drawn the same way every time, and as a table.
import { forceCenter, forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationLinkDatum, type SimulationNodeDatum } from "d3-force";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, type Answer } from "../lib/api";
import { count, plural, score } from "../lib/format";
import { partName } from "../lib/evidence";
import { placeLabels, type Point } from "../lib/labels";
import { useResource } from "../lib/resource";
import { oneLine } from "../lib/text";
import { link, memoryLink, useAddress } from "../lib/url";
import { useWidth } from "../lib/width";
import { Badge, Card, Empty, ErrorNote, Loading, Page } from "../parts/basics";

type Found = Answer<"GET /v1/graph">;
type Node = Found["nodes"][number];

type Entity = Answer<"GET /v1/entities">["entities"][number];
const MOST_ENTITIES = 200; // that the server tells of at once

export function Graph() {
  const address = useAddress();
  const listed = useResource("entities", (abort) => call("GET /v1/entities", { limit: MOST_ENTITIES }, abort));
  const entities = useMemo(() => [...(listed.data?.entities ?? [])].sort((a, b) => b.mentions - a.mentions), [listed.data]);
  // Without a choice: what is mentioned most.
  const node = address.get("node") || entities[0]?.id || "";
  const depth = Number(address.get("depth")) || 2;
  const limit = Number(address.get("limit")) || 60;
  const asked = useResource(node ? `graph ${node} ${depth} ${limit}` : null, (abort) =>
    call("GET /v1/graph", { node, depth, limit }, abort),
  );
  const found = { ...asked, data: useMemo(() => asked.data && named(asked.data, entities), [asked.data, entities]) };
  return (
    <Page title="Graph" lead="Memories and what they mention, linked.">
      <Picker />
      <Loading on={found.loading || listed.loading} />
      <ErrorNote error={found.error ?? listed.error} />
      {listed.data && !entities.length && !node && (
        <Card>
          <Empty>The memories mention no people, projects or things yet. The graph is made of what they name; links between memories can be made on the page of each.</Empty>
        </Card>
      )}
      {node && found.data && (
        <>
          <div class="row">
            <label class="row small muted">
              Steps
              <select class="input narrow" value={depth} onChange={(event) => address.set({ depth: event.currentTarget.value })}>
                {[1, 2, 3, 4].map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            <label class="row small muted">
              Most nodes
              <select class="input narrow" value={limit} onChange={(event) => address.set({ limit: event.currentTarget.value })}>
                {[30, 60, 150, 300].map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            <span class="muted small">
              {plural(found.data.nodes.length, "node")}, {plural(found.data.edges.length, "edge")}
              {found.data.more && ", and more"}
            </span>
          </div>
          <div class="columns">
            <Drawing found={found.data} />
            <Entities entities={entities} chosen={node} />
          </div>
          <Spread />
          <Table found={found.data} />
        </>
      )}
    </Page>
  );
}

function Picker() {
  const address = useAddress();
  const [text, setText] = useState(address.get("node"));
  useEffect(() => setText(address.get("node")), [address.get("node")]);
  return (
    <form
      class="search-row"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        address.set({ node: text.trim() });
      }}
    >
      <input
        class="input grow"
        type="search"
        data-search
        aria-label="Entity or id of a memory"
        placeholder="person:alice, topic:billing, or the id of a memory"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button class="button primary">Show</button>
    </form>
  );
}

/** Give entities the names that people wrote; ids are in lower case. */
function named(found: Found, entities: readonly Entity[]): Found {
  const names = new Map(entities.map((one) => [one.id, one.name]));
  return { ...found, nodes: found.nodes.map((node) => ({ ...node, label: names.get(node.id) ?? node.label })) };
}

const FEW = 12; // of a kind that are shown at first

/** What the memories mention, by kind, most mentioned first. */
function Entities(props: { entities: readonly Entity[]; chosen: string }) {
  const [open, setOpen] = useState("");
  const kinds = [...new Set(props.entities.map((one) => one.kind))];
  return (
    <Card title="Mentioned" class="entities">
      {kinds.map((kind) => {
        const all = props.entities.filter((one) => one.kind === kind);
        const shown = open === kind ? all : all.slice(0, FEW);
        return (
          <section key={kind}>
            <h3>
              <svg class="key" viewBox="0 0 12 12" aria-hidden="true">
                <rect class={`of-${hue(kind)}`} width="12" height="12" rx="3" />
              </svg>{" "}
              {kind}
            </h3>
            <ul>
              {shown.map((one) => (
                <li key={one.id}>
                  <a class="row nowrap-row" href={link("/graph", { node: one.id })} aria-current={one.id === props.chosen ? "true" : undefined} title={one.pace}>
                    <span class="line grow" dir="auto">
                      {oneLine(one.name, 60)}
                    </span>
                    <span class="muted small num">{count(one.mentions)}</span>
                  </a>
                </li>
              ))}
            </ul>
            {all.length > FEW && (
              <button type="button" class="button small quiet" onClick={() => setOpen(open === kind ? "" : kind)}>
                {open === kind ? "Fewer" : `${count(all.length - FEW)} more`}
              </button>
            )}
          </section>
        );
      })}
    </Card>
  );
}

const HUES: Record<string, number> = { person: 2, project: 3, tool: 4, file: 5, function: 5, topic: 3, concept: 3 };

/** The colour of a kind: the same everywhere. */
function hue(kind: string): number {
  return HUES[kind] ?? 1;
}

interface Placed extends SimulationNodeDatum {
  node: Node;
}

const WIDTH = 960;
const HEIGHT = 600;
const ROUNDS = 220;

/** Numbers that only depend on a seed: the same graph always looks the same. */
function seeded(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

/** Lay the graph out over several frames, so that the page stays alive; draw it when done. */
function useLayout(found: Found): Map<string, Placed> | null {
  const [placed, setPlaced] = useState<Map<string, Placed> | null>(null);
  useEffect(() => {
    const random = seeded(found.nodes.length * 31 + found.edges.length);
    const nodes: Placed[] = found.nodes.map((node, place) => {
      const angle = place * 2.399963;
      const away = node.hop * 90 + 6 * Math.sqrt(place);
      return { node, x: WIDTH / 2 + away * Math.cos(angle), y: HEIGHT / 2 + away * Math.sin(angle) };
    });
    const at = new Map(nodes.map((one) => [one.node.id, one]));
    const links: SimulationLinkDatum<Placed>[] = found.edges.map((edge) => ({ source: at.get(edge.from)!, target: at.get(edge.to)! }));
    const crowd = Math.max(1, Math.sqrt(nodes.length / 40));
    const simulation = forceSimulation(nodes)
      .randomSource(random)
      .force("link", forceLink<Placed, SimulationLinkDatum<Placed>>(links).distance(70 / crowd).strength(0.5))
      .force("charge", forceManyBody().strength(-260 / crowd).distanceMax(400))
      .force("collide", forceCollide(16 / Math.sqrt(crowd)))
      .force("x", forceX(WIDTH / 2).strength(0.05))
      .force("y", forceY(HEIGHT / 2).strength(0.09))
      .force("center", forceCenter(WIDTH / 2, HEIGHT / 2))
      .alphaDecay(1 - 0.001 ** (1 / ROUNDS))
      .stop();
    let round = 0;
    let frame = 0;
    const work = () => {
      const until = performance.now() + 12;
      while (round < ROUNDS && performance.now() < until) {
        simulation.tick();
        round += 1;
      }
      if (round < ROUNDS) frame = requestAnimationFrame(work);
      else setPlaced(at);
    };
    frame = requestAnimationFrame(work);
    return () => cancelAnimationFrame(frame);
  }, [found]);
  return placed;
}

function Drawing(props: { found: Found }) {
  const placed = useLayout(props.found);
  return placed ? <Picture found={props.found} placed={placed} /> : <div class="card graph-wait muted">Laying out …</div>;
}

/** Map the places of a layout into the picture; few nodes are not blown up. */
function fit(values: number[], from: number, to: number): (value: number) => number {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const scale = Math.min(1.8, (to - from) / Math.max(1, most - least));
  return (value) => (from + to) / 2 + (value - (least + most) / 2) * scale;
}

function Picture(props: { found: Found; placed: Map<string, Placed> }) {
  const address = useAddress();
  const svg = useRef<SVGSVGElement>(null);
  const wide = useWidth(svg);
  const chosen = address.get("follow");
  const narrow = wide < 600;
  const nodes = [...props.placed.values()];
  const high = Math.min(narrow ? 460 : 620, 280 + 12 * nodes.length);
  const points = useMemo(() => {
    const x = fit(nodes.map((one) => one.x!), narrow ? 30 : 90, wide - (narrow ? 60 : 150));
    const y = fit(nodes.map((one) => one.y!), 26, high - 26);
    const longest = narrow ? 18 : 34;
    return new Map<string, Point>(
      nodes.map(({ node, ...at }) => [node.id, { id: node.id, x: x(at.x!), y: y(at.y!), text: oneLine(node.label, longest) }]),
    );
  }, [props.placed, wide]);
  const labels = useMemo(() => {
    const near = new Set([chosen]);
    for (const edge of props.found.edges) {
      if (edge.from === chosen) near.add(edge.to);
      if (edge.to === chosen) near.add(edge.from);
    }
    const weight = ({ node }: Placed) =>
      node.hop === 0 || node.id === chosen ? 0 : near.has(node.id) ? 1 : node.what === "entity" ? 2 : 2 + node.hop;
    const order = [...nodes].sort((a, b) => weight(a) - weight(b)).map(({ node }) => points.get(node.id)!);
    return placeLabels([...points.values()], order, wide, high);
  }, [points, chosen]);
  return (
    <section class="card" aria-label="Drawing">
      <svg ref={svg} class="chart graph" viewBox={`0 0 ${wide} ${high}`} role="img" aria-label="The graph; the table below has the same nodes and edges">
        {props.found.edges.map((edge) => {
          const a = points.get(edge.from);
          const b = points.get(edge.to);
          if (!a || !b) return null;
          const on = edge.from === chosen || edge.to === chosen;
          return (
            <line key={`${edge.from} ${edge.to} ${edge.type}`} class={`edge ${edge.type === "mentions" ? "mentions" : "typed"} ${on ? "on" : ""}`} x1={a.x} y1={a.y} x2={b.x} y2={b.y}>
              <title>{edge.type.replace(/_/g, " ")}</title>
            </line>
          );
        })}
        {nodes.map(({ node }) => {
          const { x, y, text } = points.get(node.id)!;
          const label = labels.get(node.id);
          return (
            <g
              key={node.id}
              class={`node ${node.what} ${node.hop === 0 ? "start" : ""} ${node.id === chosen ? "on" : ""}`}
              transform={`translate(${x},${y})`}
              onClick={() => address.set({ follow: node.id === chosen ? null : node.id }, { replace: true })}
            >
              {node.what === "entity" ? <rect class={`of-${hue(node.kind)}`} x="-6" y="-6" width="12" height="12" rx="3" /> : <circle r={node.hop === 0 ? 8 : 6} />}
              {label && (
                <text x={label.x - x} y={label.y - y} font-size="12" text-anchor={label.anchor}>
                  {text}
                </text>
              )}
              <title>{oneLine(node.label, 160)}</title>
            </g>
          );
        })}
      </svg>
      <ul class="legend small muted">
        <li>
          <svg class="key" viewBox="0 0 12 12" aria-hidden="true">
            <circle class="of-memory" cx="6" cy="6" r="6" />
          </svg>
          memory
        </li>
        {[...new Set(nodes.filter(({ node }) => node.what === "entity").map(({ node }) => node.kind))].map((kind) => (
          <li key={kind}>
            <svg class="key" viewBox="0 0 12 12" aria-hidden="true">
              <rect class={`of-${hue(kind)}`} width="12" height="12" rx="3" />
            </svg>
            {kind}
          </li>
        ))}
        {[...new Set(props.found.edges.map((edge) => (edge.type === "mentions" ? "mentions" : "typed")))].map((type) => (
          <li key={type}>
            <svg class="key wide" viewBox="0 0 24 12" aria-hidden="true">
              <line class={`edge ${type}`} x1="0" x2="24" y1="6" y2="6" />
            </svg>
            {type === "mentions" ? "mentions" : [...new Set(props.found.edges.filter((edge) => edge.type !== "mentions").map((edge) => edge.type.replace(/_/g, " ")))].slice(0, 4).join(", ")}
          </li>
        ))}
      </ul>
      <p class="row small muted">
        <span>{chosen ? oneLine(props.placed.get(chosen)?.node.label ?? chosen, 120) : "Choose a node to see its name and edges."}</span>
        {chosen && <a href={link("/graph", { node: chosen })}>Put it in the middle</a>}
        {chosen && props.placed.get(chosen)?.node.what === "memory" && <a href={memoryLink(chosen)}>Open the memory</a>}
      </p>
    </section>
  );
}

/** Activation that spreads from the best matches of a question along links, hop by hop. */
function Spread() {
  const address = useAddress();
  const question = address.get("q");
  const [text, setText] = useState(question);
  const found = useResource(question ? `spread ${question}` : null, (abort) =>
    call("POST /v1/inspect", { query: question, profile: "remind", k: 20, candidates: 200 }, abort),
  );
  const steps = (found.data?.trace.steps ?? []).filter((step) => step.step === "fuse" || step.step.startsWith("expand."));
  let before = new Map<string, number>();
  return (
    <Card title="Activation for a question">
      <form
        class="search-row"
        onSubmit={(event) => {
          event.preventDefault();
          address.set({ q: text.trim() });
        }}
      >
        <input class="input grow" aria-label="Question whose activation spreads" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <button class="button">Spread</button>
      </form>
      <ErrorNote error={found.error} />
      {found.data && (
        <ol class="stack-s spread">
          {steps.map((step) => {
            const changed = step.candidates.filter((one) => one.score !== null && Math.abs((before.get(one.id) ?? 0) - one.score) > 1e-9);
            const old = before;
            before = new Map(step.candidates.map((one) => [one.id, one.score ?? 0]));
            return (
              <li key={step.step}>
                <h3>
                  {partName(step.step)}{" "}
                  <span class="muted small">
                    {changed.length ? `${plural(changed.length, "memory", "memories")} gained activation` : "nothing changed"}
                  </span>
                </h3>
                <ul>
                  {changed.slice(0, 8).map((one) => (
                    <li key={one.id} class="row small">
                      <Badge tone={old.has(one.id) ? "" : "accent"}>
                        {old.has(one.id) ? `${score(old.get(one.id))} → ` : ""}
                        {score(one.score)}
                      </Badge>
                      <a class="line grow" href={memoryLink(one.id)} dir="auto">
                        {oneLine(one.text, 110)}
                      </a>
                    </li>
                  ))}
                </ul>
              </li>
            );
          })}
        </ol>
      )}
    </Card>
  );
}

function Table(props: { found: Found }) {
  const labels = new Map(props.found.nodes.map((node) => [node.id, node]));
  const name = (id: string) => {
    const node = labels.get(id);
    const text = node ? oneLine(node.label, 80) : id;
    return node?.what === "memory" ? <a href={memoryLink(id)}>{text}</a> : <a href={link("/graph", { node: id })}>{text}</a>;
  };
  return (
    <Card title="The same as a table">
      <div class="scroll-x table-box" tabIndex={0} role="region" aria-label="Edges">
        <table class="waterfall fold" role="table">
          <caption class="sr">Edges of the graph</caption>
          <thead role="rowgroup">
            <tr role="row">
              <th scope="col" role="columnheader">From</th>
              <th scope="col" role="columnheader">Link</th>
              <th scope="col" role="columnheader">To</th>
              <th scope="col" role="columnheader" class="num">
                Weight
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {props.found.edges.map((edge) => (
              <tr role="row" key={`${edge.from} ${edge.to} ${edge.type}`}>
                <td role="cell" data-label="From">
                  {name(edge.from)}
                </td>
                <td role="cell" class="nowrap" data-label="Link">{edge.type.replace(/_/g, " ")}</td>
                <td role="cell" data-label="To">
                  {name(edge.to)}
                </td>
                <td role="cell" class="num" data-label="Weight">{score(edge.weight, 2)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
