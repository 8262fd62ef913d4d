"""Exception hierarchy. Each has a one-sentence message and usually a remedy.

BethinkError
├── Refused            the input breaks a rule; nothing was stored or searched
│   ├── TooLarge       over a stated limit (``limit`` and ``actual`` say which)
│   ├── BadText        a character no store can keep (NUL, lone surrogate)
│   ├── LooksPasted    a log or assistant output; ``force`` stores it anyway
│   ├── Conflict       an idempotency key was used before for other content
│   └── SomeRefused    some of many memories; the others are stored (``results``)
├── NotFound           no such memory, space, profile or file
├── Forbidden          the caller may not do this (``scope`` is the one it needs)
├── BadProfile         a profile that cannot be read (file, key and allowed values)
├── BadSetting         a setting that cannot be read
│   ├── UntrustedSpace a project names a space that the user has not allowed it to use
│   └── BadPlugin      an installed plug-in cannot be loaded (names the distribution)
├── MissingExtra       an optional part is not installed; names the extra
├── ModelError         an embedder, reranker or language model failed; the answer degrades
└── StoreError         the store cannot do it
    ├── StoreBusy      another process held the write lock too long
    ├── StoreDamaged   the file is not (or no longer) a healthy database
    └── SchemaTooNew   written by a newer version
"""

from __future__ import annotations

from collections.abc import Sequence


class BethinkError(Exception):
    """Base class of all errors that this package raises on purpose."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        if remedy:
            self.add_note(f"try: {remedy}")  # a traceback ends with it

    def __reduce__(self) -> tuple[object, ...]:
        # Without the constructor, whose parameters differ: process pools pickle errors.
        return _restore_error, (type(self), self.args), self.__dict__


def _restore_error(kind: type[BethinkError], args: tuple[object, ...]) -> BethinkError:
    return kind.__new__(kind, *args)


class Refused(BethinkError):
    """The input breaks a rule; nothing was stored or searched."""

    rule = "refused"


class TooLarge(Refused):
    """Over a stated limit. Nothing is ever truncated silently."""

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


class SomeRefused(Refused):
    """Some of many memories were refused; the others are stored.

    ``results`` has what was given in its order: an outcome, or the error that refused it.
    """

    rule = "some_refused"
    _NAMED = 3  # refusals named in the message

    def __init__(self, results: Sequence[object]) -> None:
        self.results = tuple(results)
        refused = self.refused
        named = [f"number {n + 1}: {error.message}" for n, error in refused.items()]
        more = f"; and {len(named) - self._NAMED} more" if len(named) > self._NAMED else ""
        stored = "the others are stored" if len(named) < len(self.results) else "none is stored"
        super().__init__(
            f"{len(named)} of {len(self.results):,} memories were refused, {stored}:"
            f" {'; '.join(named[: self._NAMED])}{more}",
            remedy=next(iter(refused.values())).remedy,
        )

    @property
    def refused(self) -> dict[int, Refused]:
        """The refusals, by their place in ``results``."""
        return {n: error for n, error in enumerate(self.results) if isinstance(error, Refused)}


class NotFound(BethinkError):
    """No such memory, space, profile or file."""


class Forbidden(BethinkError):
    """The caller may not do this."""

    def __init__(self, message: str, *, scope: str, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.scope = scope


class BadProfile(BethinkError):
    """A profile that cannot be read."""


class BadSetting(BethinkError):
    """A setting that cannot be read."""


class UntrustedSpace(BadSetting):
    """A project's file names a space that the user has not allowed it to use."""

    def __init__(self, message: str, *, remedy: str, project: str, space: str) -> None:
        super().__init__(message, remedy=remedy)
        self.project, self.space = project, space


class BadPlugin(BadSetting):
    """An installed plug-in that cannot be loaded."""


def install_command(extra: str = "") -> str:
    """Return what installs Bethink, or one of its extras, from where this one came."""
    if (named := requirement(extra)) is not None:
        return f"pip install '{named}'"
    wanted = f"'.[{extra}]'" if extra else "."
    return f"pip install {wanted} (in the folder of the Bethink checkout)"


def how_to_update() -> str:
    """Return how to get a newer Bethink."""
    if requirement() is not None:
        return "Install a newer Bethink, in the way you installed this one"
    return f"Update the checkout, then: {install_command()}"


def requirement(extra: str = "") -> str | None:
    """Return the requirement of this version with an extra; None where it is a checkout."""
    import json  # only for a message
    from importlib.metadata import PackageNotFoundError, distribution

    name = f"bethink[{extra}]" if extra else "bethink"
    try:
        found = distribution("bethink")
    except PackageNotFoundError:
        return None
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if "dir_info" in origin:
        return None
    return f"{name} @ {origin['url']}" if origin else f"{name}=={found.version}"


class MissingExtra(BethinkError):
    """An optional part is not installed."""

    def __init__(self, what: str, *, extra: str, remedy: str = "") -> None:
        super().__init__(f"{what} is not installed", remedy=remedy or install_command(extra))


class ModelError(BethinkError):
    """An embedder, reranker or language model failed."""


class StoreError(BethinkError):
    """The store cannot do the operation."""


NOT_SAVED = "; this write was not saved"


class StoreBusy(StoreError):
    """Another process held the write lock too long."""


class StoreDamaged(StoreError):
    """The file is not, or no longer, a healthy database."""


class SchemaTooNew(StoreError):
    """The file was written by a newer version."""
