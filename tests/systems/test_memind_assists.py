"""Memind's assists: what the graph and the threads bring in, for how much, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.model import (
    Candidate,
    Evidence,
    Link,
    Member,
    Node,
    Pool,
    Query,
    Thread,
    ThreadEvent,
    replay,
    sort_by_score,
)
from bethink.retrieval.context import Context
from bethink.retrieval.profile import load_profile
from bethink.retrieval.stages import STAGES
from bethink.testing import FixedClock
from corpus import NOW, days_ago
from rows import each_row

GRAPH = load_profile("memind-simple").expand[2]
THREADS = replace(load_profile("memind-simple").expand[1], enabled=True)
# Unlike each other, so that no links are made of themselves.
PLAIN = [
    f"{one} {other}"
    for one in ("amber", "birch", "cedar", "dusk", "ember", "fern")
    for other in ("anvil", "bridge", "canal", "drum", "easel")
]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as opened:
        for number, words in enumerate(PLAIN):
            opened.remember(words, id=f"m{number:02d}")
        yield opened


def ask(memory: Memory, **fields: object) -> Context:
    return Context(Query("anything", NOW, **fields), memory.store)


def direct(memory: Memory, **scores: float) -> Pool:
    return sort_by_score(
        Candidate(memory.get(name), score, (Evidence("fuse.x", "add", score),))
        for name, score in scores.items()
    )


def link(memory: Memory, src: str, dst: str, kind: str, weight: float) -> None:
    made = Link(Node("item", src), Node("item", dst), kind, weight=weight, created_at=NOW)
    memory.store.graph.add_links([made])


def by_id(pool: Pool) -> dict[str, Candidate]:
    return {cand.item.id: cand for cand in pool}


def lawful(pool: Pool) -> bool:
    return pool == sort_by_score(pool) and all(replay(c.evidence) == c.score for c in pool)


# --- Graph --------------------------------------------------------------------------------


@each_row(
    ("kind", "weight"),
    [
        ("similar_to", 1.0), ("semantic", 1.0), ("follows", 0.9), ("temporal", 0.9),
        ("causes", 0.95), ("caused_by", 0.95), ("causal", 0.95),
    ],
)  # fmt: skip
def test_a_neighbour_by_family(memory: Memory, kind: str, weight: float) -> None:
    """Seed's score × family weight × strength, in both directions; the best becomes 0.35."""
    link(memory, "m00", "m10", kind, 0.8)
    link(memory, "m11", "m00", kind, 0.6)

    out = by_id(GRAPH(direct(memory, m00=0.9), ask(memory)))

    strong, weak = 0.9 * weight * 0.8, 0.9 * weight * 0.6
    if weight == 1.0:
        strong, weak = math.tanh(strong), math.tanh(weak)
    assert out["m10"].score == pytest.approx(0.35)
    assert out["m11"].score == pytest.approx(0.35 * weak / strong)
    assert out["m10"].evidence[0].value == pytest.approx(strong)
    assert (out["m10"].evidence[0].via, out["m10"].evidence[0].why) == (
        "m00", f"linked by {kind} to"
    )  # fmt: skip


def test_semantic_evidence_adds_up(memory: Memory) -> None:
    """Sorted, each further one counting for less, bent by tanh; of others the best counts."""
    pool = direct(memory, m00=0.9, m01=0.6, m02=0.5)
    for seed in ("m00", "m01", "m02"):
        link(memory, seed, "m10", "similar_to", 0.8)
        link(memory, seed, "m11", "causes", 0.8)

    out = by_id(GRAPH(pool, ask(memory)))

    parts = [0.9 * 0.8, 0.6 * 0.8, 0.5 * 0.8]
    expected = math.tanh(parts[0] + parts[1] / 1.5 + parts[2] / 2.0)
    assert out["m10"].evidence[0].value == pytest.approx(expected)
    assert out["m11"].evidence[0].value == pytest.approx(0.9 * 0.95 * 0.8)


def test_weak_links_and_other_types_do_not_count(memory: Memory) -> None:
    """From 0.55 on, and only the three families."""
    link(memory, "m00", "m10", "similar_to", 0.5499)
    link(memory, "m00", "m11", "similar_to", 0.55)
    for number, kind in enumerate(("contradicts", "supersedes", "derives_from")):
        link(memory, "m00", f"m2{number}", kind, 1.0)

    out = by_id(GRAPH(direct(memory, m00=0.9), ask(memory)))

    assert out.keys() == {"m00", "m11"}


def test_a_seed_brings_two_of_each_family(memory: Memory) -> None:
    """The strongest; what was found already does not use that up."""
    for number, weight in ((10, 0.9), (11, 0.8), (12, 0.7), (1, 0.95)):
        link(memory, "m00", f"m{number:02d}", "similar_to", weight)

    out = by_id(GRAPH(direct(memory, m00=0.9, m01=0.2), ask(memory)))

    assert out.keys() == {"m00", "m01", "m10", "m11"}


def test_only_the_first_six_are_seeds_and_twelve_come_in(memory: Memory) -> None:
    """In the order of what they are worth."""
    scores = {f"m{number:02d}": 0.9 - number / 100 for number in range(8)}
    for number in range(7):
        for place in range(3):
            kind = ("similar_to", "follows", "causes")[place]
            link(memory, f"m{number:02d}", f"m{8 + 3 * number + place:02d}", kind, 0.9)

    out = by_id(GRAPH(direct(memory, **scores), ask(memory)))

    brought = out.keys() - scores.keys()
    assert len(brought) == 12
    assert not brought & {"m26", "m27", "m28"}, "the seventh is no seed"


def test_what_was_found_gains_from_its_links(memory: Memory) -> None:
    """A share of what it lacks to 1; the protected gain nothing."""
    pool = direct(memory, m00=0.9, m01=0.8, m02=0.7, m03=0.4)
    link(memory, "m00", "m03", "similar_to", 0.9)
    link(memory, "m00", "m01", "similar_to", 0.9)

    out = by_id(GRAPH(pool, ask(memory)))

    # The first is itself reached from two others, and so the strongest.
    own, strongest = math.tanh(0.9 * 0.9), math.tanh(0.8 * 0.9 + 0.4 * 0.9 / 1.5)
    assert out["m01"].score == 0.8
    assert out["m03"].score == pytest.approx(0.4 + 0.6 * 0.35 * own / strongest)


def test_the_first_three_stay_first(memory: Memory) -> None:
    """Whatever would pass them is held just below, in its own order."""
    pool = direct(memory, m00=0.3, m01=0.2, m02=0.1, m03=0.05)
    link(memory, "m00", "m10", "similar_to", 1.0)
    link(memory, "m00", "m11", "similar_to", 0.9)

    out = GRAPH(pool, ask(memory))

    assert [cand.item.id for cand in out] == ["m00", "m01", "m02", "m10", "m11", "m03"]
    assert lawful(out)
    assert out[3].evidence[-1].why == "kept below the protected hits"


def test_expanding_protects_nobody(memory: Memory) -> None:
    """In that mode the graph competes on its merits."""
    pool = direct(memory, m00=0.3, m01=0.2, m02=0.1)
    link(memory, "m00", "m10", "similar_to", 1.0)

    out = replace(GRAPH, mode="expand")(pool, ask(memory))

    assert [cand.item.id for cand in out] == ["m10", "m00", "m01", "m02"]


def test_old_neighbours_count_for_less(memory: Memory) -> None:
    """By the same time factor as everything else."""
    memory.remember("An old one", id="old", occurred_at=days_ago(2000))
    link(memory, "m00", "old", "causes", 1.0)
    link(memory, "m00", "m10", "causes", 1.0)

    out = by_id(GRAPH(direct(memory, m00=0.9), ask(memory)))

    assert out["old"].score == pytest.approx(0.7 * out["m10"].score)


def speak_of(memory: Memory, name: str, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        memory.remember(f"Note {number} of {name}", id=f"{name}{number}", entities=[name])


def test_siblings_share_an_entity(memory: Memory) -> None:
    """At most three for a seed, worth 0.85 of it; hubs are skipped and counted."""
    speak_of(memory, "Nordwind", 8)
    speak_of(memory, "Okta", 9)
    ctx = ask(memory)

    out = by_id(GRAPH(direct(memory, Nordwind0=0.8, Okta0=0.7), ctx))

    assert len(out) == 2 + 3
    assert all(name.startswith(("Nordwind", "Okta0")) for name in out)
    sibling = out["Nordwind1"].evidence[0]
    assert (sibling.value, sibling.via) == (pytest.approx(0.8 * 0.85), "Nordwind0")
    assert "also mentions" in sibling.why
    assert "1 hubs skipped" in ctx.pop_step_notes()


def test_nothing_forgotten_or_filtered_comes_in(memory: Memory) -> None:
    """Filters come before every cut: two visible neighbours are found behind hidden ones."""
    memory.remember("Secret", id="secret", classification=3)
    memory.remember("An episode", id="raw", level="raw")
    memory.remember("An insight", id="insight", level="insight")
    for name, weight in (
        ("secret", 1.0),
        ("m20", 0.99),
        ("insight", 0.98),
        ("m10", 0.9),
        ("raw", 0.8),
    ):
        link(memory, "m00", name, "similar_to", weight)
    memory.forget("m20")

    out = by_id(GRAPH(direct(memory, m00=0.9), ask(memory)))

    assert out.keys() == {"m00", "m10", "raw"}


def test_the_remark_counts(memory: Memory) -> None:
    """Seeds, expansions, admitted, displaced and overlap."""
    link(memory, "m00", "m10", "similar_to", 0.9)
    link(memory, "m00", "m01", "similar_to", 0.9)
    ctx = ask(memory)

    GRAPH(direct(memory, m00=0.9, m01=0.5, m02=0.3, m03=0.1), ctx)

    assert ctx.pop_step_notes() == (
        "4 seeds, 1 by links, 0 by entities, 1 admitted, 1 displaced, 2 found already, "
        "0 hubs skipped"
    )


@given(
    scores=st.lists(st.floats(0, 1.05), min_size=1, max_size=8),
    links=st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 20), st.floats(0.5, 1)), max_size=12
    ),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None
)
def test_the_laws_hold_and_the_first_three_stay(
    scores: list[float], links: list[tuple[int, int, float]]
) -> None:
    """Whatever the links: best first, explained, the protected in front and unchanged."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        memory.remember_many(
            {"text": words, "id": f"m{n:02d}"} for n, words in enumerate(PLAIN[:21])
        )
        for src, dst, weight in links:
            link(memory, f"m{src:02d}", f"m{dst:02d}", "similar_to", weight)
        pool = direct(memory, **{f"m{at:02d}": score for at, score in enumerate(scores)})

        out = GRAPH(pool, ask(memory))

        assert lawful(out)
        assert out[:3] == pool[:3] or len(pool) < 3
        assert {cand.item.id for cand in pool} <= {cand.item.id for cand in out}


# --- Threads ------------------------------------------------------------------------------


def thread(memory: Memory, thread_id: str, members: dict[str, float], **fields: object) -> Thread:
    given_members = [Member(item, "core", weight) for item, weight in members.items()]
    return memory.put_thread(f"Thread {thread_id}", given_members, id=thread_id, **fields)


FOUR = {"m00": 1.0, "m01": 0.9, "m02": 0.8, "m03": 0.5, "m04": 0.4, "m05": 0.3}


def test_the_document_leaves_threads_out() -> None:
    """Off by default; one line turns it on."""
    off = load_profile("memind-simple").expand[1]

    assert off.skip((), None) == "disabled in this profile"
    assert THREADS.skip((), None) == ""
    assert STAGES["thread_assist"]().enabled is False


def test_members_come_between_the_first_and_the_rest(memory: Memory) -> None:
    """Three protected, the members by weight, the rest; as many as before."""
    thread(memory, "t", {"m00": 1.0, "m10": 0.2, "m11": 0.9, "m12": 0.5, "m13": 0.1})
    pool = direct(memory, **FOUR)

    out = THREADS(pool, ask(memory))

    assert [cand.item.id for cand in out] == ["m00", "m01", "m02", "m11", "m12", "m10"]
    assert lawful(out)
    assert out[:3] == pool[:3]
    told = out[3].evidence[0]
    assert (told.via, told.value, told.why) == ("t", 0.9, "core of the thread “Thread t”")
    assert 0.8 > out[3].score > out[4].score > out[5].score > 0.5


def test_without_a_rest_there_is_no_room(memory: Memory) -> None:
    """The pool never grows."""
    thread(memory, "t", {"m00": 1.0, "m10": 0.9})
    pool = direct(memory, m00=1.0, m01=0.9, m02=0.8)

    assert THREADS(pool, ask(memory)) == pool


@each_row(
    ("members", "fields"),
    [
        ({"m00": 1.0}, {}),
        ({"m00": 1.0, "m01": 1.0}, {}),
        ({"m00": 1.0, "m10": 1.0}, {"state": "uncertain"}),
        ({"m04": 1.0, "m10": 1.0}, {}),
    ],
)
def test_such_threads_are_not_followed(
    memory: Memory, members: dict[str, float], fields: dict[str, object]
) -> None:
    """One member, nobody new, an uncertain state, or none of the first three in it."""
    thread(memory, "t", members, **fields)
    pool = direct(memory, **FOUR)

    assert THREADS(pool, ask(memory)) == pool


def event(seq: int, days: float, item: str | None = None) -> ThreadEvent:
    return ThreadEvent(seq, "update", NOW - timedelta(days=days), item)


@each_row(
    ("better", "worse"),
    [
        (({"m01": 1.0, "m02": 1.0}, {}), ({"m00": 1.0}, {})),
        (({"m00": 1.0}, {}), ({"m01": 1.0}, {})),
        (({"m00": 1.0}, {}), ({"m00": 1.0}, {"state": "resolved", "events": (event(1, 1),)})),
        (
            ({"m00": 1.0}, {"state": "resolved", "events": (event(1, 14),)}),
            ({"m00": 1.0}, {"lifecycle": "dormant"}),
        ),
        (
            ({"m00": 1.0}, {"lifecycle": "dormant"}),
            ({"m00": 1.0}, {"state": "resolved", "events": (event(1, 14.1),)}),
        ),
        (({"m00": 1.0}, {"lifecycle": "dormant"}), ({"m00": 1.0}, {"lifecycle": "closed"})),
        (({"m00": 1.0}, {"events": (event(1, 1),)}), ({"m00": 1.0}, {"events": (event(1, 2),)})),
        (({"m00": 1.0, "m20": 0.0}, {}), ({"m00": 1.0}, {})),
    ],
)
def test_which_thread_is_preferred(
    memory: Memory, better: tuple[dict, dict], worse: tuple[dict, dict]
) -> None:
    """Seeds held, the best of them, going on, the last event, members left; in that order."""
    # By id alone the worse one would come first.
    thread(memory, "t2", {**better[0], "m10": 0.9}, **better[1])
    thread(memory, "t1", {**worse[0], "m11": 0.9}, **worse[1])

    out = replace(THREADS, threads=1)(direct(memory, **FOUR), ask(memory))

    assert "m10" in by_id(out)
    assert "m11" not in by_id(out)


def test_members_are_ordered_by_closeness_to_a_seed(memory: Memory) -> None:
    """After their weight: by steps in the events, then by time, then the latest, then id."""
    events = (event(1, 30, "m10"), event(4, 29, "m00"), event(5, 28, "m11"))
    thread(memory, "t", {"m00": 1.0, "m10": 0.5, "m11": 0.5, "m12": 0.5, "m13": 0.6}, events=events)

    out = replace(THREADS, members=4)(direct(memory, **FOUR, m06=0.2, m07=0.1), ask(memory))

    assert [cand.item.id for cand in out[3:7]] == ["m13", "m11", "m10", "m12"]


def test_equal_scores_still_keep_the_order(memory: Memory) -> None:
    """The rest is held below the thread where there is no room between the scores."""
    thread(memory, "t", {"m00": 1.0, "m20": 0.9, "m21": 0.8})
    pool = direct(memory, **dict.fromkeys(("m00", "m01", "m02", "m03", "m04", "m05"), 0.5))

    out = THREADS(pool, ask(memory))

    assert [cand.item.id for cand in out] == ["m00", "m01", "m02", "m20", "m21", "m03"]
    assert lawful(out)


def test_hidden_members_stay_hidden(memory: Memory) -> None:
    """Filters hold for what a thread brings in."""
    memory.remember("Secret", id="secret", classification=3)
    thread(memory, "t", {"m00": 1.0, "m10": 0.9, "m11": 0.8})
    thread(memory, "t", {"m00": 1.0, "secret": 1.0, "m10": 0.9, "m11": 0.8})
    thread(memory, "u", {"m00": 1.0, "secret": 1.0, "m12": 0.8})
    memory.forget("m10")

    out = by_id(THREADS(direct(memory, **FOUR), ask(memory)))

    assert out.keys() == {"m00", "m01", "m02", "m03", "m04", "m11"}


@pytest.mark.parametrize("late", [False, True])
def test_hidden_members_decide_nothing(memory: Memory, late: bool) -> None:
    """Their times prefer no thread, whether they were secret before it or became so."""
    memory.remember("Secret", id="secret", classification=0 if late else 3)
    held, told = {"m00": 1.0, "m10": 0.9}, event(1, 1, "m10")
    thread(memory, "t1", {"m00": 1.0, "m11": 0.9}, events=(event(1, 0.5),))
    thread(memory, "t2", held, events=(told,))
    thread(memory, "t2", {**held, "secret": 1.0}, events=(told, event(2, 0, "secret")))
    memory.update("secret", classification=3, text="A secret")
    pool, assist = direct(memory, **FOUR), replace(THREADS, threads=1)

    assert "m11" in by_id(assist(pool, ask(memory)))
    assert "m11" in by_id(assist(pool, Context(Query("anything", NOW), memory.store.below(2))))


def test_an_answer_tells_of_the_thread(memory: Memory) -> None:
    """Through the whole walk, with the profile that has it on."""
    profile = load_profile("memind-simple")
    expand = (profile.expand[0], THREADS, *profile.expand[2:])
    for number in range(30):
        memory.remember(f"The harbour pump {number} was checked", id=f"pump{number:02d}")
    first = memory.recall("harbour pump", profile=profile)
    thread(memory, "t", {first.hits[0].item.id: 1.0, "m10": 0.9})

    answer = memory.recall("harbour pump", profile=replace(profile, expand=expand))

    assert "m10" in {hit.item.id for hit in answer.hits}
    step = next(step for step in answer.steps if step.name == "expand.thread_assist")
    assert step.note == "3 seeds, 1 threads, 1 followed, 1 members added"


def test_the_past_knows_nothing_of_later_ties(memory: Memory) -> None:
    """Links, members and mentions that came after the moment asked for do not count."""
    speak_of(memory, "Nordwind", 2)
    link(memory, "m00", "m10", "similar_to", 0.9)
    thread(memory, "t", {"m00": 1.0, "m11": 0.9})
    pool = direct(memory, **FOUR, Nordwind0=0.35)
    later = ask(memory, as_of=NOW + timedelta(days=1))

    assert {"m10", "Nordwind1"} <= by_id(GRAPH(pool, later)).keys()
    assert "m11" in by_id(THREADS(pool, later))

    put = replace(later.query, as_of=NOW)
    memory.store.graph.add_links(
        [Link(Node("item", "m01"), Node("item", "m12"), "causes", created_at=NOW + timedelta(1))]
    )
    members = [Member("m00"), Member("m13", added_at=NOW + timedelta(hours=1))]
    memory.put_thread("Thread u", members, id="u", created_at=NOW)

    assert "m12" not in by_id(GRAPH(pool, replace(later, query=put)))
    assert "m13" not in by_id(THREADS(pool, replace(later, query=put)))
    assert "m13" in by_id(THREADS(pool, later))
