"""Files that others may have written: small regular ones are read, large ones told apart."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISREG

from bethink.errors import BethinkError, ModelError

MAX_CONFIG_BYTES = 64 * 1024
MAX_DEPTH = 32
_MAX_INTEGER = 1 << 4096  # much longer ones cannot even be printed
# Wait for no pipe, and become the owner of no terminal.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)


def read_small_file(path: Path, max_bytes: int = MAX_CONFIG_BYTES) -> bytes:
    """Read a regular file of limited size; raise OSError for any other."""
    handle = os.open(path, _FLAGS)
    try:
        if not S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(max_bytes + 1)
    finally:
        os.close(handle)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes:,} bytes")
    return content


def read_small_text(path: Path, mistake: type[BethinkError]) -> str:
    """Read a small file of text; raise this kind of error where it cannot be read."""
    try:
        return read_small_file(path).decode()
    except UnicodeDecodeError as error:
        raise mistake(f"{path}: not UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise mistake(f"{path} cannot be read: {error.strerror}") from error


def refuse_extremes(value: object, depth: int = MAX_DEPTH) -> None:
    """Raise ValueError where parsed content cannot be shown or walked: too deep, huge numbers."""
    if isinstance(value, dict | list):
        if not depth:
            raise ValueError("it is nested too deeply")
        for inner in value.values() if isinstance(value, dict) else value:
            refuse_extremes(inner, depth - 1)
    elif isinstance(value, int) and abs(value) > _MAX_INTEGER:
        raise ValueError("a number is too large")


_SAMPLES, _SAMPLE_BYTES = 64, 4096


def file_fingerprint(path: Path) -> str:
    """Return 16 hex digits over a large file's size and 64 evenly spaced pages.

    Training changes every number, so pages distinguish sets of weights, and reading them
    takes a thousandth of the time of reading all.
    """
    import hashlib  # start-up time: only for files of weights

    try:
        size = path.stat().st_size
        state = hashlib.blake2b(str(size).encode(), digest_size=8)
        with path.open("rb") as file:
            for place in range(_SAMPLES):
                file.seek(place * max(0, size - _SAMPLE_BYTES) // (_SAMPLES - 1))
                state.update(file.read(_SAMPLE_BYTES))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    return state.hexdigest()
