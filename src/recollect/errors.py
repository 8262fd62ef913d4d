"""The exception tree. Every error is one sentence and, where there is one, a remedy.

RecollectError
├── Refused            the input breaks a rule; nothing was stored or searched
│   ├── TooLarge       over a stated limit (``limit`` and ``actual`` say which)
│   ├── BadText        a character no store can keep (NUL, lone surrogate)
│   ├── LooksPasted    a log or assistant output; ``force`` stores it anyway
│   └── Conflict       an idempotency key was used before for other content
├── NotFound           no such memory, space, profile or file
├── Forbidden          the caller may not do this (``scope`` is the one it needs)
├── BadProfile         a profile that cannot be read (file, key and allowed values)
├── BadSetting         a setting that cannot be read
├── MissingExtra       an optional part is not installed; names the extra
├── ModelError         an embedder, reranker or language model failed; the answer degrades
└── StoreError         the store cannot do it
    ├── StoreBusy      another process held the write lock too long
    ├── StoreDamaged   the file is not (or no longer) a healthy database
    └── SchemaTooNew   written by a newer Recollect
"""

from __future__ import annotations


class RecollectError(Exception):
    """Root of all errors that Recollect raises on purpose."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class Refused(RecollectError):
    """The input breaks a rule; nothing was stored or searched."""

    rule = "refused"


class TooLarge(Refused):
    """Over a stated limit. Nothing is ever cut short in silence."""

    rule = "too_large"

    def __init__(self, what: str, *, limit: int, actual: int, unit: str = "bytes") -> None:
        super().__init__(
            f"{what} is {actual:,} {unit}; the limit is {limit:,}",
            remedy="split it into smaller parts",
        )
        self.limit = limit
        self.actual = actual


class BadText(Refused):
    """A character that no store can keep, or text where something else belongs."""

    rule = "bad_text"


class LooksPasted(Refused):
    """A pasted log or assistant output rather than a memory."""

    rule = "looks_pasted"


class Conflict(Refused):
    """An idempotency key was used before for other content."""

    rule = "conflict"


class NotFound(RecollectError):
    """No such memory, space, profile or file."""


class Forbidden(RecollectError):
    """The caller may not do this."""

    def __init__(self, message: str, *, scope: str, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.scope = scope


class BadProfile(RecollectError):
    """A profile that cannot be read."""


class BadSetting(RecollectError):
    """A setting that cannot be read."""


class MissingExtra(RecollectError):
    """An optional part is not installed."""

    def __init__(self, what: str, *, extra: str, remedy: str = "") -> None:
        super().__init__(
            f"{what} is not installed", remedy=remedy or f"pip install 'recollect[{extra}]'"
        )


class ModelError(RecollectError):
    """An embedder or reranker failed."""


class StoreError(RecollectError):
    """The store cannot do it."""


class StoreBusy(StoreError):
    """Another process held the write lock too long."""


class StoreDamaged(StoreError):
    """The file is not, or no longer, a healthy database."""


class SchemaTooNew(StoreError):
    """The file was written by a newer Recollect."""
