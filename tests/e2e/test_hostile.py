"""No string, wherever it is put, ends in anything but an answer or a refusal by name."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bethink import Draft, Memory
from bethink.cli import main
from bethink.errors import BethinkError, Refused
from bethink.ingest.redaction import redact
from bethink.model import Recall, Remembered
from bethink.ports import Embedder
from bethink.render.wire import (
    dumps,
    entity_json,
    error_json,
    item_json,
    recall_json,
    record_json,
    why_not_json,
)
from bethink.testing import FixedClock
from corpus import NOTES, NOW
from naughty import NAUGHTY
from rows import each_row
from thorough import share

SOME = NAUGHTY[::6]  # of every kind, for what is called once for each
WORDS = ("kind", "topic", "tier", "caption", "speaker", "session")  # kept without outer blanks
VERBATIM = ("original", "language", "parent", "source", "key", "id")
NAMES = ("layer", "level", "source_class")
TIMES = ("occurred_at", "occurred_end", "valid_from", "valid_to")
NUMBERS = ("trust", "integrity", "credibility", "classification", "emotion", "importance")
OTHERS = ("confidence", "seq", "pinned", "force", "metadata", "tags", "entities")
FIELDS = (*WORDS, *VERBATIM, *NAMES, *TIMES, *NUMBERS, *OTHERS)
OPTIONS = (
    "id", "level", "kind", "layer", "topic", "tier", "tag", "entity", "source", "session",
    "speaker", "since", "until", "min_trust", "max_classification", "include_superseded",
    "include_expired", "as_of", "cursor", "profile", "k", "offset", "max_tokens",
)  # fmt: skip


def strict(value: Any) -> Any:
    """The value after a trip through UTF-8 and JSON that knows no NaN."""

    def refuse(name: str) -> float:
        raise AssertionError(name)

    return json.loads(dumps(value).encode("utf-8"), parse_constant=refuse)


def attempt(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What a call answers, or its refusal, which must be a sentence anybody can print."""
    try:
        return call(*args, **named)
    except BethinkError as error:
        refused = error
    except Exception as error:
        error.add_note(f"given {args!r:.200} {named!r:.200}")
        raise
    told = strict(error_json(refused.message, refused.remedy, type(refused).__name__))
    assert told["error"]["message"]
    return refused


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A few notes, by words alone: what is tested here is no matter of meaning."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as opened:
        opened.remember_many(NOTES[:6])
        yield opened


@pytest.fixture
def ids(memory: Memory) -> list[str]:
    return [item.id for item in memory.browse()]


def healthy(memory: Memory) -> None:
    """Everything stored can be written out and nothing is damaged."""
    for record in memory.export():
        strict(record)
    assert [finding for finding in memory.doctor() if not finding.ok] == []


# --- Writing ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "texts"),
    [
        ({}, NAUGHTY),
        ({"level": "raw", "session": "s"}, share(NAUGHTY, 0)),
        ({"force": True}, share(NAUGHTY, 2)),
    ],
    ids=["as it is", "a turn", "forced"],
)
def test_a_text_comes_back_as_it_was(
    embedder: Embedder, memory: Memory, about: dict[str, Any], texts: Sequence[str]
) -> None:
    """Byte for byte, or it was refused, or a secret was taken out and that was said."""
    memory.session.embedder = embedder
    stored = 0
    for text in texts:
        result = attempt(memory.remember, text, **about)
        if isinstance(result, Remembered):
            strict(record_json(result))
            item = memory.get(result.id)
            assert strict(item_json(item))["text"] == item.text
            if result.status == "stored" and not result.redacted:
                assert item.text == text
                stored += 1
        else:
            assert isinstance(result, Refused)

    assert stored > 0.64 * len(texts)
    healthy(memory)


def test_a_change_comes_back_as_it_was(memory: Memory, ids: list[str]) -> None:
    """The rules of a new memory hold; a refused change leaves the memory as it stood."""
    for text in NAUGHTY:
        before = memory.get(ids[0])
        after = attempt(memory.update, ids[0], text=text)
        if isinstance(after, Refused):
            assert memory.get(ids[0]) == before
        elif after.text != text:
            assert "REDACTED" in after.text.upper()
    for number, text in enumerate(SOME):
        for field in (*share(FIELDS, number), text):
            attempt(memory.update, ids[1], **{field: text})

    healthy(memory)


@each_row("field", FIELDS)
def test_a_field_comes_back_as_it_was(memory: Memory, field: str) -> None:
    """Words without the blanks around them; what is no word of the list is refused."""
    for number, text in enumerate(share(NAUGHTY, FIELDS.index(field))):
        result = attempt(memory.remember, f"note number {number} has a field", **{field: text})
        if isinstance(result, Refused) or result.redacted:
            continue
        if field in WORDS and text.strip():
            assert getattr(memory.get(result.id), field) == text.strip()
        elif field in VERBATIM and field != "key":
            assert getattr(memory.get(result.id), field) == text
        elif text.strip():
            assert field in ("key", *NAMES, *TIMES), (field, text)

    healthy(memory)


@each_row(
    "wrap, texts",
    [
        pytest.param(lambda text: {"tags": [text]}, share(NAUGHTY, 1), id="tags"),
        pytest.param(lambda text: {"entities": [text]}, share(NAUGHTY, 0), id="entities"),
        pytest.param(lambda text: {"metadata": {"key": text}}, share(NAUGHTY, 2), id="value"),
        pytest.param(lambda text: {"metadata": {text: [text]}}, share(NAUGHTY, 3), id="key"),
        pytest.param(lambda text: {text: text}, share(NAUGHTY, 1), id="name of a field"),
    ],
)
def test_lists_and_metadata_come_back_as_they_were(
    memory: Memory, wrap: Callable[[str], dict[str, Any]], texts: Sequence[str]
) -> None:
    """In full, or the memory is refused."""
    for number, text in enumerate(texts):
        about = wrap(text)
        result = attempt(memory.remember, f"memo number {number} has a list", **about)
        if isinstance(result, Refused) or result.redacted:
            continue
        item = memory.get(result.id)
        if "tags" in about:
            assert item.tags == (text,)
        if "metadata" in about:
            assert strict(item_json(item))["metadata"] == about["metadata"]

    for entity in memory.entities(limit=1000):
        strict(entity_json(entity))
    healthy(memory)


# --- Asking -------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["default", "siftcoder"])
def test_any_text_is_a_question(embedder: Embedder, memory: Memory, profile: str) -> None:
    """Or is refused for being empty, too long or unwritable; nothing is changed by it."""
    memory.session.embedder = embedder
    memory.reindex()
    generation = memory.store.admin.generation()
    for text in share(NAUGHTY, ("default", "siftcoder").index(profile), of=2):
        answer = attempt(memory.recall, text, profile=profile)
        if isinstance(answer, Recall):
            assert strict(recall_json(answer, trace=True))["query"]["text"] == text
            assert answer.degraded == ()
        else:
            assert isinstance(answer, Refused)

    assert memory.store.admin.generation() == generation


def test_any_text_is_explained(memory: Memory, ids: list[str]) -> None:
    """Why a memory was not returned for it is always told."""
    for text in share(NAUGHTY, 3):
        told = attempt(memory.why_not, ids[1], text)
        if not isinstance(told, BethinkError):
            strict(why_not_json(told))
            assert told.stage
            assert told.reason
        said = attempt(memory.explain, text, ids[1])
        assert isinstance(said, Refused) == isinstance(told, Refused)


@each_row("option", OPTIONS)
def test_any_text_is_a_filter(memory: Memory, option: str) -> None:
    """It finds what it names, or nothing, or is refused; a text never lifts a ceiling."""
    memory.remember("The deploy key of the payroll is a secret", classification=3)
    for text in share(NAUGHTY, OPTIONS.index(option), of=8):
        answer = attempt(memory.recall, "deploy key", **{option: text})
        if isinstance(answer, Recall):
            assert all(hit.item.classification < 3 for hit in answer.hits)
            strict(recall_json(answer))
    for text in share(SOME, OPTIONS.index(option)):
        answer = attempt(memory.recall, "deploy key", **{text: option})
        assert isinstance(answer, Refused)


@each_row(
    "call",
    [
        pytest.param(lambda memory, text: memory.get(text), id="get"),
        pytest.param(lambda memory, text: memory.history(text), id="history"),
        pytest.param(lambda memory, text: memory.timeline(text), id="timeline"),
        pytest.param(lambda memory, text: memory.forget(text, preview=True), id="forget"),
        pytest.param(lambda memory, text: memory.forget(text, erase=True), id="erase"),
        pytest.param(lambda memory, text: memory.restore(text), id="restore"),
        pytest.param(lambda memory, text: memory.update(text, topic="x"), id="update"),
        pytest.param(lambda memory, text: memory.why_not(text, "deploy key"), id="why_not"),
        pytest.param(lambda memory, text: memory.explain("deploy key", text), id="explain"),
        pytest.param(lambda memory, text: memory.browse(after=text), id="browse"),
        pytest.param(lambda memory, text: memory.entities(prefix=text), id="entities"),
        pytest.param(lambda memory, text: memory.profile(text), id="profile"),
        pytest.param(lambda memory, text: memory.forget("a-b-c", reason=text), id="reason"),
        pytest.param(lambda memory, text: memory.compare("deploy key", [text]), id="compare"),
    ],
)
def test_any_text_is_an_id(memory: Memory, call: Callable[[Memory, str], Any]) -> None:
    """Of nothing: it is not found, and nothing else is touched."""
    count = memory.store.admin.count()
    for text in NAUGHTY:
        attempt(call, memory, text)

    assert memory.store.admin.count() == count


def test_any_text_is_a_reason(memory: Memory, ids: list[str]) -> None:
    """Of forgetting: it is kept without its secrets, or refused."""
    for text in NAUGHTY:
        gone = attempt(memory.forget, ids[-1], reason=text)
        if not isinstance(gone, BethinkError):
            assert memory.get(ids[-1]).ended_by == redact(text).text
            memory.restore(ids[-1])

    healthy(memory)


# --- Exports ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def export() -> dict[str, dict[str, Any]]:
    """One record of every type that a small memory gives."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as source:
        source.remember("Priya keeps the deploy key in vault B", key="k1", entities=["Priya"])
        source.recall("deploy key", track=True)
        source.forget(source.remember("A short-lived note").id, erase=True)
        return {record["type"]: record for record in source.export()}


def test_a_record_that_holds_it_comes_in_whole_or_not(export: dict[str, dict[str, Any]]) -> None:
    """The text of an imported memory is the text that was exported, without its secrets."""
    header, item = dict(export["bethink"]), export["item"]
    del header["end"]  # a record by itself
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        for number, text in enumerate(NAUGHTY):
            record = {**item, "id": f"in-{number}", "text": text}
            del record["content_hash"]
            if isinstance(attempt(memory.import_, [header, record]), int):
                assert memory.get(f"in-{number}").text == redact(text).text
            for records in ([text], [{"type": text}], [header, {**record, text: text}]):
                assert isinstance(attempt(memory.import_, records), BethinkError), text

        assert memory.store.admin.count() > 300
        healthy(memory)


def test_any_field_of_a_record_may_hold_it(export: dict[str, dict[str, Any]]) -> None:
    """Of every type of record: taken in or refused by line and field."""
    header = {key: value for key, value in export["bethink"].items() if key != "end"}
    records = {kind: record for kind, record in export.items() if kind != "bethink"}
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        for kind, record in records.items():
            for field in record:
                for number, text in enumerate(SOME):
                    changed = {**record, field: text}
                    if kind == "item":
                        changed |= {"id": text if field == "id" else f"{field}-{number}"}
                        changed.pop("content_hash")
                    refused = attempt(memory.import_, [header, changed])
                    if isinstance(refused, BethinkError):
                        assert "line 2" in refused.message, (kind, field, text)

        healthy(memory)


def test_what_was_stored_moves_on_unchanged(memory: Memory) -> None:
    """Through an export as JSON Lines and an import elsewhere."""
    memory.remember_each([Draft(text, level="raw", session="all") for text in NAUGHTY])
    lines = [dumps(record).encode("utf-8") for record in memory.export()]
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as other:
        other.import_(json.loads(line) for line in lines)

        for item in memory.browse(limit=10_000):
            assert other.get(item.id) == item


# --- The command line ---------------------------------------------------------------------


class Said(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Callable[..., Said]:
    """A command in this process: its bytes must be UTF-8 and its end an honest one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BETHINK_EMBEDDER", "none")

    def called(*words: str, stdin: bytes = b"") -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(words)
        out, err = (stream.decode("utf-8") for stream in capfdbinary.readouterr())
        assert code in (0, 1, 2), (words, out, err)
        assert "Traceback" not in err
        assert "bug in Bethink" not in out + err
        if "--json" in words:
            strict(json.loads(out))
        else:
            assert "\x1b" not in out + err
        return Said(code, out, err)

    return called


def test_the_command_line_takes_it(call: Callable[..., Said]) -> None:
    """As a memory, a question, a change: the text comes back or is refused by name."""
    for text in SOME:
        kept = call("remember", "--json", "--", text)
        told = json.loads(kept.out)
        for form in ([], ["--json"]):
            call("recall", *form, "--explain", "--", text)
        if kept.code != 0:
            assert told["error"]["message"]
            continue
        shown = json.loads(call("show", told["id"], "--json").out)
        if told["status"] == "stored" and not told["redacted"]:
            assert shown["text"] == text
        call("show", told["id"])
        call("why-not", told["id"], "--json", "--", text)
        call("timeline", told["id"])


def test_the_command_line_takes_it_elsewhere(call: Callable[..., Said]) -> None:
    """As every kind of option and as an id."""
    call("remember", "An ordinary memory of an ordinary day", "--id", "ordinary")
    for text in SOME:
        call("update", "ordinary", "--json", f"--text={text}")
        call("update", "ordinary", f"--caption={text}")
        call(
            "remember", "A memory with details", "--json", f"--metadata={json.dumps({text: text})}"
        )
        call("entities", f"--prefix={text}", "--json")
        call("recall", "ordinary", f"--topic={text}", f"--as-of={text}")
        call("forget", "--json", "--", text)
        call("show", "--json", "--", text)


def test_standard_input_takes_it(call: Callable[..., Said]) -> None:
    """As JSON Lines, as text and as lines; what comes out of an export goes in again."""
    lines = [json.dumps({"text": text, "level": "raw", "session": "all"}) for text in NAUGHTY]
    raw = "\n".join(lines).encode()

    told = json.loads(call("import", "-", "--json", stdin=raw).out)
    exported = call("export", "-")
    again = json.loads(
        call("--space", "other", "import", "-", "--json", stdin=exported.out.encode()).out
    )

    assert told["stored"] + told["duplicates"] + len(told["refused"]) == len(NAUGHTY)
    assert all(one["kind"] and one["message"] for one in told["refused"])
    assert again["stored"] == told["stored"]
    for form in ("jsonl", "text", "lines", "bethink", "auto"):
        call("import", "-", "--dry-run", "--json", f"--format={form}",
             stdin="\n".join(NAUGHTY).encode("utf-8", "surrogatepass"))  # fmt: skip
    for text in SOME:
        stdin = text.encode("utf-8", "surrogatepass")
        call("remember", "-", "--json", stdin=stdin)
        call("recall", "-", "--json", stdin=stdin)
        call("import", "-", stdin=stdin)
