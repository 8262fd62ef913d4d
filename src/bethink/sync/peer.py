"""A sync with another machine directly: over ssh, or with a server.

Each side asks with what it has and some operations, and answers the same way; whoever logs in
is trusted, so that these operations carry no signatures.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from typing import IO, Any
from urllib.parse import urlsplit

from bethink.errors import BethinkError, Refused
from bethink.ports import Device, OpBatch
from bethink.sync.session import Syncing, SyncReport

Ask = Callable[[dict[str, Any]], dict[str, Any]]
PEER_OPS = 1_000  # operations of one request
_SECONDS = 600  # for one answer


def level_of(series: str) -> int:
    """Return the classification of a series of operations."""
    return int(series.partition(".")[2])


def answer(request: dict[str, Any], syncing: Syncing, *, ceiling: int) -> dict[str, Any]:
    """Take what another machine sends, and give what it lacks, up to a classification."""
    me = syncing.identity()
    try:
        vector = {str(series): int(upto) for series, upto in request["vector"].items()}
        device = _device(request["device"])
        ranges = {str(name): (int(a), int(b)) for name, (a, b) in request["ranges"].items()}
        batch = OpBatch(ranges, [str(line) for line in request["ops"]])
        given = [str(json.loads(line)[0]) for line in batch.ops]
        ceiling = min(ceiling, int(request["ceiling"]), syncing.store.sync.ceiling)
        levels = [level_of(series) for series in (*given, *ranges)]
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise Refused("this is no request of a sync") from error
    if any(level > ceiling for level in levels):
        raise Refused(f"only memories up to the classification {ceiling} are taken here")
    syncing.capture()
    syncing.store.sync.add_device(device)
    if batch.ranges:
        syncing.receive(batch)
    found = syncing.store.sync.read(vector, ceiling=ceiling, limit=PEER_OPS)
    return {
        "device": [me.id, me.name, me.public],
        "vector": syncing.store.sync.vector(ceiling),
        "ranges": found.ranges,
        "ops": found.ops,
        "ceiling": ceiling,
        "digest": "" if found.ranges else syncing.store.sync.digest(ceiling),
    }


def _device(said: Sequence[object]) -> Device:
    device, name, key = map(str, said)
    return Device(device, name, key, accepted=True)


def exchange(syncing: Syncing, ask: Ask, *, ceiling: int, name: str = "") -> SyncReport:
    """Ask and answer until neither side lacks anything."""
    me = syncing.identity(name)
    syncing.capture()
    batch = OpBatch({}, ())
    while True:
        vector = syncing.store.sync.vector(ceiling)
        device = [me.id, me.name, me.public]
        said = {"device": device, "vector": vector, "ceiling": ceiling, **batch._asdict()}
        told = ask(said)
        ceiling = min(ceiling, int(told["ceiling"]))
        syncing.store.sync.add_device(_device(told["device"]))
        syncing.report.sent += len(batch.ops)
        found = OpBatch(told["ranges"], told["ops"])
        if found.ranges:
            syncing.receive(found)
        batch = syncing.store.sync.read(told["vector"], ceiling=ceiling, limit=PEER_OPS)
        if not found.ranges and not batch.ranges:
            syncing.report.digest = told["digest"]
            return syncing.finish()


def serve_lines(source: IO[str], out: IO[str], respond: Ask) -> None:
    """Answer requests, one a line, until there are no more: the far end of ssh."""
    for line in source:
        try:
            told = respond(json.loads(line))
        except (BethinkError, ValueError) as error:
            told = {"error": str(error)}
        out.write(json.dumps(told) + "\n")
        out.flush()


class Ssh:
    """Another machine that one can log in to."""

    def __init__(self, url: str, space: str) -> None:
        """Start Bethink there; ``ssh://USER@HOST:PORT/COMMAND`` names another command."""
        parts = urlsplit(url)
        if not parts.hostname or parts.hostname.startswith("-"):
            raise Refused(f"{url} names no machine", remedy="ssh://desktop")
        who = f"{parts.username}@{parts.hostname}" if parts.username else parts.hostname
        port = ["-p", str(parts.port)] if parts.port else []
        program = parts.path.removeprefix("/") and parts.path
        command = [program or "bethink", "--space", space, "sync", "--stdio"]
        self._url = url
        self._process = subprocess.Popen(  # noqa: S603 - the program is ssh itself
            ["ssh", "-o", "BatchMode=yes", *port, "--", who, *command],  # noqa: S607
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            told: dict[str, Any] = json.loads(process.stdout.readline())
        except (OSError, ValueError) as error:
            raise Refused(
                f"{self._url} gives no answer; ssh says why above",
                remedy="log in there and run: bethink sync --stdio",
            ) from error
        if "error" in told:
            raise Refused(f"{self._url}: {told['error']}")
        return told

    def close(self) -> None:
        """End the program there."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_SECONDS)


def ask_server(url: str, token: str) -> Ask:
    """Return what asks a server, which a token with the right ``admin`` lets in."""
    address = f"{url.rstrip('/')}/v1/sync"
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        from urllib.error import HTTPError, URLError  # start-up time
        from urllib.request import Request, urlopen

        body = json.dumps(request).encode()
        try:
            asked = Request(address, body, headers)  # noqa: S310 - http and https only
            with urlopen(asked, timeout=_SECONDS) as reply:  # noqa: S310
                told: dict[str, Any] = json.load(reply)
        except HTTPError as error:
            raise Refused(f"{url}: {_said(error.read())}") from error
        except (URLError, OSError, ValueError) as error:
            raise Refused(f"{url} gives no answer: {error}") from error
        return told

    return ask


def _said(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "it refuses"
