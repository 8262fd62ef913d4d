"""What Remind 0.14 keeps is imported, and JSON is never torn into lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import foreign
from bethink import Memory
from bethink.core.json_values import parse_strict_json
from bethink.errors import BadText, Refused
from bethink.importers.detection import detect_source
from bethink.importers.streams import guess_format
from bethink.systems.remind.export import to_remind
from importing import import_from
from rows import each_row


def texts(memory: Memory) -> set[str]:
    items = memory.browse(limit=100, include_superseded=True, include_expired=True)
    return {item.text for item in items}


@pytest.mark.parametrize("form", [foreign.remind_export, foreign.remind_folder])
def test_every_form_of_remind_gives_the_same_memories(
    memory: Memory, tmp_path: Path, form: object
) -> None:
    """The database, the folder of JSON files and the export hold the same."""
    with Memory.open(":memory:", embedder="none") as other:
        import_from(other, foreign.remind(tmp_path))
        expected = texts(other)
    (tmp_path / "remind.db").unlink()

    tally = import_from(memory, form(tmp_path))  # type: ignore[operator]
    again = import_from(memory, tmp_path if form is foreign.remind_folder else tally_path(tmp_path))

    assert tally.kind == "remind"
    assert texts(memory) >= expected
    assert {"Tokens live for a week", "Tokens live for an hour"} <= texts(memory)
    assert (tally.refused, again.stored) == ([], 0)
    [short] = [item for item in memory.browse(limit=50) if item.text.startswith("Short-lived")]
    types = {link.type for link in memory.links(short.id)}
    assert {"supersedes", "derives_from"} <= types


def tally_path(folder: Path) -> Path:
    return folder / "remind-export.json"


@pytest.mark.parametrize("place", [".", ".remind", ".remind/memory"])
def test_the_folder_of_remind_is_found_from_above(tmp_path: Path, place: str) -> None:
    """The project, its hidden folder or the folder of records itself can be named."""
    foreign.remind_folder(tmp_path)

    assert detect_source(tmp_path / place)[0] == "remind"


def test_a_damaged_record_of_remind_is_named(memory: Memory, tmp_path: Path) -> None:
    """The others are imported."""
    foreign.remind_folder(tmp_path)
    (tmp_path / ".remind/memory/episodes/broken.json").write_text('{"kind": ')

    tally = import_from(memory, tmp_path)

    assert [refusal.where for refusal in tally.refused] == ["episodes/broken.json"]
    assert tally.stored > 3


@each_row(
    "value",
    [
        {"name": "something", "values": [1, 2, {"a": {}}]},
        [{"a": 1}, {"b": 2}],
        ["one", "two"],
        [1, 2, 3],
        {"deep": [[{"text": "no memory"}]]},
    ],
)
@each_row("name", ["data.json", "data.txt", "data"])
def test_json_is_never_torn_into_lines(
    memory: Memory, tmp_path: Path, value: object, name: str
) -> None:
    """A pretty-printed document is refused whole, under any name and from a stream."""
    path = tmp_path / name
    path.write_text(json.dumps(value, indent=2))

    with pytest.raises(Refused, match="not JSON of a known program"):
        import_from(memory, path)
    with pytest.raises(Refused, match="not JSON of a known program"):
        guess_format(path.read_bytes(), "standard input")
    assert memory.browse(limit=5) == []


_PICTURE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x04\x00a line of letters\n\xff\xd8\xfe"
_PDF = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\nstream\n" + bytes(range(256)) * 4


@each_row("content", [_PICTURE, _PDF, "Ana owns billing\nBen owns search\n".encode("utf-16")])
def test_what_is_no_text_is_refused_whole(memory: Memory, tmp_path: Path, content: bytes) -> None:
    """The lines of a picture or a PDF that happen to be letters are no memories."""
    path = tmp_path / "scan"
    path.write_bytes(content)

    with pytest.raises(Refused, match="scan is not text in UTF-8"):
        import_from(memory, path)
    assert memory.browse(limit=5) == []


def test_a_torn_record_says_where_it_is_torn() -> None:
    """In one sentence, without a preposition twice."""
    with pytest.raises(BadText, match="not JSON: unterminated string at column"):
        parse_strict_json('{"a": "b')


def test_a_bad_line_of_a_text_is_refused_alone(memory: Memory, tmp_path: Path) -> None:
    """One NUL, or one character of another encoding, among lines that are right."""
    path = tmp_path / "notes"
    lines = [b"Ana owns the billing module", b"Ben owns \x00 search", b"The office is in K\xf6ln"]
    path.write_bytes(b"\n".join(lines))

    assert import_from(memory, path).stored == 1


@each_row(
    ("content", "kind"),
    [
        ('{"text": "a"}\n{"text": "b"}\n', "jsonl"),
        ('{"text": "a\n{"text": "b"}\n', "jsonl"),
        ('"a"\n"b"\n', "jsonl"),
        ("[ ] buy milk\n[x] call Ann\n", "lines"),
        ("[2026-01-01] the bridge was built\n", "lines"),
        ("{braces} in a note\nand more\n", "jsonl"),
        ("one\n\ntwo\n", "text"),
    ],
)
def test_lines_and_json_lines_are_still_recognised(content: str, kind: str) -> None:
    """A bracket at the beginning is not yet JSON, a damaged line is not yet a document."""
    assert guess_format(content.encode(), "standard input") == kind


def test_the_real_remind_can_be_imported(memory: Memory, tmp_path: Path) -> None:
    """Where Remind is installed: what its own store writes is read."""
    file_store = pytest.importorskip("remind.file_store")
    models = pytest.importorskip("remind.models")
    store = file_store.FileMemoryStore(tmp_path / ".remind" / "memory")
    store.add_episode(
        models.Episode(id="e1", content="The ferry leaves at nine", episode_type="fact")
    )
    store.add_concept(
        models.Concept(id="c1", title="Ferry", summary="It is early", source_episodes=["e1"])
    )
    (tmp_path / "export.json").write_text(json.dumps(store.export_data(), indent=2))

    import_from(memory, tmp_path)
    known = import_from(memory, tmp_path / "export.json")

    assert texts(memory) == {"The ferry leaves at nine", "Ferry: It is early"}
    assert known.stored == 0


def test_the_real_remind_takes_what_goes_back(memory: Memory, tmp_path: Path) -> None:
    """Where Remind is installed: its own import reads our file into a store that has data."""
    store_module = pytest.importorskip("remind.store")
    store = store_module.SQLAlchemyMemoryStore(f"sqlite:///{tmp_path / 'remind.db'}")
    store.import_data({"version": 3, "concepts": foreign.CONCEPTS, "episodes": foreign.EPISODES})
    import_from(memory, tmp_path / "remind.db")
    memory.remember("The ferry leaves at nine", entities=("person:Alice",))

    store.import_data(to_remind(memory.export()))

    assert "The ferry leaves at nine" in {one.summary for one in store.get_all_concepts()}


def test_the_real_basic_memory_can_be_imported(memory: Memory, tmp_path: Path) -> None:
    """Where basic-memory is installed (Python 3.12): a note that it writes is read."""
    schemas = pytest.importorskip("basic_memory.markdown.schemas")
    utils = pytest.importorskip("basic_memory.file_utils")
    frontmatter = pytest.importorskip("frontmatter")
    observation = schemas.Observation(category="fact", content="The ferry leaves at nine")
    head = {"title": "Ferry", "type": "note", "permalink": "ferry"}
    text = utils.dump_frontmatter(frontmatter.Post(f"# Ferry\n\n{observation}\n", **head))
    (tmp_path / "Ferry.md").write_text(text)

    import_from(memory, tmp_path)

    assert any("The ferry leaves at nine" in text for text in texts(memory))


@each_row(
    ("line", "told"),
    [
        ('{"text": "a", "text": "b"}', "the key 'text' occurs twice"),
        ('{"text": "a", "metadata": {"n": ' + "7" * 5000 + "}}", "a number of 5,000 digits"),
        ('{"text": "a", "metadata": {"n": NaN}}', "NaN is not a number"),
        ('{"text": "a", "metadata": {"n": 1e999}}', "is too large"),
        ('{"text": "a", "metadata": ' + "[" * 70 + "]" * 70 + "}", "levels deep"),
    ],
    ids=["doubled key", "digits", "NaN", "huge", "deep"],
)
@each_row("others", [0, 2])
def test_a_record_that_strict_json_refuses_costs_its_line_only(
    memory: Memory, tmp_path: Path, line: str, told: str, others: int
) -> None:
    """Alone in its file or first among others: the line and what is wrong with it are named."""
    path = tmp_path / "notes.jsonl"
    rest = [f'{{"text": "Note number {n} about the harbour"}}' for n in range(others)]
    path.write_text("\n".join([line, *rest]) + "\n")
    tally = import_from(memory, path)

    assert tally.stored == others
    [refused] = tally.refused
    assert "line 1" in str(refused)
    assert told in str(refused)
