"""Whatever a source holds: no traceback, a preview that is right, and twice is once."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import foreign
import foreign_systems
from bethink import Memory
from bethink.errors import BethinkError
from bethink.importers.intake import Tally
from importing import import_from
from rows import each_row
from thorough import examples

EXAMPLES = examples(4, 8)
JUNK: tuple[Any, ...] = (
    None, 7, -1, 10**18, 1e300, True, "", " ", "\x00", "half \ud800", [], {}, ["x", 3], {"a": 1},
    "x" * 70_000, "[[a]] #b", "2026-02-30", "{", "e1a2b3c4", "c1", "root",
)  # fmt: skip


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a JSON value something stands."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(deeper for key, one in inner for deeper in paths_in(one, (*path, key)))]


def with_junk(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """The value with something else in that place."""
    if not path:
        return junk
    changed = copy.copy(value)
    changed[path[0]] = with_junk(changed[path[0]], path[1:], junk)
    return changed


@st.composite
def spoilt(draw: st.DrawFn, whole: Any) -> Any:
    """A value of which parts are missing and others are what they should not be."""
    value = copy.deepcopy(whole)
    if isinstance(value, list):
        kept = draw(st.lists(st.booleans(), min_size=len(value), max_size=len(value)))
        value = [one for one, keep in zip(value, kept, strict=True) if keep]
    for _ in range(draw(st.integers(0, 3))):
        places = [place for place in paths_in(value) if place]
        if places:
            value = with_junk(value, draw(st.sampled_from(places)), draw(st.sampled_from(JUNK)))
    return value


def _mcp_memory(folder: Path, value: Any) -> Path:
    return foreign.jsonl(folder / "memory.jsonl", *(value if isinstance(value, list) else [value]))


def _json(folder: Path, value: Any) -> Path:
    path = folder / "file.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def _remind(folder: Path, value: Any) -> Path:
    path = foreign.remind(folder, [], [])
    with foreign.database(path) as db:
        for number, one in enumerate(value):
            table = "concepts" if number % 2 else "episodes"
            name = one.get("id") if isinstance(one, dict) else None
            told = json.dumps(one)
            db.execute(f"INSERT OR IGNORE INTO {table} (id, data) VALUES (?, ?)",
                       (name if isinstance(name, str) and name.isascii() else str(number), told))  # fmt: skip
    return path


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, int | float | bytes | None) else json.dumps(value)


def _claude_mem(folder: Path, value: Any) -> Path:
    rows = [tuple(map(_cell, row)) for row in value if isinstance(row, list) and len(row) == 12]
    seen: dict[Any, tuple[Any, ...]] = {}
    for row in rows:
        if isinstance(row[0], int):
            seen[row[0]] = row
    return foreign.claude_mem(folder, list(seen.values()))


def _system(make: Callable[[Path, list[dict[str, Any]]], Path]) -> Callable[[Path, Any], Path]:
    def made(folder: Path, value: Any) -> Path:
        rows = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
        return make(folder, [{name: _cell(cell) for name, cell in row.items()} for row in rows])

    return made


def _text(folder: Path, value: Any) -> Path:
    path = folder / "note.md"
    path.write_text(value, encoding="utf-8", errors="surrogatepass")
    return path


def _note() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return (foreign.basic_memory(Path(folder)) / "brewing" / "pour-over.md").read_text()


NOTE = _note()
LINES = st.lists(
    st.sampled_from([*NOTE.splitlines(), "```", "---", "# A", "## A", "- [x] y", "- [a] b (", "<!--",
                     "- r [[T]] (", "[[", "\x00", "\ud800", "tags: [", "x" * 300]),
    max_size=30,
).map("\n".join)  # fmt: skip

CASES: dict[str, tuple[Callable[[Path, Any], Path], Any]] = {
    "mcp-memory": (_mcp_memory, spoilt(foreign.GRAPH)),
    "mem0": (_json, spoilt(foreign.MEMORIES)),
    "remind": (_remind, spoilt([*foreign.EPISODES, *foreign.CONCEPTS])),
    "linksee": (_system(foreign_systems.linksee), spoilt(foreign_systems.LINKSEE_MEMORIES)),
    "abmind": (_system(foreign_systems.abmind), spoilt(foreign_systems.ABMIND_MEMORIES)),
    "siftcoder": (_system(foreign_systems.siftcoder), spoilt(foreign_systems.SIFTCODER_EVENTS)),
    "memind": (_system(foreign_systems.memind), spoilt(foreign_systems.MEMIND_ITEMS)),
    "claude-mem": (_claude_mem, spoilt([list(row) for row in foreign.OBSERVATIONS])),
    "chatgpt": (_json, spoilt(foreign.chatgpt_conversations())),
    "claude": (_json, spoilt(foreign.claude_conversations())),
    "claude-code": (_mcp_memory, spoilt(foreign.TRANSCRIPT)),
    "markdown": (_text, LINES),
    "basic-memory": (_text, LINES),
}


def attempted(memory: Memory, path: Path, kind: str, *, preview: bool) -> Tally | str:
    """The counts, or the sentence with which the whole source was refused."""
    try:
        return import_from(memory, path, kind, preview=preview)
    except BethinkError as refused:
        return refused.message


def numbers(told: Tally | str) -> Any:
    if isinstance(told, str):
        return told
    return (told.stored, told.updated, told.known, told.links, told.n_refused)


@each_row("kind", CASES)
@given(drawn=st.data())
@settings(max_examples=EXAMPLES)
def test_any_part_of_a_source_imports_once(kind: str, drawn: st.DataObject) -> None:
    """After another part of it was: a preview tells what happens, a second time stores
    nothing, nothing raises."""
    make, values = CASES[kind]
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(":memory:", embedder="none") as memory,
    ):
        path = make(Path(folder), drawn.draw(values))
        attempted(memory, path, kind, preview=False)
        path.unlink()
        make(Path(folder), drawn.draw(values))
        preview = attempted(memory, path, kind, preview=True)
        first = attempted(memory, path, kind, preview=False)
        second = attempted(memory, path, kind, preview=False)

        assert numbers(preview) == numbers(first)
        if isinstance(first, Tally):
            assert isinstance(second, Tally)
            assert (second.stored, second.updated, second.links) == (0, 0, 0)
            assert second.n_refused == first.n_refused
            assert second.read == first.read


@each_row("make", [foreign.chatgpt, foreign.remind, foreign.claude_mem, foreign.mem0_history,
                   foreign_systems.linksee, foreign_systems.abmind, foreign_systems.siftcoder,
                   foreign_systems.memind])  # fmt: skip
@given(flips=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3)), min_size=1, max_size=8))
@settings(max_examples=EXAMPLES)
def test_a_damaged_file_is_told(make: foreign.Maker, flips: list[tuple[float, bytes]]) -> None:
    """An archive or a database of which bytes are others, or missing: read as far as that
    goes, and never a traceback."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(":memory:", embedder="none") as memory,
    ):
        path = make(Path(folder))
        content = bytearray(path.read_bytes())
        for place, others in flips:
            start = int(place * len(content))
            content[start : start + 2] = others
        path.write_bytes(content)

        told = attempted(memory, path, "auto", preview=False)

        assert (
            isinstance(told, str)
            or told.read == memory.store.admin.count() + told.known + told.n_refused
        )
