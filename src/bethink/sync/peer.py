"""A sync with another machine directly: over ssh, or with a server.

Each side asks with what it has and some operations, and answers the same way. A peer that logs in
is trusted, so that these operations carry no signatures.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any
from urllib.parse import urlsplit

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BethinkError, Refused
from bethink.ports import Device, OpBatch, is_span
from bethink.sync.session import Syncing, SyncReport

Ask = Callable[[Json], Json]
PEER_OPS = 1_000  # operations of one request
_SECONDS = 600  # for one answer


def level_of(series: str) -> int:
    """Return the classification of a series of operations."""
    level = series.partition(".")[2]
    return int(level) if level.isdecimal() else 0


class _Said(NamedTuple):
    """What a machine says to another, whether it asks or answers."""

    device: Sequence[str]
    vector: dict[str, int]
    samples: Mapping[str, Sequence[tuple[int, str]]]
    ranges: Mapping[str, Sequence[int]]
    ops: Sequence[str]
    ceiling: int
    told: int
    forks: Mapping[str, int] = {}
    digest: str = ""

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> _Said:
        """Return what came over the line."""
        try:
            made = cls(**{name: said[name] for name in cls._fields if name in said})._replace(
                device=[str(one) for one in said["device"]],
                vector={str(name): int(upto) for name, upto in said["vector"].items()},
                samples={
                    str(name): [(int(number), str(mark)) for number, mark in marks]
                    for name, marks in said["samples"].items()
                },
                ops=[str(line) for line in said["ops"]],
            )
            if all(is_span(name, span) for name, span in made.ranges.items()):
                return made
        except (LookupError, ValueError, TypeError, AttributeError):
            pass
        raise Refused("this is no request of a sync")

    def level(self) -> int:
        """Return the highest classification of what is sent."""
        named = list(self.ranges)
        for line in self.ops:
            with suppress(ValueError, LookupError, TypeError, RecursionError):
                named.append(str(json.loads(line)[0]))  # what is none is held as it is
        return max(map(level_of, named), default=0)

    def take(self, syncing: Syncing) -> None:
        """Apply what is sent."""
        device, name, key = self.device
        syncing.meet(Device(device, name, key, accepted=True))
        if self.ranges:
            syncing.receive(OpBatch(self.ranges, self.ops))


def _say(
    syncing: Syncing, batch: OpBatch, *, ceiling: int, told: int, is_first: bool, **more: Any
) -> Json:
    me, sync = syncing.identity(), syncing.store.sync
    samples = sync.samples(ceiling) if is_first else {}
    said = {"device": [me.id, me.name, me.public], "samples": samples, **batch._asdict()}
    vector = sync.vector(max(ceiling, told))
    return {**said, "vector": vector, "ceiling": ceiling, "told": told, **more}


def answer(request: Json, syncing: Syncing, *, ceiling: int) -> Json:
    """Take what another machine sends, and give what it lacks, up to a classification."""
    syncing.identity()
    asked, sync = _Said.read(request), syncing.store.sync
    most = min(ceiling, sync.ceiling)
    if asked.level() > most:
        raise Refused(f"only memories up to the classification {most} are taken here")
    ways = {"ceiling": min(most, asked.ceiling), "told": min(most, asked.told)}
    syncing.capture()
    forks = sync.forks(asked.samples)
    syncing.branch_off(forks)
    asked.take(syncing)
    found = sync.read(asked.vector, limit=PEER_OPS, **ways)
    digest = "" if found.ranges else sync.digest(ways["ceiling"])
    is_first = bool(asked.samples)
    return _say(syncing, found, **ways, is_first=is_first, forks=forks, digest=digest)


def exchange(
    syncing: Syncing, ask: Ask, *, ceiling: int, told: int = 0, name: str = ""
) -> SyncReport:
    """Ask and answer until neither side lacks anything.

    ``told`` is the highest ceiling of before. Where samples of the two logs differ, both send
    what comes after, whatever the other says it has: it may be that of a copy.
    """
    syncing.identity(name)
    syncing.capture()
    sync = syncing.store.sync
    batch, is_first = OpBatch({}, ()), True
    mine: dict[str, int] = {}  # up to where either has sent what it cannot tell by its vector
    theirs: dict[str, int] = {}
    while True:
        said = _say(syncing, batch, ceiling=ceiling, told=told, is_first=is_first)
        heard = _Said.read(ask({**said, "vector": said["vector"] | mine}))
        ceiling = min(ceiling, heard.ceiling)
        syncing.report.sent += len(batch.ops)
        forks = [*sync.forks(heard.samples).items(), *heard.forks.items()] if is_first else []
        for series, number in forks:
            theirs[series] = mine[series] = min(number - 1, mine.get(series, number))
        syncing.branch_off({series: upto + 1 for series, upto in mine.items()} if forks else {})
        heard.take(syncing)
        batch = sync.read(heard.vector | theirs, ceiling=ceiling, told=told, limit=PEER_OPS)
        # What came before it was known where the logs part is asked for again.
        for sent, span in ((mine, {} if forks else heard.ranges), (theirs, batch.ranges)):
            sent |= {one: span[one][1] for one in span if one in sent or one.startswith("!")}
        if not (heard.ranges or batch.ranges or forks):
            syncing.report.digest = heard.digest
            return syncing.finish()
        is_first = False


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

    def __call__(self, request: Json) -> Json:
        """Send a request and return the answer."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            told: Json = json.loads(process.stdout.readline())
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

    def ask(request: Json) -> Json:
        from urllib.error import HTTPError, URLError  # start-up time
        from urllib.request import Request, urlopen

        body = json.dumps(request).encode()
        try:
            asked = Request(address, body, headers)  # noqa: S310 - http and https only
            with urlopen(asked, timeout=_SECONDS) as reply:  # noqa: S310
                told: Json = json.load(reply)
        except HTTPError as error:
            raise Refused(f"{url}: {_message(error.read())}") from error
        except (URLError, OSError, ValueError) as error:
            raise Refused(f"{url} gives no answer: {getattr(error, 'reason', error)}") from error
        return told

    return ask


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "it refuses"
