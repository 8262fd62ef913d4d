"""Links between memories and between entities, each kind with its limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bethink import Memory
from bethink.core.ids import IdGenerator
from bethink.ingest import links
from bethink.ingest.admission import WriteContext
from bethink.ingest.links import MAX_SIMILAR
from bethink.ingest.pipeline import remember
from bethink.lang.words import load_words
from bethink.model import Draft, Remembered
from bethink.models.embed.hashing import HashEmbedder
from bethink.models.name_model import name_model
from bethink.models.update_model import update_model
from bethink.ports import Embedding, PairVerdict
from bethink.store.sqlite import SqliteStore
from rows import each_row

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
def ctx() -> Iterator[WriteContext]:
    store = SqliteStore.open(None, space="t")
    yield WriteContext(
        store, HashEmbedder(), NOW, "tester", IdGenerator(), find_names=name_model.find
    )
    store.close()


def one(ctx: WriteContext, text: str, **about: object) -> Remembered:
    return remember([Draft(text, **about)], ctx)[0]


def edges(ctx: WriteContext, text: str) -> list[tuple[str, str, str]]:
    item = one(ctx, text).id
    entities = sorted(ctx.store.items.get([item])[item].entities)
    found = ctx.store.graph.links_of(entities, incoming=False) if entities else []
    kept = [link for link in found if link.dst.kind == "entity"]
    assert all(link.context == item for link in kept)
    return [(link.src.id, link.type, link.dst.id) for link in kept]


@each_row(
    ("text", "edge"),
    [
        ("Alice works with Bob", ("person:alice", "works_with", "person:bob")),
        ("Alice reports to Maria Lopez", ("person:alice", "reports_to", "person:maria lopez")),
        ("BillingService depends on PostgreSQL", ("class:billingservice", "depends_on", "tool:postgresql")),
        ("SeatMapCanvas is part of TicketApp", ("tool:seatmapcanvas", "part_of", "tool:ticketapp")),
        ("Ana owns payment_gateway", ("person:ana", "owns", "identifier:payment_gateway")),
        ("Ana now leads the project Falcon", ("person:ana", "leads", "project:falcon")),
        ("parse_config calls load_toml", ("identifier:parse_config", "calls", "identifier:load_toml")),
        ("Does Alice work with Bob?", None),
        ("Alice does not work with Bob", None),
        ("Alice, Bob and Carol had lunch", None),
        ("Alice met Bob. Carol works with nobody", None),
    ],
)  # fmt: skip
def test_what_a_text_says_of_two_entities(ctx, text, edge):
    """Read from the words between them; the memory is the edge's context."""
    assert edges(ctx, text) == ([edge] if edge else [])


def test_a_cause_named_by_its_id_is_linked(ctx):
    """Both ways, by the words before the id."""
    outage = one(ctx, "Bookings failed for 47 minutes").id
    cause = one(ctx, f"The certificate expired, which led to {outage}").id
    effect = one(ctx, f"We apologised to all partners because of {outage}").id

    found = {
        (link.src.id, link.type, link.dst.id)
        for link in ctx.store.graph.links_of([outage], ["causes", "caused_by"])
    }

    assert found == {(cause, "causes", outage), (effect, "caused_by", outage)}


@pytest.mark.parametrize("together", [True, False])
def test_a_turn_that_follows_from_the_one_before(ctx, together):
    """As "that is why" means the turn before, in the same session."""
    said = [
        Draft("The parser gave up on an emoji", level="raw", session="s", speaker="Ana"),
        Draft("That's why I added a dead letter box", level="raw", session="s", speaker="Ben"),
    ]
    if together:
        first, second = (answer.id for answer in remember(said, ctx))
    else:
        first, second = (remember([draft], ctx)[0].id for draft in said)

    links = ctx.store.graph.links_of([second], ["caused_by"], incoming=False)

    assert [link.dst.id for link in links] == [first]


def causes_of(ctx: WriteContext, effect: str) -> list[str]:
    links = ctx.store.graph.links_of([effect], ["caused_by"], incoming=False)
    return [link.dst.id for link in links]


CAUSE = "The disk of build server Kestrel is full."
EFFECT = "The release failed because the disk of build server Kestrel is full."


@pytest.mark.parametrize("relating", [True, False])
def test_a_stated_cause_is_linked_by_every_write(ctx, relating):
    """With and without the search for similar memories, one by one or in one batch."""
    ctx = replace(ctx, relating=relating)

    cause, effect = one(ctx, CAUSE).id, one(ctx, EFFECT).id
    batch = [Draft(f"{text} On Monday.", classification=2) for text in (CAUSE, EFFECT)]
    together = [answer.id for answer in remember(batch, ctx)]

    assert causes_of(ctx, effect) == [cause]
    assert causes_of(ctx, together[1])[0] in (cause, together[0])


def test_within_a_batch_the_cause_may_be_a_memory_before_it(ctx):
    """It is not stored yet, and linked all the same; never one of a higher class."""
    first, second = (answer.id for answer in remember([Draft(CAUSE), Draft(EFFECT)], ctx))
    assert causes_of(ctx, second) == [first]

    secret = Draft("The cable of camera four is broken.", classification=3)
    told = Draft("Recording stopped because the cable of camera four is broken.")
    _, public = (answer.id for answer in remember([secret, told], ctx))
    assert causes_of(ctx, public) == []


def test_a_clause_is_found_where_there_is_time_to_look(ctx):
    """The memory that says what stands behind "because"."""
    ctx = replace(ctx, relating=True)
    cause = one(ctx, "The inventory lock expired after thirty seconds").id
    one(ctx, "Lunch is at noon")

    effect = one(ctx, "A seat was sold twice because the inventory lock expired").id

    links = ctx.store.graph.links_of([effect], ["caused_by"], incoming=False)
    assert [link.dst.id for link in links] == [cause]


def test_a_clause_of_words_that_many_hold_points_to_no_memory(ctx, monkeypatch):
    """So that a stock phrase costs no search through all who use it, and links to none."""
    monkeypatch.setattr(links, "_MAX_HOLDERS", 2)
    for day in ("monday", "tuesday", "friday"):
        one(ctx, f"The night build failed on {day}")
    told = one(ctx, "We shipped late because the night build failed").id
    assert causes_of(ctx, told) == []

    rare = one(ctx, "The night build failed on thursday").id
    told = one(ctx, "We shipped late because the night build failed on thursday").id
    assert causes_of(ctx, told) == [rare]


def test_what_means_nearly_the_same_is_linked_and_not_reported(ctx):
    """At most five, never a turn, only where somebody waits; there is nothing to resolve."""
    texts = [
        f"the nightly export job writes its files into the finance bucket {n}" for n in "abcdefg"
    ]
    for text in texts:
        one(ctx, text)
    probe = "export job nightly writes files into finance bucket the its"

    quick, turn = one(ctx, f"{probe} x"), one(ctx, f"{probe} y", level="raw", session="s")
    slow = one(replace(ctx, relating=True), f"{probe} z")

    told = (*quick.collisions, *turn.collisions, *slow.collisions)
    assert [c.kind for c in told].count("related") == 0
    similar = [
        ctx.store.graph.links_of([answer.id], ["similar_to"], incoming=False)
        for answer in (quick, turn, slow)
    ]
    near = [c for c in slow.collisions if c.kind == "near"]
    assert len(similar[0]) == len(similar[1]) == 0
    assert len(near) < len(similar[2]) <= MAX_SIMILAR + len(near)


def test_what_a_memory_seems_to_correct_is_reported(memory_with_encoder, monkeypatch):
    """A change stated in other words is reported; ordinary notes are not."""
    memory = memory_with_encoder
    corrections = {("The CI takes 14 minutes", "CI is down to 6 minutes now"): 0.92}

    def judge(pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        sure = [corrections.get(pair, 0.01) for pair in pairs]
        return [PairVerdict(one, 0.0, 1.0 - one, 0.0) for one in sure]

    monkeypatch.setattr(update_model, "judge", judge)
    memory.remember("The CI takes 14 minutes")
    ordinary = [
        memory.remember("PR #192 merged"),
        memory.remember("PR #360 merged"),
        memory.remember("Standup was short, nothing blocked", occurred_at="2026-02-02T09:00:00Z"),
        memory.remember("Lunch was soup on that day"),
        memory.remember("Standup was short, nothing blocked", occurred_at="2026-02-01T09:00:00Z"),
    ]

    corrected = memory.remember("CI is down to 6 minutes now")

    assert [c.kind for answer in ordinary for c in answer.collisions] == []
    told = [(c.kind, c.text) for c in corrected.collisions]
    assert told == [("supersedes", "The CI takes 14 minutes")]


def test_an_untrusted_correction_is_not_reported_as_one(memory_with_encoder):
    """A source that is trusted less corrects nothing; at most it contradicts."""
    memory = memory_with_encoder
    memory.remember("The CI takes 14 minutes")
    told = memory.remember("CI is down to 6 minutes now", trust=0, source_class="web")
    assert [c.kind for c in told.collisions] in ([], ["contradicts"])


@pytest.fixture
def memory_with_encoder():
    with Memory.open(":memory:", embedder="encoder", clock=lambda: NOW) as memory:
        yield memory


@pytest.mark.parametrize("later", [True, False])
def test_every_stated_cause_is_linked(ctx: WriteContext, *, later: bool) -> None:
    """The second and the third, too, whichever was stored first; a fourth is left out."""
    causes = (
        "The disk of build server Kestrel is full", "The licence of the leak scanner ran out",
        "The badge of auditor Mira was blocked", "The courier of the signing key got lost",
    )  # fmt: skip
    told = "The release slipped because the disk of build server Kestrel is full, because the"
    told += " licence of the leak scanner ran out, because the badge of auditor Mira was blocked"
    told += " and because the courier of the signing key got lost"
    texts = (told, *causes) if later else (*causes, told)
    stored = {text: one(ctx, text).id for text in texts}

    assert set(causes_of(ctx, stored[told])) == {stored[text] for text in causes[:3]}


KESTREL = "The disk of build server Kestrel is full"


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize(
    "effect",
    [
        "The release failed due to the full disk of build server Kestrel",
        "The release failed owing to the full disk of build server Kestrel",
        "The release failed; the reason was that the disk of build server Kestrel is full",
        "Because the disk of build server Kestrel is full, the release failed",
        "Die Auslieferung scheiterte wegen build server Kestrel full disk",
    ],
)
def test_a_cause_is_linked_in_several_wordings(
    ctx: WriteContext, effect: str, *, later: bool
) -> None:
    """Whether the cause or its effect was stored first."""
    texts = (effect, KESTREL) if later else (KESTREL, effect)
    stored = {text: one(ctx, text).id for text in texts}

    assert causes_of(ctx, stored[effect]) == [stored[KESTREL]]


@pytest.mark.parametrize("later", [True, False])
def test_a_cause_in_other_words_is_linked(*, later: bool) -> None:
    """By its meaning, where it stands out."""
    cause = "Redis ran out of memory at noon"
    effect = "All sessions were lost because the Redis cache had no memory left"
    with Memory.open(":memory:") as memory:
        memory.remember_many(["The cat sleeps on the sofa", "Tickets are in Linear, prefix HB"])
        texts = (effect, cause) if later else (cause, effect)
        stored = {text: memory.remember(text).id for text in texts}
        found = [link for link in memory.links(stored[effect]) if link.type == "caused_by"]

    assert [(link.src.id, link.dst.id) for link in found] == [(stored[effect], stored[cause])]


@each_row(
    ("cause", "effect"),
    [
        ("原来的机房延迟太高，客户在投诉", "支付服务迁到了上海，因为原来的机房延迟太高。"),
        ("春天以来膝盖受伤了", "由于膝盖受伤，爸爸不再去爬山了。"),
        ("Frau Lindner zieht im Mai weg", "Der Verein sucht jemanden, denn Frau Lindner zieht weg"),
    ],
)
def test_a_cause_is_linked_in_other_languages(ctx, cause, effect):
    """Also where no spaces are between words."""
    told = one(ctx, cause).id

    assert causes_of(ctx, one(ctx, effect).id) == [told]


def test_an_effect_is_linked_where_no_spaces_are_between_words(ctx: WriteContext) -> None:
    """As with a cause."""
    effect = one(ctx, "支付接口在周五晚上超时").id
    told = one(ctx, "数据库升级导致支付接口周五晚上超时").id

    assert [(link.dst.id, link.type) for link in ctx.store.graph.links_of([told], ["causes"])] == [
        (effect, "causes")
    ]


def test_in_a_batch_the_cause_may_come_later(ctx: WriteContext) -> None:
    """As when a folder is imported."""
    effect = Draft("The release failed because the disk of build server Kestrel is full.")

    told, cause = (answer.id for answer in remember([effect, Draft(KESTREL)], ctx))

    assert causes_of(ctx, told) == [cause]


def test_a_cause_that_nothing_tells_is_not_linked(ctx: WriteContext) -> None:
    """Neither before nor after."""
    told = one(ctx, "We moved the meeting because the room was too small for everybody").id
    one(ctx, KESTREL)

    assert causes_of(ctx, told) == []


@pytest.mark.parametrize("later", [True, False])
def test_a_memory_on_the_same_subject_is_no_cause(*, later: bool) -> None:
    """It must tell what the clause tells."""
    effect = "We chose PostgreSQL over DynamoDB because invoices need joins"
    other = "The invoices table is partitioned by month since January"
    with Memory.open(":memory:") as memory:
        texts = (effect, other) if later else (other, effect)
        stored = {text: memory.remember(text).id for text in texts}

        assert not [one for one in memory.links(stored[effect]) if one.type == "caused_by"]


CERTIFICATE = "The TLS certificate of the gateway expired on Sunday"
DEPLOY = "The deploy of the shop failed because the TLS certificate of the gateway expired"


class CountingEmbedder(HashEmbedder):
    """Notes the texts that it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        self.asked.append(list(texts))
        return super().embed(texts)


def test_a_stated_cause_costs_no_vector(ctx: WriteContext) -> None:
    """Each text is embedded once, in one call, whatever it and its neighbours state."""
    embedder = CountingEmbedder()
    ctx = replace(ctx, embedder=embedder)
    stated = [f"the shop closed early because pump {n} leaked into cellar {n}" for n in range(9)]
    remember([Draft(text) for text in stated], ctx)
    one(ctx, "the shop closed early on monday because of heavy morning rain")
    one(ctx, "the shop closed early on friday")

    assert [len(texts) for texts in embedder.asked] == [9, 1, 1]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("hidden", [True, False])
def test_a_memory_above_a_ceiling_changes_no_cause_below_it(
    *, together: bool, hidden: bool
) -> None:
    """What is visible below is the same with it and without it."""
    drafts = [
        Draft(DEPLOY, classification=0),
        Draft("The TLS certificate of the gateway expired, says the audit", classification=3),
        Draft(CERTIFICATE, classification=0),
    ]
    kept = [draft for draft in drafts if hidden or draft.classification == 0]
    with Memory.open(":memory:", embedder="hash") as memory:
        if together:
            ids = [answer.id for answer in memory.remember_many(kept)]
        else:
            ids = [memory.remember_many([draft])[0].id for draft in kept]
        found = [one for one in memory.below(0).links(ids[0]) if one.type == "caused_by"]

        assert [link.dst.id for link in found] == [ids[-1]]


@pytest.mark.parametrize("together", [True, False])
def test_that_is_why_never_refers_to_a_turn_of_a_higher_class(
    ctx: WriteContext, *, together: bool
) -> None:
    """It refers to the last turn that its readers may see."""
    turns = [
        Draft("The parser gave up on an emoji", classification=1),
        Draft("Nobody outside may hear of the emoji", classification=3),
        Draft("That's why I added a dead letter box", classification=1),
    ]
    turns = [turn._replace(level="raw", session="s") for turn in turns]
    groups = [turns] if together else [[turn] for turn in turns]
    first, _, last = (answer.id for group in groups for answer in remember(group, ctx))

    assert causes_of(ctx, last) == [first]


@pytest.mark.parametrize("later", [True, False])
@each_row(
    "other",
    [
        {"user": "bob"},
        {"trust": 0, "source_class": "web"},
        {"text": "Has the TLS certificate of the gateway expired on Sunday?"},
        {"text": "Bookings failed because the TLS certificate of the gateway expired"},
    ],
)
def test_what_may_not_explain_a_memory_is_no_cause(other, later):
    """Another user, a source that is trusted less, a question, another effect of the cause."""
    told = [{"text": DEPLOY, "user": "alice"}, {"text": CERTIFICATE, "user": "alice"} | other]
    with Memory.open(":memory:", embedder="hash", clock=lambda: NOW) as memory:
        stored = [memory.remember(**given).id for given in (told if later else reversed(told))]
        effect = stored[0 if later else 1]
        true = memory.remember(f"Priya saw: {CERTIFICATE}", user="alice").id
        found = [link for link in memory.links(effect) if link.type == "caused_by"]

        assert [(link.src.id, link.dst.id) for link in found] == [(effect, true)]


def test_a_forgotten_cause_gives_way_to_the_next(ctx: WriteContext) -> None:
    """Which tells it again."""
    effect, cause = one(ctx, DEPLOY).id, one(ctx, CERTIFICATE).id
    ctx.store.items.end([cause], actor="tester", now=NOW, how="forgotten")
    again = one(ctx, "On Monday the TLS certificate of the gateway expired").id

    assert again in causes_of(ctx, effect)


@pytest.mark.parametrize("together", [True, False])
def test_every_effect_of_a_cause_is_linked_to_it(ctx: WriteContext, *, together: bool) -> None:
    """And none to another, which has the same words."""
    because = "failed because the TLS certificate of the gateway expired"
    drafts = [Draft(f"Service {name} {because}") for name in ("ash", "beech", "cedar", "elm")]
    drafts.append(Draft(CERTIFICATE))
    groups = [drafts] if together else [[draft] for draft in drafts]
    *effects, cause = (answer.id for group in groups for answer in remember(group, ctx))

    assert [causes_of(ctx, effect) for effect in effects] == [[cause]] * 4


def test_a_cause_may_have_a_cause(ctx: WriteContext) -> None:
    """It tells the first clause, and states another."""
    cause = one(ctx, f"{CERTIFICATE} because nobody had renewed it in time").id
    effect = one(ctx, DEPLOY).id

    assert causes_of(ctx, effect) == [cause]


CUES = [
    (cue.strip(), kind)
    for kind, section in (("caused_by", "cause"), ("causes", "effect"))
    for cues in load_words("causes")[section].values()
    for cue in cues.split("|")
]


@each_row(("cue", "kind"), CUES)
def test_every_cue_states_one_clause(ctx, cue, kind):
    """A cause or an effect, never both; also with a typographic apostrophe."""
    for written in (cue, cue.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")):
        text = f"Exports stopped {written} broken north hinge".replace(" ,", ",")
        text = re.sub(r"(['\N{RIGHT SINGLE QUOTATION MARK}]) (?=broken)", r"\1", text)
        found = links.read_statement(ctx.store.items.get([stored := one(ctx, text).id])[stored])

        assert found.clauses == ((kind, {"broken", "north", "hinge"}),)
        assert found.stated == {"exports", "stopped"}
