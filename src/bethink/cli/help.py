"""The help pages of the program itself, printed without importing any command."""

from __future__ import annotations

PROGRAM = "bethink"
COMPLETION_VARIABLE = "_BETHINK_COMPLETE"  # what a shell sets to ask for completions

OPTION_HELP = {
    "space": "Space to use; default: BETHINK_SPACE or the project's own.",
    "store": "Where memories are stored: sqlite, or postgresql://...",
    "json": "Print one JSON document.",
    "no_color": "Never use colour.",
    "quiet": "Print less.",
    "verbose": "Print more.",
    "version": "Print the version.",
}

# Every command by section: where it is, and what it does.
_COMMANDS = {
    "Remember and recall": {
        "remember": ("cli.write:remember", "Store a memory."),
        "recall": ("cli.recall:recall", "Find the memories that answer a question."),
        "why-not": ("cli.recall:why_not", "Explain why a memory was not recalled."),
        "compare": ("cli.recall:compare", "Run a query with several profiles, side by side."),
        "demo": ("demo:demo", "Show recall on the notes of a small team."),
    },
    "Browse": {
        "show": ("cli.browse:show", "Show one memory with all its fields."),
        "list": ("cli.browse:list_memories", "List memories, newest first."),
        "timeline": ("cli.browse:timeline", "Show the memories before and after a memory."),
        "why": ("cli.browse:why", "Show where a memory comes from."),
        "history": ("cli.browse:history", "Show the revisions of a memory."),
        "entities": ("cli.links:entities", "List the entities that memories mention."),
        "events": ("cli.browse:events", "Show the journal: who did what, and when."),
        "threads": ("cli.browse:threads", "List ongoing topics."),
        "thread": ("cli.browse:thread", "Show one thread as a timeline."),
        "insights": ("cli.browse:insights", "Show the insight tree."),
        "stats": ("cli.health:stats", "Show statistics of the store."),
    },
    "Files": {
        "files": ("cli.folders:files", "Keep memories as Markdown files that you can edit."),
        "recall-file": (
            "cli.files:recall_file",
            "Show the memories of a file, its edits and their reasons.",
        ),
        "stale": ("cli.files:stale", "List memories whose code changed or is gone."),
        "read-smart": ("cli.files:read_smart", "Read a file, or only what changed in it."),
        "note-edit": ("cli.files:note_edit", "Record an edit of a file."),
        "forget-file": ("cli.files:forget_file", "Erase the recorded history of a file."),
    },
    "Links": {
        "link": ("cli.links:link", "Link two memories."),
        "unlink": ("cli.links:unlink", "Remove a link."),
        "links": ("cli.links:links", "Show the links of a memory."),
    },
    "Correct and forget": {
        "update": ("cli.write:update", "Correct a memory; its history keeps the old text."),
        "edit": ("cli.folders:edit", "Edit a memory in your editor."),
        "boost": ("cli.links:boost", "Mark a memory as relevant."),
        "demote": ("cli.links:demote", "Mark a memory as less relevant."),
        "forget": ("cli.forget:forget", "Exclude memories from recall, or erase them."),
        "restore": ("cli.forget:restore", "Restore forgotten memories."),
        "skills": ("cli.inbox:skills", "List and export procedures that worked twice."),
        "inbox": ("cli.inbox:inbox", "Review memories that wait outside of recall."),
        "undo": ("cli.forget:undo", "Undo a change, an import or a maintenance run."),
        "revoke": ("cli.maintenance:revoke", "Remove everything that came from a source."),
    },
    "Import and export": {
        "import": (
            "cli.transfer:import_memories",
            "Store many memories from a file, or from another tool.",
        ),
        "export": ("cli.transfer:export", "Write everything to a file."),
        "upgrade": ("cli.transfer:upgrade", "Carry over the memories of an earlier version."),
    },
    "Several machines": {
        "sync": ("cli.sync:sync", "Keep a space the same on several machines."),
        "conflicts": (
            "cli.sync:conflicts",
            "List memories that were changed on two machines at once.",
        ),
        "settle": ("cli.sync:settle", "Decide what a memory says that two machines changed."),
    },
    "Integrate": {
        "install": (
            "hooks.commands:install",
            "Install this memory in Claude Code, Cursor, Codex ...",
        ),
        "uninstall": ("hooks.commands:uninstall", "Remove what install wrote."),
        "hook": ("hooks.commands:hook", "Run a hook for a host; install sets hooks up."),
        "mcp": ("server.commands:mcp_command", "Serve this project's memory to agents (MCP)."),
        "as": ("server.systems.commands:as_command", "Use the commands of another memory system."),
        "serve": ("server.commands:serve", "Serve this project's memory over HTTP."),
        "ui": ("server.commands:ui", "Open the inspector in the browser."),
        "token": ("server.commands:token", "Create, list and revoke tokens."),
        "webhook": ("server.webhook_commands:webhook", "Notify other programs of changes."),
        "people": ("cli.people:people", "Add, list and remove the people of a space."),
        "worker": (
            "cli.maintenance:worker",
            "Show, start and stop the worker, which keeps models loaded.",
        ),
    },
    "Evaluate": {
        "eval": ("eval.commands:eval_command", "Measure recall quality."),
        "tune": ("eval.commands:tune_command", "Tune a profile's parameters."),
        "helped": ("cli.helped:helped", "Show whether the memories that hooks showed were used."),
    },
    "Administer": {
        "spaces": ("cli.config:spaces", "List, find and remove spaces."),
        "store": ("cli.health:store", "Prepare a PostgreSQL database for memories."),
        "move": ("cli.health:move", "Move a space to a server, or back into a file."),
        "trust": ("cli.config:trust", "Allow a project to use a space that its file names."),
        "profiles": ("cli.profiles:profiles", "List the profiles and show what they do."),
        "config": ("cli.config:config", "List, read and change settings."),
        "maintain": (
            "cli.maintenance:maintain",
            "Tidy up: duplicates, cold memories, notes; can be undone.",
        ),
        "doctor": ("cli.health:doctor", "Check the store for problems."),
        "reindex": ("cli.health:reindex", "Create missing vectors."),
        "completion": ("cli.health:completion", "Print the completion script for a shell."),
        "version": ("cli.health:version", "Print the version."),
    },
}
SECTIONS = {
    title: {name: line for name, (_, line) in rows.items()} for title, rows in _COMMANDS.items()
}
COMMAND_PLACES = {
    name: f"bethink.{place}" for rows in _COMMANDS.values() for name, (place, _) in rows.items()
}
COMMAND_HELP = {name: line for section in SECTIONS.values() for name, line in section.items()}

# Words of other tools for the same thing.
OTHER_NAMES = {
    **dict.fromkeys(("add", "save"), "remember"),
    **dict.fromkeys(("ask", "find", "query", "search"), "recall"),
    **dict.fromkeys(("delete", "remove", "rm"), "forget"),
    "get": "show",
    "ls": "list",
    "log": "events",
}

EVERYDAY_EXAMPLES = {
    "remember": 'bethink remember "Tests run with make test"',
    "recall": 'bethink recall "how do I run the tests?"',
    "why-not": 'bethink why-not ID "how do I run the tests?"',
    "list": "bethink list --kind decision",
    "show": "bethink show ID",
    "update": 'bethink update ID "Tests run with make check"',
    "forget": "bethink forget ID",
    "undo": "bethink undo ID",
    "import": "bethink import notes.md",
    "maintain": "bethink maintain --dry-run",
    "doctor": "bethink doctor",
    "install": "bethink install claude-code",
}

_OPTIONS = {
    "--space NAME": OPTION_HELP["space"],
    "--store URL": OPTION_HELP["store"],
    "--json": OPTION_HELP["json"],
    "--no-color": OPTION_HELP["no_color"],
    "-q, --quiet": OPTION_HELP["quiet"],
    "-v, --verbose": OPTION_HELP["verbose"],
    "--version": OPTION_HELP["version"],
    "-h, --help": "Show this page; after a command, its own help.",
    "--help --all": "Show every command.",
}

_INTRODUCTION = """\
Usage: bethink [OPTIONS] COMMAND [ARGS]...

  A memory that AI agents and people can trust: offline, explained, crash-proof.
"""

_NOTES = """\
Times are read and shown in UTC.
Exit codes: 0 success, 1 nothing there, 2 usage error, 3 store error."""

_WIDTH = 15  # columns for the names of commands and options


def overview(*, every_command: bool = False) -> str:
    """Return the help page, in plain text of at most 80 columns.

    It shows the everyday commands with an example each, or every command by section.
    """
    if every_command:
        commands = [_format_section(title, rows) for title, rows in SECTIONS.items()]
    else:
        commands = [_format_everyday()]
    options = _format_section("Options, before or after the command", _OPTIONS)
    return "\n".join([_INTRODUCTION, *commands, options, _NOTES])


def _format_everyday() -> str:
    more = len(COMMAND_HELP) - len(EVERYDAY_EXAMPLES)
    lines = ["Everyday commands:"]
    for name, example in EVERYDAY_EXAMPLES.items():
        lines.append(f"  {name:<{_WIDTH}}{COMMAND_HELP[name]}")
        lines.append(f"  {'':<{_WIDTH}}  {example}")
    lines += ["", f"bethink --help --all shows the other {more} commands as well."]
    return "\n".join(lines) + "\n"


def _format_section(title: str, rows: dict[str, str]) -> str:
    return f"{title}:\n" + "".join(f"  {name:<{_WIDTH}}{text}\n" for name, text in rows.items())
