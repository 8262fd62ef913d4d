"""Ask the little stores of ``training/data/corrections`` as a default caller does.

    python bench/corrections.py

Prints how often a changed value is answered by its newest note, how often something that has
not changed is answered first, in how many stores without a change a note is marked as older,
and the same for values that chats state again.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bethink import Memory
from bethink.model import Draft

DATA = Path(__file__).parent.parent / "training/data/corrections"
START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def drafts_of(row: dict[str, Any]) -> list[Draft]:
    notes = [
        Draft(text, occurred_at=START + timedelta(days=9 * at))
        for at, text in enumerate(row.get("notes", ()))
    ]
    turns = [
        Draft(turn["text"], occurred_at=START + timedelta(days=turn["day"], minutes=at),
              session=turn["session"], speaker=turn["speaker"], seq=at)
        for at, turn in enumerate(row.get("turns", ()))
    ]  # fmt: skip
    return notes + turns


def ask(memory: Memory, ids: list[str], row: dict[str, Any], counts: Counter[str]) -> None:
    for question in row["questions"]:
        answer = memory.recall(question["q"], track=False)
        order = [ids.index(hit.item.id) for hit in answer.hits]
        first, old = question["first"], question.get("not_above")
        kind = "something else" if old is None else "changed value"
        counts[kind] += 1
        counts[f"{kind}: first"] += order[:1] == [first]
        if old is not None:
            older = {old} if isinstance(old, int) else {*old}
            before = order[: order.index(first)] if first in order else order
            counts[f"{kind}: above the old"] += first in order and older.isdisjoint(before)
        counts["answers with a mark"] += any(hit.see_newer for hit in answer.hits)


def main() -> None:
    for name in ("a", "b", "c", "chats", "chats-2", "chats-3", "rules"):
        rows = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
        counts, marked = Counter[str](), 0
        for row in rows:
            with Memory.open(":memory:") as memory:
                # Notes are stored one by one, as people do; a chat in one batch, as an import.
                drafts = drafts_of(row)
                batches = [drafts] if "turns" in row else [[draft] for draft in drafts]
                ids = [one.id for some in batches for one in memory.remember_many(some)]
                before = counts["answers with a mark"]
                ask(memory, ids, row, counts)
                marked += counts["answers with a mark"] > before
        print(name, len(rows), "stores,", marked, "with a mark;", dict(counts), flush=True)


if __name__ == "__main__":
    main()
