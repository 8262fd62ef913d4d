import assert from "node:assert/strict";
import { test } from "node:test";
import { Bethink, Unauthorized } from "bethink";

const url = process.env.BETHINK_URL;
const memory = new Bethink({ url });

/** A real fetch whose first answer breaks off after some bytes have come. */
function breaking() {
  let broken = false;
  const headers = [];
  const fetch = async (to, init) => {
    const response = await globalThis.fetch(to, init);
    headers.push(init.headers["Last-Event-ID"]);
    if (broken) return response;
    broken = true;
    let chunks = 0;
    const body = response.body.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          controller.enqueue(chunk);
          if (++chunks === 2) controller.error(new TypeError("terminated"));
        },
      }),
    );
    return new Response(body, response);
  };
  return { memory: new Bethink({ url, fetch }), headers };
}

test("changes are told as they happen, and what was missed is told later", async () => {
  const changes = memory.watch();
  assert.equal((await changes.next()).value.type, "ready");
  const first = await memory.remember("The first of two that are watched");
  const { value: seen } = await changes.next();
  assert.deepEqual([seen.type, seen.kind, seen.item], ["change", "stored", first.id]);
  await changes.return();

  const second = await memory.remember("The second, while nobody was watching");
  const again = memory.watch({ lastEventId: seen.id });
  const { value: missed } = await again.next();
  assert.deepEqual([missed.kind, missed.item], ["stored", second.id]);
  assert.ok(missed.seq > seen.seq);
  await again.return();
});

test("a stream that breaks off goes on where it was", async () => {
  const { memory: shaky, headers } = breaking();
  const stop = new AbortController();
  const kinds = [];
  let sent = 0;
  for await (const change of shaky.watch({ signal: stop.signal })) {
    kinds.push(change.type === "change" ? change.kind : change.type);
    if (kinds.filter((kind) => kind === "stored").length === 2) stop.abort();
    else if (sent < 2) await memory.remember(`Told over a shaky line, number ${sent++}`);
  }
  assert.equal(kinds[0], "ready");
  assert.equal(kinds.filter((kind) => kind === "stored").length, 2);
  assert.ok(headers.length >= 2 && headers[0] === undefined && headers[1]);
});

test("a signal ends the loop, a refusal is thrown", async () => {
  const ends = [];
  for (const signal of [AbortSignal.abort(), AbortSignal.timeout(200)]) {
    for await (const change of memory.watch({ signal })) ends.push(change.type);
  }
  assert.deepEqual(ends, ["ready"]);
  await assert.rejects(new Bethink({ url: process.env.BETHINK_GUARDED }).watch().next(), Unauthorized);
  const silent = new Bethink({ url }).watch({ silenceMs: 300, reconnect: false });
  await silent.next();
  await assert.rejects(silent.next(), /silent|broke off/);
});
