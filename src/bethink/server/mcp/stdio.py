"""MCP over standard input and output, a message a line, answered without the MCP library.

Loading the library takes three times as long as a recall. The descriptors 0 and 1 are moved
away: what a dependency prints goes to standard error, and what it reads is empty.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from threading import Event, Lock, Thread, Timer
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from bethink.core.json_values import Json
from bethink.core.lazy import BackgroundCall, Lazy
from bethink.core.named_tuple import NamedTuple
from bethink.core.once import count_once
from bethink.render.quoting import one_line
from bethink.server.mcp import requests
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.mcp.view import client_supports_views
from bethink.server.mcp.worker_calls import call_json

if TYPE_CHECKING:
    from bethink.server.tools.calls import ToolExecutor
    from bethink.server.tools.tool import Reply, Tool

MAX_LINE_BYTES = 16 << 20  # of one message; the largest import is by far smaller
_MAX_DEPTH = 100  # of nested lists and objects; the library gives up at 200
_MAX_DIGITS = 400  # more are beyond all numbers of a program
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
# The id of a message that cannot be parsed: next to "jsonrpc", where libraries usually place it.
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[\w.:-]{1,64}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_AT_ENDS = re.compile(
    rb"^\s*\{\s*(?:%(version)s\s*,\s*)?%(id)s|%(version)s\s*,\s*%(id)s\s*\}?\s*$"
    rb"|%(id)s\s*,\s*%(version)s\s*\}?\s*$" % {b"version": _VERSION, b"id": _ID}
)
_ENDS_BYTES = 400


class _BeyondBounds(Exception):
    """A message has a number that no program can use."""


def find_fault(line: bytes) -> Json | None:
    """Return the error that answers a line which is no message; None for all others.

    Every request is answered: one that is no JSON, no request, or that holds what no text or
    number of a program can be.
    """
    try:
        message = json.loads(
            line.decode("utf-8"), parse_int=_parse_int, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError, _BeyondBounds) as error:
        code, what = next(fault[1:] for fault in _PARSE_FAULTS if isinstance(error, fault[0]))
        return _error(_find_id(line), code, what)
    if not isinstance(message, dict):
        return _error(None, _INVALID_REQUEST, "a message is one JSON object")
    if "method" not in message and ("result" in message or "error" in message):
        return None  # the client's answer to a request of ours
    return _find_request_fault(message)


_PARSE_FAULTS: tuple[tuple[type[Exception], int, str], ...] = (
    (UnicodeDecodeError, _PARSE_ERROR, "the message is not UTF-8"),
    (RecursionError, _PARSE_ERROR, "the message is nested too deeply"),
    (_BeyondBounds, requests.INVALID_PARAMS, "a number is beyond all bounds"),
    (ValueError, _PARSE_ERROR, "the message is not JSON"),
)


def _find_request_fault(message: Json) -> Json | None:
    number = message.get("id")
    has_id = _is_id(number)
    if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return _error(number if has_id else None, _INVALID_REQUEST, "the message is no request")
    if "id" in message and not has_id:
        return _error(None, _INVALID_REQUEST, "the id of a request is a whole number or a text")
    if not has_id:
        return None  # a notification has no answer
    if not isinstance(message.get("params", {}), dict):
        return _error(number, requests.INVALID_PARAMS, "params must be an object")
    wrong = _find_unusable(message)
    return _error(number, requests.INVALID_PARAMS, wrong) if wrong else None


def _find_unusable(message: Json) -> str:
    """Return what is wrong with the values of a message; empty where nothing is."""
    pending: list[tuple[Any, int]] = [(message, 0)]
    while pending:
        value, depth = pending.pop()
        if depth > _MAX_DEPTH:
            return "the message is nested too deeply"
        if isinstance(value, str) and not _is_encodable(value):
            return "a text holds half a character (a lone surrogate)"
        if isinstance(value, dict):
            pending += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            pending += [(part, depth + 1) for part in value]
    return ""


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _parse_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _BeyondBounds
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _find_id(line: bytes) -> int | str | None:
    """Return the id of a message that cannot be parsed, where its place shows it."""
    for end in (line[:_ENDS_BYTES], line[-_ENDS_BYTES:]):
        found = _ID_AT_ENDS.search(end)
        if found:
            written = next(group for group in found.groups() if group)
            number: int | str = json.loads(written)
            return number
    return None


def _error(number: int | str | None, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


# Versions with a handshake, the newest last.
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# Versions without: every request names its client in these fields.
STATELESS_VERSION = "2026-07-28"
_VERSION_KEY, _CLIENT_KEY, _CAPABILITIES_KEY = (
    f"io.modelcontextprotocol/{name}"
    for name in ("protocolVersion", "clientInfo", "clientCapabilities")
)
_UNSUPPORTED_VERSION = -32022
_MAX_RUNNING = 40  # calls at a time, each in threads of its own; the others wait
LINGER_S = 1.5  # grace period for running calls after the end of input


class Pipe(NamedTuple):
    """The streams that MCP messages are read from and written to."""

    reader: BinaryIO
    writer: BinaryIO


def take_over_stdio() -> Pipe:
    """Move descriptors 0 and 1 away for MCP and leave harmless ones in their place."""
    sys.stdout.flush()
    come, go = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Pipe(os.fdopen(come, "rb"), os.fdopen(go, "wb"))


class Asker(NamedTuple):
    """The client that asks: its name, for the provenance of what it writes, and what it can."""

    client: str
    capabilities: Mapping[str, object]
    is_stateless: bool = False


def _parse_asker(client: Any, capabilities: Any, *, is_stateless: bool) -> Asker:
    is_named = isinstance(client, dict) and all(
        isinstance(client.get(name), str) for name in ("name", "version")
    )
    is_capable = isinstance(capabilities, dict) and all(
        isinstance(value, dict) for value in capabilities.values()
    )
    if not is_capable or not (is_named or (is_stateless and client is None)):
        raise requests.invalid_params()
    return Asker(one_line(client["name"], 60) if client else "", capabilities, is_stateless)


def _ask_nobody(_: Json, __: float) -> None:
    """Leave every call to the server itself."""


class StdioServer:
    """One conversation. Reads are asked of the worker first; ``executor`` is made when needed."""

    def __init__(
        self,
        pipe: Pipe,
        manifest: ServerManifest,
        executor: Callable[[], ToolExecutor],
        *,
        timeout_s: float = requests.READ_TIMEOUT_S,
        ask_worker: Callable[[Json, float], Json | None] = _ask_nobody,
        exit_process: Callable[[int], None] = os._exit,
    ) -> None:
        self._pipe, self._manifest, self._executor = pipe, manifest, Lazy(executor)
        self._timeout_s, self._ask_worker = timeout_s, ask_worker
        self._exit_process = exit_process
        self._asker: Asker | None = None  # who shook hands
        self._writing, self._lock = Lock(), Lock()
        self._wanted: set[int | str] = set()  # ids of calls whose answer is waited for
        self._waiting: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = Event()
        self._idle.set()

    def run(self, begin: Callable[[], None]) -> None:
        """Answer until the input ends; ``begin`` is called once the client has said something."""
        begun: BackgroundCall[None] | None = None
        for line in self._read_lines():
            try:
                self._take(line)
            except Exception as error:  # noqa: BLE001 - one line must not silence the server
                from bethink.server.tools.calls import log_bug  # after the handshake

                fault = log_bug("a message", error)
                self._say(_error(_find_id(line), requests.INTERNAL_ERROR, fault))
            begun = begun or BackgroundCall(begin)
        # A call that does not end must not keep the process alive: its writes are durable.
        timer = Timer(LINGER_S, self._exit_process, (0,))
        timer.daemon = True
        timer.start()
        self._idle.wait(LINGER_S)

    def _read_lines(self) -> Iterator[bytes]:
        """Yield the lines that are not empty; of one that is too long only its ends."""
        while line := self._pipe.reader.readline(MAX_LINE_BYTES):
            start = line[:_ENDS_BYTES]
            while len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
                end, line = line, self._pipe.reader.readline(MAX_LINE_BYTES)
                if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
                    line = start + b"..." + (end + line)[-_ENDS_BYTES:]
                    break
            if line.strip():
                yield line

    def _take(self, line: bytes) -> None:
        fault = find_fault(line)
        if fault is not None:
            self._say(fault)
            return
        message: Json = json.loads(line)
        method, params = message.get("method"), message.get("params")
        if method == "notifications/cancelled" and isinstance(params, dict):
            wanted = params.get("requestId")
            if _is_id(wanted):  # a cancelled call goes on, but is not answered
                with self._lock:
                    self._wanted.discard(wanted)
        elif method is not None and "id" in message:
            self._answer(message["id"], method, params or {})

    def _answer(self, number: int | str, method: str, params: Json) -> None:
        try:
            asker = self._identify(method, params)
            content = self._content(method, params, asker)
        except requests.Fault as fault:
            self._say({"jsonrpc": "2.0", "id": number, "error": fault.to_json()})
            return
        if content is not None:
            self._say(self._result(number, method, content, asker))
            return
        with self._lock:
            self._wanted.add(number)
            self._idle.clear()
            self._waiting.append(partial(self._work, number, method, params, asker))
            is_started = self._threads < _MAX_RUNNING
            self._threads += is_started
        if is_started:
            Thread(target=self._work_off, name="bethink-call", daemon=True).start()

    def _identify(self, method: str, params: Json) -> Asker:
        """Return who asks: as the request says or, where it says nothing, who shook hands."""
        meta = params.get("_meta") or {}
        if not isinstance(meta, dict):
            raise requests.invalid_params()
        if _VERSION_KEY in meta:
            supported = {"supported": [STATELESS_VERSION]}
            if meta[_VERSION_KEY] != STATELESS_VERSION or method == "initialize":
                told = supported | {"requested": meta[_VERSION_KEY]}
                raise requests.Fault(_UNSUPPORTED_VERSION, "Unsupported protocol version", told)
            client, capabilities = meta.get(_CLIENT_KEY), meta.get(_CAPABILITIES_KEY)
            return _parse_asker(client, capabilities, is_stateless=True)
        if method == "initialize":
            client, capabilities = params.get("clientInfo"), params.get("capabilities")
            self._asker = _parse_asker(client, capabilities, is_stateless=False)
        if self._asker is None and method != "ping":
            raise requests.invalid_params()
        return self._asker or Asker("", {})

    def _content(self, method: str, params: Json, asker: Asker) -> Json | None:
        """Return the result of what is fixed when the process starts; None where work is needed."""
        if method == "initialize":
            version = params.get("protocolVersion")
            if not isinstance(version, str):
                raise requests.invalid_params()
            known = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
            return self._manifest.initialize_result(known)
        if method == "ping":
            return {}
        if method == "server/discover" and asker.is_stateless:
            return self._manifest.discover_result(STATELESS_VERSION)
        lists = self._manifest.lists_for(asker.capabilities)
        if method in lists and isinstance(params.get("cursor", ""), str):
            return lists[method]
        if method in lists or (method == "tools/call" and not _is_call(params)):
            raise requests.invalid_params()
        if method == "tools/call" and params["name"] not in self._manifest.tools:
            raise requests.unknown_tool(params["name"], self._manifest.tools)
        if method != "tools/call" and method not in requests.READS:
            raise requests.Fault(requests.METHOD_NOT_FOUND, "Method not found", method)
        return None

    def _result(self, number: int | str, method: str, content: Json, asker: Asker) -> Json:
        if asker.is_stateless:
            content = self._manifest.stateless_result(method, content)
        return {"jsonrpc": "2.0", "id": number, "result": content}

    def _work_off(self) -> None:
        """Do what waits, one after the other, until nothing does."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    if not self._threads:
                        self._idle.set()
                    return
                work = self._waiting.popleft()
            work()

    def _work(self, number: int | str, method: str, params: Json, asker: Asker) -> None:
        try:
            is_call = method == "tools/call"
            content = self._call(params, asker) if is_call else self._read(method, params)
            told = self._result(number, method, content, asker)
        except requests.Fault as fault:
            told = {"jsonrpc": "2.0", "id": number, "error": fault.to_json()}
        with self._lock:
            is_wanted = number in self._wanted
            self._wanted.discard(number)
        if is_wanted:
            self._say(told)

    def _read(self, method: str, params: Json) -> Json:
        """Return a resource, a prompt or completions."""

        def work() -> Json:
            executor = self._executor()
            principal = executor.default_principal
            memory = partial(executor.memory_for, principal)
            return requests.READS[method](params, principal, memory, self._manifest)

        try:
            return BackgroundCall(work).result(self._timeout_s)
        except Exception as error:
            raise requests.read_fault(error, self._timeout_s) from error

    def _call(self, params: Json, asker: Asker) -> Json:
        tool, arguments = self._manifest.tools[params["name"]], params.get("arguments") or {}
        draws = client_supports_views(asker.capabilities)
        call = call_json(tool, arguments, asker.client, supports_views=draws)
        token = (params.get("_meta") or {}).get("progressToken")

        def progress(done: int, total: int) -> None:
            report = {"progressToken": token, "progress": float(done)}
            report |= {"total": float(total)} if total else {}
            self._say({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})

        begun = monotonic()
        try:
            # Only writes report progress.
            told = self._ask_worker(call, self._timeout_s) if tool.read_only else None
            if told is not None and "reply" in told:
                return requests.reply_content(**told["reply"])
            if told is not None:
                return requests.error_content(*told["error"])
            # A write has no timeout here: the store's own limits end it.
            left_s = self._timeout_s - (monotonic() - begun) if tool.read_only else None
            work = partial(self._run_here, tool, call, progress if _is_id(token) else None)
            reply: Reply = BackgroundCall(work).result(left_s)
        except Exception as error:  # noqa: BLE001 - a bug is logged, and reported by its type
            return requests.failed_content(error, tool.name, self._timeout_s)
        return requests.reply_content(*reply)

    def _run_here(
        self, tool: Tool, call: Json, progress: Callable[[int, int], None] | None
    ) -> Reply:
        """Run a call in this process; the worker may have run it, and its answer been lost."""
        from bethink.server.tools.calls import ToolRequest  # after the handshake

        executor = self._executor()
        request = ToolRequest(
            tool,
            call["arguments"],
            executor.default_principal,
            client=call["client"],
            supports_views=call["views"],
        )
        if progress is not None:
            request = replace(request, progress=progress)
        with count_once(call["id"]):
            return executor(request)

    def _say(self, message: Json) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n"
        with self._writing:
            try:
                self._pipe.writer.write(line.encode("utf-8", "backslashreplace"))
                self._pipe.writer.flush()
            except BrokenPipeError:
                self._exit_process(0)  # the client is gone


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _is_call(params: Json) -> bool:
    has_arguments = isinstance(params.get("arguments") or {}, dict)
    return isinstance(params.get("name"), str) and has_arguments
