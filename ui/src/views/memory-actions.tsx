// Changes of a memory: each says first what it will do.
import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { ApiError, call, forPeople, type Answer, type Arguments } from "../lib/api";
import { members } from "../lib/counts";
import { plural } from "../lib/format";
import { savesOnEnter } from "../lib/keys";
import { useResource } from "../lib/resource";
import { may, session } from "../lib/session";
import { oneLine } from "../lib/text";
import { link, memoryLink } from "../lib/url";
import { Dialog, ErrorNote, tell } from "../parts/basics";
import type { Item } from "./memory";

interface Common {
  item: Item;
  open: boolean;
  onClose: () => void;
  onDone: (told: string, undoable?: boolean) => void;
}

/** Work that may be refused: runs once at a time and keeps the refusal. */
export function useAttempt() {
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem;
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return { error, busy, attempt };
}

/** Tags as they are written: with commas between. */
export function listed(tags: string): string[] {
  return tags.split(",").map((tag) => tag.trim()).filter(Boolean);
}

/** Who sees a memory; only people of a space are asked. */
export function Audience(props: { value: string; onInput: (event: { currentTarget: { value: string } }) => void }) {
  if (!session.value?.person) return null;
  return (
    <label class="field">
      Seen by
      <input class="input" list="audiences" placeholder="space" value={props.value} onInput={props.onInput} />
      <datalist id="audiences">
        {["space", "private", ...members.value.filter((one) => !one.you).map((one) => one.name)].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}

export function CorrectDialog(props: Common) {
  return (
    <Dialog open={props.open} title="Correct this memory" onClose={props.onClose}>
      <CorrectForm {...props} />
    </Dialog>
  );
}

function CorrectForm(props: Common) {
  const { item } = props;
  const { route } = useLocation();
  const [text, setText] = useState(item.text);
  const [kind, setKind] = useState(item.kind);
  const [topic, setTopic] = useState(item.topic ?? "");
  const [tags, setTags] = useState(item.tags.join(", "));
  const before = String(item.metadata["bethink.audience"] ?? "");
  const [audience, setAudience] = useState(before);
  const { error, busy, attempt } = useAttempt();
  const changes: Arguments<"PATCH /v1/memories/{id}"> = { id: item.id };
  if (text !== item.text) changes.text = text;
  if (kind !== item.kind) changes.kind = kind;
  if (topic !== (item.topic ?? "")) changes.topic = topic;
  if (tags !== item.tags.join(", ")) changes.tags = listed(tags);
  if (audience !== before) changes.audience = audience || "space";
  const changed = Object.keys(changes).length > 1 && text.trim() !== "";
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (busy || !changed) return;
    void attempt(async () => {
      const answer = await call("PATCH /v1/memories/{id}", changes);
      const told = `Corrected; this is revision ${answer.rev}.`;
      if (answer.id === item.id) return props.onDone(told);
      tell(told); // for others it is another memory
      route(memoryLink(answer.id));
    });
  };
  return (
    <form class="stack" onSubmit={submit} onKeyDown={savesOnEnter}>
      <p class="muted">The id stays, and the old text stays in the history.</p>
      <label class="field">
        Text
        <textarea class="input" dir="auto" maxLength={65_536} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="fields">
        <label class="field">
          Kind
          <input class="input" value={kind} onInput={(event) => setKind(event.currentTarget.value)} />
        </label>
        <label class="field">
          Topic
          <input class="input" value={topic} onInput={(event) => setTopic(event.currentTarget.value)} />
        </label>
        <label class="field">
          Tags
          <input class="input" placeholder="with commas" value={tags} onInput={(event) => setTags(event.currentTarget.value)} />
        </label>
        <Audience value={audience} onInput={(event) => setAudience(event.currentTarget.value)} />
      </div>
      {audience !== before && <p class="notice warn">Who no longer sees it loses its history, too; that cannot be undone.</p>}
      <ErrorNote error={error} />
      <div class="row">
        <button class="button primary" disabled={busy || !changed} title="Ctrl+Enter">
          Save
        </button>
        <button type="button" class="button" onClick={props.onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

const RELATIONS: Arguments<"POST /v1/memories/{id}/links">["relation"][] = [
  ...(["related_to", "supersedes", "contradicts", "implies", "causes", "caused_by", "derives_from"] as const),
  ...(["specializes", "generalizes", "correlates", "part_of", "context_of", "references", "similar_to"] as const),
];

export interface Chosen {
  id: string;
  text: string;
}

/** Choose a stored memory by words of it. */
export function Choose(props: { label: string; without?: string; chosen: Chosen | null; onChoose: (one: Chosen | null) => void }) {
  const { chosen, onChoose } = props;
  const [words, setWords] = useState("");
  const [search, setSearch] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSearch(words.trim()), 180);
    return () => clearTimeout(timer);
  }, [words]);
  const found = useResource(search ? `choose ${search}` : null, (abort) =>
    call("POST /v1/recall", { query: search, k: 6, min_confidence: 0, min_relevance: 0, mark_accessed: false }, abort),
  );
  if (chosen) {
    return (
      <p class="row">
        <span class="line grow" dir="auto">
          {oneLine(chosen.text, 120)}
        </span>
        <button type="button" class="button small" onClick={() => onChoose(null)}>
          Change
        </button>
      </p>
    );
  }
  return (
    <>
      <label class="field">
        {props.label}
        <input class="input" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
      <ul class="stack-s">
        {found.data?.memories
          .filter((memory) => memory.id !== props.without)
          .map((memory) => (
            <li key={memory.id}>
              <button type="button" class="button small quiet pick" onClick={() => onChoose(memory)}>
                <span class="line" dir="auto">
                  {oneLine(memory.text, 100)}
                </span>
              </button>
            </li>
          ))}
      </ul>
    </>
  );
}

export function LinkDialog(props: Common) {
  return (
    <Dialog open={props.open} title="Link it to another memory" onClose={props.onClose}>
      <LinkForm {...props} />
    </Dialog>
  );
}

function LinkForm(props: Common) {
  const { item } = props;
  const [relation, setRelation] = useState(RELATIONS[0]!);
  const [other, setOther] = useState<Chosen | null>(null);
  const { error, busy, attempt } = useAttempt();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!other) return;
    void attempt(async () => {
      await call("POST /v1/memories/{id}/links", { id: item.id, relation, other: other.id });
      props.onDone("Linked.");
    });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <label class="field">
        This memory
        <select class="input" value={relation} onChange={(event) => setRelation(event.currentTarget.value as typeof relation)}>
          {RELATIONS.map((name) => (
            <option key={name} value={name}>
              {name.replace(/_/g, " ")}
            </option>
          ))}
        </select>
      </label>
      {relation === "supersedes" && <p class="notice warn">The other memory leaves recall; undo brings it back.</p>}
      <Choose label="The other one: words of it" without={item.id} chosen={other} onChoose={setOther} />
      <ErrorNote error={error} />
      <div class="row">
        <button class="button primary" disabled={busy || !other}>
          Link
        </button>
        <button type="button" class="button" onClick={props.onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

type Preview = Answer<"POST /v1/forget">;

/** What a removal would do: nothing is changed before it is confirmed. */
function usePreview(open: boolean, id: string, erase: boolean) {
  const [preview, setPreview] = useState<Preview | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => {
    setPreview(null);
    setError(null);
    if (!open) return;
    const abort = new AbortController();
    call("POST /v1/forget", { ids: [id], ...(erase && { erase }) }, abort.signal).then(setPreview, (problem: unknown) => {
      if (abort.signal.aborted) return;
      if (!(problem instanceof ApiError)) throw problem;
      setError(problem);
    });
    return () => abort.abort();
  }, [open, id, erase]);
  return { preview, error };
}

function PreviewText(props: { preview: Preview }) {
  const { memories, kept, derived, quarantined, restored } = props.preview;
  return (
    <ul class="stack-s">
      {memories.map((memory) => (
        <li key={memory.id} class="notice text" dir="auto">
          {oneLine(memory.text ?? memory.id, 300)}
        </li>
      ))}
      {kept.map((one) => (
        <li key={one.id}>
          Stays: <span class="mono">{one.id}</span>, {forPeople(one.reason)}
        </li>
      ))}
      {derived.length > 0 && <li>{plural(derived.length, "memory", "memories")} derived from it go with it.</li>}
      {quarantined.length > 0 && <li>{plural(quarantined.length, "memory", "memories")} derived from it and others are set aside.</li>}
      {restored.length > 0 && <li>{plural(restored.length, "memory", "memories")} that it replaced come back.</li>}
    </ul>
  );
}

export function ForgetDialog(props: Common) {
  const { preview, error } = usePreview(props.open, props.item.id, false);
  const trying = useAttempt();
  const confirm = () =>
    trying.attempt(async () => {
      await call("POST /v1/forget", { ids: [props.item.id], token: preview!.token });
      props.onDone("Forgotten: it is no longer recalled.");
    });
  const unpinAndForget = () =>
    trying.attempt(async () => {
      await call("PATCH /v1/memories/{id}", { id: props.item.id, pinned: false });
      const { token } = await call("POST /v1/forget", { ids: [props.item.id] });
      if (token) await call("POST /v1/forget", { ids: [props.item.id], token });
      props.onDone("Unpinned and forgotten: it is no longer recalled.");
    });
  const isPinned = props.item.pinned && preview !== null && !preview.token;
  return (
    <Dialog open={props.open} title="Forget this memory?" onClose={props.onClose}>
      <p class="muted">
        {isPinned ? "It is pinned, so that nothing removes it by accident." : "It leaves recall. Its history stays, and it can be restored."}
      </p>
      {preview && <PreviewText preview={preview} />}
      <ErrorNote error={error ?? trying.error} />
      <div class="row">
        {isPinned && may("update_memory") ? (
          <button type="button" class="button danger" disabled={trying.busy} onClick={() => void unpinAndForget()}>
            Unpin and forget
          </button>
        ) : (
          <button type="button" class="button danger" disabled={!preview?.token || trying.busy} onClick={() => void confirm()}>
            Forget
          </button>
        )}
        <button type="button" class="button" onClick={props.onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

export function EraseDialog(props: Omit<Common, "onDone">) {
  const { route } = useLocation();
  const { preview, error } = usePreview(props.open, props.item.id, true);
  const [sure, setSure] = useState("");
  const trying = useAttempt();
  useEffect(() => setSure(""), [props.open]);
  const confirm = () =>
    trying.attempt(async () => {
      const answer = await call("POST /v1/forget", { ids: [props.item.id], erase: true, token: preview!.token });
      tell(answer.out_of_reach.length ? `Erased. Copies may remain in: ${answer.out_of_reach.join(", ")}` : "Erased.");
      route(link("/memories"));
    });
  return (
    <Dialog open={props.open} title="Erase this memory for good?" onClose={props.onClose}>
      <p>Every byte of it goes: the text, all revisions, what was derived from it alone. This cannot be undone.</p>
      {preview && <PreviewText preview={preview} />}
      <label class="field">
        Type erase to confirm
        <input class="input" autocomplete="off" value={sure} onInput={(event) => setSure(event.currentTarget.value)} />
      </label>
      <ErrorNote error={error ?? trying.error} />
      <div class="row">
        <button
          type="button"
          class="button danger"
          disabled={!preview?.token || sure.trim().toLowerCase() !== "erase" || trying.busy}
          onClick={() => void confirm()}
        >
          Erase
        </button>
        <button type="button" class="button" onClick={props.onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}
