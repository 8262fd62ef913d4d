"""The laws that every part keeps, to hold a part of your own to them.

Each ``check_...`` raises `LawBroken` with the law and the case that breaks it. They need no
test framework. ``sample_memory`` is the small corpus that they use where none is given.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Protocol, cast

import numpy as np

from bethink.config.settings import Settings
from bethink.core.arrays import Vector
from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.importers.entry import Entry, Importer, ReadProgress
from bethink.memory import Memory
from bethink.model import Candidate, Draft, Evidence, Filters, Pool, Query, replay, sort_by_score
from bethink.models import DEFAULT_EMBEDDER, open_embedder
from bethink.ports import Embedder, Embedding, Reranker, Scope, Store
from bethink.retrieval.context import AnswerExtras, Assembler, Context, Fusion, Retriever, Stage
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.scope import rejection_reason
from bethink.retrieval.stages import FUSIONS
from bethink.store import DEFAULT_STORE, find_store

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
QUESTIONS = (
    "where is the deploy key?",
    "who owns billing?",
    "what did we decide last week?",
    "Ana Ben",
    "the",
)
# Any text is a question: operators, quotes, wildcards, emoji and scripts are words to look for.
AWKWARD_TEXTS = (
    *("AND", "OR NOT", "NEAR(a b, 5)", '"', '"unclosed', "it's", "a*", "^first", "col:value"),
    *("{curly}", "(", "; DROP TABLE items; --", "%", "_", "\\", "🔑", "鍵はどこ", "где ключ", "ß"),
    *("e\u0301", "\u200bhidden", "a" * 2000, "word " * 300),
)
_TEXTS = (
    "The deploy key for production lives in vault B",
    "Ana owns the billing module and its database",
    "We decided to release on Tuesdays, after the standup",
    "parse_config() fails on an empty file",
    "",
)
_NOTES: tuple[Json, ...] = (
    {"text": "The deploy key for production lives in vault B", "kind": "fact", "topic": "ops"},
    {"text": "The deploy key is rotated every quarter by Ana", "kind": "fact", "topic": "ops"},
    {"text": "Ana owns the billing module", "kind": "fact", "entities": ("person:Ana",)},
    {"text": "We decided to release on Tuesdays", "kind": "decision", "importance": 0.9},
    {"text": "Ben prefers short meetings", "kind": "preference", "entities": ("person:Ben",)},
    {"text": "The search index is rebuilt at night", "kind": "fact", "topic": "ops"},
    {"text": "Alerts go to the channel #ops", "kind": "fact", "tags": ("alerts",)},
    {"text": "The billing database runs PostgreSQL", "kind": "fact", "topic": "billing"},
    {"text": "The release of May was rolled back: a key was missing", "kind": "episode"},
    {"text": "Caches expire after thirty minutes", "kind": "fact", "importance": 0.2},
)
_FILTERS = (
    Filters(),
    Filters(kinds=("fact",)),
    Filters(topics=("ops",)),
    Filters(since=NOW - timedelta(days=6)),
)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class LawBroken(AssertionError):
    """A part breaks a law of its kind. The message names the law and the case."""


def _require(law: str, case: str, *, holds: bool) -> None:
    if not holds:
        raise LawBroken(f"{law} (case: {case})")


def sample_memory(embedder: Embedder | str = DEFAULT_EMBEDDER) -> Memory:
    """A memory of ten notes that lives as long as the object; its clock shows `NOW`."""
    memory = Memory.open(":memory:", embedder=embedder, settings=Settings(), clock=lambda: NOW)
    memory.remember_many(
        [
            {**note, "occurred_at": NOW - timedelta(days=age)}
            for age, note in enumerate(_NOTES, start=1)
        ]
    )
    return memory


def sample_context(
    memory: Memory, question: str = QUESTIONS[0], filters: Filters | None = None
) -> Context:
    """The context of a question at `NOW`, with a reranker and a boost that depend on the item."""
    return Context(
        Query(question, NOW, filters=filters or Filters()),
        memory.store,
        memory.embedder,
        reranker=lambda _, texts: [len(text) % 7 / 7 for text in texts],
        boost=lambda item: 0.5 + item.importance,
    )


def check_pool(pool: Pool, case: str = "a pool") -> None:
    """Check a pool: best first, ties by id, ids unique, every score the replay of its evidence."""
    ids = [cand.item.id for cand in pool]
    _require("a pool has every item once", case, holds=len(set(ids)) == len(ids))
    _require("a pool is best first, ties by id", case, holds=pool == sort_by_score(pool))
    for cand in pool:
        _require("a score is finite", case, holds=math.isfinite(cand.score))
        same = replay(cand.evidence) == cand.score
        _require("a score is the replay of its evidence", f"{case}, {cand.item.id}", holds=same)


def check_retriever(
    retriever: Retriever,
    memory: Memory | None = None,
    *,
    questions: Sequence[str] = QUESTIONS,
    filters: Sequence[Filters] = _FILTERS,
    texts: Iterable[str] = AWKWARD_TEXTS,
) -> None:
    """Check a retriever on a memory.

    Its pools are lawful and ranked from 1; equal questions get equal pools; nothing outside
    the filters is found, and with a field ``depth`` filters come before the cut; any text is
    a valid question; nothing is written.
    """
    memory = memory or sample_memory()
    before = memory.store.admin.generation()
    _check_name(retriever)
    _require("a weight is not negative", repr(retriever), holds=retriever.weight >= 0)
    for text in questions:
        pool = retriever(sample_context(memory, text))
        check_pool(pool, text)
        ranks = [cand.evidence[-1].rank for cand in pool]
        _require("ranks count from 1", text, holds=ranks == list(range(1, len(pool) + 1)))
        again = retriever(sample_context(memory, text))
        _require("equal questions get equal pools", text, holds=pool == again)
        for wanted in filters:
            _check_filters(retriever, sample_context(memory, text, wanted))
    for text in texts:
        check_pool(retriever(sample_context(memory, text)), text[:40])
    _require("a retriever writes nothing", "", holds=memory.store.admin.generation() == before)


def _check_filters(retriever: Retriever, ctx: Context) -> None:
    case = f"{ctx.query.text}, {ctx.query.filters}"
    found = retriever(ctx)
    outside = [cand.item.id for cand in found if rejection_reason(cand.item, ctx.scope) is not None]
    _require("nothing outside the filters is found", case, holds=not outside)
    if not _has_field(retriever, "depth"):
        return
    few, most = (
        [cand.item.id for cand in with_depth(ctx.for_query(ctx.query))]
        for with_depth in (_with_depth(retriever, 3), _with_depth(retriever, 1000))
    )
    _require("filters come before the cut", case, holds=few == most[:3])


def _with_depth(retriever: Retriever, depth: int) -> Retriever:
    return dataclasses.replace(retriever, depth=depth)  # type: ignore[type-var]


def _has_field(part: object, name: str) -> bool:
    fields = dataclasses.fields(part) if dataclasses.is_dataclass(part) else ()
    return any(field.name == name for field in fields)


def _check_name(part: _Named) -> None:
    named = isinstance(part.name, str) and bool(part.name)
    _require("a part has a name", repr(part), holds=named)
    _require("a part is hashable and equal to itself", repr(part), holds=len({part, part}) == 1)


def sample_pools(memory: Memory, count: int = 20) -> list[Pool]:
    """Pools for a stage: what retrievers really find, none, one, ties, and random scores."""
    ctx = sample_context(memory)
    retrievers = [RETRIEVERS["lexical"](), RETRIEVERS["dense"]()]
    found = {one: one(ctx) for one in retrievers}
    real = FUSIONS["weighted"]()(found, ctx)
    chance = Random(0)  # noqa: S311 - the same pools every time
    pools: list[Pool] = [real, (), real[:1], _rescored(real, [0.5] * len(real))]
    while len(pools) < count:
        few = real[: chance.randint(0, len(real))]
        scores = [chance.choice((0.0, 0.25, 1.0, 2 * chance.random())) for _ in few]
        pools.append(_rescored(few, scores))
    return pools


def _rescored(pool: Pool, scores: Sequence[float]) -> Pool:
    return sort_by_score(
        Candidate(
            cand.item,
            score,
            (
                Evidence("channel.lexical", "seen", score, "matches", None, rank),
                Evidence("fuse.lexical", "add", score, f"rank {rank}"),
            ),
        )
        for rank, (cand, score) in enumerate(zip(pool, scores, strict=True), start=1)
    )


def check_stage(
    stage: Stage,
    memory: Memory | None = None,
    *,
    pools: Iterable[Pool] | None = None,
    finds: bool = False,
) -> None:
    """Check a stage on pools.

    A lawful pool leaves it lawful; equal pools give equal pools; nothing in gives nothing
    out, unless it looks for memories itself (``finds``); nothing is written.
    """
    memory = memory or sample_memory()
    before = memory.store.admin.generation()
    _check_name(stage)
    for number, pool in enumerate(sample_pools(memory) if pools is None else pools):
        case = f"pool {number} of {len(pool)} candidates"
        out = stage(pool, sample_context(memory))
        check_pool(out, case)
        again = stage(pool, sample_context(memory))
        _require("equal pools give equal pools", case, holds=out == again)
        _require("nothing in, nothing out", case, holds=bool(pool or finds) or out == ())
    _require("a stage writes nothing", "", holds=memory.store.admin.generation() == before)


def check_fusion(fusion: Fusion, memory: Memory | None = None) -> None:
    """Check a fusion: lawful, independent of the retrievers' order, nothing of nothing."""
    memory = memory or sample_memory()
    _check_name(fusion)
    one, two = RETRIEVERS["lexical"](), RETRIEVERS["dense"]()
    for text in QUESTIONS:
        ctx = sample_context(memory, text)
        found = {one: one(ctx), two: two(ctx)}
        forth, back = fusion(found, ctx), fusion(dict(reversed(found.items())), ctx)
        check_pool(forth, text)
        places = [cand.item.id for cand in forth] == [cand.item.id for cand in back]
        _require("the order of retrievers changes no place", text, holds=places)
        scores = zip(forth, back, strict=True)
        close = all(math.isclose(a.score, b.score, rel_tol=1e-6) for a, b in scores)
        _require("the order of retrievers changes no score", text, holds=close)
        nothing = fusion({}, ctx) == fusion({one: ()}, ctx) == ()
        _require("nothing is fused to nothing", text, holds=nothing)


def check_assembler(assembler: Assembler, memory: Memory | None = None) -> None:
    """Check an assembler: it returns `AnswerExtras`, equal ones for equal hits, and no more."""
    memory = memory or sample_memory()
    before = memory.store.admin.generation()
    _check_name(assembler)
    for pool in sample_pools(memory):
        case = f"{len(pool)} hits"
        added = assembler(pool, sample_context(memory))
        _require("it returns AnswerExtras", case, holds=isinstance(added, AnswerExtras))
        again = assembler(pool, sample_context(memory))
        _require("equal hits get equal extras", case, holds=added == again)
    _require("an assembler writes nothing", "", holds=memory.store.admin.generation() == before)


def check_embedder(
    embedder: Embedder, *, texts: Sequence[str] = (*_TEXTS, *AWKWARD_TEXTS), tolerance: float = 0.0
) -> None:
    """Check an embedder.

    One float32 vector a text, of the size ``dim``, finite, of length 1, or 0 for an empty
    text; the same alone and among others, at every call and in every thread, to the last bit
    or within ``tolerance``; at least one token is counted for what is not empty.
    """
    _require("an embedder names its model", "", holds=bool(embedder.model))
    _require("no texts give no embeddings", "", holds=embedder.embed([]) == [])
    made = embedder.embed(texts)
    _require("one embedding a text", "", holds=len(made) == len(texts))
    for text, embedding in zip(texts, made, strict=True):
        check_vector(embedding, embedder, text)
        alone = embedder.embed([text])[0]
        same = same_vector(alone.vector, embedding.vector, tolerance)
        _require("other texts change no vector", text[:40], holds=same)
        _require("other texts change no tokens", text[:40], holds=alone.tokens == embedding.tokens)
    for empty in (embedder.embed_query(""), embedder.embed([""])[0]):
        zeros = not empty.vector.any() and empty.tokens == b""
        _require("an empty text gives zeros and no tokens", "", holds=zeros)
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(embedder.embed_query, texts))
    for text, query in zip(texts, together, strict=True):
        check_vector(query, embedder, text)
        again = same_vector(embedder.embed_query(text).vector, query.vector, tolerance)
        _require("threads change no vector", text[:40], holds=again)


def check_vector(embedding: Embedding, embedder: Embedder, text: str) -> None:
    """Check one embedding of a text, and the tokens counted for it."""
    vector, case = embedding.vector, text[:40]
    size = vector.shape == (embedder.dim,) and vector.dtype == np.float32
    _require("a vector has `dim` values of float32", case, holds=size)
    length = float(np.linalg.norm(vector))
    unit = length == 0.0 or abs(length - 1.0) < 1e-5
    _require("a vector has length 1 or 0", f"{case}: {length}", holds=unit)
    _require("tokens are bytes", case, holds=isinstance(embedding.tokens, bytes))
    count = embedder.count_tokens(text)
    fits = bool(count) == bool(text) and count <= len(text.encode("utf-8", "replace")) + 1
    _require("a text that is not empty has 1 to length + 1 tokens", case, holds=fits)
    _require("tokens are counted as an int", case, holds=type(count) is int)


def same_vector(one: Vector, other: Vector, tolerance: float = 0.0) -> bool:
    """Whether two vectors are equal within a tolerance."""
    return bool(np.allclose(one, other, rtol=0, atol=tolerance))


def check_reranker(
    reranker: Reranker,
    *,
    query: str = QUESTIONS[0],
    texts: Sequence[str] = (*_TEXTS, *AWKWARD_TEXTS),
) -> None:
    """Check a reranker.

    One score a text, 0 to 1; none for no texts; the same at every call; equal texts get equal
    scores, in whatever order they come.
    """
    _require("no texts get no scores", "", holds=list(reranker(query, [])) == [])
    texts = [*texts, *texts[:2]]
    scores = list(reranker(query, texts))
    _require("one score a text", "", holds=len(scores) == len(texts))
    for text, score in zip(texts, scores, strict=True):
        _require("a score lies from 0 to 1", text[:40], holds=0.0 <= score <= 1.0)
    _require("the same at every call", "", holds=list(reranker(query, texts)) == scores)
    by_text = dict(zip(texts, scores, strict=True))
    mixed = Random(0).sample(texts, len(texts))  # noqa: S311 - the same order every time
    for text, score in zip(mixed, reranker(query, mixed), strict=True):
        same = math.isclose(score, by_text[text], abs_tol=1e-9)
        _require("the order of texts changes no score", text[:40], holds=same)
    for awkward in AWKWARD_TEXTS:
        _require(
            "any query is scored", awkward[:40], holds=len(reranker(awkward, texts)) == len(texts)
        )


def check_importer(make: Callable[[Path, ReadProgress], Importer], path: Path) -> None:
    """Check an importer on a source.

    Every entry holds a draft or why there is none; named entries come once; a second reading
    gives the same; a link has two named ends.
    """
    source = make(path, ReadProgress())
    entries, links = list(source.entries()), list(source.links())
    for entry in entries:
        fits = isinstance(entry, Entry) and isinstance(entry.found, Draft | Refused)
        _require("an entry holds a draft or a refusal", repr(entry)[:80], holds=fits)
        _require("an entry says where it is", repr(entry)[:80], holds=bool(entry.where))
    ids = [entry.id for entry in entries if entry.id]
    _require("a named entry comes once", "", holds=len(set(ids)) == len(ids))
    again = make(path, ReadProgress())
    same = list(map(_entry_key, again.entries())) == list(map(_entry_key, entries))
    _require("a second reading gives the same entries", "", holds=same)
    _require("a second reading gives the same links", "", holds=list(again.links()) == links)
    for link in links:
        named = all(end.kind in ("item", "entity") and end.name for end in (link.src, link.dst))
        _require("a link has two named ends", repr(link)[:80], holds=named)


def _entry_key(entry: Entry) -> tuple[str, str, str]:
    return (entry.where, entry.id, repr(entry.found))


def check_store(open_store: Callable[[], Store]) -> None:
    """Check a store against the built-in one: the same operations give the same answers.

    Storing, filters, links, correction, forgetting, restoring, erasing and the past; then
    `doctor` finds nothing wrong.
    """
    expected = _store_protocol(find_store(DEFAULT_STORE).open(None, space="memory"))
    actual = _store_protocol(open_store())
    for (case, wanted), (_, found) in zip(expected, actual, strict=True):
        _require(
            f"a store answers as the built-in one does: {wanted!r}", case, holds=found == wanted
        )


Outcome = tuple[str, object]


def _store_protocol(store: Store) -> list[Outcome]:
    """Run a fixed series of operations; return what each gave, without ids and times."""
    clock = [NOW]
    model = open_embedder("hash")
    with Memory(store, embedder=model, settings=Settings(), clock=lambda: clock[0]) as memory:
        stored = memory.remember_many(_NOTES)
        again = memory.remember(**_NOTES[0])
        memory.link(stored[0].id, "related_to", stored[1].id)
        seen: list[Outcome] = [
            ("stored", [one.status for one in stored]),
            ("stored again", (again.status, again.id == stored[0].id)),
            ("links", len(memory.links(stored[0].id))),
            *_answers(memory, "filled"),
            *_answers(memory, "filtered", filters=Filters(topics=("ops",))),
            ("chosen by meaning", _second_nearest(store, cast("Embedder", model))),
        ]
        before, clock[0] = clock[0], clock[0] + timedelta(days=1)
        memory.update(stored[3].id, text="We decided to release on Fridays")
        memory.forget(stored[5].id)
        seen += _answers(memory, "changed")
        seen += _answers(memory, "in the past", as_of=before)
        memory.restore(stored[5].id)
        seen += _answers(memory, "restored")
        memory.forget(stored[1].id, erase=True)
        seen += _answers(memory, "erased")
        seen += _answers(memory, "erased in the past", as_of=before)
        seen.append(("stats", memory.stats()["memories"]))
        seen.append(("doctor", [one.name for one in memory.doctor() if not one.ok]))
    return seen


def _second_nearest(store: Store, model: Embedder) -> list[str]:
    vector, scope = model.embed_query(QUESTIONS[0]).vector, Scope(Filters(), NOW)
    found = store.search.vector(vector, model.model, 3, scope, lambda _: [1])
    return [match.item.text for match in found.matches]


def _answers(memory: Memory, case: str, **options: Any) -> list[Outcome]:
    answers = {text: memory.recall(text, **options) for text in QUESTIONS}
    return [
        (
            f"{case}: {text}",
            (answer.status, [(hit.item.text, round(hit.score, 6)) for hit in answer.hits]),
        )
        for text, answer in answers.items()
    ]
