"""Clean up: supersede duplicates, link similar memories, report expired ones, forget.

Duplicates are found by min-hash sketches through an index: memories that share a band
are compared, so the cost grows with the memories and what they share, not with the
number of possible pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bethink.core.json_values import iso
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption
from bethink.core.words import fold, word_set
from bethink.ingest.admission import occurred_at_different_times
from bethink.ingest.deduplication import minhash_sketch
from bethink.ingest.links import MAX_SIMILAR, MIN_COSINE, find_neighbours, similarity_links
from bethink.ingest.revision import SUPERSEDED_SINCE
from bethink.lang.words import negations, word_set_of
from bethink.maintain.job import (
    EXCERPT_CHARACTERS,
    JobContext,
    Proposal,
    batches,
    days_old,
    exemption_reason,
    heat_by_id,
    iter_items,
)
from bethink.model import Item, Link, Node
from bethink.retrieval.heat import COMPRESS_FROM, DROP_FROM, forgetting_risk

# Adding or dropping these words does not change the meaning; any other word may.
_ARTICLES = {"a": "a", "an": "a", "the": "the"}
# Before these an article matters: "few" is not "a few", "in charge" is not "in the charge".
_ARTICLE_SENSITIVE = word_set_of("en", "articles", "telling_before")
# Openings of a text, followed by a mark: "FYI: ...".
_GREETINGS = frozenset(("hi", "hello", "hey", "fyi", "btw", "note", "so"))
_SENTENCE_ENDINGS = (".", "!", "?", ":")
_BATCH = 200
_WORD_CACHE_SIZE = 50_000
_SAME_FIELDS = ("level", "layer", "topic", "speaker", "user")


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Supersede an older memory by a newer one that says the same.

    Their cosine is at least ``min_cosine``, and the words are the same in the same order,
    articles aside. Where the run names a ``similarity``, a cosine of that alone is enough if
    both have the same numbers, names and denials. Turns of conversations and pinned memories
    are left alone. The newer one must be as trusted, and visible to everyone who sees the
    older.
    """

    min_cosine: float = 0.95
    name: str = "duplicates"

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose newest survivors first; stop at the limit of memories that may leave."""
        gone: set[str] = set()
        room = work.limit
        words_of = lru_cache(maxsize=_WORD_CACHE_SIZE)(comparable_words)
        least = work.similarity or self.min_cosine
        for batch in batches(iter_items(work, levels=("item",)), _BATCH):
            with work.store.snapshot():
                alone = [item for item in batch if item.session is None]
                pairs = [(item, _older_duplicates(item, words_of, work)) for item in alone]
            found = [(newer, like) for newer, like in pairs if like]
            near = _cosines(found, work)
            for newer, like in found:
                close = (one for one in like if near.get((newer.id, one.id), 1.0) >= least)
                older = [one for one in close if not gone.intersection((newer.id, one.id))]
                if older := older[:room]:  # the next run takes the rest
                    gone.update(item.id for item in older)
                    room -= len(older)
                    yield _duplicate_proposal(newer, older)
                    if room <= 0:
                        return


class ComparedWord(NamedTuple):
    """A normalised word, and the article before it, if any."""

    article: str
    word: str


WordsOf = Callable[[str], Sequence[ComparedWord]]


def _older_duplicates(newer: Item, words_of: WordsOf, work: JobContext) -> list[Item]:
    """Return older memories with the same words, among those that share a sketch band."""
    words, bands = words_of(newer.text), minhash_sketch(fold(newer.text))
    sharing = work.store.items.find_duplicates([("", bands)], work.scope)[0] if bands else ()
    found = [
        older
        for older in sharing
        if older.id != newer.id and is_same_wording(words, words_of(older.text))
    ]
    known = {older.id for older in found}
    found += [older for older in _of_same_meaning(newer, work) if older.id not in known]
    return [
        older for older in found if _can_replace(newer, older) and exemption_reason(older) is None
    ]


def _of_same_meaning(newer: Item, work: JobContext) -> list[Item]:
    """Return memories as near in meaning as the run asks for, with the same details."""
    if work.similarity is None or work.embedder is None:
        return []
    made = work.store.vectors.embeddings([newer.id], work.embedder.model)
    near = find_neighbours(newer, made.get(newer.id), work.write_context())
    details = telling_words(newer.text)
    return [
        match.item
        for match in near
        if match.score >= work.similarity and telling_words(match.item.text) == details
    ]


def telling_words(text: str) -> frozenset[str]:
    """Return the words that change a statement: numbers, names and denials."""
    words = re.findall(r"\w+(?:[.:/'-]\w+)*", text)
    denials = negations().words | word_set_of("en", "negations", "auxiliaries")
    names = (word for word in words[1:] if word[:1].isupper())
    figures = (word for word in words if any(char.isdigit() for char in word))
    return frozenset(
        fold(word) for word in (*names, *figures, *(one for one in words if fold(one) in denials))
    )


def repeating(text: str, others: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the ids of texts with all words of this one, and its numbers, names and denials."""
    words = word_set(text)
    longest = max(words, key=len, default="")
    for other_id, other in others:
        # A word of ASCII is in the other text as it is, but for the case: this decides most.
        if text.isascii() and other.isascii() and longest not in other.lower():
            continue
        if words <= word_set(other) and telling_words(text) == telling_words(other):
            yield other_id


def _can_replace(newer: Item, older: Item) -> bool:
    """Whether everyone who saw the older memory may get the newer one instead."""
    if (older.stored_at, older.id) >= (newer.stored_at, newer.id) or older.session is not None:
        return False
    if any(getattr(newer, name) != getattr(older, name) for name in _SAME_FIELDS):
        return False
    slots = [(item.subject, item.attribute) for item in (newer, older)]
    if None not in (newer.subject, older.subject) and slots[0] != slots[1]:
        return False
    if newer.trust < older.trust or newer.classification > older.classification or newer.flags:
        return False
    if not set(newer.tags).issuperset(older.tags):
        return False
    same_time = not occurred_at_different_times(newer.occurred_at, older.occurred_at)
    validity = [(item.valid_from, item.valid_to) for item in (newer, older)]
    return same_time and validity[0] == validity[1]


def comparable_words(text: str) -> tuple[ComparedWord, ...]:
    """Split a text into words in order, each with the article before it."""
    raw = text.split()
    if len(raw) > 1 and raw[0][-1] in ",:" and fold(raw[0]) in _GREETINGS:
        raw = raw[1:]
    shouted = text.isupper()
    words: list[ComparedWord] = []
    article, opening = "", True
    for written in raw:
        word = _normalise_word(written, shouted=shouted)
        # Capitals inside a sentence make it a name: "plan A", "The Hague".
        is_article = written in _ARTICLES or (opening and written == "The")
        if is_article and not article:
            article, opening = _ARTICLES[word], False
            continue
        if article and word in _ARTICLE_SENSITIVE:
            words.append(ComparedWord("", article))
            article = ""
        words.append(ComparedWord(article, word))
        article, opening = "", written.endswith(_SENTENCE_ENDINGS)
    return (*words, ComparedWord("", article)) if article else tuple(words)


def _normalise_word(written: str, *, shouted: bool) -> str:
    """Fold a word's case, unless its capitals are significant: "IT" is not "it"."""
    folded = fold(written)
    is_short = len(folded) > 1 and written.isupper() and not shouted
    return folded.upper() if is_short else folded


def is_same_wording(newer: Sequence[ComparedWord], older: Sequence[ComparedWord]) -> bool:
    """Whether both have the same words in order; an article may be missing, "a" is not "the"."""
    if not older or len(older) != len(newer):
        return False
    return all(
        mine.word == other.word
        and (mine.article == other.article or "" in (mine.article, other.article))
        for mine, other in zip(newer, older, strict=True)
    )


def _cosines(
    found: Sequence[tuple[Item, Sequence[Item]]], work: JobContext
) -> dict[tuple[str, str], float]:
    """Return the cosine of each pair where both have a vector."""
    if work.embedder is None or not found:
        return {}
    ids = {candidate.id for item, like in found for candidate in (item, *like)}
    made = work.store.vectors.embeddings(sorted(ids), work.embedder.model)
    return {
        (item.id, candidate.id): float(made[item.id].vector @ made[candidate.id].vector)
        for item, like in found
        for candidate in like
        if item.id in made and candidate.id in made
    }


def _duplicate_proposal(newer: Item, older: Sequence[Item]) -> Proposal:
    me, since = Node("item", newer.id), f"{SUPERSEDED_SINCE}{iso(newer.when)}"
    return Proposal(
        f"{newer.id} says the same as {', '.join(item.id for item in older)}: "
        f"{caption(newer.text, newer.speaker, limit=EXCERPT_CHARACTERS)}",
        "a newer memory says the same",
        parents=(newer.id,),
        statuses=tuple((item.id, "superseded") for item in older),
        links=tuple(Link(me, Node("item", item.id), "supersedes", context=since) for item in older),
        seen={item.id: item.rev for item in (newer, *older)},
    )


@dataclass(frozen=True, slots=True)
class Relate:
    """Add up to five ``similar_to`` links to each of the newest ``most`` memories."""

    most: int = 2_000
    name: str = "relate"

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose a few hundred memories at a time, where links are missing."""
        if work.embedder is None:
            return
        looked = 0
        for batch in batches(iter_items(work, levels=("item",)), _BATCH):
            links = _missing_links(batch, work)
            if links:
                yield Proposal(
                    f"{len(links)} pairs of memories are similar in meaning",
                    f"link pairs with a cosine of at least {MIN_COSINE},"
                    f" at most {MAX_SIMILAR} per memory",
                    links=tuple(links),
                )
            looked += len(batch)
            if looked >= self.most:
                return


def _missing_links(batch: Sequence[Item], work: JobContext) -> list[Link]:
    """Return the missing links between similar memories of a batch; each pair once."""
    ctx = work.write_context()
    ids = [item.id for item in batch]
    linked: dict[str, set[str]] = {item_id: set() for item_id in ids}
    for link in work.store.graph.links_of(ids):
        for end, beyond in ((link.src.id, link.dst.id), (link.dst.id, link.src.id)):
            if end in linked and link.src.kind == link.dst.kind == "item":
                linked[end].add(beyond)
    vectors = work.store.vectors.embeddings(ids, ctx.embedder.model) if ctx.embedder else {}
    links: list[Link] = []
    with work.store.snapshot():
        for item in batch:
            room = MAX_SIMILAR - len(linked[item.id])
            near = find_neighbours(item, vectors.get(item.id), ctx) if room > 0 else []
            for link in similarity_links(item, near, linked[item.id], ctx)[:room]:
                links.append(link)
                linked.get(link.dst.id, set()).add(item.id)
    return links


@dataclass(frozen=True, slots=True)
class Expire:
    """Report how many memories have passed their ``valid_to``, which recall leaves out anyway."""

    shown: int = 5
    name: str = "expire"

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose a remark where there are any."""
        past = [
            item.id
            for item in iter_items(work, include_expired=True)
            if item.valid_to is not None and item.valid_to <= work.now
        ]
        if past:
            some = ", ".join(past[: self.shown])
            more = ", ..." if len(past) > self.shown else ""
            yield Proposal(f"{len(past)} expired and no longer recalled: {some}{more}", "")


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget memories whose forgetting risk is ``drop_from`` or more, highest risk first.

    The forget is soft. Pinned and protected memories, goals, caveats and verbatim episodes
    stay. Memories between ``compress_from`` and that are only counted: they are for
    consolidation.
    """

    drop_from: float = DROP_FROM
    compress_from: float = COMPRESS_FROM
    name: str = "forget"
    by_age: bool = True

    def plan(self, work: JobContext) -> Iterator[Proposal]:
        """Propose one memory at a time, so that a limit cuts exactly."""
        with work.store.snapshot():
            items = [
                item
                for item in iter_items(work)
                if exemption_reason(item) is None
                and days_old(item, work) >= (work.min_age_days or 0)
            ]
            warm = heat_by_id(items, work)
        risks = [
            (forgetting_risk(warm[item.id][0], item.importance, warm[item.id][1]), item)
            for item in items
        ]
        ripe = sorted(
            ((risk, item) for risk, item in risks if risk >= self.drop_from),
            key=lambda pair: (-pair[0], pair[1].id),
        )
        between = sum(self.compress_from <= risk < self.drop_from for risk, _ in risks)
        if between:
            yield Proposal(f"{between:,} more could be consolidated", "")
        for risk, item in ripe:
            unused = warm[item.id][1]
            why = f"risk {risk:.0f}: unused for {unused:.0f} days, importance {item.importance:g}"
            yield Proposal(
                f"{why}: {caption(item.text, item.speaker, limit=EXCERPT_CHARACTERS)}",
                f"forgetting risk {risk:.0f}",
                ends=(item.id,),
                seen={item.id: item.rev},
            )
