"""Answers the first questions of a client while the protocol library is still loading.

Importing the library takes about as long as a client should wait for everything. What a
client asks first is fixed when the process starts: the greeting and the lists. They are
answered from here, field for field what the library would say, until it takes over; every
other message waits for it. The request that opens the conversation is given to the library
as well, so that it knows whom it serves, and its own answer to that is dropped.
"""

from __future__ import annotations

import json
from typing import Any

from recollect.jsonable import Json
from recollect.mcp.offer import Offer

# With a handshake; in the versions before these the library leaves out fields of a tool.
VERSIONS = ("2025-06-18", "2025-11-25")
# Without one: every request says who asks, in these fields.
ALONE = "2026-07-28"
_OWN = "io.modelcontextprotocol/"
_VERSION, _CLIENT, _CAPABILITIES = (
    f"{_OWN}{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
)
_USUAL_META = frozenset({"progressToken"})
_OWN_META = _USUAL_META | {_VERSION, _CLIENT, _CAPABILITIES}


class Front:
    """What a client may be told before the library is there."""

    def __init__(self, offer: Offer) -> None:
        self.opening: int | str | None = None  # the request that the library must hear, too
        self._offer = offer
        self._lists = offer.lists
        self._version = ""
        self._is_first = True

    @property
    def greeted(self) -> bool:
        """Whether a greeting was answered, on which everything after it depends."""
        return self._version in VERSIONS

    def reply(self, line: bytes) -> Json | None:
        """The answer to a line, or None where the library must give it."""
        asked = _request(line)
        if asked is None:
            return None
        is_first, self._is_first = self._is_first, False
        content = self._content(asked["method"], asked.get("params") or {}, is_first=is_first)
        if content is None:
            return None
        if is_first:
            self.opening = asked["id"]
        return {"jsonrpc": "2.0", "id": asked["id"], "result": content}

    def _content(self, method: str, params: Json, *, is_first: bool) -> Json | None:
        # Who begins otherwise speaks another version, or makes a mistake.
        if is_first and method == "initialize" and _is_greeting(params):
            self._version = params["protocolVersion"]
            self._lists = self._offer.lists_for(params["capabilities"])
            return self._offer.greeting(self._version)
        if is_first and _speaks_for_itself(params):
            self._version = ALONE
        if self._version == ALONE:
            return self._told_alone(method, params)
        if self._version and method in self._lists and _is_plain(params):
            return self._lists[method]
        return None

    def _told_alone(self, method: str, params: Json) -> Json | None:
        if not _speaks_for_itself(params):
            return None
        if method == "server/discover":
            return self._offer.discovery(ALONE)
        content = self._offer.lists_for(params["_meta"][_CAPABILITIES]).get(method)
        return content and self._offer.alone(content)


def _request(line: bytes) -> Json | None:
    """A request as the protocol writes it, else None."""
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict) or asked.get("jsonrpc") != "2.0":
        return None
    named = isinstance(asked.get("method"), str) and isinstance(asked.get("params", {}), dict)
    number = asked.get("id")
    counted = isinstance(number, int | str) and not isinstance(number, bool)
    return asked if named and counted else None


def _is_greeting(params: Json) -> bool:
    """Whether the library will accept it, as far as can be seen without it."""
    return (
        params.get("protocolVersion") in VERSIONS
        and _is_able(params.get("capabilities"))
        and _is_somebody(params.get("clientInfo"))
    )


def _is_somebody(client: Any) -> bool:
    return (
        isinstance(client, dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
    )


def _is_able(capabilities: Any) -> bool:
    return isinstance(capabilities, dict) and all(
        isinstance(told, dict) for told in capabilities.values()
    )


def _is_plain(params: Json, usual: frozenset[str] = _USUAL_META) -> bool:
    """Whether a list is asked for from its beginning, and nothing besides."""
    meta = params.get("_meta") or {}
    return params.keys() <= {"_meta"} and isinstance(meta, dict) and meta.keys() <= usual


def _speaks_for_itself(params: Json) -> bool:
    """Whether a request says all that a handshake would have said, and nothing unusual."""
    if not _is_plain(params, _OWN_META):
        return False
    meta = params.get("_meta") or {}
    return (
        meta.get(_VERSION) == ALONE
        and _is_able(meta.get(_CAPABILITIES))
        and _is_somebody(meta.get(_CLIENT))
    )
