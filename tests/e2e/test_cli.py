"""Every command of the command line, as a process of its own."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import warm

SCRIPT = str(Path(sys.executable).with_name("bethink"))
ID = re.compile(r"\b[0-9a-hjkmnp-tv-z]{16}\b")

Run = Callable[..., subprocess.CompletedProcess[str]]


def room(folder: Path, **extra: str) -> dict[str, str]:
    """An environment that knows nothing of this machine's own memories."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BETHINK_", "XDG_", "NO_COLOR", "COLUMNS"))
    }
    own = {"HOME": str(folder / "home"), "BETHINK_DATA_DIR": str(folder / "data")}
    return kept | own | extra


def runner(folder: Path) -> Run:
    def run(*words: str, stdin: str | bytes = "", code: int | None = 0, **env: str) -> Any:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        ran = warm.run(
            [SCRIPT, *words], input=given, cwd=folder, env=room(folder, **env),
            capture_output=True, timeout=60,
        )  # fmt: skip
        told = subprocess.CompletedProcess(
            words, ran.returncode, ran.stdout.decode(), ran.stderr.decode()
        )
        assert "Traceback" not in told.stderr, told.stderr
        if code is not None:
            assert told.returncode == code, (told.stdout, told.stderr)
        return told

    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command in an empty folder, with memories of its own."""
    return runner(tmp_path)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict[str, str]]:
    """A memory of a few notes, for tests that only read; and the ids by their texts."""
    call = runner(tmp_path_factory.mktemp("project"))
    notes = [
        {"text": "The deploy key lives in vault B", "kind": "fact", "topic": "ops"},
        {"text": "We chose PostgreSQL for billing", "kind": "decision", "tags": ["db"]},
        {"text": "Tests run with make test", "kind": "fact", "source": "handbook"},
        {"text": "Maria reviews every migration", "kind": "fact", "entities": ["Maria"]},
        {"text": "Shall we ship on Friday?", "level": "raw", "session": "s", "speaker": "Ana"},
        {"text": "No, after the audit", "level": "raw", "session": "s", "speaker": "Ben"},
        {"text": "Great, then on Monday", "level": "raw", "session": "s", "speaker": "Ana"},
    ]
    told = call("import", "-", "--json", stdin="\n".join(json.dumps(note) for note in notes))
    ids = json.loads(told.stdout)["ids"]
    return call, {note["text"]: found for note, found in zip(notes, ids, strict=True)}


# --- Remembering and recalling ------------------------------------------------------------


def test_remember_then_recall(run: Run) -> None:
    """A memory comes back for a question in other words."""
    stored = run("remember", "Tests run with make test", "--kind", "fact")
    found = run("recall", "how do I run the tests?")

    assert stored.stdout.startswith("stored ")
    assert "Tests run with make test" in found.stdout
    assert ID.findall(stored.stdout)[0] in found.stdout


def test_remember_takes_every_field(run: Run) -> None:
    """What is said about a memory is what is shown of it."""
    options = {
        "--kind": "decision", "--layer": "caveat", "--topic": "db", "--tier": "general",
        "--caption": "short", "--speaker": "Ana", "--original": "Wir", "--language": "de",
        "--tag": "one", "--entity": "Postgres", "--importance": "0.9", "--confidence": "0.8",
        "--emotion": "-2", "--trust": "3", "--integrity": "3", "--credibility": "1",
        "--classification": "2", "--occurred-at": "2026-01-02", "--occurred-end": "2026-01-03",
        "--valid-from": "2026-01-01", "--valid-to": "2030-01-01", "--metadata": '{"pr": 7}',
        "--level": "raw", "--session": "s", "--seq": "4", "--source": "chat",
        "--source-class": "user", "--id": "my-own-id", "--key": "k1",
    }  # fmt: skip
    words = [word for pair in options.items() for word in pair]

    told = json.loads(run("remember", "We said so", *words, "--pin", "--json").stdout)
    item = json.loads(run("show", "my-own-id", "--json").stdout)

    assert told["id"] == "my-own-id"
    assert told.keys() >= {"id", "status", "collisions", "redacted", "entities"}
    assert item["tags"] == ["one"]
    assert item["metadata"] == {"pr": 7}
    assert item["pinned"] is True
    assert (item["seq"], item["emotion"], item["importance"]) == (4, -2, 0.9)
    assert item["occurred_at"] == "2026-01-02T00:00:00.000Z"
    assert (item["layer"], item["original"], item["classification"]) == ("caveat", "Wir", 2)


def test_remember_from_standard_input(run: Run) -> None:
    """A dash reads the text, whatever it holds."""
    run("remember", "-", stdin="From a pipe:\nzwei Zeilen, 漢字\n")

    assert "漢字" in run("recall", "zwei Zeilen").stdout


def test_several_texts_are_several_memories(run: Run) -> None:
    """And give a list; but words without quotes are not taken for memories."""
    told = run("remember", "The first note", "The second note", "--json")
    wrong = run("remember", "forgot", "the", "quotes", code=2)

    assert [entry["status"] for entry in json.loads(told.stdout)] == ["stored", "stored"]
    assert "quotes" in wrong.stderr


def test_the_same_again_is_known(run: Run) -> None:
    """Twice the same text is one memory, and the answer says so."""
    first = run("remember", "The sky is blue today", "-q").stdout.strip()
    again = run("remember", "The sky is blue today")

    assert again.stdout.startswith("duplicate ")
    assert first in again.stdout


def test_secrets_are_taken_out(run: Run) -> None:
    """The key is not stored, and what was taken out is named."""
    key = "AKIA" + "Q3EXAMPL7WZ2KD5N"
    told = run("remember", f"The bucket opens with {key}")
    shown = run("show", ID.findall(told.stdout)[0])

    assert "redacted" in told.stdout
    assert key not in told.stdout + shown.stdout


def test_pasted_logs_are_refused_unless_forced(run: Run) -> None:
    """A log is not a memory."""
    log = "\n".join(f"2026-01-02 10:00:{n:02d} ERROR worker failed at 0x{n:08x}" for n in range(40))

    assert "error:" in run("remember", "-", stdin=log, code=2).stderr
    run("remember", "-", "--force", stdin=log)


def test_recall_json_is_whole(project: tuple[Run, dict[str, str]]) -> None:
    """One document with everything a program needs."""
    call, ids = project

    told = json.loads(call("recall", "where is the deploy key", "--trace", "--json").stdout)

    assert told.keys() >= {
        "query", "profile", "status", "reason", "insights", "items", "raw", "warnings",
        "degraded", "page", "trace",
    }  # fmt: skip
    best = told["items"][0]
    assert best["id"] == ids["The deploy key lives in vault B"]
    assert best["evidence"][0].keys() >= {"by", "op", "value", "why"}
    assert told["status"] == "found"


def test_json_before_the_command_is_json_after_it(project: tuple[Run, dict[str, str]]) -> None:
    """General options may stand on either side."""
    call, _ = project

    before = json.loads(call("--json", "recall", "deploy key", "--now", "2030-01-01").stdout)
    after = json.loads(call("recall", "deploy key", "--now", "2030-01-01", "--json").stdout)

    assert before == after


def test_recall_explains_and_traces(project: tuple[Run, dict[str, str]]) -> None:
    """The arithmetic under each hit, then a line a step."""
    call, _ = project

    said = call("recall", "where is the deploy key", "--explain", "--trace").stdout

    assert re.search(r"^ +[\d.]+  \+ +[\d.]+  fuse\.", said, re.MULTILINE)
    assert re.search(r"^channel\.lexical ", said, re.MULTILINE)
    assert re.search(r"^budget ", said, re.MULTILINE)


def test_recall_filters(project: tuple[Run, dict[str, str]]) -> None:
    """Every filter narrows; none is ignored."""
    call, ids = project

    # A profile without a gate: what is left out is left out by the filter.
    words = ("recall", "deploy PostgreSQL tests Maria ship", "--profile", "siftcoder", "--json")

    def found(*options: str) -> list[str]:
        told = call(*words, "-k", "20", *options, code=None)
        assert told.returncode in (0, 1), told.stderr
        return [hit["id"] for part in ("items", "raw") for hit in json.loads(told.stdout)[part]]

    everything = found()
    assert len(everything) >= 4
    for options in (
        ("--kind", "decision"), ("--topic", "ops"), ("--tag", "db"), ("--entity", "Maria"),
        ("--source", "handbook"), ("--session", "s"), ("--speaker", "Ana"), ("--level", "raw"),
        ("--id", ids["Tests run with make test"]), ("--until", "2020-01-01"),
        ("--since", "2100-01-01"), ("--min-trust", "3"), ("--max-classification", "0"),
        ("--layer", "goal"), ("--tier", "none"),
    ):  # fmt: skip
        assert len(found(*options)) < len(everything), options
    assert found("--include-superseded", "--include-expired") == everything


def test_recall_pages(project: tuple[Run, dict[str, str]]) -> None:
    """The cursor goes on where the page ended, the offset too."""
    call, _ = project
    asked = ("recall", "deploy PostgreSQL tests Maria ship", "--profile", "siftcoder")
    words = (*asked, "-k", "2", "--json")

    first = json.loads(call(*words).stdout)
    second = json.loads(call(*words, "--cursor", first["page"]["cursor"]).stdout)
    same = json.loads(call(*words, "--offset", "2").stdout)

    assert first["page"]["has_more"]
    assert set(first["order"]).isdisjoint(second["order"])
    assert second["order"] == same["order"]


def test_recall_from_standard_input(project: tuple[Run, dict[str, str]]) -> None:
    """A question may be piped in."""
    call, _ = project

    assert "vault B" in call("recall", "-", stdin="where is the deploy key\n").stdout


def test_as_of_sees_the_past(run: Run) -> None:
    """Before it was stored there was nothing."""
    run("remember", "The cache holds 10 minutes")

    run("recall", "cache minutes", "--as-of", "2020-01-01", code=1)


def test_the_three_ways_of_finding_nothing(run: Run, project: tuple[Run, dict[str, str]]) -> None:
    """Exit code 1, and which of them it is."""
    call, _ = project

    def status(ran: subprocess.CompletedProcess[str]) -> str:
        return json.loads(ran.stdout)["status"]

    assert "nothing is stored" in run("recall", "anything", code=1).stdout
    assert status(run("recall", "anything", "--json", code=1)) == "nothing_stored"
    nowhere = ("recall", "deploy", "--topic", "nowhere")
    assert status(call(*nowhere, "--json", code=1)) == "nothing_matched"
    unrelated = ("recall", "which wine goes with grilled sardines")
    assert status(call(*unrelated, "--json", code=1)) == "nothing_matched"
    assert "nearest miss" in call(*unrelated, code=1).stdout


def test_why_not(project: tuple[Run, dict[str, str]]) -> None:
    """The stage, and with --json the numbers."""
    call, ids = project
    words = (
        "why-not",
        ids["We chose PostgreSQL for billing"],
        "where is the deploy key",
        "-k",
        "1",
    )

    said = call(*words).stdout
    told = json.loads(call(*words, "--json").stdout)

    assert "dropped at " in said
    assert told["returned"] is False
    assert told["stage"]
    call("why-not", "nosuchid", "anything at all", code=1)


def test_compare(project: tuple[Run, dict[str, str]]) -> None:
    """A column a profile."""
    call, _ = project

    said = call("compare", "deploy key", "--profiles", "default,siftcoder").stdout
    told = json.loads(call("compare", "deploy key", "--json").stdout)

    assert re.search(r"default +siftcoder", said)
    assert told.keys() > {"default", "siftcoder", "linksee"}
    call("compare", "deploy key", "--profiles", " , ", code=2)
    assert "did you mean" in call("compare", "x", "--profiles", "sift", code=2).stderr


# --- Looking around -----------------------------------------------------------------------


def test_show_by_a_part_of_the_id(project: tuple[Run, dict[str, str]]) -> None:
    """The last characters are enough."""
    call, ids = project
    item_id = ids["We chose PostgreSQL for billing"]

    assert "We chose PostgreSQL" in call("show", item_id[-8:]).stdout
    assert json.loads(call("show", item_id, "--json").stdout)["id"] == item_id
    assert "there is no memory" in call("show", "zzzzzzzz", code=1).stderr


def test_list_and_its_pages(project: tuple[Run, dict[str, str]]) -> None:
    """Newest first; the last id leads to the next page."""
    call, ids = project

    first = json.loads(call("list", "--limit", "3", "--json").stdout)
    rest = json.loads(call("list", "--after", first[-1]["id"], "--json").stdout)

    assert {item["id"] for item in first + rest} == set(ids.values())
    assert "more: --after" in call("list", "--limit", "3").stderr
    assert len(call("list", "--kind", "decision").stdout.splitlines()) == 2
    call("list", "--kind", "nothing", code=1)


def test_timeline(project: tuple[Run, dict[str, str]]) -> None:
    """What was said before and after, oldest first."""
    call, ids = project

    told = json.loads(
        call("timeline", ids["No, after the audit"], "--window", "1", "--json").stdout
    )

    assert [item["speaker"] for item in told] == ["Ana", "Ben", "Ana"]
    assert "No, after the audit" in call("timeline", ids["No, after the audit"]).stdout


def test_entities(project: tuple[Run, dict[str, str]]) -> None:
    """Names with how often they are mentioned."""
    call, _ = project

    assert "Maria" in call("entities").stdout
    assert [
        e["name"] for e in json.loads(call("entities", "--prefix", "mar", "--json").stdout)
    ] == ["Maria"]
    call("entities", "--prefix", "zzz", code=1)


def test_events_and_stats(project: tuple[Run, dict[str, str]]) -> None:
    """The journal has a line a memory; the counts agree."""
    call, ids = project

    events = json.loads(call("events", "--json").stdout)
    stats = json.loads(call("stats", "--json").stdout)

    assert {event["item"] for event in events} >= set(ids.values())
    assert stats["memories"] == len(ids)
    assert "memories" in call("stats").stdout
    assert call("events", "--limit", "1").stdout.count("\n") == 2
    call("events", "--after", "100000", code=1)


# --- Correcting and forgetting --------------------------------------------------------------


def test_update_keeps_the_history(run: Run) -> None:
    """The id stays, the new text is found, the old one stays in the history."""
    item_id = run("remember", "The limit is 5 per minute", "-q").stdout.strip()

    assert "revision 2" in run("update", item_id, "The limit is 3 per minute").stdout
    run("update", item_id, "--text", "-", "--importance", "0.9", stdin="The limit is 4 per minute")
    revisions = json.loads(run("history", item_id, "--json").stdout)

    assert [revision["rev"] for revision in revisions] == [1, 2, 3]
    assert [r["text"][13] for r in revisions] == ["5", "3", "4"]
    assert "4 per minute" in run("recall", "limit per minute").stdout
    assert "importance: 0.5 → 0.9" in run("show", item_id, "--history").stdout
    run("update", item_id, code=2)
    run("update", item_id, "a", "--text", "b", code=2)


def test_forget_shows_first(run: Run) -> None:
    """Without --yes and without a terminal nothing is done."""
    item_id = run("remember", "A passing thought", "-q").stdout.strip()

    said = run("forget", item_id)
    told = json.loads(run("forget", item_id, "--json").stdout)

    assert "would forget" in said.stdout
    assert told["preview"] is True
    run("recall", "passing thought")


def test_forget_and_restore(run: Run) -> None:
    """Forgotten is not recalled; restored is again."""
    item_id = run("remember", "A passing thought", "-q").stdout.strip()

    assert "forgot" in run("forget", item_id, "--yes").stdout
    run("recall", "passing thought", code=1)
    assert item_id in run("restore", item_id).stdout
    run("recall", "passing thought")
    run("restore", item_id, code=1)
    run("forget", "nosuchid", "--yes", code=1)


def test_pinned_memories_stay(run: Run) -> None:
    """Only an erase lets go of them."""
    item_id = run("remember", "Never forget the milk", "--pin", "-q").stdout.strip()

    assert "pinned" in run("forget", item_id, code=1).stdout
    assert "erased" in run("forget", item_id, "--erase", "--yes").stdout


def test_erase_leaves_no_byte(run: Run, tmp_path: Path) -> None:
    """The receipt counts what was removed; the file holds nothing of it."""
    canary = "zirkusquokka"
    item_id = run("remember", f"The {canary} sleeps", "-q").stdout.strip()

    receipt = json.loads(run("forget", item_id, "--erase", "--yes", "--json").stdout)["receipt"]

    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert receipt["ids"] == [item_id]
    assert files
    assert all(canary.encode() not in path.read_bytes() for path in files)
    run("show", item_id, code=1)


# --- Bringing and taking ----------------------------------------------------------------------


def test_import_reports_what_it_refuses(run: Run) -> None:
    """Good lines are stored, bad ones are named; the exit code says that there were some."""
    lines = [
        b'{"text": "a good note"}',
        b"{broken",
        b'"another good note"',
        b'{"text": 5}',
        b'{"text": "a further note", "layer": "no such layer"}',
        b'{"text": "bad \\u0000 character"}',
        b'{"text": "a third note", "tags": ["t"], "occurred_at": "2026-01-01"}',
    ]

    said = run("import", "-", "--dry-run", stdin=b"\n".join(lines), code=2).stdout
    told = run("import", "-", "--json", stdin=b"\n".join(lines), code=2)
    again = run("import", "-", "--dry-run", stdin=b"\n".join(lines), code=2).stdout

    report = json.loads(told.stdout)
    assert report["stored"] == 3
    assert [refusal["line"] for refusal in report["refused"]] == [2, 4, 5, 6]
    assert "would store 3 memories" in said
    assert "line 2: " in said
    assert "would store 0 memories, 3 already known" in again


def test_import_of_text_files(run: Run, tmp_path: Path) -> None:
    """A line each or a paragraph each; the file's name becomes the source."""
    (tmp_path / "notes.txt").write_text("First of the notes\nSecond of the notes\n")
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b'{"content": "A packed note of 2019"}'))
    (tmp_path / "prose.txt").write_text("A longer one\nthat goes on\n\nAnd a short one\n")

    assert "stored 2 memories" in run("import", "notes.txt").stdout
    assert "stored 2 memories" in run("import", "prose.txt", "--tag", "prose").stdout
    assert json.loads(run("list", "--tag", "prose", "--json").stdout)[0]["source"] == "prose.txt"
    assert "already known" in run("import", "notes.txt").stdout
    assert "stored 1 memory" in run("import", "notes.gz").stdout


def test_export_and_import_lose_nothing(run: Run, tmp_path: Path) -> None:
    """Another space that takes an export in exports the same memories."""
    run("remember", "One to keep", "--tag", "a")
    run("remember", "Two to keep")

    run("export", "out.jsonl")
    taken = run("import", "out.jsonl", "--space", "other")
    first = run("export").stdout
    second = run("export", "-", "--space", "other").stdout

    def items(text: str) -> list[Any]:
        return [line for line in map(json.loads, text.splitlines()) if line["type"] == "item"]

    assert "imported 2 memories" in taken.stdout
    assert items(first) == items(second) != []
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600
    assert "One to keep" in run("recall", "one to keep", "--space", "other").stdout


def test_a_failed_export_leaves_the_old_file(run: Run, tmp_path: Path) -> None:
    """A folder that cannot be written to, or a damaged store, changes nothing."""
    run("remember", "Something to export")
    (tmp_path / "out.jsonl").write_text("precious")
    store = next((tmp_path / "data").rglob("*.db"))
    store.write_bytes(b"not a database at all" * 500)

    failed = run("export", "out.jsonl", code=3)

    assert "error:" in failed.stderr
    assert (tmp_path / "out.jsonl").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []


def test_files_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    """A missing file and a folder are bad use, told in a sentence."""
    assert "no such file" in run("import", "missing.txt", code=2).stderr
    assert "directory" in run("import", str(tmp_path), code=2).stderr
    assert "no such file" in run("export", "no/such/folder.jsonl", code=2).stderr
    assert "nothing to import" in run("import", "-", stdin="", code=1).stderr


# --- Looking after it ---------------------------------------------------------------------------


def test_spaces(run: Run, tmp_path: Path) -> None:
    """Listed, found, shown before they are removed, and then gone."""
    run("spaces", code=1)
    run("remember", "In a space of its own", "--space", "mine")

    assert "mine" in run("spaces").stdout
    assert json.loads(run("spaces", "--json").stdout)[0]["name"] == "mine"
    path = run("spaces", "path", "mine").stdout.strip()
    assert path == str(tmp_path / "data" / "spaces" / "mine.db")
    assert run("spaces", "path", "--space", "mine").stdout.strip() == path
    assert "would remove" in run("spaces", "remove", "mine").stdout
    assert Path(path).exists()
    Path(f"{path}.v1.bak").write_text("a copy from before a migration")
    Path(f"{path}.db").write_text("the file of another space, mine.db")
    run("spaces", "remove", "mine", "--yes")
    assert [left.name for left in Path(path).parent.iterdir()] == ["mine.db.db"]
    run("spaces", "remove", "mine", "--yes", code=1)
    run("spaces", "path", "../evil", code=2)


def test_the_environment_chooses_the_space(run: Run) -> None:
    """BETHINK_SPACE, and --space before it."""
    run("remember", "From the environment", BETHINK_SPACE="envy")

    assert "From the environment" in run("list", "--space", "envy").stdout
    told = run("list", "--space", "other", BETHINK_SPACE="envy", code=2)
    assert "no space 'other'" in told.stderr


def test_profiles(run: Run, tmp_path: Path) -> None:
    """Listed and drawn; one's own are found; a mistake is named by file and key."""
    assert "siftcoder" in run("profiles").stdout
    drawn = run("profiles", "show", "siftcoder").stdout
    assert re.search(
        r"question.*channels.*lexical.*fuse.*rrf.*k=60.*budget.*answer", drawn, re.DOTALL
    )
    walk = json.loads(run("profiles", "show", "default", "--json").stdout)["walk"]
    assert [part["slot"] for part in walk][:2] == ["channels", "fuse"]

    folder = tmp_path / ".bethink" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('[[channels]]\nuse = "lexical"\n')
    assert "mine" in run("profiles").stdout
    (folder / "mine.toml").write_text('[[channels]]\nuse = "lexcal"\n')
    failed = run("profiles", "show", "mine", code=2).stderr
    assert "mine.toml" in failed
    assert "lexical" in failed
    # Wrapped by the length of the folder's name.
    told = " ".join(run("profiles").stdout.split())
    assert re.search(r"siftcoder.*\bmine .*cannot be used: ", told)
    (folder / "mine.toml").write_bytes(b"\xff")
    assert "not UTF-8" in run("recall", "x", "--profile", "mine", code=2).stderr


def test_config(run: Run, tmp_path: Path) -> None:
    """Every setting with its origin; written to the user's file or the project's."""
    told = json.loads(run("config", "--json", BETHINK_K="7").stdout)
    assert (told["k"]["value"], told["k"]["origin"]) == (7, "environment")

    run("config", "set", "k", "9", XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    assert run("config", "get", "k", XDG_CONFIG_HOME=str(tmp_path / "xdg")).stdout == "9\n"
    (tmp_path / ".bethink").mkdir()
    run("config", "set", "k", "3", "--project", XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    assert run("config", "k", XDG_CONFIG_HOME=str(tmp_path / "xdg")).stdout == "3\n"
    run("config", "unset", "k", "--project", XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    assert run("config", "k", XDG_CONFIG_HOME=str(tmp_path / "xdg")).stdout == "9\n"
    assert "profile" in run("config").stdout
    assert "whole number" in run("config", "set", "k", "many", code=2).stderr
    assert "did you mean" in run("config", "get", "profle", code=2).stderr
    assert "BETHINK_K" in run("recall", "x", BETHINK_K="many", code=2).stderr


def test_doctor_is_content(project: tuple[Run, dict[str, str]]) -> None:
    """It says what is in use and that no problems found."""
    call, _ = project

    said = call("doctor").stdout
    told = json.loads(call("doctor", "--json").stdout)

    assert "sqlite" in said
    assert "embedder" in said
    assert "no problems found" in said
    assert told["ok"] is True
    assert told["in_use"]["memories"] == 7


def test_doctor_makes_what_is_derived(run: Run) -> None:
    """Vectors that are missing are made."""
    run("remember", "Stored while the embedder was away", BETHINK_EMBEDDER="none")

    run("doctor", code=3)
    assert "repaired" in run("doctor", "--repair").stdout
    told = json.loads(run("doctor", "--json").stdout)
    assert (told["ok"], told["in_use"]["vectors"]) == (True, 1)
    assert "bits scan" in told["in_use"]["vector_path"]


def test_a_damaged_store_is_trouble(run: Run, tmp_path: Path) -> None:
    """Exit code 3, a sentence, and the file is left alone."""
    run("remember", "Soon to be damaged")
    store = next((tmp_path / "data").rglob("*.db"))
    store.write_bytes(b"not a database at all" * 500)

    for words in (["recall", "damaged"], ["doctor"], ["list"], ["remember", "more"]):
        assert "error:" in run(*words, code=3).stderr
    assert (
        json.loads(run("recall", "x", "--json", code=3).stdout)["error"]["kind"] == "store_damaged"
    )
    assert store.read_bytes().startswith(b"not a database")


def test_reindex_after_a_change_of_the_embedder(run: Run) -> None:
    """Another model is noticed, answered by words, and mended by reindex."""
    run("remember", "The lighthouse keeper counts ships", BETHINK_EMBEDDER="hash")

    degraded = run("recall", "lighthouse keeper").stdout
    assert "bethink reindex" in " ".join(run("doctor", code=3).stdout.split())
    told = json.loads(run("reindex", "--json").stdout)

    assert "degraded: " in degraded
    assert told["reindexed"] == 1
    assert "degraded" not in run("recall", "lighthouse keeper").stdout
    assert "0 memories" in run("reindex").stdout
    run("doctor")


def test_demo_is_pleasant(run: Run, tmp_path: Path) -> None:
    """Everything it promises is there, and nothing of it stays unless asked for."""
    said = run("demo").stdout
    for words in ("secret removed", "3 times", "Tomas: TextHarbour throttled us",
                  "nothing is stored on this subject", "Nothing was kept", "--keep"):  # fmt: skip
        assert words in said
    assert not list((tmp_path / "data").rglob("*.db"))

    assert "demo" in run("demo", "--keep").stdout
    run("recall", "backup", "--space", "demo")
    assert "already exists" in run("demo", "--keep", code=2).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run: Run, shell: str) -> None:
    """The script asks the command itself."""
    script = run("completion", shell).stdout

    assert "_BETHINK_COMPLETE" in script


def test_completion_completes(run: Run) -> None:
    """Commands and options."""
    env = {"_BETHINK_COMPLETE": "bash_complete", "COMP_CWORD": "1"}

    assert "plain,recall" in run(COMP_WORDS="bethink rec", **env).stdout
    env["COMP_CWORD"] = "2"
    assert "--explain" in run(COMP_WORDS="bethink recall --ex", **env).stdout


def test_version(run: Run) -> None:
    """With an option, as a command, and in JSON with what matters for a report."""
    from bethink import __version__

    assert run("--version").stdout == run("version").stdout == f"bethink {__version__}\n"
    assert json.loads(run("version", "--json").stdout).keys() == {"bethink", "python", "sqlite"}


# --- Manners --------------------------------------------------------------------------------------


def test_help_everywhere(run: Run) -> None:
    """Without words, with -h, after a command."""
    assert run().stdout == run("--help").stdout == run("-h").stdout == run("--json", "-h").stdout
    assert "Examples:" in run("recall", "-h").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs the CPU time of children")
def test_help_costs_next_to_nothing(tmp_path: Path) -> None:
    """At most five times the CPU of a Python that does nothing."""
    import resource

    def cost(*words: str) -> float:
        spent = []
        for _ in range(7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(words, env=room(tmp_path), stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return statistics.median(spent)

    assert cost(SCRIPT, "--help") <= 10 * cost(sys.executable, "-c", "pass")


def test_python_dash_m(run: Run, tmp_path: Path) -> None:
    """`python -m bethink` is the same command."""
    ran = subprocess.run(
        [sys.executable, "-m", "bethink", "version"],
        env=room(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert ran.stdout == run("version").stdout


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["recal"], "did you mean recall"),
        (["recall"], "the question is empty"),
        (["recall", "x", "--nonsense"], "no such option"),
        (["recall", "-5 degrees"], "--"),
        (["recall", "x", "-k", "0"], "from 1 to 200"),
        (["recall", "x", "-k", "many"], "integer"),
        (["recall", "x", "--profile", "none"], "there is no profile"),
        (["recall", "x", "--since", "gibberish"], "not a valid time"),
        (["recall", "x", "--now", "gibberish"], "not a valid time"),
        (["recall", "x", "--as-of", "gibberish"], "not a valid time"),
        (["recall", "x", "--cursor", "gibberish"], "cursor"),
        (["recall", "x", "--min-trust", "9"], "range"),
        (["recall", ""], "empty"),
        (["remember", ""], "the text is empty"),
        (["remember", "some text", "--metadata", "[1]"], "JSON object"),
        (["remember", "some text", "--metadata", "{"], "not JSON"),
        (["remember", "some text", "--occurred-at", "gibberish"], "not a valid time"),
        (["remember", "some text", "--layer", "gibberish"], "no layer"),
        (["remember", "x" * 70_000], "the limit is"),
        (["recall", "x" * 9_000], "the limit is"),
        (["list", "--limit", "0"], "range"),
        (["--space", "no/such", "list"], "space"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_bad_use_is_told_in_a_sentence(run: Run, words: list[str], remedy: str) -> None:
    """Exit code 2, a sentence on stderr, an object with --json."""
    failed = run(*words, code=2)
    told = json.loads(run("--json", *words, code=2).stdout)["error"]

    assert failed.stdout == ""
    assert failed.stderr.startswith("error: ")
    assert remedy in failed.stderr
    assert told["message"]


def test_arguments_that_are_not_utf8_are_refused(run: Run, tmp_path: Path) -> None:
    """By name, in words that can be printed."""
    bad = os.fsdecode(b"caf\xff")

    for words in (["remember", bad], ["recall", bad], ["show", bad], ["list", "--tag", bad],
                  [bad], ["recall", "x", "--profile", bad], ["import", bad]):  # fmt: skip
        assert run(*words, code=None).returncode in (1, 2)
    assert "surrogate" in run("recall", bad, code=2).stderr


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "POSIX"},
    ],
    ids=["plain C", "ascii", "POSIX"],
)
def test_any_locale_speaks_utf8(run: Run, locale: dict[str, str]) -> None:
    """Arguments, input and output are UTF-8 whatever the machine thinks."""
    run("remember", "Größe und 漢字 und 🦊", **locale)
    run("remember", "-", stdin="Übermut tut selten gut", **locale)

    assert "Größe und 漢字 und 🦊" in run("recall", "Größe", **locale).stdout
    assert "Übermut" in run("list", "--json", **locale).stdout


def test_a_reader_that_leaves_is_no_error(project: tuple[Run, dict[str, str]]) -> None:
    """`bethink ... | head -0` ends in silence."""
    call, _ = project
    folder = Path(call("spaces", "path").stdout.strip()).parents[2]

    ran = subprocess.run(
        ["bash", "-c", f"'{SCRIPT}' list --json | true; echo ${{PIPESTATUS[0]}}"],
        env=room(folder), cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.stderr == ""
    assert ran.stdout.strip() in ("0", "141")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told(project: tuple[Run, dict[str, str]]) -> None:
    """Output that cannot be written is an error, not a success."""
    call, _ = project
    folder = Path(call("spaces", "path").stdout.strip()).parents[2]

    for words in (["list"], ["--help"], ["export"]):
        with Path("/dev/full").open("w") as full:
            ran = subprocess.run(
                [SCRIPT, *words], stdout=full, stderr=subprocess.PIPE, env=room(folder),
                cwd=folder, text=True, check=False,
            )  # fmt: skip
        assert ran.returncode == 3
        assert ran.stderr.startswith("error: no space left")
        assert "Traceback" not in ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("words", "code"), [(["--help"], 3), (["recall", "x", "--space", "none"], 2)]
)
def test_an_error_that_cannot_be_written_keeps_its_exit_code(
    tmp_path: Path, words: list[str], code: int
) -> None:
    """Python's own exit code 1 would mean "nothing found"."""
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [SCRIPT, *words],
            stdout=full,
            stderr=full,
            env=room(tmp_path),
            cwd=tmp_path,
            check=False,
        )

    assert ran.returncode == code


def test_closed_streams_do_no_harm(project: tuple[Run, dict[str, str]]) -> None:
    """The work is done, with nobody to tell."""
    call, _ = project
    folder = Path(call("spaces", "path").stdout.strip()).parents[2]

    for closing in (">&-", "2>&-", "<&-", "<&- >&- 2>&-"):
        ran = subprocess.run(
            ["bash", "-c", f"'{SCRIPT}' list {closing}"],
            env=room(folder), cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, (closing, ran.stderr)
        assert "Traceback" not in ran.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_ends_with_130(run: Run, tmp_path: Path) -> None:
    """Whatever it was doing, in one line."""
    import fcntl  # not on Windows
    import termios

    out, into = os.pipe()
    os.write(into, b"The first line of many\n")
    process = subprocess.Popen(
        [SCRIPT, "import", "-"], stdin=out, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=room(tmp_path), cwd=tmp_path,
        # A shell that starts the tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip
    give_up = time.monotonic() + 60
    while struct.unpack("i", fcntl.ioctl(out, termios.FIONREAD, bytes(4)))[0]:  # until it is read
        assert time.monotonic() < give_up, "it never reads"
        time.sleep(0.01)
    said = b""
    while process.returncode is None:
        assert time.monotonic() < give_up + 60, "it never ends"
        # Python overlooks a signal that comes right before it begins to wait: one presses again.
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            _, said = process.communicate(timeout=5)
    os.close(into)
    os.close(out)

    assert process.returncode == 130
    assert b"Traceback" not in said


def test_no_escape_reaches_a_pipe(run: Run) -> None:
    """Memories with escape sequences are shown without, and kept with in JSON."""
    hostile = "\x1b[2J\x1b]0;owned\x07still here \u202eevil"
    run("remember", hostile, "--force")

    found = run("recall", "still here", "--min-confidence", "0").stdout
    said = found + run("list").stdout
    kept = json.loads(run("list", "--json").stdout)[0]["text"]

    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "still here" in said
    assert kept == hostile


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
class TestTerminal:
    """What a person sees."""

    @staticmethod
    def seen(folder: Path, *words: str, typed: bytes = b"", **env: str) -> tuple[str, int]:
        import pty

        pid, master = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execve(SCRIPT, [SCRIPT, *words], room(folder, TERM="xterm", COLUMNS="80", **env))
        if typed:
            os.write(master, typed)
        output = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            output += piece
        os.close(master)
        _, status = os.waitpid(pid, 0)
        return output.decode(), os.waitstatus_to_exitcode(status)

    def test_colour_and_tables(self, run: Run, tmp_path: Path) -> None:
        """At a terminal there is both, and NO_COLOR or --no-color take the colour away."""
        run("remember", "Seen at a terminal\x1b[2J", "--kind", "fact", "--force")

        colourful, _ = self.seen(tmp_path, "list")
        plain, _ = self.seen(tmp_path, "list", NO_COLOR="1")
        also, _ = self.seen(tmp_path, "--no-color", "recall", "seen at a terminal")

        assert "\x1b[" in colourful
        assert "─" in colourful
        assert "\x1b[2J" not in colourful
        assert "\x1b" not in plain + also

    def test_forget_asks(self, run: Run, tmp_path: Path) -> None:
        """And does what is answered."""
        item_id = run("remember", "Shall I go?", "-q").stdout.strip()

        kept, _ = self.seen(tmp_path, "forget", item_id, typed=b"n\n")
        assert "nothing was changed" in kept
        gone, code = self.seen(tmp_path, "forget", item_id, typed=b"y\n")
        assert code == 0
        assert "undo: bethink restore" in gone

    def test_progress_is_shown(self, tmp_path: Path) -> None:
        """A long import has a bar on stderr."""
        lines = "\n".join(f'"note number {n} about subject {n * 7}"' for n in range(1500))
        (tmp_path / "many.jsonl").write_text(lines)

        said, code = self.seen(tmp_path, "import", "many.jsonl", BETHINK_EMBEDDER="hash")

        assert code == 0
        assert "importing" in said

    def test_a_program_sees_no_progress(self, tmp_path: Path) -> None:
        """With --json nothing but the answer is written, on a terminal too."""
        (tmp_path / "many.jsonl").write_text('"one note"\n"another note"\n')

        said, code = self.seen(tmp_path, "import", "many.jsonl", "--json")
        again, _ = self.seen(tmp_path, "reindex", "--json")

        assert code == 0
        assert json.loads(said)["stored"] == 2
        assert json.loads(again)["reindexed"] == 0
