"""Output for people fits 80 columns, and "nothing there" has one exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click
import pytest
from caller import Caller, Said

from bethink.cli.commands import COMMANDS, bethink, root_context
from bethink.cli.output import display_width, one_line

WIDTH = 80
TEXT = "The deploy key of the staging cluster is in vault B, and Anna renews it every month"

# Every command that ends by itself, with long values; ID and OTHER are stored memories.
CALLS = """
remember nothing | list | list --kind nosuch | events | inbox | conflicts | skills | stale | stale --all | helped
threads | thread nosuch | insights | insights --build | entities | spaces | spaces find nosuch
stats | doctor | show ID | show ID --history | why ID | history ID | timeline ID | links ID
link ID nosuch OTHER | link ID supersedes OTHER | unlink ID nosuch OTHER | unlink ID related OTHER
boost ID | demote ID | update ID --importance 0.9 --pin | update ID --nosuch
recall deploy | recall deploy --explain | recall deploy --trace | recall violin | recall -k1 the
why-not ID violin | compare deploy | compare deploy --profile nosuch | recall deploy --topic x
maintain --dry-run | maintain | maintain --runs | reindex | version | lst | nosuch
recall-file src/app.py | note-edit src/app.py --intent faster | read-smart src/app.py
forget-file src/app.py | files notes --dry-run | files notes | files | edit nosuch
profiles | profiles show default | profiles show nosuch | config | config set nosuch 1
config get nosuch | config set embedder nosuch | models | trust | store | move nosuch | token
token create reader --rights nosuch | webhook | people | people add anna | people reads
people remove anna --erase | worker | install nosuch | install claude-code --dry-run | uninstall
uninstall nosuch | hook nosuch | as nosuch | eval --nosuch | tune | sync ftp://host/folder
sync room | sync | sync status | settle nosuch | import nosuch | export all.jsonl
import all.jsonl --dry-run | import all.jsonl --restore --dry-run | import notes.md --dry-run
import notes.md | upgrade | forget OTHER | forget OTHER --yes | restore OTHER | undo | undo nosuch
revoke --source user --dry-run | forget OTHER --erase --yes | completion nosuch | demo --nosuch
mcp --nosuch | serve --nosuch | ui --nosuch | events --limit 3 | --space nosuch list | undo --yes
""".replace("\n", " | ")


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys, WIDTH)


@pytest.fixture
def project(call: Caller) -> Caller:
    """A repository with code that changed after a memory was tied to it."""
    code = call.folder / "src" / "app.py"
    code.parent.mkdir()
    (call.folder / "room").mkdir()
    (call.folder / "notes.md").write_text(f"# Notes\n\n- {TEXT}\n- {TEXT} as well\n", "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=call.folder, check=True)
    code.write_text("def start():\n    return 1\n", "utf-8")
    call("remember", TEXT, "--at", "src/app.py::start", "--kind", "decision")
    code.write_text("def start():\n    return 2\n", "utf-8")
    call("remember", TEXT.replace("vault B", "vault C now"), "--topic", "keys")
    call("remember", "We deploy with Ansible")
    call("remember", "We no longer deploy with Ansible; since March we deploy with Terraform")
    return call


def too_wide(said: Said) -> list[str]:
    """The lines that are wider than they have to be: one word more than fits is allowed."""
    return [
        line
        for line in f"{said.out}\n{said.err}".splitlines()
        if display_width(line) > WIDTH
        and max(map(len, line.split())) < WIDTH - 20
        and line[:1] not in "+-"  # of a diff
        and not any(text in line for text in (TEXT[:40], "we deploy with Terraform"))
    ]


def test_every_command_fits_80_columns(project: Caller) -> None:
    """Piped as well; only a path, a URL or the text of a memory may need more."""
    newest, other, *_ = (item["id"] for item in project("list", "--json").told)
    calls = [line.split() for line in CALLS.split("|") if line.strip()]

    wide = {}
    for words in calls:
        said = project(*({"ID": newest, "OTHER": other}.get(word, word) for word in words))
        if lines := too_wide(said):
            wide[" ".join(words)] = lines

    assert not wide
    assert set(COMMANDS) - {word for words in calls for word in words} == set()


def test_every_help_page_fits_80_columns() -> None:
    """And the summary of a subcommand is never cut."""

    def pages(group: click.Group, ctx: click.Context) -> None:
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            assert command is not None
            inner = click.Context(command, parent=ctx, info_name=name, terminal_width=WIDTH)
            lines = command.get_help(inner).splitlines()
            wide = [line for line in lines if display_width(line) > WIDTH and "|" not in line]
            assert not wide, inner.command_path
            text = " ".join(" ".join(lines).split())
            if isinstance(command, click.Group):
                below = [command.get_command(inner, one) for one in command.list_commands(inner)]
                for one in filter(None, below):
                    assert " ".join((one.help or "").split()).partition(". ")[0].rstrip(".") in text
                pages(command, inner)

    pages(bethink, root_context(WIDTH))


def test_nothing_there_is_exit_code_1(call: Caller) -> None:
    """Whatever a command lists; an id that is not there is the same."""
    call.remember("Deploy on Tuesdays")
    item = call("list", "--json").told[0]["id"]
    lists = (
        *("conflicts", "inbox", "skills", "stale", "helped", "threads", "insights", "token"),
        *("webhook", "people", "trust", "maintain --runs", "list --kind x", "recall violin"),
        *("people reads", "entities --prefix x", "recall-file x", "events --after 99"),
        *("show nosuch", "undo nosuch", "why nosuch", f"links {item}", f"why {item}"),
    )

    for number, words in enumerate(lists):
        form = ("--json",) if number % 2 else ()
        assert (call(*words.split(), *form).code, words) == (1, words)
    assert [call(words).code for words in ("list", "events", "spaces")] == [0, 0, 0]


def test_messages_say_what_to_do(call: Caller) -> None:
    """What was given, in words of the caller, and no internal names or times."""
    call("remember", "Deploy on Tuesdays", "--at", "src/app.py::start")
    call("maintain")
    (call.folder / "room").mkdir()
    call("sync", "room")
    events = call("events").out

    for words, expected in {
        "remember ": "the text is empty",
        "undo nosuch": "there is no memory or run 'nosuch'",
        "--space other remember x": "stored",
        "sync ftp://host/x": "use a folder, ssh://HOST or https://HOST",
        "sync status": "classification at most 2, last on 20",
        "as": "missing command",
        "stale": "this folder is in no git repository",
        "remember y --at a.py::b": "this folder is in no git repository",
        "people": "everyone who can open it",
    }.items():
        assert expected in one_line("{1} {2}".format(*call(*words.split(" ")))), words
    assert "{" not in events
    assert "judged" not in events
    assert "T" not in call("sync", "status").out.partition("last on ")[2][:16]
