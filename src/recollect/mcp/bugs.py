"""A bug in the log: where it happened and of what kind, without the words of the error.

Those may be somebody's memories, which belong in no log.
"""

from __future__ import annotations

import logging
import traceback

_log = logging.getLogger("recollect")


def log_bug(where: str, error: Exception) -> str:
    """Writes the way to the error to the log, and gives the sentence for the caller."""
    frames = traceback.extract_tb(error.__traceback__)
    way = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    _log.error("%s failed: %s at %s", where, type(error).__name__, way)
    return f"a bug in Recollect: {type(error).__name__}"
