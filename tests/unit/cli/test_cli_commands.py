"""What every command prints and answers with, one by one."""

from __future__ import annotations

import gzip
import json
import re
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from caller import Caller

from bethink.server import webhook_commands
from rows import each_row


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


# --- Writing --------------------------------------------------------------------------------


def test_remember_tells_what_became_of_it(call: Caller) -> None:
    """Status and id; then collisions, what was taken out, whom it speaks of."""
    first = call("remember", "Mara Klein owns the billing parser", "--entity", "Mara Klein")
    again = call("remember", "Mara Klein owns the billing parser")
    secret = call("remember", "The bucket opens with AKIA" + "Q3EXAMPL7WZ2KD5N")

    assert first.out.startswith("stored ")
    assert "mentions: Mara Klein" in first.out
    assert again.out.startswith("duplicate ")
    assert "same as " in again.out
    assert "redacted: " in secret.out


def test_remember_quietly_gives_the_id(call: Caller) -> None:
    """For scripts that want no more."""
    assert re.fullmatch(r"\w{16}\n", call("remember", "The sky is blue", "-q").out)


def test_remember_reads_standard_input(call: Caller) -> None:
    """UTF-8, with or without a byte order mark; anything else is refused."""
    item_id = call("remember", "-", "-q", stdin="\ufeffGrüße aus Köln\n".encode()).out.strip()

    assert call("show", item_id, "--json").told["text"] == "Grüße aus Köln"
    assert "not UTF-8: byte 0xff at position 2" in call("remember", "-", stdin=b"ab\xff").err


def test_standard_input_may_have_line_ends_of_windows(call: Caller) -> None:
    """They are read as line ends, so that the same text is the same memory everywhere."""
    item_id = call("remember", "-", "-q", stdin=b"Ports: 80\r\nHost: db-1\r\n").out.strip()

    assert call("show", item_id, "--json").told["text"] == "Ports: 80\nHost: db-1"


def test_refused_texts_stop_no_other(call: Caller) -> None:
    """What is stored is listed, the rest is named, and the exit code says so."""
    done = call("remember", "Maria likes green tea", "\u200b \u200b", "We chose PostgreSQL")
    assert (done.code, done.out.count("stored ")) == (2, 2)
    assert "1 of 3 memories were refused, the others are stored: number 2: " in done.err

    told = call("remember", "Rotate the key now", "\u200b \u200b", "--json")
    assert told.code == 2
    assert [entry["status"] for entry in told.told] == ["stored", "refused"]
    assert told.told[1]["error"]["message"]


def test_metadata_is_an_object(call: Caller) -> None:
    """Anything else is bad use."""
    item_id = call.remember("With metadata", "--metadata", '{"a": [1, null]}')

    assert call("show", item_id, "--json").told["metadata"] == {"a": [1, None]}
    for bad in ("[1]", "{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 1000):
        assert call("remember", "With metadata", "--metadata", bad).code == 2


def test_update_says_the_revision(call: Caller) -> None:
    """The new text by argument, by option or from standard input."""
    item_id = call.remember("The limit is 5")

    assert call("update", item_id, "The limit is 6").out == f"updated {item_id} revision 2\n"
    assert call("update", item_id, "The limit is 6").out == f"unchanged {item_id} revision 2\n"
    assert call("update", item_id, "-", "-q", stdin=b"The limit is 7").out == f"{item_id}\n"
    assert call("update", item_id, "--text", "The limit is 8", "--json").told["rev"] == 4
    assert call("update", item_id, "--pin", "--json").told["pinned"] is True
    assert call("update", item_id, "--no-pin", "--json").told["pinned"] is False
    assert "nothing to change" in call("update", item_id).err
    assert "given twice" in call("update", item_id, "a", "--text", "b").err


def test_an_update_of_a_replaced_memory_names_what_replaced_it(call: Caller) -> None:
    """A correction that recall will not return must not look like one that it will."""
    older = call.remember("The API timeout is 30 s")
    newer = call.remember("The API timeout is 60 s")
    call("link", newer, "supersedes", older)

    told = call("update", older, "The API timeout is 90 s")

    assert told.code == 0
    assert f"superseded by {newer}" in told.out
    assert f"bethink update {newer}" in told.out
    assert "superseded" not in call("update", newer, "The API timeout is 45 s").out


def test_forget_in_all_its_forms(call: Caller) -> None:
    """Shown first, done with --yes, undone by restore, final with --erase."""
    item_id, pinned = call.remember("Here today"), call.remember("Here to stay", "--pin")

    shown = call("forget", item_id, pinned)
    assert f"would forget {item_id}" in shown.out
    assert f"kept {pinned}" in shown.out
    assert "nothing was changed" in shown.err
    assert call("forget", item_id, "--json").told["preview"] is True
    assert "undo: bethink restore" in call("forget", item_id, "--yes").out
    assert call("restore", item_id).out == f"restored {item_id}\n"
    assert call("restore", item_id, "--json").told == {"restored": []}
    assert "is not forgotten" in call("restore", item_id).err
    assert call("forget", pinned, "--yes").code == 1

    assert "would erase" in call("forget", item_id, "--erase").out
    erased = call("forget", item_id, pinned, "--erase", "--yes")
    assert "removed: " in erased.out
    assert call("forget", call.remember("Once"), "--erase", "--yes", "--json").told["receipt"]
    assert call("show", item_id).code == 1


# --- Reading --------------------------------------------------------------------------------


def test_show_leaves_out_what_is_usual(call: Caller) -> None:
    """A plain memory has few facts; one with much to say has a line each."""
    plain = call.remember("A plain note")
    rich = call.remember(
        "A note with much to say", "--tag", "a", "--tag", "b", "--importance", "0.9",
        "--occurred-at", "2026-01-02", "--metadata", '{"pr": 7}', "--pin",
    )  # fmt: skip

    assert "importance" not in call("show", plain).out
    said = call("show", rich).out
    for fact in ("tags              a, b", "importance        0.9", "2026-01-02 00:00",
                 "pinned            yes", "{'pr': 7}"):  # fmt: skip
        assert fact in said


def test_an_argument_that_is_not_utf8_is_told_as_its_bytes(call: Caller) -> None:
    """A shell in Latin-1 passes é as one byte: "a lone surrogate" would tell nobody that."""
    told = call("remember", "caf\udce9 au lait")

    assert told.code == 2
    assert "the text is not UTF-8: byte 0xe9 at position 3" in told.err


def test_an_update_tells_of_a_secret_that_it_loses(call: Caller) -> None:
    """Two codes are the same text once they are removed: "unchanged" alone would hide why."""
    told = call("update", call.remember("The garage code is 4711"), "The garage code is 9988")

    assert "unchanged" in told.out
    assert "redacted: pin" in told.out


def test_show_has_the_text_of_what_waits(call: Caller) -> None:
    """Not an empty memory with its draft among the metadata."""
    call("config", "set", "review_import", "wait")
    call("import", "-", "--from", "lines", stdin=b"The API allows 90 calls a minute\n")
    (waiting,) = call("inbox", "--json").told

    said = call("show", waiting["id"])

    assert "  The API allows 90 calls a minute\n" in said.out
    assert "draft" not in said.out
    assert "in the inbox: " in said.err


def test_history_shows_what_changed(call: Caller) -> None:
    """Revision by revision; JSON has all of them."""
    item_id = call.remember("The limit is 5", "--kind", "fact")
    call("update", item_id, "The limit is 6")
    call("update", item_id, "--kind", "note")

    said = call("history", item_id).out
    assert "The limit is 5" in said
    assert "text: The limit is 5 → The limit is 6" in said
    assert "kind: fact → note" in said
    assert [item["rev"] for item in call("history", item_id, "--json").told] == [1, 2, 3]
    assert len(call("show", item_id, "--history", "--json").told["history"]) == 3
    assert "kind: fact → note" in call("show", item_id, "--history").out


def test_lists(call: Caller) -> None:
    """Memories, entities and events; empty ones are told on stderr with exit code 1."""
    for words in (["list"], ["entities"], ["events"]):
        empty = call(*words)
        assert (empty.code, empty.out, empty.err) == (1, "", "nothing found\n")
        assert call(*words, "--json").told == []
        assert call(*words, "-q").err == ""

    first = call.remember("Mara Klein owns the parser", "--entity", "Mara Klein", "--speaker", "Jo")
    second = call.remember("Nobody owns the rest of it")
    assert "Jo: Mara Klein owns" in call("list").out
    assert f"more: --after {second}" in call("list", "--limit", "1").err
    assert "more" not in call("list", "--limit", "2").err
    assert "more" not in call("events", "--after", "0", "--limit", "2").err
    assert first in call("list", "--after", second).out
    assert "Mara Klein" in call("entities").out
    assert call("entities", "--json").told[0]["mentions"] == 1
    assert "more: --after 1" in call("events", "--after", "0", "--limit", "1").err
    newest = [one["seq"] for one in call("events", "--json").told]
    assert newest == sorted(newest, reverse=True)
    assert call("events", "--json", "--limit", "1").told[0]["seq"] == newest[0]
    assert call("events", "--after", "0", "--json").told[0]["kind"] == "stored"


def test_words_of_other_tools_are_understood(call: Caller) -> None:
    """They do the same as ours; `help` shows it."""
    stored = call("add", "The kiln is in the shed", "--json").told["id"]
    for words in (["find", "where is the kiln?"], ["search", "kiln"], ["ls"], ["get", stored]):
        assert "The kiln is in the shed" in call(*words).out, words
    assert call("help", "forget").out == call("rm", "--help").out
    assert call("help").out == call("--help").out
    assert call("delete", stored, "--yes").code == 0
    assert call("ls").out == ""


def test_a_memory_is_read_from_standard_input(call: Caller) -> None:
    """With a dash, or without any text where something is piped in."""
    for words in (["remember"], ["remember", "-"]):
        assert call(*words, stdin=b"Piped in, $5\n").code == 0
    assert [one["text"] for one in call("list", "--json").told] == ["Piped in, $5"]


def test_the_timeline_has_the_memory_in_its_place(call: Caller) -> None:
    """In a conversation by turn, otherwise by the time of storing."""
    turns = [
        call.remember(f"Turn {n} of the talk", "--session", "s", "--seq", str(n)) for n in range(3)
    ]
    notes = [call.remember(f"Note {n} of three") for n in range(3)]

    for ids in (turns, notes):
        told = call("timeline", ids[1], "--window", "1", "--json").told
        assert [item["id"] for item in told] == ids
    assert "Turn 1" in call("timeline", turns[1]).out
    assert call("timeline").code == 2


def test_recall_and_its_kin(call: Caller) -> None:
    """Found, explained, traced, missed and compared."""
    item_id = call.remember("Tests run with make test")
    other = call.remember("The deploy key lives in vault B")

    said = call("recall", "how do tests run", "--explain", "--trace", "--no-track")
    assert said.code == 0
    assert "fuse.lexical" in said.out
    assert "channel.lexical" in said.out
    assert call("recall", "how do tests run", "--json").told["order"][0] == item_id
    assert "returned: " in call("why-not", item_id, "how do tests run").out
    assert "dropped at " in call("why-not", other, "how do tests run").out
    assert call("why-not", other, "how do tests run", "--json").told["returned"] is False
    assert "siftcoder" in call("compare", "how do tests run").out
    assert call("compare", "how do tests run", "--json").told.keys() > {"default", "siftcoder"}
    assert call("recall", "tests", "--profile", "none").code == 2
    assert call("recall", "tests", "--now", "gibberish").code == 2


_RECALLS = [
    ["how do tests run"],
    ["how do tests run", "--json", "-k", "1"],
    ["--limit", "0", "how do tests run", "--json"],
    ["--json", "--space", "", "nothing of the kind"],
    ["", "-k", "1", "-k", "2"],
    ["tests", "--space", "none"],
    ["tests", "--space", "none", "--json"],
    ["tests", "-k", "9" * 5000],
    ["tests", "-k", "many"],
    ["tests", "-k", "-1"],
    ["tests", "-k"],
    ["tests", "-k1"],
    ["tests", "more"],
    ["tests", "--json", "--bogus"],
    ["--", "--json"],
    ["--json"],
    [],
]


def test_a_plain_recall_is_what_click_makes_of_it(call: Caller) -> None:
    """The way without click differs in nothing but its time, mistakes included."""
    call.remember("Tests run with make test")
    call.remember("The tests of the parser are slow")
    changing = re.compile(r'(--cursor |"cursor": "|"now": ")[^ "]+')

    for words in _RECALLS:
        plain, parsed = call("recall", *words), call("--no-color", "recall", *words)

        assert plain.code == parsed.code, words
        assert changing.sub("", plain.out) == changing.sub("", parsed.out), words
        assert plain.err == parsed.err, words


@pytest.mark.parametrize("words", [["tests"], ["tests", "--json"]])
def test_a_plain_recall_with_an_unknown_profile(call: Caller, words: list[str]) -> None:
    """A mistake in the settings is told as click tells it."""
    call.remember("Tests run with make test")
    call.set("BETHINK_PROFILE", "nothing")

    plain, parsed = call("recall", *words), call("--no-color", "recall", *words)

    assert plain == parsed
    assert plain.code == 2
    assert "bethink recall --help" in plain.out + plain.err


# --- Bringing and taking ----------------------------------------------------------------------


def test_import_counts(call: Caller) -> None:
    """Stored, known, redacted, refused; and the source each line came from."""
    lines = ["A first note of this file", "A first note of this file", "7", "{", "[]",
             {"content": "A note with AKIA" + "Q3EXAMPL7WZ2KD5N", "mood": "good"}]  # fmt: skip
    content = "\n".join(x if x in ("7", "{", "[]") else json.dumps(x) for x in lines)
    (call.folder / "notes.jsonl").write_text(content)

    dry = call("import", "notes.jsonl", "--dry-run")
    assert "would store 2 memories" in dry.out
    assert call("list").code == 1
    said = call("import", "notes.jsonl", "--tag", "t", "--trust", "1")
    assert said.code == 2
    assert "stored 2 memories, 1 already known, 1 with secrets removed, 3 refused" in said.out
    assert "line 3: " in said.out
    told = call("import", "notes.jsonl", "--json").told
    assert [refusal["line"] for refusal in told["refused"]] == [3, 4, 5]
    item = call("list", "--json").told[0]
    assert (item["source"], item["source_class"], item["tags"]) == ("notes.jsonl", "import", ["t"])
    assert item["metadata"] == {"mood": "good"}


def test_many_refusals_are_not_all_shown(call: Caller) -> None:
    """A file that is no notes at all does not fill the screen."""
    said = call("import", "-", "--format", "jsonl", stdin=b"nonsense\n" * 30)

    assert said.out.count("line ") == 20
    assert "and 10 more" in said.out


def test_import_of_nothing(call: Caller) -> None:
    """Is nothing found."""
    assert call("import", "-").code == 1


def test_an_export_comes_back(call: Caller) -> None:
    """To a file, to standard output, packed; a dry run takes nothing in."""
    call.remember("Something to keep")
    call("export", "out.jsonl")
    said = call("export")
    # The journal of the second has one line more: that of the first.
    written = (call.folder / "out.jsonl").read_text().splitlines()
    assert set(written[:-1]) < set(said.out.splitlines())
    assert call("export", "out.jsonl", "--json").told["file"] == "out.jsonl"
    (call.folder / "packed.gz").write_bytes(gzip.compress(said.out.encode()))

    dry = call("import", "packed.gz", "--dry-run", "--space", "other")
    assert "would import 1 memory" in dry.out
    assert call("import", "packed.gz", "--space", "other", "--json").told["stored"] == 1
    assert "Something to keep" in call("list", "--space", "other").out
    broken = call("import", "-", stdin=b'{"type": "bethink", "version": 1}\n[]\n')
    assert (broken.code, broken.err[:13]) == (2, "error: line 2")


def test_export_follows_links_and_writes_to_pipes(call: Caller) -> None:
    """A linked file stays a link; what is no file is written to directly."""
    call.remember("Something to keep")
    (call.folder / "real.jsonl").write_text("old")
    (call.folder / "link.jsonl").symlink_to("real.jsonl")

    assert call("export", "link.jsonl").code == 0
    assert (call.folder / "link.jsonl").is_symlink()
    assert "Something to keep" in (call.folder / "real.jsonl").read_text()
    assert call("export", "/dev/null").code == 0
    assert call("export", str(call.folder)).code == 2


def test_an_export_that_cannot_be_written_names_the_given_file(call: Caller) -> None:
    """As it was given; the temporary file of the writer is not the user's."""
    failed = call("export", "missing/out.jsonl")

    assert (failed.code, failed.err) == (2, "error: missing/out.jsonl: no such file or directory\n")


# --- Looking after it ---------------------------------------------------------------------------


def test_doctor_and_export_work_without_the_page_of_counters(call: Caller) -> None:
    """What the error of any other command names says what to do, and that works."""
    call.remember("The harbour crane is red")
    (path,) = (call.folder / "data").rglob("*.db")
    with closing(apsw.Connection(str(path))) as db:
        page, size = db.execute(
            "SELECT pageno, pgsize FROM dbstat WHERE name = 'meta' AND pagetype = 'leaf'"
        ).get
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    refused = call("recall", "harbour crane")
    checked = call("doctor", "--repair")
    saved = call("export")

    assert refused.code == checked.code == 3
    assert "bethink doctor" in refused.err
    assert "bethink export" in checked.out
    assert "The harbour crane is red" in saved.out
    assert "2 records of damaged data" in saved.err
    assert "internal" not in checked.out + checked.err


def test_doctor_stats_and_reindex(call: Caller) -> None:
    """What is in use, what is there, what is missing and can be made."""
    call.remember("Stored without a vector")
    assert "no problems found" in call("doctor").out
    assert call("reindex", "--json").told == {"reindexed": 0, "entities": 0, "index_entries": 0}

    call.set("BETHINK_EMBEDDER", "hash")
    wrong = call("doctor")
    assert (wrong.code, "bethink reindex" in wrong.out) == (3, True)
    assert "repaired" in call("doctor", "--repair").out
    assert call("doctor", "--json").told["ok"] is True
    assert "created vectors for 0 memories" in call("reindex").out
    assert re.search(r"memories +1\n", call("stats").out)
    assert call("stats", "--json").told["memories"] == 1


def test_verbose_says_that_no_worker_is_running(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    call.remember("The deploy key lives in vault B")
    monkeypatch.setenv("BETHINK_WORKER", "auto")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(call.folder))

    assert "no worker is running" in call("recall", "deploy key", "-v").err
    assert call("recall", "deploy key").err == ""


def test_spaces(call: Caller) -> None:
    """None, one, its file, and gone."""
    assert (call("spaces").code, call("spaces", "--json").told) == (1, [])
    call.remember("In a space of its own", "--space", "mine")
    (call.folder / "data" / "spaces" / "big.db").write_bytes(b"x" * 2_500_000)
    (call.folder / "data" / "spaces" / "tiny.db").write_bytes(b"x")

    said = call("spaces", "--space", "mine")
    assert re.search(r"^\* +mine +[\d.]+ kB", said.out, re.MULTILINE)
    assert "2.5 MB" in said.out
    assert " 1 B " in said.out
    assert "current space: mine" in said.err
    assert "named by the caller" in call("spaces", "path", "mine", "-v").err
    assert call("spaces", "path", "mine", "--json").told["name"] == "mine"
    assert call("spaces", "remove", "mine", "--json").told["preview"] is True
    assert "would remove" in call("spaces", "remove", "mine").out
    assert call("spaces", "remove", "mine", "--yes").out == "removed mine\n"
    assert call("spaces", "remove", "mine").code == 1


def test_profiles(call: Caller) -> None:
    """Listed, drawn, and broken ones named."""
    folder = call.folder / ".bethink" / "profiles"
    folder.mkdir(parents=True)
    (folder / "broken.toml").write_text("[[channels]]\nuse = 'none'\n")

    assert "cannot be used" in call("profiles").out
    listed = {entry["name"]: entry["usable"] for entry in call("profiles", "--json").told}
    assert (listed["default"], listed["broken"]) == (True, False)
    drawn = call("profiles", "show", "siftcoder").out
    assert "├─ expand    -" in drawn
    assert "per_tool={Bash: 3," in drawn
    assert call("profiles", "show", "siftcoder", "--json").told["name"] == "siftcoder"


@each_row(
    "command",
    [
        ["profiles", "show", "nothing"],
        ["recall", "x", "--profile", "nothing"],
        ["why-not", "abcd", "x", "--profile", "nothing"],
        ["compare", "x", "--profiles", "default,nothing"],
        ["eval", "builtin", "--profiles", "nothing"],
    ],
    ids=lambda command: command[0],
)
def test_an_unknown_profile_is_a_usage_error(call: Caller, command: list[str]) -> None:
    """In every command, with the names that there are."""
    call.remember("Something to find")
    failed = call(*command)

    assert failed.code == 2
    assert "there is no profile 'nothing'" in failed.err
    assert "memind-simple" in failed.err


def test_config(call: Caller) -> None:
    """Listed, read with or without `get`, changed and taken out again."""
    assert re.search(r"embedder +none +environment BETHINK_EMBEDDER", call("config").out)
    assert call("config", "--json").told["k"]["origin"] == "default"
    assert call("config", "set", "k", "7").code == 0
    assert call("config", "k").out == "7\n"
    assert "user file" in call("config", "get", "k", "-v").err
    assert call("config", "unset", "k", "--json").told["value"] is None
    assert call("config", "get", "track", "--json").told["value"] is False
    assert call("config", "get", "track").out == "false\n"
    assert call("config", "get", "space").out == "\n"
    assert call("config", "set", "k", "none").code == 2


@pytest.mark.parametrize("words", [("import", ""), ("export", ""), ("export", "", "--markdown")])
def test_an_empty_path_is_refused(call: Caller, words: tuple[str, ...]) -> None:
    """An unset variable of a script does not mean the working directory."""
    call.remember("The pump leaks")
    said = call(*words)

    assert (said.code, said.out) == (2, "")
    assert " is empty" in said.err


def test_the_demo_takes_no_other_space(call: Caller) -> None:
    """It says which option names the space that is kept."""
    said = call("demo", "--space", "boats")

    assert said.code == 2
    assert "--keep boats" in said.err


def test_without_a_question_there_is_no_relevance(call: Caller) -> None:
    """Nothing is asked that a memory could be relevant to."""
    call.remember("Leila moved to Lyon", "--entity", "Leila")
    told = call("recall", "--entity", "Leila", "--json").told

    assert [hit["relevance"] for hit in told["items"]] == [None]
    assert "%" not in call("recall", "--entity", "Leila").out


def test_webhooks_are_for_kinds_there_are(call: Caller) -> None:
    """All that the journal writes, and no other."""
    call.remember("The pump leaks")
    hook = ("webhook", "add", "one", "https://hooks.example.org/", "--kind")
    store = Path(webhook_commands.__file__).parents[1] / "store"
    source = "".join(path.read_text("utf-8") for path in store.rglob("*.py"))
    written = re.findall(r'(?:JournalLine\(|write_line\(\s*db, |_replace\(kind=)"([^"]+)"', source)

    assert call(*hook, "zzz").code == 2
    assert call(*hook, "stored").code == 0
    assert len(written) > 10
    assert set(written) <= set(webhook_commands.KINDS.choices)


def test_demo(call: Caller) -> None:
    """One screen that answers from the notes and ends with how to go on; the same as JSON."""
    call.set("BETHINK_EMBEDDER", "hash")
    call.set("PATH", "")

    shown = call("demo").out.splitlines()
    assert len(shown) <= 24
    assert "The SMS worker retries a failed message 3 times." in " ".join(shown)
    assert "not on your PATH" in shown[-1]
    told = call("demo", "--json").told
    assert "3 times" in told["asked"]["items"][0]["text"]
    assert told["unrelated"]["order"] == []


def test_small_things(call: Caller) -> None:
    """Version, completion, help, and words that are no command."""
    assert call("version").out == call("--version").out
    assert "sqlite" in call("version", "-v").out
    assert "_BETHINK_COMPLETE" in call("completion", "zsh").out
    assert call("completion", "fish", "--json").told["shell"] == "fish"
    assert call("nonsense").code == 2
    assert call("mcp", "--tools", "nonsense").code == 2
    assert call("--json", "-h").out == call().out
    assert call("recall", "x", "--bogus", "--json").told["error"]["kind"] == "bad_use"


def test_colour_can_be_forced_and_forbidden(call: Caller) -> None:
    """By a setting; --no-color counts before it."""
    call.remember("In colour")
    call.set("BETHINK_COLOR", "always")

    assert "\x1b[" in call("recall", "in colour").out
    assert "\x1b[" not in call("recall", "in colour", "--no-color").out
    call.set("BETHINK_COLOR", "never")
    assert "\x1b[" not in call("recall", "in colour").out


def test_completions(call: Caller) -> None:
    """A shell that asks gets commands, and does not get the overview."""
    call.set("_BETHINK_COMPLETE", "bash_complete")
    call.set("COMP_WORDS", "bethink rec")
    call.set("COMP_CWORD", "1")

    assert call().out.splitlines() == ["plain,recall", "plain,recall-file"]
