// The form of a question: the same for asking, tracing and comparing.
import { useEffect, useState } from "preact/hooks";
import { call } from "../lib/api";
import { day } from "../lib/format";
import { FILTERS, LIMITS, settingsCount } from "../lib/question";
import { useResource } from "../lib/resource";
import { useAddress, type Params } from "../lib/url";

const LABELS: Record<string, [string, string]> = {
  kind: ["Kind", "fact, decision …"],
  topic: ["Topic", ""],
  tag: ["Tag", ""],
  entity: ["Mentions", "person, project, file"],
  user: ["User", ""],
  since: ["Since", "2026-05-07, last week"],
  until: ["Until", "yesterday"],
  k: ["Most memories", "40"],
  max_tokens: ["Most tokens", "2000"],
  min_confidence: ["Least confidence", "0 to 1"],
  min_relevance: ["Least relevance", "0 to 1"],
};

export function useProfiles() {
  return useResource("profiles", (abort) => call("GET /v1/profiles", {}, abort)).data?.profiles ?? [];
}

export function ProfileSelect(props: { value: string; label: string; onChoose: (name: string) => void }) {
  const profiles = useProfiles();
  const usual = profiles.find((one) => one.default)?.name;
  return (
    <label class="field">
      {props.label}
      <select class="input" value={props.value || usual || ""} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        {!profiles.some((one) => one.name === (props.value || usual)) && <option value={props.value}>{props.value || "default"}</option>}
        {profiles.map((one) => (
          <option key={one.name} value={one.name}>
            {one.name}
            {one.deep ? " (deep)" : ""}
          </option>
        ))}
      </select>
    </label>
  );
}

export function QuestionForm(props: { withProfile?: boolean; placeholder?: string }) {
  const address = useAddress();
  const [text, setText] = useState(address.get("q"));
  useEffect(() => setText(address.get("q")), [address.get("q")]);
  const [values, setValues] = useState<Params>({});
  const valueOf = (name: string) => values[name] ?? address.get(name);
  const submit = (event?: Event) => {
    event?.preventDefault();
    address.set({ ...values, q: text.trim(), open: null });
    setValues({});
  };
  const active = settingsCount(address);
  const [isOpen, setOpen] = useState(active > 0);
  return (
    <form class="stack-s" role="search" onSubmit={submit}>
      <div class="search-row">
        <input
          class="input grow"
          type="search"
          data-search
          aria-label="Question"
          placeholder={props.placeholder ?? "Ask in plain words"}
          maxLength={8192}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button class="button primary">Ask</button>
      </div>
      <details class="settings" open={active > 0} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary class="muted small">Filters and limits{active ? ` (${active} set)` : ""}</summary>
        <div class="card stack">
          <div class="fields">
            {props.withProfile !== false && (
              <ProfileSelect label="Profile" value={address.get("profile")} onChoose={(name) => address.set({ profile: name })} />
            )}
            {[...FILTERS, ...LIMITS].map((name) => (
              <label class="field" key={name}>
                {LABELS[name]![0]}
                <input
                  class="input"
                  placeholder={LABELS[name]![1]}
                  inputMode={(LIMITS as readonly string[]).includes(name) ? "decimal" : "text"}
                  value={valueOf(name)}
                  onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
                  onBlur={() => Object.keys(values).length && submit()}
                />
              </label>
            ))}
          </div>
          {isOpen && <AsOf />}
          <div class="row">
            <label class="check">
              <input
                type="checkbox"
                checked={address.get("whole") === "1"}
                onChange={(event) => address.set({ whole: event.currentTarget.checked ? "1" : null })}
              />
              Show long memories whole
            </label>
            {active > 0 && (
              <button
                type="button"
                class="button quiet small"
                onClick={() => {
                  setValues({});
                  address.set(Object.fromEntries([...FILTERS, ...LIMITS, "as_of", "whole"].map((name) => [name, null])));
                }}
              >
                Clear
              </button>
            )}
          </div>
        </div>
      </details>
    </form>
  );
}

const STEPS = 400;

/** The moment whose knowledge answers: the far right is now. */
function AsOf() {
  const address = useAddress();
  const stats = useResource("stats", (abort) => call("GET /v1/stats", {}, abort));
  const oldest = (stats.data as { oldest?: string } | null)?.oldest;
  const end = Date.now();
  const start = oldest ? new Date(oldest).getTime() : end - 31_557_600_000;
  const chosen = address.get("as_of");
  // An address may say it in words, such as "yesterday": the server reads them.
  const told = Date.parse(chosen);
  const placed = Number.isNaN(told) ? STEPS : Math.round(((told - start) / (end - start)) * STEPS);
  const [place, setPlace] = useState(placed);
  useEffect(() => setPlace(placed), [chosen, oldest]);
  const momentOf = (at: number) => new Date(start + ((end - start) * at) / STEPS).toISOString();
  const words = place >= STEPS ? (Number.isNaN(told) && chosen) || "now" : day(momentOf(place));
  return (
    <label class="field">
      <span>
        Answer from what was stored at: <strong>{words}</strong>
      </span>
      <input
        type="range"
        min={0}
        max={STEPS}
        value={place}
        aria-valuetext={words}
        onInput={(event) => setPlace(Number(event.currentTarget.value))}
        onChange={(event) => {
          const at = Number(event.currentTarget.value);
          address.set({ as_of: at >= STEPS ? null : momentOf(at) });
        }}
      />
    </label>
  );
}
