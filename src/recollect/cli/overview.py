"""What `recollect --help` shows: every command in a line, without loading any."""

from __future__ import annotations

PROGRAM = "recollect"

GENERAL = {
    "space": "The space to use; else RECOLLECT_SPACE or the project's own.",
    "json": "Answer with one JSON document.",
    "no_color": "Never use colour.",
    "quiet": "Say less.",
    "verbose": "Say more.",
    "version": "Print the version.",
}

SECTIONS = {
    "Remember and recall": {
        "remember": "Store a memory.",
        "recall": "Find what a question calls to mind.",
        "why-not": "Say why a memory was not recalled.",
        "compare": "Ask several profiles, side by side.",
        "demo": "Show it all on a small project's memory.",
    },
    "Look around": {
        "show": "Show one memory with all that is known of it.",
        "list": "List memories, newest first.",
        "timeline": "Show what came before and after a memory.",
        "why": "Show where a memory comes from.",
        "history": "Show the revisions of a memory.",
        "entities": "List whom and what the memories speak of.",
        "events": "Show the journal: who did what, and when.",
        "threads": "List what goes on.",
        "thread": "Show one thread as a timeline.",
        "insights": "Draw the tree of what the memories come to.",
        "stats": "Count what is stored.",
    },
    "Files": {
        "recall-file": "Show what was done to a file, and why.",
        "read-smart": "Read a file, or only what changed in it.",
        "note-edit": "Keep what was done to a file.",
        "forget-file": "Erase what is known of a file.",
    },
    "Relate": {
        "link": "Say how two memories belong together.",
        "unlink": "Take a link back.",
        "links": "Show how a memory is linked to others.",
    },
    "Correct and forget": {
        "update": "Correct a memory; the old text stays in its history.",
        "boost": "Say that a memory is relevant.",
        "demote": "Say that a memory is not so relevant.",
        "forget": "Take memories out of recall, or erase them.",
        "restore": "Bring forgotten memories back.",
        "undo": "Undo the last change of a memory, or a maintenance run.",
        "revoke": "Take back all that a source has brought.",
    },
    "Bring and take": {
        "import": "Store many memories from a file, or from another tool.",
        "export": "Write everything to a file.",
    },
    "Serve": {
        "install": "Put this memory into Claude Code, Cursor, Codex ...",
        "uninstall": "Take back what install has written.",
        "hook": "Answer a host's hook; install sets them up.",
        "mcp": "Serve this project's memory to agents (MCP).",
        "serve": "Serve this project's memory over HTTP.",
        "token": "Create, list and revoke tokens.",
        "worker": "Look at, start and stop the worker, which keeps models loaded.",
    },
    "Measure": {
        "eval": "Measure how well the right memories come back.",
        "tune": "Search better numbers for a profile.",
    },
    "Look after it": {
        "spaces": "List, find and remove spaces.",
        "profiles": "List the profiles and show what they do.",
        "config": "List, read and change settings.",
        "maintain": "Tidy up: duplicates, cold memories, notes; can be undone.",
        "doctor": "Check everything that could be wrong.",
        "reindex": "Make the vectors that are missing.",
        "completion": "Print the completion script for a shell.",
        "version": "Print the version.",
    },
}

HELP = {name: line for section in SECTIONS.values() for name, line in section.items()}

_OPTIONS = {
    "--space NAME": GENERAL["space"],
    "--json": GENERAL["json"],
    "--no-color": GENERAL["no_color"],
    "-q, --quiet": GENERAL["quiet"],
    "-v, --verbose": GENERAL["verbose"],
    "--version": GENERAL["version"],
    "-h, --help": "Show this page; after a command, its own.",
}

_INTRODUCTION = """\
Usage: recollect [OPTIONS] COMMAND [ARGS]...

  A memory that AI agents and people can trust: offline, explained, crash-proof.

  recollect remember "Tests run with make test"
  recollect recall "how do I run the tests?"
"""

_NOTES = """\
Times are read and shown in UTC.
Exit codes: 0 found or done, 1 nothing found, 2 bad use, 3 store trouble."""


def overview() -> str:
    """The page, in plain text of at most 80 columns."""
    sections = [*SECTIONS.items(), ("Options, before or after the command", _OPTIONS)]
    pages = [_INTRODUCTION, *(_section(title, rows) for title, rows in sections)]
    return "\n".join([*pages, _NOTES])


def _section(title: str, rows: dict[str, str]) -> str:
    width = 15
    return f"{title}:\n" + "".join(f"  {name:<{width}}{told}\n" for name, told in rows.items())
