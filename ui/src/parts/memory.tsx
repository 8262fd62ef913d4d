// A memory in an answer: the same in the inspector and in the view of a recall.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { day, moment, percent, score, trustWords } from "../lib/format";
import { codePoint, oneLine, pieces } from "../lib/text";

export function Badge(props: { tone?: "good" | "warn" | "bad" | "accent" | ""; children: ComponentChildren; title?: string }) {
  return (
    <span class={`badge ${props.tone ?? ""}`} title={props.title} dir="auto">
      {props.children}
    </span>
  );
}

export function Meter(props: { share: number; label: string }) {
  const width = Math.max(0, Math.min(1, props.share)) * 100;
  return (
    <svg class="meter" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={props.label}>
      <rect width={width} height="10" />
    </svg>
  );
}

const LONG = 1200;

/** A memory's text: data, never markup; long ones are shown in part first. */
export function MemoryText(props: { text: string; words?: readonly string[]; clamp?: boolean }) {
  const [open, setOpen] = useState(false);
  const isLong = props.text.length > LONG;
  const shown = isLong && !open ? `${[...props.text.slice(0, LONG)].slice(0, -1).join("")}…` : props.text;
  return (
    <>
      <div class={props.clamp && !open ? "text clamp" : "text"} dir="auto">
        {pieces(shown, props.words).map((piece, place) =>
          piece.kind === "plain" ? (
            piece.text
          ) : piece.kind === "match" ? (
            <mark key={place}>{piece.text}</mark>
          ) : (
            <span key={place} class="hidden-char" title="A character that is not visible">
              {codePoint(piece.text)}
            </span>
          ),
        )}
      </div>
      {isLong && (
        <button type="button" class="button quiet small" onClick={() => setOpen(!open)} aria-expanded={open}>
          {open ? "Show less" : `Show all ${props.text.length.toLocaleString("en-GB")} characters`}
        </button>
      )}
    </>
  );
}

/** What is known about a memory beside its text. */
export interface Facts {
  text: string;
  words?: readonly string[];
  relevance: number | null;
  score: number | null;
  kind: string;
  topic: string | null;
  when: string;
  source: string | null;
  speaker?: string | null;
  audience?: string;
  trust: number;
  pinned: boolean;
  flags: readonly string[];
}

/** Where a memory comes from, as one phrase. */
function originOf(hit: Pick<Facts, "source" | "trust">): string {
  return `${oneLine(hit.source || "no source", 60)} (${trustWords(hit.trust)})`;
}

/** Where most of several memories come from: it is said once, and only others say their own. */
export function usualOrigin(hits: readonly Pick<Facts, "source" | "trust">[]): { words: string; count: number } | null {
  const counts = new Map<string, number>();
  for (const hit of hits) counts.set(originOf(hit), (counts.get(originOf(hit)) ?? 0) + 1);
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most && most[1] > 1 ? { words: most[0], count: most[1] } : null;
}

/** A memory with its rank, its text and its facts; what belongs to it goes below. */
export function Hit(props: {
  hit: Facts;
  rank: number | null;
  clamp?: boolean;
  /** What is said of all of them elsewhere. */
  usual?: string;
  actions?: ComponentChildren;
  facts?: ComponentChildren;
  children?: ComponentChildren;
}) {
  const { hit, rank } = props;
  return (
    <li class="hit">
      <span class="hit-rank">
        <span class="sr">{rank === null ? "Not returned" : "Rank "}</span>
        {rank ?? "–"}
      </span>
      <div class="stack-s">
        <div class="hit-head">
          <div class="grow">
            <MemoryText text={hit.text} words={hit.words} clamp={props.clamp} />
          </div>
          <div class="hit-score" title={`Score ${score(hit.score)}`}>
            {hit.relevance === null ? (
              <span class="score">score {score(hit.score)}</span>
            ) : (
              <>
                <span class="score">
                  {percent(hit.relevance)}
                  <span class="sr"> relevant</span>
                </span>
                <Meter share={hit.relevance} label={`Relevance ${percent(hit.relevance)}`} />
              </>
            )}
          </div>
        </div>
        <div class="hit-meta">
          {hit.speaker && <strong dir="auto">{oneLine(hit.speaker, 60)}</strong>}
          <span>{oneLine(hit.kind, 80)}</span>
          {hit.topic && <span dir="auto">{oneLine(hit.topic, 80)}</span>}
          <time dateTime={hit.when} title={moment(hit.when)}>
            {day(hit.when)}
          </time>
          {originOf(hit) !== props.usual && (
            <span title="Where it comes from, and how far that is trusted" dir="auto">
              {originOf(hit)}
            </span>
          )}
          {hit.audience && <Badge tone="accent">{hit.audience === "private" ? "only you" : `seen by ${oneLine(hit.audience, 60)}`}</Badge>}
          {hit.pinned && <Badge tone="accent">pinned</Badge>}
          {hit.flags.map((flag) => (
            <Badge key={flag} tone="warn">
              {oneLine(flag, 60)}
            </Badge>
          ))}
          {props.facts}
          {props.actions && <span class="hit-actions">{props.actions}</span>}
        </div>
        {props.children}
      </div>
    </li>
  );
}

const SIDES: Record<string, [string, string]> = {
  contradicts: ["contradicts", "is contradicted by"],
  supersedes: ["corrects", "is corrected by"],
};

/** How a memory is related to another one, in words. */
export function relationWords(type: string, inbound: boolean): string {
  return SIDES[type]?.[inbound ? 1 : 0] ?? `${inbound ? "is the target of " : ""}${type.replace(/_/g, " ")}`;
}
