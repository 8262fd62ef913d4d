"""Standard input and output reserved for MCP messages, one a line; parent watchdog.

The descriptors 0 and 1 are moved away: what a dependency prints goes to standard error, and
what it reads is empty. The process exits when its parent is gone, even if the pipe is open.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from bethink.core.json_values import Json
from bethink.core.lazy import BackgroundCall, Lazy
from bethink.core.named_tuple import NamedTuple
from bethink.core.once import count_once
from bethink.errors import BethinkError
from bethink.render.quoting import one_line
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.mcp.view import client_supports_views
from bethink.server.mcp.worker_calls import call_json
from bethink.server.tools.answers import in_tool_words

if TYPE_CHECKING:
    from bethink.server.tools.calls import ToolExecutor
    from bethink.server.tools.tool import Reply, Tool

MAX_LINE_BYTES = 16 << 20  # of one message; the largest import is by far smaller
_MAX_DEPTH = 100  # of nested lists and objects; the library gives up at 200
_MAX_DIGITS = 400  # more are beyond all numbers of a program
_PARSE_ERROR, _INVALID_REQUEST, _INVALID_PARAMS, _INTERNAL_ERROR = -32700, -32600, -32602, -32603
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
    """Return the error that answers a line which the library would drop; None for all others.

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
    (_BeyondBounds, _INVALID_PARAMS, "a number is beyond all bounds"),
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
        return _error(number, _INVALID_PARAMS, "params must be an object")
    wrong = _find_unusable(message)
    return _error(number, _INVALID_PARAMS, wrong) if wrong else None


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
    """Answers the first requests of a client while the MCP library is still loading.

    Importing the library takes about as long as a client should wait for everything. What a
    client requests first is fixed when the process starts: the handshake and the lists. They
    are answered from here, field for field as the library would, until it takes over; every
    other message waits for it. The first request is passed to the library as well, so that
    it knows its client, and the library's own answer to it is dropped.
    """

    def __init__(self, manifest: ServerManifest) -> None:
        # The request that the library must receive, too.
        self.first_request_id: int | str | None = None
        self._manifest = manifest
        self._lists = manifest.lists
        self._version = ""
        self._is_first = True
        self.tools = manifest.tools
        self.client = ""  # its name, for the provenance of what it writes
        self.supports_views = False

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

    def is_plain_call(self, params: Json) -> bool:
        """Whether the parameters of `tools/call` are in the usual form, for a tool of ours."""
        meta = params.get("_meta") or {}
        return (
            params.keys() <= _CALL_FIELDS
            and isinstance(params.get("name"), str)
            and params["name"] in self.tools
            and isinstance(params.get("arguments") or {}, dict)
            and isinstance(meta, dict)
            and not any(key.startswith(_META_PREFIX) for key in meta)
            and (meta.get("progressToken") is None or _is_id(meta["progressToken"]))
        )

    def _content(self, method: str, params: Json, *, is_first: bool) -> Json | None:
        # Any other first message is of another version, or an error.
        if is_first and method == "initialize" and _is_initialize(params):
            self._version = params["protocolVersion"]
            self._lists = self._manifest.lists_for(params["capabilities"])
            self.client = one_line(params["clientInfo"]["name"], 60)
            self.supports_views = client_supports_views(params["capabilities"])
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
    return request if named and _is_id(request.get("id")) else None


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


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


READ_TIMEOUT_S = 10.0
_MAX_RUNNING = 40  # calls at a time, each in threads of its own; the library has as many
ERROR_KIND_KEY = "bethink/error"  # key in the `_meta` of an error: its kind, as on the command line
_CALL_FIELDS = frozenset({"name", "arguments", "_meta"})


def error_content(message: str, remedy: str, kind: str) -> Json:
    """Return the result of a failed call: a message for the model, the kind for programs."""
    full_message = one_line(message, 500) + (f". Try: {one_line(remedy, 1000)}" if remedy else "")
    text = {"type": "text", "text": in_tool_words(full_message)}
    return {"content": [text], "isError": True, "_meta": {ERROR_KIND_KEY: kind}}


def too_slow_content(name: str, timeout_s: float) -> Json:
    """Return the result of a read that took too long."""
    message = f"{name} took longer than {timeout_s:g} seconds"
    remedy = "try again, with fewer memories or a narrower question"
    return error_content(message, remedy, "TooSlow")


def _ask_nobody(_: Json, __: float) -> None:
    """Leave every call to the server itself."""


class EarlyCalls:
    """Answers tool calls while nothing has needed the MCP library yet.

    Loading the library takes three times as long as a recall, and most clients never send
    anything but calls. They are answered from here, field for field as the library would; the
    first other request loads it, and from then on everything is its own.
    """

    def __init__(
        self,
        executor: Callable[[], ToolExecutor],
        *,
        timeout_s: float = READ_TIMEOUT_S,
        ask_worker: Callable[[Json, float], Json | None] = _ask_nobody,
    ) -> None:
        self._executor, self._timeout_s = Lazy(executor), timeout_s
        self._ask_worker = ask_worker
        self._lock = Lock()
        self._running: set[int | str] = set()
        self._idle = Event()
        self._idle.set()

    def take(self, line: bytes, handshake: EarlyHandshake, send: Callable[[Json], None]) -> bool:
        """Answer a line, in a thread of its own; False if the library must do it."""
        if not handshake.is_initialized:
            return False
        request = _parse_request(line)
        if request is None:
            return self._cancel(line)
        number, params = request["id"], request.get("params") or {}
        if request["method"] == "ping" and not params:
            send({"jsonrpc": "2.0", "id": number, "result": {}})
            return True
        if request["method"] != "tools/call" or not handshake.is_plain_call(params):
            return False
        with self._lock:
            if number in self._running or len(self._running) >= _MAX_RUNNING:
                return False
            self._running.add(number)
            self._idle.clear()
        run = partial(self._run, number, params, handshake, send)
        Thread(target=run, name="bethink-call", daemon=True).start()
        return True

    def wait(self, timeout_s: float) -> None:
        """Wait for the calls that are running, but no longer than this."""
        self._idle.wait(timeout_s)

    def _cancel(self, line: bytes) -> bool:
        """Take a cancellation of a call of ours: it goes on, but is not answered."""
        message: Json = json.loads(line)
        params = message.get("params")
        wanted = params.get("requestId") if isinstance(params, dict) else None
        if message.get("method") != "notifications/cancelled" or not _is_id(wanted):
            return False
        with self._lock:
            known = wanted in self._running
            self._running.discard(wanted)
        return known

    def _run(
        self,
        number: int | str,
        params: Json,
        handshake: EarlyHandshake,
        send: Callable[[Json], None],
    ) -> None:
        content = self._call(params, handshake, send)
        with self._lock:
            is_wanted = number in self._running
            self._running.discard(number)
        if is_wanted:
            send({"jsonrpc": "2.0", "id": number, "result": content})
        with self._lock:
            if not self._running:
                self._idle.set()

    def _call(self, params: Json, handshake: EarlyHandshake, send: Callable[[Json], None]) -> Json:
        tool, arguments = handshake.tools[params["name"]], params.get("arguments") or {}
        call = call_json(tool, arguments, handshake.client, supports_views=handshake.supports_views)
        token = (params.get("_meta") or {}).get("progressToken")

        def progress(done: int, total: int) -> None:
            report = {"progressToken": token, "progress": float(done)}
            report |= {"total": float(total)} if total else {}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})

        begun = monotonic()
        try:
            # Only writes report progress.
            told = self._ask_worker(call, self._timeout_s) if tool.read_only else None
            if told is not None:
                return (
                    _reply_content(**told["reply"])
                    if "reply" in told
                    else error_content(*told["error"])
                )
            # A write has no timeout here: the store's own limits end it.
            left_s = self._timeout_s - (monotonic() - begun) if tool.read_only else None
            work = partial(self._run_here, tool, call, progress if token is not None else None)
            reply: Reply = BackgroundCall(work).result(left_s)
        except BethinkError as error:
            return error_content(error.message, error.remedy, type(error).__name__)
        except TimeoutError:
            return too_slow_content(tool.name, self._timeout_s)
        except Exception as error:  # noqa: BLE001 - logged, and reported by its type
            from bethink.server.tools.calls import log_bug  # after the handshake

            return error_content(log_bug(f"the tool {tool.name}", error), "please report it", "Bug")
        return _reply_content(*reply)

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


def _reply_content(text: str, content: Json, meta: Json | None) -> Json:
    told: Json = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": content,
        "isError": False,
    }
    return told if meta is None else told | {"_meta": meta}


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


class StdioBridge:
    """Both directions of one conversation: lines are answered early or queued for the library."""

    def __init__(
        self,
        pipe: Pipe,
        handshake: EarlyHandshake,
        exit_process: Callable[[int], None] = os._exit,
        calls: EarlyCalls | None = None,
    ) -> None:
        self._pipe, self._handshake, self._exit_process = pipe, handshake, exit_process
        self._calls = calls
        self._stirred, self._awaited = Event(), Event()
        self._is_needed = False
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._taken_over = Event()
        self._finished = Event()
        self._lock = Lock()
        self._answered: set[int | str] = set()

    def start(self) -> None:
        """Start reading in a thread."""
        Thread(target=self._read_loop, name="bethink-lines", daemon=True).start()

    def wait_for_client(self) -> None:
        """Wait until the client has said something."""
        self._stirred.wait()

    def wait_for_need(self) -> bool:
        """Wait for a request that the library must answer; False at the end of input."""
        self._awaited.wait()
        return self._is_needed

    def finish(self) -> None:
        """Signal that everything is done and the process may exit by itself."""
        self._finished.set()

    def _read_loop(self) -> None:
        for line in self._read_lines():
            try:
                self._take_line(line)
            except Exception as error:  # noqa: BLE001 - one line must not silence the server
                from bethink.server.tools.calls import log_bug  # after the handshake

                self._say(_error(_find_id(line), _INTERNAL_ERROR, log_bug("a message", error)))
        self._queue.put(b"")
        self._stirred.set()
        self._awaited.set()
        # A call that does not end must not keep the process alive: its writes are durable.
        if not self._finished.wait(LINGER_S):
            self._exit_process(0)

    def _take_line(self, line: bytes) -> None:
        """Answer a line, or queue it for the library."""
        fault = find_fault(line)
        is_early = not self._taken_over.is_set()
        if fault is not None:
            self._say(fault)
        elif is_early and self._calls and self._calls.take(line, self._handshake, self._say):
            return
        elif is_early and (reply := self._handshake.reply(line)) is not None:
            if reply["id"] == self._handshake.first_request_id:
                self._answered.add(reply["id"])
                self._queue.put(line)
            self._say(reply)
            self._stirred.set()
        else:
            self._queue.put(line)
            if is_early and _parse_request(line) is not None:
                self._is_needed = True
                self._awaited.set()
            self._stirred.set()

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

    def read(self) -> str:
        """Return the next line for the library; empty at the end of input."""
        self._taken_over.set()
        return self._queue.get().decode("utf-8")

    def write(self, line: str) -> None:
        """Write one message of the library, dropping its duplicate handshake answer."""
        if not (self._answered and self._is_duplicate_reply(line)):
            self._send(line)

    def _say(self, message: Json) -> None:
        self._send(json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n")

    def _send(self, line: str) -> None:
        with self._lock:
            try:
                self._pipe.writer.write(line.encode("utf-8", "backslashreplace"))
                self._pipe.writer.flush()
            except BrokenPipeError:
                self._exit_process(0)  # the client is gone

    def _is_duplicate_reply(self, line: str) -> bool:
        message: Json = json.loads(line)
        if message.get("id") not in self._answered or "method" in message:
            return False
        self._answered.discard(message["id"])
        if "error" in message and self._handshake.is_initialized:
            sys.stderr.write(f"bethink mcp: the client's initialize request was refused: {line}")
            self._exit_process(1)
        return True


class BridgeInput(io.TextIOWrapper):
    """Text stream from which the library reads its input."""

    def __init__(self, bridge: StdioBridge) -> None:
        super().__init__(io.BytesIO())
        self._lines = bridge

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        return self._lines.read()


class BridgeOutput(io.TextIOWrapper):
    """Text stream to which the library writes its output."""

    def __init__(self, bridge: StdioBridge) -> None:
        super().__init__(io.BytesIO())
        self._lines = bridge

    def write(self, text: str, /) -> int:
        self._lines.write(text)
        return len(text)
