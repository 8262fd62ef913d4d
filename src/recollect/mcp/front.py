"""Answers the first questions of a client while the protocol library is still loading.

Importing the library takes about as long as a client should wait for everything. What a
client asks first is fixed when the process starts: the greeting and the lists. They are
answered from here, byte for byte what the library would say, until it takes over; every
other message waits for it. The greeting is given to the library as well, so that it knows
whom it serves, and its own answer to that is dropped.
"""

from __future__ import annotations

import json
from typing import Any

from recollect.jsonable import Json
from recollect.mcp.offer import Offer

# In the versions before these the library leaves out fields of a tool.
VERSIONS = ("2025-06-18", "2025-11-25")
_USUAL_META = {"progressToken"}


class Front:
    """What a client may be told before the library is there."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._lists = offer.lists
        self._greeted = False
        self._is_first = True

    def reply(self, line: bytes) -> Json | None:
        """The answer to a line, or None where the library must give it."""
        asked = _request(line)
        if asked is None:
            return None
        is_first, self._is_first = self._is_first, False
        method, params = asked["method"], asked.get("params") or {}
        # Who begins otherwise speaks a version without a greeting, or makes a mistake.
        if is_first and method == "initialize" and _is_greeting(params):
            self._greeted = True
            self._lists = self._offer.lists_for(params["capabilities"])
            return _answer(asked, self._offer.greeting(params["protocolVersion"]))
        if self._greeted and method in self._lists and _is_plain(params):
            return _answer(asked, self._lists[method])
        return None


def _answer(asked: Json, content: Json) -> Json:
    return {"jsonrpc": "2.0", "id": asked["id"], "result": content}


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
    client: Any = params.get("clientInfo")
    return (
        params.get("protocolVersion") in VERSIONS
        and isinstance(params.get("capabilities"), dict)
        and isinstance(client, dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
    )


def _is_plain(params: Json) -> bool:
    """Whether a list is asked for from its beginning, and nothing besides."""
    meta = params.get("_meta") or {}
    return params.keys() <= {"_meta"} and isinstance(meta, dict) and meta.keys() <= _USUAL_META
