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

// The same name in every table, chart and sentence, and what the part does.
const PARTS: Record<string, [name: string, does: string]> = {
  plan: ["Question", "Reads the question: its words, names and times"],
  "channel.lexical": ["Words", "Finds memories that share words with the question"],
  "channel.dense": ["Meaning", "Finds memories whose meaning is near"],
  "channel.temporal": ["Time", "Finds what happened at the time that the question names"],
  "channel.substring": ["Spelling", "Finds words that are spelled alike, where the question's own are unknown"],
  "channel.entity": ["Entities", "Finds memories that mention the same people and things"],
  "channel.graph": ["Links", "Follows links from what was found"],
  "channel.newest": ["Newest", "Takes the newest that pass the filters"],
  fuse: ["Join", "Joins what the retrievers found into one list, by rank"],
  "fuse.lexical": ["Rank by words", ""],
  "fuse.dense": ["Rank by meaning", ""],
  "expand.beside": ["Turns beside", "Adds the turns before and after the best turns of a conversation"],
  "expand.named_time": ["Named time", "Keeps only the time that is named, where nothing else is"],
  "expand.match": ["Closer look", "Compares each memory with the question: words, the whole, the best sentence"],
  "expand.match_turns": ["Closer look at turns", "The same for turns of conversations"],
  "expand.conversation": ["Conversation", "A turn gains from the turns around it and from the best one of its conversation"],
  "expand.top": ["Best so far", "Keeps only the best candidates"],
  "adjust.answer_kind": ["Kind of answer", "When, who and how many prefer memories with a time, a name, a number"],
  "adjust.speaker": ["Speaker", "Prefers what the person in the question said"],
  "adjust.period": ["Period", "Prefers the time that the question names"],
  "adjust.length": ["Length", "Long memories lose a little"],
  "adjust.importance": ["Importance", "Important and pinned memories gain"],
  "adjust.boost": ["Boost", "What the caller's own function says"],
  answer_kind: ["Kind of answer", ""],
  importance: ["Importance", ""],
  "match.words": ["Shared words", ""],
  "match.pieces": ["Parts of words", ""],
  "match.whole": ["Meaning of the whole", ""],
  "match.weighted": ["Meaning of rare words", ""],
  "match.tokens": ["Meaning word by word", ""],
  "match.sentence": ["Best sentence", ""],
  "fuse.meaning": ["Rank by meaning", ""],
  "fuse.words": ["Rank by words", ""],
  "rerank.read": ["Reader", "A model that reads question and memory together"],
  "diversify.newer_first": ["Newer first", "Puts a correction above what it corrects"],
  "diversify.collapse": ["Doubles", "Keeps one of several that say the same"],
  "gate.confidence": ["Confidence", "Is anything stored on this subject? How relevant is each?"],
  "gate.threshold": ["Least relevance", "Drops what is not relevant enough"],
  "gate.helped": ["Helped", "What agents used or ignored"],
  helped: ["Helped", ""],
  "gate.fill_up": ["Insights", "Insights only fill places that no memory takes"],
  budget: ["Budget", "Keeps as many as were asked for, and fit into the tokens"],
};
const SLOTS: Record<string, string> = {
  channel: "Finds candidates",
  expand: "Adds candidates, or looks at them again",
  adjust: "Changes scores",
  rerank: "Orders the best anew",
  diversify: "Orders and removes what says the same",
  gate: "Decides what is relevant",
  assemble: "Completes what is returned",
  deep: "Asks further, with a language model or without",
};

/** A part's name as people read it. */
export function partName(by: string): string {
  const known = PARTS[by]?.[0];
  if (known) return known;
  const [slot, ...rest] = by.split(".");
  const group = slot === "channel" ? "retriever" : slot;
  const words = (rest.length ? rest.join(" ") : group!).replace(/_/g, " ");
  return rest.length ? `${capital(group!)}: ${words}` : capital(words);
}

/** What a part does, in one sentence. */
export function partMeaning(by: string): string {
  return PARTS[by]?.[1] ?? SLOTS[by.split(".")[0]!] ?? "";
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
