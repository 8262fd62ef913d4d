// Small parts that every view uses.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { ApiError } from "../lib/api";
import { ago, day, moment } from "../lib/format";
import { memoryLink } from "../lib/url";

export { Badge, MemoryText, Meter } from "./memory";

export function Page(props: { title: string; lead?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren }) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${props.title} · Bethink`;
  }, [props.title]);
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1 ref={head} tabIndex={-1}>
            {props.title}
          </h1>
          {props.lead && <p class="muted">{props.lead}</p>}
        </div>
        {props.actions && <div class="row">{props.actions}</div>}
      </div>
      {props.children}
    </div>
  );
}

export function Card(props: { title?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`card ${props.class ?? ""}`}>
      {props.title && <h2>{props.title}</h2>}
      {props.children}
    </section>
  );
}

/** What went wrong, and what to do about it. */
export function ErrorNote(props: { error: ApiError | null }) {
  if (!props.error) return null;
  return (
    <div class="notice bad" role="alert">
      <strong>{props.error.message}</strong>
      {props.error.remedy && <p class="muted">{props.error.remedy}</p>}
    </div>
  );
}

export function Loading(props: { on: boolean }) {
  return (
    <div class={props.on ? "loading on" : "loading"} role="status" aria-live="polite">
      <span class="sr">{props.on ? "Loading" : ""}</span>
    </div>
  );
}

export function Empty(props: { children: ComponentChildren }) {
  return <div class="empty muted">{props.children}</div>;
}

export function Time(props: { at: string | null; relative?: boolean; short?: boolean }) {
  if (!props.at) return <span>–</span>;
  return (
    <time dateTime={props.at} title={moment(props.at)}>
      {props.relative ? ago(props.at) : props.short ? day(props.at) : moment(props.at)}
    </time>
  );
}

export function MemoryId(props: { id: string }) {
  return (
    <a class="mono" href={memoryLink(props.id)}>
      {props.id}
    </a>
  );
}

export function Dialog(props: { open: boolean; title: string; onClose: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    if (!dialog) return;
    if (props.open && !dialog.open) dialog.showModal();
    if (!props.open && dialog.open) dialog.close();
  }, [props.open]);
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={id}
      onClose={props.onClose}
      onClick={(event) => {
        if (event.target === element.current) props.onClose();
      }}
    >
      {props.open && (
        <div class="stack">
          <h2 id={id}>{props.title}</h2>
          {props.children}
        </div>
      )}
    </dialog>
  );
}

export function Tabs(props: { label: string; tabs: [string, string][]; chosen: string; onChoose: (key: string) => void }) {
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const place = props.tabs.findIndex(([key]) => key === props.chosen);
    const next = (place + step + props.tabs.length) % props.tabs.length;
    props.onChoose(props.tabs[next]![0]);
    list.current?.querySelectorAll("button")[next]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={onKeyDown}>
      {props.tabs.map(([key, name]) => (
        <button
          key={key}
          type="button"
          role="tab"
          id={`tab-${key}`}
          aria-selected={key === props.chosen}
          tabIndex={key === props.chosen ? 0 : -1}
          onClick={() => props.onChoose(key)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

/** Actions that are seldom needed, behind one button; it closes with a click elsewhere. */
export function Menu(props: { label: string; children: ComponentChildren }) {
  const element = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const menu = element.current;
      const inside = menu?.contains(event.target as Node) && !(event.target as Element).closest(".menu-items");
      if (menu?.open && !inside) menu.open = false;
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && element.current?.open) element.current.open = false;
    };
    addEventListener("click", close);
    addEventListener("keydown", onKey);
    return () => {
      removeEventListener("click", close);
      removeEventListener("keydown", onKey);
    };
  }, []);
  return (
    <details class="menu" ref={element}>
      <summary class="button">{props.label}</summary>
      <div class="menu-items">{props.children}</div>
    </details>
  );
}

interface Told {
  text: string;
  action?: { label: string; run: () => void };
}

const told = signal<Told | null>(null);
const TOLD_MS = 20_000; // long enough to read it, and to take back what was done
let hide: ReturnType<typeof setTimeout> | undefined;

/** Say briefly what was done; with an action to take it back. */
export function tell(text: string, action?: Told["action"]): void {
  clearTimeout(hide);
  told.value = action ? { text, action } : { text };
  hide = setTimeout(() => (told.value = null), TOLD_MS);
}

export function Toast() {
  const now = told.value;
  return (
    <div role="status" aria-live="polite">
      {now && (
        <div class="toast row">
          <span>{now.text}</span>
          {now.action && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                told.value = null;
                now.action?.run();
              }}
            >
              {now.action.label}
            </button>
          )}
        </div>
      )}
    </div>
  );
}
