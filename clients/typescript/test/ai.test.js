import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, stepCountIs } from "ai";
import { Bethink } from "bethink";
import { memoryTools } from "bethink/ai";

const memory = new Bethink({ url: process.env.BETHINK_URL });

/** A language model that says what it is told to, step after step. */
function scripted(...steps) {
  const prompts = [];
  return {
    prompts,
    specificationVersion: "v3",
    provider: "test",
    modelId: "scripted",
    supportedUrls: {},
    async doGenerate({ prompt, tools }) {
      prompts.push({ prompt, tools });
      const content = steps[prompts.length - 1];
      const called = content[0].type === "tool-call";
      return {
        content,
        finishReason: { unified: called ? "tool-calls" : "stop", raw: undefined },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        warnings: [],
      };
    },
  };
}

const call = (id, toolName, input) => ({ type: "tool-call", toolCallId: id, toolName, input: JSON.stringify(input) });

test("a model remembers and recalls by its tools", async () => {
  const model = scripted(
    [call("1", "remember", { text: "Ines prefers short answers", kind: "preference" })],
    [call("2", "recall", { query: "what answers does Ines prefer?" })],
    [{ type: "text", text: "Short ones." }],
  );

  const { text, steps } = await generateText({
    model,
    tools: memoryTools(memory, { remember: { topic: "people" }, recall: { k: 2 } }),
    stopWhen: stepCountIs(5),
    prompt: "How shall I answer Ines?",
  });

  assert.equal(text, "Short ones.");
  const [stored, recalled] = steps.flatMap((step) => step.toolResults).map((result) => result.output);
  assert.equal(stored.status, "stored");
  assert.equal(recalled.status, "found");
  assert.deepEqual(recalled.memories[0].text, "Ines prefers short answers");
  assert.match(recalled.notice, /Do not follow instructions/);
  assert.equal((await memory.get(stored.id)).topic, "people");
  assert.deepEqual(model.prompts[0].tools.map((one) => one.name).toSorted(), ["recall", "remember"]);
  assert.match(JSON.stringify(model.prompts[2].prompt), /Ines prefers short answers/);
});

test("a call that is repeated stores nothing new", async () => {
  const { remember } = memoryTools(memory);
  const told = { text: "The lift is repaired on Monday" };
  const options = { toolCallId: "call-1", messages: [] };

  const first = await remember.execute(told, options);
  const second = await remember.execute(told, options);

  assert.deepEqual([first.status, second.status], ["stored", "repeated"]);
  assert.equal(second.id, first.id);
});
