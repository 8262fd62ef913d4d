"""The index of failure messages, read from the source: `python tools/error_messages.py`."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bethink.errors import BethinkError
from bethink.render.wire import error_kind

SOURCE = Path(__file__).parent.parent / "src" / "bethink"
PAGE = Path(__file__).parent.parent / "docs" / "errors.md"
# Where an error comes from, as a reader of the index would say it.
AREAS = {
    "access": "Tokens, people and sign-in",
    "agents": "Briefing, prompts and capture",
    "cli": "Commands",
    "config": "Settings and spaces",
    "demo": "Commands",
    "eval": "Measuring",
    "folders": "Memories as files",
    "hooks": "Installing in a host, hooks",
    "importers": "Importing",
    "ingest": "Storing",
    "integrations": "Frameworks",
    "maintain": "Maintenance",
    "models": "Models",
    "retrieval": "Recall and profiles",
    "server": "Servers",
    "store": "Store",
    "sync": "Several machines",
    "systems": "Emulated systems",
    "worker": "Worker",
}
OTHER = "Memory"
# Modules with errors that are not in bethink.errors.
_OTHERS = ("access.outbound", "cli.app", "models.http", "ports.models", "server.rest.http_messages")


@dataclass(frozen=True)
class Message:
    """What one place in the source says when it fails."""

    area: str
    kind: str
    text: str
    remedy: str


def error_classes() -> dict[str, type[BethinkError]]:
    """Return every class of errors of the package, by name."""
    for name in _OTHERS:
        importlib.import_module(f"bethink.{name}")

    def below(kind: type[BethinkError]) -> Iterator[type[BethinkError]]:
        yield kind
        for one in kind.__subclasses__():
            yield from below(one)

    return {
        kind.__name__: kind for kind in below(BethinkError) if kind.__module__.startswith("bethink")
    }


@cache
def messages() -> list[Message]:
    """Return the message of every error that the source makes with words of its own."""
    kinds = error_classes()
    found: dict[Message, None] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).parts
        area = AREAS.get(place[0], OTHER) if len(place) > 1 else OTHER
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in kinds and node.args:
                text = _whole_text(node.func.id, _words(node.args[0]))
                remedy = next(
                    (_words(key.value) for key in node.keywords if key.arg == "remedy"), ""
                )
                if any(letter.islower() for letter in text):
                    found[Message(area, _kind(kinds[node.func.id]), text, remedy)] = None
    return sorted(found, key=lambda one: (one.area, one.text.lower()))


def _kind(kind: type[BethinkError]) -> str:
    return error_kind(kind.__new__(kind))


def _whole_text(name: str, text: str) -> str:
    if name == "TooLarge":
        return f"{text} is NUMBER bytes; the limit is LIMIT"
    return f"{text} is not installed" if name == "MissingExtra" else text


def _words(node: ast.expr) -> str:
    """Return the text of an expression, with names in capitals for what varies."""
    match node:
        case ast.Constant():
            words = str(node.value)
        case ast.JoinedStr():
            words = "".join(_words(part) for part in node.values)
        case ast.FormattedValue():
            quote = "'" if node.conversion == ord("r") else ""
            words = f"{quote}{_words(node.value)}{quote}"
        case ast.BinOp(right=ast.Constant(value=int())):
            words = _words(node.left)
        case ast.BinOp(op=ast.Add()):
            words = _words(node.left) + _words(node.right)
        case ast.IfExp():
            words = " / ".join(filter(None, (_words(node.body), _words(node.orelse))))
        case ast.Name():
            words = node.id.strip("_").upper()
        case ast.Attribute():
            words = node.attr.strip("_").upper()
        case ast.Call(func=ast.Attribute(attr="join")):
            words = "NAMES"
        case _:
            inner = getattr(node, "args", None)
            words = _words(inner[0]) if inner else "VALUE"
    return words


def page() -> str:
    """Return the index as Markdown, one table for each area."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    general = {kind: f"*{remedy}*" for kind, remedy in rows}
    lines: list[str] = []
    for area in dict.fromkeys(one.area for one in messages()):
        lines += ["", f"### {area}", "", "| message | try | kind |", "|---|---|---|"]
        lines += [
            f"| {_cell(one.text)} | {_cell(one.remedy) or general[one.kind]} | `{one.kind}` |"
            for one in messages()
            if one.area == area
        ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    escaped = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|`*_\[\]{}])", r"\\\1", escaped)


if __name__ == "__main__":
    sys.stdout.write(page())
