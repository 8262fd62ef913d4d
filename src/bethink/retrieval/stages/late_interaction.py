"""Late interaction and vector similarity features, passages, neighbour expansion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import add, attrgetter
from typing import Literal

from bethink.core.arrays import Matrix, Vector, np
from bethink.core.characters import estimate_tokens
from bethink.core.dataclass import dataclass, field
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.passages import split_passages
from bethink.errors import ModelError
from bethink.model import (
    Candidate,
    Evidence,
    Item,
    Passage,
    Pool,
    sort_by_score,
    values_by,
    with_column,
)
from bethink.ports import Embedding, LateInteraction, late_interaction, unrelated_similarity
from bethink.retrieval.context import Context, PerEach, PerRecall
from bethink.retrieval.query_analysis import content_terms, expected_similarity, max_bm25_score

_WORD = lazy_pattern(r"\w+")


@dataclass(frozen=True, slots=True)
class TurnOrder:
    """The order of turns, as far as it has been looked up."""

    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def neighbours(self, turn: str) -> list[str]:
        """Return the turns right before and right after one."""
        return [turn_id for turn_id in (self.before.get(turn), self.after.get(turn)) if turn_id]


@PerRecall
def _turns(_: Context) -> TurnOrder:
    return TurnOrder()


def turn_order(ids: Iterable[str], ctx: Context) -> TurnOrder:
    """Look up the order of these turns and their neighbours, once per recall."""
    turns = _turns(ctx)
    fresh = sorted(set(ids) - turns.known)
    if fresh:
        pairs = ctx.store.graph.follows(fresh, as_of=ctx.query.as_of)
        turns.before.update(pairs)
        turns.after.update([(before, turn) for turn, before in pairs])
        turns.known.update(fresh)
    return turns


class FeatureTable:
    """The similarity features of a recall's memories, as columns.

    ``cosine`` counts rare words of the question for more, ``plain`` counts all alike;
    ``interaction`` is late interaction, ``sentence`` the best sentence, ``matches`` the best
    similarity that each token of the question finds (MaxSim). Of a long memory all are those
    of one passage, the most similar to the question, and the cosines no less than its best
    sentence's. ``rows`` has the row of each memory; row 0, of zeros, is that of every memory
    without a vector. ``lost`` are rows without matches, whose tokens are damaged.
    ``passages`` are the passages of long memories.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.passages: dict[str, ComparedPassages] = {}
        self.cosine, self.interaction, self.sentence, self.plain = [0.0], [0.0], [0.0], [0.0]
        self.matches: Matrix | None = None
        self.lost = {0}

    def row(self, item_id: str) -> int:
        """The row of a memory; 0 where it has no vector."""
        return self.rows.get(item_id, 0)

    @property
    def is_empty(self) -> bool:
        """Whether no memory has a vector."""
        return len(self.cosine) == 1

    def nearest(self) -> float:
        """The highest cosine of any memory that was compared."""
        return max((self.cosine[row] for row in self.rows.values()), default=0.0)

    def add(self, ids: Sequence[str], found: Comparison) -> None:
        """Append what was compared, a row each."""
        start = len(self.cosine)
        self.cosine += found.cosine
        self.plain += found.plain
        self.interaction += found.interaction
        self.sentence += found.sentence
        if found.matches is not None:
            known = np.zeros((1, found.matches.shape[1])) if self.matches is None else self.matches
            self.matches = np.concatenate([known, found.matches])
            self.lost.update(start + row for row in found.lost)
        self.rows.update(zip(ids, range(start, start + len(ids)), strict=True))


class ComparedPassages(NamedTuple):
    """The passages of a long memory: how near each is, and its tokens."""

    near: tuple[float, ...]
    tokens: tuple[bytes, ...]


class Comparison(NamedTuple):
    """Features of several texts, one a row; ``matches`` is None without tokens to compare.

    ``lost`` are the rows whose own tokens are damaged.
    """

    cosine: list[float]
    plain: list[float]
    interaction: list[float]
    sentence: list[float]
    matches: Matrix | None
    lost: frozenset[int] = frozenset()

    def of_best(self, sizes: Sequence[int]) -> Comparison:
        """Of each memory's so many rows the one that is most similar to the question."""
        chosen, start = [], 0
        for size in sizes:
            rows = range(start, start + size)
            chosen.append(max(rows, key=lambda row: self.cosine[row] + self.interaction[row]))
            start += size
        return Comparison(
            [self.cosine[row] for row in chosen],
            [self.plain[row] for row in chosen],
            [self.interaction[row] for row in chosen],
            [self.sentence[row] for row in chosen],
            None if self.matches is None else self.matches[chosen],
            frozenset(place for place, row in enumerate(chosen) if row in self.lost),
        )


@PerRecall
def _features(_: Context) -> FeatureTable:
    return FeatureTable()


def similarity_features(pool: Iterable[Candidate], ctx: Context) -> FeatureTable:
    """Compute features for memories that no earlier step has read; return all features."""
    table = _features(ctx)
    if ctx.embedder is not None:
        rows = table.rows
        fresh = [cand.item.id for cand in pool if cand.item.id not in rows]
        if fresh:
            _compute_features(fresh, table, ctx)
    return table


class QuestionTokens(NamedTuple):
    """The tokens of the question's content terms, and the weight of each."""

    weights: tuple[float, ...]
    matrix: Matrix | None


def none_negative(values: list[float]) -> list[float]:
    """Return the values, with 0 for those below; mostly there are none."""
    return [max(0.0, value) for value in values] if min(values, default=0.0) < 0 else values


def _compute_features(ids: Sequence[str], table: FeatureTable, ctx: Context) -> None:
    """Compare these memories with the question; those without a vector get row 0."""
    table.rows.update(dict.fromkeys(ids, 0))
    assert ctx.embedder is not None
    try:
        # A server that is down may fail as soon as its model is read.
        stored = ctx.store.vectors.embeddings(ids, ctx.embedder.model, as_of=ctx.query.as_of)
        vector = ctx.weighted_vector() if stored else None
    except ModelError as error:
        # Without a vector of the question only word matches are left.
        ctx.add_step_note(f"no similarity features: {error.message}")
        return
    if vector is None:
        return
    long = {key: one for key, one in stored.items() if one.passages}
    if not long:
        table.add(list(stored), _compare(list(stored.values()), vector, ctx))
        return
    compared = [
        _nearest_passages(key, one, vector, ctx) if one.passages else (one,)
        for key, one in stored.items()
    ]
    found = _compare([one for several in compared for one in several], vector, ctx)
    best = found.of_best([len(several) for several in compared])
    for row, key in enumerate(stored):
        if key in long:
            # One sentence can answer, whatever the rest of its passage tells.
            best.cosine[row] = max(best.cosine[row], best.sentence[row])
            best.plain[row] = max(best.plain[row], best.sentence[row])
    table.add(list(stored), best)


def _nearest_passages(
    key: str, embedding: Embedding, vector: Vector, ctx: Context
) -> tuple[Embedding, ...]:
    """The passages of a long memory that are worth comparing token by token.

    A passage is as near as itself or its nearest sentence.
    """
    near = [float(one.vector @ vector) for one in embedding.passages]
    payloads = [one.tokens for one in embedding.passages]
    embedder = late_interaction(ctx.embedder)
    if embedder is not None:
        sentences, payloads = _best_sentences(embedder, vector, payloads, ctx)
        near = list(map(max, near, sentences))
    _features(ctx).passages[key] = ComparedPassages(tuple(near), tuple(payloads))
    order = sorted(range(len(near)), key=lambda number: -near[number])
    return tuple(embedding.passages[number] for number in order[:_COMPARED_PASSAGES])


def _compare(embeddings: Sequence[Embedding], vector: Vector, ctx: Context) -> Comparison:
    """Compare each embedding with the question; token by token where the embedder can."""
    vectors = [one.vector for one in embeddings]
    matrix = np.concatenate(vectors).reshape(len(vectors), -1)
    # Products of pairs: each has the same bits, whatever else is compared.
    cosines = np.vecdot(matrix, vector).tolist()
    plains = np.vecdot(matrix, ctx.embedding().vector).tolist()
    embedder, (weights, tokens) = late_interaction(ctx.embedder), question_tokens(ctx)
    if embedder is None or tokens is None:
        none = [0.0] * len(vectors)
        return Comparison(cosines, plains, none, none, None)
    payloads = [embedding.tokens for embedding in embeddings]
    sentences, sound = _best_sentences(embedder, vector, payloads, ctx)
    matches = embedder.best_matches(tokens, sound)
    interactions = (matches @ np.array(weights)).tolist()
    # Where its tokens are damaged, a memory is as near as its vector says.
    lost = frozenset(row for row, own in enumerate(payloads) if own and not sound[row])
    return Comparison(cosines, plains, interactions, sentences, matches, lost)


def _best_sentences(
    embedder: LateInteraction, vector: Vector, payloads: list[bytes], ctx: Context
) -> tuple[list[float], list[bytes]]:
    """Return how near each memory's best sentence is, and the tokens that can be compared.

    Tokens that are damaged count as none; the answer reports them.
    """
    try:
        return embedder.best_sentences(vector, payloads).tolist(), payloads
    except ModelError:
        sound = [one if _can_compare(embedder, vector, one) else b"" for one in payloads]
        ctx.note_damage(vectors=set(payloads) - set(sound))
        return embedder.best_sentences(vector, sound).tolist(), sound


def _can_compare(embedder: LateInteraction, vector: Vector, tokens: bytes) -> bool:
    try:
        embedder.best_sentences(vector, [tokens])
    except ModelError:
        return False
    return True


_COMPARED_PASSAGES = 2  # of a long memory, the nearest by cosine


def with_passage(cand: Candidate, ctx: Context) -> Candidate:
    """The candidate as it is shown: a long memory by its best passage."""
    passage = shown_passage(cand.item, ctx)
    return cand if passage is None else cand._replace(passage=passage)


def shown_passage(item: Item, ctx: Context) -> Passage | None:
    """The passage that is shown of a long memory; None where the whole is.

    It is the one that best matches the question by words and by meaning.
    """
    return _shown_passages((item,), ctx)[item.id]


_shown_passages = PerEach[Item, str, Passage | None](
    lambda items, ctx: {
        item.id: None if ctx.query.whole else _find_passage(item, ctx) for item in items
    },
    attrgetter("id"),
)


def shown_text(item: Item, ctx: Context) -> str:
    """The text that is shown of a memory: of a long one its best passage."""
    passage = shown_passage(item, ctx)
    return item.text if passage is None else item.text[passage.start : passage.end]


def _find_passage(item: Item, ctx: Context) -> Passage | None:
    spans = split_passages(item.text)
    if not spans:
        return None
    compared = similarity_features((Candidate(item),), ctx).passages.get(item.id)
    if compared is None or len(compared.near) != len(spans):
        # There are no vectors of passages yet.
        compared = ComparedPassages((0.0,) * len(spans), (b"",) * len(spans))
    by_token = _token_matches(compared, ctx)
    weight = 1.0 if by_token is None else _WORDS_BESIDE_TOKENS
    shares = [weight * _word_share(item.text[start:end], ctx) for start, end in spans]
    scores = list(map(add, by_token or compared.near, shares))
    start, end = spans[scores.index(max(scores))]
    text = item.text[start:end]
    start, end = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
    return Passage(start, end, _count_tokens(item, item.text[start:end]))


def _token_matches(compared: ComparedPassages, ctx: Context) -> list[float] | None:
    """Late interaction of the question with each passage; None where it is not possible.

    It tells passages of one text apart better than a vector, which is about all they tell.
    """
    embedder, (weights, tokens) = late_interaction(ctx.embedder), question_tokens(ctx)
    if embedder is None or tokens is None or not all(compared.tokens):
        return None
    matches = embedder.best_matches(tokens, list(compared.tokens)) @ np.array(weights)
    return [float(value) for value in matches]


_WORDS_BESIDE_TOKENS = 0.2  # weight of shared words where tokens are compared


def _word_share(text: str, ctx: Context) -> float:
    """The share of the question's content words, by rarity, that a text seems to hold.

    Fast, not exact: of a longer word all but its last two letters must occur.
    """
    folded = text.casefold()
    words = set(_WORD.findall(folded))
    total = held = 0.0
    for term in content_terms(ctx):
        word = term.word.shown.casefold()
        total += term.weight
        found = word in words or (len(word) > 4 and word[: max(4, len(word) - 2)] in folded)
        held += term.weight * found
    return held / total if total else 0.0


def _count_tokens(item: Item, passage: str) -> int:
    """The passage's share of the memory's tokens, by bytes."""
    size = len(item.text.encode())
    return -(-estimate_tokens(item.text, item.tokens) * len(passage.encode()) // size)


@PerRecall
def question_tokens(ctx: Context) -> QuestionTokens:
    """Return token weights that add up to 1; none where the embedder has no tokens."""
    embedder = late_interaction(ctx.embedder)
    if embedder is None:
        return QuestionTokens((), None)
    weights = {term.word.shown: term.weight for term in content_terms(ctx)}
    owners, matrix = embedder.word_tokens(list(weights), ctx.query.text)
    if not owners:
        return QuestionTokens((), None)
    total = sum(weights[owner] for owner in owners) or 1.0
    return QuestionTokens(tuple(weights[owner] / total for owner in owners), matrix)


@dataclass(frozen=True, slots=True)
class NeighbourExpansion:
    """Add the turns around the best ``seeds`` of a conversation.

    The answer is often next to the words of the question. Added turns have no score yet;
    later stages score them.
    """

    seeds: int = 30
    steps: int = 2
    name: str = "beside"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        frontier = {cand.item.id for cand in pool[: self.seeds] if cand.item.session is not None}
        known = {cand.item.id for cand in pool}
        reached = set(frontier)
        for _ in range(self.steps):
            turns = turn_order(frontier, ctx)
            frontier = {
                neighbour for turn in frontier for neighbour in turns.neighbours(turn)
            } - reached
            reached |= frontier
        added = ctx.store.search.in_scope(sorted(reached - known), ctx.scope)
        return sort_by_score([*pool, *map(Candidate, added)])


# Similarities of every embedder are judged on one scale, on which unrelated texts have this one.
_REFERENCE_UNRELATED = 0.083
# The usual similarity counts as that of so many memories more: few say little of what is usual.
_PRIOR_MEMORIES, _PRIOR_DISTANCE, _PRIOR_SPREAD = 10, 0.05, 0.1
_CLEAREST, _LEAST_CLEAR = 2.0, -1.0


def on_reference_scale(similarity: float, unrelated: float) -> float:
    """Return a similarity on the scale of all embedders, by its distance from 1."""
    return 1.0 - (1.0 - similarity) * (1.0 - _REFERENCE_UNRELATED) / (1.0 - unrelated)


@PerRecall
def clearness(ctx: Context) -> float:
    """Return how clearly the nearest memory stands out from what is usual here, -1 to 2.

    Measured in standard deviations of the question's similarity to all memories, less what
    the nearest of so many would have by chance; 0 where nothing was measured.
    """
    usual = ctx.background()
    if usual is None:
        return 0.0
    nearest = similarity_features((), ctx).nearest()
    count = usual.memories + _PRIOR_MEMORIES
    prior = unrelated_similarity(ctx.embedder) + _PRIOR_DISTANCE
    mean = (usual.mean * usual.memories + prior * _PRIOR_MEMORIES) / count
    variance = usual.spread**2 * usual.memories + _PRIOR_SPREAD**2 * _PRIOR_MEMORIES
    deviations = (nearest - mean) / math.sqrt(variance / count)
    chance = math.sqrt(2.0 * math.log(count))
    return min(_CLEAREST, max(_LEAST_CLEAR, deviations - chance))


@dataclass(frozen=True, slots=True)
class MatchScoring:
    """Add what words and meaning say for each memory, as log-odds (tens of them make 1).

    ``words`` counts the BM25 score of shared words, ``pieces`` the share of the question that
    is held with misspelt words and parts of words, ``whole`` the similarity of the vectors,
    ``weighted`` the same with rare words of the question counting more, ``tokens`` late
    interaction (Khattab & Zaharia, SIGIR 2020), ``sentence`` the best sentence. Where the
    nearest memory stands out clearly, words count by ``words_if_clear`` more (or less) and the
    whole by ``whole_if_clear``. Only standalone memories or only turns are scored, by ``of``.
    """

    of: Literal["memories", "turns"] = "memories"
    words: float = 0.15
    pieces: float = 0.15
    whole: float = 0.4
    weighted: float = 0.4
    tokens: float = 0.4
    sentence: float = 0.4
    words_if_clear: float = 0.0
    whole_if_clear: float = 0.0
    name: str = "match"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        scored, others = self._divide(pool)
        if not scored:
            return pool
        column = self._column(pool, scored, ctx)
        changed = with_column(scored, column.scores(scored), column)
        return sort_by_score([*changed, *others] if others else changed)

    def _divide(self, pool: Pool) -> tuple[Pool, Pool]:
        """Return the candidates that are scored, and the others."""
        turns = tuple(cand for cand in pool if cand.item.session is not None)
        if not turns or len(turns) == len(pool):
            return (pool, ()) if bool(turns) == (self.of == "turns") else ((), pool)
        memories = tuple(cand for cand in pool if cand.item.session is None)
        return (turns, memories) if self.of == "turns" else (memories, turns)

    def _column(self, pool: Pool, scored: Sequence[Candidate], ctx: Context) -> MatchColumn:
        table = similarity_features(pool, ctx)
        known = table.rows.get
        rows = [known(cand.item.id, 0) for cand in scored]
        factor, unit = 1.0 - _REFERENCE_UNRELATED, 1.0 - unrelated_similarity(ctx.embedder)

        def on_scale(column: list[float]) -> list[float]:
            # As `on_reference_scale`; similarities below zero count as none.
            scaled = [1.0 - (1.0 - column[row]) * factor / unit if row else 0.0 for row in rows]
            return none_negative(scaled)

        ceiling = max_bm25_score(ctx) / 10.0
        values = (
            [value * ceiling for value in values_by(scored, _WORDS)],
            *map(on_scale, (table.plain, table.cosine, table.interaction, table.sentence)),
            values_by(scored, _PIECES),
        )
        guessed = frozenset() if table.is_empty else _expect_missing(values, rows, scored, ctx)
        return MatchColumn(self._weights(ctx), values, guessed)

    def _weights(self, ctx: Context) -> tuple[float, ...]:
        clear = clearness(ctx)
        return (
            max(0.0, self.words + self.words_if_clear * clear),
            max(0.0, self.whole + self.whole_if_clear * clear),
            self.weighted,
            self.tokens,
            self.sentence,
            self.pieces,
        )


def _expect_missing(
    values: Sequence[list[float]], rows: Sequence[int], scored: Sequence[Candidate], ctx: Context
) -> frozenset[int]:
    """Put what its words let expect where a candidate has no vector; return the places."""
    missing = frozenset(place for place, row in enumerate(rows) if not row)
    by_token = late_interaction(ctx.embedder) is not None
    for place in missing:
        whole, tokens = expected_similarity(scored[place], ctx)
        parts = (whole, whole, tokens, whole) if by_token else (whole, whole, 0.0, 0.0)
        for column, value in zip(values[1:5], parts, strict=True):
            column[place] = value
    return missing


# The parts of a match, in the order of the values of a `MatchColumn`, and what they say.
_MATCH_PARTS = (
    ("match.words", "log-odds of shared words, tens"),
    ("match.whole", "similarity"),
    ("match.weighted", "similarity, rare words first"),
    ("match.tokens", "similarity word by word"),
    ("match.sentence", "similarity of a sentence"),
    ("match.pieces", "misspelt or parts of words, share of the question"),
)


class MatchColumn(NamedTuple):
    """What is known of how each candidate matches the question, and the weight of each part.

    ``guessed`` are the candidates without a vector, whose similarity is an expected one.
    """

    weights: tuple[float, ...]
    values: tuple[list[float], ...]
    guessed: frozenset[int] = frozenset()

    def scores(self, pool: Sequence[Candidate]) -> list[float]:
        """The candidates' scores with these parts added, in order."""
        scores = [cand.score for cand in pool]
        for weight, column in zip(self.weights, self.values, strict=True):
            scores = [score + weight * value for score, value in zip(scores, column, strict=True)]
        return scores

    def gives(self, by: str) -> bool:
        """Whether a part has this name."""
        return by.startswith("match.")

    def reasons(self, row: int) -> tuple[Evidence, ...]:
        """What speaks for one candidate."""
        reasons = []
        for (by, why), weight, column in zip(_MATCH_PARTS, self.weights, self.values, strict=True):
            added = weight * column[row]
            if added:
                known = f"{why} {column[row]:.2f}"
                is_known = by in _BY_WORDS or row not in self.guessed
                reasons.append(Evidence(by, "add", added, known if is_known else known + _GUESSED))
        return tuple(reasons)


_BY_WORDS = ("match.words", "match.pieces")
_WORDS, _PIECES = "channel.lexical", "channel.substring"
_GUESSED = ", as its words let expect: it has no vector yet"
