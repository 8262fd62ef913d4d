"""Finds what is already there: the same draft again, the same words, nearly the same words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.errors import Conflict
from recollect.ingest.admit import trust_of
from recollect.ingest.prepare import happened_apart
from recollect.ingest.sketch import NEAR, shingles_of, similarity, skeleton, sketch
from recollect.ingest.writing import Prepared, WriteContext
from recollect.model import Collision, Draft, Filters, Item, Remembered
from recollect.ports import Embedding, Scope
from recollect.text import fold

_MOST_COMPARED = 16  # most alike come first, and more are not reported anyway
_MOST_REPORTED = 5
_SAME_MEANING = 0.95
_WORTH_A_LOOK = 0.5

KEPT_FIRST = "already there, nothing stored"
KEPT_BOTH = "kept both, linked as similar"


class Like(NamedTuple):
    """Something already stored, or before in the batch, that a draft may repeat."""

    id: str
    text: str
    folded: str
    stored: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A draft that is new, its sketch, and what it should be compared with."""

    piece: Prepared
    sketch: tuple[int, ...] = ()
    like: tuple[Like, ...] = ()
    said_before: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """What came before in the same batch, to be found the same ways as in the store."""

    exact: dict[str, list[Prepared]] = field(default_factory=lambda: defaultdict(list))
    bands: dict[int, list[Prepared]] = field(default_factory=lambda: defaultdict(list))

    def add(self, piece: Prepared, bands: Iterable[int]) -> None:
        self.exact[piece.fingerprint].append(piece)
        for band in bands:
            self.bands[band].append(piece)

    def near(self, bands: Iterable[int]) -> Iterator[Prepared]:
        for band in bands:
            yield from self.bands.get(band, ())[-_MOST_COMPARED:]


def repeated(
    prepared: Sequence[Prepared], ctx: WriteContext
) -> tuple[dict[int, Remembered], dict[int, int]]:
    """Drafts whose idempotency key was used before, by their place in the batch: those
    the store answers for, and those that repeat an earlier draft, with its place.

    Raises Conflict where a key stands for other content already.
    """
    first: dict[str, int] = {}
    known: dict[int, Remembered] = {}
    again: dict[int, int] = {}
    for at, piece in enumerate(prepared):
        key = piece.draft.key
        if key is None:
            continue
        if key in first:
            again[at] = first[key]
            used = prepared[first[key]].fingerprint
        elif stored := ctx.store.find_key(key):
            known[at] = Remembered(stored[0], "repeated", redacted=piece.redacted)
            used = stored[1]
        else:
            first[key], used = at, piece.fingerprint
        if used != piece.fingerprint:
            raise Conflict(
                f"the key {key!r:.80} was used before for other content",
                remedy="use a new key for new content",
            )
    return known, again


def deduplicated(
    prepared: Sequence[Prepared], ctx: WriteContext
) -> tuple[list[Compared], dict[str, Remembered]]:
    """Those that are new, and for the others the answer, by the id they would have had."""
    taken = _taken_ids(prepared, ctx)
    scope = Scope(Filters(max_classification=3), ctx.now)
    batch = Batch()
    fresh: list[Compared] = []
    answers: dict[str, Remembered] = {}
    for piece in prepared:
        if piece.turn and piece.id not in taken:
            fresh.append(Compared(piece))
            continue
        if ctx.deriving and piece.draft.level == "insight" and piece.id not in taken:
            # Made anew it may say what it said, and still rest on other memories.
            fresh.append(Compared(piece, said_before=True))
            continue
        bands = () if piece.draft.session is not None else sketch(piece.folded)
        found = ctx.store.find_duplicates(piece.fingerprint, bands, scope)
        compared, twin = _compare(piece, bands, found, batch)
        if twin and piece.draft.key is not None and piece.id not in taken:
            # The store answers as well, and notes that the key was used.
            fresh.append(Compared(piece))
        elif twin:
            collision = Collision(twin.id, "exact", 1.0, KEPT_FIRST, twin.text)
            answers[piece.id] = Remembered(twin.id, "duplicate", (collision,), piece.redacted)
        elif piece.id in taken:
            raise _id_conflict(piece.id)
        else:
            fresh.append(compared)
            batch.add(piece, bands)
    return fresh, answers


def _compare(
    piece: Prepared, bands: tuple[int, ...], found: Sequence[Item], batch: Batch
) -> tuple[Compared, Like | None]:
    """What is like a draft and, if there is one, its exact twin."""
    draft = piece.draft
    said_before = False
    like: dict[str, Like] = {}
    for earlier in batch.exact.get(piece.fingerprint, ()):
        twin = Like(earlier.id, earlier.draft.text, earlier.folded, stored=False)
        apart = happened_apart(draft.occurred_at, earlier.draft.occurred_at)
        if not apart and _stands_in(earlier.draft, trust_of(earlier.draft), draft):
            return Compared(piece), twin
        said_before, like[twin.id] = True, twin
    for item in found[:_MOST_COMPARED]:
        if item.level != draft.level:
            continue
        # Who writes a draft is not told what a more secret memory says.
        visible = item.classification <= draft.classification
        twin = Like(item.id, item.text if visible else "", fold(item.text), stored=True)
        if twin.folded == piece.folded and _same_voice(item, piece):
            apart = happened_apart(draft.occurred_at, item.occurred_at)
            if not apart and _stands_in(item, item.trust, draft):
                return Compared(piece), twin
            said_before = True
        like[twin.id] = twin
    for earlier in batch.near(bands):
        if earlier.draft.level == draft.level:
            twin = Like(earlier.id, earlier.draft.text, earlier.folded, stored=False)
            like.setdefault(twin.id, twin)
    return Compared(piece, bands, tuple(like.values())[:_MOST_COMPARED], said_before), None


def _stands_in(earlier: Item | Draft, trust: int, draft: Draft) -> bool:
    """Whether everybody who may see the draft sees the earlier one, and trusts it as much."""
    return earlier.classification <= draft.classification and trust >= trust_of(draft)


def _same_voice(item: Item, piece: Prepared) -> bool:
    """Whether the same one says it, in the same turn: else equal words are two memories."""
    draft = piece.draft
    said_by = fold(item.speaker or "") == fold(draft.speaker or "")
    return said_by and (item.session, item.seq) == (draft.session, draft.seq)


def _taken_ids(prepared: Sequence[Prepared], ctx: WriteContext) -> set[str]:
    """Ids brought along that the store has already; each may come once in a batch."""
    given = [piece.id for piece in prepared if piece.draft.id is not None]
    for item_id, times in Counter(given).items():
        if times > 1:
            raise _id_conflict(item_id)
    return set(ctx.store.get(given)) if given else set()


def _id_conflict(item_id: str) -> Conflict:
    return Conflict(
        f"the id {item_id!r} stands for another memory, or one that was forgotten",
        remedy="leave the id out, or update or restore that memory",
    )


def near_collisions(
    compared: Compared, embedding: Embedding | None, ctx: WriteContext
) -> tuple[Collision, ...]:
    """What says nearly the same as a new memory, most alike first."""
    if not compared.like:
        return ()
    own = shingles_of(compared.piece.folded)
    bare = skeleton(compared.piece.folded)
    alike: dict[str, tuple[float, str]] = {}
    doubtful: dict[str, str] = {}
    for other in compared.like:
        share = similarity(own, shingles_of(other.folded))
        if share >= NEAR or (share > 0 and skeleton(other.folded) == bare):
            alike[other.id] = (share, other.text)
        elif share >= _WORTH_A_LOOK and other.stored:
            doubtful[other.id] = other.text
    if embedding is not None and ctx.embedder is not None and doubtful:
        vectors = ctx.store.embeddings(list(doubtful), ctx.embedder.model)
        for other_id, found in vectors.items():
            cosine = float(found.vector @ embedding.vector)
            if cosine >= _SAME_MEANING:
                alike[other_id] = (cosine, doubtful[other_id])
    best = sorted(alike.items(), key=lambda entry: (-entry[1][0], entry[0]))[:_MOST_REPORTED]
    return tuple(
        Collision(
            other_id, "near", round(share, 4), KEPT_BOTH, text, f"recollect forget {other_id}"
        )
        for other_id, (share, text) in best
    )
