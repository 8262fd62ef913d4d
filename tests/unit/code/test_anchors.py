"""Memories tied to code: what is kept of it, and what a recall tells of it later."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_session import Transcript
from bethink import Memory
from bethink.access.policy import Principal, Right
from bethink.agents.capture import capture
from bethink.cli import main
from bethink.code.anchors import code_states, find_anchors, pin_anchors
from bethink.code.git import find_repository
from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.model.anchor import Anchor, parse_anchor
from bethink.server.tools.calls import for_caller
from rows import each_row

X = '''import os

LIMIT = 3


def parse_date(text):
    """Parse."""
    parts = text.split("-")
    year = int(parts[0])
    return year, int(parts[1])


class Writer:
    def format_date(self, when):
        out = [str(when.year)]
        out.append(str(when.month))
        out.append("x")
        return "-".join(out)
'''


class Repo:
    """A repository in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        own = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ("git", *own, *words), cwd=self.root, env=env, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "more")

    def state(self, *anchors: str, root: Path | None = None) -> list[str]:
        """What became of anchors, in words, with what changed."""
        pinned = [parse_anchor(one) for one in anchors]
        states = code_states(pinned, root or self.root, 20)
        return [f"{one.change} {one.changed} {one.now}".replace(" None", "") for one in states]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "repo")
    made.write("src/x.py", X)
    made.commit()
    return made


@pytest.fixture
def memory(repo: Repo, tmp_path: Path) -> Iterator[Memory]:
    settings = Settings(data_dir=tmp_path / "data", embedder="none", project=repo.root)
    with Memory.open("code", settings=settings) as opened:
        yield opened


def pin(repo: Repo, *names: str) -> tuple[str, ...]:
    return pin_anchors(names, repo.root)


PARSE, FORMAT = "src/x.py::parse_date", "src/x.py::Writer.format_date"


def swap(text: str) -> str:
    swapped = text.replace("def parse_date", "def \0").replace("def format_date", "def parse_date")
    return swapped.replace("def \0", "def format_date")


def split(repo: Repo) -> None:
    first, _, second = X.partition("class Writer")
    (repo.root / "src/x.py").unlink()
    repo.write("src/first.py", first)
    repo.write("src/second.py", f"import os\n\n\nclass Writer{second}")
    repo.commit()


def rebase(repo: Repo) -> None:
    """Another commit in place of the last, which is gone; and the file has another name."""
    repo.git("mv", "src/x.py", "src/y.py")
    repo.git("commit", "-q", "--amend", "-m", "again")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")


CASES: dict[str, tuple[Callable[[Repo], object], list[str]]] = {
    "nothing": (lambda _: None, ["same ", "same "]),
    "one line": (
        lambda repo: repo.write("src/x.py", X.replace("parts[0]", "parts[0] or 0")),
        ["changed 1 ", "same "],
    ),
    "a formatter": (
        lambda repo: repo.write(
            "src/x.py",
            X.replace("    ", "\t").replace('"', "'").replace("(parts[0])", "(\n parts[0],\n )"),
        ),
        ["same ", "same "],
    ),
    "names swapped": (
        lambda repo: repo.write("src/x.py", swap(X)),
        ["moved src/x.py::format_date", "moved src/x.py::Writer.parse_date"],
    ),
    "renamed symbol": (
        lambda repo: repo.write("src/x.py", X.replace("parse_date", "read_date")),
        ["moved src/x.py::read_date", "same "],
    ),
    "renamed file": (
        lambda repo: repo.git("mv", "src/x.py", "src/dates.py"),
        ["moved src/dates.py::parse_date", "moved src/dates.py::Writer.format_date"],
    ),
    "split file": (
        split, ["moved src/first.py::parse_date", "moved src/second.py::Writer.format_date"]
    ),
    "lost commit": (
        rebase, ["moved src/y.py::parse_date", "moved src/y.py::Writer.format_date"]
    ),
    "removed": (
        lambda repo: (repo.write("src/x.py", X.partition("class")[0]), repo.commit()),
        ["same ", "gone "],
    ),
}  # fmt: skip


@each_row("name", CASES)
def test_what_became_of_code(repo: Repo, name: str) -> None:
    """Told by content: only what changed of the symbol counts, wherever it is now."""
    repo.write("other.txt", "second")
    repo.commit()
    anchors = pin(repo, PARSE, FORMAT)
    change, expected = CASES[name]
    change(repo)

    assert repo.state(*anchors) == expected
    assert repo.state(*anchors) == expected  # as kept from the first time


def test_uncommitted_code_is_compared_without_a_count(repo: Repo) -> None:
    """Git never saw the content that the memory was made with."""
    repo.write("src/x.py", X.replace("parts[0]", "parts[2]"))
    anchors = pin(repo, PARSE)
    repo.commit()
    assert repo.state(*anchors) == ["same "]
    repo.write("src/x.py", X)
    assert repo.state(*anchors) == ["changed 1 "]
    repo.write("src/x.py", X.replace("parts[0]", "parts[3]"))
    again = pin(repo, PARSE)
    repo.write("src/x.py", X)
    assert repo.state(*again) == ["changed "]


def test_another_repository_is_unknown(repo: Repo, tmp_path: Path) -> None:
    """The same path elsewhere is other code; so is one outside of any repository."""
    anchors = pin(repo, PARSE, "src/x.py")
    other = Repo(tmp_path / "other")
    other.write("src/x.py", "def parse_date(): pass\n")
    other.commit()
    bare = tmp_path / "bare"
    bare.mkdir()

    for root in (other.root, bare):
        assert repo.state(*anchors, root=root) == ["unknown ", "unknown "]
    assert pin_anchors([PARSE], bare) == (PARSE,)
    repo.git("clone", "-q", "--depth=1", f"file://{repo.root}", str(tmp_path / "shallow"))
    assert parse_anchor(pin_anchors([PARSE], tmp_path / "shallow")[0]).repo == ""


@each_row("name", ["src/y.py", "src/x.py::missing", "../x.py", "/etc/passwd", "", ".git/config"])
def test_what_is_not_there_is_refused(memory: Memory, name: str) -> None:
    """By a message that names what is."""
    with pytest.raises(Refused):
        memory.remember("It is so", anchors=[name])
    assert memory.browse() == []


def test_anchors_are_found_in_a_text(repo: Repo) -> None:
    """Tracked files and the symbols that only one of them defines, three at most."""
    repo.write("src/z.py", "def helper_one():\n    pass\n\n\ndef parse_date():\n    pass\n")
    repo.write("new.py", "def helper_one():\n    pass\n")
    repo.git("add", "src/z.py")
    edited = ["src/x.py", "src/z.py"]

    def found(text: str, *files: str) -> list[str]:
        anchors = find_anchors(text, find_repository(repo.root / "src", 20), files)
        assert all(parse_anchor(one).how == "found" for one in anchors)
        return [parse_anchor(one).name for one in anchors]

    assert found("see src/x.py, new.py and nowhere.py") == ["src/x.py"]
    assert found("`format_date` in x.py is slow") == [FORMAT]
    assert found("helper_one and parse_date are slow", *edited) == ["src/z.py::helper_one"]
    assert found("helper_one is slow") == []
    assert found("Nothing of code in it", *edited) == []
    assert len(found("z.py helper_one `LIMIT` format_date Writer()", *edited)) == 3


def test_a_recall_tells_and_weighs(memory: Memory, repo: Repo) -> None:
    """By a reason that can be replayed; decisions lose nothing, and no moment of the past."""
    note = memory.remember("Months without zero fail in the parser", anchors=[PARSE])
    decision = memory.remember(
        "We decided the parser takes months first", kind="decision", anchors=[PARSE]
    )
    memory.remember("The parser of months is old")
    whole = memory.remember("Look into src/x.py for the parser of months")
    before = {hit.item.id: hit for hit in memory.recall("parser months", min_relevance=0).hits}
    repo.write("src/x.py", X.replace("parts[0]", "parts[0] or 0"))

    after = {hit.item.id: hit for hit in memory.recall("parser months", min_relevance=0).hits}

    assert not any(hit.code_note for hit in before.values())
    day = f"{memory.now:%Y-%m-%d}"
    why = f"`parse_date` in src/x.py changed since {day}: 1 of 5 lines"
    assert {key: hit.code_note for key, hit in after.items() if hit.code_note} == {
        note.id: why,
        decision.id: why,
        whole.id: f"src/x.py changed since {day}: 1 of 13 lines",
    }
    reasons = {key: hit.reason("anchor") for key, hit in after.items()}
    factors = {key: (one.op, one.value) for key, one in reasons.items() if one}
    assert factors == {
        note.id: ("times", 0.85), decision.id: ("seen", 1.0), whole.id: ("seen", 1.0)
    }  # fmt: skip
    past = memory.recall("parser months", as_of=memory.now, min_relevance=0)
    outside = memory.using(settings=Settings()).recall("parser months", min_relevance=0)
    assert not any(hit.code_note for answer in (past, outside) for hit in answer.hits)


def test_stale_lists_what_changed(memory: Memory, repo: Repo) -> None:
    """And nothing once the memory is tied to the code of now."""
    item = memory.remember("The parser fails on words", anchors=[PARSE])
    memory.remember("The writer is slow", anchors=[FORMAT])
    assert memory.stale() == []
    repo.write("src/x.py", X.replace("parts[0]", "parts[0] or 0"))

    assert [(one.item.id, one.states[0].change) for one in memory.stale()] == [(item.id, "changed")]
    assert memory.stale(at="Writer") == []
    memory.update(item.id, anchors=["src/x.py::parse_date"])
    assert memory.stale() == []
    assert len(memory.history(item.id)) == 2
    memory.update(item.id, text="The parser in src/x.py fails on words")
    assert [parse_anchor(one).name for one in memory.get(item.id).anchors] == [PARSE]


def test_a_file_brings_up_what_is_tied_to_it(memory: Memory, repo: Repo) -> None:
    """That of the symbol first; what is above the ceiling or forgotten never."""
    memory.remember("The file is old", anchors=["src/x.py"])
    memory.remember("The writer is slow", anchors=[FORMAT])
    memory.remember("Secret of the writer", anchors=[FORMAT], classification=3)
    gone = memory.remember("The writer was slow once", anchors=[FORMAT], force=True)
    memory.forget(gone.id)
    place = repo.root / "src" / "x.py"

    texts = [one.text for one in memory.anchored(place, symbol="format_date")]
    told = memory.file_memories("src/x.py::parse_date")

    assert texts == ["The writer is slow", "The file is old"]
    assert [(one.item.text, one.code) for one in told] == [
        ("The writer is slow", ""), ("The file is old", "")
    ]  # fmt: skip
    assert memory.below(0).anchored("x.py") == []
    assert memory.below(0).stale(changes=("same",)) == []


def test_a_renamed_file_brings_up_what_was_tied_to_its_old_name(memory: Memory, repo: Repo) -> None:
    """So does the file that a function went to, by both names; a file of the old name is no new."""
    parser = memory.remember("The parser fails on words", anchors=[PARSE])
    memory.remember("The writer is slow", anchors=[FORMAT])
    split(repo)

    for path in ("src/first.py", repo.root / "src/first.py", "src/x.py"):
        assert parser.id in {one.id for one in memory.anchored(path)}
    assert [one.item.id for one in memory.file_memories("src/first.py")] == [parser.id]
    stale = memory.stale(at="src/first.py", changes=("moved",))
    assert [(one.item.id, one.code) for one in stale] == [
        (parser.id, "`parse_date` in src/x.py is now src/first.py::parse_date")
    ]
    assert memory.using(settings=Settings()).anchored("src/first.py") == []


def test_a_file_has_no_others_read_for_what_went_to_it(
    memory: Memory, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook asks at every edit: hundreds of files that it is not about are left alone."""
    for name in ("other", "gone"):
        repo.write(f"src/{name}.py", f"def {name}_thing():\n    return 1\n")
    repo.commit()
    parser = memory.remember("The parser fails on words", anchors=[PARSE])
    memory.remember("The other thing is slow", anchors=["src/other.py::other_thing"])
    gone = memory.remember("The gone thing is slow", anchors=["src/gone.py::gone_thing"])
    split(repo)
    repo.git("mv", "src/gone.py", "src/went.py")
    repo.commit()
    opened, open_file = set[str](), os.open

    def noting(path: str, *flags: int, dir_fd: int | None = None) -> int:
        opened.add(Path(path).name)
        return open_file(path, *flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", noting)

    assert [one.id for one in memory.anchored("src/first.py")] == [parser.id]
    assert [one.id for one in memory.anchored("src/went.py")] == [gone.id]
    assert "first.py" in opened
    assert "other.py" not in opened


def test_a_file_outside_of_git_brings_up_what_names_it(memory: Memory) -> None:
    """An agent that asks before it changes a file is not told that nothing is known."""
    rule = memory.remember("Never edit build/legacy_parser.c, the certification covers it")
    memory.remember("Never edit build/legacy_parser.c either", classification=3)
    memory.remember("I looked into build/legacy_parser.c", level="raw", session="s1")

    for path in ("build/legacy_parser.c", "legacy_parser", "Legacy_Parser.c"):
        assert [one.item.id for one in memory.file_memories(path)] == [rule.id]
    assert memory.file_memories("build/other.c") == []


def test_of_very_many_files_each_brings_up_what_names_it(memory: Memory) -> None:
    """More than are listed at once."""
    texts = [f"Never edit build/part_{number}.c by hand" for number in range(1_010)]
    memory.remember_many(texts[:500])
    memory.remember_many(texts[500:])

    for number in (0, 99, 499, 500, 999, 1_009):  # the first and last, by number and by name
        (found,) = memory.file_memories(f"build/Part_{number}.c")
        assert found.item.text == texts[number]


def test_anchors_go_with_the_memory(memory: Memory) -> None:
    """Out by an export and in again; nothing is left of an erased one."""
    item = memory.remember("The writer is slow", anchors=[FORMAT]).id
    lines = list(memory.export())
    with Memory.open(":memory:", embedder="none") as other:
        other.import_(lines, restore=True)
        assert other.get(item).anchors == memory.get(item).anchors != ()
        assert other.get(item).content_hash == memory.get(item).content_hash
    memory.forget(item, erase=True)
    path = next(memory.settings.data_dir.rglob("code.db"))
    assert b"format_date" not in path.read_bytes()
    assert memory.browse(at="x.py", include_superseded=True) == []


def test_a_hostile_repository_runs_nothing(repo: Repo, tmp_path: Path) -> None:
    """No hook, monitor, filter, helper or alias of its configuration; no file outside of it."""
    anchors = pin(repo, PARSE, "src/x.py")
    proof = tmp_path / "proof"
    run = f"touch {proof}; false"
    for name in (
        *("core.fsmonitor", "core.sshCommand", "core.pager", "diff.external", "core.editor"),
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"),
        *("diff.evil.command", "credential.helper", "core.askPass", "core.alternateRefsCommand"),
        *("alias.grep", "alias.ls-files", "alias.diff-index", "alias.cat-file"),
    ):
        repo.git("config", name, f"!{run}" if "alias" in name else run)
    repo.git("config", "remote.origin.url", f"ext::sh -c touch% {proof}")
    repo.git("config", "remote.origin.promisor", "true")
    repo.git("config", "core.hooksPath", str(repo.root / "hooks"))
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        repo.write(f"hooks/{hook}", f"#!/bin/sh\n{run}\n")
        (repo.root / "hooks" / hook).chmod(0o755)
    repo.write(".gitattributes", "* filter=evil diff=evil\n")
    (repo.root / "src/x.py").unlink()
    (repo.root / "src/x.py").symlink_to("/etc/passwd")
    lost = parse_anchor(anchors[1])._replace(blob="12" * 20, commit="34" * 20)

    assert repo.state(*anchors, lost.text) == ["gone "] * 3
    assert find_anchors("src/x.py parse_date", find_repository(repo.root, 20)) == ()
    with pytest.raises(Refused):
        pin(repo, "src/x.py")
    assert not proof.exists()


def test_a_repository_that_hangs_is_unknown(repo: Repo, tmp_path: Path) -> None:
    """What git does not answer in time is not told."""
    anchors = [parse_anchor(one) for one in pin(repo, PARSE)]
    os.mkfifo(tmp_path / "pipe")
    repo.git("config", "include.path", str(tmp_path / "pipe"))
    repo.write("src/x.py", "")

    assert [one.change for one in code_states(anchors, repo.root, 0.2)] == ["unknown"]


def test_the_form_of_an_anchor_is_read_back() -> None:
    """Whatever it holds; and nothing that is no place in a repository."""
    full = Anchor("a b/ü.cc", "A::b", "found", "1f" * 20, "2e" * 20, "3d" * 32, "4c" * 8, 12)
    assert parse_anchor(full.text) == full
    assert parse_anchor("./src\\x.py::f") == Anchor("src/x.py", "f")
    for text in ("", "a/../b", "/a", "c:/a", "a//b", "a@@given", "a\nb", "a@@other:::::1"):
        with pytest.raises(Refused, match="is no path::symbol"):
            parse_anchor(text)


def test_a_captured_turn_is_tied_to_what_it_edited(memory: Memory, repo: Repo) -> None:
    """By the names in its words; the turn that names nothing is not."""
    said = Transcript(repo.root.parent / "s1.jsonl", "s1", cwd=repo.root)
    said.user("Make the dates robust please")
    said.tool("Edit", {"file_path": str(repo.root / "src/x.py"), "old_string": "a"})
    said.agent("I made `parse_date` robust against words.")

    capture(memory, said.path, session="s1", host="claude-code")

    found = {item.speaker: [parse_anchor(a).name for a in item.anchors] for item in memory.browse()}
    assert found == {"user": [], "assistant": [PARSE]}
    repo.write("src/x.py", "")
    assert memory.stale() == []  # turns are of their time
    assert [one.states[0].change for one in memory.stale(levels=("raw",))] == ["gone"]


def test_code_is_not_looked_at_for_who_may_not_read_it(memory: Memory) -> None:
    """A caller of a server who stores with an anchor learns nothing of the server's files."""
    stranger = for_caller(memory, Principal("remote", Right.WRITE))
    known = for_caller(memory, Principal("admin", Right.ADMIN))

    item = stranger.remember("It is so", anchors=["src/nothing.py::missing"])
    other = stranger.remember("See parse_date in src/x.py")

    assert memory.get(item.id).anchors == ("src/nothing.py::missing",)
    assert memory.get(other.id).anchors == ()
    assert stranger.stale(changes=("gone", "same")) == []
    with pytest.raises(Refused):
        known.remember("It is so again", anchors=["src/nothing.py::missing"])


def test_the_commands_tell_the_same(
    memory: Memory, repo: Repo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`remember --at`, `stale`, `list --at`, `recall-file`; nothing found is exit code 1."""
    monkeypatch.chdir(repo.root / "src")
    monkeypatch.setenv("BETHINK_DATA_DIR", str(memory.settings.data_dir))
    monkeypatch.setenv("BETHINK_EMBEDDER", "none")
    monkeypatch.setenv("BETHINK_WORKER", "off")

    def call(*words: str) -> tuple[int, str]:
        code = main(["--space", "code", *words])
        return code, " ".join(capsys.readouterr().out.split())

    assert call("stale")[0] == 1
    assert call("remember", "Never touch Writer.format_date in src/x.py")[0] == 0
    assert "Never touch" in call("recall-file", "src/x.py::format_date")[1]
    assert call("remember", "The parser fails on words", "--at", "x.py::parse_date")[0] == 0
    assert call("remember", "It is so", "--at", "x.py::nothing")[0] == 2
    assert call("stale")[0] == 1
    repo.write("src/x.py", X.replace("parts[0]", "parts[0] or 0"))
    code, out = call("stale")
    assert (code, "1 of 5 lines" in out, "The parser fails" in out) == (0, True, True)
    told = json.loads(call("stale", "--json")[1])["memories"][0]["code"][0]
    assert (told["at"], told["change"], told["changed"], told["of"]) == (PARSE, "changed", 1, 5)
    assert "The parser fails" in call("list", "--at", "::parse_date")[1]
    assert "1 of 5 lines" in call("recall-file", "x.py::parse_date")[1]
    assert "1 of 5 lines" in call("recall", "where does the parser fail", "--min-relevance", "0")[1]
