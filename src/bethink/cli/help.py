"""The command overview that `--help` prints, without importing any command."""

from __future__ import annotations

PROGRAM = "bethink"

OPTION_HELP = {
    "space": "The space to use; else BETHINK_SPACE or the project's own.",
    "json": "Answer with one JSON document.",
    "no_color": "Never use colour.",
    "quiet": "Say less.",
    "verbose": "Say more.",
    "version": "Print the version.",
}

SECTIONS = {
    "Remember and recall": {
        "remember": "Store a memory.",
        "recall": "Find the memories that answer a question.",
        "why-not": "Explain why a memory was not recalled.",
        "compare": "Run a query with several profiles, side by side.",
        "demo": "Show all features on a small project's memory.",
    },
    "Look around": {
        "show": "Show one memory with all its fields.",
        "list": "List memories, newest first.",
        "timeline": "Show the memories before and after a memory.",
        "why": "Show where a memory comes from.",
        "history": "Show the revisions of a memory.",
        "entities": "List the entities that memories mention.",
        "events": "Show the journal: who did what, and when.",
        "threads": "List ongoing topics.",
        "thread": "Show one thread as a timeline.",
        "insights": "Show the insight tree.",
        "stats": "Show statistics of the store.",
    },
    "Files": {
        "recall-file": "Show the edits of a file and their reasons.",
        "read-smart": "Read a file, or only what changed in it.",
        "note-edit": "Record an edit of a file.",
        "forget-file": "Erase the recorded history of a file.",
    },
    "Relate": {
        "link": "Link two memories.",
        "unlink": "Remove a link.",
        "links": "Show the links of a memory.",
    },
    "Correct and forget": {
        "update": "Correct a memory; the old text stays in its history.",
        "boost": "Mark a memory as relevant.",
        "demote": "Mark a memory as less relevant.",
        "forget": "Take memories out of recall, or erase them.",
        "restore": "Restore forgotten memories.",
        "undo": "Undo the last change of a memory, or a maintenance run.",
        "revoke": "Remove everything that came from a source.",
    },
    "Bring and take": {
        "import": "Store many memories from a file, or from another tool.",
        "export": "Write everything to a file.",
    },
    "Serve": {
        "install": "Install this memory into Claude Code, Cursor, Codex ...",
        "uninstall": "Remove what install has written.",
        "hook": "Answer a host's hook; install sets them up.",
        "mcp": "Serve this project's memory to agents (MCP).",
        "serve": "Serve this project's memory over HTTP.",
        "token": "Create, list and revoke tokens.",
        "worker": "Show, start and stop the worker, which keeps models loaded.",
    },
    "Measure": {
        "eval": "Measure recall quality.",
        "tune": "Tune a profile's parameters.",
    },
    "Look after it": {
        "spaces": "List, find and remove spaces.",
        "profiles": "List the profiles and show what they do.",
        "config": "List, read and change settings.",
        "maintain": "Tidy up: duplicates, cold memories, notes; can be undone.",
        "doctor": "Check the store for problems.",
        "reindex": "Create missing vectors.",
        "completion": "Print the completion script for a shell.",
        "version": "Print the version.",
    },
}

COMMAND_HELP = {name: line for section in SECTIONS.values() for name, line in section.items()}

_OPTIONS = {
    "--space NAME": OPTION_HELP["space"],
    "--json": OPTION_HELP["json"],
    "--no-color": OPTION_HELP["no_color"],
    "-q, --quiet": OPTION_HELP["quiet"],
    "-v, --verbose": OPTION_HELP["verbose"],
    "--version": OPTION_HELP["version"],
    "-h, --help": "Show this page; after a command, its own.",
}

_INTRODUCTION = """\
Usage: bethink [OPTIONS] COMMAND [ARGS]...

  A memory that AI agents and people can trust: offline, explained, crash-proof.

  bethink remember "Tests run with make test"
  bethink recall "how do I run the tests?"
"""

_NOTES = """\
Times are read and shown in UTC.
Exit codes: 0 found or done, 1 nothing found, 2 bad use, 3 store trouble."""


def overview() -> str:
    """Return the help overview, in plain text of at most 80 columns."""
    sections = [*SECTIONS.items(), ("Options, before or after the command", _OPTIONS)]
    pages = [_INTRODUCTION, *(_format_section(title, rows) for title, rows in sections)]
    return "\n".join([*pages, _NOTES])


def _format_section(title: str, rows: dict[str, str]) -> str:
    width = 15
    return f"{title}:\n" + "".join(f"  {name:<{width}}{told}\n" for name, told in rows.items())
