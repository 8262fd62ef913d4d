"""Reads a file, packed or not, within limits: a small archive cannot fill the memory."""

from __future__ import annotations

import io
import zlib
from typing import BinaryIO

from recollect.errors import BadText, TooLarge

MOST_BYTES = 1 << 30
MOST_RATIO = 100
_RATIO_COUNTS_FROM = 1 << 20  # bytes; short runs of equal lines are no attack
_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 16


class Bounded(io.RawIOBase):
    """A stream that unpacks gzip by itself and stops at the limits."""

    def __init__(self, stream: BinaryIO, *, most_bytes: int = MOST_BYTES) -> None:
        self._stream = stream
        self._most_bytes = most_bytes
        self._packed = stream.read(_PIECE)
        self._unpack = zlib.decompressobj(wbits=31) if self._packed[:2] == _MAGIC else None
        self._read = len(self._packed)
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._piece(len(buffer))
        buffer[: len(piece)] = piece
        self._given += len(piece)
        if self._given > self._most_bytes:
            raise TooLarge("the file", limit=self._most_bytes, actual=self._given)
        if self._unpack and self._given > max(_RATIO_COUNTS_FROM, MOST_RATIO * self._read):
            ratio = self._given // max(1, self._read)
            raise TooLarge("the unpacked file", limit=MOST_RATIO, actual=ratio, unit="times as big")
        return len(piece)

    def _piece(self, size: int) -> bytes:
        if self._unpack is None:
            piece = self._packed[:size] or self._more()[:size]
            self._packed = self._packed[len(piece) :]
            return piece
        while True:
            piece = self._unpacked(size)
            if piece or not (self._packed or self._more()):
                return piece

    def _unpacked(self, size: int) -> bytes:
        if self._unpack is None or not self._packed:
            return b""
        try:
            piece = self._unpack.decompress(self._packed, size)
        except zlib.error as error:
            raise BadText(f"the file is damaged: {error}") from error
        self._packed = self._unpack.unconsumed_tail
        if self._unpack.eof:
            # Packed files may be put end to end.
            self._packed = self._unpack.unused_data
            self._unpack = zlib.decompressobj(wbits=31)
        return piece

    def _more(self) -> bytes:
        if not self._packed:
            self._packed = self._stream.read(_PIECE)
            self._read += len(self._packed)
        return self._packed
