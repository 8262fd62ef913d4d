// Results of `bethink eval`, from a saved report that is read in the browser and sent nowhere.
import { useState } from "preact/hooks";
import { count, percent } from "../lib/format";
import { Card, Empty } from "../parts/basics";

interface Calibration {
  n: number;
  ece: number;
  auc: number | null;
  bins: { confidence: number; right: number; share: number }[];
}

interface Profile {
  name: string;
  calibration: Calibration | null;
  types: { type: string; quality: Record<string, number> | null }[];
}

interface Report {
  measured_on: { label: string; questions: number; memories: number };
  profiles: Profile[];
}

/** The sets of a report; null where a file is no report. */
export function setsOf(text: string): Report[] | null {
  try {
    const parsed = JSON.parse(text) as Partial<Report> & { sets?: Report[] };
    const sets = parsed.sets ?? [parsed as Report];
    const good = sets.every((one) => one.measured_on && Array.isArray(one.profiles));
    return good && sets.length ? sets : null;
  } catch {
    return null;
  }
}

export function Evaluation() {
  const [sets, setSets] = useState<Report[] | null>(null);
  const [problem, setProblem] = useState("");
  const [metric, setMetric] = useState("hit@1");
  const read = async (file: File | undefined) => {
    if (!file) return;
    const found = setsOf(await file.text());
    setSets(found);
    setProblem(found ? "" : `${file.name} is no report of bethink eval`);
  };
  const metrics = Object.keys(sets?.[0]?.profiles[0]?.types[0]?.quality ?? {});
  return (
    <Card title="Evaluation">
      <div class="stack-s">
        <label class="field">
          <span>
            A report of <code>bethink eval --save report.json</code>; it stays in this browser
          </span>
          <input class="input" type="file" accept=".json,application/json" onChange={(event) => void read(event.currentTarget.files?.[0])} />
        </label>
        {problem && (
          <p class="notice bad" role="alert">
            {problem}
          </p>
        )}
        {sets && (
          <>
            <label class="row small muted">
              Metric
              <select class="input narrow" value={metric} onChange={(event) => setMetric(event.currentTarget.value)}>
                {metrics.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            {sets.map((set) => (
              <section key={set.measured_on.label} class="stack-s">
                <h3>
                  {set.measured_on.label}{" "}
                  <span class="muted small">
                    {count(set.measured_on.questions)} questions, {count(set.measured_on.memories)} memories
                  </span>
                </h3>
                <ByType profiles={set.profiles} metric={metric} />
                <div class="row diagrams">
                  {set.profiles.map((profile) =>
                    profile.calibration ? <Reliability key={profile.name} name={profile.name} found={profile.calibration} /> : null,
                  )}
                </div>
              </section>
            ))}
          </>
        )}
        {!sets && !problem && <Empty>No report is open.</Empty>}
      </div>
    </Card>
  );
}

function ByType(props: { profiles: Profile[]; metric: string }) {
  return (
    <table class="waterfall">
      <caption class="sr">{props.metric} by type of question</caption>
      <tbody>
        {(props.profiles[0]?.types ?? []).flatMap((row) =>
          props.profiles.map((profile, place) => {
            const value = profile.types.find((one) => one.type === row.type)?.quality?.[props.metric];
            if (value === undefined) return null;
            return (
              <tr key={`${row.type} ${profile.name}`} class={`series-${(place % 4) + 1}`}>
                <th scope="row">{place ? "" : row.type}</th>
                <td class="small muted">{profile.name}</td>
                <td class="bar-cell">
                  <svg class="bar-svg" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                    <rect class="bar base" width="100" y="4.6" height="0.8" />
                    <rect class="bar series-bar" width={value * 100} y="2" height="6" />
                  </svg>
                </td>
                <td class="num">{percent(value)}</td>
              </tr>
            );
          }),
        )}
      </tbody>
    </table>
  );
}

const SIZE = 170;

/** Said against right: a point for each bin; on the diagonal both are equal. */
function Reliability(props: { name: string; found: Calibration }) {
  const { found } = props;
  const x = (value: number) => 30 + value * SIZE;
  const y = (value: number) => 8 + (1 - value) * SIZE;
  const points = found.bins.map((one) => `${x(one.confidence)},${y(one.right)}`).join(" ");
  return (
    <figure>
      <svg class="diagram" viewBox={`0 0 ${SIZE + 44} ${SIZE + 40}`} role="img" aria-label={`Reliability of ${props.name}: error ${found.ece.toFixed(3)}`}>
        <rect class="frame" x={30} y={8} width={SIZE} height={SIZE} />
        <line class="diagonal" x1={x(0)} y1={y(0)} x2={x(1)} y2={y(1)} />
        <polyline class="bump-line" points={points} />
        {found.bins.map((one, place) => (
          <circle key={place} class="bump-dot event" cx={x(one.confidence)} cy={y(one.right)} r="4.5">
            <title>{`said ${percent(one.confidence)}, right ${percent(one.right)}`}</title>
          </circle>
        ))}
        <text class="axis" x={26} y={16} font-size="10" text-anchor="end">
          right
        </text>
        <text class="axis" x={30 + SIZE} y={SIZE + 22} font-size="10" text-anchor="end">
          said
        </text>
      </svg>
      <figcaption class="small muted">
        {props.name}: calibration error {found.ece.toFixed(3)}
        {found.auc !== null && `, AUC ${found.auc.toFixed(3)}`}, {count(found.n)} answers
      </figcaption>
    </figure>
  );
}
