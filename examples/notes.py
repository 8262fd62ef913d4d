"""Keep notes and ask them: store, recall, correct, forget.

Run it with ``python examples/notes.py``. It needs no model download, no network and leaves
no file: the memory lives as long as the program.
"""

from __future__ import annotations

from bethink import Draft, Memory

NOTES = [
    Draft("Releases are cut on Tuesdays at ten", kind="decision", topic="release"),
    Draft("Ana owns the billing module", kind="fact", entities=("person:Ana",)),
    Draft("Alerts go to the channel #ops", kind="fact", topic="operations"),
]


def ask(memory: Memory, question: str) -> None:
    """Print the answer to a question, or that there is none."""
    answer = memory.recall(question, k=1)
    found = answer.hits[0].item.text if answer.status == "found" else "nothing about that"
    print(f"{question}\n  {found}")


def main() -> None:
    """Store three notes, ask, correct one and forget another."""
    with Memory.open(":memory:") as memory:
        release, _, alerts = memory.remember_many(NOTES)
        ask(memory, "when do we release?")
        ask(memory, "who is responsible for billing?")
        ask(memory, "who wrote Middlemarch?")

        memory.update(release.id, text="Releases are cut on Fridays at noon")
        ask(memory, "when do we release?")

        memory.forget(alerts.id)
        ask(memory, "where do alerts go?")
        memory.restore(alerts.id)
        ask(memory, "where do alerts go?")


if __name__ == "__main__":
    main()
