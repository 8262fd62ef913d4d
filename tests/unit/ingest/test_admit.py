"""The rules a draft must keep before any work is done on it."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from bethink.errors import BadText, Refused, TooLarge
from bethink.ingest.admission import TRUST_CEILING, admit, trust_of
from bethink.model import LAYERS, Draft, find_layer
from bethink.model.item import LAYER_ALIASES
from rows import each_row

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@each_row(
    ("draft", "name"),
    [
        (Draft("x" * 65_537), "text"),
        (Draft("é" * 32_769), "text"),
        (Draft("日" * 21_846), "text"),
        (Draft("a", original="x" * 65_537), "original"),
        (Draft("a", tags=tuple(map(str, range(65)))), "tags"),
        (Draft("a", tags=("x" * 201,)), "tags"),
        (Draft("a", entities=("x" * 201,)), "entities"),
        (Draft("a", topic="x" * 1_001), "topic"),
        (Draft("a", speaker="x" * 1_001), "speaker"),
        (Draft("a", source="x" * 1_001), "source"),
        (Draft("a", key="x" * 201), "key"),
        (Draft("a", metadata=nested(9)), "metadata"),
        (Draft("a", metadata={"a": "x" * 32_768}), "metadata"),
        (Draft("a", metadata={"a": [0] * 40_000}), "metadata"),
    ],
)
def test_one_over_a_limit_is_refused_with_the_limit(draft, name):
    """Nothing is cut short."""
    with pytest.raises(TooLarge) as caught:
        admit(draft, NOW)

    assert name in caught.value.message
    assert caught.value.actual > caught.value.limit


@each_row(
    "draft",
    [
        Draft("x" * 65_536),
        Draft("日" * 21_845),
        Draft("a", tags=tuple(map(str, range(64)))),
        Draft("a", tags=("x" * 200,)),
        Draft("a", topic="x" * 1_000),
        Draft("a", key="x" * 200),
        Draft("a", metadata=nested(8)),
        Draft("a", metadata={"n": [2**64 - 1, -(2**63), 1.5, None, True, "x"]}),
        Draft("a", id="A-1_b.c:d"),
    ],
)
def test_what_reaches_a_limit_is_taken(draft):
    """The boundary itself is inside."""
    assert admit(draft, NOW).text == draft.text


@each_row(
    ("draft", "word"),
    [
        (Draft(""), "the text is empty"),
        (Draft(" \n\t"), "the text is empty"),
        (Draft("..."), "only punctuation"),
        (Draft("\u200b\u200b"), "invisible characters"),
        (Draft("a", trust=4), "trust"),
        (Draft("a", trust=-1), "trust"),
        (Draft("a", trust=True), "trust"),
        (Draft("a", integrity=5), "integrity"),
        (Draft("a", credibility=7), "credibility"),
        (Draft("a", classification=4), "classification"),
        (Draft("a", emotion=5.1), "emotion"),
        (Draft("a", importance=math.nan), "importance"),
        (Draft("a", importance=math.inf), "importance"),
        (Draft("a", importance="high"), "importance"),
        (Draft("a", confidence=-0.1), "confidence"),
        (Draft("a", seq=-1), "seq"),
        (Draft("a", seq=1.5), "seq"),
        (Draft("a", level="fact"), "level"),
        (Draft("a", layer="vibes"), "layer"),
        (Draft("a", source=" "), "source"),
        (Draft("a", source=None), "source"),
        (Draft("a", source_class=None), "source_class"),
        (Draft("a", source_class="friend"), "source class"),
        (Draft("a", id="a b"), "id"),
        (Draft("a", id="x" * 65), "id"),
        (Draft("a", id=7), "id"),
        (Draft("a", tags="abc"), "tags"),
        (Draft("a", tags=(1,)), "tags"),
        (Draft("a", tags=(" ",)), "tags"),
        (Draft("a", topic=7), "topic"),
        (Draft(7), "text"),
        (Draft(None), "text"),
        (Draft("a", metadata=[1]), "metadata"),
        (Draft("a", metadata={"a": math.nan}), "metadata"),
        (Draft("a", metadata={"a": math.inf}), "metadata"),
        (Draft("a", metadata={"a": 2**64}), "metadata"),
        (Draft("a", metadata={"a": 10**5000}), "metadata"),
        (Draft("a", metadata={1: "a"}), "metadata"),
        (Draft("a", metadata={"a": b"x"}), "metadata"),
        (Draft("a", metadata={"a": {1, 2}}), "metadata"),
        (Draft("a", occurred_at="not a time"), "occurred_at"),
        (Draft("a", valid_to=7), "valid_to"),
        (
            Draft("a", occurred_at=NOW, occurred_end=datetime(2020, 1, 1, tzinfo=UTC)),
            "occurred_end",
        ),
        (Draft("a", valid_from=NOW, valid_to=datetime(2020, 1, 1, tzinfo=UTC)), "valid_to"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(draft, word):
    """One sentence that names the field."""
    with pytest.raises(Refused) as caught:
        admit(draft, NOW)

    assert word in caught.value.message


@each_row(
    ("draft", "message"),
    [
        (Draft("ab\x00c"), "text contains a NUL at character 3"),
        (Draft("\ud800"), "text contains a lone surrogate U+D800 at character 1"),
        (Draft("a", topic="x\x00"), "topic contains a NUL at character 2"),
        (Draft("a", tags=("\udfff",)), "one of the tags contains a lone surrogate"),
        (Draft("a", key="\x00"), "key contains a NUL"),
        (Draft("a", metadata={"a": ["\ud800"]}), "metadata contains a lone surrogate"),
        (Draft("a", metadata={"\x00": 1}), "a key of metadata contains a NUL"),
    ],
)
def test_characters_no_store_can_keep_are_named_with_their_place(draft, message):
    """In any field."""
    with pytest.raises(BadText) as caught:
        admit(draft, NOW)

    assert message in caught.value.message


def test_other_odd_characters_are_kept():
    """Controls, noncharacters, direction marks: as they came."""
    text = "a\x01\x1b\x9f\ufffe\u202e\u200b\U000e0041\r\nb"

    assert admit(Draft(text), NOW).text == text


@each_row(
    ("alias", "layer"),
    [
        ("why", "goal"),
        ("Background", "context"),
        ("mood", "emotion"),
        ("tried", "implementation"),
        ("pitfalls", "caveat"),
        ("decision", "learning"),
        (" caveat ", "caveat"),
    ],
)
def test_layers_go_by_many_names(alias, layer):
    """People call them what they like."""
    assert admit(Draft("a", layer=alias), NOW).layer == layer


def test_every_layer_is_its_own_name():
    """And no alias leads to two of them."""
    assert all(find_layer(layer) == layer for layer in LAYERS)
    aliases = [alias for names in LAYER_ALIASES.values() for alias in names]
    assert len(aliases) == len({*aliases, *LAYERS}) - len(LAYERS)


def test_an_unknown_layer_is_answered_with_the_known_ones():
    """So that the next try succeeds."""
    with pytest.raises(Refused) as caught:
        admit(Draft("a", layer="vibes"), NOW)

    assert all(layer in caught.value.remedy for layer in LAYERS)


def test_fields_come_out_in_one_shape():
    """Trimmed, tuples, moments in UTC; blank fields are absent."""
    draft = Draft(
        "a",
        topic="  ops ",
        speaker=" ",
        tags=["x"],
        occurred_at=datetime(2026, 1, 1),  # noqa: DTZ001
        valid_from="2026-01-02",
    )

    shaped = admit(draft, NOW)

    assert (shaped.topic, shaped.speaker, shaped.tags) == ("ops", None, ("x",))
    assert shaped.occurred_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert shaped.valid_from == datetime(2026, 1, 2, tzinfo=UTC)


def test_a_frozen_mapping_is_a_mapping():
    """Metadata need not be a dict."""
    assert admit(Draft("a", metadata=MappingProxyType({"a": (1, 2)})), NOW)


@each_row(
    ("source_class", "asked", "given"),
    [
        ("owner", None, 3),
        ("user", None, 2),
        ("agent", None, 2),
        ("tool", None, 1),
        ("import", None, 1),
        ("web", None, 0),
        ("unknown", None, 0),
        ("user", 3, 3),
        ("owner", 0, 0),
        ("agent", 3, 2),
        ("agent", 1, 1),
        ("web", 3, 0),
        ("import", 2, 1),
    ],
)
def test_trust_is_bounded_by_the_source(source_class, asked, given):
    """Only people may claim more than their class gives."""
    assert trust_of(Draft("a", source_class=source_class, trust=asked)) == given


def test_there_is_a_ceiling_for_every_class():
    """Nothing can come from nowhere."""
    people = {"owner", "user", "agent", "tool", "import", "web", "unknown"}
    assert set(TRUST_CEILING) == people | {"derived"}


def test_a_blank_layer_is_no_layer():
    """Like every other blank field."""
    assert admit(Draft("a", layer=" "), NOW).layer is None


def test_limits_are_checked_before_anything_expensive():
    """A thousand oversized drafts cost nearly nothing."""
    huge = Draft("password=" * 1_000_000)
    began = time.process_time()
    for _ in range(500):
        with pytest.raises(TooLarge):
            admit(huge, NOW)

    assert time.process_time() - began < 60
