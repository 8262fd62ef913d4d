"""Rights, principals and the policy table: every operation and the right it needs.

An operation that is not in the table is denied. A tool of the MCP server and the REST route
that does the same are one operation and have one row, so that no surface can be a way
around another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from enum import IntEnum
from typing import Any

from bethink.core.named_tuple import NamedTuple
from bethink.errors import Forbidden

_SCOPE_KEY = "bethink.principal"
_AGAIN_KEY = "bethink.again"


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

    ``key`` distinguishes two tokens that had the same name one after the other. ``client`` is
    the id of the OAuth client that calls, if it is one. ``person`` is the id of who calls;
    without it the caller sees what all of the space see.
    """

    name: str
    right: Right
    key: str = ""
    client: str = ""
    person: str = ""


OWNER = Principal("owner", Right.LOCAL)  # the user who started this process
LOOPBACK = Principal("loopback", Right.WRITE)  # a local program without a token
ANONYMOUS = Principal("nobody", Right.ANYONE)


# Authenticates the caller of a request once more. It does not hold the scope that holds it: a
# circle waits for the garbage collector, and every request would leave one.
Again = Callable[[Mapping[str, Any]], Awaitable[Principal | None]]


def attach_principal(
    scope: MutableMapping[str, object], principal: Principal, again: Again | None = None
) -> None:
    """Store the principal in a request's ASGI scope, and how to authenticate it later."""
    scope[_SCOPE_KEY] = principal
    scope[_AGAIN_KEY] = again


async def principal_now(scope: Mapping[str, Any]) -> Principal:
    """Authenticate the caller of a long request again; ANONYMOUS if it lost its credentials."""
    again: Again | None = scope.get(_AGAIN_KEY)
    found = await again(scope) if again else None
    return found if found and found.key == principal_of(scope).key else ANONYMOUS


def principal_of(scope: Mapping[str, object]) -> Principal:
    """Return the principal of a request; ANONYMOUS if no guard has set one."""
    found = scope.get(_SCOPE_KEY)
    return found if isinstance(found, Principal) else ANONYMOUS


ANYONE, READ, WRITE, ADMIN, LOCAL = Right

POLICY: dict[str, Right] = {
    operation: right
    for right, operations in (
        # Reading.
        (READ, ("recall", "explain", "list_entities", "recall_file", "history", "timeline",
                "threads", "insights", "get_memory", "list_memories", "links", "stats", "events",
                "inspect", "profiles", "usage", "graph", "times", "maintenance", "watch",
                "find_values", "conflicts", "questions", "members")),
        # Writing that can be undone.
        (WRITE, ("recall with mark_accessed", "remember", "remember_many", "update_memory",
                 "forget", "restore", "undo", "note_edit", "consolidate", "link", "put_values",
                 "settle", "save_question")),
        # Irreversible, bulk or long operations, and reading local files.
        (ADMIN, ("forget with erase", "export", "import", "read_smart", "checks",
                 "sync", "sync_status", "inbox", "review")),
        # Resources and prompts.
        (READ, ("resource memory://stats", "resource memory://recent",
                "resource memory://entity/{name}", "resource memory://item/{id}",
                "resource ui://bethink/recall", "prompt begin", "prompt keep", "prompt review")),
        # The server itself.
        (ANYONE, ("health", "ready", "session", "login", "logout")),
        (READ, ("page", "openapi", "metrics", "mcp")),
        # Local commands only, never over a network.
        (LOCAL, ("config", "token", "spaces", "revoke", "maintain", "doctor", "reindex",
                 "forget_file", "webhook", "people")),
    )
    for operation in operations
}  # fmt: skip

# For people: they may erase what they wrote (`PersonMemory.forget` looks at that), and counts of
# what others do are not for them, nor a log that says itself who wrote what.
_OF_PEOPLE = {"forget with erase": WRITE, "metrics": LOCAL, "sync": LOCAL}

# Arguments that turn one operation into another.
ARGUMENT_OPERATIONS = {("recall", "mark_accessed"), ("forget", "erase")}


def operation_of(name: str, arguments: Mapping[str, object]) -> str:
    """Return the policy row of a call, which may depend on its arguments."""
    for operation, argument in sorted(ARGUMENT_OPERATIONS):
        if name == operation and arguments.get(argument):
            return f"{operation} with {argument}"
    return name


def right_for(name: object, arguments: object) -> Right:
    """Return the right that a token needs to call a tool; READ if no token gives enough."""
    given = arguments if isinstance(arguments, Mapping) else {}
    needed = POLICY.get(operation_of(str(name), given), READ)
    return needed if needed in GRANTABLE else READ


def permits(principal: Principal, operation: str) -> bool:
    """Check whether a principal may do an operation; the owner's own process always may."""
    if principal.right is LOCAL:
        return True
    needed = _needed(principal, operation)
    return needed is not None and principal.right >= needed


def _needed(principal: Principal, operation: str) -> Right | None:
    own = _OF_PEOPLE.get(operation) if principal.person else None
    return POLICY.get(operation) if own is None else own


def require(principal: Principal, operation: str) -> None:
    """Raise Forbidden if a principal may not do an operation."""
    if permits(principal, operation):
        return
    needed = _needed(principal, operation)
    if needed is None or needed is LOCAL:
        raise Forbidden(f"{operation} is not available over a network", scope="")
    raise Forbidden(
        f"{operation} needs the scope {needed.scope_name}; "
        f"the caller has {principal.right.scope_name}",
        scope=needed.scope_name,
        remedy="create a token with that scope: "
        f"bethink token create NAME --scope {needed.scope_name}",
    )
