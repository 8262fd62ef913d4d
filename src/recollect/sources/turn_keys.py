"""Keys for turns that come without one: the same lines again are the same turns.

A turn without a number is new by definition, however often its words were said before;
read again from the same file it is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from recollect.errors import Refused
from recollect.sources.source import Entry, digest


def with_turn_keys(entries: Iterable[Entry], source: str) -> Iterator[Entry]:
    """The entries; turns have a key that says how often their words came before in them."""
    said: Counter[bytes] = Counter()
    for entry in entries:
        draft = entry.found
        if isinstance(draft, Refused) or draft.key or draft.id or draft.seq is not None:
            yield entry
            continue
        if not (isinstance(draft.session, str) and isinstance(draft.text, str)):
            yield entry
            continue
        own = digest(source, draft.session, str(draft.speaker), str(draft.occurred_at), draft.text)
        mark = bytes.fromhex(own)
        said[mark] += 1
        yield entry._replace(found=draft._replace(key=f"turn:{own}:{said[mark]}"))
