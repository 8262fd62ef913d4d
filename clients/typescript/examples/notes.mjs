// Stores what is given, or answers a question: node notes.mjs "Text." or node notes.mjs "Question?"
import { Bethink } from "bethink";

const memory = new Bethink({ url: process.env.BETHINK_URL ?? "http://127.0.0.1:8765" });
const said = process.argv[2] ?? "What is stored?";

if (said.endsWith("?")) {
  const { status, memories } = await memory.recall(said, { k: 3 });
  console.log(status);
  for (const { text, when, source, reasons } of memories) {
    console.log(`- ${text} (${when.slice(0, 10)}, ${source}; ${reasons.join(", ")})`);
  }
} else {
  const { status, collisions } = await memory.remember(said);
  console.log(status);
  for (const { kind, text } of collisions) console.log(`${kind}: ${text}`);
}
