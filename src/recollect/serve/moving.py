"""Everything out, and everything in: `export` as a stream, `import` all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator

from anyio import CancelScope, to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recollect.errors import BadText, Forbidden, Refused
from recollect.ingest.strict_json import strict_json
from recollect.jsonable import Json
from recollect.memory import Memory
from recollect.serve.asking import Malformed, WrongMedia, media_of
from recollect.wire import dumps

MEDIA = "application/x-ndjson"
MOST_IMPORT = 64 << 20
_CHUNK = 1 << 16
_TAKEN_WITHIN_S = 30.0


async def exported(memory: Memory) -> Exported:
    """The export, begun: a store that cannot be read is told before anything is promised.

    It is everything or nothing. Where some of it lies above what this server shows to
    anybody, it is nothing: a copy without it would pass for a whole one.
    """
    if await to_thread.run_sync(memory.store.most_classified) > _ceiling(memory):
        raise _above(memory)
    chunks = _chunks(memory)
    return Exported(await to_thread.run_sync(next, chunks, b""), chunks)


def _ceiling(memory: Memory) -> int:
    return memory.settings.max_classification


def _above(memory: Memory) -> Forbidden:
    return Forbidden(
        f"there are memories above classification {_ceiling(memory)}, which this server gives "
        "to nobody",
        scope="",
        remedy="recollect export on its machine, or RECOLLECT_MAX_CLASSIFICATION=3 for the server",
    )


class Exported(Response):
    """An export on its way. It is given up where nobody takes it: a reader of the store
    keeps its log from being emptied."""

    def __init__(self, first: bytes, chunks: Generator[bytes, None, None]) -> None:
        super().__init__(media_type=MEDIA)
        del self.headers["content-length"]
        self._first, self._chunks = first, chunks

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        chunk = self._first
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while chunk:
                async with asyncio.timeout(_TAKEN_WITHIN_S):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await to_thread.run_sync(next, self._chunks, b"")
            await send({"type": "http.response.body"})
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(self._chunks.close)


def _chunks(memory: Memory) -> Generator[bytes, None, None]:
    parts: list[bytes] = []
    size = 0
    for record in memory.export():
        if record.get("classification", 0) > _ceiling(memory):
            raise _above(memory)  # it came in the meantime: what is sent breaks off
        parts.append(dumps(record).encode() + b"\n")
        size += len(parts[-1])
        if size >= _CHUNK:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


async def imported(request: Request, memory: Memory) -> Json:
    """Takes an export in and says how many memories were new."""
    if media_of(request) != MEDIA:
        raise WrongMedia(f"the body must be {MEDIA}", remedy=f"Content-Type: {MEDIA}")
    body = await request.body()
    count = await to_thread.run_sync(lambda: memory.import_(_records(body)))
    return {"stored": count}


def _records(body: bytes) -> Iterator[Json]:
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            value = strict_json(line.decode())
        except UnicodeDecodeError as error:
            raise Malformed(f"line {number} is not UTF-8") from error
        except Refused as error:
            raise Malformed(f"line {number} is {error.message}") from error
        if not isinstance(value, dict):
            raise BadText(f"line {number} is no record of an export")
        yield value
