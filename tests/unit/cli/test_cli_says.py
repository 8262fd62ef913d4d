"""What the command line says is true, complete and can be typed again."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from caller import Caller, Said

from bethink import Memory
from bethink.cli.answers import shown_id
from bethink.cli.output import Printer
from bethink.config.paths import config_folder
from bethink.config.settings import load_settings
from bethink.core.ids import make_id, short_id
from bethink.testing import FixedClock
from rows import each_row


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


def files_of(call: Caller) -> list[str]:
    return sorted(path.name for path in (call.folder / "data").rglob("*") if path.is_file())


READING = [
    ("list",),
    ("recall", "anything"),
    ("why-not", "1abc", "anything"),
    ("show", "1abc"),
    ("history", "1abc"),
    ("stats",),
    ("doctor",),
    ("export",),
    ("threads",),
    ("insights",),
    ("entities",),
    ("events",),
    ("recall-file", "a.py"),
    ("forget", "1abc", "--yes"),
    ("update", "1abc", "new"),
    ("undo", "--yes"),
    ("maintain",),
    ("reindex",),
    ("sync", "status"),
]


@each_row("words", READING, ids=lambda words: words[0])
def test_a_misspelt_space_creates_nothing(call: Caller, words: tuple[str, ...]) -> None:
    """Only what stores something creates a space; a name that is unknown is refused."""
    call("--space", "work", "remember", "The deploy key lives in vault B")
    before = files_of(call)

    said = call("--space", "wrok", *words)

    assert said.code == 2
    assert "there is no space 'wrok'" in said.err
    assert "did you mean work?" in said.err
    assert files_of(call) == before


@each_row("words", [("list",), ("recall", "anything"), ("stats",), ("doctor",)])
def test_reading_where_nothing_is_stored_creates_nothing(
    call: Caller, words: tuple[str, ...]
) -> None:
    """The project's own space, too, begins with the first memory."""
    said = call(*words)

    assert said.code in (0, 1)
    assert files_of(call) == []


@pytest.mark.parametrize("words", [("import", "none.txt"), ("read-smart", "none.txt")])
def test_a_file_that_is_not_there_creates_nothing(call: Caller, words: tuple[str, ...]) -> None:
    """A space begins with what is stored in it, not with a misspelt file."""
    said = call(*words)

    assert said.code in (1, 2)
    assert "no" in said.err
    assert "none.txt" in said.err
    assert files_of(call) == []


@each_row(
    ("words", "named"),
    [
        (("--kind", "desicion"), "no memory has the kind 'desicion'; did you mean 'decision'?"),
        (("--topic", "bakcup"), "no memory has the topic 'bakcup'; did you mean 'backup'?"),
        (("--tag", "nightly"), "no memory has the tag 'nightly'"),
        (("--as-of", "2001-01-01"), "nothing was stored yet at 2001-01-01"),
    ],
)
def test_a_filter_that_no_memory_matches_is_named(
    call: Caller, words: tuple[str, ...], named: str
) -> None:
    """An empty answer tells a misspelt filter from a question without an answer."""
    call.remember("Backups run at night", "--kind", "decision", "--topic", "backup")

    recalled = call("recall", "backups", *words)

    assert recalled.code == 1
    assert named in recalled.out
    if words[0] != "--as-of":
        assert named in call("list", *words).err


@pytest.mark.parametrize(("option", "value"), [("level", "epsiode"), ("layer", "goall")])
def test_an_unknown_level_or_layer_is_refused(call: Caller, option: str, value: str) -> None:
    """They have fixed values, so that a wrong one is named with the right ones."""
    for words in (("recall", "backups"), ("list",)):
        said = call(*words, f"--{option}", value)
        assert said.code == 2
        assert f"there is no {option} '{value}'" in said.err


def test_a_short_reason_of_an_edit_is_taken_and_shown(call: Caller) -> None:
    """What `note-edit` was told, `recall-file` tells, however short; secrets are removed."""
    noted = call("note-edit", "src/app.py", "--intent", "add ttl")
    secret = call("note-edit", "src/b.py", "--intent", "use password=Xk29sLqP7w here")

    assert "edit src/app.py: add ttl" in noted.err
    assert "add ttl" in call("recall-file", "app.py").out
    assert "Xk29sLqP7w" not in secret.err + secret.out
    assert "secrets were removed" in secret.err


def test_undo_works_as_it_is_printed(call: Caller) -> None:
    """The line after `undo:` is a command that undoes."""
    with Memory.open(
        settings=load_settings(), clock=FixedClock(datetime.now(UTC) - timedelta(days=300))
    ) as memory:
        fields = {"layer": "context", "entities": ["project:Atlas"], "importance": 0.1}
        memory.remember_many(
            [{"text": f"Atlas saw {n} boats pass lock {n * 3}", **fields} for n in range(4)]
        )
    call.remember("Something of today")
    done = call("maintain", "--job", "consolidate")
    line = next(line for line in done.out.splitlines() if line.startswith("undo: bethink "))

    undone = call(*line.removeprefix("undo: bethink ").split())

    assert undone.code == 0
    assert undone.out.splitlines()[-1].startswith("undone run-")


def test_stats_tell_when_things_happened(call: Caller) -> None:
    """Oldest and newest are of what memories are about, not of when they were stored."""
    call.remember("The bridge was built", "--occurred-at", "2019-05-01")
    call.remember("The bridge was painted", "--occurred-at", "2021-06-01")

    told = call("stats", "--json").told

    assert told["oldest"].startswith("2019-05-01")
    assert told["newest"].startswith("2021-06-01")


def test_a_hit_has_its_time(call: Caller) -> None:
    """To the minute where it is known, so that the order within a day can be told."""
    call.remember("Reservations live for 15 minutes", "--occurred-at", "2026-11-14T09:32")
    call.remember("Reservations need a name", "--occurred-at", "2026-11-13")

    out = call("recall", "reservations").out

    assert "2026-11-14 09:32" in out
    assert "2026-11-13 ·" in out


def test_doctor_warns_of_late_hooks(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that missed its deadline is a warning, and no damage to the store."""
    call.remember("The deploy key lives in vault B")
    log = call.folder / "hooks.log"
    now = datetime.now(UTC)
    log.write_text(f"{now:%Y-%m-%dT%H:%M:%SZ} prompt late: not done within 500 ms\n")
    monkeypatch.setattr("bethink.config.paths.hooks_log", lambda: log)

    said = call("doctor")
    told = call("doctor", "--json").told

    assert said.code == 0
    assert any(line.startswith("warning") and "hooks" in line for line in said.out.splitlines())
    assert "1 warning" in said.out
    assert [one["warning"] for one in told["findings"] if one["name"] == "hooks"] == [True]


@each_row(
    ("setting", "value", "role"),
    [
        ("BETHINK_RERANKER", "http://127.0.0.1:9/rerank", "reranker"),
        ("BETHINK_RERANKER", "cross-encoder:/nonexistent/folder", "reranker"),
        ("BETHINK_LLM", "openai:tiny", "llm"),
        ("BETHINK_EMBEDDER", "openai:tiny", "embedder"),
    ],
)
def test_doctor_warns_of_a_dead_model(call: Caller, setting: str, value: str, role: str) -> None:
    """Every configured model is used once; one that does not answer is named."""
    call.remember("The deploy key lives in vault B")
    call.set("BETHINK_LLM_TIMEOUT_S", "1")
    call.set("BETHINK_QUERY_TIMEOUT_S", "1")
    call.set("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    call.set(setting, value)

    findings = {one["name"]: one for one in call("doctor", "--json").told["findings"]}

    assert findings[role]["warning"], findings[role]
    assert findings[role]["ok"]


def test_completion_offers_ids_profiles_kinds_and_spaces(call: Caller) -> None:
    """A shell completes what is stored; a description comes with an id."""
    item = call.remember("Backups run at night", "--kind", "decision")

    def complete(line: str) -> str:
        call.set("COMP_WORDS", f"bethink {line}")
        call.set("COMP_CWORD", str(len(line.split(" "))))
        call.set("_BETHINK_COMPLETE", "bash_complete")
        return call().out

    assert item in complete("show ")
    assert item in complete(f"show {item[-5:]}")
    assert "siftcoder" in complete("recall x --profile sif")
    assert "decision" in complete("list --kind d")
    assert "insight" in complete("list --level in")
    assert "consolidate" in complete("maintain --job con")
    assert complete("--space nosuch show ").strip() == ""


def test_short_ids_find_their_memory(call: Caller) -> None:
    """The end of an id is shown at a terminal and accepted; foreign ids are shown whole."""
    ids = [call.remember(f"Gauge {n} stands at bridge {n * 7}") for n in range(5)]

    for item in ids:
        assert len(short_id(item)) == 8
        assert call("show", short_id(item), "--json").told["id"] == item
    assert len({short_id(make_id(datetime.now(UTC))) for _ in range(200)}) == 200
    assert short_id("note:daily/2026") == "note:daily/2026"
    plain, terminal = (Printer(io.StringIO(), terminal=seen, color=False) for seen in (False, True))
    assert (shown_id(plain, ids[0]), shown_id(terminal, ids[0])) == (ids[0], ids[0][-8:])


def test_building_insights_tells_of_a_dead_model(call: Caller) -> None:
    """Insights are then made by rules, and the command says so."""
    with Memory.open(settings=load_settings()) as memory:
        texts = [f"Lock {n} of the canal has {n + 2} gates" for n in range(25)]
        memory.remember_many([{"text": text, "topic": "canal"} for text in texts])
    call.set("BETHINK_LLM", "openai:tiny")
    call.set("BETHINK_LLM_TIMEOUT_S", "1")
    call.set("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    said = call("insights", "--build")

    assert "by rules:" in said.err, said


def test_counts_agree_with_their_nouns(call: Caller) -> None:
    """One edit, two edits; one session."""
    call("note-edit", "a.py", "--intent", "first")
    call("note-edit", "b.py", "--intent", "second", "--session", "s1")
    call("note-edit", "b.py", "--intent", "third", "--session", "s1", "--at", "yesterday")

    assert "1 edit " in call("recall-file", "a.py").out
    assert "2 edits in 1 session," in call("recall-file", "b.py").out


def test_every_tool_counts_with_the_right_noun(memory: Memory) -> None:
    """To models, too: never "1 memories" or "1 edits"."""
    from bethink.server.tools import TOOLS
    from bethink.server.tools.tool import Call

    def ask(name: str, **arguments: Any) -> str:
        return TOOLS[name](Call(memory, arguments)).text

    memory.remember("Ines moved the ledger to src/app.py", entities=["person:Ines"])
    memory.note_edits([{"path": "src/app.py", "operation": "edit", "intent": "add ttl"}])
    texts = [
        ask("list_entities", prefix="ines"),
        ask("recall_file", path="app.py"),
        ask("recall", query="ledger"),
    ]

    assert not [text for text in texts if "1 memories" in text or "1 edits" in text]
    assert "add ttl" in texts[1]


def test_a_translation_is_searched_with_the_question(call: Caller) -> None:
    """As abmind's command line has it: `recall --translated`, with or without a question."""
    call.remember("The deploy key lives in vault B")

    together = call("recall", "wo ist der Schlüssel?", "--translated", "deploy key")
    alone = call("recall", "--translated", "deploy", "--translated", "key")

    assert "vault B" in together.out
    assert "vault B" in alone.out


def test_the_file_of_a_profile_can_be_printed_and_used(call: Caller) -> None:
    """A copy of a shipped profile, under another name, answers the same."""
    folder = call.folder / "home" / "config" / "bethink" / "profiles"
    folder.mkdir(parents=True)
    call.remember("The deploy key lives in vault B")

    (folder / "mine.toml").write_text(call("profiles", "show", "siftcoder", "--toml").out)
    mine, theirs = (
        call("recall", "deploy key", "--profile", name) for name in ("mine", "siftcoder")
    )

    assert mine.out == theirs.out.replace("siftcoder", "mine")
    assert "vault B" in mine.out


def test_a_group_without_a_command_is_one_sentence(call: Caller) -> None:
    """The error says what is missing and where to read on, not the whole help on one line."""
    said = call("store")

    assert said.code == 2
    assert said.err.splitlines() == ["error: missing command", "try:   bethink store --help"]


@each_row(
    "words",
    [
        ("--store", "{url}", "stats"),
        ("--store={url}", "recall", "anything", "--json"),
        ("store", "status", "{url}"),
        ("move", "work", "--to", "{url}"),
        ("config", "set", "store", "{url}"),
    ],
)
def test_a_password_among_the_arguments_is_warned_of(words: tuple[str, ...], call: Caller) -> None:
    """Everyone who may list the processes reads it; other URLs are passed over in silence."""
    for user, warned in (("app", False), ("app:hunter22", True)):
        url = f"postgresql://{user}@127.0.0.1:1/memories"
        said = call(*(word.format(url=url) for word in words))
        assert ("password among the arguments" in said.err) == warned, said
        assert "hunter22" not in said.out + said.err


def test_sync_writes_only_where_a_target_was_given(call: Caller) -> None:
    """Not into the working directory, and not for spaces that were never synchronised."""
    drive = call.folder / "drive"
    drive.mkdir()
    for name in ("home", "work"):
        call("--space", name, "remember", "The deploy key lives in vault B")
    call("--space", "work", "sync", str(drive), "--name", "laptop")
    before = sorted(call.folder.iterdir())

    refused = call("--space", "work", "sync", "--retire", "0123456789abcdef")
    every = call("sync", "--spaces", "all")

    assert (refused.code, "TARGET" in refused.err) == (2, True)
    assert (every.code, every.out.count("synchronised with")) == (0, 1)
    assert sorted(call.folder.iterdir()) == before


def test_the_other_word_for_help_takes_what_help_takes(call: Caller) -> None:
    """A command of a group, all commands, and --json, which has no effect on it."""
    assert call("help", "inbox", "accept").out == call("inbox", "accept", "--help").out
    assert call("help", "--all").out == call("--help", "--all").out
    assert call("help", "--json").out == call("--help").out


def test_a_list_shows_the_time_it_is_sorted_by(call: Caller) -> None:
    """The time of storing; the day on which something else happened is at its text."""
    call.remember("We met Ana in Porto", "--occurred-at", "2024-03-05")
    newest = call.remember("Deploys happen on Tuesdays")

    listed = call("list").out.splitlines()

    assert listed[0].split() == ["id", "stored", "kind", "text"]
    assert listed[1].partition("  ")[0] == newest
    assert "[20" not in listed[1]
    assert listed[2].endswith("[2024-03-05] We met Ana in Porto")
    assert call("timeline", newest).out.splitlines()[0].split()[1] == "stored"


def test_a_timeline_of_a_conversation_shows_when_it_was_said(call: Caller) -> None:
    """Its turns are sorted by their numbers, not by when they were stored."""
    turns = [
        {"text": f"Turn {n}", "session": "s", "seq": n, "occurred_at": f"2024-03-0{n}"}
        for n in (2, 1)
    ]
    with Memory.open(settings=load_settings()) as memory:
        first = memory.remember_many(turns)[0].id

    lines = call("timeline", first).out.splitlines()

    assert [line.split()[1] for line in lines] == ["when", "2024-03-01", "2024-03-02"]


def test_a_correction_has_a_probability(call: Caller) -> None:
    """Only of what says the same it is told how similar it is."""
    call.set("BETHINK_EMBEDDER", "encoder")
    call.remember("The staging database is on port 5433")

    newer = call("remember", "The staging database is on port 5444 now").out
    again = call("remember", "The staging database is on port 5444 now.").out

    assert "probability 0.9" in newer
    assert "similarity" not in newer
    assert "similarity 1.00" in again


@each_row("words", [("list",), ("recall", "Tuesdays"), ("why-not", "ID", "Tuesdays")])
def test_a_period_that_ends_before_it_begins_is_refused(
    call: Caller, words: tuple[str, ...]
) -> None:
    """An empty answer would look as if nothing had happened then."""
    item = call.remember("Deploys happen on Tuesdays")
    asked = [item if word == "ID" else word for word in words]

    said = call(*asked, "--since", "2026-12-01", "--until", "2025-01-01")

    assert said.code == 2
    assert "since 2026-12-01 is not before until 2025-01-01" in said.err
    assert call(*asked, "--since", "2026-01-01", "--until", "2026-01-01").code == 2


def test_sync_says_what_happened_and_what_to_do(call: Caller) -> None:
    """Two machines of one name, a folder, a conflict: each message can be followed."""

    def on(machine: str, *words: str) -> Said:
        call.set("BETHINK_DATA_DIR", str(call.folder / machine))
        return call(*words)

    room = call.folder / "room"
    room.mkdir()
    (call.folder / "file").write_text("x", "utf-8")
    one = on("a", "remember", "The deploy key is in vault B", "--json").told["id"]
    on("a", "sync", "room", "--name", "vm")
    met = on("b", "sync", "room", "--name", "vm").out
    code = on("a", "sync", "status", "--json").told["device"]
    own = on("b", "sync", "status", "--json").told["device"]

    assert f"{code}: nothing is taken from it yet" in met
    assert f"--accept {code}" in met  # the name is that of both
    assert code in on("b", "sync", "room", "--accept", "vm").err
    assert "1 memory changed here" in on("b", "sync", "room", "--accept", code).out
    on("a", "sync", "room", "--accept", own)
    assert "there are vm" in on("a", "sync", "--accept", "nosuch").err
    assert "sync status shows the codes" in on("a", "sync", "room", "--retire", "vm").err
    assert "is no folder" in on("a", "sync", "file").err
    assert "urandom > nosuch" in on("a", "sync", "room", "--key", "nosuch").err
    assert "leave out --key" in on("a", "sync", "room", "--key", __file__).err
    assert "bethink conflicts lists them" in on("a", "settle", one).err

    on("a", "update", one, "The deploy key is in vault C")
    assert on("a", "sync").out.count("T") == 0
    on("b", "forget", one, "--yes")
    for machine in "bab":
        on(machine, "sync")
    assert "--keep current keeps it" in on("b", "settle", one, "--keep", "both").err
    assert on("b", "settle", one, "--keep", "other").out.startswith(f"forgot {one}")
    on("b", "sync", "room", "--retire", code)
    on("a", "sync")
    assert "this machine was retired" in on("a", "sync").out
    assert "no run of maintenance has changed anything" in on("a", "maintain", "--runs").err


@each_row("command", ["show 1abc", "events"])
def test_a_damaged_list_of_people_hides_no_memory(
    call: Caller, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Names of people are an addition: without them ids are shown."""
    monkeypatch.setenv("BETHINK_ACTOR", "rest:p-17")
    call("remember", "The staging server is in Porto", "--id", "1abc")
    people = config_folder(os.environ) / "people.json"
    people.parent.mkdir(parents=True, exist_ok=True)
    people.write_text("{damaged")

    said = call(*command.split())

    assert said.code == 0
    assert "rest:p-17" in said.out
