"""The page on JSON has a row, with an example, for every key that is printed."""

from __future__ import annotations

import re
from pathlib import Path

from bethink import Memory
from bethink.core.json_values import Json
from bethink.render.wire import recall_json, remembered_json, why_not_json

PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")


def documented() -> dict[str, set[str]]:
    """The keys of the rows with an example, by the heading that they stand under."""
    found: dict[str, set[str]] = {}
    for section in re.split(r"^##+ ", PAGE, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| (`[^|]+`) \| [^|]+ \| [^|]+ \|$", section, re.MULTILINE)
        found[section.splitlines()[0]] = set(re.findall(r"`(\w+)`", " ".join(rows)))
    return found


def test_every_key_has_a_row_with_an_example() -> None:
    """And no row is of a key that is not there."""
    with Memory.open(":memory:") as memory:
        memory.remember("Releases go out on Tuesdays at ten")
        result = memory.remember("Releases now go out on Thursdays")
        answer = memory.recall("when do we ship?")
        printed = recall_json(answer, trace=True)
        why_not = why_not_json(memory.why_not(result.id, "how do I tune a violin?"))
    remembered = remembered_json(result)
    trace = printed["trace"]
    keys: dict[str, Json] = {
        "`remember --json`": remembered,
        "A collision": remembered["collisions"][0],
        "`recall --json`": printed,
        "The query": printed["query"],
        "The page": printed["page"],
        "A hit": printed["items"][0],
        "The trace": trace | trace["steps"][0],
        "`why-not --json`": why_not,
    }

    for heading, value in keys.items():
        assert documented()[heading] == set(value), heading
