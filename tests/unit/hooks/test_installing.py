"""Installing into hosts, and taking it back."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bethink.cli import main
from bethink.errors import how_to_update, install_command
from bethink.hooks.install import start
from bethink.hooks.install.hosts import HOSTS
from bethink.version import __version__
from rows import each_row

Call = Callable[..., int]
PLUGIN = Path(".claude/skills/bethink")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of one's own, and in it a project to stand in; every server starts."""
    monkeypatch.setattr(start, "try_server", lambda command: 7)
    folder = tmp_path / "home"
    (folder / "project" / ".git").mkdir(parents=True)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "BETHINK_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder / "project")
    return folder


def call(*words: str) -> int:
    return main(words)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: files with what they hold, folders, links."""
    found: dict[str, bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.fsencode(path.readlink())
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def placed(home: Path, host: str) -> Path:
    return (
        home
        / {
            "claude-code": PLUGIN / ".mcp.json",
            "cursor": Path(".cursor/mcp.json"),
            "claude-desktop": Path(".config/Claude/claude_desktop_config.json"),
            "codex": Path(".codex/config.toml"),
            "gemini": Path(".gemini/extensions/bethink/gemini-extension.json"),
            "vscode": Path(".config/Code/User/mcp.json"),
            "opencode": Path(".config/opencode/opencode.json"),
            "zed": Path(".config/zed/settings.json"),
        }[host]
    )


@each_row("host", HOSTS)
def test_there_and_back_leaves_nothing(home: Path, host: str) -> None:
    """What install writes into an empty home, uninstall takes away, folders and all."""
    before = tree(home)

    assert call("install", host, "--yes") == 0
    assert placed(home, host).is_file()
    assert call("uninstall", host, "--yes") == 0

    after = tree(home)
    for name in (".config", ".config/bethink", ".config/bethink/installed"):
        after.pop(name, None)  # where our own notes were
    assert after == before


@each_row("host", HOSTS)
def test_a_dry_run_and_an_unanswered_question_write_nothing(home: Path, host: str) -> None:
    """Without --yes and with nobody to ask, it only shows what it would do."""
    before = tree(home)

    assert call("install", host, "--dry-run", "--yes") == 0
    assert call("install", host) == 0
    assert call("install", host, "--json") == 0
    assert call("uninstall", host) == 1

    assert tree(home) == before


@each_row("host", HOSTS)
def test_a_second_time_changes_nothing(
    home: Path, host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Installing what is installed writes no byte."""
    call("install", host, "--yes")
    before = tree(home)
    capsys.readouterr()

    assert call("install", host, "--yes") == 0

    assert "nothing to change" in capsys.readouterr().out
    assert tree(home) == before


@each_row("host", [name for name, host in HOSTS.items() if host.project])
def test_a_project_gets_its_own(home: Path, host: str) -> None:
    """With --project everything is written below the project, and taken back from there."""
    project = home / "project"
    (project / "deep" / "inside").mkdir(parents=True, exist_ok=True)
    os.chdir(project / "deep" / "inside")
    before = tree(home)

    assert call("install", host, "--project", "--yes") == 0
    new = [name for name in tree(home) if name not in before and not name.startswith(".config")]
    assert new
    assert all(name.startswith("project/") for name in new)
    assert call("uninstall", host, "--project", "--yes") == 0

    after = {name: held for name, held in tree(home).items() if not name.startswith(".config")}
    assert after == before


def test_the_desktop_app_has_no_projects(home: Path) -> None:
    """What a host does not have is bad use."""
    assert call("install", "claude-desktop", "--project", "--yes") == 2
    assert call("install", "emacs") == 2


def test_the_diff_is_shown_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every line that would be written is shown, with the file it goes into."""
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_text('{\n  "mcpServers": {}\n}\n')

    call("install", "cursor")
    shown = capsys.readouterr()

    assert f"+++ {config}" in shown.out
    assert '+    "bethink": {' in shown.out
    assert "nothing was written; use --yes to apply" in shown.err


def test_hooks_are_programs_with_arguments(home: Path) -> None:
    """The plugin calls Bethink by its whole path, without a shell, with limits in seconds."""
    call("install", "claude-code", "--yes")
    hooks = json.loads((home / PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    manifest = json.loads((home / PLUGIN / ".claude-plugin" / "plugin.json").read_text())

    assert list(hooks) == [
        "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
        "Stop", "PreCompact", "SessionEnd",
    ]  # fmt: skip
    for groups in hooks.values():
        (hook,) = groups[0]["hooks"]
        assert hook["type"] == "command"
        assert Path(hook["command"]).is_absolute()
        assert hook["args"][-2] == "hook"
        assert 1 <= hook["timeout"] <= 30
    assert hooks["PostToolUse"][0]["matcher"] == "Bash|Edit|MultiEdit|NotebookEdit|Write"
    assert manifest["name"] == "bethink"
    assert manifest["version"] == __version__


@each_row(
    ("host", "keys", "entry"),
    [
        ("codex", ("mcp_servers",), {"command": "b", "args": ["mcp"]}),
        ("vscode", ("servers",), {
            "type": "stdio", "command": "b", "args": ["mcp"],
            "env": {"CLAUDE_PROJECT_DIR": "${workspaceFolder}"},
        }),
        ("opencode", ("mcp",), {"type": "local", "command": ["b", "mcp"], "enabled": True}),
        ("cursor", ("mcpServers",), {
            "command": "b", "args": ["mcp"], "env": {"CLAUDE_PROJECT_DIR": "${workspaceFolder}"},
        }),
        ("zed", ("context_servers",), {"command": "b", "args": ["mcp"]}),
        ("claude-desktop", ("mcpServers",), {"command": "b", "args": ["mcp", "--space", "desktop"]}),
    ],
)  # fmt: skip
def test_each_host_gets_its_form(
    home: Path, host: str, keys: tuple[str, ...], entry: dict[str, object]
) -> None:
    """As the host's own documentation has it."""
    call("install", host, "--yes", "--command", "b")
    text = placed(home, host).read_text()
    held = tomllib.loads(text) if host == "codex" else json.loads(text)

    assert held[keys[0]] == {"bethink": entry}


def test_the_extension_of_gemini_reads_only(home: Path) -> None:
    """Its hooks are lines of a shell with limits in milliseconds; a project has an entry."""
    call("install", "gemini", "--yes", "--command", "'/a b/bethink'")
    call("install", "gemini", "--yes", "--project", "--command", "b")
    folder = placed(home, "gemini").parent
    manifest = json.loads(placed(home, "gemini").read_text())
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    project = json.loads((home / "project/.gemini/settings.json").read_text())

    assert manifest["mcpServers"] == {"bethink": {"command": "/a b/bethink", "args": ["mcp"]}}
    assert (manifest["name"], manifest["version"]) == ("bethink", __version__)
    assert {name: groups[0]["hooks"][0]["command"] for name, groups in hooks.items()} == {
        "SessionStart": '"/a b/bethink" hook session-start',
        "BeforeAgent": '"/a b/bethink" hook user-prompt-submit',
    }
    assert hooks["BeforeAgent"][0]["hooks"][0]["timeout"] == 10_000
    assert (folder / "skills" / "bethink" / "SKILL.md").is_file()
    assert project == {"mcpServers": {"bethink": {"command": "b", "args": ["mcp"]}}}


@each_row("host", [name for name, host in HOSTS.items() if host.comments])
def test_comments_survive(home: Path, host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a host reads comments they stay, also after the user's changes; uninstall is exact."""
    key = HOSTS[host].servers
    config = home / "project" / HOSTS[host].project
    config.parent.mkdir(exist_ok=True)
    before = f"""// of the project
{{
  "{key}": {{
    "other": {{"a": "http://b//c"}}, // first
    /* last */
    "last": [1, 2,], // of all
  }},
}}
"""
    config.write_text(before)

    assert call("install", host, "--project", "--yes", "--command", "b") == 0
    added = config.read_text()
    assert [line for line in added.splitlines() if line in before.splitlines()] == (
        before.splitlines()
    )
    assert call("uninstall", host, "--project", "--yes") == 0
    assert config.read_text() == before
    call("install", host, "--project", "--yes", "--command", "b")
    config.write_text(config.read_text() + "// changed\n")
    assert call("uninstall", host, "--project", "--yes") == 0
    left = config.read_text()
    for comment in ("// of the project", "// first", "/* last */", "// of all", "// changed"):
        assert comment in left
    assert "bethink" not in left


def test_a_file_of_comments_is_used_where_there_is_one(home: Path) -> None:
    """Of opencode.json and opencode.jsonc the one that is there."""
    config = home / "project" / "opencode.jsonc"
    config.write_text("{} // mine\n")

    assert call("install", "opencode", "--project", "--yes") == 0
    assert "bethink" in config.read_text()
    assert call("uninstall", "opencode", "--project", "--yes") == 0
    assert config.read_text() == "{} // mine\n"


def test_a_server_that_cannot_start_is_not_installed(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is started once, as the host would; nothing is written where that fails."""
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "project")
    before = tree(home)

    for command in ("/nowhere/bethink", "python3 -c 'raise SystemExit(\"no luck\")'"):
        assert call("install", "cursor", "--yes", "--command", command) == 2
    told = capsys.readouterr().err
    assert "the server does not start: no such command" in told
    assert "the server does not start: no luck" in told
    assert tree(home) == before
    assert call("install", "cursor", "--yes", "--command", "/nowhere/bethink", "--no-check") == 0
    assert start.try_server((sys.executable, "-m", "bethink", "mcp", "--tools", "undo")) == 8


def test_an_environment_of_uvx_is_called_by_uvx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder may be gone tomorrow, so the host starts the same version the same way."""
    monkeypatch.setattr(sys, "prefix", "/home/me/.cache/uv/archive-v0/Xy12")
    monkeypatch.setattr(start, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(start, "requirement", lambda: "bethink==1.2.3")

    assert start.own_command() == ("/bin/uvx", "--from", "bethink==1.2.3", "bethink")


def test_options_reach_what_is_written(home: Path) -> None:
    """--tools, --command and --no-capture are in what is written."""
    call("install", "claude-code", "--yes", "--no-capture", "--tools", "undo",
         "--command", "uvx bethink")  # fmt: skip
    server = json.loads((home / PLUGIN / ".mcp.json").read_text())["mcpServers"]["bethink"]
    hooks = json.loads((home / PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]

    assert server == {"command": "uvx", "args": ["bethink", "mcp", "--tools", "undo"]}
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUseFailure"]
    assert call("install", "cursor", "--command", " ") == 2


def test_a_space_can_be_named_where_there_is_no_project(home: Path) -> None:
    """--space goes to the server; a plugin takes the project's memory and says so."""
    assert call("install", "cursor", "--yes", "--space", "work") == 0
    server = json.loads(placed(home, "cursor").read_text())["mcpServers"]["bethink"]
    assert server["args"] == ["mcp", "--space", "work"]
    assert "env" not in server
    assert call("install", "claude-desktop", "--yes", "--space", "work") == 0
    held = json.loads(placed(home, "claude-desktop").read_text())["mcpServers"]["bethink"]
    assert held["args"] == ["mcp", "--space", "work"]
    assert call("install", "claude-code", "--yes", "--space", "work") == 2


def test_tools_that_are_not_there_are_refused(home: Path) -> None:
    """A server that could not start is not installed."""
    assert call("install", "cursor", "--yes", "--tools", "teleport") == 2
    assert call("install", "cursor", "--yes", "--tools", "all") == 0


def test_an_older_installation_is_brought_up_to_date(home: Path) -> None:
    """Files as they were written by another version are replaced; none is left behind."""
    call("install", "claude-code", "--yes", "--command", "/old/bethink")
    call("install", "codex", "--yes", "--command", "/old/bethink")

    assert call("install", "claude-code", "--yes") == 0
    assert call("install", "codex", "--yes") == 0

    assert b"/old/" not in b"".join(held or b"" for held in tree(home).values())
    call("uninstall", "codex", "--yes")
    assert not (home / ".codex").exists()


def test_a_file_the_user_changed_is_kept(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Changed since, a file survives upgrade and removal, unless that is forced."""
    call("install", "claude-code", "--yes", "--command", "/old/bethink")
    skill = home / PLUGIN / "skills" / "bethink" / "SKILL.md"
    hooks = home / PLUGIN / "hooks" / "hooks.json"
    hooks.write_text("{}")
    skill.write_text("mine")
    (home / PLUGIN / "notes.txt").write_text("also mine")
    capsys.readouterr()

    assert call("install", "claude-code", "--yes") == 0
    assert (hooks.read_text(), skill.read_text()) == ("{}", "mine")
    assert "changed since it was installed" in capsys.readouterr().out
    assert call("uninstall", "claude-code", "--yes") == 0
    assert {path.name for path in (home / PLUGIN).rglob("*") if path.is_file()} == {
        "hooks.json", "SKILL.md", "notes.txt"
    }  # fmt: skip
    assert call("uninstall", "claude-code", "--yes", "--force") == 0
    assert [path.name for path in (home / PLUGIN).rglob("*")] == ["notes.txt"]


def test_another_plugin_of_that_name_is_not_touched(home: Path) -> None:
    """A file that is there already and not ours stays, unless it is forced."""
    file = home / PLUGIN / "README.md"
    file.parent.mkdir(parents=True)
    file.write_text("somebody's")

    call("install", "claude-code", "--yes")
    assert file.read_text() == "somebody's"
    call("uninstall", "claude-code", "--yes")
    assert file.read_text() == "somebody's"


def test_an_entry_of_the_users_own_is_not_touched(home: Path) -> None:
    """A server called bethink that somebody else set up stays; forced, it can come back."""
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_text('{"mcpServers": {"bethink": {"command": "mine"}}}')
    before = config.read_bytes()

    assert call("install", "cursor", "--yes") == 2
    assert config.read_bytes() == before
    assert call("install", "cursor", "--yes", "--force") == 0
    assert b"mine" not in config.read_bytes()
    assert call("uninstall", "cursor", "--yes") == 0
    assert config.read_bytes() == before


def test_only_our_entry_goes_where_the_file_has_changed(home: Path) -> None:
    """What the user added meanwhile stays, whatever was made for us goes."""
    call("install", "cursor", "--yes")
    call("install", "codex", "--yes")
    config, settings = home / ".cursor" / "mcp.json", home / ".codex" / "config.toml"
    held = json.loads(config.read_text())
    held["mcpServers"]["other"] = {"command": "x"}
    config.write_text(json.dumps(held, indent=4))
    settings.write_text('model = "m"\n\n' + settings.read_text() + "\n[profiles.p]\na = 1\n")

    assert call("uninstall", "cursor", "--yes") == 0
    assert call("uninstall", "codex", "--yes") == 0

    assert json.loads(config.read_text()) == {"mcpServers": {"other": {"command": "x"}}}
    assert tomllib.loads(settings.read_text()) == {"model": "m", "profiles": {"p": {"a": 1}}}


def test_an_upgrade_after_the_users_changes_can_still_be_taken_back(home: Path) -> None:
    """Installed, changed by the user, upgraded, removed: what is left is the user's."""
    config = home / ".cursor" / "mcp.json"
    call("install", "cursor", "--yes", "--command", "/old/bethink")
    held = json.loads(config.read_text())
    config.write_text(json.dumps({"first": 1, **held}))

    assert call("install", "cursor", "--yes") == 0
    assert call("uninstall", "cursor", "--yes") == 0

    assert json.loads(config.read_text()) == {"first": 1}


def test_an_entry_that_was_changed_since_is_kept(home: Path) -> None:
    """Our entry with the user's changes in it is the user's."""
    config = home / ".cursor" / "mcp.json"
    call("install", "cursor", "--yes")
    config.write_text(config.read_text().replace('"mcp"', '"mcp", "--space", "mine"'))
    changed = config.read_bytes()

    assert call("uninstall", "cursor", "--yes") == 0
    assert config.read_bytes() == changed
    assert call("uninstall", "cursor", "--yes", "--force") == 0
    assert not config.exists() or b"bethink" not in config.read_bytes()


@each_row("held", ["{", '{"a": 1} // x', "[]", "\xff\xfe", '{"mcpServers": 3}'])
def test_a_broken_file_is_refused_and_left(
    home: Path, held: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read as JSON is not touched, and the error names the file."""
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_bytes(held.encode("latin-1"))

    assert call("install", "cursor", "--yes", "--force") == 2

    assert config.read_bytes() == held.encode("latin-1")
    assert str(config) in capsys.readouterr().err
    assert not list(home.rglob("installed/*"))


def test_no_link_leads_out(home: Path, tmp_path: Path) -> None:
    """A link that leaves the home or the project is refused; one inside stays a link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (home / "project" / ".claude").symlink_to(outside)
    (home / ".codex").symlink_to(outside)
    (home / ".cursor").mkdir()
    (home / "dotfiles.json").write_text("{}\n")
    (home / ".cursor" / "mcp.json").symlink_to(home / "dotfiles.json")

    assert call("install", "claude-code", "--project", "--yes") == 2
    assert call("install", "codex", "--yes") == 2
    assert not any(outside.iterdir())
    assert call("install", "cursor", "--yes") == 0
    assert (home / ".cursor" / "mcp.json").is_symlink()
    assert "bethink" in (home / "dotfiles.json").read_text()
    call("uninstall", "cursor", "--yes")
    assert (home / "dotfiles.json").read_text() == "{}\n"


def test_a_link_made_later_leads_nowhere_either(home: Path, tmp_path: Path) -> None:
    """Between install and uninstall a folder may become a link; then nothing is removed."""
    call("install", "claude-code", "--project", "--yes")
    folder = home / "project" / ".claude"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    before = tree(tmp_path / "moved")

    assert call("uninstall", "claude-code", "--project", "--yes") == 2

    assert tree(tmp_path / "moved") == before


def test_permissions_stay_and_new_files_are_private(home: Path) -> None:
    """A file keeps its mode; a new list of servers, and our manifest, are the user's alone."""
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_text("{}")
    config.chmod(0o640)
    call("install", "cursor", "--yes")
    call("install", "codex", "--yes")

    assert config.stat().st_mode & 0o777 == 0o640
    assert (home / ".codex" / "config.toml").stat().st_mode & 0o777 == 0o600
    for manifest in home.rglob("installed/*.json"):
        assert manifest.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root writes for others"
)
def test_a_file_stays_its_owners(home: Path) -> None:
    """Whoever installs as root does not lock the user out of their own settings."""
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_text("{}")
    os.chown(config, 1234, 2345)

    call("install", "cursor", "--yes")

    found = config.stat()
    assert "bethink" in config.read_text()
    assert (found.st_uid, found.st_gid) == (1234, 2345)


def test_a_damaged_manifest_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without knowing what was written, nothing is removed."""
    call("install", "cursor", "--yes")
    (manifest,) = home.rglob("installed/*.json")
    for held in ("{", "{}", '{"format": 99, "files": []}'):
        manifest.write_text(held)

        assert call("uninstall", "cursor", "--yes") == 2
        assert (home / ".cursor" / "mcp.json").exists()


def test_it_answers_programs_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json one document says what was or would be done."""
    call("install", "cursor", "--json", "--yes")
    told = json.loads(capsys.readouterr().out)

    assert told["done"] is True
    assert told["host"] == "cursor"
    assert [change["action"] for change in told["changes"]] == ["create"]
    assert told["kept"] == []
    call("uninstall", "cursor", "--json")
    assert json.loads(capsys.readouterr().out)["done"] is False


def test_the_homes_that_hosts_let_one_choose_are_heeded(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLAUDE_CONFIG_DIR and CODEX_HOME name other places, outside of the home as well."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "cc"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "cx"))

    assert call("install", "claude-code", "--yes") == 0
    assert call("install", "codex", "--yes") == 0

    assert (tmp_path / "cc" / "skills" / "bethink" / ".mcp.json").is_file()
    assert (tmp_path / "cx" / "config.toml").is_file()


def test_remedies_name_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout, a file or an index: an extra is installed from the same place."""
    origin = {"text": '{"url": "file:///d/bethink-1.whl", "archive_info": {}}'}

    class Found:
        version = "1.0"

        def read_text(self, name: str) -> str | None:
            return origin["text"]

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Found())

    assert install_command("serve") == "pip install 'bethink[serve] @ file:///d/bethink-1.whl'"
    assert "in the way you installed this one" in how_to_update()
    origin["text"] = None
    assert install_command("serve") == "pip install 'bethink[serve]==1.0'"
    origin["text"] = '{"url": "file:///d", "dir_info": {"editable": true}}'
    assert install_command("serve").startswith("pip install '.[serve]' (in the folder")
    assert "Update the checkout" in how_to_update()
