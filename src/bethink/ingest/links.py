"""Link new memories: similar memories, causes, entity relations, entity vectors.

Every kind of link has a limit. A memory's own words are analysed at every write, and the
memory that a stated cause refers to is searched for. Similar memories are searched for only
where the caller waits for the result: a search after each write would halve the throughput,
so maintenance does it for the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import pairwise, zip_longest

from bethink.core.characters import strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import differs_only_in_values, fold, word_set
from bethink.errors import ModelError
from bethink.ingest.admission import WriteContext
from bethink.ingest.updates import neighbours
from bethink.lang.words import load_words, stop_words
from bethink.model import Collision, Entity, Filters, Item, Link, Node
from bethink.ports import Embedding, Match, Mention, Record, Scope, TextSearch, unrelated_similarity


def entity_text(entity: Entity) -> str:
    """Return the text that is embedded for an entity: its kind and its name."""
    return f"{entity.kind}: {entity.name}"


def _mentioned(records: Sequence[Record]) -> dict[str, Entity]:
    return {mention.entity.id: mention.entity for r in records for mention in r.mentions}


def entities_ahead(records: Sequence[Record], ctx: WriteContext) -> None:
    """Tell the store that `entities_without_vector` will be asked."""
    if ctx.embedder is not None:
        with suppress(ModelError):  # a server that has not told its model yet
            ctx.store.vectors.entities_ahead(list(_mentioned(records)), ctx.embedder.model)


def entities_without_vector(records: Sequence[Record], ctx: WriteContext) -> list[str]:
    """Return the entities that records mention and the store has no vector for."""
    mentioned = _mentioned(records)
    if ctx.embedder is None or not mentioned:
        return []
    return ctx.store.vectors.lacking_vectors(list(mentioned), ctx.embedder.model)


def embed_new_entities(
    records: Sequence[Record], missing: Sequence[str], ctx: WriteContext
) -> list[Record]:
    """Add vectors for entities that the store has none for.

    If the model is down the records stay as they are; a reindex adds the missing vectors.
    """
    if ctx.embedder is None or not missing:
        return list(records)
    mentioned = _mentioned(records)
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


MAX_CAUSES = 3
_MIN_SHARED = 0.7  # share of the clause's words that the referenced memory must contain
_MIN_WORDS = 3
_MAX_HOLDERS = 2_000  # memories; a clause whose rarest word more than these hold tells none apart
_MAX_READ = 4_000  # characters of a memory in which causes are looked for
# How far above unrelated texts (0) a memory is similar to one that tells its cause in other
# words. Of 30 causes 14 are found with it, of 30 memories on the same subject 2 are taken for one.
_MIN_SIMILARITY = 0.55
_CAUSAL = ("caused_by", "causes")
_CUE_KINDS = {
    cue.strip(): kind
    for kind, section in zip(_CAUSAL, ("cause", "effect"), strict=True)
    for cues in load_words("causes")[section].values()
    for cue in cues.split("|")
}
# The longest cue first: "caused by" and "as a result of" do not state an effect.
_CUES = "|".join(map(re.escape, sorted(_CUE_KINDS, key=len, reverse=True)))
_LETTER = r"[^\W\u2e80-\uffff]"  # of words with spaces between them
_CUE = lazy_pattern(rf"(?:(?<!{_LETTER})|(?=\W))(?:{_CUES})(?:(?!{_LETTER})|(?<=\W))")
_ID_PATTERN = lazy_pattern(r"\b(?:[0-9a-hjkmnp-tv-z]{16})\b")
_CLAUSE = lazy_pattern(r"[\s,:\uff0c\uff1a]*([^.;,!?\n\u3002\uff0c\uff1b\uff01\uff1f]{0,200})")
_CAUSAL_OPENINGS = (
    *("because of that", "because of this", "therefore", "as a result", "that is why"),
    *("that's why", "consequently", "this caused", "that caused", "this led to", "so that's why"),
)


Clause = tuple[str, frozenset[str]]


class Statement(NamedTuple):
    """The words that a memory tells, and those of the cause or effect that it states.

    ``clauses`` have the type of the link (``caused_by``, ``causes``) and the words.
    """

    item: Item
    stated: frozenset[str]
    clauses: tuple[Clause, ...]


def read_statement(item: Item) -> Statement:
    """Read what a memory tells and what it states as its causes and effects, the first few.

    A turn of a conversation, which refers to what was said before it, states none, and
    neither does a question.
    """
    text = _comparable(item)
    is_turn = item.level == "raw" and item.session is not None
    clauses: dict[frozenset[str], str] = {}
    stated, end = [], 0
    cues = [] if is_turn or not _has_cue(text) else list(_CUE.finditer(text))
    for cue, after in zip_longest(cues, cues[1:]):
        stated.append(text[end : cue.start()])
        if clause := _CLAUSE.match(text, cue.end(), after.start() if after else len(text)):
            end = max(end, clause.end())
            words = _telling_words(clause[1])
            if len(words) >= _MIN_WORDS and len(clauses) < MAX_CAUSES:
                clauses.setdefault(words, _CUE_KINDS[cue[0]])
    stated.append(text[end:])
    found = tuple((kind, words) for words, kind in clauses.items())
    return Statement(item, _telling_words(" ".join(stated)), found)


def _telling_words(text: str) -> frozenset[str]:
    return word_set(text) - stop_words("en", "de", "fr", "es")


def _comparable(item: Item) -> str:
    return item.text[:_MAX_READ].lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _has_cue(text: str) -> bool:
    """Whether a text, in lower case, may state a cause; much cheaper than the pattern."""
    return any(cue in text for cue in _CUE_KINDS) and not text.rstrip().endswith("?")


class EarlierInBatch(NamedTuple):
    """The memories before one in the same batch, and the classes of what each is linked to.

    ``linked`` is by the id of a memory and the type of the link.
    """

    statements: list[Statement]
    linked: dict[tuple[str, str], list[int]]

    def add(self, links: Iterable[Link], classification: int) -> None:
        """Note links to a memory of this class."""
        for link in links:
            self.linked.setdefault((link.src.id, link.type), []).append(classification)


def find_causal_links(
    item: Item, near: Sequence[Match], earlier: EarlierInBatch, ctx: WriteContext
) -> list[Link]:
    """Find links from a memory to its stated cause and effect, and to it as one of others.

    The others are among its neighbours and those before it in the batch. A memory of a higher
    class changes nothing that is visible below it.
    """
    unrelated = unrelated_similarity(ctx.embedder) if near else 0.0
    known = [
        (read_statement(match.item), (match.score - unrelated) / (1.0 - unrelated))
        for match in near
    ]
    known += [
        (one, 0.0) for one in earlier.statements if one.item.classification <= item.classification
    ]
    own = read_statement(item)
    links: dict[str, Link] = {}
    for other, kind, confidence in _find_causes(own, known, ctx):
        if other.id != item.id and other.id not in links and len(links) < MAX_CAUSES:
            ends = item.id, other.id
            links[other.id] = link_items(ends, kind, ctx.now, confidence=confidence)
            earlier.add([links[other.id]], other.classification)
    later = _find_later_links(own, known, earlier, ctx)
    earlier.add(later, item.classification)
    earlier.statements.append(own)
    return [*links.values(), *later]


_Known = Sequence[tuple[Statement, float]]  # with the similarity to the new memory


def _find_later_links(
    own: Statement, known: _Known, earlier: EarlierInBatch, ctx: WriteContext
) -> list[Link]:
    """Links from memories that stated as cause or effect what this one tells.

    As many links to others as it states prevent one, unless those are forgotten or of a higher
    class.
    """
    found = {
        (other.item.id, clause[0]): sum(kind == clause[0] for kind, _ in other.clauses)
        for other, similarity in known
        for clause in other.clauses
        if _tells(own, other, clause, similarity)
    }
    if not found:
        return []
    level = own.item.classification
    stored = ctx.store.graph.links_of([other for other, _ in found], _CAUSAL, incoming=False)
    ends = ctx.store.items.get([link.dst.id for link in stored]) if stored else {}
    linked = Counter(
        key for key, levels in earlier.linked.items() for one in levels if one <= level
    )
    for link in stored:
        end = ends.get(link.dst.id)
        if end and end.live_to is None and end.status == "active" and end.classification <= level:
            linked[link.src.id, link.type] += 1
    return [
        link_items((other, own.item.id), kind, ctx.now, confidence=0.6)
        for (other, kind), most in found.items()
        if linked[other, kind] < most
    ]


def _tells(one: Statement, other: Statement, clause: Clause, similarity: float) -> bool:
    """Whether a memory tells what another one of the same user states as cause or effect.

    It has nearly all words of the clause. A cause may be described in other words: then the two
    memories are similar, and no more words are shared with the rest of the other one (what is
    similar to a memory with an effect mostly tells what was before). One that is flagged or
    trusted less explains nothing, nor does a question.
    """
    item, stating, (kind, words) = one.item, other.item, clause
    shared = len(one.stated & words)
    if not shared or item.user != stating.user or item.trust < stating.trust or item.flags:
        return False
    if item.text.rstrip().endswith("?"):
        return False
    in_other_words = kind == "caused_by" and similarity >= _MIN_SIMILARITY
    return shared >= _MIN_SHARED * len(words) or (
        in_other_words and shared >= len(one.stated & other.stated)
    )


def _find_causes(
    own: Statement, known: _Known, ctx: WriteContext
) -> Iterator[tuple[Item, str, float]]:
    """Find what a memory refers to.

    By an id in the text; the previous turn where a turn begins with "that is why"; or a
    memory that tells the clause after "because".
    """
    item, text = own.item, _comparable(own.item)
    if not _has_cue(text):
        return
    ids = list(dict.fromkeys(_ID_PATTERN.findall(text)))[:MAX_CAUSES]
    for known_id, other in ctx.store.items.get(ids).items() if ids else ():
        cues = _CUE.findall(text, 0, text.find(known_id))
        yield other, _CUE_KINDS[cues[-1]] if cues else "caused_by", 0.9
    if item.session is not None and text.startswith(_CAUSAL_OPENINGS):
        turns = [one.item for one, _ in known if one.item.session == item.session]
        for turn in turns[-1:] or _last_turn(item, ctx):
            yield turn, "caused_by", 0.6
    for clause in own.clauses if not ids else ():
        for one, similarity in _find_tellers(clause[1], item, known, ctx):
            if one.item.id != item.id and _tells(one, own, clause, similarity):
                yield one.item, clause[0], 0.6
                break


def _last_turn(item: Item, ctx: WriteContext) -> list[Item]:
    filters = Filters(sessions=(item.session or "",), max_classification=item.classification)
    return list(ctx.store.items.browse(Scope(filters, ctx.now), limit=1))


def _find_tellers(
    clause: frozenset[str], item: Item, known: _Known, ctx: WriteContext
) -> list[tuple[Statement, float]]:
    """Find memories that may tell a clause; none if thousands have each of its words.

    So a stock phrase costs no search, however many memories have it.
    """
    text = " ".join(sorted(clause))
    counts = ctx.store.search.statistics(ctx.store.search.terms(text)).frequencies.values()
    if min(filter(None, counts), default=0) > _MAX_HOLDERS:
        return []
    scope = Scope(Filters(max_classification=item.classification), ctx.now)
    found = ctx.store.search.text(TextSearch(text, 3), scope).matches
    return [*((read_statement(match.item), 0.0) for match in found), *known]


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
_NEIGHBOURS = 20  # memories compared with a new one


def add_links(
    records: Sequence[Record],
    collisions_by_record: Sequence[tuple[Collision, ...]],
    ctx: WriteContext,
) -> tuple[list[Record], list[tuple[Collision, ...]]]:
    """Add relation, cause and similarity links to records; return what they repeat.

    Similar memories are linked where the caller asks for it (``relating``).
    """
    comparing = ctx.relating or (len(records) == 1 and not ctx.deriving)
    earlier = EarlierInBatch([], {})
    linked: list[Record] = []
    reported: list[tuple[Collision, ...]] = []
    for record, collisions in zip(records, collisions_by_record, strict=True):
        item = record.item
        known = {collision.id for collision in collisions}
        links: list[Link] = extract_relations(item, record.mentions, ctx.now)
        near = find_neighbours(item, record.embedding, ctx) if comparing else []
        links += find_causal_links(item, near, earlier, ctx)
        if ctx.relating:
            links += similarity_links(item, near, known, ctx)
        linked.append(replace(record, links=(*record.links, *links)) if links else record)
        reported.append(
            tuple(one for one in collisions if one.kind != "near" or _repeats(item, one))
        )
    return linked, reported


def find_neighbours(item: Item, embedding: Embedding | None, ctx: WriteContext) -> list[Match]:
    """Find the memories of the nearest meaning; none for a turn of a conversation."""
    if embedding is None or item.session is not None:
        return []
    return neighbours(item, embedding, _NEIGHBOURS, ctx)


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
