"""Twenty canaries, each by another way into a memory; after the erase no byte of any is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.model import FileEdit, Link, Node
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock

DAY = datetime(2026, 1, 5, tzinfo=UTC)
PLAIN = "A bird sits on the gauge"

Put = Callable[[Memory, str], str]


def _plain(memory: Memory, word: str) -> str:
    return memory.remember(f"{word} sings").id


def _field(**about: object) -> Put:
    def put(memory: Memory, word: str) -> str:
        told = {
            name: [word] if value is list else {"k": word} if value is dict else f"{word} it is"
            for name, value in about.items()
        }
        return memory.remember(f"{PLAIN} {len(word)} {sorted(about)}", **told).id

    return put


def _updated(memory: Memory, word: str) -> str:
    one = memory.remember(f"{word} sings").id
    return memory.update(one, text=f"{PLAIN} and was corrected").id


def _forgotten(memory: Memory, word: str) -> str:
    one = memory.remember(f"{word} sings").id
    memory.forget(one)
    return one


def _entity(memory: Memory, word: str) -> str:
    return memory.remember(f"{PLAIN}, it is told", entities=[f"person:{word}"]).id


def _key(memory: Memory, word: str) -> str:
    return memory.remember(f"{PLAIN}, with a key", key=word).id


def _child(memory: Memory, word: str) -> str:
    one = memory.remember(f"{word} sings").id
    memory.remember(f"Somebody heard {word}", derives_from=[one])
    return one


def _parent(memory: Memory, word: str) -> str:
    one = memory.remember(f"{word} sings", level="raw").id
    memory.remember(f"What {word} sang", parent=one)
    return one


def _link(memory: Memory, word: str) -> str:
    one, two = memory.remember(f"{PLAIN}, linked").id, memory.remember("A gauge below a bird").id
    memory.link(one, "related_to", two, context=f"because of {word}")
    return one


def _thread(memory: Memory, word: str) -> str:
    one, two = memory.remember(f"{word} sings").id, memory.remember("A gauge in a thread").id
    memory.put_thread(f"About {word}", [one, two])
    return one


def _file(memory: Memory, word: str) -> str:
    one = memory.remember(f"{PLAIN}, in a file").id
    edit = FileEdit("a.py", "edit", DAY, intent=f"teach {word} to sing", item=one)
    memory.store.activity.note_edits([edit], actor="test", now=DAY)
    return one


def _entity_link(memory: Memory, word: str) -> str:
    one = memory.remember(f"{PLAIN}, related", entities=[f"person:{word}", "person:Ana"]).id
    ends = Node("entity", f"person:{word}"), Node("entity", "person:ana")
    memory.store.graph.add_links([Link(*ends, "works_with", source=one)], now=DAY)
    return one


def _cold(memory: Memory, word: str) -> str:
    """Consolidated into a learning by `_maintained`."""
    about = {"layer": "context", "entities": [f"project:{word}"], "importance": 0.1}
    first = memory.remember(f"{word} sang at dawn", **about).id
    memory.remember(f"The gauge fell silent when {word} sang", **about)
    return first


def _fact(memory: Memory, word: str) -> str:
    """Gathered into a concept by `_maintained`."""
    about = {"kind": "fact", "entities": [f"tool:{word}"]}
    first = memory.remember(f"{word} has 3 feathers", **about).id
    memory.remember(f"{word} has 2 wings", **about)
    return first


WAYS: dict[str, Put] = {
    "text": _plain,
    "history": _updated,
    "forgotten": _forgotten,
    "tag": _field(tags=list),
    "topic": _field(topic=str),
    "metadata": _field(metadata=dict),
    "caption": _field(caption=str),
    "original": _field(original=str),
    "speaker": _field(speaker=str),
    "source": _field(source=str),
    "session": _field(session=str),
    "entity": _entity,
    "key": _key,
    "child": _child,
    "parent": _parent,
    "link": _link,
    "thread": _thread,
    "file edit": _file,
    "entity link": _entity_link,
    "learning": _cold,
    "concept": _fact,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(DAY)


@pytest.fixture
def memory(folder: Path, clock: FixedClock) -> Iterator[Memory]:
    folder.mkdir()
    store = SqliteStore.open(folder / "space.db", space="test")
    settings = Settings(cache=True)
    with Memory(store, clock=clock, notes_dir=folder / "notes", settings=settings) as opened:
        yield opened


def holding(folder: Path, word: str) -> list[str]:
    needle = word.casefold().encode()
    return [
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and needle in file.read_bytes().lower()
    ]


def test_no_byte_of_a_canary_is_left(memory: Memory, folder: Path, clock: FixedClock) -> None:
    """In the file, its log, the notes: by whatever way the word came in, and whatever
    maintenance has made of it since."""
    words = {way: f"Zq{number}xcanary" for number, way in enumerate(WAYS)}
    ids = {way: put(memory, words[way]) for way, put in WAYS.items()}
    clock.forward(days=120)
    memory.maintain("consolidate", "concepts", "notes", "entities", share=1.0, clock_is_right=True)
    for word in words.values():
        memory.recall(f"what about {word}?")
    assert all(holding(folder, word) for word in words.values())
    assert holding(folder, words["text"])[1:], "the notes tell of it"

    for way, one in ids.items():
        done = memory.forget(one, erase=True)
        assert done.receipt is not None, way
    for way in ("learning", "concept"):
        # The second of each pair says the word as well; it came back, and goes on its own.
        rest = [item.id for item in memory.browse(limit=500) if words[way] in item.text]
        memory.forget(*rest, erase=True)

    left = {way: holding(folder, word) for way, word in words.items()}
    assert {way: files for way, files in left.items() if files} == {}
    assert all(finding.ok for finding in memory.doctor())


def test_an_erase_is_quick(memory: Memory) -> None:
    """Well within five seconds with a thousand memories around it."""
    memory.remember_many([f"Gauge {n} stands at bridge {n * 7}" for n in range(1000)])
    one = memory.remember("Zqcanary sings").id

    started = datetime.now(UTC)
    memory.forget(one, erase=True)

    assert (datetime.now(UTC) - started).total_seconds() < 5
