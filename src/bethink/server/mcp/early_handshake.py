"""Answers to the first requests of a client while the MCP library is still loading.

Importing the library takes about as long as a client should wait for everything. What a
client requests first is fixed when the process starts: the handshake and the lists. They are
answered from here, field for field as the library would, until it takes over; every other
message waits for it. The first request is passed to the library as well, so that it knows
its client, and the library's own answer to it is dropped.
"""

from __future__ import annotations

import json
from typing import Any

from bethink.core.json_values import Json
from bethink.server.mcp.manifest import ServerManifest

# Versions with a handshake; for older ones the library omits fields of a tool.
HANDSHAKE_VERSIONS = ("2025-06-18", "2025-11-25")
# Versions without: every request names its client in these fields.
STATELESS_VERSION = "2026-07-28"
_META_PREFIX = "io.modelcontextprotocol/"
_VERSION_KEY, _CLIENT_KEY, _CAPABILITIES_KEY = (
    f"{_META_PREFIX}{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
)
_COMMON_META = frozenset({"progressToken"})
_STATELESS_META = _COMMON_META | {_VERSION_KEY, _CLIENT_KEY, _CAPABILITIES_KEY}


class EarlyHandshake:
    """Answers the handshake and list requests before the MCP library is loaded."""

    def __init__(self, manifest: ServerManifest) -> None:
        self.first_request_id: int | str | None = (
            None  # the request that the library must receive, too
        )
        self._manifest = manifest
        self._lists = manifest.lists
        self._version = ""
        self._is_first = True

    @property
    def is_initialized(self) -> bool:
        """Whether an `initialize` request was answered; all that follows depends on it."""
        return self._version in HANDSHAKE_VERSIONS

    def reply(self, line: bytes) -> Json | None:
        """Return the answer to a line, or None if the library must give it."""
        request = _parse_request(line)
        if request is None:
            return None
        is_first, self._is_first = self._is_first, False
        content = self._content(request["method"], request.get("params") or {}, is_first=is_first)
        if content is None:
            return None
        if is_first:
            self.first_request_id = request["id"]
        return {"jsonrpc": "2.0", "id": request["id"], "result": content}

    def _content(self, method: str, params: Json, *, is_first: bool) -> Json | None:
        # Any other first message is of another version, or an error.
        if is_first and method == "initialize" and _is_initialize(params):
            self._version = params["protocolVersion"]
            self._lists = self._manifest.lists_for(params["capabilities"])
            return self._manifest.initialize_result(self._version)
        if is_first and _is_stateless(params):
            self._version = STATELESS_VERSION
        if self._version == STATELESS_VERSION:
            return self._stateless_content(method, params)
        if self._version and method in self._lists and _is_plain_list(params):
            return self._lists[method]
        return None

    def _stateless_content(self, method: str, params: Json) -> Json | None:
        if not _is_stateless(params):
            return None
        if method == "server/discover":
            return self._manifest.discover_result(STATELESS_VERSION)
        content = self._manifest.lists_for(params["_meta"][_CAPABILITIES_KEY]).get(method)
        return content and self._manifest.stateless_result(content)


def _parse_request(line: bytes) -> Json | None:
    """Parse a line as a JSON-RPC request; None if it is not one."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
        return None
    named = isinstance(request.get("method"), str) and isinstance(request.get("params", {}), dict)
    number = request.get("id")
    counted = isinstance(number, int | str) and not isinstance(number, bool)
    return request if named and counted else None


def _is_initialize(params: Json) -> bool:
    """Check whether the library will accept these `initialize` parameters."""
    return (
        params.get("protocolVersion") in HANDSHAKE_VERSIONS
        and _is_capabilities(params.get("capabilities"))
        and _is_client_info(params.get("clientInfo"))
    )


def _is_client_info(client: Any) -> bool:
    return (
        isinstance(client, dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
    )


def _is_capabilities(capabilities: Any) -> bool:
    return isinstance(capabilities, dict) and all(
        isinstance(value, dict) for value in capabilities.values()
    )


def _is_plain_list(params: Json, allowed_meta: frozenset[str] = _COMMON_META) -> bool:
    """Check whether a list is requested from its start, with no unusual metadata."""
    meta = params.get("_meta") or {}
    return params.keys() <= {"_meta"} and isinstance(meta, dict) and meta.keys() <= allowed_meta


def _is_stateless(params: Json) -> bool:
    """Check whether a request carries all handshake data itself, and nothing unusual."""
    if not _is_plain_list(params, _STATELESS_META):
        return False
    meta = params.get("_meta") or {}
    return (
        meta.get(_VERSION_KEY) == STATELESS_VERSION
        and _is_capabilities(meta.get(_CAPABILITIES_KEY))
        and _is_client_info(meta.get(_CLIENT_KEY))
    )
