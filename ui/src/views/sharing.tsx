// Sharing: who sees this space, on which machines it is, and what was changed in two places.
import { useEffect } from "preact/hooks";
import { call } from "../lib/api";
import { conflicts, loadConflicts } from "../lib/counts";
import { classWords, moment, plural } from "../lib/format";
import { useResource } from "../lib/resource";
import { may, session } from "../lib/session";
import { oneLine } from "../lib/text";
import { Badge, Card, Empty, ErrorNote, Loading, Page } from "../parts/basics";
import { Settle } from "../parts/settle";

export function Sharing() {
  useEffect(() => void loadConflicts(), []);
  return (
    <Page title="Sharing" lead="Who sees this space, and on which machines it is.">
      {conflicts.value.length > 0 && (
        <Card title={`${plural(conflicts.value.length, "memory", "memories")} changed in two places`}>
          <div class="stack">
            {conflicts.value.map((one) => (
              <Settle key={one.memory.id} conflict={one} linked />
            ))}
          </div>
        </Card>
      )}
      <div class="halves">
        <People />
        {may("sync_status") ? <Machines /> : null}
      </div>
    </Page>
  );
}

const ROLES: Record<string, string> = {
  reader: "reads",
  writer: "reads and writes; erases what they wrote",
  maintainer: "also erases what all see, exports and imports",
  owner: "all of that; a space always has one",
};

function People() {
  const found = useResource("members", (abort) => call("GET /v1/members", {}, abort));
  const members = found.data?.members ?? [];
  const space = session.value?.space;
  return (
    <Card title="People">
      <Loading on={found.loading} />
      <ErrorNote error={found.error} />
      {found.data && !members.length && (
        <Empty>
          <p>Nobody is named: whoever has a token of this space sees all of it.</p>
          <p>
            <code>bethink people add NAME --space {space}</code> gives somebody a sign-in of their own, with a role and memories that only they see.
          </p>
        </Empty>
      )}
      {members.length > 0 && (
        <>
          <table class="waterfall">
            <caption class="sr">People of this space and what they may do</caption>
            <tbody>
              {members.map((one) => (
                <tr key={one.name}>
                  <th scope="row">
                    {one.name} {one.you && <Badge tone="accent">you</Badge>}
                  </th>
                  <td>{one.role}</td>
                  <td class="muted">{ROLES[one.role] ?? ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="muted small after">
            No role sees what is private to another. Roles are changed on the server: <code>bethink people role NAME ROLE</code>.
          </p>
        </>
      )}
    </Card>
  );
}

function Machines() {
  const found = useResource("sync", (abort) => call("GET /v1/sync", {}, abort));
  const state = found.data;
  return (
    <Card title="Machines">
      <Loading on={found.loading} />
      <ErrorNote error={found.error} />
      {state && !state.device && (
        <Empty>
          <p>This space is on this machine only.</p>
          <p>
            <code>bethink sync TARGET --space {session.value?.space}</code> keeps it the same on others: a folder that something carries,{" "}
            <code>ssh://host</code>, or the address of a server.
          </p>
        </Empty>
      )}
      {state?.device && (
        <div class="stack">
          <table class="waterfall">
            <caption class="sr">Machines that have this space</caption>
            <tbody>
              <tr>
                <th scope="row">{oneLine(state.name, 60)}</th>
                <td>
                  <Badge tone="accent">this one</Badge>
                </td>
                <td class="muted mono">{state.device}</td>
              </tr>
              {state.devices.map((one) => (
                <tr key={one.id}>
                  <th scope="row">{oneLine(one.name, 60)}</th>
                  <td />
                  <td class="muted mono">{one.id}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {state.targets.length > 0 && (
            <table class="waterfall">
              <caption class="sr">Where changes are exchanged</caption>
              <thead>
                <tr>
                  <th scope="col">Target</th>
                  <th scope="col">Last</th>
                  <th scope="col">Up to</th>
                </tr>
              </thead>
              <tbody>
                {state.targets.map((one) => (
                  <tr key={one.target}>
                    <td class="cell-memory">{oneLine(one.target, 200)}</td>
                    <td class="nowrap">{moment(one.last)}</td>
                    <td>{classWords(one.ceiling)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <p class="small muted">
            Where the hash is equal, everything is: <span class="mono">{state.hash}</span>
          </p>
        </div>
      )}
    </Card>
  );
}
