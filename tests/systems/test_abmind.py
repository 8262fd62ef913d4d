"""abmind: the staged search of its page, its formulas at their edges, and none of its defects."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import NotFound, Refused
from bethink.model import (
    Candidate,
    Evidence,
    Filters,
    Item,
    Link,
    Node,
    Pool,
    Query,
    Recall,
    Situation,
    Step,
    replay,
    sort_by_score,
)
from bethink.ports import Embedder, Embedding
from bethink.retrieval.context import Context, Retriever
from bethink.retrieval.profile import load_profile
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES
from bethink.systems.abmind.stages import (
    Interference,
    Timelines,
    mean_interval_days,
    part_of_day,
    primary_entity,
)
from bethink.testing import FixedClock
from corpus import FOREIGN, NOTES, NOW, QUESTIONS, days_ago
from rows import each_row
from stage_parts import cand as numbered

SATURDAY = datetime(2026, 11, 14, 10, 0, tzinfo=UTC)


def item(item_id: str = "one", text: str = "the pump leaks", **fields: Any) -> Item:
    return Item(item_id, text, **{"stored_at": NOW, "source": "test", **fields})


def cand(score: float, *channels: str, **fields: Any) -> Candidate:
    """A candidate that these channels found."""
    seen = tuple(Evidence(f"channel.{name}", "seen", score, "", None, 1) for name in channels)
    return Candidate(item(**fields), score, (*seen, Evidence("fuse.x", "add", score)))


def context(memory: Memory, text: str = "pump", **fields: Any) -> Context:
    return Context(Query(text, NOW, **fields), memory.store, memory.embedder, notes=memory.notes)


def factor(memory: Memory, stage: Any, **fields: Any) -> float:
    """What a stage makes of a score of 1."""
    return stage((cand(1.0, "sf.porter", **fields),), context(memory))[0].score


def step(answer: Recall, name: str) -> Step:
    return next(one for one in answer.steps if one.name == name)


def ids(pool: Pool) -> list[str]:
    return [one.item.id for one in pool]


# --- The page's formula for Sf ------------------------------------------------------------


@each_row(
    ("use", "fields", "expected"),
    [
        ("recalled", {"recalls": 0}, 1.0),
        ("recalled", {"recalls": 3}, 1.3),
        ("relevance", {"relevance": 0.0}, 1.0),
        ("relevance", {"relevance": -2.0}, 1.0),
        ("relevance", {"relevance": 0.5}, 1.2),
        ("trust", {"trust": 0}, 0.5),
        ("trust", {"trust": 2}, 0.5 + 0.5 * 2 / 3),
        ("trust", {"trust": 3}, 1.0),
        ("credibility", {"credibility": 2}, 1.25),
        ("credibility", {"credibility": 3}, 1.0),
        ("tier", {"tier": "core"}, 1.3),
        ("tier", {"tier": "general"}, 1.0),
        ("tier", {"tier": "my own"}, 1.0),
        ("fading", {"occurred_at": days_ago(0)}, 1.0),
        ("fading", {"occurred_at": days_ago(-3)}, 1.0),
        ("fading", {"occurred_at": days_ago(73)}, 0.8),
        ("fading", {"occurred_at": days_ago(365)}, 0.3),
        ("fading", {"occurred_at": days_ago(4000)}, 0.3),
        ("fading", {"occurred_at": days_ago(73), "emotion": -5.0}, 0.8 * 1.5),
    ],
)
def test_each_factor_is_the_pages(
    filled: Memory, use: str, fields: dict[str, Any], expected: float
) -> None:
    """Neutral where a memory has nothing to say, and exact at the edges."""
    assert factor(filled, STAGES[use](), **fields) == pytest.approx(expected)


def test_feeling_is_added_by_its_logarithm_or_as_it_is(filled: Memory) -> None:
    """0.5 ln(1 + |e|) in the formula, 0.02 |e| as a tie-breaker, of either sign."""
    in_formula = STAGES["emotion"](weight=0.5, curve="log")
    tie_breaker = STAGES["emotion"]()

    for emotion in (-5.0, -1.0, 0.0, 2.5, 5.0):
        strength = abs(emotion)
        assert factor(filled, in_formula, emotion=emotion) == 1 + 0.5 * math.log(1 + strength)
        assert factor(filled, tie_breaker, emotion=emotion) == 1 + 0.02 * strength


def test_the_whole_formula_in_its_order(memory: Memory) -> None:
    """(BM25 + feeling) × use × judgement × trust × credibility × tier × age, read off the
    explanation of a hit."""
    stored = memory.remember(
        "The pump in cellar nine leaks",
        emotion=-4,
        credibility=1,
        trust=3,
        occurred_at=days_ago(73),
    )
    for _ in range(2):
        memory.recall("pump", track=True)
    memory.boost(stored.id)
    memory.remember("Something else entirely")

    hit = memory.recall("which pump leaks?", profile="abmind").hits[0]

    told = [(one.by, one.op) for one in hit.evidence if one.op != "seen"]
    formula = ["scale", "sf.emotion", "recalled", "relevance", "credibility", "tier", "fading"]
    assert [by for by, _ in told][1:8] == formula
    values = {one.by: one.value for one in hit.evidence if one.op != "seen"}
    assert values["sf.emotion"] == pytest.approx(0.5 * math.log(5))
    assert values["recalled"] == pytest.approx(1.2)
    assert values["relevance"] == 1.2
    assert values["credibility"] == 1.25
    assert values["tier"] == 1.3
    assert values["fading"] == pytest.approx(0.8 * 1.4)
    assert values["scale"] > 1.0


def test_only_what_the_words_found_is_scored_by_the_formula(filled: Memory) -> None:
    """A cosine is no BM25: what only Se found keeps its own score."""
    pool = (cand(0.9, "se", item_id="a", trust=0), cand(0.8, "sf.trigram", item_id="b", trust=0))

    judged = STAGES["trust"](channels=("sf",))(pool, context(filled))

    assert {one.item.id: one.score for one in judged} == {"a": 0.9, "b": 0.4}


# --- Order, short circuit, dedupe ---------------------------------------------------------


def names_of(answer: Recall, status: str) -> list[str]:
    return [
        one.name.removeprefix("channel.")
        for one in answer.steps
        if one.name.startswith("channel.") and one.status == status
    ]


def test_stages_run_in_the_pages_order(filled: Memory) -> None:
    """Sf, Se, Ss, S6, S8; with too few hits all of them are asked."""
    answer = filled.recall("where is the deploy key?", profile="abmind", k=10)

    assert names_of(answer, "ok") == [
        *("sf.porter", "sf.trigram", "sf.original", "se", "ss", "s6", "s8")
    ]


def test_a_filled_limit_ends_the_search_by_words(filled: Memory) -> None:
    """Se and Ss are skipped with the reason; S6 and S8 look elsewhere and always run."""
    answer = filled.recall("the webhook sender and the release train", profile="abmind", k=2)

    assert names_of(answer, "skipped") == ["sf.spelling", "sf.original", "se", "ss"]
    assert names_of(answer, "ok") == ["sf.porter", "sf.trigram", "s6", "s8"]
    assert step(answer, "channel.se").note == "sf already found 3; 2 are enough"


def test_a_later_page_needs_a_larger_limit(filled: Memory) -> None:
    """What is left out at the front counts as asked for."""
    answer = filled.recall(
        "the webhook sender and the release train", profile="abmind", k=2, offset=2
    )

    assert step(answer, "channel.se").status == "ok"


def test_priority_gives_the_first_stages_score_and_all_evidence(filled: Memory) -> None:
    """Of one stage's channels the better counts; later stages only confirm."""
    names = ("sf.porter", "sf.trigram", "se", "s6")
    scores = {"sf.porter": 0.2, "sf.trigram": 0.4, "se": 0.9, "s6": 0.5}
    found: dict[Retriever, Pool] = {}
    for name in names:
        channel = RETRIEVERS["lexical"](name=name)
        reason = Evidence(f"channel.{name}", "add", scores[name], "", None, 1)
        found[channel] = (Candidate(item("both"), scores[name], (reason,)),)
        if name == "se":
            found[channel] += (Candidate(item("new"), 0.7, (reason._replace(value=0.7, rank=2),)),)

    fused = FUSIONS["priority"](order=("sf", "se", "s6"))(found, context(filled))

    assert [(one.item.id, one.score) for one in fused] == [("new", 0.7), ("both", 0.4)]
    assert [one.by for one in fused[1].evidence] == [
        *(f"channel.{name}" for name in names),
        "fuse.sf.trigram",
    ]


class SlowEmbedder:
    """An embedder that takes its time, and lets a test look on."""

    slow = True

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.begun, self.writer, self.done = (threading.Event() for _ in range(3))
        self.by: list[int] = []

    model = property(lambda self: self._inner.model)
    dim = property(lambda self: self._inner.dim)

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        return self._inner.embed(texts)

    def embed_query(self, text: str) -> Embedding:
        self.by.append(threading.get_ident())
        self.begun.set()
        assert self.writer.wait(60)
        self.done.set()
        return self._inner.embed_query(text)

    def count_tokens(self, text: str) -> int:
        return self._inner.count_tokens(text)


@pytest.fixture
def slow(embedder: Embedder) -> Iterator[tuple[Memory, SlowEmbedder]]:
    model = SlowEmbedder(embedder)
    with Memory.open(":memory:", embedder=model, clock=FixedClock(NOW)) as opened:
        opened.remember_many(NOTES[:10])
        yield opened, model


class Waits:
    """A channel that is only content when the embedding is under way."""

    name, weight = "waits", 1.0

    def __init__(self, model: SlowEmbedder) -> None:
        self._model = model

    def __call__(self, ctx: Context) -> Pool:
        assert self._model.begun.wait(60), "nobody began to embed"
        self._model.writer.set()
        return ()


def test_the_question_is_embedded_while_the_words_are_searched(
    slow: tuple[Memory, SlowEmbedder],
) -> None:
    """In a thread of its own, begun before the first channel is asked, and only once."""
    memory, model = slow
    profile = load_profile("abmind")
    channels = (Waits(model), *profile.channels)

    answer = memory.recall("deploy key", profile=_with(profile, channels=channels))

    assert step(answer, "channel.se").status == "ok"
    assert len(model.by) == 1
    assert model.by[0] != threading.get_ident()


def _with(profile: Any, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(profile, **changes)


def test_an_embedding_nobody_needs_is_dropped(slow: tuple[Memory, SlowEmbedder]) -> None:
    """The answer does not wait for it when Sf filled the limit."""
    memory, model = slow

    answer = memory.recall("deploy key and tokens", profile="abmind", k=1)

    assert answer.hits
    assert step(answer, "channel.se").status == "skipped"
    assert not model.done.is_set()
    model.writer.set()


def test_an_embedding_that_fails_degrades_where_it_is_needed(embedder: Embedder) -> None:
    """The error of the early call is told by the channel that asked for it."""
    from bethink.errors import ModelError

    class Broken(SlowEmbedder):
        def embed_query(self, text: str) -> Embedding:
            raise ModelError("the server is on fire")

    with Memory.open(":memory:", embedder=Broken(embedder), clock=FixedClock(NOW)) as memory:
        memory.remember_many(NOTES[:5])
        answer = memory.recall("deploy key", profile="abmind")

    assert answer.hits
    assert ("channel.se", "the server is on fire") in answer.degraded


def test_a_quick_embedder_stays_in_line(filled: Memory) -> None:
    """No thread is started for a table that answers at once."""
    before = threading.active_count()
    ctx = context(filled, "deploy key")
    ctx.prefetch_embedding()

    assert threading.active_count() == before


# --- What each stage finds ----------------------------------------------------------------


@pytest.fixture(scope="module")
def tongues(embedder: Embedder) -> Iterator[Memory]:
    """Memories in several languages, some translated."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember_many(NOTES)
        opened.remember(
            "The landlord repairs the boiler on Monday",
            original="A főbérlő hétfőn javítja a kazánt",
        )
        opened.remember("Yesterday the lazy zebra ate the keyboard", tags=["Tastaturproblem"])
        yield opened


@each_row(
    ("asked", "begins"),
    [
        ("midleware tennant", "The auth-middleware"),
        ("promehteus", "Metrics are scraped"),
        ("the laxy zebar", "Yesterday the lazy"),
        ("lazz yebra", "Yesterday the lazy"),
        ("certificat mobil", "The mobile app"),
        ("thumbnailgenerator", "Priya found that image thumbnails"),
        ("kazánok", "The landlord"),
        ("föberlö", "The landlord"),
        ("tastaturprobleme", "Yesterday the lazy"),
        ("metrica cafe", "El equipo"),
        ("Rechnung", "Der Kunde"),
        ("東京", "支払い"),
    ],
)
def test_typos_swapped_keys_parts_and_other_languages_are_found(
    tongues: Memory, asked: str, begins: str
) -> None:
    """By words alone: meaning is not asked."""
    profile = load_profile("abmind").without("se").without("ss")

    answer = tongues.recall(asked, profile=profile)

    assert answer.hits, asked
    assert answer.hits[0].item.text.startswith(begins)


@each_row(
    ("asked", "inside"),
    [("Corp", "Corporation"), ("kube", "kubernetes"), ("haupt", "Hauptbahnhof"),
     ("ware", "Middleware"), ("oic", "invoices")],
)  # fmt: skip
def test_a_question_of_one_word_finds_what_holds_it(asked: str, inside: str) -> None:
    """However long the word is; without an embedder. A word among others needs more of it."""
    texts = (
        "Acme Corporation signed the contract", "We deploy with kubernetes on three nodes",
        "We meet at the Hauptbahnhof in Zurich", "Middleware checks the tokens",
        "He pays all invoices on Friday", "Anna bakes bread", "The garden needs water",
    )  # fmt: skip
    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember_many(texts)
        assert [inside in hit.item.text for hit in memory.recall(asked, profile="abmind").hits] == [
            True
        ]
        assert not memory.recall(f"{asked} xylophone brimstone", profile="abmind").hits


def test_se_has_the_pages_floor(filled: Memory) -> None:
    """Nothing at a cosine of a half or less, thirty at most."""
    se = next(one for one in load_profile("abmind").channels if one.name == "se")

    pool = se(context(filled, "who rotates the key of the vault?"))

    assert all(one.score > 0.5 for one in pool)
    assert (se.depth, se.min_cosine, se.weighted) == (30, 0.5, False)


def test_ss_finds_reworded_memories_and_no_strangers(filled: Memory) -> None:
    """At least 0.65, five at most, and silence for foreign questions."""
    filled.recall("JWT tokens", profile="abmind")  # brings its index up to date
    ss = next(one for one in load_profile("abmind").channels if one.name == "ss")

    found = ss(context(filled, "cached in the gateway for five minutes: JWT tokens"))

    assert found[0].item.text.startswith("JWT tokens")
    assert all(one.score >= 0.65 for one in found)
    assert (ss.depth, ss.min_likeness) == (5, 0.65)
    for question in FOREIGN:
        assert ss(context(filled, question)) == ()


def test_foreign_questions_get_next_to_nothing(filled: Memory) -> None:
    """No stage calls to mind what has no word, no piece and no meaning in common."""
    for question in FOREIGN:
        assert not filled.recall(question, profile="abmind").hits, question


def test_the_right_memory_comes_first(filled: Memory) -> None:
    """Of every question of the corpus that its words can answer."""
    for question, begins in QUESTIONS:
        best = [hit.item.text for hit in filled.recall(question, profile="abmind").hits[:3]]
        if not begins.startswith("Yes, it was"):
            assert any(text.startswith(begins) for text in best), question


# --- S6: notes ----------------------------------------------------------------------------


@pytest.fixture
def noted(embedder: Embedder, tmp_path: Path) -> Iterator[Memory]:
    """A memory with a folder of notes."""
    root = tmp_path / "notes"
    for kind in ("daily", "weekly", "quarterly"):
        (root / kind).mkdir(parents=True)
    (root / "daily" / "daily_2026-11-14.md").write_text(
        "# Pump\n\nWe migrated the archive to SQLite.\n\nLunch was good.\n\nWater was pumped out."
    )
    (root / "weekly" / "weekly_2026-W45.md").write_text("The archive was still on paper.")
    (root / "quarterly" / "quarterly_2026-Q3.md").write_text(
        "# Pump\n\nwe migrated the archive to SQLite"
    )
    with Memory.open(
        ":memory:",
        embedder=embedder,
        clock=FixedClock(SATURDAY),
        settings=Settings(notes_dir=root),
    ) as opened:
        opened.remember("Lighthouse keepers count boats")
        yield opened


def notes_of(answer: Recall) -> list[str]:
    return [one.item.id for one in step(answer, "channel.s6").pool]


def test_notes_answer_by_the_paragraph(noted: Memory) -> None:
    """Only those that hold a telling word, each 0.5, the same content once."""
    answer = noted.recall("where is the archive?", profile="abmind")

    assert notes_of(answer) == ["note:daily_2026-11-14#1", "note:weekly_2026-W45#1"]
    pool = step(answer, "channel.s6").pool
    assert {one.score for one in pool} == {0.5}
    assert pool[0].item.text == "# Pump\nWe migrated the archive to SQLite."
    assert pool[0].evidence[-1].why == "contains archive"


@each_row(
    ("asked", "where", "found"),
    [
        ("archive", {"since": "2026-11-13"}, ["note:daily_2026-11-14#1"]),
        (
            "archive",
            {"until": "2026-11-09"},
            ["note:quarterly_2026-Q3#1", "note:weekly_2026-W45#1"],
        ),
        ("archive last week", {}, ["note:weekly_2026-W45#1"]),
        ("archive last week", {"since": "2026-11-14"}, ["note:daily_2026-11-14#1"]),
        ("archive", {"since": "2026-11-04", "until": "2026-11-05"}, ["note:weekly_2026-W45#1"]),
        ("archive", {"kind": "decision"}, []),
        ("archive", {"level": "item"}, []),
        ("archive", {"max_classification": 0}, []),
        ("archive", {"min_trust": 2}, []),
        ("archive", {"topic": "ops"}, []),
        ("archive", {"band": "cold"}, []),
        ("archive", {"as_of": "2026-11-10"}, []),
    ],
)
def test_every_filter_holds_for_notes(
    noted: Memory, asked: str, where: Mapping[str, Any], found: list[str]
) -> None:
    """The range that is asked for wins over the question's; notes written later than the
    moment asked about were not known then."""
    assert sorted(notes_of(noted.recall(asked, profile="abmind", **where))) == found


def test_the_newest_ten_paragraphs_are_enough(noted: Memory, tmp_path: Path) -> None:
    """Filters come before that cut, too."""
    for number in range(1, 14):
        file = tmp_path / "notes" / "daily" / f"daily_2026-10-{number:02d}.md"
        file.write_text(f"The archive has {number} shelves")

    answer = noted.recall("archive shelves", profile="abmind")
    early = noted.recall("archive shelves", profile="abmind", until="2026-10-05")

    assert len(notes_of(answer)) == 10
    assert "note:daily_2026-10-13#1" in notes_of(answer)
    assert "note:daily_2026-10-01#1" not in notes_of(answer)
    assert notes_of(early)[:4] == [f"note:daily_2026-10-0{n}#1" for n in range(1, 5)]


def test_a_note_can_be_looked_at_but_not_changed(noted: Memory) -> None:
    """Shown, followed through the walk, counted by nobody, forgotten by no command."""
    wanted = "note:daily_2026-11-14#1"

    answer = noted.recall("archive", profile="abmind", track=True)
    why = noted.why_not("note:daily_2026-11-14#2", "archive", profile="abmind")

    assert wanted in ids(answer.hits)
    assert noted.get(wanted).source == "notes/daily_2026-11-14.md"
    assert "archive" in noted.explain("archive", wanted, profile="abmind")
    assert why.stage == "channels"
    assert noted.store.activity.usage([wanted], SATURDAY) == {}
    for change in (noted.forget, noted.update, noted.boost, noted.history, noted.timeline):
        with pytest.raises(NotFound):
            change(wanted)
    with pytest.raises(NotFound):
        noted.get("note:daily_2026-11-14#99")


def test_notes_and_edges_answer_lawfully(noted: Memory, people: Memory) -> None:
    """Best first, unique, ranked from 1, each score its own single reason, twice the same."""
    for memory, channel, asked in (
        (noted, RETRIEVERS["notes"](), "archive paper lunch pump"),
        (people, RETRIEVERS["edges"](), "Alice, Bob, Carol and Dave"),
    ):
        ctx = Context(Query(asked, SATURDAY), memory.store, notes=memory.notes)
        again = Context(Query(asked, SATURDAY), memory.store, notes=memory.notes)
        pool = channel(ctx)

        assert len(pool) > 1
        assert pool == sort_by_score(pool) == channel(again)
        assert len(set(ids(pool))) == len(pool)
        assert [one.evidence[-1].rank for one in pool] == list(range(1, len(pool) + 1))
        assert all(replay(one.evidence) == one.score for one in pool)


def test_a_broken_note_is_named_and_the_others_answer(noted: Memory, tmp_path: Path) -> None:
    """In the trace, with the reason."""
    (tmp_path / "notes" / "daily" / "daily_2026-11-13.md").write_bytes(b"archive \xff")

    answer = noted.recall("archive", profile="abmind")

    assert notes_of(answer)
    assert "daily_2026-11-13.md is not UTF-8" in step(answer, "channel.s6").note


# --- S8: edges ----------------------------------------------------------------------------


@pytest.fixture
def people(embedder: Embedder) -> Iterator[Memory]:
    """Alice, Bob, Carol and Dave, and what connects them."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        first = opened.remember("Alice pairs with Bob on the ferry planner", id="pairing-note-0001")
        opened.remember("Bob reports to Carol", id="reports-note-0001")
        opened.remember("Dave once met Alice and Erin", id="meeting-note-0001",
                        entities=["person:Erin"])  # fmt: skip
        opened.remember("The vault code is known to Alice and Frank", id="secret-note-00001",
                        classification=3)  # fmt: skip
        opened.store.graph.add_links(
            [
                edge("alice", "works_with", "bob", context=first.id),
                edge("bob", "mentors", "carol"),
                edge("alice", "shares_code_with", "frank", context="secret-note-00001"),
            ]
        )
        yield opened


def edge(src: str, kind: str, dst: str, context: str | None = None) -> Link:
    ends = (Node("entity", f"person:{src}"), Node("entity", f"person:{dst}"))
    return Link(*ends, kind, context=context, created_at=days_ago(1))


def edges_of(memory: Memory, text: str, **options: Any) -> dict[str, tuple[float, str]]:
    pool = step(memory.recall(text, profile="abmind", **options), "channel.s8").pool
    return {one.item.id: (one.score, one.evidence[-1].why) for one in pool}


def test_an_edge_leads_to_the_memory_it_came_from(people: Memory) -> None:
    """One hop scores 0.6 and is told in words."""
    found = edges_of(people, "what is between Alice and Bob?")

    assert found == {"pairing-note-0001": (0.6, "Alice —[works_with]→ Bob")}


def test_an_edge_from_nowhere_is_told_in_its_own_words(people: Memory) -> None:
    """As an item that can be looked at by its id."""
    found = edges_of(people, "Bob and Carol")
    item_id = "edge:person:bob|mentors|person:carol"

    assert found[item_id] == (0.6, "Bob —[mentors]→ Carol")
    assert people.get(item_id).text == "bob —[mentors]→ carol"
    assert people.get(item_id).kind == "relation"
    with pytest.raises(NotFound):
        people.get("edge:person:bob|likes|person:carol")
    people.recall("Bob and Carol", profile="abmind", track=True)
    assert people.store.activity.usage([item_id], NOW) == {}
    assert people.why_not(item_id, "Bob and Carol", profile="abmind").returned


def test_edges_are_made_and_taken_back_by_name(people: Memory) -> None:
    """Any word may be the relation; whoever no memory speaks of cannot be linked."""
    made = people.link("person:Dave", "owes", "person:erin", context="meeting-note-0001")

    assert (made.src.id, made.type, made.dst.id) == ("person:dave", "owes", "person:erin")
    assert edges_of(people, "Dave and Erin")["meeting-note-0001"] == (0.6, "Dave —[owes]→ Erin")
    assert [link.type for link in people.links("person:dave")] == ["owes"]
    people.unlink("person:dave", "owes", "person:erin")
    assert people.links("person:dave") == []
    for ends in (
        ("person:dave", "owes", "person:nobody"),
        ("person:dave", "owes", "meeting-note-0001"),
        ("person:dave", "two words", "person:erin"),
        ("person:dave", "mentions", "person:erin"),
        ("person:dave", "likes", "person:dave"),
    ):
        with pytest.raises((Refused, NotFound)):
            people.link(*ends)


def test_an_erased_memory_takes_its_edges_along(people: Memory) -> None:
    """What it said about others is gone with it, and the journal names nobody."""
    people.link("person:dave", "owes", "person:alice", context="meeting-note-0001")

    people.forget("pairing-note-0001", erase=True)

    assert "works_with" not in [link.type for link in people.links("person:alice")]
    assert not any("person:" in f"{one.item} {one.detail}" for one in people.events(limit=1000))


def test_words_come_before_the_edges_of_a_name(people: Memory) -> None:
    """Whoever is named in every question has edges in every answer: what the words found
    stands above them, even where it holds half of the question."""
    stored = people.remember("Alice keeps the spare badge in the blue drawer")

    hits = people.recall("where does Alice keep her spare parking badge?", profile="abmind").hits

    assert hits[0].item.id == stored.id
    assert all(
        one.score < hits[0].score for one in hits if one.reason("channel.s8") and one is not hits[0]
    )


def test_two_hops_connect_what_one_does_not(people: Memory) -> None:
    """0.5, by the memory behind a part of the way."""
    found = edges_of(people, "how does Alice know Carol?")

    assert found["pairing-note-0001"] == (
        0.5,
        "Alice —[works_with]→ bob —[reports_to]→ Carol",
    )


def test_being_mentioned_together_is_an_edge_where_there_is_none(people: Memory) -> None:
    """Only where no typed edge connects the two."""
    found = edges_of(people, "Dave and Erin")

    assert found["meeting-note-0001"] == (0.6, "Dave —[mentioned with]→ Erin")


def test_one_entity_has_its_newest_edges(people: Memory) -> None:
    """Ten of each, of three entities at most."""
    people.store.graph.add_links([edge("bob", f"tie{n:02d}", "carol") for n in range(30)])

    assert len(edges_of(people, "Bob", k=50)) == 10
    assert edges_of(people, "the pump") == {}


def test_an_edge_of_a_secret_is_not_told(people: Memory) -> None:
    """Not even in its own words; with clearance it is."""
    assert edges_of(people, "Alice and Frank") == {}
    allowed = edges_of(people, "Alice and Frank", max_classification=3)
    assert list(allowed) == ["secret-note-00001"]


def test_edges_keep_the_filters_and_the_time(people: Memory) -> None:
    """An edge has no topic and was not known before it was made."""
    assert edges_of(people, "Bob and Carol", topic="work") == {}
    assert edges_of(people, "Alice and Bob", band="hot") == {}
    assert edges_of(people, "Bob and Carol", as_of=days_ago(3)) == {}


# --- After the search ---------------------------------------------------------------------


def test_only_unconfirmed_hits_are_halved(filled: Memory) -> None:
    """Against everything Se found: what both found keeps its score (the original halves it)."""
    pool = (
        cand(0.8, "sf.porter", "se", item_id="both"),
        cand(0.6, "sf.trigram", item_id="words"),
        cand(0.55, "se", item_id="meaning"),
        cand(0.5, "s6", item_id="note"),
    )
    halve = STAGES["unconfirmed"](of=("sf",), by="se")

    judged = halve(pool, context(filled))
    alone = halve(pool[1:2], context(filled))

    assert {one.item.id: one.score for one in judged} == {
        "both": 0.8, "words": 0.3, "meaning": 0.55, "note": 0.5,
    }  # fmt: skip
    assert alone == pool[1:2], "Se found nothing at all: nobody can be confirmed"


@each_row(
    ("hour", "part"),
    [(0, "night"), (5, "night"), (6, "morning"), (11, "morning"), (12, "afternoon"),
     (17, "afternoon"), (18, "evening"), (22, "evening"), (23, "night")],
)  # fmt: skip
def test_the_parts_of_a_day(hour: int, part: str) -> None:
    """Six, twelve, eighteen and twenty-three o'clock begin one."""
    assert part_of_day(hour) == part


@each_row(
    ("around", "fields", "bonus"),
    [
        # NOW is a Monday, nine in the morning.
        (Situation(), {"occurred_at": NOW - timedelta(days=7)}, 0.02 + 0.015),
        (Situation(), {"occurred_at": NOW - timedelta(days=6, hours=9)}, 0.0075),
        (Situation(), {"occurred_at": NOW - timedelta(days=1)}, 0.02),
        (Situation(weekday=5), {"occurred_at": NOW - timedelta(days=1)}, 0.02 + 0.0075),
        (Situation(hour=20), {"occurred_at": NOW - timedelta(days=7)}, 0.015),
        (Situation(topic="auth"), {"occurred_at": NOW - timedelta(days=1, hours=6), "topic": "auth"},
         0.03),
        (Situation(topic="general"), {"occurred_at": NOW - timedelta(days=1, hours=6),
                                      "topic": "general"}, 0.0),
        (Situation(topic="auth"), {"occurred_at": NOW - timedelta(days=1, hours=6)}, 0.0),
    ],
)  # fmt: skip
def test_the_moment_of_a_question_leans_a_little(
    filled: Memory, around: Situation, fields: dict[str, Any], bonus: float
) -> None:
    """Part of the day 0.02, weekday 0.015 (half for the same kind of day), topic 0.03."""
    ctx = context(filled, context=around)

    judged = STAGES["moment"]()((cand(1.0, "sf", **fields),), ctx)[0]

    assert judged.score == pytest.approx(1.0 + bonus)


def test_the_caller_may_say_what_is_going_on(filled: Memory) -> None:
    """By number or name; anything else is refused by name."""
    answer = filled.recall(
        "JWT tokens", profile="abmind", context={"hour": 21, "weekday": "Sunday", "topic": "auth"}
    )

    assert answer.query.context == Situation(21, 6, "auth")
    assert any(one.why == "topic auth" for one in answer.hits[0].evidence)
    for bad in ({"hour": 24}, {"weekday": "someday"}, {"moon": 1}, {"hour": True}, {"topic": 5}):
        with pytest.raises(Refused):
            filled.recall("JWT tokens", context=bad)


@each_row(
    ("days", "factor_"),
    [((0,), 1.0), ((0, 0.99), 1.0), ((0, 1), 1.15), ((0, 6.9), 1.15), ((0, 7), 1.3),
     ((0, 1, 13), 1.15), ((0, 1, 14), 1.3)],
)  # fmt: skip
def test_spaced_recalls_strengthen(memory: Memory, days: tuple[float, ...], factor_: float) -> None:
    """By the mean interval; one recall has none."""
    stored = memory.remember("The pump in cellar nine leaks").id
    for day in days:
        memory.store.activity.note_use([stored], days_ago(30 - day))
    one = (Candidate(memory.get(stored), 1.0, (Evidence("x", "add", 1.0),)),)

    assert STAGES["spacing"]()(one, context(memory))[0].score == factor_


def test_intervals_do_not_depend_on_the_order_of_stamps() -> None:
    """A clock that went back makes no negative interval."""
    assert mean_interval_days((days_ago(1), days_ago(3), days_ago(5))) == 2.0
    assert mean_interval_days((NOW,)) is None


def test_diversity_starts_from_the_best_after_all_boosts(filled: Memory) -> None:
    """λ × score − (1 − λ) × Jaccard, the page's numbers (the original starts from the first
    of the merged list, whatever its score)."""
    pool = (
        cand(0.9, "se", item_id="a", text="the red pump leaks"),
        cand(0.8, "sf", item_id="b", text="the red pump leaks badly"),
        cand(0.6, "sf", item_id="c", text="boats are counted"),
    )

    judged = STAGES["mmr"](scaled=False, top=100)(pool, context(filled))

    assert ids(judged) == ["a", "c", "b"]
    assert [one.score for one in judged] == pytest.approx([0.63, 0.42, 0.56 - 0.3 * 0.8])


# --- Filters, tracking, enrichment --------------------------------------------------------


@each_row(
    "where",
    [{"topic": "auth"}, {"tier": "core"}, {"max_classification": 0}, {"since": "2026-02-20"},
     {"until": "2026-02-01"}, {"kind": "event"}, {"min_trust": 3}],
)  # fmt: skip
def test_filters_hold_on_every_stage(filled: Memory, where: dict[str, Any]) -> None:
    """No stage lets a memory through that the filters keep out, and none cuts before them."""
    from bethink.ports import Scope
    from bethink.retrieval.query_builder import make_filters
    from bethink.retrieval.scope import rejection_reason

    answer = filled.recall("the tokens of the release and of Priya", profile="abmind", **where)
    judged = Scope(make_filters(where, NOW), NOW)

    for one in answer.steps:
        if one.name.startswith("channel."):
            assert all(rejection_reason(found.item, judged) is None for found in one.pool)


def test_expired_memories_stay_out_unless_asked_for(memory: Memory) -> None:
    """valid_to in the past, and include_expired."""
    memory.remember("The pump warranty runs", valid_to=days_ago(1))

    assert not memory.recall("pump warranty", profile="abmind").hits
    assert memory.recall("pump warranty", profile="abmind", include_expired=True).hits


def test_secrets_never_come_by_an_ordinary_recall(filled: Memory) -> None:
    """Classification 3 is above every ordinary ceiling."""
    answer = filled.recall("salary bands of the people team", profile="abmind")

    assert not any("Salary" in found.item.text for one in answer.steps for found in one.pool)


def test_only_what_was_returned_is_tracked(memory: Memory) -> None:
    """And only the last twenty times are kept (the original marks all that any stage found)."""
    memory.remember_many([f"pump number {n} leaks" for n in range(5)])

    answer = memory.recall("pump", profile="abmind", k=2, track=True)
    for _ in range(25):
        memory.recall("pump", profile="abmind", k=2, track=True)
    untracked = memory.recall("pump", profile="abmind", k=2, track=False)

    everything = [one.id for one in memory.browse()]
    usage = memory.store.activity.usage(everything, NOW)
    assert set(usage) == set(ids(answer.hits)) == set(ids(untracked.hits))
    assert all(len(one.stamps) == 20 and one.recalls == 26 for one in usage.values())


def test_timelines_tell_how_a_subject_went_on(filled: Memory) -> None:
    """Two of a topic about the same entity; three across topics; in the order of time."""
    hits = tuple(
        cand(
            0.5, "sf", item_id=key, text=text, topic=topic, occurred_at=days_ago(age), emotion=felt
        )
        for key, text, topic, age, felt in (
            ("new", "Priya fixed the worker", "media", 1, 2.0),
            ("old", "Priya found the leak", "media", 9, -3.0),
            ("other", "Priya is on call", "team", 5, 0.0),
            ("alone", "Tomasz is on call", "team", 5, 0.0),
        )
    )

    lines = ASSEMBLERS["timelines"]()(hits, context(filled)).timelines

    assert [(one.subject, one.items) for one in lines] == [
        ("priya in media (emotion -3 → +2)", ("old", "new")),
        ("priya across media, team (emotion -3 → +0 → +2)", ("old", "other", "new")),
    ]
    assert not ASSEMBLERS["timelines"]()(hits[2:], context(filled)).timelines


def test_the_primary_entity_is_the_first_one_named() -> None:
    """A reference, a known entity, capitalised words, or none."""
    assert primary_entity(item(text="ping @ana.k about Bob")) == "ana.k"
    assert primary_entity(item(text="about Bob", entities=("person:carol",))) == "carol"
    assert primary_entity(item(text="then Bob Hope came")) == "bob hope"
    assert primary_entity(item(text="nobody at all")) is None


def test_interfering_hits_are_told(memory: Memory) -> None:
    """Nearly the same words in one topic, but not the same text: both are named."""
    kept = "Logs of the gateway are kept for thirty days"
    one = memory.remember(kept, topic="ops", level="item").id
    other = memory.remember(kept.replace("thirty", "ninety"), topic="ops").id
    memory.remember("The gateway is painted blue", topic="ops")
    memory.remember(kept.replace("thirty", "sixty"), topic="law")

    warnings = memory.recall("how long are gateway logs kept?", profile="abmind").warnings

    about = [told for told in warnings if "similar but different texts" in told]
    assert len(about) == 1
    assert one in about[0]
    assert other in about[0]


# --- Judging and tiers --------------------------------------------------------------------


def test_relevance_is_judged_by_steps_within_ten(memory: Memory) -> None:
    """Each judgement is a revision; the text, the links and the tier stay."""
    stored = memory.remember("The pump in cellar nine leaks", emotion=5, topic="ops").id

    once = memory.boost(stored)
    for _ in range(12):
        memory.boost(stored)
    top = memory.get(stored)
    down = memory.demote(stored, by=25)

    assert (once.relevance, top.relevance, down.relevance) == (1.0, 10.0, -10.0)
    assert (down.text, down.topic, down.tier) == (once.text, "ops", "core")
    assert top.rev == 11, "what changes nothing is no revision"
    with pytest.raises(Refused):
        memory.boost(stored, math.nan)
    memory.forget(stored)
    with pytest.raises(Refused):
        memory.boost(stored)


@each_row(
    ("fields", "tier"),
    [({"emotion": 3.9}, "general"), ({"emotion": 4}, "core"), ({"emotion": -5}, "core"),
     ({"emotion": 5, "tier": "general"}, "general"), ({}, "general")],
)  # fmt: skip
def test_strong_feeling_makes_a_core_memory(
    memory: Memory, fields: dict[str, Any], tier: str
) -> None:
    """At four and more of either sign, unless somebody said otherwise."""
    stored = memory.remember("The pump in cellar nine leaks", **fields).id

    assert memory.get(stored).tier == tier
    assert memory.recall("pump", profile="abmind", tier=tier).hits


def test_a_number_that_cannot_be_is_refused_on_loading() -> None:
    """Fading over no days would divide by nothing."""
    from bethink.errors import BadProfile
    from bethink.retrieval.profile import parse_profile

    text = '[[channels]]\nuse = "lexical"\n[[adjust]]\nuse = "fading"\ndays = 0'
    with pytest.raises(BadProfile, match="must be above 0"):
        parse_profile(text, "mine", "mine.toml")


def test_the_profile_is_what_the_page_says() -> None:
    """Its numbers in one place."""
    profile = load_profile("abmind")
    stages = {one.name: one for one in (*profile.adjust, *profile.diversify)}

    assert [one.name for one in profile.channels] == [
        *("sf.porter", "sf.trigram", "sf.spelling", "sf.original", "se", "ss", "s6", "s8")
    ]
    assert profile.fuse == FUSIONS["priority"](order=("sf", "se", "ss", "s6", "s8"))
    assert stages["fading"] == STAGES["fading"](channels=("sf",))
    assert stages["unconfirmed"].factor == 0.5
    assert stages["spacing"] == STAGES["spacing"]()
    assert stages["mmr"].relevance == 0.7
    assert profile.budget.k == 10
    assert not profile.gate
    assert Filters().max_classification == 2


def test_mmr_starts_from_the_best_and_names_the_twin(memory: Memory) -> None:
    """The likeness that costs a place says whose it is."""
    pool = (
        numbered(1, 1.0, "the deploy key is in vault B"),
        numbered(2, 0.95, "the deploy key is in vault B now"),
        numbered(3, 0.9, "releases leave on tuesdays"),
    )

    out = STAGES["mmr"]()(pool, context(memory))

    assert [c.item.id for c in out] == ["i001", "i003", "i002"]
    assert out[2].evidence[-1].via == "i001"


def test_an_edge_is_no_second_memory() -> None:
    """It repeats the memory that states it: no timeline lists it, and it warns of nothing."""
    stated = Item("a1", "Alice works with Bob", NOW, "user", entities=("person:alice",))
    edge = stated._replace(
        id="edge:person:alice|works_with|person:bob", text="alice works with bob"
    )
    later = stated._replace(id="a2", text="Alice left the harbour office in May")
    hits = tuple(Candidate(item, 1.0, ()) for item in (stated, edge, later))
    ctx: Any = None  # neither looks at it

    timelines = Timelines()(hits, ctx).timelines

    assert Interference()(hits, ctx).warnings == ()
    assert {item for line in timelines for item in line.items} == {"a1", "a2"}


def test_abminds_own_notes_are_found_without_a_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In ~/.abmind/memory/consolidation; they are read, and never written."""
    folder = tmp_path / ".abmind" / "memory" / "consolidation" / "daily"
    folder.mkdir(parents=True)
    (folder / "daily_2026-03-01.md").write_text(
        "The ferry was moved to pier 4.\n", encoding="utf-8"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = Settings(data_dir=tmp_path / "data")

    with Memory.open("own", embedder="none", settings=settings) as memory:
        memory.remember("The ferry is white")
        answer = memory.recall("which pier has the ferry?", profile="abmind")
        memory.maintain("notes")

    assert "The ferry was moved to pier 4." in [hit.item.text for hit in answer.hits]
    assert [path.name for path in folder.parent.rglob("*.md")] == ["daily_2026-03-01.md"]
