// Stored text as data: hidden characters become visible, and nothing is ever read as markup.
import { options } from "preact";

/** A piece of text: plain, a word that matches, or a hidden character. */
export interface Piece {
  kind: "plain" | "match" | "hidden";
  text: string;
}

// A line end as Windows writes it is one, so its first half is no hidden character.
const HIDDEN =
  /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/** Split a text into pieces; words are compared as written. */
export function pieces(text: string, words: readonly string[] = []): Piece[] {
  const wanted = new Set(words);
  const made: Piece[] = [];
  const add = (kind: Piece["kind"], part: string) => {
    const last = made[made.length - 1];
    if (last && last.kind === kind && kind === "plain") last.text += part;
    else made.push({ kind, text: part });
  };
  const addPlain = (part: string) => {
    if (!wanted.size) {
      if (part) add("plain", part);
      return;
    }
    let from = 0;
    for (const found of part.matchAll(/[\p{L}\p{N}_]+/gu)) {
      if (!wanted.has(found[0])) continue;
      if (found.index > from) add("plain", part.slice(from, found.index));
      add("match", found[0]);
      from = found.index + found[0].length;
    }
    if (from < part.length) add("plain", part.slice(from));
  };
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > from) addPlain(text.slice(from, found.index));
    add("hidden", found[0]);
    from = found.index + found[0].length;
  }
  if (from < text.length) addPlain(text.slice(from));
  return made;
}

export function codePoint(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

const ANY_HIDDEN = new RegExp(HIDDEN.source, "u");

function visible(child: unknown): unknown {
  return typeof child === "string" && ANY_HIDDEN.test(child) ? child.replace(HIDDEN, "�") : child;
}

/** From now on no element shows a hidden character, wherever its text comes from. */
export function showHidden(): void {
  const before = options.vnode;
  options.vnode = (vnode) => {
    if (typeof vnode.type === "string") {
      const props = vnode.props as { children?: unknown };
      const { children } = props;
      if (Array.isArray(children)) {
        if (children.some((child) => visible(child) !== child)) props.children = children.map(visible);
      } else if (typeof children === "string") props.children = visible(children);
    }
    before?.(vnode);
  };
}

/** One line of a text, for lists and labels, without hidden characters. */
export function oneLine(text: string, most = 200): string {
  const line = text.slice(0, most * 4).replace(HIDDEN, "�").replace(/\s+/g, " ").trim();
  const chars = [...line];
  return chars.length > most ? `${chars.slice(0, most - 1).join("")}…` : line;
}

export interface DiffPart {
  kind: "same" | "added" | "removed";
  text: string;
}

const MOST_COMPARED = 4_000_000; // cells of the table of common words

/** What several names begin with, up to the last separator: it tells none of them apart. */
export function commonBeginning(names: readonly string[]): string {
  if (names.length < 2) return "";
  const [first, last] = [names.reduce((a, b) => (a < b ? a : b)), names.reduce((a, b) => (a > b ? a : b))];
  let length = 0;
  while (length < first.length && first[length] === last[length]) length += 1;
  return /^.*[\s\-_.:/]/.exec(first.slice(0, length))?.[0] ?? "";
}

/** The words that were added and removed between two texts. */
export function diff(before: string, after: string): DiffPart[] {
  const a = before.split(/(\s+)/);
  const b = after.split(/(\s+)/);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = compare(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const parts: DiffPart[] = [
    { kind: "same", text: a.slice(0, start).join("") },
    ...middle,
    { kind: "same", text: end ? a.slice(a.length - end).join("") : "" },
  ];
  return parts.filter((part) => part.text);
}

function compare(a: string[], b: string[]): DiffPart[] {
  if (a.length * b.length > MOST_COMPARED) {
    return [
      { kind: "removed", text: a.join("") },
      { kind: "added", text: b.join("") },
    ];
  }
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  const parts: DiffPart[] = [];
  const push = (kind: DiffPart["kind"], text: string) => {
    const last = parts[parts.length - 1];
    if (last && last.kind === kind) last.text += text;
    else parts.push({ kind, text });
  };
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      push("same", a[i]!);
      i += 1;
      j += 1;
    } else if (i < a.length && (j >= b.length || lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!)) {
      push("removed", a[i]!);
      i += 1;
    } else {
      push("added", b[j]!);
      j += 1;
    }
  }
  return parts;
}
