"""Examples of the options that no example of a command's own help shows: tables of cli.md."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click

from bethink.cli.commands import COMMANDS, root_context

ID = "6gy4k2m7xq0v0001"
# What each command is called with; its options follow.
CALLS = {
    "remember": "'Releases go out on Thursdays'",
    "recall": "'when do we ship?'",
    "why-not": f"{ID} 'when do we ship?'",
    "compare": "'when do we ship?'",
    "note-edit": "src/app.py",
    "read-smart": "README.md",
    "recall-file": "src/app.py",
    "update": ID,
    "demote": ID,
    "forget": "",
    "revoke": "--source old-notes",
    "inbox": "",
    "inbox accept": "",
    "inbox refuse": "",
    "inbox merge": ID,
    "import": "notes.jsonl",
    "files": "notes",
    "sync": "drive",
    "install": "claude-code",
    "uninstall": "claude-code",
    "token create": "laptop --scope read",
    "webhook add": "deploys https://example.org/hook",
    "people add": "anna",
    "people remove": "anna --erase",
    "config unset": "k",
    "eval": "locomo locomo10.json",
    "tune": "locomo locomo10.json --out mine.toml",
}
# The value of an option, by its name; a flag has none. A command may have another.
VALUES = {
    "--abstention": "off",
    "--allow-origin": "https://notes.example.org",
    "--also-space": "ops",
    "--all": "",
    "--any-space": "",
    "--as-of": "yesterday",
    "--at": "src/app.py::main",
    "--band": "hot",
    "--by": "2",
    "--caption": "'Release day'",
    "--ceiling": "0",
    "--cache": "~/.cache/eval",
    "--classification": "2",
    "--clock-is-right": "",
    "--command": "bethink",
    "--confidence": "0.7",
    "--context": """'{"hour": 9, "weekday": "monday"}'""",
    "--corpus": "memories.jsonl",
    "--credibility": "1",
    "--cursor": "osfE6qEBAADacBW4AGlDBzpaHBTY",
    "--deep": "",
    "--detach": "",
    "--dry-run": "",
    "--embedder": "none",
    "--emotion": "3",
    "--entity": "person:Ana",
    "--every": "60",
    "--expires": "90d",
    "--extract": "",
    "--force": "",
    "--holdout": "0.3",
    "--id": ID,
    "--importance": "0.9",
    "--in-memory": "",
    "--include-expired": "",
    "--include-shared": "",
    "--include-superseded": "",
    "--include-untopiced": "",
    "--integrity": "3",
    "--intents": "5",
    "--into": "6gy4k2m7xq0v0002",
    "--item": ID,
    "--key": "chat-17",
    "--kind": "decision",
    "--language": "de",
    "--layer": "caveat",
    "--level": "raw",
    "--lifecycle": "active",
    "--limit": "5",
    "--max-classification": "1",
    "--max-tokens": "500",
    "--metadata": """'{"ticket": "OPS-12"}'""",
    "--metrics": "recall@10,ndcg@10",
    "--min-age-days": "30",
    "--min-confidence": "0.5",
    "--min-memories": "3",
    "--min-relevance": "0.2",
    "--min-trust": "2",
    "--name": "laptop",
    "--no-capture": "",
    "--no-check": "",
    "--now": "2026-03-01T09:00",
    "--oauth": "",
    "--oauth-register": "",
    "--occurred-at": "'last Friday'",
    "--occurred-end": "2026-03-02",
    "--offset": "10",
    "--original": "'Wir liefern donnerstags'",
    "--own-session": "chat-17",
    "--parent": ID,
    "--parts": "lexical,dense",
    "--person": "anna",
    "--pin": "",
    "--poll": "",
    "--port": "9000",
    "--prefix": "Ana",
    "--private": "",
    "--profile": "remind",
    "--project": "",
    "--protocol": "all",
    "--public-url": "https://memory.example.org",
    "--reason": "'out of date'",
    "--refused": "",
    "--reranker": "overlap",
    "--retire": "3e03",
    "--root": "docs",
    "--seed": "7",
    "--seq": "4",
    "--session": "chat-17",
    "--share": "0.1",
    "--similarity": "0.95",
    "--since": "'last week'",
    "--source": "team-notes",
    "--source-class": "tool",
    "--speaker": "Ana",
    "--split": "dev",
    "--stdio": "",
    "--strangers": "50",
    "--tag": "release",
    "--text": "'Releases go out on Fridays'",
    "--tier": "core",
    "--token": "5f2c",
    "--tolerance": "0.01",
    "--topic": "release",
    "--trace-candidates": "all",
    "--track": "",
    "--translated": "'wann liefern wir?'",
    "--trust": "1",
    "--turn": "3",
    "--turn-before": "'The staging server was moved'",
    "--ungated": "",
    "--until": "2026-03-01",
    "--user": "anna",
    "--valid-from": "2026-03-01",
    "--valid-to": "2026-12-31",
    "--whole": "",
    "--workers": "2",
    "--yes": "",
    "-k": "3",
}
OTHER_VALUES = {
    ("forget", "--share"): "0.1 --sweep",
    ("forget", "--min-age-days"): "30 --sweep",
    ("forget", "--clock-is-right"): "--sweep",
    ("forget", "--reason"): f"'out of date' {ID}",
    ("files", "--poll"): "--watch",
    ("insights", "--min-memories"): "3 --build",
    ("note-edit", "--at"): "2026-03-01",
    ("sync", "--every"): "60 --watch",
    ("people remove", "--also-space"): "",
    ("recall", "--include-shared"): "--user anna",
    ("recall", "--include-untopiced"): "--topic release",
    ("recall", "--trace-candidates"): "all --trace --json",
    ("tune", "--level"): "session",
    ("webhook add", "--kind"): "stored",
}
# Said for these commands by the table of `recall`.
FILTERING = ("why-not", "compare", "list", "forget", "maintain")
FILTER_NOTE = "Filters and limits are shown [for recall](#bethink-recall)."
GENERAL = {"space", "store", "json", "no_color", "quiet", "verbose", "help"}


def rows(name: str, command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield each option that the command's own examples do not use, and a call with it."""
    shown = " ".join(getattr(command, "examples", ()))
    recall = {param.name for param in COMMANDS["recall"].params}
    for param in command.params:
        if not isinstance(param, click.Option) or param.hidden or param.name in GENERAL:
            continue
        if name in FILTERING and param.name in recall:
            continue
        option = next((one for one in param.opts if one.startswith("--")), param.opts[0])
        if not any(re.search(rf"(?<!\S){one}(?![\w-])", shown) for one in param.opts):
            value = OTHER_VALUES.get((name, option), VALUES.get(option))
            if value is None:
                raise SystemExit(f"tools/option_examples.py has no value for {option} of {name}")
            yield option, " ".join(filter(None, ("bethink", name, CALLS.get(name), option, value)))


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command and subcommand; other systems' words have pages of their own."""

    def below(
        name: str, command: click.Command, ctx: click.Context
    ) -> Iterator[tuple[str, click.Command]]:
        yield name, command
        if isinstance(command, click.Group) and getattr(command, "in_reference", True):
            inner = click.Context(command, parent=ctx, info_name=name)
            for one in command.list_commands(inner):
                found = command.get_command(inner, one)
                if found is not None:
                    yield from below(f"{name} {one}", found, inner)

    for name in COMMANDS:
        yield from below(name, COMMANDS[name], root_context())


def with_examples(page: str) -> str:
    """Add a table to the section of each command that has options without an example."""
    for name, command in commands():
        heading = f"## bethink {name}\n"
        found = list(rows(name, command))
        note = FILTER_NOTE if name in FILTERING else ""
        if heading not in page or not (found or note):
            continue
        table = [
            "| option | for example |",
            "|---|---|",
            *(f"| `{one}` | `{call}` |" for one, call in found),
        ]
        start = page.index("\n```\n", page.index(heading)) + len("\n```\n")
        added = "\n\n".join(filter(None, ("\n".join(table) if found else "", note)))
        page = f"{page[:start]}\n{added}\n{page[start:]}"
    return page


def words_of(call: str) -> list[str]:
    """Return the arguments of an example, as a shell splits them."""
    return shlex.split(call)[1:]
