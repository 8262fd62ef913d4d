// A score is its evidence: replaying the evidence gives the score.
export interface Evidence {
  by: string;
  op: "seen" | "add" | "times" | "set";
  value: number | null;
  why: string;
  via?: string;
  rank?: number;
}

/** One piece of evidence with the score before and after it. */
export interface Stage {
  evidence: Evidence;
  before: number;
  after: number;
}

export function replay(evidence: readonly Evidence[]): Stage[] {
  let score = 0;
  return evidence.map((one) => {
    const before = score;
    const value = one.value ?? 0;
    if (one.op === "add") score += value;
    else if (one.op === "times") score *= value;
    else if (one.op === "set") score = value;
    return { evidence: one, before, after: score };
  });
}

const NAMES: Record<string, string> = {
  "channel.lexical": "Words",
  "channel.dense": "Meaning",
  "channel.entity": "Entities",
  "channel.graph": "Links",
  "channel.temporal": "Time",
  "fuse.lexical": "Rank by words",
  "fuse.dense": "Rank by meaning",
};

/** A part's name as people read it. */
export function partName(by: string): string {
  const known = NAMES[by];
  if (known) return known;
  const [slot, ...rest] = by.split(".");
  const group = slot === "channel" ? "retriever" : slot;
  const words = (rest.length ? rest.join(" ") : group!).replace(/_/g, " ");
  return rest.length ? `${capital(group!)}: ${words}` : capital(words);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
