import assert from "node:assert/strict";
import { test } from "node:test";
import { BaseStore } from "@langchain/langgraph-checkpoint";
import { Bethink, Refused } from "bethink";
import { BethinkStore } from "bethink/langgraph";

const memory = new Bethink({ url: process.env.BETHINK_URL });
const store = new BethinkStore(memory);
const keys = (found) => found.map((item) => item.key);

test("values come back as they were put, by key, filter, question and namespace", async () => {
  assert.ok(store instanceof BaseStore);
  const ann = ["people", "ann"];
  await store.put(ann, "tea", { text: "Ann drinks green tea", n: 1, deep: { a: [null, "ü", { b: true }] } });
  await store.put(ann, "car", { text: "Ann drives a red car", n: 2 });
  await store.put(["people", "bob"], "boat", { text: "Bob sails a boat", n: 3 });

  const found = await store.get(ann, "tea");
  assert.deepEqual(found.value, { text: "Ann drinks green tea", n: 1, deep: { a: [null, "ü", { b: true }] } });
  assert.deepEqual([found.key, found.namespace], ["tea", ann]);
  assert.ok(found.createdAt instanceof Date && found.updatedAt >= found.createdAt);
  assert.equal(await store.get(ann, "none"), null);

  assert.deepEqual(keys(await store.search(ann)).toSorted(), ["car", "tea"]);
  assert.deepEqual(keys(await store.search(["people"], { filter: { n: { $gte: 2 } } })).toSorted(), ["boat", "car"]);
  const [best] = await store.search(["people"], { query: "what does Ann drink?", limit: 1 });
  assert.equal(best.key, "tea");
  assert.equal(typeof best.score, "number");
  assert.equal((await store.search(["people"], { limit: 1, offset: 2 })).length, 1);

  await store.put(ann, "tea", { text: "Ann drinks black tea", n: 1 });
  const changed = await store.get(ann, "tea");
  assert.deepEqual([changed.value.text, changed.createdAt], ["Ann drinks black tea", found.createdAt]);
  await store.delete(ann, "car");
  assert.equal(await store.get(ann, "car"), null);

  assert.deepEqual(await store.listNamespaces({ prefix: ["people"] }), [ann, ["people", "bob"]]);
  assert.deepEqual(await store.listNamespaces({ suffix: ["bob"] }), [["people", "bob"]]);
  assert.deepEqual(await store.listNamespaces({ prefix: ["people"], maxDepth: 1 }), [["people"]]);
  assert.deepEqual(await store.listNamespaces({ prefix: ["*", "bob"], limit: 1, offset: 0 }), [["people", "bob"]]);
});

test("a batch reads the state before it, and the last write to a key wins", async () => {
  const namespace = ["batch"];
  await store.put(namespace, "a", { n: 1 });
  const results = await store.batch([
    { namespace, key: "a" },
    { namespace, key: "a", value: { n: 2 } },
    { namespacePrefix: namespace, limit: 5 },
    { namespace, key: "b", value: { n: 3 } },
    { namespace, key: "b", value: { n: 4 } },
    { namespace, key: "b" },
    { matchConditions: [{ matchType: "prefix", path: namespace }], limit: 5, offset: 0 },
    { namespace, key: "a", value: null },
  ]);
  assert.equal(results.length, 8);
  assert.equal(results[0].value.n, 1);
  assert.deepEqual(results[2].map((item) => item.value.n), [1]);
  assert.equal(results[5], null);
  assert.deepEqual(results[6], [namespace]);
  assert.equal(await store.get(namespace, "a"), null);
  assert.equal((await store.get(namespace, "b")).value.n, 4);
});

test("what is searched can be chosen, secrets are left out, limits are told", async () => {
  const told = [];
  const chosen = new BethinkStore(memory, { abstain: true, fields: ["title"], onRedaction: (...one) => told.push(one) });
  const namespace = ["chosen"];
  await chosen.put(namespace, "default", { title: "The harbour pilot", body: "a walnut desk" });
  await chosen.put(namespace, "named", { title: "x", parts: [{ a: 1 }], tags: ["zinc roof"], no: null }, ["tags[*]", "no.where"]);
  await chosen.put(namespace, "dark", { title: "An unseen lighthouse" }, false);
  await chosen.put(namespace, "secret", { title: `AKIA${"Q3EGLQ7XUVZ5T2MB"}` });

  assert.deepEqual(keys(await chosen.search(namespace, { query: "harbour pilot" })), ["default"]);
  assert.deepEqual(keys(await chosen.search(namespace, { query: "zinc roof" })), ["named"]);
  assert.ok(!keys(await chosen.search(namespace, { query: "unseen lighthouse" })).includes("dark"));
  const [sure] = await chosen.search(namespace, { query: "harbour pilot" });
  assert.ok(["found", "unsure"].includes(sure.status) && sure.confidence > 0);
  assert.equal(told[0][0], "chosen/secret");
  await assert.rejects(chosen.put(namespace, "large", { a: "x".repeat(70_000) }), Refused);
  await assert.rejects(chosen.search(namespace, { filter: { a: { $regex: "." } } }), Refused);
});

test("many and long values go in pages", async () => {
  const namespace = ["pages"];
  const text = "y".repeat(60_000);
  const values = Array.from({ length: 45 }, (_, n) => ({ namespace, key: `${n}`, value: { n, text }, index: false }));
  await store.batch(values);
  const found = await store.search(namespace, { limit: 100 });
  assert.deepEqual(found.map((item) => item.value.n).toSorted((a, b) => a - b), values.map((_, n) => n));
  const gotten = await store.batch(values.map(({ key }) => ({ namespace, key })));
  assert.deepEqual(gotten.map((item) => item.value.n), values.map((_, n) => n));
});

test("LangGraph in Python and in JavaScript share one store", async () => {
  const both = ["both", "sides"];
  const found = await store.get(both, "python");
  assert.deepEqual(found.value, { text: "Written in Python: the kiln fires at noon", n: 1 });
  const [best] = await store.search(["both"], { query: "when does the kiln fire?", limit: 1 });
  assert.equal(best.key, "python");
  await store.put(both, "node", { text: "Written in JavaScript: Ümläute \x7f 東京 😀", n: [1, 2.5, null] });
  await store.put(both, "removed", { n: 1 });
  await store.delete(both, "removed");
});
