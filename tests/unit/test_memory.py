"""The facade: everything a program does with a memory, through the one object it holds."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import apsw
import pytest

from bethink import Draft, Filters, Memory
from bethink.config.settings import Origin, Settings
from bethink.errors import (
    BadText,
    Conflict,
    NotFound,
    Refused,
    SomeRefused,
    StoreBusy,
    StoreError,
)
from bethink.model import Item, Recall, Remembered
from bethink.models.embed.hashing import HashEmbedder
from bethink.ports import Embedder, Store
from bethink.render.wire import recall_json
from bethink.retrieval.engine import update_indexes
from bethink.retrieval.profile import load_profile
from bethink.retrieval.stages.assemble import Budget, token_cost
from bethink.retrieval.stages.rerank import Rerank
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock
from corpus import CONVERSATION, FOREIGN, NOTES, NOW, QUESTIONS, days_ago
from fallible import with_methods
from rows import each_row

KEY = "The deploy key lives in vault B"
ROTATE = "Rotate the deploy key every quarter"
ASKED = "deploy key"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def dated(embedder: Embedder, clock: FixedClock) -> Iterator[Memory]:
    """An empty memory whose time the test moves."""
    with Memory.open(":memory:", embedder=embedder, clock=clock) as opened:
        yield opened


@pytest.fixture
def plain(clock: FixedClock) -> Iterator[Memory]:
    """An empty memory that knows words alone."""
    with Memory.open(":memory:", embedder="none", clock=clock) as opened:
        yield opened


def texts(answer: Recall) -> list[str]:
    return [hit.item.text for hit in answer.hits]


def ids(answer: Recall) -> list[str]:
    return [hit.item.id for hit in answer.hits]


# --- Opening ------------------------------------------------------------------------------


def test_a_file_outlives_the_object(tmp_path: Path) -> None:
    """What one object stored in a file another finds there; the file names the space."""
    with Memory.open(path=tmp_path / "notes.db", embedder="none") as first:
        stored = first.remember(KEY)
    with Memory.open(path=str(tmp_path / "notes.db"), embedder="none") as second:
        assert second.get(stored.id).text == KEY
        assert second.stats()["space"] == "notes"


def test_spaces_know_nothing_of_each_other(tmp_path: Path) -> None:
    """A space is a file of its own under the data folder."""
    settings = Settings(data_dir=tmp_path)
    with (
        Memory.open("work", settings=settings, embedder="none") as work,
        Memory.open("home", settings=settings, embedder="none") as home,
    ):
        work.remember(KEY)

        assert texts(work.recall(ASKED)) == [KEY]
        assert home.recall(ASKED).status == "nothing_stored"
    assert sorted(path.name for path in (tmp_path / "spaces").glob("*.db")) == [
        "home.db",
        "work.db",
    ]


def test_a_project_has_a_memory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name it is found from the working directory, the way git finds its root."""
    deep = tmp_path / "shop" / "src" / "checkout"
    deep.mkdir(parents=True)
    (tmp_path / "shop" / ".git").mkdir()
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BETHINK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("BETHINK_SPACE", raising=False)
    monkeypatch.chdir(tmp_path / "shop")
    with Memory.open(embedder="none") as memory:
        memory.remember(KEY)

    monkeypatch.chdir(deep)
    with Memory.open(embedder="none") as memory:
        assert memory.stats()["space"].startswith("shop-")
        assert texts(memory.recall(ASKED)) == [KEY]


def test_memory_only_lives_as_long_as_the_object() -> None:
    """Two of them share nothing, and nothing can be asked after the end."""
    with (
        Memory.open(":memory:", embedder="none") as first,
        Memory.open(":memory:", embedder="none") as second,
    ):
        first.remember(KEY)
        assert second.recall(ASKED).status == "nothing_stored"
    first.close()
    with pytest.raises(StoreError):
        first.recall(ASKED)


# --- Writing ------------------------------------------------------------------------------


def test_a_draft_comes_in_three_shapes(plain: Memory) -> None:
    """Text alone, a mapping, or a Draft: all are stored alike."""
    told: list[tuple[int, int]] = []

    results = plain.remember_many(
        [
            KEY,
            {"text": "We chose PostgreSQL", "tags": ["db"]},
            Draft("Maria reviews", topic="team"),
        ],
        progress=lambda done, all_: told.append((done, all_)),
    )

    assert [result.status for result in results] == ["stored"] * 3
    assert plain.get(results[1].id).tags == ("db",)
    assert plain.get(results[2].id).topic == "team"
    assert told == [(3, 3)]


def test_one_bad_draft_stops_no_other(plain: Memory) -> None:
    """The others are stored, and the error says which were refused; alone it is the refusal."""
    drafts = [Draft(KEY), Draft("a\0b"), {"text": "x", "colour": "red"}, Draft(ROTATE)]

    with pytest.raises(SomeRefused, match=r"2 of 4 .* number 2: text .* number 3: ") as error:
        plain.remember_many(drafts)

    assert plain.store.admin.count() == 2
    assert sorted(error.value.refused) == [1, 2]
    results = error.value.results
    assert isinstance(results[1], BadText)
    assert isinstance(results[0], Remembered)
    assert plain.get(results[0].id).text == KEY
    assert pickle.loads(pickle.dumps(error.value)).refused.keys() == {1, 2}
    with pytest.raises(BadText, match=r"^text contains"):
        plain.remember_many(["a\0b"])
    with pytest.raises(SomeRefused, match="2 of 2 memories were refused, none is stored"):
        plain.remember_many(["a\0b", "\0"])


def test_an_error_in_a_later_batch_says_where_it_began(
    plain: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memories before it are stored, so that the caller can go on from there."""
    put, calls = plain.store.items.put, []

    def fail_later(*args: Any, **kwargs: Any) -> Any:
        calls.append(len(args[0]))
        if len(calls) > 1:
            raise StoreError("the disk is full; nothing was saved", remedy="free some space")
        return put(*args, **kwargs)

    monkeypatch.setattr(plain.store.items, "put", fail_later)
    with pytest.raises(
        StoreError, match=r"\(from number 501 on; those before it are stored\)"
    ) as e:
        plain.remember_many([f"note {number} of many" for number in range(502)])

    assert e.value.remedy == "free some space"
    assert calls == [500, 2]
    assert plain.store.admin.count() == 500


def test_each_draft_has_its_own_answer(plain: Memory) -> None:
    """A refusal takes the place of its result, and a missing parent is one."""
    drafts = [Draft(KEY), Draft("a\0b"), Draft("made", derives_from=("nobody",)), Draft(ROTATE)]

    good, bad, orphan, also_good = plain.remember_each(drafts)

    assert isinstance(bad, BadText)
    assert isinstance(orphan, Refused)
    assert not isinstance(good, Refused)
    assert not isinstance(also_good, Refused)
    assert plain.store.admin.count() == 2


def test_an_unknown_field_is_refused_by_name(plain: Memory) -> None:
    """And the fields there are are told."""
    with pytest.raises(Refused, match="'colour'") as error:
        plain.remember(KEY, colour="red")
    assert "topic" in error.value.remedy


def test_a_key_makes_a_retry_harmless(plain: Memory) -> None:
    """The same key again stores nothing new; for other content it is a conflict."""
    first = plain.remember(KEY, key="retry-1")
    again = plain.remember(KEY, key="retry-1")

    assert (first.status, again.status, again.id) == ("stored", "repeated", first.id)
    with pytest.raises(Conflict):
        plain.remember(ROTATE, key="retry-1")
    assert plain.store.admin.count() == 1


# --- Changing and forgetting --------------------------------------------------------------


def test_the_past_is_recalled_as_it_stood(dated: Memory, clock: FixedClock) -> None:
    """Before an update the old words are found, after it the new ones, both by one id."""
    stored = dated.remember(KEY)
    then = clock.now
    clock.forward(days=1)

    changed = dated.update(stored.id, text="The deploy key lives in safe C", topic="ops")

    assert (changed.id, changed.rev, changed.topic) == (stored.id, 2, "ops")
    assert texts(dated.recall(ASKED)) == ["The deploy key lives in safe C"]
    assert texts(dated.recall(ASKED, as_of=then)) == [KEY]
    assert texts(dated.recall(ASKED, as_of=(then - timedelta(days=1)).isoformat())) == []
    assert [(item.rev, item.text) for item in dated.history(stored.id)] == [
        (1, KEY),
        (2, "The deploy key lives in safe C"),
    ]


def test_the_past_is_judged_by_its_own_words(dated: Memory, clock: FixedClock) -> None:
    """What a memory became later changes neither its score nor its place back then."""
    stored = dated.remember_many([KEY, "Maria likes green tea"])[0].id
    then = clock.now
    before = dated.recall("where is the deploy key?", as_of=then)
    clock.forward(days=1)
    dated.update(stored, text="Key changes are for violins, deploy them with care")
    revised = dated.recall("where is the deploy key?", as_of=then)
    dated.forget(stored)
    forgotten = dated.recall("where is the deploy key?", as_of=then)

    seen = [(hit.item.text, hit.score) for hit in before.hits]
    assert seen[0][0] == KEY
    assert [(hit.item.text, pytest.approx(hit.score)) for hit in revised.hits] == seen
    assert texts(forgotten) == texts(before)


def test_what_was_forgotten_is_in_the_past_and_comes_back(dated: Memory, clock: FixedClock) -> None:
    """A forgotten memory is not recalled, was there as of before, and can be restored."""
    stored, other = (one.id for one in dated.remember_many([KEY, "Maria likes tea"]))
    then = clock.now
    clock.forward(hours=1)

    gone = dated.forget(stored, reason="outdated")

    assert [item.id for item in gone.items] == [stored]
    assert dated.recall(ASKED).hits == ()
    assert texts(dated.recall(ASKED, as_of=then)) == [KEY]
    assert dated.get(stored).ended_by == "outdated"
    with pytest.raises(Refused, match="was forgotten"):
        dated.update(stored, text="too late")

    clock.forward(hours=1)
    assert dated.restore(stored, other) == [stored]
    assert texts(dated.recall(ASKED)) == [KEY]
    assert texts(dated.recall(ASKED, as_of=clock.now - timedelta(minutes=30))) == []


def test_a_preview_changes_nothing(plain: Memory) -> None:
    """It says what would go and what would stay."""
    goes = plain.remember(KEY).id
    pinned = plain.remember("Never push on Fridays", pinned=True).id
    caveat = plain.remember("Migrations lock the orders table", layer="caveat").id
    generation = plain.store.admin.generation()

    would = plain.forget(goes, pinned, caveat, preview=True)

    assert would.preview
    assert [item.id for item in would.items] == [goes]
    assert would.kept == ((pinned, "pinned"), (caveat, "protected"))
    assert plain.store.admin.generation() == generation


def test_the_pinned_and_the_protected_stay(plain: Memory) -> None:
    """Only an erase lets go of them."""
    pinned = plain.remember("Never push on Fridays", pinned=True).id
    caveat = plain.remember("Migrations lock the orders table", layer="caveat").id

    assert plain.forget(pinned, caveat).items == ()
    assert plain.store.admin.count() == 2
    assert {item.id for item in plain.forget(pinned, caveat, erase=True).items} == {pinned, caveat}
    assert plain.store.admin.count() == 0


def test_an_erased_memory_is_gone(dated: Memory, clock: FixedClock) -> None:
    """From look-up, recall, the past and the history; the receipt counts what went."""
    stored = dated.remember(KEY, key="k", entities=["Vaultkeeper"]).id
    dated.recall(ASKED, track=True)
    then = clock.now
    clock.forward(hours=1)
    dated.update(stored, text="The deploy key lives in safe C")

    receipt = dated.forget(stored, erase=True).receipt

    assert receipt is not None
    assert receipt.ids == (stored,)
    assert receipt.removed["revisions"] == 2
    assert receipt.removed["vectors"] == 2
    assert receipt.removed["idempotency keys"] == 1
    assert receipt.removed["usage"] == 1
    for gone in (dated.get, dated.history, dated.timeline):
        with pytest.raises(NotFound):
            gone(stored)
    assert dated.recall(ASKED).status == "nothing_stored"
    assert dated.recall(ASKED, as_of=then).hits == ()
    with pytest.raises(NotFound):
        dated.restore(stored)
    assert dated.entities(prefix="vault") == []
    with pytest.raises(Refused, match="was erased"):
        dated.remember(KEY, key="k")
    assert dated.remember(KEY, key="another key").status == "stored"


# --- Recalling ----------------------------------------------------------------------------


@each_row(("question", "expected"), QUESTIONS)
def test_questions_are_answered(filled: Memory, question: str, expected: str) -> None:
    """What was meant is among the first three."""
    assert any(text.startswith(expected) for text in texts(filled.recall(question))[:3])


@each_row("question", FOREIGN)
def test_what_is_not_known_is_not_told(filled: Memory, question: str) -> None:
    """A question about something else finds nothing, and the nearest miss is named."""
    answer = filled.recall(question)

    assert not answer
    assert answer.status == "nothing_matched"
    assert answer.nearest_miss is None or answer.nearest_miss.item.id in answer.reason


def test_the_three_ways_of_finding_nothing(dated: Memory) -> None:
    """Nothing stored, nothing matched, nothing relevant enough: each says so."""
    empty = dated.recall("zebra")
    dated.remember(KEY)
    unmatched = dated.recall(ASKED, kind="decision")
    below = dated.recall("what is the key signature of the sonata?", min_confidence=0.7)

    assert (empty.status, unmatched.status, below.status) == (
        "nothing_stored",
        "nothing_matched",
        "nothing_matched",
    )
    assert empty.nearest_miss is unmatched.nearest_miss is None
    assert below.nearest_miss is not None
    assert below.nearest_miss.item.id in below.reason


FILTERS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "id": ({"id": "wanted"}, {}, {"id": "wanted"}),
    "level": ({"level": "insight"}, {}, {"level": "insight"}),
    "kind": ({"kind": "decision"}, {"kind": "fact"}, {"kind": "decision"}),
    "layer": ({"layer": "goal"}, {"layer": "context"}, {"layer": "goal"}),
    "topic": ({"topic": "ops"}, {"topic": "billing"}, {"topic": "ops"}),
    "tier": ({"tier": "core"}, {}, {"tier": "core"}),
    "tags": ({"tags": ["a", "b"]}, {"tags": ["a"]}, {"tags": ["a", "b"]}),
    "entity": ({"entities": ["Vault Team"]}, {"entities": ["Ops"]}, {"entity": "vault team"}),
    "source": ({"source": "wiki"}, {"source": "chat"}, {"source": ["wiki", "mail"]}),
    "session": ({"session": "s1"}, {"session": "s2"}, {"session": "s1"}),
    "speaker": ({"speaker": "Ana"}, {"speaker": "Ben"}, {"speaker": "Ana"}),
    "user": ({"metadata": {"user_id": "ana"}}, {"metadata": {"user_id": "ben"}}, {"user": "ana"}),
    "since": ({"occurred_at": days_ago(1)}, {"occurred_at": days_ago(9)}, {"since": days_ago(2)}),
    "until": ({"occurred_at": days_ago(9)}, {"occurred_at": days_ago(1)}, {"until": "yesterday"}),
    "trust": ({"trust": 3}, {"trust": 1}, {"min_trust": 2}),
    "classification": ({"classification": 0}, {"classification": 1}, {"max_classification": 0}),
}


@each_row("name", FILTERS)
def test_a_filter_lets_only_its_own_through(plain: Memory, name: str) -> None:
    """Given as a keyword or as Filters, and told by the answer."""
    inside, outside, where = FILTERS[name]
    wanted = plain.remember(KEY, **inside).id
    plain.remember(ROTATE, **outside)

    free, kept = plain.recall(ASKED), plain.recall(ASKED, **where)
    as_object = plain.recall(ASKED, filters=kept.query.filters)

    assert len(free.hits) == 2
    assert ids(kept) == ids(as_object) == [wanted]
    assert len(recall_json(kept)["query"]["filters"]) == 1
    assert [item.id for item in plain.browse(**where)] == [wanted]


def test_the_superseded_and_the_expired_are_asked_for(plain: Memory, clock: FixedClock) -> None:
    """They are left out unless the question wants them."""
    old = plain.remember(KEY).id
    plain.store.items.set_status([old], "superseded", actor="test", now=clock.now)
    plain.remember(ROTATE, valid_to=days_ago(1))

    assert plain.recall(ASKED).status == "nothing_matched"
    assert texts(plain.recall(ASKED, include_superseded=True)) == [KEY]
    assert texts(plain.recall(ASKED, include_expired=True)) == [ROTATE]


def test_secrets_are_above_the_usual_ceiling(plain: Memory) -> None:
    """The settings say how high it is; a ceiling that is no number is refused."""
    plain.remember(KEY, classification=3)

    assert plain.recall(ASKED).hits == ()
    assert texts(plain.recall(ASKED, max_classification=3)) == [KEY]
    raised = Memory(plain.store, settings=Settings(max_classification=3))
    assert texts(raised.recall(ASKED)) == [KEY]
    for ceiling in ("all", "3", True, 4, -1, 2.5):
        with pytest.raises(Refused, match="max_classification"):
            plain.recall(ASKED, max_classification=ceiling)


@pytest.mark.parametrize(
    "where", [{"min_trust": "high"}, {"include_expired": "no"}, {"include_superseded": 1}]
)
def test_a_filter_of_the_wrong_kind_is_refused(plain: Memory, where: dict[str, Any]) -> None:
    """By its name."""
    with pytest.raises(Refused, match=next(iter(where))):
        plain.recall(ASKED, **where)


def test_filters_come_in_one_way(plain: Memory) -> None:
    """One object or keywords, not both; an unknown one is refused."""
    with pytest.raises(Refused, match="not both"):
        plain.recall(ASKED, filters=Filters(), kind="fact")
    with pytest.raises(Refused, match="'colour'"):
        plain.recall(ASKED, colour="red")


def test_a_clock_without_a_zone_is_in_utc(plain: Memory) -> None:
    """As every other time without a zone."""
    plain.remember(KEY)

    answer = plain.recall(ASKED, now=NOW.replace(tzinfo=None))

    assert texts(answer) == [KEY]
    assert answer.query.now == NOW


def test_a_boost_moves_what_the_caller_wants(plain: Memory) -> None:
    """It multiplies, says so, and is refused nothing but sense."""
    plain.remember(KEY, topic="ops")
    plain.remember(ROTATE, topic="calendar")
    before = plain.recall(ASKED, min_relevance=0)
    last = before.hits[-1].item

    after = plain.recall(
        ASKED, boost=lambda item: 2.0 if item.id == last.id else 1.0, min_relevance=0
    )

    assert after.hits[0].item.id == last.id
    reason = after.hits[0].reason("boost")
    assert reason is not None
    assert (reason.op, reason.value) == ("times", 2.0)
    assert after.hits[1].reason("boost") is None
    assert after.hits[0].score == pytest.approx(2.0 * before.hits[1].score)


def test_a_reader_is_asked_where_the_profile_has_room(plain: Memory) -> None:
    """It sees the question and the texts, best first, and its view is part of the score;
    without a reader the place stays empty, which is nothing to complain of."""
    plain.remember_many([KEY, ROTATE])
    reading = replace(load_profile("default"), name="reading", rerank=(Rerank(keep=0.0),))
    seen: list[tuple[str, list[str]]] = []

    def reader(question: str, given: Any) -> list[float]:
        seen.append((question, list(given)))
        return [1.0 if "Rotate" in text else 0.5 for text in given]

    answer = plain.recall(ASKED, profile=reading, reranker=reader, min_relevance=0)
    without = plain.recall(ASKED, profile=reading, min_relevance=0)

    assert seen[0][0] == ASKED
    assert sorted(seen[0][1]) == sorted([KEY, ROTATE])
    assert texts(answer) == [ROTATE, KEY]
    assert answer.hits[0].score == 1.0
    assert "rerank.read" not in dict(without.degraded)
    skipped = next(step for step in without.steps if step.name == "rerank.read")
    assert (skipped.status, skipped.note) == ("skipped", "no reranker is configured")
    assert set(texts(without)) == {KEY, ROTATE}


def test_only_what_was_returned_is_marked(dated: Memory, clock: FixedClock) -> None:
    """Tracking counts the hits of this page and nothing that was merely considered."""
    dated.remember_many([KEY, ROTATE, "Maria likes tea"])

    first = dated.recall(ASKED, k=1, track=True)
    clock.forward(hours=1)
    second = dated.recall(ASKED, k=1, track=True)

    used = {item.id: (item.recalls, item.last_recalled_at) for item in dated.browse()}
    assert ids(first) == ids(second)
    assert first.page.has_more
    assert used.pop(first.hits[0].item.id) == (2, clock.now)
    assert set(used.values()) == {(0, None)}


def test_looking_leaves_no_trace(dated: Memory) -> None:
    """Without tracking neither a recall nor an explanation writes anything; the setting
    decides where the caller does not."""
    stored = dated.remember(KEY).id
    generation = dated.store.admin.generation()

    dated.recall(ASKED)
    dated.recall(ASKED, track=False)
    dated.explain(ASKED, stored)
    dated.why_not(stored, ASKED)
    dated.compare(ASKED, ["default", "siftcoder"])
    assert dated.store.admin.generation() == generation

    chosen = Settings(track=True, origins={"track": Origin("argument")})
    tracking = Memory(dated.store, settings=chosen)
    tracking.recall(ASKED, track=False)
    tracking.compare(ASKED, ["default"])
    tracking.explain(ASKED, stored)
    assert dated.get(stored).recalls == 0
    tracking.recall(ASKED)
    assert dated.get(stored).recalls == 1


def test_limits_come_from_the_nearest(plain: Memory) -> None:
    """The caller's number, else the setting's, else the profile's."""
    small = replace(load_profile("default"), budget=Budget(k=3, max_tokens=77))
    chosen = {"k": Origin("argument"), "max_tokens": Origin("argument")}
    told = Memory(plain.store, settings=Settings(k=5, max_tokens=55, origins=chosen))

    def limits(memory: Memory, **options: Any) -> tuple[int, int]:
        query = memory.recall(ASKED, profile=small, **options).query
        return query.k, query.max_tokens

    assert limits(plain) == (3, 77)
    assert limits(told) == (5, 55)
    assert limits(told, k=2, max_tokens=22) == (2, 22)


def test_tokens_end_the_answer(filled: Memory) -> None:
    """The page says what stopped it, what it cost and how to go on."""
    whole = filled.recall("webhook sender", k=50, max_tokens=10_000)
    price = token_cost(whole.hits[0])

    page = filled.recall("webhook sender", k=50, max_tokens=price)
    rest = filled.recall("webhook sender", k=50, max_tokens=10_000, cursor=page.page.cursor)

    assert len(whole.hits) > 1
    assert page.hits == whole.hits[:1]
    assert (page.page.stopped_by, page.page.tokens) == ("tokens", price)
    assert ids(rest) == ids(whole)[1:]
    assert (rest.page.stopped_by, rest.page.cursor) == ("end", None)


def test_profiles_are_compared_side_by_side(filled: Memory) -> None:
    """Each answer is the one its profile gives alone."""
    question = "where is the production deploy key kept?"

    answers = filled.compare(question, ["default", "siftcoder"], k=3)

    assert list(answers) == ["default", "siftcoder"]
    for name, answer in answers.items():
        assert answer.profile == name
        assert answer.hits == filled.recall(question, profile=name, k=3).hits
        assert len(answer.hits) <= 3


# --- Looking ------------------------------------------------------------------------------


def test_a_part_of_an_id_is_enough(plain: Memory) -> None:
    """Its beginning or its end, if only one memory has it."""
    plain.remember(KEY, id="deploy-key-2026")
    plain.remember(ROTATE, id="deploy-turn-2026")

    assert plain.get("deploy-k").text == KEY
    assert plain.get("turn-2026").text == ROTATE
    assert plain.get("deploy-key-2026").text == KEY
    with pytest.raises(NotFound) as error:
        plain.get("deploy-")
    assert "deploy-key-2026, deploy-turn-2026" in error.value.message
    for unknown in ("nothing-like-it", "dep", ""):
        with pytest.raises(NotFound, match="there is no memory"):
            plain.get(unknown)


def test_every_look_takes_a_part_of_an_id(plain: Memory) -> None:
    """Explaining, changing and forgetting find the memory like ``get`` does."""
    plain.remember(KEY, id="deploy-key-2026")

    assert "channel.lexical" in plain.explain(ASKED, "deploy-k")
    assert plain.why_not("key-2026", ASKED).returned
    assert plain.update("deploy-k", topic="ops").topic == "ops"
    assert len(plain.history("deploy-k")) == 2
    assert plain.forget("deploy-k").items[0].id == "deploy-key-2026"


def test_entities_are_counted(filled: Memory) -> None:
    """The liveliest first, by the beginning of their name or by kind, a page at a time."""
    everyone = filled.entities(limit=1000)

    assert [(one.name, one.mentions) for one in everyone if one.mentions > 3] == [
        ("Ana", 4), ("Ben", 4)
    ]  # fmt: skip
    assert [one.momentum for one in everyone[:3]] == sorted(
        (one.momentum for one in everyone[:3]), reverse=True
    )
    assert [entity.name for entity in filled.entities(prefix="ordere")] == ["OrderExporter"]
    assert {one.kind for one in filled.entities(kind="person")} == {"person"}
    assert {one.name for one in filled.entities(min_memories=2)} >= {"Ana", "Ben"}
    assert [*filled.entities(limit=3), *filled.entities(limit=1000, offset=3)] == everyone


def test_a_timeline_is_what_was_said_around(filled: Memory) -> None:
    """In a conversation its turns, oldest first, without the one asked for."""
    turn = next(item for item in filled.browse(session="standup-7") if item.seq == 4)

    around = filled.timeline(turn.id, window=2)

    assert [item.seq for item in around] == [2, 3, 5, 6]


def test_browsing_pages_join(filled: Memory) -> None:
    """Newest first; a page goes on behind the last of the one before."""
    everything = [item.id for item in filled.browse(limit=1000)]
    pages: list[str] = []
    while page := filled.browse(limit=7, after=pages[-1] if pages else None):
        pages += [item.id for item in page]

    assert len(everything) == len(NOTES) - 1 + len(CONVERSATION)  # one is secret
    assert pages == everything


def test_the_journal_tells_who_did_what(plain: Memory) -> None:
    """Every change has a line, never with the content of a memory."""
    memory = Memory(plain.store, settings=Settings(actor="ada"), clock=FixedClock(NOW))
    stored = memory.remember(KEY).id
    memory.update(stored, topic="ops")
    memory.forget(stored)
    memory.restore(stored)
    list(memory.export())
    memory.forget(stored, erase=True)

    lines = memory.events()

    assert [line.kind for line in lines] == [
        "stored", "revised", "ended", "restored", "exported", "erased",
    ]  # fmt: skip
    assert {line.actor for line in lines} == {"ada"}
    assert all("vault" not in line.detail for line in lines)
    assert memory.events(after=lines[3].seq, limit=1) == [lines[4]]


def busy(*_: object, **__: object) -> None:
    """A write while another process keeps the write lock."""
    raise StoreBusy("others were writing")


def test_no_export_goes_unnoted_because_somebody_writes(tmp_path: Path) -> None:
    """Only where the journal cannot be written at all is it done without."""
    store = SqliteStore.open(tmp_path / "m.db", space="m")
    with Memory(with_methods(store, "admin", log=busy)) as memory, pytest.raises(StoreBusy):
        memory.export()


# --- Moving -------------------------------------------------------------------------------


def test_an_export_recalls_the_same_elsewhere(filled: Memory, memory: Memory) -> None:
    """Every question is answered alike, reasons and all; a second import adds nothing."""
    records = list(filled.export())

    count = memory.import_(records)

    assert count == len(NOTES) + len(CONVERSATION)
    assert memory.import_(records) == 0
    for question, _ in QUESTIONS:
        assert memory.recall(question).hits == filled.recall(question).hits, question
    assert memory.entities() == filled.entities()
    assert all(finding.ok for finding in memory.doctor())


def test_a_broken_import_changes_nothing(filled: Memory, memory: Memory) -> None:
    """All of it comes in or none."""
    records = [*filled.export(), {"type": "nonsense"}]

    with pytest.raises(Refused, match="nothing was imported"):
        memory.import_(records)

    assert memory.store.admin.count() == 0


# --- Vectors ------------------------------------------------------------------------------


def test_another_embedder_is_answered_by_words(tmp_path: Path, embedder: Embedder) -> None:
    """Vectors of two models are never compared: the answer comes by words, says why, and
    a reindex mends it."""
    question = "where is the production deploy key kept?"
    path = tmp_path / "notes.db"
    with Memory.open(path=path, embedder="hash", clock=FixedClock(NOW)) as old:
        old.remember_many(NOTES)
    with Memory.open(path=path, embedder=embedder, clock=FixedClock(NOW)) as memory:
        before = memory.recall(question)
        made = memory.reindex()
        after = memory.recall(question)

        assert texts(before)[0].startswith("The deploy key")
        assert "bethink reindex" in dict(before.degraded)["channel.dense"]
        assert not any("dense" in reason.by for hit in before.hits for reason in hit.evidence)
        assert made == len(NOTES)
        assert after.degraded == ()
        assert texts(after)[0].startswith("The deploy key")
        assert after.hits[0].reason("channel.dense") is not None
        assert memory.stats()["models"] == {embedder.model: len(NOTES)}


class AnotherHash(HashEmbedder):
    model = "another hash"


def test_a_reindex_can_be_stopped_and_taken_up(tmp_path: Path) -> None:
    """What was made stays made, only vectors of the new model are compared meanwhile, and
    the next call makes the rest."""
    path, embedder = tmp_path / "many.db", AnotherHash()
    many = [
        f"Ticket {number} concerns shelf {number * 7} in hall {number % 9}" for number in range(520)
    ]
    with Memory.open(path=path, embedder="hash", clock=FixedClock(NOW)) as old:
        old.remember_many(many)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with Memory.open(path=path, embedder=embedder, clock=FixedClock(NOW)) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.reindex(progress=stop)
        assert memory.stats()["models"] == {
            "hash-384 (not a learned model)": 20,
            embedder.model: 500,
        }
        meanwhile = memory.recall("what concerns shelf 91?")
        found = [hit.item.id for hit in meanwhile.hits if hit.reason("channel.dense")]
        assert memory.store.vectors.embeddings(found, embedder.model).keys() == set(found)
    with Memory.open(path=path, embedder=embedder, clock=FixedClock(NOW)) as memory:
        assert memory.reindex() == 20
        assert memory.reindex() == 0
        assert memory.stats()["models"] == {embedder.model: 520}
        assert all(finding.ok for finding in memory.doctor())


def test_words_alone_are_enough(plain: Memory) -> None:
    """Without an embedder nothing is embedded, pending or degraded beyond the channel."""
    results = plain.remember_many(NOTES)

    answer = plain.recall("where is the production deploy key kept?")

    assert all(result.pending == () for result in results)
    assert plain.reindex() == 0
    assert plain.stats()["embedder"] == "none"
    assert texts(answer)[0].startswith("The deploy key")
    assert [part for part, _ in answer.degraded] == ["channel.dense"]
    assert plain.recall("how do I tune a violin?").hits == ()


# --- Looking after ------------------------------------------------------------------------


def test_a_broken_word_index_is_mended(tmp_path: Path, embedder: Embedder) -> None:
    """The doctor sees that rows are missing from it, and makes it anew."""
    path = tmp_path / "notes.db"
    with Memory.open(path=path, embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember_many(NOTES)
        healthy = memory.recall("OrderExporter finance bucket")
        assert all(finding.ok for finding in memory.doctor())

        with memory.store._connections.write_transaction() as db:  # type: ignore[attr-defined]
            db.execute("DELETE FROM posting_new")
        seen = {finding.name: finding for finding in memory.doctor()}
        mended = {finding.name: finding for finding in memory.doctor(repair=True)}

        assert not seen["words"].ok
        assert (mended["words"].ok, mended["words"].repaired) == (True, True)
        assert all(finding.ok for finding in memory.doctor())
        assert memory.recall("OrderExporter finance bucket").hits == healthy.hits


# --- Threads ------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["in memory", "in a file"])
def test_threads_share_one_memory(place: str, tmp_path: Path, embedder: Embedder) -> None:
    """Eight of them remember and recall at once: nothing is lost, no answer is torn."""
    path = tmp_path / "shared.db" if place == "in a file" else None
    space = None if path else ":memory:"
    with Memory.open(space, path=path, embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember_many(NOTES)

        def work(thread: int) -> list[Item]:
            stored = []
            for turn in range(6):
                text = f"Worker {thread} packed crate {thread * 31 + turn * 7} for pier {turn}"
                stored.append(memory.get(memory.remember(text).id))
                answer = memory.recall("how long are JWT tokens cached?", track=turn == 0)
                assert texts(answer)[0].startswith("JWT tokens")
                assert answer.degraded == ()
            return stored

        with ThreadPoolExecutor(8) as threads:
            written = [item for items in threads.map(work, range(8)) for item in items]

        assert len({item.id for item in written}) == 48
        assert memory.store.admin.count() == len(NOTES) + 48
        assert memory.recall("JWT tokens cached").hits[0].item.recalls == 8
        assert all(finding.ok for finding in memory.doctor())


class Indexed:
    """A retriever with an index of its own, which lacks one entry."""

    asked: ClassVar[list[bool]] = []
    name, weight = "indexed", 1.0

    def update_index(self, store: Store, *, only_new: bool = True) -> int:
        self.asked.append(only_new)
        return int(len(self.asked) == 1)


def test_a_reindex_counts_what_it_made_by_kind(embedder: Embedder, tmp_path: Path) -> None:
    """Vectors of entities, and what retrievers of the profile add to indexes of their own."""
    path = tmp_path / "old.db"
    with Memory(SqliteStore.open(path, space="test"), embedder=embedder) as memory:
        memory.remember("Ana Torres prefers tea")
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM entity_vector")
    db.close()

    store = SqliteStore.open(path, space="test")
    with Memory(store, embedder=embedder) as memory:
        profile = memory.profile(None)
        indexed = replace(profile, channels=(*profile.channels, Indexed()))
        memory.profile = lambda _: indexed  # type: ignore[method-assign]
        made = memory.make_missing()

        assert made == (0, 1, 1)
        assert memory.make_missing() == (0, 0, 0)
        update_indexes(indexed, store)
        assert Indexed.asked == [False, False, True]
        assert all(one.ok for one in memory.doctor())


def test_a_check_of_the_store_tells_how_far_it_is(plain: Memory) -> None:
    """Before each check and at the end, so that a terminal can show it."""
    told: list[tuple[int, int]] = []

    plain.doctor(progress=lambda done, all_: told.append((done, all_)))

    count = told[0][1]
    assert count > 3
    assert told == [(done, count) for done in range(count + 1)]
