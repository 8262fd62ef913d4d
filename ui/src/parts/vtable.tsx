// A table of any length: only the visible rows are in the page, and pages come by key.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, reconnections } from "../lib/api";

export interface PageOf<T> {
  rows: T[];
  /** The key of the next page; null after the last one. */
  next: string | null;
}

interface State<T> {
  rows: T[];
  next: string | null;
  error: ApiError | null;
  /** What was loaded: another key starts anew. */
  key: string;
  done: boolean;
}

/** Rows that are loaded page by page, always a page ahead of what is wanted. */
export function usePages<T>(key: string, load: (after: string | null, abort: AbortSignal) => Promise<PageOf<T>>) {
  const [state, setState] = useState<State<T>>({ rows: [], next: null, error: null, key: "", done: false });
  const wanted = useRef(0);
  const busy = useRef<AbortController | null>(null);
  const latest = useRef(load);
  latest.current = load;
  const current = useRef(state);
  current.current = state;
  const advance = async (fresh: boolean) => {
    if (busy.current && !fresh) return;
    busy.current?.abort();
    const abort = new AbortController();
    busy.current = abort;
    let rows = fresh ? [] : current.current.rows;
    let next = fresh ? null : current.current.next;
    let done = !fresh && current.current.done;
    try {
      while (!done && (!rows.length || rows.length < wanted.current)) {
        const page = await latest.current(next, abort.signal);
        if (abort.signal.aborted) return;
        rows = [...rows, ...page.rows];
        next = page.next;
        done = page.next === null;
        setState({ rows, next, error: null, key, done });
      }
      if (!rows.length) setState({ rows, next, error: null, key, done: true });
    } catch (error) {
      if (abort.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      setState({ ...current.current, error });
    } finally {
      if (busy.current === abort) busy.current = null;
    }
  };
  useEffect(() => {
    wanted.current = 0;
    void advance(true);
    return () => busy.current?.abort();
  }, [key]);
  // Go on where the connection was lost.
  useEffect(() => {
    if (current.current.error) void advance(!current.current.rows.length);
  }, [reconnections.value]);
  return {
    rows: state.rows,
    error: state.error,
    done: state.done,
    loading: state.key !== key,
    /** Say that rows up to this one will be shown. */
    want: (until: number) => {
      wanted.current = until;
      if (until > current.current.rows.length && !current.current.done) void advance(false);
    },
  };
}

const SPARE = 12; // rows above and below the visible ones
const LARGEST = 15_000_000; // the tallest element that browsers draw exactly

export function VirtualTable<T>(props: {
  label: string;
  head: string[];
  rows: readonly T[];
  /** The number of all rows where it is known. */
  total: number | null;
  done: boolean;
  want: (until: number) => void;
  row: (row: T, place: number) => { key: string; href: string; cells: preact.ComponentChildren[] };
  resetKey: string;
}) {
  const body = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600, row: 40 });
  const length = props.done ? props.rows.length : Math.max(props.total ?? 0, props.rows.length + 1);
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
  const first = Math.max(0, Math.floor(view.top / view.row) - SPARE);
  const last = Math.min(length, Math.ceil((view.top + view.height) / view.row) + SPARE);
  useEffect(() => props.want(last + 200), [last, props.rows.length]);
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
        <div class="vspace" style={{ height: `${Math.min(length * view.row, LARGEST)}px` }} />
        {shown.map((place) => {
          const row = props.rows[place];
          const at = { top: `${place * view.row}px`, height: `${view.row}px` };
          if (row === undefined) {
            return (
              <div key={place} class="vrow muted" role="row" aria-rowindex={place + 1} style={at}>
                <span role="cell">…</span>
              </div>
            );
          }
          const made = props.row(row, place);
          return (
            <div key={made.key} class="vrow" role="row" aria-rowindex={place + 1} style={at}>
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
