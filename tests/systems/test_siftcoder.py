"""The siftcoder profile: two legs, rank fusion, time decay, and the trace its page wishes for."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.core.characters import find_unstorable
from bethink.model import Candidate, Evidence, Item, Query
from bethink.models import open_embedder
from bethink.ports import Embedder
from bethink.render.wire import recall_json
from bethink.retrieval.context import Context
from bethink.retrieval.profile import Profile, load_profile, parse_profile
from bethink.retrieval.retrievers.dense import Dense
from bethink.retrieval.retrievers.lexical import Lexical
from bethink.retrieval.stages import STAGES
from bethink.systems.siftcoder import Decay
from bethink.testing import FixedClock
from corpus import FOREIGN, NOW
from naughty import NAUGHTY
from rows import each_row

PROFILE = "siftcoder"
DECAYED = {
    "Edit": 30, "Write": 30, "MultiEdit": 30, "NotebookEdit": 30, "Read": 14, "Glob": 7,
    "WebFetch": 7, "WebSearch": 7, "Grep": 5, "Bash": 3,
}  # fmt: skip


@pytest.fixture(params=["encoder", "hash"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    """An empty memory, once with a learned model and once with the hash embedder."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=request.param, clock=clock) as opened:
        yield opened


def ago(text: str, days: float, **about: Any) -> dict[str, Any]:
    return {"text": text, "occurred_at": NOW - timedelta(days=days), **about}


def asked(memory: Memory, text: str, profile: str | Profile = PROFILE) -> list[str]:
    return [hit.item.text for hit in memory.recall(text, profile=profile).hits]


def decay() -> Decay:
    stage = load_profile(PROFILE).adjust[0]
    assert isinstance(stage, Decay)
    return stage


def after(stage: Decay, days: float, **about: Any) -> float:
    """What the stage leaves of a score of 1 after so many days."""
    item = Item("i", "text", NOW - timedelta(days=days), "test", **about)
    pool = (Candidate(item, 1.0, (Evidence("x", "add", 1.0),)),)
    return stage(pool, Context(Query("x", NOW), None))[0].score  # type: ignore[arg-type]


# --- The lexical leg -------------------------------------------------------------------------


def test_any_text_is_a_valid_question(memory: Memory) -> None:
    """No operator, quote or bracket breaks the search or changes what it means."""
    memory.remember("The auth-middleware drops requests without a tenant header")
    for text in [*NAUGHTY, 'fix the auth-middleware bug"', "NEAR/2 (a OR", "a:b^c*", "*", '""']:
        if text.strip() and find_unstorable(text) is None and len(text.encode()) <= 8192:
            memory.recall(text, profile=PROFILE)

    assert asked(memory, 'auth-middleware AND "tenant* NEAR(')


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1))
def test_whatever_is_typed_is_answered(text: str) -> None:
    """Found or not, but never an error."""
    with Memory.open(":memory:", embedder="hash", clock=FixedClock(NOW)) as memory:
        memory.remember("The deploy key lives in vault B")
        if text.strip():
            memory.recall(text, profile=PROFILE)


def test_any_of_the_words_may_match(memory: Memory) -> None:
    """Joined by AND, as in the original, the page's own question would find nothing by words."""
    memory.remember_many(
        ["Malformed auth tokens crashed the gateway", "A fix for the slow build", "auth is hard"]
    )
    answer = memory.recall("didn't we fix something around malformed auth tokens", profile=PROFILE)

    by_words = {hit.item.text: hit.reason("channel.lexical") for hit in answer.hits}
    assert len(by_words) == 3
    assert all(by_words.values())
    best = by_words["Malformed auth tokens crashed the gateway"]
    assert best is not None
    assert best.rank == 1


# --- Fusion ----------------------------------------------------------------------------------


def pools(ranks: dict[str, tuple[int, int]]) -> dict[Any, Any]:
    """What two legs found, by the ranks each gave."""
    found: dict[Any, Any] = {}
    for place, channel in enumerate((Lexical(), Dense())):
        cands = [
            Candidate(
                Item(name, name, NOW, "test"),
                1.0 / both[place],
                (Evidence(f"channel.{channel.name}", "add", 1.0 / both[place], "", None, rank),),
            )
            for name, both in ranks.items()
            if (rank := both[place])
        ]
        found[channel] = tuple(cands)
    return found


def test_ranks_are_fused_as_on_the_page() -> None:
    """Ranks 1 and 4 give 0.032018, 12 and 1 give 0.030282: the first wins."""
    fuse = load_profile(PROFILE).fuse
    ctx = Context(Query("x", NOW), None)  # type: ignore[arg-type]
    fused = fuse(pools({"one": (1, 4), "two": (12, 1)}), ctx)

    assert [cand.item.id for cand in fused] == ["one", "two"]
    assert [cand.score for cand in fused] == pytest.approx([0.032018, 0.030282], abs=5e-7)


def test_each_leg_has_its_weight(memory: Memory) -> None:
    """With a weight of 0 a leg is heard no more; a hit of one leg has that leg's share alone."""
    memory.remember_many(["The deploy key lives in vault B", "Where secrets are stored"])
    base = load_profile(PROFILE)
    words, meaning = base.channels
    halved = replace(base, channels=(replace(words, weight=0.5), replace(meaning, weight=0.0)))

    best, *others = memory.recall("deploy key", profile=halved).hits
    assert others == []
    assert best.reason("fuse.lexical").value == 0.5 / 61  # type: ignore[union-attr]
    assert best.reason("fuse.dense").value == 0.0  # type: ignore[union-attr]
    assert best.score == pytest.approx(0.5 / 61)


# --- Time ------------------------------------------------------------------------------------


@each_row(
    ("days", "left"), [(0, 1.0), (1, 0.8669), (7, 0.3679), (30, 0.01376), (-3, 1.0), (-900, 1.0)]
)
def test_time_takes_as_much_as_on_the_page(days: float, left: float) -> None:
    """0.87 is left after a day, 1/e after seven, 0.013 after a month; the future never wins."""
    assert after(decay(), days) == pytest.approx(left, abs=5e-5)


def test_tau_and_half_life_are_one_curve() -> None:
    """7 days of tau are 4.85 of half-life; after a half-life one half is left."""
    half_life = 7 * math.log(2)
    assert half_life == pytest.approx(4.852, abs=5e-4)
    assert after(Decay(half_life_days=half_life), 11) == pytest.approx(after(Decay(7.0), 11))
    assert after(Decay(half_life_days=3), 3) == pytest.approx(0.5)


def test_decay_can_be_switched_off(memory: Memory) -> None:
    """For archaeology: the old and exact comes first again, with nothing taken off."""
    memory.remember_many([ago("parse_config raises ConfigError", 400), ago("parse the mail", 0)])
    off = replace(load_profile(PROFILE), adjust=(Decay(tau_days=0),))

    assert asked(memory, "parse_config ConfigError")[0] == "parse the mail"
    assert asked(memory, "parse_config ConfigError", off)[0] == "parse_config raises ConfigError"


@each_row(("tool", "tau"), DECAYED.items())
def test_tools_fade_at_their_own_pace(tool: str, tau: float) -> None:
    """What an edit left matters for a month, a shell command for three days."""
    assert after(decay(), tau, metadata={"tool": tool}) == pytest.approx(1 / math.e)
    assert dict(decay().per_tool) == DECAYED


def test_an_unknown_tool_fades_as_the_rest() -> None:
    """Seven days of tau."""
    assert after(decay(), 7, metadata={"tool": "Telescope"}) == pytest.approx(1 / math.e)


OLD = [
    "auth token cache ttl is five minutes, set in gateway.toml",
    "Redis connection pool was exhausted during the load test",
    "parseConfig throws when the server table is missing",
]
TODAY = [
    "User prefers tabs over spaces",
    "Lunch is at noon on Fridays",
    "The office plants want water twice a week",
    "The printer on floor two is out of toner",
]


@each_row(
    ("question", "right"),
    [
        ("auth token cache ttl", OLD[0]),
        ("redis connection pool exhausted", OLD[1]),
        ("what happens when the server table is missing in parseConfig", OLD[2]),
    ],
)
def test_something_unrelated_of_today_beats_no_exact_match(
    memory: Memory, question: str, right: str
) -> None:
    """In the original "User prefers tabs over spaces" wins, since its vector leg has no floor."""
    memory.remember_many([*(ago(text, 30) for text in OLD), *(ago(text, 0) for text in TODAY)])

    assert asked(memory, question)[0] == right
    assert not set(asked(memory, question)) & set(TODAY)


def test_nothing_relevant_is_nothing_returned() -> None:
    """The original's vector leg always returns k."""
    with Memory.open(":memory:", embedder="encoder", clock=FixedClock(NOW)) as memory:
        memory.remember_many([*OLD, *TODAY])
        for question in FOREIGN:
            assert asked(memory, question) == [], question


# --- Pool, k, boost, rerank, superseded --------------------------------------------------------


def test_fifty_from_each_leg_and_five_of_all(memory: Memory) -> None:
    """The pool lets fusion fuse; k is what comes back, unless the caller says another."""
    memory.remember_many([f"deploy key number {n} of the {n * 31} keys" for n in range(70)])
    answer = memory.recall("deploy key", profile=PROFILE)

    found = {step.name: len(step.pool) for step in answer.steps}
    assert found["channel.lexical"] == found["channel.dense"] == 50
    assert len(answer.hits) == 5
    assert len(memory.recall("deploy key", profile=PROFILE, k=9).hits) == 9


def test_the_caller_boosts_with_a_reason(memory: Memory) -> None:
    """Scores are multiplied, and the trace says by what and why."""
    memory.remember_many(["The deploy key lives in vault B", "The deploy key is rotated"])

    def focus(item: Item) -> tuple[float, str]:
        return (3.0, "in focus") if "rotated" in item.text else (1.0, "")

    plain = {hit.item.text: hit.score for hit in memory.recall("deploy key", profile=PROFILE).hits}
    boosted = memory.recall("deploy key", profile=PROFILE, boost=focus)
    best = boosted.hits[0]
    assert best.item.text == "The deploy key is rotated"
    assert best.score == pytest.approx(3 * plain[best.item.text])
    assert best.reason("boost") == Evidence("boost", "times", 3.0, "in focus")
    step = next(step for step in boosted.steps if step.name == "adjust.boost")
    assert step.pool[0].reason("boost") == best.reason("boost")


@each_row("factor", [math.nan, math.inf, -1.0])
def test_a_boost_that_is_no_number_changes_nothing(memory: Memory, factor: float) -> None:
    """It is said, and the score stays."""
    memory.remember("The deploy key lives in vault B")
    plain = memory.recall("deploy key", profile=PROFILE).hits[0]
    (hit,) = memory.recall("deploy key", profile=PROFILE, boost=lambda _: factor).hits

    assert hit.score == plain.score
    assert "not a number from 0 up" in hit.reason("boost").why  # type: ignore[union-attr]


def test_the_deterministic_reranker_is_an_option(memory: Memory) -> None:
    """Off as in the original; in the profile it reads the best against the question."""
    memory.remember_many([ago("token cache ttl", 0), ago("the ttl of the auth token cache", 0)])
    base = load_profile(PROFILE)
    assert base.rerank == ()
    read = replace(base, rerank=(STAGES["overlap"](),))

    (best, _) = memory.recall("token cache ttl", profile=read).hits
    assert best.item.text == "token cache ttl"
    assert best.reason("overlap") is not None


def test_superseded_memories_are_left_out_unless_pinned(memory: Memory) -> None:
    """What a newer one replaced is not told, but for what somebody pinned; nothing is lost."""
    old, kept, new = (
        memory.remember(text, pinned=pinned).id
        for text, pinned in (
            ("deploys take ten minutes", False),
            ("deploys need two reviews", True),
            ("deploys take four minutes", False),
        )
    )
    memory.store.items.set_status([old, kept], "superseded", actor="test", now=NOW)

    def found(**options: Any) -> set[str]:
        answer = memory.recall("deploys", profile=PROFILE, **options)
        return {hit.item.id for hit in answer.hits}

    assert found() == {kept, new}
    assert found(include_superseded=True) == {old, kept, new}


# --- Fields, embedder, trace -------------------------------------------------------------------


def test_a_score_can_be_computed_by_hand(memory: Memory) -> None:
    """(1/(60 + bm25_rank) + 1/(60 + vector_rank)) × recency, from the fields of every hit."""
    memory.remember_many(
        [ago("The deploy key lives in vault B", 2), ago("Deploy keys are rotated", 9),
         ago("A vault for every deploy", 0.3)]
    )  # fmt: skip
    told = recall_json(memory.recall("deploy key vault", profile=PROFILE))

    assert told["items"]
    for hit in told["items"]:
        legs = [hit["bm25_rank"], hit["vector_rank"]]
        share = sum(1 / (60 + rank) for rank in legs if rank is not None)
        assert hit["score"] == pytest.approx(share * hit["recency"])
        assert (hit["cosine"] is None) == (hit["vector_rank"] is None)
        assert hit["cosine"] is None or 0.25 < hit["cosine"] <= 1.0001


def test_the_pages_worked_example() -> None:
    """Ranks 2 and 1 with a recency of 0.72 make 0.0234 (0.71 makes 0.0231)."""
    assert pytest.approx(0.0234, abs=5e-5) == (1 / 62 + 1 / 61) * 0.72
    assert pytest.approx(0.0231, abs=5e-5) == (1 / 62 + 1 / 61) * 0.71


def test_the_trace_tells_of_every_candidate(memory: Memory) -> None:
    """Its place in each leg and its score after the fusion, also of those not returned."""
    memory.remember_many([f"deploy key number {n} of the {n * 31} keys" for n in range(30)])
    answer = memory.recall("deploy key", profile=PROFILE, k=3)
    told = recall_json(answer, trace=True, candidates=None)

    steps = {step["step"]: step["candidates"] for step in told["trace"]["steps"]}
    fused = steps["fuse"]
    assert len(fused) == 30
    for cand in fused:
        share = sum(1 / (60 + leg["rank"]) for leg in cand["channels"].values())
        assert cand["score"] == pytest.approx(share)
    assert {cand["id"] for cand in steps["adjust.decay"]} == {cand["id"] for cand in fused}


def by_the_book(text: str) -> list[float]:
    """The deterministic embedding as it is documented, written down once more."""
    vector = [0.0] * 384
    for token in re.findall(r"[a-z0-9_]+", text.lower()):
        digest = hashlib.sha256(token.encode()).digest()
        vector[int.from_bytes(digest[:4], "big") % 384] += -1.0 if digest[4] % 2 else 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


@each_row("text", ["fixed null-deref in parse_config", "a a a b", "", "ÄÖ 漢", "A_1"])
def test_the_hash_embedder_is_the_documented_one(text: str) -> None:
    """384 buckets by SHA-256, the sign by the fifth byte, length 1, zeros for no words."""
    hashing = open_embedder("hash")
    assert hashing is not None
    assert hashing.dim == 384
    assert hashing.embed_query(text).vector.tolist() == pytest.approx(by_the_book(text), abs=1e-6)


def test_the_hash_embedder_says_what_it_is() -> None:
    """Wherever it is in use: in the trace, among the facts of the space, in its name."""
    with Memory.open(":memory:", embedder="hash", clock=FixedClock(NOW)) as memory:
        memory.remember("The deploy key lives in vault B")
        answer = memory.recall("deploy key", profile=PROFILE)
        step = next(step for step in answer.steps if step.name == "channel.dense")

        assert "not a learned model" in step.note
        assert "not a learned model" in memory.stats()["embedder"]


def test_vectors_of_two_models_are_never_compared(embedder: Embedder) -> None:
    """The original cuts the longer one short in silence; here the leg is degraded and says so."""
    hashing = open_embedder("hash")
    with Memory.open(":memory:", embedder=hashing, clock=FixedClock(NOW)) as memory:
        memory.remember("The deploy key lives in vault B")
        other = Memory(memory.store, embedder=embedder, clock=FixedClock(NOW))
        answer = other.recall("deploy key", profile=PROFILE)

    assert [part.part for part in answer.degraded] == ["channel.dense"]
    assert len(answer.hits) == 1


# --- The profile as data -----------------------------------------------------------------------


def test_the_numbers_of_the_page_are_the_profiles() -> None:
    """candidatePool 50, rrfK 60, weights 1, tau 7 days, k 5, no reranker."""
    profile = load_profile(PROFILE)
    words, meaning = profile.channels
    assert isinstance(words, Lexical)
    assert isinstance(meaning, Dense)
    assert (words.depth, words.weight) == (meaning.depth, meaning.weight) == (50, 1.0)
    assert profile.fuse == type(profile.fuse)(k=60.0)  # type: ignore[call-arg]
    assert decay().tau_days == 7.0
    assert profile.budget.k == 5
    assert profile.rerank == ()


def test_half_life_may_be_said_instead() -> None:
    """One of the two settings is enough; the half-life wins where both are given."""
    text = '[[channels]]\nuse = "lexical"\n[[adjust]]\nuse = "decay"\nhalf_life_days = 7\n'
    (stage,) = parse_profile(text, "own", "own.toml").adjust

    assert isinstance(stage, Decay)
    assert after(stage, 7) == pytest.approx(0.5)
