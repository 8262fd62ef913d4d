"""The policy: every operation and the right it needs. What is not in the table is denied.

A tool of the MCP server and the REST route that does the same are one operation and have
one row, so that no surface can be a way around another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.access.rights import Principal, Right
from recollect.errors import Forbidden

ANYONE, READ, WRITE, ADMIN, LOCAL = Right

POLICY: dict[str, Right] = {
    # Asking.
    "recall": READ,
    "explain": READ,
    "list_entities": READ,
    "recall_file": READ,
    "history": READ,
    "timeline": READ,
    "threads": READ,
    "insights": READ,
    "get_memory": READ,
    "list_memories": READ,
    "links": READ,
    "stats": READ,
    "events": READ,
    # Changing what can be changed back.
    "recall with mark_accessed": WRITE,
    "remember": WRITE,
    "remember_many": WRITE,
    "update_memory": WRITE,
    "forget": WRITE,
    "restore": WRITE,
    "undo": WRITE,
    "note_edit": WRITE,
    "consolidate": WRITE,
    # What cannot be taken back, what moves everything, what reads files of the machine.
    "forget with erase": ADMIN,
    "export": ADMIN,
    "import": ADMIN,
    "read_smart": ADMIN,
    # What a host reads without calling a tool.
    "resource memory://stats": READ,
    "resource memory://recent": READ,
    "resource memory://entity/{name}": READ,
    "resource memory://item/{id}": READ,
    "resource ui://recollect/recall": READ,
    "prompt begin": READ,
    "prompt keep": READ,
    "prompt review": READ,
    # The server itself.
    "health": ANYONE,
    "ready": ANYONE,
    "page": READ,
    "openapi": READ,
    "metrics": READ,
    "mcp": READ,
    # Never by any network: commands of who sits at this machine.
    "config": LOCAL,
    "token": LOCAL,
    "spaces": LOCAL,
    "revoke": LOCAL,
    "maintain": LOCAL,
    "doctor": LOCAL,
    "reindex": LOCAL,
    "forget_file": LOCAL,
}

# Arguments that make another operation of one.
WITH = {("recall", "mark_accessed"), ("forget", "erase")}


def operation_of(name: str, told: Mapping[str, Any]) -> str:
    """The row of the table that a call falls under, by its arguments too."""
    for operation, argument in sorted(WITH):
        if name == operation and told.get(argument):
            return f"{operation} with {argument}"
    return name


def permits(principal: Principal, operation: str) -> bool:
    """Whether somebody may do this. The owner's own process is not asked."""
    if principal.right is LOCAL:
        return True
    needed = POLICY.get(operation)
    return needed is not None and principal.right >= needed


def require(principal: Principal, operation: str) -> None:
    """Raises Forbidden where somebody may not do this."""
    if permits(principal, operation):
        return
    needed = POLICY.get(operation, LOCAL)
    if needed is LOCAL:
        raise Forbidden(f"{operation} is not to be had over a network", scope="")
    raise Forbidden(
        f"{operation} needs the scope {needed.word}; here it is {principal.right.word}",
        scope=needed.word,
        remedy=f"a token of that scope: recollect token create NAME --scope {needed.word}",
    )
