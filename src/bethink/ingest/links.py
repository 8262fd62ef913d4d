"""Link new memories: similar memories, causes, entity relations, entity vectors.

Every kind of link has a limit. A memory's own words are analysed at every write, and the
memory that a stated cause refers to is searched for. Similar memories are searched for only
where the caller waits for the result: a search after each write would halve the throughput,
so maintenance does it for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from bethink.core.characters import strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import sentences
from bethink.core.words import differs_only_in_values, fold, word_overlap, word_set
from bethink.errors import ModelError
from bethink.ingest.admission import WriteContext
from bethink.lang.words import announces_change, load_words, word_set_of
from bethink.model import Collision, Entity, Filters, Item, Link, Node, may_replace
from bethink.ports import (
    Embedding,
    Match,
    Mention,
    Record,
    Scope,
    TextSearch,
    UsualSimilarity,
    unrelated_similarity,
)


def entity_text(entity: Entity) -> str:
    """Return the text that is embedded for an entity: its kind and its name."""
    return f"{entity.kind}: {entity.name}"


def embed_new_entities(records: Sequence[Record], ctx: WriteContext) -> list[Record]:
    """Add vectors for entities that the store has none for.

    If the model is down the records stay as they are; a reindex adds the missing vectors.
    """
    mentioned = {mention.entity.id: mention.entity for r in records for mention in r.mentions}
    if ctx.embedder is None or not mentioned:
        return list(records)
    missing = ctx.store.vectors.lacking_vectors(list(mentioned), ctx.embedder.model)
    if not missing:
        return list(records)
    try:
        embeddings = ctx.embedder.embed([entity_text(mentioned[key]) for key in missing])
    except ModelError:
        return list(records)
    fresh = dict(zip(missing, embeddings, strict=True))
    return [_attach_vectors(record, fresh) for record in records]


def _attach_vectors(record: Record, fresh: dict[str, Embedding]) -> Record:
    """Attach the vectors of new entities, each once, to records of the same model."""
    if not record.model or not any(mention.entity.id in fresh for mention in record.mentions):
        return record
    mentions = tuple(
        mention._replace(embedding=fresh.pop(mention.entity.id))
        if mention.entity.id in fresh
        else mention
        for mention in record.mentions
    )
    return replace(record, mentions=mentions)


def link_items(
    ends: tuple[str, str], kind: str, now: datetime, *, weight: float = 1.0, confidence: float = 1.0
) -> Link:
    """Return a link between two memories, made now."""
    source, target = (Node("item", end) for end in ends)
    return Link(source, target, kind, weight, confidence, created_at=now)


MAX_CAUSES = 2
_MIN_SHARED = 0.7  # share of the clause's words that the referenced memory must contain
_MIN_WORDS = 3
_MAX_HOLDERS = 2_000  # memories; a clause whose rarest word more than these hold tells none apart
# Similarity of a clause to the memory that tells it in other words, where 0 is that of
# unrelated texts (memories on the same subject reach 0.52), and the lead over the next one.
_MIN_CLAUSE_SIMILARITY = 0.55
_MIN_CLAUSE_LEAD = 0.1
_CUES = {
    kind: tuple(
        cue.strip() for cues in load_words("causes")[kind].values() for cue in cues.split("|")
    )
    for kind in ("cause", "effect")
}
_ID_PATTERN = lazy_pattern(r"\b(?:[0-9a-hjkmnp-tv-z]{16})\b")
_CLAUSE_END = lazy_pattern(r"[.;,!?\n]")
_CAUSAL_OPENINGS = (
    *("because of that", "because of this", "therefore", "as a result", "that is why"),
    *("that's why", "consequently", "this caused", "that caused", "this led to", "so that's why"),
)
_CAUSAL_STOP_WORDS = word_set_of("en", "stop_words", "cause")


def _cue_pattern(kind: str) -> re.Pattern[str]:
    """A pattern of the phrases before a cause or an effect: "caused by" is none of an effect."""
    cues = (rf"(?<!\w){re.escape(cue)}(?!\w)" for cue in _CUES[kind])
    return lazy_pattern(f"(?:{'|'.join(cues)})(?! by\\b)")


_CUE_PATTERNS = (("caused_by", _cue_pattern("cause")), ("causes", _cue_pattern("effect")))


class CausalClause(NamedTuple):
    """What a memory states as its cause (``caused_by``) or effect (``causes``)."""

    kind: str
    text: str
    words: frozenset[str]


def causal_clauses(item: Item) -> list[CausalClause]:
    """Return the causes and effects that a memory states, each at most once.

    Not those of a turn of a conversation, which refers to what was said before it, nor those
    of a question.
    """
    text = item.text.lower()
    is_turn = item.level == "raw" and item.session is not None
    if is_turn or not _has_cue(text):
        return []
    found = []
    for kind, pattern in _CUE_PATTERNS:
        if cue := pattern.search(text):
            clause = _CLAUSE_END.split(text[cue.end() :].strip(), maxsplit=1)[0]
            words = word_set(clause) - _CAUSAL_STOP_WORDS
            if len(words) >= _MIN_WORDS:
                found.append(CausalClause(kind, clause, words))
    return found


def _has_cue(text: str) -> bool:
    """Whether a text, in lower case, may state a cause; much cheaper than the patterns."""
    return any(cue in text for cues in _CUES.values() for cue in cues) and not (
        text.rstrip().endswith("?")
    )


class EarlierInBatch(NamedTuple):
    """From earlier in the same batch: the last turn of each session, and all memories.

    ``words`` keeps the words of those that were compared already, by id, ``stated`` the
    causes and effects that no memory was found for.
    """

    turns: dict[str, str]
    items: list[Item]
    words: dict[str, frozenset[str]]
    stated: list[tuple[Item, CausalClause]]

    def add(self, item: Item, *, explained: bool) -> None:
        """Note a memory, for those after it."""
        self.items.append(item)
        if not explained:
            self.stated.extend((item, clause) for clause in causal_clauses(item))
        if item.session is not None:
            self.turns[item.session] = item.id

    def take_stated(self, item: Item, ctx: WriteContext) -> list[Link]:
        """Links from memories that stated what this one tells; each is found once."""
        told = _told_by(item, self.stated) if self.stated else []
        links = _later_links(item, told, ctx)
        found = {link.src.id for link in links}
        self.stated[:] = [one for one in self.stated if one[0].id not in found]
        return links

    def words_of(self, item: Item) -> frozenset[str]:
        """Return the words of a memory."""
        if item.id not in self.words:
            self.words[item.id] = word_set(item.text)
        return self.words[item.id]


def find_causal_links(item: Item, earlier: EarlierInBatch, ctx: WriteContext) -> list[Link]:
    """Find links to stated causes and effects of a memory; two at most.

    By an id in the text; to the previous turn where a turn begins with "that is why"; or to
    an earlier memory that tells the clause after "because".
    """
    text = item.text.lower()
    if not _has_cue(text):
        return []
    links: dict[str, Link] = {}
    for other, kind, confidence in _find_causes(item, text, earlier, ctx):
        if other != item.id and len(links) < MAX_CAUSES:
            links.setdefault(
                other, link_items((item.id, other), kind, ctx.now, confidence=confidence)
            )
    return list(links.values())


def find_later_causes(
    item: Item, embedding: Embedding | None, near: Sequence[Item], ctx: WriteContext
) -> list[Link]:
    """Link memories that stated as cause or effect what this one tells, before it was stored.

    Those that are linked to another memory already are left as they are.
    """
    stated = [(other, clause) for other in near for clause in causal_clauses(other)]
    if not stated:
        return []
    ids = [other.id for other, _ in stated]
    links = ctx.store.graph.links_of(ids, ("causes", "caused_by"), incoming=False)
    linked = {(link.src.id, link.type) for link in links}
    told = _told_by(item, [one for one in stated if (one[0].id, one[1].kind) not in linked])
    told += [
        (other, clause)
        for other, clause in stated
        if (other, clause) not in told
        and (other.id, clause.kind) not in linked
        and _tells(clause.text, embedding, ctx)
    ]
    return _later_links(item, told, ctx)


_Stated = tuple[Item, CausalClause]


def _told_by(item: Item, stated: Iterable[_Stated]) -> list[_Stated]:
    """Those of the stated causes and effects whose words a memory has."""
    words = word_set(item.text)
    return [one for one in stated if _holds(words, one[1].words)]


def _later_links(item: Item, told: Iterable[_Stated], ctx: WriteContext) -> list[Link]:
    """Links to a memory from those that stated it as their cause or effect.

    Not to one that states a cause itself: it tells the effect again, not the cause.
    """
    own = {clause.kind for clause in causal_clauses(item)}
    return [
        link_items((other.id, item.id), clause.kind, ctx.now, confidence=0.6)
        for other, clause in told
        if clause.kind not in own and other.classification <= item.classification
    ][:MAX_CAUSES]


def _holds(words: frozenset[str], clause: frozenset[str]) -> bool:
    return len(clause & words) >= _MIN_SHARED * len(clause)


def _tells(clause: str, embedding: Embedding | None, ctx: WriteContext) -> bool:
    """Whether a memory tells a clause, in other words."""
    vector = _clause_vector(clause, ctx)
    if vector is None or embedding is None:
        return False
    similarity = float(embedding.vector @ vector.vector)
    return _above_unrelated(similarity, ctx) >= _MIN_CLAUSE_SIMILARITY


def _above_unrelated(similarity: float, ctx: WriteContext) -> float:
    unrelated = unrelated_similarity(ctx.embedder)
    return (similarity - unrelated) / (1.0 - unrelated)


def _clause_vector(clause: str, ctx: WriteContext) -> Embedding | None:
    if ctx.embedder is None:
        return None
    try:
        return ctx.embedder.embed([clause])[0]
    except ModelError:
        return None


def _find_causes(
    item: Item, text: str, earlier: EarlierInBatch, ctx: WriteContext
) -> Iterator[tuple[str, str, float]]:
    ids = list(dict.fromkeys(_ID_PATTERN.findall(text)))[:MAX_CAUSES]
    for known in ctx.store.items.get(ids) if ids else ():
        forward = _CUE_PATTERNS[1][1].search(text[: text.find(known)])
        yield known, "causes" if forward else "caused_by", 0.9
    if item.session is not None and text.startswith(_CAUSAL_OPENINGS):
        turn = earlier.turns.get(item.session) or _last_turn(item, ctx)
        if turn is not None:
            yield turn, "caused_by", 0.6
    for clause in causal_clauses(item) if not ids else ():
        cause = _find_cause_memory(clause, item, earlier, ctx)
        if cause is not None:
            yield cause, clause.kind, 0.6


def _last_turn(item: Item, ctx: WriteContext) -> str | None:
    filters = Filters(sessions=(item.session or "",), max_classification=3)
    found = ctx.store.items.browse(Scope(filters, ctx.now), limit=1)
    return found[0].id if found else None


def _find_cause_memory(
    clause: CausalClause, item: Item, earlier: EarlierInBatch, ctx: WriteContext
) -> str | None:
    """Search for the earlier memory that has nearly all words of a clause, or tells it."""
    scope = Scope(Filters(max_classification=item.classification), ctx.now)
    if _tells_apart(clause.words, ctx):
        search = TextSearch(clause.text, 3)
        stored = (match.item for match in ctx.store.search.text(search, scope).matches)
        unstored = (one for one in earlier.items if one.classification <= item.classification)
        for other in (*stored, *unstored):
            if other.id != item.id and _holds(earlier.words_of(other), clause.words):
                return other.id
    return _nearest_to_clause(clause.text, item, scope, ctx)


def _nearest_to_clause(clause: str, item: Item, scope: Scope, ctx: WriteContext) -> str | None:
    """The memory that tells a clause in other words: near to it, and nearer than any other."""
    vector = _clause_vector(clause, ctx)
    if vector is None or ctx.embedder is None:
        return None
    try:
        found = ctx.store.search.vector(vector.vector, ctx.embedder.model, 3, scope).matches
    except ModelError:
        return None  # all vectors are of another model
    near = [
        (_above_unrelated(match.score, ctx), match.item.id)
        for match in found
        if match.item.id != item.id
    ]
    if not near or near[0][0] < _MIN_CLAUSE_SIMILARITY:
        return None
    return near[0][1] if len(near) < 2 or near[0][0] - near[1][0] >= _MIN_CLAUSE_LEAD else None


def _tells_apart(words: frozenset[str], ctx: WriteContext) -> bool:
    """Whether one of the words is rare enough to point to a memory, however many there are."""
    terms = ctx.store.search.terms(" ".join(sorted(words)))
    known = ctx.store.search.statistics(terms)
    held = [count for count in known.frequencies.values() if count]
    return min(held, default=0) <= _MAX_HOLDERS


MAX_RELATIONS = 4
_RULE_CONFIDENCE = 0.8
_MAX_GAP_CHARACTERS = 40  # characters between two names
_RELATION_BY_PHRASE: dict[str, str] = {
    phrase.strip(): kind
    for kind, phrases in load_words("relations").items()
    for phrase in phrases.split("/")
}
_FILLER_WORDS = frozenset(
    {"the", "a", "an", "our", "now", "also", "currently", "still", "service"}
) | frozenset({"project", "module", "team", "class", "function", "tool", "library", "company"})


def extract_relations(item: Item, mentions: Sequence[Mention], now: datetime) -> list[Link]:
    """Extract relations between entities named one after the other in a memory."""
    if len(mentions) < 2:
        return []
    text = item.text
    lower = text.lower()
    if len(lower) != len(text):
        return []  # lower() changed the length: offsets would not fit
    spans = sorted(_mention_spans(lower, mentions))
    edges: dict[tuple[str, str, str], Link] = {}
    for (_, end, one), (start, _, other) in pairwise(spans):
        kind = (
            _relation_between(lower[end:start]) if 0 < start - end <= _MAX_GAP_CHARACTERS else None
        )
        if kind is not None and one != other:
            ends = Node("entity", one), Node("entity", other)
            link = Link(*ends, kind, confidence=_RULE_CONFIDENCE, context=item.id, created_at=now)
            edges.setdefault((one, kind, other), link)
    if text.rstrip().endswith("?"):
        return []
    return list(edges.values())[:MAX_RELATIONS]


def _mention_spans(lower: str, mentions: Sequence[Mention]) -> list[tuple[int, int, str]]:
    """Return where each entity is first named: start, end, entity id."""
    spans = []
    for mention in mentions:
        name = mention.entity.name.lower()
        start = lower.find(name)
        if start >= 0:
            spans.append((start, start + len(name), mention.entity.id))
    return spans


def _relation_between(between: str) -> str | None:
    if any(mark in between for mark in ".,;:!?()"):
        return None
    words = [word for word in between.split() if word not in _FILLER_WORDS]
    return _RELATION_BY_PHRASE.get(" ".join(words))


MAX_SIMILAR = 5
MIN_COSINE = 0.82
MAY_CORRECT = "kept both; the newer one comes first in answers"
# Memories compared with a new one; what stands out from them this far, with this share of the
# shorter one's words, or of all words, states the same thing anew.
_NEIGHBOURS = 20
_DISTINCT = 3.5
_MIN_DEVIATION = 0.03
_MIN_SHARED_WORDS = 0.18
_MIN_SAME_WORDS = 0.45
_RIVALS = 1


def add_links(
    records: Sequence[Record],
    collisions_by_record: Sequence[tuple[Collision, ...]],
    ctx: WriteContext,
) -> tuple[list[Record], list[tuple[Collision, ...]]]:
    """Add relation, cause and similarity links to records and report what they may correct.

    Similar memories are linked where the caller asks for it (``relating``). A memory stored
    by itself is always compared with those like it.
    """
    searching = ctx.relating
    comparing = searching or (len(records) == 1 and not ctx.deriving)
    earlier = EarlierInBatch({}, [], {}, [])
    linked: list[Record] = []
    reported: list[tuple[Collision, ...]] = []
    for record, collisions in zip(records, collisions_by_record, strict=True):
        item = record.item
        known = {collision.id for collision in collisions}
        links: list[Link] = extract_relations(item, record.mentions, ctx.now)
        causal = find_causal_links(item, earlier, ctx)
        links += causal
        near = find_neighbours(item, record.embedding, ctx) if comparing else []
        links += find_later_causes(item, record.embedding, [match.item for match in near], ctx)
        links += earlier.take_stated(item, ctx)
        if searching:
            links += similarity_links(item, near, known, ctx)
        linked.append(replace(record, links=(*record.links, *links)) if links else record)
        kept = tuple(one for one in collisions if one.kind != "near" or _repeats(item, one))
        corrected = find_corrected(item, near, {one.id for one in kept}, ctx)
        reported.append(kept if corrected is None else (*kept, corrected))
        earlier.add(item, explained=bool(causal))
    return linked, reported


def find_neighbours(item: Item, embedding: Embedding | None, ctx: WriteContext) -> list[Match]:
    """Find the memories of the nearest meaning; none for a turn of a conversation."""
    if embedding is None or ctx.embedder is None or item.session is not None:
        return []
    filters = Filters(levels=(item.level,), max_classification=item.classification)
    try:
        found = ctx.store.search.vector(
            embedding.vector, ctx.embedder.model, _NEIGHBOURS + 1, Scope(filters, ctx.now)
        )
    except ModelError:
        return []  # all vectors are of another model: a reindex is needed
    return [match for match in found.matches if match.item.id != item.id][:_NEIGHBOURS]


def similarity_links(
    item: Item, near: Sequence[Match], known_ids: set[str], ctx: WriteContext
) -> list[Link]:
    """Return ``similar_to`` links to memories of nearly the same meaning, not known otherwise."""
    similar = [
        match for match in near if match.score >= MIN_COSINE and match.item.id not in known_ids
    ]
    return [
        link_items((item.id, match.item.id), "similar_to", ctx.now, weight=round(match.score, 4))
        for match in similar[:MAX_SIMILAR]
    ]


def _repeats(item: Item, other: Collision) -> bool:
    """Whether near-duplicates are one statement in other words, its denial, or a fact restated.

    With another number or name they are two statements, unless they state a fact. The same
    words were said at another time or by another person, else they would not be stored again.
    """
    words = [frozenset(_WORD.findall(strip_hidden(text))) for text in (item.text, other.text)]
    folded = [{word.casefold() for word in text} for text in words]
    fresh = [
        [word for word in text if word.casefold() not in folded[1 - number]]
        for number, text in enumerate(words)
    ]
    if not any(fresh) or not other.text:
        return fold(item.text) != fold(other.text)
    has_value = [any(word[0].isupper() or word[0].isdigit() for word in text) for text in fresh]
    is_fact = item.kind == "fact"
    return not all(has_value) or (is_fact and differs_only_in_values(item.text, other.text))


_WORD = lazy_pattern(r"[^\W_]+")


def find_corrected(
    item: Item, near: Sequence[Match], known_ids: set[str], ctx: WriteContext
) -> Collision | None:
    """Find the older memory that a new one seems to correct: the same thing, stated anew.

    Stricter than an answer, which also has the question to compare with.
    """
    for place, match in enumerate(near[: _RIVALS + 1]):
        if match.item.id in known_ids:
            continue
        others = [other.score for at, other in enumerate(near) if at != place]
        usual = UsualSimilarity.measure(
            sum(others),
            sum(score**2 for score in others),
            len(others),
            least=_NEIGHBOURS - 1,
            unrelated=unrelated_similarity(ctx.embedder),
        )
        spread = max(usual.deviation, _MIN_DEVIATION)
        if match.score < usual.mean + _DISTINCT * spread or not may_replace(item, match.item):
            continue
        if _is_restated(item, match.item, ctx):
            resolve = f"bethink forget {match.item.id}"
            found = Collision(match.item.id, "related", round(match.score, 4), MAY_CORRECT, "")
            return found._replace(text=match.item.text, resolve=resolve)
    return None


def _is_restated(newer: Item, older: Item, ctx: WriteContext) -> bool:
    """Whether two memories share rare words and the newer one says that something changed.

    Or it is the same fact with another value; of two events in the same words both happened.
    """
    search = ctx.store.search
    now, then = frozenset(search.terms(newer.text)), frozenset(search.terms(older.text))
    documents, _, held = search.statistics(now | then)
    # The new one is not stored yet.
    counts = {term: held.get(term, 0) + (term in now) for term in now | then}
    overlap = word_overlap(now, then, documents + 1, counts)
    if overlap.of_shorter < _MIN_SHARED_WORDS:
        return False
    about = (
        sentence
        for sentence in sentences(newer.text)
        if not overlap.telling.isdisjoint(search.terms(sentence))
    )
    if announces_change(" ".join(about), older.text):
        return True
    if newer.kind != older.kind or newer.kind in _EVENT_KINDS:
        return False
    same = overlap.of_all >= _MIN_SAME_WORDS
    return same and differs_only_in_values(newer.text, older.text)


# Kinds of what happened, or of what nobody knows the kind of.
_EVENT_KINDS = frozenset(("event", "episode", "outcome", "observation", "resolution", "note"))
