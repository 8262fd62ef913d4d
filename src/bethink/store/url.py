"""How a store is named: by a kind, or by the URL of a server."""

from __future__ import annotations

import re

_SERVER_SCHEMES = ("postgresql://", "postgres://")
# Up to the last @, since a password may have been written with signs that end it too early.
_PASSWORDS = ((r"(://[^:/?@]*):.*@", r"\1@"), (r"([?&]\w*password=)[^&]*", r"\1..."))


def is_server(store: str) -> bool:
    """Whether a store is a database server, named by its URL, and not a file."""
    return store.startswith(_SERVER_SCHEMES)


def shown_store(store: str) -> str:
    """Return the name or URL of a store as it may be shown: without a password."""
    for pattern, shown in _PASSWORDS:
        store = re.sub(pattern, shown, store)
    return store
