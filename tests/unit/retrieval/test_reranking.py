"""Reranking in a recall: who is asked, what is read, and what happens without an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import BadSetting, ModelError
from bethink.model import Candidate, Item, Query, Recall, Step
from bethink.models.rerank.cross_encoder import CrossEncoder
from bethink.retrieval.context import Context
from bethink.retrieval.profile import Profile, load_profile, parse_profile, profile_names
from bethink.retrieval.stages.rerank import Rerank
from bethink.systems.siftcoder import OverlapRerank
from bethink.testing import FixedClock
from corpus import NOW
from rerank_server import FAULTS, reranking
from rows import each_row
from sentence_transformers_stand_in import stand_in_library

KEY = "The deploy key lives in vault B"
ROTATE = "Rotate the deploy key every quarter"
ASKED = "deploy key"


class Reader:
    """Likes texts that hold a word, and remembers what it was given."""

    def __init__(self, word: str = "Rotate") -> None:
        self.word = word
        self.asked: list[tuple[str, list[str]]] = []

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((query, list(texts)))
        return [0.9 if self.word in text else 0.1 for text in texts]


def failing(query: str, texts: Sequence[str]) -> list[float]:
    raise ModelError("the reader is asleep", remedy="wake it")


@pytest.fixture
def library(tmp_path: Path) -> Iterator[None]:
    """A small library that stands in for sentence-transformers."""
    with stand_in_library(tmp_path):
        yield


@pytest.fixture
def plain() -> Iterator[Memory]:
    """Two memories, known by their words alone."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as opened:
        opened.remember_many([KEY, ROTATE])
        yield opened


def texts(answer: Recall) -> list[str]:
    return [hit.item.text for hit in answer.hits]


def step(answer: Recall, name: str = "rerank.read") -> Step | None:
    return next((step for step in answer.steps if step.name == name), None)


def pool_of(*scores: float, **about: str) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(Item(f"i{n:03}", f"text {n}", NOW, "user")._replace(**about)).with_evidence(
            "fuse", "add", score
        )
        for n, score in enumerate(scores)
    )


def judged(stage: Rerank, pool: tuple[Candidate, ...], scores: Sequence[float], memory: Memory):
    ctx = Context(Query("asked", NOW), memory.store, reranker=lambda *_: scores)
    return {cand.item.id: cand.score for cand in stage(pool, ctx)}


@each_row("name", sorted(profile_names()))
def test_every_profile_listens_to_a_reader(plain: Memory, name: str) -> None:
    """A reader that is brought is asked once, whether the profile has a place for it or not."""
    reader = Reader()

    answer = plain.recall(ASKED, profile=name, reranker=reader)

    assert len(reader.asked) == 1
    assert sorted(reader.asked[0][1]) == sorted([KEY, ROTATE])
    read = [given for given in answer.steps if given.name.endswith(".read")]
    assert [given.status for given in read] == ["ok"]
    assert all(hit.reason("read") for hit in answer.hits)


@each_row("name", sorted(profile_names()))
def test_without_a_reader_nothing_is_missing(plain: Memory, name: str) -> None:
    """No profile complains that nobody reads; one with a place for it says it was left out."""
    answer = plain.recall(ASKED, profile=name)

    assert not [part for part, _ in answer.degraded if part.endswith(".read")]
    read = [given for given in answer.steps if given.name.endswith(".read")]
    assert {(given.status, given.note) for given in read} <= {
        ("skipped", "no reranker is configured")
    }


def test_a_place_in_the_profile_is_used(plain: Memory) -> None:
    """Its settings hold, and no second reader is added after it, in whichever slot it is."""
    for slot in ("rerank", "adjust"):
        reader = Reader()
        profile = replace(load_profile("siftcoder"), **{slot: (Rerank(keep=0.0),)})

        answer = plain.recall(ASKED, profile=profile, reranker=reader)

        assert [hit.score for hit in answer.hits] == [0.9, 0.1]
        assert len(reader.asked) == 1


def test_a_reader_comes_after_what_else_reads(plain: Memory) -> None:
    """A profile's own deterministic reader keeps its place."""
    profile = replace(load_profile("siftcoder"), rerank=(OverlapRerank(),))

    answer = plain.recall(ASKED, profile=profile, reranker=Reader())

    names = [given.name for given in answer.steps if given.name.startswith("rerank.")]
    assert names == ["rerank.overlap", "rerank.read"]


def test_a_step_that_is_left_out_passes_the_pool_on(plain: Memory) -> None:
    """The trace shows the same candidates before and after it."""
    profile = replace(load_profile("siftcoder"), rerank=(Rerank(),))

    answer = plain.recall(ASKED, profile=profile)

    left_out = step(answer)
    assert left_out is not None
    assert left_out.came_in == len(left_out.pool) == 2


def test_a_reader_that_fails_leaves_the_order(plain: Memory) -> None:
    """The answer is the one without it, and says why."""
    without = plain.recall(ASKED)

    answer = plain.recall(ASKED, reranker=failing)

    assert texts(answer) == texts(without)
    assert [hit.score for hit in answer.hits] == [hit.score for hit in without.hits]
    assert dict(answer.degraded)["rerank.read"] == "the reader is asleep (wake it)"


def test_the_configured_reader_is_asked() -> None:
    """By setting, by argument of opening, as a function; a recall may bring another or none."""
    reader = Reader()
    for how in ({"settings": Settings(reranker="overlap")}, {"reranker": "overlap"}):
        with Memory.open(":memory:", embedder="none", **how) as memory:
            memory.remember_many([KEY, ROTATE])
            assert step(memory.recall(ASKED)) is not None
            assert step(memory.recall(ASKED, reranker="none")) is None
            assert texts(memory.recall(ASKED, reranker=reader))[0] == ROTATE
            assert step(memory.compare(ASKED, ["siftcoder"])["siftcoder"]) is not None
    with Memory.open(":memory:", embedder="none", reranker=reader) as memory:
        memory.remember_many([KEY, ROTATE])
        assert texts(memory.recall(ASKED))[0] == ROTATE
        assert "reranker score 0.90" in memory.explain(ASKED, memory.recall(ASKED).hits[0].item.id)


def test_an_argument_wins_over_the_setting() -> None:
    """As everywhere."""
    settings = Settings(reranker="overlap")
    with Memory.open(":memory:", embedder="none", settings=settings, reranker="none") as memory:
        memory.remember(KEY)

        assert step(memory.recall(ASKED)) is None


def test_a_name_that_is_none_is_refused(plain: Memory) -> None:
    """On opening and on asking, before anything is searched."""
    with pytest.raises(BadSetting, match="no reranker 'bm25'"):
        plain.recall(ASKED, reranker="bm25")
    with pytest.raises(BadSetting, match="no reranker 'bm25'"):
        Memory.open(":memory:", embedder="none", reranker="bm25")


def test_what_cannot_be_loaded_is_said_and_recall_answers(plain: Memory, library: None) -> None:
    """A cross-encoder without its model is a reason, not an error."""
    answer = plain.recall(ASKED, reranker="cross-encoder:gone")

    assert set(texts(answer)) == {KEY, ROTATE}
    reason = dict(answer.degraded)["rerank.read"]
    assert "gone cannot be loaded" in reason


def test_a_cross_encoder_reads_items_and_episodes(library: None) -> None:
    """Both by the same network, and the score is the blend of both views."""
    read = CrossEncoder("name")
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        memory.remember(KEY, caption="Deploy key")
        memory.remember("I rotate the deploy key", level="raw", speaker="Anna")
        before = memory.recall(ASKED, profile="siftcoder")

        answer = memory.recall(ASKED, profile="siftcoder", reranker="cross-encoder:name")

    old = {hit.item.text: hit.score / before.hits[0].score for hit in before.hits}
    told = {KEY: f"Deploy key\n{KEY}"}
    assert {hit.item.level for hit in answer.hits} == {"item", "raw"}
    for hit in answer.hits:
        (score,) = read(ASKED, [told.get(hit.item.text, hit.item.text)])
        assert hit.score == pytest.approx(0.4 * old[hit.item.text] + 0.6 * score)


def test_a_server_reads_and_may_fail(plain: Memory, monkeypatch) -> None:
    """Asked for every recall; what it does not answer is said, and the order stays."""
    monkeypatch.setenv("BETHINK_RERANK_TIMEOUT_S", "60")
    without = plain.recall("rotate deploy key")
    with reranking() as server:
        read = plain.recall("rotate deploy key", reranker=f"{server.url}/rerank")
        server.fault = FAULTS["hang"]
        monkeypatch.setenv("BETHINK_RERANK_TIMEOUT_S", "0.5")
        unread = plain.recall("rotate deploy key", reranker=f"{server.url}/v1/rerank")

    assert texts(read)[0] == ROTATE
    assert read.hits[0].score == pytest.approx(0.4 + 0.6 * 0.9)
    assert texts(unread) == texts(without)
    assert "did not answer" in dict(unread.degraded)["rerank.read"]


def test_why_not_follows_the_reader(plain: Memory) -> None:
    """What the reader thought little of is explained with it."""
    profile = parse_profile(
        '[[channels]]\nuse = "lexical"\n[[gate]]\nuse = "threshold"\nmin_share = 0.6',
        "strict",
        "here",
    )
    answer = plain.recall(ASKED, profile=profile, reranker=Reader())
    (lost,) = [item.id for item in plain.browse() if item.text == KEY]
    assert texts(answer) == [ROTATE]

    assert plain.why_not(lost, ASKED, profile=profile, reranker=Reader()).stage == "gate.threshold"
    assert plain.why_not(lost, ASKED, profile=profile).returned


def test_a_title_is_read_with_its_text(plain: Memory) -> None:
    """Of an item; an episode is read as it was said, and nothing is read twice."""
    seen: list[str] = []
    items = [
        Item("a", "Keys rotate monthly.", NOW, "user", caption="Key rotation"),
        Item("b", "Key rotation is monthly.", NOW, "user", caption="Key rotation"),
        Item("c", "I rotated the key.", NOW, "user", level="raw", caption="Ann: I rotated it"),
        Item("d", "No title.", NOW, "user"),
    ]

    def read(_: str, given: Sequence[str]) -> list[float]:
        seen.extend(given)
        return [0.0] * len(given)

    ctx = Context(Query("key", NOW), plain.store, reranker=read)
    Rerank()(tuple(Candidate(item) for item in items), ctx)

    assert seen == [
        "Key rotation\nKeys rotate monthly.",
        "Key rotation is monthly.",
        "I rotated the key.",
        "No title.",
    ]


def test_the_blend_is_four_to_six(plain: Memory) -> None:
    """0.4 of the earlier score, the best being 1, and 0.6 of the reader's."""
    out = judged(Rerank(), pool_of(2.0, 1.0), [0.0, 1.0], plain)

    assert out == pytest.approx({"i000": 0.4, "i001": 0.4 * 0.5 + 0.6})


def test_scores_of_their_own_are_not_scaled(plain: Memory) -> None:
    """Where earlier steps give 0 to 1 already: 0.4·old + 0.6·score."""
    out = judged(Rerank(scale="own"), pool_of(0.5, 0.2), [0.25, 1.0], plain)

    assert out == pytest.approx({"i000": 0.4 * 0.5 + 0.6 * 0.25, "i001": 0.4 * 0.2 + 0.6})


def test_the_first_can_keep_more(plain: Memory) -> None:
    """By rank: 0.75 up to the third, 0.6 up to the tenth, 0.4 after that, unread ones too."""
    pool = pool_of(*[1.0] * 14)

    out = judged(Rerank(keep_by_rank=True, top=12), pool, [0.0] * 12, plain)

    assert [out[cand.item.id] for cand in pool] == pytest.approx(
        [0.75] * 3 + [0.60] * 7 + [0.40] * 4
    )
    assert judged(Rerank(keep_by_rank=True), pool, [1.0] * 14, plain) == pytest.approx(
        {cand.item.id: 1.0 for cand in pool}
    )


def test_a_profile_can_say_how_to_blend() -> None:
    """All of it is settings of the stage; a wrong one is named with what is allowed."""
    toml = '[[channels]]\nuse = "lexical"\n[[rerank]]\nuse = "read"\n'

    profile = parse_profile(toml + 'keep_by_rank = true\nscale = "own"\n', "mine", "here")

    assert isinstance(profile, Profile)
    assert profile.rerank == (Rerank(keep_by_rank=True, scale="own"),)
    with pytest.raises(Exception, match="scale is 'min'"):
        parse_profile(toml + 'scale = "min"\n', "mine", "here")
