"""The stage that does nothing."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Pool


@dataclass(frozen=True, slots=True)
class Keep:
    """The stage that does nothing: what an empty slot of a profile holds."""

    name: str = "keep"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return pool
