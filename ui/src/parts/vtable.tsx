// A table of any length: only the visible rows are in the page, and pages are loaded where one looks.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, reconnections } from "../lib/api";

export interface PageOf<T> {
  rows: T[];
  /** How many rows there are in all; null where it was not asked for. */
  total: number | null;
}

interface State<T> {
  /** What was loaded: another key starts anew. */
  key: string;
  pages: ReadonlyMap<number, readonly T[]>;
  total: number | null;
  error: ApiError | null;
}

const PAGE = 200; // rows
const KEPT = 60; // pages that stay in memory
const PAUSE_MS = 60; // between two looks at what is wanted, while one scrolls

export interface Rows<T> {
  at: (place: number) => T | undefined;
  total: number | null;
  error: ApiError | null;
  loading: boolean;
  /** Say which rows are shown. */
  want: (first: number, last: number) => void;
}

/** Rows that are loaded by their place: jumping to the last one loads that page alone. */
export function useRows<T>(
  key: string,
  load: (offset: number, limit: number, abort: AbortSignal) => Promise<PageOf<T>>,
): Rows<T> {
  const [state, setState] = useState<State<T>>({ key: "", pages: new Map(), total: null, error: null });
  const wanted = useRef<[number, number]>([0, 0]);
  const busy = useRef(new Map<number, AbortController>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef(load);
  latest.current = load;
  const current = useRef(state);
  const change = (next: State<T>) => {
    current.current = next;
    setState(next);
  };
  const fetchPage = async (page: number) => {
    const abort = new AbortController();
    busy.current.set(page, abort);
    try {
      const found = await latest.current(page * PAGE, PAGE, abort.signal);
      if (abort.signal.aborted) return;
      const before = current.current.key === key ? current.current : { pages: new Map<number, readonly T[]>(), total: null };
      const pages = new Map([...before.pages, [page, found.rows] as const]);
      const far = [...pages.keys()].sort((a, b) => Math.abs(b - page) - Math.abs(a - page));
      for (const one of far.slice(0, Math.max(0, pages.size - KEPT))) pages.delete(one);
      change({ key, pages, total: found.total ?? before.total, error: null });
    } catch (error) {
      if (abort.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      change({ ...current.current, error });
    } finally {
      if (busy.current.get(page) === abort) busy.current.delete(page);
    }
  };
  const look = () => {
    const { pages, total, key: loaded } = current.current;
    if (loaded !== key || total === null) return;
    const [first, last] = [Math.floor(wanted.current[0] / PAGE), Math.floor(Math.min(wanted.current[1], total - 1) / PAGE)];
    for (const [page, abort] of busy.current) {
      if (page >= first && page <= last) continue;
      abort.abort();
      busy.current.delete(page);
    }
    for (let page = first; page <= last; page += 1) {
      if (!pages.has(page) && !busy.current.has(page)) void fetchPage(page);
    }
  };
  const stop = () => {
    clearTimeout(timer.current);
    timer.current = undefined;
    for (const abort of busy.current.values()) abort.abort();
    busy.current.clear();
  };
  useEffect(() => {
    void fetchPage(0);
    return stop;
  }, [key]);
  // Go on where the connection was lost.
  useEffect(() => {
    if (!current.current.error) return;
    if (current.current.key === key) look();
    else void fetchPage(0);
  }, [reconnections.value]);
  return {
    at: (place) => (state.key === key ? state.pages.get(Math.floor(place / PAGE))?.[place % PAGE] : undefined),
    total: state.key === key ? state.total : null,
    error: state.error,
    loading: state.key !== key && !state.error,
    want: (first, last) => {
      wanted.current = [first, last];
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        look();
      }, PAUSE_MS);
    },
  };
}

const SPARE = 12; // rows above and below the visible ones
const LARGEST = 15_000_000; // the tallest element that browsers draw exactly

export function VirtualTable<T>(props: {
  label: string;
  head: string[];
  length: number;
  /** A row that is loaded. */
  at: (place: number) => T | undefined;
  want: (first: number, last: number) => void;
  row: (row: T, place: number) => { href: string; cells: preact.ComponentChildren[] };
  resetKey: string;
}) {
  const body = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600, row: 40 });
  const { length } = props;
  useLayoutEffect(() => {
    const element = body.current;
    if (!element) return;
    const measure = () => {
      const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      setView({ top: element.scrollTop, height: element.clientHeight, row: Math.round(rem * 2.6) });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  useEffect(() => {
    if (body.current) body.current.scrollTop = 0;
  }, [props.resetKey]);
  // Where all rows together are taller than an element can be, scrolling takes larger steps.
  const tall = Math.min(length * view.row, LARGEST);
  const room = Math.max(1, tall - view.height);
  const top = (Math.min(view.top, room) / room) * Math.max(0, length * view.row - view.height);
  const shift = Math.min(view.top, room) - top;
  const first = Math.max(0, Math.floor(top / view.row) - SPARE);
  const last = Math.min(length, Math.ceil((top + view.height) / view.row) + SPARE);
  useEffect(() => props.want(Math.max(0, first - SPARE), last + 3 * SPARE), [first, last, length, props.resetKey]);
  const shown = [];
  for (let place = first; place < last; place += 1) shown.push(place);
  return (
    <div class="vtable" role="table" aria-label={props.label} aria-rowcount={length}>
      <div role="rowgroup">
        <div class="vhead" role="row">
          {props.head.map((name) => (
            <span key={name} role="columnheader">
              {name}
            </span>
          ))}
        </div>
      </div>
      <div class="vbody" ref={body} role="rowgroup" tabIndex={0} aria-label={`${props.label}, rows`}>
        <div class="vspace" style={{ height: `${tall}px` }} />
        {shown.map((place) => {
          const row = props.at(place);
          const where = { top: `${place * view.row + shift}px`, height: `${view.row}px` };
          if (row === undefined) {
            return (
              <div key={place} class="vrow muted" role="row" aria-rowindex={place + 1} style={where}>
                <span role="cell">…</span>
              </div>
            );
          }
          const made = props.row(row, place);
          return (
            <div key={place} class="vrow" role="row" aria-rowindex={place + 1} style={where}>
              {made.cells.map((cell, number) => (
                <span key={number} role="cell" class="line">
                  {number ? (
                    cell
                  ) : (
                    <a class="vlink" href={made.href} dir="auto">
                      {cell}
                    </a>
                  )}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
