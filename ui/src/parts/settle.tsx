// A memory that was changed on two machines at once: both versions, and the decision between them.
import { useState } from "preact/hooks";
import { ApiError, call } from "../lib/api";
import { loadConflicts, type Conflict } from "../lib/counts";
import { moment } from "../lib/format";
import { may } from "../lib/session";
import { oneLine } from "../lib/text";
import { memoryLink } from "../lib/url";
import { ErrorNote, MemoryText, tell } from "./basics";

type Keep = "current" | "other" | "both";

export function Settle(props: { conflict: Conflict; linked?: boolean; onDone?: () => void }) {
  const { memory, others } = props.conflict;
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const last = others[others.length - 1];
  const settle = async (keep: Keep) => {
    setBusy(true);
    try {
      await call("POST /v1/memories/{id}/settle", { id: memory.id, keep });
      tell("Settled, for all machines.");
      await loadConflicts();
      props.onDone?.();
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem;
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="notice warn stack-s" aria-label="Conflict">
      {!props.linked && <strong>Changed in two places</strong>}
      <div class="versions">
        <div class="stack-s">
          <h3>Current {props.linked && <a href={memoryLink(memory.id)}>open</a>}</h3>
          <MemoryText text={memory.text} clamp />
        </div>
        {others.map((other, place) => (
          <div key={place} class="stack-s">
            <h3>
              {other.kind === "edited" ? "Other" : `Was ${other.kind}`}{" "}
              <span class="muted small">
                on {oneLine(other.device, 40)}, {moment(other.at)}
              </span>
            </h3>
            {other.text && <MemoryText text={other.text} clamp />}
          </div>
        ))}
      </div>
      <ErrorNote error={error} />
      {may("settle") && last && (
        <div class="row">
          <button type="button" class="button" disabled={busy} onClick={() => void settle("current")}>
            Keep the current
          </button>
          <button type="button" class="button" disabled={busy} onClick={() => void settle("other")}>
            {last.kind === "edited" ? "Take the other" : last.kind === "forgotten" ? "Forget it" : "Mark it as replaced"}
          </button>
          {last.kind === "edited" && (
            <button type="button" class="button" disabled={busy} onClick={() => void settle("both")}>
              Keep both
            </button>
          )}
        </div>
      )}
    </section>
  );
}
