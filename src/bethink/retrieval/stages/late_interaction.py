"""Late interaction and vector similarity features, passages, neighbour expansion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from bethink.core.lazy import dataclass, lazy_pattern
from bethink.core.text import split_passages
from bethink.errors import ModelError
from bethink.model import Candidate, Evidence, Item, Passage, Pool, sort_by_score
from bethink.ports import Embedding, late_interaction, unrelated_similarity
from bethink.retrieval.context import Context, PerRecall
from bethink.retrieval.query_analysis import content_terms, max_bm25_score
from bethink.retrieval.scope import rejection_reason

if TYPE_CHECKING:
    from bethink.ports import LateInteraction, Matrix, Vector


FOLLOWS = ("follows",)
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


_known_turns: PerRecall[TurnOrder] = PerRecall(lambda _: TurnOrder())


def turn_order(ids: Iterable[str], ctx: Context) -> TurnOrder:
    """Look up the order of these turns and their neighbours, once per recall."""
    turns = _known_turns(ctx)
    fresh = sorted(set(ids) - turns.known)
    if fresh:
        for link in ctx.links_of(fresh, FOLLOWS):
            turns.before[link.src.id] = link.dst.id
            turns.after[link.dst.id] = link.src.id
        turns.known.update(fresh)
    return turns


class SimilarityFeatures(NamedTuple):
    """Similarity features of one memory; all zero where it has no vector yet.

    ``matches`` is the best similarity that each token of the question finds in it (MaxSim),
    ``vector`` the memory's own vector; ``cosine`` counts rare words of the question for more,
    ``plain`` counts all alike. Of a long memory all are those of one passage, the
    most similar to the question, and the cosines no less than its best sentence's.
    """

    cosine: float = 0.0
    interaction: float = 0.0
    sentence: float = 0.0
    matches: tuple[float, ...] = ()
    vector: Vector | None = None
    plain: float = 0.0


NO_FEATURES = SimilarityFeatures()


_known_features: PerRecall[dict[str, SimilarityFeatures]] = PerRecall(lambda _: {})


def similarity_features(pool: Iterable[Candidate], ctx: Context) -> dict[str, SimilarityFeatures]:
    """Compute features for memories that no earlier step has read; return all features."""
    known = _known_features(ctx)
    fresh = [cand.item for cand in pool if cand.item.id not in known]
    if fresh and ctx.embedder is None:
        return known | dict.fromkeys((item.id for item in fresh), NO_FEATURES)
    if fresh:
        known.update(_compute_features(fresh, ctx))
    return known


class QuestionTokens(NamedTuple):
    """The tokens of the question's content terms, and the weight of each."""

    weights: tuple[float, ...]
    matrix: Matrix | None


@PerRecall
def question_tokens(ctx: Context) -> QuestionTokens:
    """Return token weights that add up to 1; none where the embedder has no tokens."""
    return _weigh_question_tokens(ctx)


def max_features(features: Iterable[SimilarityFeatures]) -> SimilarityFeatures:
    """Return the maximum of each feature, to normalise the others by."""
    values = list(features) or [NO_FEATURES]
    return SimilarityFeatures(
        max(one.cosine for one in values),
        max(one.interaction for one in values),
        max(one.sentence for one in values),
    )


def share_of_best(value: float, peak: float) -> float:
    """Return a similarity as a share of the best; 0 if not positive."""
    return value / peak if value > 0 and peak > 0 else 0.0


def _compute_features(items: Sequence[Item], ctx: Context) -> dict[str, SimilarityFeatures]:
    features = dict.fromkeys((item.id for item in items), NO_FEATURES)
    if ctx.embedder is None:
        return features
    try:
        # A server that is down may fail as soon as its model is read.
        stored = ctx.store.vectors.embeddings(
            list(features), ctx.embedder.model, as_of=ctx.query.as_of
        )
        vector = ctx.weighted_vector() if stored else None
    except ModelError as error:
        # Without a vector of the question only word matches are left.
        ctx.add_step_note(f"no similarity features: {error.message}")
        return features
    if vector is not None:
        compared = [
            _nearest_passages(key, one, vector, ctx) if one.passages else (one,)
            for key, one in stored.items()
        ]
        found = iter(_compare([one for several in compared for one in several], vector, ctx))
        for key, several in zip(stored, compared, strict=True):
            passages = islice(found, len(several))
            best = max(passages, key=lambda one: one.cosine + one.interaction)
            features[key] = _as_near_as_a_sentence(best) if stored[key].passages else best
    return features


def _as_near_as_a_sentence(features: SimilarityFeatures) -> SimilarityFeatures:
    """Of a long memory one sentence can answer, whatever the rest of its passage tells."""
    nearest = features.sentence
    return features._replace(
        cosine=max(features.cosine, nearest), plain=max(features.plain, nearest)
    )


def _nearest_passages(
    key: str, embedding: Embedding, vector: Vector, ctx: Context
) -> tuple[Embedding, ...]:
    """The passages of a long memory that are worth comparing token by token.

    A passage is as near as itself or its nearest sentence.
    """
    near = [float(one.vector @ vector) for one in embedding.passages]
    embedder = late_interaction(ctx.embedder)
    if embedder is not None:
        payloads = [one.tokens for one in embedding.passages]
        sentences, _ = _best_sentences(embedder, vector, payloads, ctx)
        near = list(map(max, near, sentences))
    _known_cosines(ctx)[key] = tuple(near)
    order = sorted(range(len(near)), key=lambda number: -near[number])
    return tuple(embedding.passages[number] for number in order[:_COMPARED_PASSAGES])


def _compare(
    embeddings: Sequence[Embedding], vector: Vector, ctx: Context
) -> list[SimilarityFeatures]:
    """Compare each embedding with the question; token by token where the embedder can."""
    cosines = [float(one.vector @ vector) for one in embeddings]
    plain = ctx.embedding().vector
    plains = [float(one.vector @ plain) for one in embeddings]
    embedder, (weights, matrix) = late_interaction(ctx.embedder), question_tokens(ctx)
    if embedder is None or matrix is None:
        return [
            SimilarityFeatures(cosine, vector=one.vector, plain=plain_cosine)
            for cosine, plain_cosine, one in zip(cosines, plains, embeddings, strict=True)
        ]
    payloads = [embedding.tokens for embedding in embeddings]
    sentences, payloads = _best_sentences(embedder, vector, payloads, ctx)
    matches = embedder.best_matches(matrix, payloads)
    interactions, rows = (matches @ weights).tolist(), matches.tolist()
    return [
        SimilarityFeatures(
            cosines[number],
            interactions[number],
            sentences[number],
            tuple(rows[number]),
            one.vector,
            plains[number],
        )
        if payloads[number] or not one.tokens
        # Its tokens are damaged: as near as its vector says.
        else SimilarityFeatures(cosines[number], vector=one.vector, plain=plains[number])
        for number, one in enumerate(embeddings)
    ]


def _best_sentences(
    embedder: LateInteraction, vector: Vector, payloads: list[bytes], ctx: Context
) -> tuple[list[float], list[bytes]]:
    """Return how near each memory's best sentence is, and the tokens that can be compared.

    Tokens that are damaged count as none; `damaged_vectors` tells of them.
    """
    try:
        return embedder.best_sentences(vector, payloads).tolist(), payloads
    except ModelError:
        sound = [one if _can_compare(embedder, vector, one) else b"" for one in payloads]
        damaged_vectors(ctx).update(set(payloads) - set(sound))
        return embedder.best_sentences(vector, sound).tolist(), sound


def _can_compare(embedder: LateInteraction, vector: Vector, tokens: bytes) -> bool:
    try:
        embedder.best_sentences(vector, [tokens])
    except ModelError:
        return False
    return True


damaged_vectors: PerRecall[set[bytes]] = PerRecall(lambda _: set())
"""The tokens that an answer does without, because they cannot be read."""

_COMPARED_PASSAGES = 2  # of a long memory, the nearest by cosine
_known_cosines: PerRecall[dict[str, tuple[float, ...]]] = PerRecall(lambda _: {})
_known_passages: PerRecall[dict[str, Passage | None]] = PerRecall(lambda _: {})


def with_passage(cand: Candidate, ctx: Context) -> Candidate:
    """The candidate as it is shown: a long memory by its best passage."""
    passage = shown_passage(cand.item, ctx)
    return cand if passage is None else cand._replace(passage=passage)


def shown_passage(item: Item, ctx: Context) -> Passage | None:
    """The passage that is shown of a long memory; None where the whole is.

    It is the one that best matches the question by words and by meaning.
    """
    known = _known_passages(ctx)
    if item.id not in known:
        known[item.id] = None if ctx.query.whole else _find_passage(item, ctx)
    return known[item.id]


def shown_text(item: Item, ctx: Context) -> str:
    """The text that is shown of a memory: of a long one its best passage."""
    passage = shown_passage(item, ctx)
    return item.text if passage is None else item.text[passage.start : passage.end]


def shown_tokens(item: Item, ctx: Context) -> int:
    """How many tokens are shown of a memory, without a heading."""
    passage = shown_passage(item, ctx)
    if passage is not None:
        return passage.tokens
    return item.tokens or _estimate_tokens(item.text)


def _find_passage(item: Item, ctx: Context) -> Passage | None:
    spans = split_passages(item.text)
    if not spans:
        return None
    similarity_features((Candidate(item),), ctx)
    cosines = _known_cosines(ctx).get(item.id, ())
    if len(cosines) != len(spans):
        cosines = (0.0,) * len(spans)  # no vectors of passages yet
    scores = [
        cosine + _word_share(item.text[start:end], ctx)
        for cosine, (start, end) in zip(cosines, spans, strict=True)
    ]
    start, end = spans[scores.index(max(scores))]
    text = item.text[start:end]
    start, end = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
    return Passage(start, end, _count_tokens(item, item.text[start:end]))


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
    tokens = item.tokens or _estimate_tokens(item.text)
    return -(-tokens * len(passage.encode()) // len(item.text.encode()))


def _estimate_tokens(text: str) -> int:
    return -(-len(text.encode()) // 4)


def _weigh_question_tokens(ctx: Context) -> QuestionTokens:
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
        fetched = ctx.get(reached - known)
        added = [item for item in fetched.values() if rejection_reason(item, ctx.scope) is None]
        return sort_by_score([*pool, *(Candidate(item) for item in added)])


# Similarities are judged on the default embedder's scale, whose unrelated texts have this one.
_REFERENCE_UNRELATED = 0.083
# The usual similarity counts as that of so many memories more: few say little of what is usual.
_PRIOR_MEMORIES, _PRIOR_DISTANCE, _PRIOR_SPREAD = 10, 0.05, 0.1
_CLEAREST, _LEAST_CLEAR = 2.0, -1.0


def on_reference_scale(similarity: float, unrelated: float) -> float:
    """Return a similarity as the default embedder would give it, by its distance from 1."""
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
    nearest = max((one.cosine for one in similarity_features((), ctx).values()), default=0.0)
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

    ``words`` counts the BM25 score of shared words, ``pieces`` that of misspelt ones,
    ``whole`` the similarity of the vectors, ``weighted`` the same with rare words of the
    question counting more, ``tokens`` late interaction (Khattab & Zaharia, SIGIR 2020),
    ``sentence`` the best sentence. Where the nearest memory stands out clearly, words count
    by ``words_if_clear`` more (or less) and the whole by ``whole_if_clear``. Only standalone
    memories or only turns of conversations are scored, by ``of``.
    """

    of: Literal["memories", "turns"] = "memories"
    words: float = 0.15
    pieces: float = 0.05
    whole: float = 0.4
    weighted: float = 0.4
    tokens: float = 0.4
    sentence: float = 0.4
    words_if_clear: float = 0.0
    whole_if_clear: float = 0.0
    name: str = "match"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not any(self._scores(cand) for cand in pool):
            return pool
        close = similarity_features(pool, ctx)
        weights, ceiling = self._weights(ctx), max_bm25_score(ctx) / 10.0
        unrelated = unrelated_similarity(ctx.embedder)
        best_pieces = max((_evidence_value(cand, _PIECES) for cand in pool), default=0.0)
        return sort_by_score(
            self._score(
                cand,
                _match_values(cand, close[cand.item.id], unrelated, ceiling),
                weights,
                share_of_best(_evidence_value(cand, _PIECES), best_pieces),
            )
            if self._scores(cand)
            else cand
            for cand in pool
        )

    def _scores(self, cand: Candidate) -> bool:
        return (cand.item.session is not None) == (self.of == "turns")

    def _weights(self, ctx: Context) -> tuple[float, ...]:
        clear = clearness(ctx)
        return (
            max(0.0, self.words + self.words_if_clear * clear),
            max(0.0, self.whole + self.whole_if_clear * clear),
            self.weighted,
            self.tokens,
            self.sentence,
        )

    def _score(
        self, cand: Candidate, values: MatchValues, weights: tuple[float, ...], pieces: float
    ) -> Candidate:
        score = cand.score
        reasons = list(cand.evidence)
        for part, weight, value in zip(MatchValues._fields, weights, values, strict=True):
            added = weight * value
            if added:
                score += added
                why = f"{_MATCH_REASONS[part]} {value:.2f}"
                reasons.append(Evidence(f"match.{part}", "add", added, why))
        if pieces and self.pieces:
            added = self.pieces * pieces
            score += added
            reasons.append(Evidence("match.pieces", "add", added, "misspelt or part of a word"))
        return Candidate(cand.item, score, tuple(reasons), cand.passage)


class MatchValues(NamedTuple):
    """What is known of how a memory matches the question."""

    words: float
    whole: float
    weighted: float
    tokens: float
    sentence: float


_MATCH_REASONS = {
    "words": "log-odds of shared words, tens",
    "whole": "similarity",
    "weighted": "similarity, rare words first",
    "tokens": "similarity word by word",
    "sentence": "similarity of a sentence",
}
_WORDS, _PIECES = "channel.lexical", "channel.substring"


def _match_values(
    cand: Candidate, close: SimilarityFeatures, unrelated: float, ceiling: float
) -> MatchValues:
    """Return the values of one candidate; similarities below zero count as none."""
    similarities = (
        max(0.0, on_reference_scale(value, unrelated)) if close.vector is not None else 0.0
        for value in (close.plain, close.cosine, close.interaction, close.sentence)
    )
    return MatchValues(_evidence_value(cand, _WORDS) * ceiling, *similarities)


def _evidence_value(cand: Candidate, by: str) -> float:
    reason = cand.reason(by)
    return reason.value if reason is not None else 0.0


@dataclass(frozen=True, slots=True)
class TopK:
    """Keep the best ``count`` candidates for the more expensive stages that follow."""

    count: int = 60
    name: str = "top"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return pool[: ctx.candidate_limit(self.count)]
