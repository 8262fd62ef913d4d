"""TOML files, which others may have written."""

from __future__ import annotations

import tomllib
from typing import Any

from bethink.core.lazy import lazy_pattern
from bethink.core.small_files import refuse_extremes

_TEXT = lazy_pattern(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|#[^\n]*""")
_MAX_DOTS = 100  # in one line, where they may separate the parts of a key


def parse_toml(text: str) -> dict[str, Any]:
    """Return what `tomllib.loads` returns, within limits.

    Raises ValueError, also for keys of more parts than any file needs: `tomllib` takes 6 GB
    for one of 40,000.
    """
    if text.count(".") > _MAX_DOTS:
        has_long_texts = '"""' in text or "'''" in text  # which go on in the next line
        keys = text if has_long_texts else _TEXT.sub("", text)
        if any(line.count(".") > _MAX_DOTS for line in keys.split("\n")):
            raise ValueError(f"a key has more than {_MAX_DOTS} dots")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    refuse_extremes(found)
    return found
