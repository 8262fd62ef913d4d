"""Find duplicates: repeated keys, equal texts, near-duplicates by MinHash.

Min-hashes (Broder, 1997) of the words and word pairs of a text, in six bands of three: two
texts that share eight of ten shingles meet in a band with a probability of 0.99.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from zlib import crc32

from bethink.core.arrays import NDArray, mix_bits, np
from bethink.core.dataclass import dataclass, field
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold, jaccard, word_set
from bethink.errors import Conflict, Refused
from bethink.ingest.admission import (
    PreparedDraft,
    WriteContext,
    occurred_at_different_times,
    trust_of,
)
from bethink.lang.words import negations, word_set_of
from bethink.model import Collision, Draft, Filters, Item, Remembered
from bethink.model.item import user_of
from bethink.ports import Embedding, Scope
from bethink.ports.values import is_erased

BANDS = 6
ROWS = 3
NEAR_THRESHOLD = 0.8
_SEED = 0x5EED_0F_5EED
_MAX_WORDS = 2_000  # words; later ones change little
# Ignored as single words; they count in pairs and in the comparison.
_STOP_WORDS = word_set_of("en", "stop_words", "sketch")
_NUMBER = lazy_pattern(r"\d+(?:[.,:]\d+)*")


def minhash_sketch(folded: str) -> tuple[int, ...]:
    """Return MinHash band hashes that near-duplicates share; empty for short texts.

    Takes a folded text. Stable across processes and machines: the hashes are stored.
    """
    words = _shingle_words(folded)
    if len(words) < 3:
        return ()
    hashes = np.array([crc32(word.encode()) for word in words], dtype=np.uint64)
    content = [i for i, word in enumerate(words) if word not in _STOP_WORDS]
    pairs = (hashes[:-1] << np.uint64(32)) | hashes[1:]
    shingles = mix_bits(np.concatenate((hashes[content], pairs)))
    multipliers, offsets, folding, band_offsets = _minhash_constants()
    lowest = (multipliers * shingles + offsets).min(axis=1).reshape(BANDS, ROWS)
    bands = (lowest * folding).sum(axis=1, dtype=np.uint64) + band_offsets
    values: list[int] = (bands >> np.uint64(1)).tolist()
    return tuple(values)


def _shingle_words(folded: str) -> list[str]:
    words = folded.split()
    if len(words) < 3 and not folded.isascii():
        # A script without spaces: pairs of characters serve as words.
        words = sorted(word_set(folded))
    return words[:_MAX_WORDS]


@cache
def _minhash_constants() -> tuple[NDArray[np.uint64], ...]:
    """Return the permutations' multipliers and offsets, and the band-folding constants."""
    count = BANDS * ROWS
    numbers = mix_bits(np.arange(_SEED, _SEED + 2 * count + ROWS + BANDS, dtype=np.uint64))
    multipliers = (numbers[:count] | np.uint64(1)).reshape(-1, 1)
    offsets = numbers[count : 2 * count].reshape(-1, 1)
    folding = numbers[2 * count : 2 * count + ROWS] | np.uint64(1)
    return multipliers, offsets, folding, numbers[2 * count + ROWS :]


def shingles_of(folded: str) -> frozenset[str]:
    """Return the words and word pairs of a folded text."""
    words = _shingle_words(folded)
    pairs = (f"{one} {other}" for one, other in pairwise(words))
    return frozenset(words).union(pairs)


def text_skeleton(folded: str) -> list[str]:
    """Return the words without numbers and negations.

    Texts that share a skeleton are near-duplicates, never equal.
    """
    ignored = negations().words | word_set_of("en", "negations", "auxiliaries")
    return [_NUMBER.sub("0", word) for word in _shingle_words(folded) if word not in ignored]


_MAX_COMPARED = 16  # sorted by similarity; only the first are reported
_MAX_REPORTED = 5
_SAME_MEANING_COSINE = 0.95
_MIN_SHINGLE_SHARE = 0.5

KEPT_FIRST = "already stored, nothing added"
KEPT_BOTH = "kept both, linked as similar"


class SimilarText(NamedTuple):
    """A stored memory, or an earlier draft of the batch, that a draft may repeat."""

    id: str
    text: str
    folded: str
    is_stored: bool


@dataclass(frozen=True, slots=True)
class ComparedDraft:
    """A new draft with its sketch and the similar texts to compare it with."""

    prepared: PreparedDraft
    sketch: tuple[int, ...] = ()
    similar: tuple[SimilarText, ...] = ()
    is_restatement: bool = False


@dataclass(frozen=True, slots=True)
class BatchIndex:
    """Index over the earlier drafts of a batch, with the same lookups as the store."""

    exact: dict[str, list[PreparedDraft]] = field(default_factory=lambda: defaultdict(list))
    bands: dict[int, list[PreparedDraft]] = field(default_factory=lambda: defaultdict(list))

    def add(self, prepared: PreparedDraft, bands: Iterable[int]) -> None:
        self.exact[prepared.fingerprint].append(prepared)
        for band in bands:
            self.bands[band].append(prepared)

    def near(self, bands: Iterable[int]) -> Iterator[PreparedDraft]:
        for band in bands:
            yield from self.bands.get(band, ())[-_MAX_COMPARED:]


def find_repeated_keys(
    prepared: Sequence[PreparedDraft], ctx: WriteContext
) -> tuple[dict[int, Remembered], dict[int, int]]:
    """Find drafts whose idempotency key was used before, by position in the batch.

    Returns those that the store already has, and those that repeat an earlier draft with its
    position. Raises Conflict where a key was used for other content.
    """
    first: dict[str, int] = {}
    known: dict[int, Remembered] = {}
    repeats: dict[int, int] = {}
    keys = dict.fromkeys(draft.draft.key for draft in prepared if draft.draft.key is not None)
    used = ctx.store.items.find_keys(tuple(keys)) if keys else {}
    for number, draft in enumerate(prepared):
        key = draft.draft.key
        if key is None:
            continue
        if key in first:
            repeats[number] = first[key]
            fingerprint = prepared[first[key]].fingerprint
        elif (stored := used.get(key)) and is_erased(stored[1]):
            raise Refused(
                f"what was stored with the key {key!r:.80} was erased",
                remedy="use a new key to store it again",
            )
        elif stored:
            known[number] = Remembered(stored[0], "repeated", redacted=draft.redacted)
            fingerprint = stored[1]
        else:
            first[key], fingerprint = number, draft.fingerprint
        if fingerprint != draft.fingerprint:
            raise Conflict(
                f"the key {key!r:.80} was used before for other content",
                remedy="use a new key for new content",
            )
    return known, repeats


def deduplicate(
    prepared: Sequence[PreparedDraft], ctx: WriteContext
) -> tuple[list[ComparedDraft], dict[str, Remembered]]:
    """Split drafts into new ones and outcomes for duplicates, by the draft's id."""
    taken = _taken_ids(prepared, ctx)
    batch = BatchIndex()
    fresh: list[ComparedDraft] = []
    answers: dict[str, Remembered] = {}
    stored = _find_stored(prepared, taken, ctx)
    outdated = _outdated_ids({one.id: one for _, found in stored.values() for one in found}, ctx)
    for draft in prepared:
        if draft.id not in stored:
            # A new version of an insight may have the same text but other sources.
            fresh.append(ComparedDraft(draft, is_restatement=not draft.turn))
            continue
        bands, found = stored[draft.id]
        compared, twin = _compare(draft, bands, found, batch, outdated)
        if twin and draft.draft.key is not None and draft.id not in taken:
            # The store reports the duplicate, too, and records the key.
            fresh.append(ComparedDraft(draft))
        elif twin:
            collision = Collision(twin.id, "exact", 1.0, KEPT_FIRST, twin.text)
            answers[draft.id] = Remembered(twin.id, "duplicate", (collision,), draft.redacted)
        elif draft.id in taken:
            raise _id_conflict(draft.id)
        else:
            fresh.append(compared)
            batch.add(draft, bands)
    return fresh, answers


def _find_stored(
    prepared: Sequence[PreparedDraft], taken: set[str], ctx: WriteContext
) -> dict[str, tuple[tuple[int, ...], list[Item]]]:
    """Return the sketch of each draft that may repeat a memory, and those like it, by id.

    A turn is always new, and so is an insight that maintenance derives.
    """
    compared = [
        draft
        for draft in prepared
        if draft.id in taken
        or not (draft.turn or (ctx.deriving and draft.draft.level == "insight"))
    ]
    sketches = [
        () if draft.draft.session is not None else minhash_sketch(draft.folded)
        for draft in compared
    ]
    scope = Scope(Filters(max_classification=3), ctx.now)
    texts = [(one.fingerprint, bands) for one, bands in zip(compared, sketches, strict=True)]
    found = ctx.store.items.find_duplicates(texts, scope)
    rows = zip(compared, sketches, found, strict=True)
    return {draft.id: (bands, items) for draft, bands, items in rows}


def _outdated_ids(found: Mapping[str, Item], ctx: WriteContext) -> set[str]:
    """Return those that a newer memory outdates: said again, they are news.

    All who see the older one see the newer one, so that nobody learns of one that is hidden.
    """
    links = ctx.store.graph.links_of(sorted(found), ("supersedes",)) if found else []
    newer = ctx.store.items.get([link.src.id for link in links if link.dst.id in found])
    return {
        link.dst.id
        for link in links
        if link.dst.id in found
        and (one := newer.get(link.src.id))
        and (one.status, one.live_to) == ("active", None)
        and one.classification <= found[link.dst.id].classification
    }


def _compare(
    prepared: PreparedDraft,
    bands: tuple[int, ...],
    found: Sequence[Item],
    batch: BatchIndex,
    outdated: set[str],
) -> tuple[ComparedDraft, SimilarText | None]:
    """Compare a draft with similar memories; also return its exact duplicate, if any."""
    draft = prepared.draft
    restated = False
    similar: dict[str, SimilarText] = {}
    for earlier in batch.exact.get(prepared.fingerprint, ()):
        twin = SimilarText(earlier.id, earlier.draft.text, earlier.folded, is_stored=False)
        if _is_acceptable_duplicate(earlier.draft, trust_of(earlier.draft), draft):
            return ComparedDraft(prepared), twin
        restated, similar[twin.id] = True, twin
    for item in found[:_MAX_COMPARED]:
        if item.level != draft.level:
            continue
        # Never reveal the text of a memory of higher classification to the writer.
        visible = item.classification <= draft.classification
        twin = SimilarText(item.id, item.text if visible else "", fold(item.text), is_stored=True)
        if twin.folded == prepared.folded and _same_origin(item, prepared):
            if item.id not in outdated and _is_acceptable_duplicate(item, item.trust, draft):
                return ComparedDraft(prepared), twin
            restated = True
        similar[twin.id] = twin
    for earlier in batch.near(bands):
        if earlier.draft.level == draft.level:
            twin = SimilarText(earlier.id, earlier.draft.text, earlier.folded, is_stored=False)
            similar.setdefault(twin.id, twin)
    return ComparedDraft(prepared, bands, tuple(similar.values())[:_MAX_COMPARED], restated), None


def _is_acceptable_duplicate(earlier: Item | Draft, trust: int, draft: Draft) -> bool:
    """Check that the earlier one is as visible and as trusted, and not of another time."""
    if occurred_at_different_times(draft.occurred_at, earlier.occurred_at):
        return False
    return earlier.classification <= draft.classification and trust >= trust_of(draft)


def _same_origin(item: Item, prepared: PreparedDraft) -> bool:
    """Check for the same speaker, user and turn; otherwise equal words are two memories."""
    draft = prepared.draft
    same_speaker = fold(item.speaker or "") == fold(draft.speaker or "")
    same_turn = (item.session, item.seq) == (draft.session, draft.seq)
    return same_speaker and same_turn and item.user == user_of(draft.metadata)


def _taken_ids(prepared: Sequence[PreparedDraft], ctx: WriteContext) -> set[str]:
    """Return caller-supplied ids that the store already has; each may occur once."""
    explicit = [draft.id for draft in prepared if draft.draft.id is not None]
    for item_id, times in Counter(explicit).items():
        if times > 1:
            raise _id_conflict(item_id)
    return set(ctx.store.items.get(explicit)) if explicit else set()


def _id_conflict(item_id: str) -> Conflict:
    return Conflict(
        f"the id {item_id!r} belongs to another memory or a forgotten one",
        remedy="omit the id, or update or restore that memory",
    )


def find_near_duplicates(
    compared: ComparedDraft, embedding: Embedding | None, ctx: WriteContext
) -> tuple[Collision, ...]:
    """Find memories that are nearly the same as a new one, most similar first."""
    if not compared.similar:
        return ()
    own = shingles_of(compared.prepared.folded)
    skeleton = text_skeleton(compared.prepared.folded)
    duplicates: dict[str, tuple[float, str]] = {}
    uncertain: dict[str, str] = {}
    for other in compared.similar:
        share = jaccard(own, shingles_of(other.folded))
        if share >= NEAR_THRESHOLD or (share > 0 and text_skeleton(other.folded) == skeleton):
            duplicates[other.id] = (share, other.text)
        elif share >= _MIN_SHINGLE_SHARE and other.is_stored:
            uncertain[other.id] = other.text
    if embedding is not None and ctx.embedder is not None and uncertain:
        vectors = ctx.store.vectors.embeddings(list(uncertain), ctx.embedder.model)
        for other_id, found in vectors.items():
            cosine = float(found.vector @ embedding.vector)
            if cosine >= _SAME_MEANING_COSINE:
                duplicates[other_id] = (cosine, uncertain[other_id])
    best = sorted(duplicates.items(), key=lambda entry: (-entry[1][0], entry[0]))[:_MAX_REPORTED]
    return tuple(
        Collision(other_id, "near", round(share, 4), KEPT_BOTH, text, f"bethink forget {other_id}")
        for other_id, (share, text) in best
    )
