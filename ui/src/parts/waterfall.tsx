// The evidence of a score as a table with bars: each bar starts where the one before it ended.
import { partName, replay, type Evidence } from "../lib/evidence";
import { score, signed } from "../lib/format";

const SIGN = { seen: "", add: "+", times: "×", set: "=" } as const;

export function EvidenceWaterfall(props: { evidence: readonly Evidence[]; score: number | null; caption: string }) {
  const stages = replay(props.evidence);
  const reached = stages.flatMap((stage) => [stage.before, stage.after]);
  const low = Math.min(0, ...reached);
  const high = Math.max(...reached, low + 1e-9);
  const x = (value: number) => ((value - low) / (high - low)) * 100;
  const total = stages.length ? stages[stages.length - 1]!.after : 0;
  const addsUp = props.score === null || Math.abs(total - props.score) < 1e-6;
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={props.caption}>
      <table class="waterfall fold sums" role="table">
        <caption class="sr">{props.caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th scope="col" role="columnheader">Part</th>
            <th scope="col" role="columnheader" class="why-cell">
              Because
            </th>
            <th scope="col" role="columnheader" class="num">
              Value
            </th>
            <th scope="col" role="columnheader" class="bar-cell">
              Contribution
            </th>
            <th scope="col" role="columnheader" class="num">
              Score
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {stages.map(({ evidence: one, before, after }, place) => (
            <tr key={place} role="row">
              <th scope="row" role="rowheader" title={one.by}>
                {partName(one.by)}
              </th>
              <td role="cell" class="why-cell muted">{reasonOf(one)}</td>
              <td role="cell" class="num">
                {one.op === "seen" ? <span class="muted" title="Seen, not counted by itself">({score(one.value)})</span> : `${SIGN[one.op]} ${score(one.value)}`}
              </td>
              <td role="cell" class="bar-cell">
                {one.op !== "seen" && (
                  <svg class="bar-svg" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                    <rect class="bar base" x={x(0)} width={Math.max(0, x(Math.min(before, after)) - x(0))} y="4.5" height="1" />
                    <rect
                      class={after < before ? "bar minus" : "bar"}
                      x={x(Math.min(before, after))}
                      width={Math.max(0.6, Math.abs(x(after) - x(before)))}
                      y="1"
                      height="8"
                    />
                  </svg>
                )}
              </td>
              <td role="cell" class="num">{one.op === "seen" ? "" : score(after)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot role="rowgroup">
          <tr role="row">
            <th scope="row" role="rowheader">
              Score
            </th>
            <td role="cell" class="why-cell muted small">
              {addsUp ? "The contributions add up to the score." : `The answer says ${score(props.score)}.`}
            </td>
            <td role="cell" />
            <td role="cell" class="bar-cell">
              <svg class="bar-svg" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                <rect class="bar total" x={x(Math.min(0, total))} width={Math.abs(x(total) - x(0))} y="1" height="8" />
              </svg>
            </td>
            <td role="cell" class="num">{score(total)}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

function reasonOf(one: Evidence): string {
  return one.op === "seen" && one.rank !== undefined ? `${one.why} (rank ${one.rank})` : one.why;
}

/** The reasons for a confidence: log-odds that add up to it. */
export function ReasonBars(props: { reasons: { feature: string; contribution: number; why: string }[] }) {
  const most = Math.max(1e-9, ...props.reasons.map((reason) => Math.abs(reason.contribution)));
  return (
    <table class="waterfall">
      <caption class="sr">Reasons for the confidence, in log-odds</caption>
      <thead>
        <tr>
          <th scope="col">Reason</th>
          <th scope="col" class="bar-cell">
            Against or for
          </th>
          <th scope="col" class="num">
            Log-odds
          </th>
        </tr>
      </thead>
      <tbody>
        {props.reasons.map((reason) => {
          const width = (Math.abs(reason.contribution) / most) * 50;
          return (
            <tr key={reason.feature}>
              <td>{reason.why}</td>
              <td class="bar-cell">
                <svg class="bar-svg" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                  <rect
                    class={reason.contribution < 0 ? "bar minus" : "bar"}
                    x={reason.contribution < 0 ? 50 - width : 50}
                    width={Math.max(0.5, width)}
                    y="1"
                    height="8"
                  />
                </svg>
              </td>
              <td class="num">{signed(reason.contribution, 2)}</td>
            </tr>
          );
        })}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">All of them</th>
          <td />
          <td class="num">{signed(props.reasons.reduce((sum, reason) => sum + reason.contribution, 0), 2)}</td>
        </tr>
      </tfoot>
    </table>
  );
}
