"""Requests of MCP as JSON: what is read, what a call returns, what failed.

The server over standard input and output sends it as it is, the one over HTTP by the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from bethink.access.policy import Principal, require
from bethink.core.json_values import Json
from bethink.errors import BethinkError
from bethink.render.quoting import one_line
from bethink.server.mcp.manifest import (
    ServerManifest,
    complete_argument,
    read_resource,
    render_prompt,
    resource_operation,
)
from bethink.server.mcp.view import MIME, URI, VIEW_META, render_page
from bethink.server.tools.answers import in_tool_words
from bethink.server.tools.catalog import LIST_ENTITIES

if TYPE_CHECKING:
    from bethink.memory import Memory

READ_TIMEOUT_S = 10.0
ERROR_KIND_KEY = "bethink/error"  # key in the `_meta` of an error: its kind, as on the command line
METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32601, -32602, -32603


class Fault(Exception):
    """An error of the protocol: its code, its message and further data."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def to_json(self) -> Json:
        """Return the error of an answer."""
        more = {} if self.data is None else {"data": self.data}
        return {"code": self.code, "message": self.message, **more}


def invalid_params() -> Fault:
    """Return the error of a request whose parameters are not those of its method."""
    return Fault(INVALID_PARAMS, "Invalid request parameters", "")


def unknown_tool(name: str, known: Iterable[str]) -> Fault:
    """Return the error of a call of a tool that there is not."""
    shown = one_line(repr(name), 80)
    return Fault(INVALID_PARAMS, f"there is no tool {shown}; there are: {', '.join(known)}")


def read_fault(error: Exception, timeout_s: float) -> Fault:
    """Return the error of a read that failed; of a bug only its type is shown."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, BethinkError):
        remedy = f". Try: {one_line(error.remedy)}" if error.remedy else ""
        message = in_tool_words(one_line(error.message) + remedy)
        return Fault(INVALID_PARAMS, message, {"kind": type(error).__name__})
    if isinstance(error, TimeoutError):
        return Fault(INTERNAL_ERROR, f"it took longer than {timeout_s:g} seconds")
    from bethink.server.tools.calls import log_bug  # after the handshake

    return Fault(INTERNAL_ERROR, log_bug("a resource or a prompt", error))


def failed_content(error: Exception, tool: str, timeout_s: float) -> Json:
    """Return the result of a call that failed; of a bug only its type is shown."""
    if isinstance(error, BethinkError):
        return error_content(error.message, error.remedy, type(error).__name__)
    if isinstance(error, TimeoutError):
        message = f"{tool} took longer than {timeout_s:g} seconds"
        remedy = "try again, with fewer memories or a narrower question"
        return error_content(message, remedy, "TooSlow")
    from bethink.server.tools.calls import log_bug  # after the handshake

    return error_content(log_bug(f"the tool {tool}", error), "please report it", "Bug")


def error_content(message: str, remedy: str, kind: str) -> Json:
    """Return the result of a failed call: a message for the model, the kind for programs."""
    full_message = one_line(message, 500) + (f". Try: {one_line(remedy, 1000)}" if remedy else "")
    text = {"type": "text", "text": in_tool_words(full_message)}
    return {"content": [text], "isError": True, "_meta": {ERROR_KIND_KEY: kind}}


def reply_content(text: str, content: Json, meta: Json | None) -> Json:
    """Return the result of a call."""
    told: Json = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": content,
        "isError": False,
    }
    return told if meta is None else told | {"_meta": meta}


def _read_resource(
    params: Json, principal: Principal, memory: Callable[[], Memory], _: ServerManifest
) -> Json:
    uri = _text(params, "uri")
    require(principal, resource_operation(uri))
    if uri == URI:
        view = {"uri": uri, "mimeType": MIME, "text": render_page(), "_meta": VIEW_META}
        return {"contents": [view]}
    found = read_resource(uri, memory())
    return {"contents": [{"uri": uri, "mimeType": found.mime, "text": found.text}]}


def _get_prompt(
    params: Json, principal: Principal, memory: Callable[[], Memory], manifest: ServerManifest
) -> Json:
    name, prompts = _text(params, "name"), manifest.prompts
    arguments = params.get("arguments") or {}
    if not isinstance(arguments, dict) or not all(isinstance(v, str) for v in arguments.values()):
        raise invalid_params()
    if name in prompts:
        require(principal, prompts[name].operation or f"prompt {name}")
    text = render_prompt(name, arguments, memory, prompts)
    said = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompts[name].description, "messages": [said]}


def _complete(
    params: Json, principal: Principal, memory: Callable[[], Memory], _: ServerManifest
) -> Json:
    ref, argument = params.get("ref"), params.get("argument")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        raise invalid_params()
    target = _text(ref, "name" if ref.get("type") == "ref/prompt" else "uri")
    name, value = _text(argument, "name"), _text(argument, "value")
    require(principal, LIST_ENTITIES.name)
    names, has_more = complete_argument(target, name, value, memory())
    return {"completion": {"values": [one_line(one) for one in names], "hasMore": has_more}}


def _text(params: Mapping[str, object], name: str) -> str:
    if isinstance(value := params.get(name), str):
        return value
    raise invalid_params()


READS = {
    "resources/read": _read_resource,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
}
