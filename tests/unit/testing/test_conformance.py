"""The shipped laws let our own parts pass, and notice a part that breaks one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreign
from bethink import Context, Embedding, Memory, Refused
from bethink.importers import IMPORTERS
from bethink.importers.entry import Entry, LinkEnd, ReadProgress, SourceLink
from bethink.model import Draft, Pool
from bethink.models.embed.hashing import HashEmbedder
from bethink.retrieval.context import AnswerExtras
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import FUSIONS
from bethink.store.sqlite import SqliteStore
from bethink.testing import (
    LawBroken,
    check_assembler,
    check_embedder,
    check_fusion,
    check_importer,
    check_reranker,
    check_retriever,
    check_stage,
    check_store,
    sample_memory,
)
from rows import each_row


@pytest.fixture(scope="module")
def sample() -> Iterator[Memory]:
    with sample_memory() as memory:
        yield memory


@dataclass(frozen=True)
class BadRetriever:
    """The built-in one for words, with one fault."""

    fault: str
    name: str = "bad"
    weight: float = 1.0
    depth: int = 50

    def __call__(self, ctx: Context) -> Pool:
        found: Pool = RETRIEVERS["lexical"](depth=1000)(ctx)
        if self.fault == "filters after the cut":
            wide = ctx.for_query(replace(ctx.query, filters=type(ctx.query.filters)()))
            everything = RETRIEVERS["lexical"](depth=self.depth)(wide)
            ids = {cand.item.id for cand in found}
            return tuple(one for one in everything if one.item.id in ids)
        if self.fault == "no filters":
            wide = ctx.for_query(replace(ctx.query, filters=type(ctx.query.filters)()))
            return RETRIEVERS["lexical"](depth=self.depth)(wide)  # type: ignore[no-any-return]
        if self.fault == "worst first":
            found = tuple(reversed(found))
        if self.fault == "twice":
            found = found + found[-1:]
        if self.fault == "score":
            found = tuple(one._replace(score=one.score * 2) for one in found)
        if self.fault == "ranks":
            found = tuple(
                one._replace(evidence=tuple(reason._replace(rank=7) for reason in one.evidence))
                for one in found
            )
        if self.fault == "NaN":
            found = tuple(one._replace(score=float("nan")) for one in found)
        if self.fault == "texts" and '"' in ctx.query.text:
            raise ValueError("unbalanced quotes")
        return found[: self.depth]


@each_row(
    ("fault", "law"),
    [
        ("worst first", "best first"),
        ("twice", "every item once"),
        ("score", "replay of its evidence"),
        ("NaN", "finite"),
        ("ranks", "ranks count from 1"),
        ("no filters", "nothing outside the filters"),
        ("filters after the cut", "filters come before the cut"),
    ],
)
def test_a_retriever_that_breaks_a_law_is_noticed(sample: Memory, fault: str, law: str) -> None:
    """The law is named, and the question."""
    with pytest.raises(LawBroken, match=law):
        check_retriever(BadRetriever(fault), sample)


def test_a_lawful_retriever_passes_and_an_error_inside_is_not_hidden(sample: Memory) -> None:
    """The part's own error is raised as it is."""
    check_retriever(BadRetriever("none"), sample)
    with pytest.raises(ValueError, match="unbalanced"):
        check_retriever(BadRetriever("texts"), sample)
    with pytest.raises(LawBroken, match="not negative"):
        check_retriever(BadRetriever("none", weight=-1.0), sample)
    with pytest.raises(LawBroken, match="has a name"):
        check_retriever(BadRetriever("none", name=""), sample)


@dataclass(frozen=True)
class BadStage:
    """A stage, fusion or assembler with one fault."""

    fault: str
    name: str = "bad"

    def __call__(self, pool: Any, ctx: Context) -> Any:
        if self.fault == "writes":
            ctx.store.admin.log("seen", item=None, actor="bad", detail="", now=ctx.query.now)
        if self.fault == "order":
            return next(iter(pool.values()), ())
        if self.fault == "something of nothing":
            return RETRIEVERS["lexical"]()(ctx)
        if self.fault == "unexplained":
            return tuple(one._replace(score=one.score + 1) for one in pool)
        if self.fault == "chance":
            return pool[: id(object()) % 2] if next(CALLS) % 2 else pool
        if self.fault == "extras":
            return AnswerExtras(warnings=(str(next(CALLS)),))
        return pool


CALLS = iter(range(10_000))


@each_row(
    ("fault", "law"),
    [
        ("unexplained", "replay of its evidence"),
        ("something of nothing", "nothing in, nothing out"),
        ("chance", "equal pools give equal pools"),
        ("writes", "a stage writes nothing"),
    ],
)
def test_a_stage_that_breaks_a_law_is_noticed(sample: Memory, fault: str, law: str) -> None:
    """The law is named."""
    with pytest.raises(LawBroken, match=law):
        check_stage(BadStage(fault), sample)


def test_fusions_and_assemblers_are_held_to_theirs(sample: Memory) -> None:
    """Order, kind of result, equal extras for equal hits."""
    check_fusion(FUSIONS["rrf"](), sample)
    with pytest.raises(LawBroken, match="the order of retrievers"):
        check_fusion(BadStage("order"), sample)
    with pytest.raises(LawBroken, match="it returns AnswerExtras"):
        check_assembler(BadStage("none"), sample)
    with pytest.raises(LawBroken, match="equal hits get equal extras"):
        check_assembler(BadStage("extras"), sample)


class BadEmbedder(HashEmbedder):
    """The hash embedder with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        made = super().embed(texts)
        change: dict[str, Any] = {
            "length": lambda one: one._replace(vector=one.vector * 2),
            "size": lambda one: one._replace(vector=one.vector[:-1]),
            "type": lambda one: one._replace(vector=one.vector.astype(np.float64)),
            "company": lambda one: one._replace(vector=np.roll(one.vector, len(texts))),
            "empty": lambda one: one._replace(
                vector=one.vector if one.vector.any() else np.eye(1, self.dim, dtype=np.float32)[0]
            ),
        }
        return [change.get(self.fault, lambda one: one)(one) for one in made]

    def count_tokens(self, text: str) -> int:
        return 0 if self.fault == "tokens" else super().count_tokens(text)


@each_row(
    ("fault", "law"),
    [
        ("length", "length 1 or 0"),
        ("size", "`dim` values"),
        ("type", "float32"),
        ("company", "other texts change no vector"),
        ("empty", "an empty text gives zeros"),
        ("tokens", "tokens"),
    ],
)
def test_an_embedder_that_breaks_a_law_is_noticed(fault: str, law: str) -> None:
    """The law is named, and the text."""
    check_embedder(BadEmbedder("none"))
    with pytest.raises(LawBroken, match=law):
        check_embedder(BadEmbedder(fault))


@each_row(
    ("rerank", "law"),
    [
        (lambda _, texts: [0.5] * (len(texts) + 1), "no texts get no scores"),
        (lambda _, texts: [0.5] * max(0, len(texts) - 1), "one score a text"),
        (lambda _, texts: [2.0 for _ in texts], "from 0 to 1"),
        (lambda _, texts: [float("nan") for _ in texts], "from 0 to 1"),
        (lambda _, texts: [n / 1000 for n, _ in enumerate(texts)], "changes no score"),
        (lambda _, texts: [next(CALLS) / 10_000 for _ in texts], "the same at every call"),
    ],
)
def test_a_reranker_that_breaks_a_law_is_noticed(rerank: Any, law: str) -> None:
    """The law is named, and the text."""
    with pytest.raises(LawBroken, match=law):
        check_reranker(rerank)


@each_row("kind", sorted(IMPORTERS))
def test_our_importers_keep_the_laws(kind: str, tmp_path: Path) -> None:
    """Entries and links are the same at every reading."""
    check_importer(IMPORTERS[kind], foreign.MAKERS[kind](tmp_path))


class BadImporter:
    """An importer whose entries come from the test."""

    found: tuple[Any, ...] = ()
    tied: tuple[Any, ...] = ()

    def __init__(self, path: Path, progress: ReadProgress) -> None:
        pass

    def entries(self) -> Iterator[Any]:
        return iter(self.found)

    def links(self) -> Iterator[Any]:
        return iter(self.tied)


@each_row(
    ("found", "tied", "law"),
    [
        ((Entry("line 1", "a text"),), (), "a draft or a refusal"),  # type: ignore[arg-type]
        ((Entry("", Draft("a text")),), (), "says where it is"),
        ((Entry("1", Draft("a"), "x"), Entry("2", Refused("b"), "x")), (), "comes once"),
        (
            (Entry("1", Draft("a"), "x"),),
            (SourceLink(LinkEnd("item", "x"), "related_to", LinkEnd("item", ""), "1"),),
            "two named ends",
        ),
    ],
)
def test_an_importer_that_breaks_a_law_is_noticed(
    found: tuple[Any, ...], tied: tuple[Any, ...], law: str, tmp_path: Path
) -> None:
    """The law is named, and the entry."""
    bad = type("Bad", (BadImporter,), {"found": found, "tied": tied})

    with pytest.raises(LawBroken, match=law):
        check_importer(bad, tmp_path)


def test_a_store_is_measured_by_the_built_in_one(tmp_path: Path) -> None:
    """In a file as in memory; one that loses what is forgotten is noticed."""
    check_store(lambda: SqliteStore.open(tmp_path / "own.db", space="memory"))

    def forgetful() -> SqliteStore:
        store = SqliteStore.open(None, space="memory")
        store.items.restore = lambda ids, **_: []  # type: ignore[method-assign]
        return store

    def undecided() -> SqliteStore:
        store = SqliteStore.open(None, space="memory")
        search = store.search.vector
        store.search.vector = lambda *given: search(*given[:4])  # type: ignore[method-assign]
        return store

    with pytest.raises(LawBroken, match="as the built-in one does"):
        check_store(forgetful)
    with pytest.raises(LawBroken, match="chosen by meaning"):
        check_store(undecided)


def test_the_laws_need_no_test_framework() -> None:
    """Neither pytest nor hypothesis is imported."""
    code = (
        "import sys\nfrom bethink.testing import check_stage\n"
        "print([name for name in ('pytest', 'hypothesis') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.stdout.strip() == "[]", ran.stderr
