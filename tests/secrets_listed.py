"""Lists of lines with secrets and without, as people and agents paste them: how they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

_SIGNS = {
    "an": ascii_letters + digits,
    "lo": ascii_lowercase,
    "low": ascii_lowercase + digits,
    "low4": ascii_lowercase + "234567",
    "up": ascii_uppercase + "234567",
    "UPN": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "hex": digits + "abcdef",
    "HEX": digits + "ABCDEF",
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "b64": ascii_letters + digits + "+/",
    "url": ascii_letters + digits + "-_",
    "dig": digits,
}
_BLANK = re.compile(r"«(\w+):(\d+)»")


class Line(NamedTuple):
    """A text, and what of it has to go: of a harmless one nothing."""

    text: str
    secrets: tuple[str, ...]
    personal: bool


def read_list(name: str, seed: int = 0) -> Iterator[Line]:
    """The lines of one list, blanks filled by chance."""
    rng = Random(f"{name}:{seed}")
    for row in Path(__file__).with_name(f"secrets_{name}.txt").read_text("utf-8").splitlines():
        if row[:2] not in {"+ ", "- ", "# "} or (row[0] == "#" and "⟦" not in row):
            continue
        filled = _BLANK.sub(
            lambda blank: "".join(rng.choices(_SIGNS[blank[1]], k=int(blank[2]))), row[2:]
        )
        said = re.sub(r"(?<!\\)\\n", "\n", filled).replace("\\\\", "\\")
        secrets = tuple(re.findall(r"⟦(.*?)⟧", said, re.DOTALL))
        yield Line(re.sub("[⟦⟧]", "", said), secrets, row[0] == "#")


def survives(line: Line, left: str) -> bool:
    """Whether a secret of the line, or half of it in one piece, is in what is left."""
    for secret in line.secrets:
        part = max(8, len(secret) // 2) if len(secret) >= 10 else len(secret)
        if any(secret[at : at + part] in left for at in range(len(secret) - part + 1)):
            return True
    return False
