/** What the compiler knows of the package; it only has to compile. */

import { generateText, type LanguageModel } from "ai";
import { Bethink, type Change, type Hit, type Memory, NotFound, type Recall } from "bethink";
import { memoryTools } from "bethink/ai";
import { BethinkStore } from "bethink/langgraph";

export async function compiles(memory: Bethink, model: LanguageModel): Promise<void> {
  const answer: Recall = await memory.recall("when?", { k: 3, since: "2026-05-07" });
  const status: "found" | "unsure" | "nothing_matched" | "nothing_stored" = answer.status;
  const hit: Hit | undefined = answer.memories[0];
  const relevance: number | null | undefined = hit?.relevance;
  for await (const one of memory.list({ topic: "t" })) void (one satisfies Memory);
  for await (const change of memory.watch()) void (change satisfies Change);
  const history = await memory.call("GET /v1/memories/{id}/history", { id: "m", limit: 2 });
  const texts: string[] = history.revisions.map((one) => one.text);
  const found = await memory.call("GET /v1/memories/{id}/why-not", { id: "m", q: "why?" });
  const told: string = found.explanation;
  const problem: number = new NotFound("gone").status;
  await generateText({ model, tools: memoryTools(memory), prompt: "hello" });
  const item = await new BethinkStore(memory).get(["a"], "k");
  const at: Date | undefined = item?.createdAt;
  void [status, relevance, texts, told, problem, at];

  // @ts-expect-error there is no such argument
  await memory.recall("when?", { kk: 3 });
  // @ts-expect-error a memory needs a text
  await memory.call("POST /v1/memories", {});
  // @ts-expect-error there is no such route
  await memory.call("GET /v1/nothing", {});
  // @ts-expect-error the id is part of the path
  await memory.call("GET /v1/memories/{id}", {});
  // @ts-expect-error there is no such field in an answer
  void answer.hits;
}
