"""The linksee profile: its composite, bands, momentum, layers, budget, reasons, entities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from bethink import Memory
from bethink.errors import Refused, StoreBusy
from bethink.model import Candidate, Evidence, Filters, Item, Query, replay, sort_by_score
from bethink.render.wire import recall_json
from bethink.retrieval.context import Context
from bethink.retrieval.profile import load_profile
from bethink.retrieval.stages.assemble import token_cost
from bethink.systems.linksee import Composite
from bethink.testing import FixedClock
from corpus import NOW
from fallible import with_methods
from rows import each_row

DAY = 24 * 3600
PROFILE = "linksee"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    """An empty memory that finds by words alone, as the original does."""
    with Memory.open(":memory:", embedder="none", clock=clock) as opened:
        yield opened


def use(memory: Memory, item: str, times: int = 1) -> None:
    """Marks a memory as recalled now."""
    for _ in range(times):
        memory.store.activity.note_use([item], memory.session.clock())


def hits(memory: Memory, text: str, **options: Any) -> list[dict[str, Any]]:
    """The hits as JSON, best first; looking at them is no use."""
    told = recall_json(memory.recall(text, profile=PROFILE, **{"track": False, **options}))
    by_id = {hit["id"]: hit for level in ("insights", "items", "raw") for hit in told[level]}
    return [by_id[one] for one in told["order"]]


# --- The composite -------------------------------------------------------------------------


def test_the_composite_is_the_pages_sum(memory: Memory, clock: FixedClock) -> None:
    """0.45 relevance + 0.25 heat + 0.15 momentum + 0.15 importance, and the parts say so."""
    one = memory.remember("Priya rotates the deploy key in Vault", importance=0.7).id
    use(memory, one, 4)
    (hit,) = hits(memory, "deploy key")

    heat = 3 * 4 + 4 + 20 + 0.5 * 4 + 15 * 0.7
    momentum = 0.4 * 7.0 + 0.3 * 7.0 + 0.3 * (4 / 7)
    assert hit["heat"] == pytest.approx(heat)
    assert hit["momentum"] == pytest.approx(momentum)
    assert hit["breakdown"] == pytest.approx(
        {
            "relevance": 0.45,
            "heat": 0.25 * heat / 100,
            "momentum": 0.15 * momentum / 10,
            "importance": 0.15 * 0.7,
        }
    )
    assert hit["score"] == pytest.approx(sum(hit["breakdown"].values()))


def pool_of(*scores: float) -> tuple[Candidate, ...]:
    return sort_by_score(
        Candidate(Item(f"i{n}", f"text {n}", NOW, "test"), score, (Evidence("x", "add", score),))
        for n, score in enumerate(scores)
    )


def test_the_worst_match_is_not_lifted(memory: Memory) -> None:
    """Relevance is a share of the best: 0.01 of 1 is 0.01, not two thirds as in the original."""
    pool = Composite()(pool_of(0.5, 0.25, 0.005), Context(Query("x", NOW), memory.store))

    parts = [replay(cand.evidence[:-3]) / 0.45 for cand in pool]
    assert parts == pytest.approx([1.0, 0.5, 0.01])
    assert all(replay(cand.evidence) == cand.score for cand in pool)


@pytest.mark.parametrize(
    ("question", "shares"),
    [
        ("deploy key", (0.60, 0.18, 0.12, 0.10)),
        ("where is the deploy key", (0.60, 0.18, 0.12, 0.10)),
        ("deploy key vault", (0.72, 0.12, 0.08, 0.08)),
    ],
)
def test_sharper_questions_may_count_relevance_for_more(
    memory: Memory, question: str, shares: tuple[float, ...]
) -> None:
    """With ``by_words`` one or two telling words weigh otherwise than three."""
    memory.remember("The deploy key lives in the vault", importance=1.0)
    profile = replace(load_profile(PROFILE), adjust=(Composite(by_words=True),))
    (hit,) = memory.recall(question, profile=profile).hits

    relevance, heat, _, importance = shares
    assert hit.score == pytest.approx(relevance + heat * 0.35 + importance)


def test_pinned_noise_does_not_beat_what_was_asked(memory: Memory) -> None:
    """A weak match gains at most its share by being pinned."""
    right = memory.remember("The deploy key for production lives in vault B").id
    memory.remember("Never leave a key in the door of the office", importance=1.0)

    assert hits(memory, "where is the production deploy key")[0]["id"] == right


def test_a_memory_of_nobody_has_no_momentum(memory: Memory) -> None:
    """Its part of the sum is nothing, and said."""
    memory.remember("the lights go out at nine")
    (hit,) = hits(memory, "lights")

    assert hit["momentum"] is None
    assert hit["breakdown"]["momentum"] == 0.0


# --- Heat and bands ------------------------------------------------------------------------


def test_heat_counts_the_uses_there_were(memory: Memory, clock: FixedClock) -> None:
    """Four uses long ago are not four in 30 days because of one today (the original's guess)."""
    one = memory.remember("the deploy key lives in vault B").id
    use(memory, one, 4)
    clock.forward(days=60)
    use(memory, one)
    (hit,) = hits(memory, "deploy key")

    assert hit["heat"] == pytest.approx(3 * 1 + 5 + 20 + 0.5 * 5 + 7.5)
    assert hit["band"] == "cold"


def test_heat_of_a_past_moment_knows_no_later_use(memory: Memory, clock: FixedClock) -> None:
    """As of then it was as warm as it was then."""
    one = memory.remember("the deploy key lives in vault B").id
    use(memory, one, 2)
    clock.forward(days=10)
    then = clock.now
    clock.forward(days=1)
    use(memory, one, 15)

    assert hits(memory, "deploy key")[0]["band"] == "hot"
    assert hits(memory, "deploy key", as_of=then)[0]["heat"] == pytest.approx(6 + 2 + 10 + 1 + 7.5)


def test_a_band_is_a_filter_before_any_cut(memory: Memory) -> None:
    """The one hot memory is found behind more colder and better matches than a channel passes on."""
    memory.remember_many([f"deploy key number {n} of {n * 7}" for n in range(80)])
    warm = memory.remember("somewhere among many other words there is also the word deploy").id
    use(memory, warm, 12)

    assert [hit["id"] for hit in hits(memory, "deploy key", band="hot")] == [warm]
    assert warm not in [hit["id"] for hit in hits(memory, "deploy key", k=200, band="cold")]


@each_row("band", ["hot", "warm", "cold", "frozen"])
def test_the_filter_and_the_evidence_agree(memory: Memory, clock: FixedClock, band: str) -> None:
    """A memory comes under the band that its own evidence names, and under no other."""
    for number, (uses, age) in enumerate([(0, 120), (0, 3), (3, 1), (4, 1), (9, 0), (10, 0)]):
        clock.now = NOW - timedelta(days=age)
        one = memory.remember(f"deploy key {number}", id=f"note-{number}").id
        use(memory, one, uses)
    clock.now = NOW

    everything = {hit["id"]: hit["band"] for hit in hits(memory, "deploy key")}
    within = hits(memory, "deploy key", band=band)
    assert len(everything) == 6
    assert {hit["id"] for hit in within} == {one for one, own in everything.items() if own == band}
    assert {hit["band"] for hit in within} == {band}


def test_why_not_names_the_band(memory: Memory) -> None:
    """A memory outside the band asked for fell out at the filters, and why is said."""
    one = memory.remember("the deploy key lives in vault B").id
    told = memory.why_not(one, "deploy key", profile=PROFILE, band="hot")

    assert told.stage == "filters"
    assert told.reason == "its heat is 27.5 (cold: never used), not hot"


def test_an_unknown_band_is_refused_with_the_bands(memory: Memory) -> None:
    """Nothing is searched for it."""
    with pytest.raises(Refused) as error:
        memory.recall("x", band="tepid")
    assert error.value.remedy == "allowed: hot, warm, cold, frozen"


# --- Momentum ------------------------------------------------------------------------------


def test_momentum_follows_the_news(memory: Memory, clock: FixedClock) -> None:
    """It is that of the moment of the question, tracked or not."""
    memory.remember("Priya found the leak in the resize worker")
    first = hits(memory, "leak", k=1)[0]["momentum"]
    assert first == pytest.approx(4.2714, abs=5e-5)

    clock.forward(seconds=5)
    memory.remember("Priya fixed the leak", importance=0.9)
    memory.recall("leak", profile=PROFILE, track=True)
    assert hits(memory, "leak", k=1)[0]["momentum"] > first


def test_momentum_fades_without_news(memory: Memory, clock: FixedClock) -> None:
    """A week on nothing is going on: quiet, whatever was stored before."""
    memory.remember_many([f"Priya reported problem {n}" for n in range(5)])
    memory.recall("problem", profile=PROFILE, track=True)
    assert hits(memory, "problem", k=1)[0]["momentum"] > 4

    clock.forward(days=8)
    assert hits(memory, "problem", k=1)[0]["momentum"] == pytest.approx(2.0)


def test_the_liveliest_entity_counts(memory: Memory) -> None:
    """A memory about several is as lively as the liveliest of them, which is named."""
    memory.remember_many([f"Priya reported problem {n}" for n in range(5)])
    memory.remember("Tomasz met Priya")
    (hit,) = memory.recall("met", profile=PROFILE).hits

    noted = next(reason for reason in hit.evidence if reason.by == "momentum")
    assert noted.via == "person:priya"


def note_use(ids: Sequence[str], now: datetime, **_: object) -> None:
    """A write while another process keeps the write lock."""
    raise StoreBusy("others were writing")


def test_a_busy_store_degrades_the_tracking(memory: Memory, clock: FixedClock) -> None:
    """The answer stands; what could not be kept is noted."""
    memory.remember("Priya found the leak in the resize worker")
    store = with_methods(memory.store, "activity", note_use=note_use)
    busy = Memory(store, clock=clock)
    answer = busy.recall("leak", profile=PROFILE, track=True)

    assert [hit.item.text for hit in answer.hits] == ["Priya found the leak in the resize worker"]
    assert [tuple(part) for part in answer.degraded] == [("track", "others were writing")]


# --- Finding -------------------------------------------------------------------------------


def test_whole_words_come_first(memory: Memory) -> None:
    """ "are" does not find "middleware", as the original's trigrams do."""
    memory.remember("The auth-middleware drops requests without a tenant header")

    assert hits(memory, "who are they") == []
    assert hits(memory, "middleware")[0]["match_reasons"][0] == "content_match_dual"


def test_parts_of_words_are_found_after_all(memory: Memory) -> None:
    """A part that no memory holds as a word is looked for inside the words."""
    memory.remember("The auth-middleware drops requests without a tenant header")
    (hit,) = hits(memory, "middlew")

    assert hit["match_reasons"] == ["content_substring"]


@each_row("text", ['"', "a AND (b", "NEAR(x, 2)", "key*", "^key", "col:key", "-key"])
def test_any_text_is_a_question(memory: Memory, text: str) -> None:
    """What the original would pass to its index as syntax is words here."""
    memory.remember("The deploy key lives in vault B")
    memory.recall(text, profile=PROFILE)


# --- Layers --------------------------------------------------------------------------------


def test_layers_go_by_aliases_both_ways(memory: Memory) -> None:
    """Stored under one alias, asked for by another."""
    memory.remember("We chose PostgreSQL for billing", layer="decisions")
    memory.remember("We chose blue for the PostgreSQL logo", layer="mood")

    found = hits(memory, "PostgreSQL", layer="insights")
    assert [hit["layer"] for hit in found] == ["learning"]


def test_an_unknown_layer_is_refused_both_ways(memory: Memory) -> None:
    """With every layer and alias named; the original's recall finds nothing and says nothing."""
    for ask in (
        lambda: memory.remember("x y z", layer="vibes"),
        lambda: memory.recall("x", profile=PROFILE, layer="vibes"),
    ):
        with pytest.raises(Refused) as error:
            ask()
        assert "caveat (or warning, warnings, pain" in error.value.remedy


def test_caveats_are_protected_and_stay_so(memory: Memory) -> None:
    """Even when the layer or the importance is changed later."""
    one = memory.remember("Never run migrations during the export", layer="warning").id
    assert memory.get(one).protected

    assert memory.update(one, importance=0.1).protected
    assert memory.update(one, layer="context").protected


def test_a_pin_can_be_undone(memory: Memory) -> None:
    """Importance 0.9 pins; lowering it or saying so unpins, which the original never does."""
    one = memory.remember("The release train leaves on Tuesdays", importance=0.9).id
    other = memory.remember("The deploy key lives in vault B", importance=0.95).id
    below = memory.remember("Lunch is at noon", importance=0.89).id
    assert [memory.get(item).pinned for item in (one, other, below)] == [True, True, False]

    assert not memory.update(one, importance=0.6).pinned
    assert not memory.update(other, pinned=False).pinned


# --- The budget and its pages ---------------------------------------------------------------


def test_the_token_budget_counts_tokens(memory: Memory) -> None:
    """Not memories: long ones leave room for fewer, and one always comes."""
    memory.remember_many([f"deploy key {n} " + "with many more words " * 20 for n in range(6)])
    every = memory.recall("deploy key", profile=PROFILE, k=50, max_tokens=10**6).hits
    each = token_cost(every[0])

    two = memory.recall("deploy key", profile=PROFILE, k=50, max_tokens=2 * each + 1)
    one = memory.recall("deploy key", profile=PROFILE, k=50, max_tokens=1)
    assert len(every) == 6
    assert (two.page.returned, two.page.stopped_by, two.page.has_more) == (2, "tokens", True)
    assert two.page.tokens <= 2 * each + 1
    assert (one.page.returned, one.page.stopped_by, one.page.has_more) == (1, "tokens", True)


def test_whichever_limit_fires_first_is_named(memory: Memory) -> None:
    """k, or the end; ``has_more`` only where there is more."""
    memory.remember_many([f"deploy key {n}" for n in range(5)])

    short = memory.recall("deploy key", profile=PROFILE, k=2)
    whole = memory.recall("deploy key", profile=PROFILE, k=5)
    rest = memory.recall("deploy key", profile=PROFILE, k=5, offset=3)
    assert (short.page.stopped_by, short.page.has_more) == ("k", True)
    assert (whole.page.stopped_by, whole.page.has_more) == ("end", False)
    assert (rest.page.returned, rest.page.stopped_by) == (2, "end")


def follow(memory: Memory, between: Any, **options: Any) -> list[list[str]]:
    """The pages of one answer, with something happening after each."""
    pages, cursor = [], None
    while True:
        page = memory.recall("deploy key", profile=PROFILE, k=2, cursor=cursor, **options)
        pages.append([hit.item.id for hit in page.hits])
        cursor = page.page.cursor
        if cursor is None:
            return pages
        between(pages)


def test_pages_are_stable_while_others_write(memory: Memory, clock: FixedClock) -> None:
    """Nothing comes twice, nothing is passed over, nothing newer than the first page comes."""
    there = [memory.remember(f"deploy key {n}").id for n in range(7)]

    def write(pages: list[list[str]]) -> None:
        clock.forward(seconds=1)
        memory.remember(f"the newest deploy key, {len(pages)}", importance=1.0)
        use(memory, there[0], 5)

    seen = [one for page in follow(memory, write) for one in page]
    assert sorted(seen) == sorted(there)


def test_what_was_forgotten_between_pages_is_on_none(memory: Memory, clock: FixedClock) -> None:
    """A later page shows nothing that is gone, revised before or not, and nothing of it."""
    for n in range(7):
        memory.remember(f"deploy key {n}", id=f"note-{n}")
    clock.forward(seconds=1)
    memory.update("note-6", text="deploy key six, corrected")

    def forget(pages: list[list[str]]) -> None:
        clock.forward(seconds=1)
        if len(pages) == 1:
            unseen = [f"note-{n}" for n in range(7) if f"note-{n}" not in pages[0]]
            memory.update(unseen[0], text="deploy key, corrected once more")
            clock.forward(seconds=1)
            memory.forget(*unseen[:2])
            gone.update(unseen[:2])

    gone: set[str] = set()
    pages = follow(memory, forget)
    assert len(gone) == 2
    assert not gone & {one for page in pages for one in page}
    assert sum(map(len, pages)) == 5


def test_what_was_corrected_between_pages_is_told_as_it_is(
    memory: Memory, clock: FixedClock
) -> None:
    """The old words are gone from the next page."""
    for n in range(3):
        memory.remember(f"deploy key {n}", id=f"note-{n}")
    first = memory.recall("deploy key", profile=PROFILE, k=2)
    (left,) = {f"note-{n}" for n in range(3)} - {hit.item.id for hit in first.hits}
    clock.forward(seconds=1)
    memory.update(left, text="the deploy key was moved to vault C")
    second = memory.recall("deploy key", profile=PROFILE, k=2, cursor=first.page.cursor)

    assert [hit.item.text for hit in second.hits] == ["the deploy key was moved to vault C"]


def test_pages_of_the_past_stay_in_the_past(memory: Memory, clock: FixedClock) -> None:
    """Who asks as of a moment gets all pages as of it, whatever was forgotten since."""
    there = [memory.remember(f"deploy key {n}").id for n in range(5)]
    clock.forward(hours=1)
    then = clock.now
    clock.forward(hours=1)
    memory.forget(*there[:3])

    seen = [one for page in follow(memory, lambda _: None, as_of=then) for one in page]
    assert sorted(seen) == sorted(there)


# --- Match reasons ---------------------------------------------------------------------------


def reasons(memory: Memory, text: str, **options: Any) -> list[str]:
    told: list[str] = hits(memory, text, **options)[0]["match_reasons"]
    return told


def test_every_reason_of_the_page_is_given(memory: Memory) -> None:
    """Each when its condition holds, the protected caveat included, which never fired before."""
    memory.remember("Priya keeps the deploy key in vault B")
    assert reasons(memory, "key of the vault") == ["content_match_fts"]
    assert reasons(memory, "deploy key") == ["content_match_dual", "content_substring"]
    assert reasons(memory, "dpeloy vualt") == ["content_substring"]
    assert reasons(memory, "Priya")[:2] == ["content_match_dual", "entity_name_match"]
    assert "entity_name_match" in reasons(memory, "key of the vault", entity="Priya")

    memory.remember("Never restart the importer by hand", layer="caveat", importance=0.8)
    assert reasons(memory, "restart importer") == [
        "content_match_fts", "high_importance", "caveat_protected"
    ]  # fmt: skip
    memory.remember("Backups run at four", importance=0.9)
    assert reasons(memory, "backups at night")[-1] == "pinned"


def test_use_and_news_are_reasons(memory: Memory) -> None:
    """heat:warm, heat:hot, and entity_active from momentum 5."""
    one = memory.remember("Tomasz watches the queue").id
    use(memory, one, 4)
    assert "heat:warm" in reasons(memory, "queue")
    use(memory, one, 8)
    assert "heat:hot" in reasons(memory, "queue")
    assert "entity_active" not in reasons(memory, "queue")
    memory.remember_many([{"text": f"Tomasz saw alarm {n}", "importance": 0.8} for n in range(4)])
    assert "entity_active" in reasons(memory, "queue")


@each_row("profile", ["default", "siftcoder", "abmind", "memind-simple", "remind"])
def test_reasons_are_given_by_every_profile(profile: str, clock: FixedClock) -> None:
    """How it was found and what speaks for it, whatever a profile calls its channels."""
    with Memory.open(":memory:", embedder="encoder", clock=clock) as memory:
        memory.remember("Never restart the importer by hand", layer="caveat", importance=0.9)
        answer = memory.recall("who may restart the importer by hand?", profile=profile)
        told = recall_json(answer)

    (hit,) = [*told["items"], *told["insights"]]
    assert {"pinned", "caveat_protected"} < set(hit["match_reasons"])
    assert hit["match_reasons"][0] in ("content_match_fts", "content_substring", "meaning_match",
                                       "content_match_dual")  # fmt: skip


# --- Entities --------------------------------------------------------------------------------


def test_entities_are_listed_by_what_goes_on(memory: Memory, clock: FixedClock) -> None:
    """10 × momentum + 0.5 × memories − 2 × years since they last came up."""
    clock.now = NOW - timedelta(days=731)
    memory.remember("Ana wrote the first draft")
    clock.now = NOW - timedelta(days=400)
    memory.remember_many([f"Ben wrote draft {n}" for n in range(3)])
    memory.remember("Cleo wrote a draft")
    clock.now = NOW
    memory.remember("Dora wrote the last draft", layer="goal", importance=0.95)

    listed = memory.entities(kind="person")
    assert [one.name for one in listed] == ["Dora", "Ben", "Cleo", "Ana"]
    worth = [
        10 * one.momentum
        + 0.5 * one.mentions
        - 2 * (NOW - (one.last_seen_at or NOW)).total_seconds() / DAY / 365.25
        for one in listed
    ]
    assert worth == sorted(worth, reverse=True)
    assert (listed[0].layers, listed[0].pinned) == ((("goal", 1),), 1)
    assert [one.momentum for one in listed[1:]] == pytest.approx([2.0] * 3)


def test_listed_entities_are_filtered_and_paged(memory: Memory) -> None:
    """By kind, by how many memories they have, from an offset; 30 unless told."""
    memory.remember_many(
        [{"text": f"a talk, number {n}", "entities": ["Priya", f"Guest {n}"]} for n in range(40)]
    )
    assert len(memory.entities()) == 30
    every = memory.entities(limit=200)
    assert [*memory.entities(limit=7), *memory.entities(limit=200, offset=7)] == every
    assert [one.name for one in memory.entities(min_memories=2, limit=200)] == ["Priya"]
    assert memory.entities(kind="file") == []


def test_counts_forget_what_was_forgotten(memory: Memory) -> None:
    """Neither a layer nor a pin of a forgotten memory is counted."""
    kept = memory.remember("Priya leads the review", layer="goal").id
    gone = memory.remember("Priya owns the pager", layer="context", pinned=True).id
    (before,) = memory.entities(prefix="pri")
    memory.update(gone, pinned=False)
    memory.forget(gone)
    (after,) = memory.entities(prefix="pri")

    assert (before.mentions, before.layers, before.pinned) == (2, (("context", 1), ("goal", 1)), 1)
    assert (after.mentions, after.layers, after.pinned) == (1, (("goal", 1),), 0)
    assert memory.get(kept)


# --- The rest of the page ---------------------------------------------------------------------


def test_every_input_of_the_page_is_taken(memory: Memory) -> None:
    """query, entity_name, layer, band, max_tokens, limit, offset, mark_accessed."""
    one = memory.remember("Priya keeps the deploy key", layer="how").id
    answer = memory.recall(
        "deploy key", profile=PROFILE, entity="Priya", layer="tried", band="cold",
        max_tokens=500, k=20, offset=0, track=False,
    )  # fmt: skip

    assert [hit.item.id for hit in answer.hits] == [one]
    assert memory.get(one).recalls == 0
    memory.recall("deploy key", profile=PROFILE, track=True)
    assert memory.get(one).recalls == 1


def test_filters_hold_bands_as_a_tuple() -> None:
    """So that a Filters value compares and hashes like any other."""
    assert hash(Filters(bands=("hot",))) == hash(Filters(bands=("hot",)))
