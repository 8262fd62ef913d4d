// Keys that work everywhere: "g" and a letter go to a view, "/" to the search, "?" to the help.
import { signal } from "@preact/signals";

export const helpOpen = signal(false);

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
  );
}

let awaiting = 0; // until when a letter after "g" counts

/** Save what is being written with Ctrl or Cmd and Enter. */
export function savesOnEnter(event: KeyboardEvent): void {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  (event.currentTarget as HTMLFormElement).requestSubmit();
}

export function startKeys(places: Map<string, string>, adding: string, go: (path: string) => void): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    const place = places.get(event.key);
    if (awaiting > event.timeStamp && place) {
      awaiting = 0;
      event.preventDefault();
      go(place);
      return;
    }
    awaiting = event.key === "g" ? event.timeStamp + 1500 : 0;
    if (event.key === "/") {
      const field = document.querySelector<HTMLElement>("[data-search]");
      if (field) {
        event.preventDefault();
        field.focus();
      }
    } else if (event.key === "n" && adding) {
      event.preventDefault();
      go(adding);
    } else if (event.key === "?") {
      event.preventDefault();
      helpOpen.value = true;
    }
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}
