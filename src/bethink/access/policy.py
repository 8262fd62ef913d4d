"""Rights, principals and the policy table: every operation and the right it needs.

An operation that is not in the table is denied. A tool of the MCP server and the REST route
that does the same are one operation and have one row, so that no surface can be a way
around another.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from enum import IntEnum

from bethink.core.named_tuple import NamedTuple
from bethink.errors import Forbidden

_SCOPE_KEY = "bethink.principal"


class Right(IntEnum):
    """Access rights in ascending order; each includes those before it.

    No token can grant LOCAL: it is reserved for commands that the owner runs on this machine.
    """

    ANYONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3
    LOCAL = 4

    @property
    def scope_name(self) -> str:
        """The right's name as options, files and answers spell it."""
        return self.name.lower()


GRANTABLE = (Right.READ, Right.WRITE, Right.ADMIN)  # rights that a token can have


class Principal(NamedTuple):
    """An authenticated caller.

    ``key`` distinguishes two tokens that had the same name one after the other.
    """

    name: str
    right: Right
    key: str = ""


OWNER = Principal("owner", Right.LOCAL)  # the user who started this process
LOOPBACK = Principal("loopback", Right.WRITE)  # a local program without a token
ANONYMOUS = Principal("nobody", Right.ANYONE)


def attach_principal(scope: MutableMapping[str, object], principal: Principal) -> None:
    """Store the principal in a request's ASGI scope."""
    scope[_SCOPE_KEY] = principal


def principal_of(scope: Mapping[str, object]) -> Principal:
    """Return the principal of a request; ANONYMOUS if no guard has set one."""
    found = scope.get(_SCOPE_KEY)
    return found if isinstance(found, Principal) else ANONYMOUS


ANYONE, READ, WRITE, ADMIN, LOCAL = Right

POLICY: dict[str, Right] = {
    # Reading.
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
    "inspect": READ,
    "profiles": READ,
    "usage": READ,
    "graph": READ,
    "times": READ,
    "maintenance": READ,
    # Writing that can be undone.
    "recall with mark_accessed": WRITE,
    "remember": WRITE,
    "remember_many": WRITE,
    "update_memory": WRITE,
    "forget": WRITE,
    "restore": WRITE,
    "undo": WRITE,
    "note_edit": WRITE,
    "consolidate": WRITE,
    "link": WRITE,
    # Irreversible, bulk or long operations, and reading local files.
    "forget with erase": ADMIN,
    "export": ADMIN,
    "import": ADMIN,
    "read_smart": ADMIN,
    "checks": ADMIN,
    # Resources and prompts.
    "resource memory://stats": READ,
    "resource memory://recent": READ,
    "resource memory://entity/{name}": READ,
    "resource memory://item/{id}": READ,
    "resource ui://bethink/recall": READ,
    "prompt begin": READ,
    "prompt keep": READ,
    "prompt review": READ,
    # The server itself.
    "health": ANYONE,
    "ready": ANYONE,
    "session": ANYONE,
    "login": ANYONE,
    "logout": ANYONE,
    "page": READ,
    "openapi": READ,
    "metrics": READ,
    "mcp": READ,
    # Local commands only, never over a network.
    "config": LOCAL,
    "token": LOCAL,
    "spaces": LOCAL,
    "revoke": LOCAL,
    "maintain": LOCAL,
    "doctor": LOCAL,
    "reindex": LOCAL,
    "forget_file": LOCAL,
}

# Arguments that turn one operation into another.
ARGUMENT_OPERATIONS = {("recall", "mark_accessed"), ("forget", "erase")}


def operation_of(name: str, arguments: Mapping[str, object]) -> str:
    """Return the policy row of a call, which may depend on its arguments."""
    for operation, argument in sorted(ARGUMENT_OPERATIONS):
        if name == operation and arguments.get(argument):
            return f"{operation} with {argument}"
    return name


def permits(principal: Principal, operation: str) -> bool:
    """Check whether a principal may do an operation; the owner's own process always may."""
    if principal.right is LOCAL:
        return True
    needed = POLICY.get(operation)
    return needed is not None and principal.right >= needed


def require(principal: Principal, operation: str) -> None:
    """Raise Forbidden if a principal may not do an operation."""
    if permits(principal, operation):
        return
    needed = POLICY.get(operation, LOCAL)
    if needed is LOCAL:
        raise Forbidden(f"{operation} is not available over a network", scope="")
    raise Forbidden(
        f"{operation} needs the scope {needed.scope_name}; "
        f"the caller has {principal.right.scope_name}",
        scope=needed.scope_name,
        remedy="create a token with that scope: "
        f"bethink token create NAME --scope {needed.scope_name}",
    )
