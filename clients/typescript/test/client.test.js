import assert from "node:assert/strict";
import { test } from "node:test";
import * as bethink from "bethink";

const { Bethink } = bethink;
const url = process.env.BETHINK_URL;
const guarded = process.env.BETHINK_GUARDED;
const token = process.env.BETHINK_TOKEN;
const memory = new Bethink({ url });

/** A real fetch that goes wrong as told: for each request a function of it, or nothing. */
function faulty(...faults) {
  const sent = [];
  const fetch = async (to, init) => {
    sent.push(init);
    const fault = faults.shift();
    return fault ? fault(() => globalThis.fetch(to, init)) : globalThis.fetch(to, init);
  };
  return { memory: new Bethink({ url, fetch }), sent };
}

const lost = async (send) => {
  await send(); // the server has done it, but its answer is lost
  throw new TypeError("fetch failed");
};
const busy = async () => Response.json({ error: { kind: "busy", message: "busy", remedy: "" } }, { status: 503, headers: { "Retry-After": "0" } });

test("what is remembered is recalled, corrected, forgotten and restored", async () => {
  const { id, status } = await memory.remember("Releases are cut on Tuesdays", { kind: "decision", topic: "releases" });
  assert.equal(status, "stored");

  const answer = await memory.recall("when are releases cut?", { k: 3 });
  assert.equal(answer.status, "found");
  assert.equal(answer.memories[0].text, "Releases are cut on Tuesdays");
  assert.equal((await memory.get(id)).topic, "releases");

  await memory.update(id, { text: "Releases are cut on Thursdays" });
  assert.equal((await memory.get(id)).text, "Releases are cut on Thursdays");
  assert.match((await memory.explain({ id })).explanation, /\S/);

  const preview = await memory.forget({ ids: [id] });
  assert.equal(preview.done, false);
  assert.equal((await memory.forget({ ids: [id], token: preview.token })).done, true);
  assert.deepEqual(await memory.restore([id]), [id]);
  assert.equal((await memory.undo({ id })).done, true);
});

test("any route can be called, with arguments in its path, its query and its body", async () => {
  const { id } = await memory.remember("Heron & co / 100% of the staging database, says Mara?");

  assert.equal((await memory.call("GET /v1/memories/{id}/history", { id, limit: 1 })).revisions.length, 1);
  assert.equal((await memory.call("GET /v1/recall", { q: "Heron & co / 100%?", k: 1 })).memories[0].id, id);
  assert.equal((await memory.call("GET /v1/session", {})).space, "from-typescript");
  assert.ok((await memory.stats()).memories > 0);
});

test("lists go on to their end, page after page", async () => {
  const texts = Array.from({ length: 12 }, (_, n) => `Shelf number ${n} holds paint of tint ${n}`);
  const results = await memory.rememberMany([...texts.map((text) => ({ text, topic: "shelves" })), { text: "" }]);

  const listed = [];
  for await (const one of memory.list({ topic: "shelves", limit: 5 })) listed.push(one.text);
  const hits = new Set();
  for await (const hit of memory.recallAll({ query: "paint on the shelves", topic: "shelves", k: 5, min_confidence: 0, min_relevance: 0 })) hits.add(hit.text);
  const seqs = [];
  for await (const event of memory.journal()) seqs.push(event.seq);

  assert.deepEqual(results.map((one) => one.status), [...texts.map(() => "stored"), "refused"]);
  assert.ok(bethink.refusalOf(results.at(-1)) instanceof bethink.Refused);
  assert.equal(bethink.refusalOf(results[0]), undefined);
  assert.deepEqual(listed.toSorted(), texts.toSorted());
  assert.deepEqual([...hits].toSorted(), texts.toSorted());
  assert.deepEqual(seqs, seqs.toSorted((a, b) => a - b));
});

test("a problem is an error of its class, with what to do", async () => {
  await memory.remember("The key is used once", { key: "once" });
  const rows = [
    [() => memory.get("no-such-memory"), bethink.NotFound, "not_found", 404],
    [() => memory.get(".."), bethink.Malformed, "malformed", 0],
    [() => memory.get(""), bethink.Malformed, "malformed", 0],
    [() => memory.remember(""), bethink.Refused, "refused", 422],
    [() => memory.remember("x".repeat(70_000)), bethink.TooLarge, "too_large", 422],
    [() => memory.remember("Another text", { key: "once" }), bethink.Conflict, "conflict", 409],
    [() => memory.recall("a", { profile: "none-such" }), bethink.NotFound, "not_found", 404],
    [() => memory.recall({ nonsense: 1 }), bethink.Refused, "refused", 422],
    [() => new Bethink({ url: guarded }).stats(), bethink.Unauthorized, "no_token", 401],
    [() => new Bethink({ url: guarded, token: "bt_wrong" }).stats(), bethink.Unauthorized, "bad_token", 401],
    [() => new Bethink({ url, space: "elsewhere" }).stats(), bethink.NotFound, "not_found", 404],
    [() => new Bethink({ url: "http://127.0.0.1:9", retries: 0 }).stats(), bethink.Unreachable, "unreachable", 0],
    [() => new Bethink({ url, timeoutMs: 1, retries: 0, fetch: slow }).stats(), bethink.Unreachable, "timeout", 0],
  ];
  for (const [ask, kind, name, status] of rows) {
    const error = await ask().then(() => assert.fail(`no ${name}`), (thrown) => thrown);
    assert.ok(error instanceof kind, `${error}`);
    assert.ok(error instanceof bethink.BethinkError && error.message.length > 0);
    assert.deepEqual([error.kind, error.status], [name, status]);
  }
  async function slow(to, init) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return globalThis.fetch(to, init);
  }
});

test("reads and writes with a key are tried again, other writes are not", async () => {
  const kept = faulty(lost, busy);
  const once = await kept.memory.remember("Sent three times and stored once");
  assert.equal(kept.sent.length, 3);
  assert.equal(once.status, "repeated");

  const read = faulty(busy, lost);
  await read.memory.recall("anything");
  assert.equal(read.sent.length, 3);

  const unkeyed = faulty(busy);
  await assert.rejects(unkeyed.memory.call("POST /v1/memories", { text: "Sent once" }), bethink.Busy);
  const change = faulty(lost);
  await assert.rejects(change.memory.update(once.id, { topic: "t" }), bethink.Unreachable);
  assert.deepEqual([unkeyed.sent.length, change.sent.length], [1, 1]);
});

test("a server that limits its callers is waited for", async () => {
  const limited = new Bethink({ url: guarded, token });
  const answers = await Promise.all(Array.from({ length: 4 }, async () => {
    for (let n = 0; n < 31; n++) await limited.stats();
    return true;
  }));
  assert.deepEqual(answers, [true, true, true, true]);
  const hasty = new Bethink({ url: guarded, token, retries: 0 });
  const ends = await Promise.all(Array.from({ length: 10 }, () => hasty.stats().catch((error) => error)));
  const limits = ends.filter((one) => one instanceof bethink.RateLimited);
  assert.ok(limits.length > 0 && limits.every((one) => one.retryAfter >= 1));
});

test("a signal ends a request and what waits for the next one", async () => {
  const early = AbortSignal.abort(new Error("changed my mind"));
  await assert.rejects(memory.stats({ signal: early }), /changed my mind/);
  const later = new AbortController();
  const asked = new Bethink({ url: "http://127.0.0.1:9", retries: 50 }).stats({ signal: later.signal });
  setTimeout(() => later.abort(new Error("too late")), 50);
  await assert.rejects(asked, /too late/);
});
