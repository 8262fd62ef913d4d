"""`files`, `edit` and `export --markdown` at the command line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from caller import Caller


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    monkeypatch.delenv("VISUAL", raising=False)
    return Caller(tmp_path, monkeypatch, capsys)


def editor(call: Caller, program: str) -> None:
    """A program that edits the file of its last argument."""
    script = call.folder / "editor.py"
    head = "import sys, pathlib\npath = pathlib.Path(sys.argv[-1])\ntext = path.read_text()\n"
    script.write_text(head + program)
    call.set("EDITOR", f"{sys.executable} {script}")


def test_files_tells_what_it_did(call: Caller) -> None:
    """Once in words and once for programs; without a folder the known ones again."""
    own = call.remember("Deploy on Tuesdays", "--topic", "Deployment")
    first = call("files", "notes")
    path = call.folder / "notes/topics/deployment.md"
    path.write_text(path.read_text().replace("Tuesdays", "Fridays") + "- Ask Ana\n")

    shown = call("files", "--dry-run")
    told = call("files", "notes", "--json").told
    again = call("files")

    assert "1 memory, 1 file written" in first.out
    assert f"would update {own}" in shown.out
    assert "would remember" in shown.out
    assert [line["id"] for line in told["updated"]] == [own]
    assert [line["text"] for line in told["remembered"]] == ["Ask Ana"]
    assert (again.code, "up to date" in again.out) == (0, True)


def test_what_is_left_alone_is_an_exit_code(call: Caller) -> None:
    """With the file and the reason; much that is gone needs --yes."""
    for number in range(30):
        call.remember(f"Fact number {number}", "--topic", "Tea")
    call("files", "notes")
    path = call.folder / "notes/topics/tea.md"
    whole = path.read_text()
    path.write_text(whole + "<<<<<<< HEAD\n>>>>>>> other\n")
    held = call("files", "notes")
    path.write_text("".join(whole.splitlines(keepends=True)[:5]))
    refused = call("files", "notes")
    done = call("files", "notes", "--yes")

    assert (held.code, "tea.md: left alone: a merge in it" in held.out) == (2, True)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert (done.code, done.out.count("forgot ")) == (0, 20)
    assert "and 9 more; --json lists them" in done.out


def test_a_folder_can_be_linked_and_left(call: Caller) -> None:
    """The vault is as it was, and detached it is not read again."""
    vault = call.folder / "vault"
    vault.mkdir()
    (vault / "Tea.md").write_text("Green tea at four.\n")

    linked = call("files", "vault", "--link")
    again = call("files")
    call("files", "vault", "--detach")
    left = call("files")

    assert "read as markdown: 1 new, 0 changed" in linked.out
    assert "read as markdown: 0 new, 0 changed" in again.out
    assert (left.code, "no folder yet" in left.err) == (1, True)
    assert [path.name for path in vault.iterdir()] == ["Tea.md"]


def test_watching_names_the_library_that_it_needs(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is written."""
    call.remember("Deploy on Tuesdays")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    refused = call("files", "notes", "--watch")

    assert refused.code == 2
    assert "watchfiles" in refused.err
    assert ".[files]" in refused.err
    assert not (call.folder / "notes").exists()


# A shell lets processes in the background ignore an interrupt, also those that they start.
INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("bethink", run_name="__main__")
"""


@pytest.mark.slow
def test_watching_goes_both_ways(call: Caller) -> None:
    """An edit is remembered, and what an agent stores is written; Ctrl-C ends it well."""
    pytest.importorskip("watchfiles")
    call.remember("Deploy on Tuesdays", "--topic", "Deployment")
    call("files", "notes")
    path = call.folder / "notes/topics/deployment.md"
    command = [sys.executable, "-c", INTERRUPTIBLE, "files", "notes", "--watch", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        watching.stdout.readline()
        with path.open("a") as file:
            file.write("- Ask Ana\n")
        try:
            wait_for(lambda: "Ask Ana ^" in path.read_text())
            call.remember("Told by an agent", "--topic", "Deployment")
            wait_for(lambda: "Told by an agent ^" in path.read_text())
        finally:
            watching.send_signal(signal.SIGINT)

    assert watching.returncode == 0


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_folder_that_is_gone_stops_no_other(call: Caller) -> None:
    """Without a name every known folder is run."""
    call.remember("Deploy on Tuesdays")
    call("files", "one")
    call("files", "two")
    (call.folder / "one").rename(call.folder / "moved")

    said = call("files")

    assert (said.code, "nothing was forgotten" in said.err) == (2, True)
    assert "two: 1 memory, up to date" in said.out


def test_an_empty_name_is_no_folder(call: Caller) -> None:
    """An unset variable of a script does not mean the current folder."""
    call.remember("Deploy on Tuesdays")

    said = call("files", "")

    assert (said.code, "is empty" in said.err) == (2, True)
    assert not list(call.folder.rglob("*.md"))


def test_export_as_markdown(call: Caller) -> None:
    """Into a new folder, which must be named."""
    call.remember("Deploy on Tuesdays", "--topic", "Deployment")

    done, again, unnamed = (
        call("export", "copy", "--markdown"),
        call("export", "copy", "--markdown"),
        call("export", "--markdown"),
    )

    assert "wrote 1 memory in 1 file" in done.err
    assert "Deploy on Tuesdays" in (call.folder / "copy/topics/deployment.md").read_text()
    assert (again.code, unnamed.code) == (2, 2)


def test_edit_changes_text_and_fields(call: Caller) -> None:
    """Of a long memory, too, in one new revision."""
    own = call.remember("First.\n\n" + "A long story of tea. " * 40, "--tag", "tea")
    editor(call, "path.write_text(text.replace('First', 'Last').replace('[tea]', '[pot, tea]'))\n")

    done = call("edit", own)
    item = call("show", own, "--json").told

    assert f"updated {own} revision 2" in done.out
    assert item["text"].startswith("Last.\n\nA long story")
    assert item["tags"] == ["pot", "tea"]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("", 0),
        ("path.write_text('')\n", 0),
        ("path.write_text(text.replace('Tuesdays', ' ').replace('Deploy on', ''))\n", 0),
        ("path.write_text('lost'); sys.exit(3)\n", 2),
    ],
    ids=["unchanged", "empty file", "empty text", "failed"],
)
def test_edit_changes_nothing(call: Caller, program: str, code: int) -> None:
    """Unchanged, empty, or with an editor that failed."""
    own = call.remember("Deploy on Tuesdays")
    editor(call, program)

    said = call("edit", own)

    assert (said.code, "nothing was changed" in said.err) == (code, True)
    assert call("show", own, "--json").told["rev"] == 1


def test_a_text_that_cannot_be_stored_is_not_lost(call: Caller) -> None:
    """The error names its file; the same where the memory changed meanwhile."""
    own = call.remember("Deploy on Tuesdays")
    editor(call, "path.write_text(text.replace('Tuesdays', 'x' * 70_000))\n")

    said = call("edit", own)
    kept = Path(said.err.partition("your text is in ")[2].strip())

    assert said.code == 2
    assert "x" * 70_000 in kept.read_text()
    kept.unlink()
    kept.parent.rmdir()


def test_no_editor_is_started_without_a_terminal(call: Caller) -> None:
    """Unless EDITOR names one: a script may."""
    own = call.remember("Deploy on Tuesdays")
    call.set("EDITOR", "")
    call.set("VISUAL", "")

    said = call("edit", own)

    assert (said.code, "an editor needs a terminal" in said.err) == (2, True)


def test_an_editor_that_is_missing_is_named(call: Caller) -> None:
    """And nothing is left behind."""
    own = call.remember("Deploy on Tuesdays")
    call.set("EDITOR", "no-such-editor --wait")

    said = call("edit", own)

    assert (said.code, "no-such-editor" in said.err) == (2, True)
