"""Laws of the write walk."""

from __future__ import annotations

import io
import math
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.core.characters import has_substance
from bethink.core.ids import IdGenerator
from bethink.core.json_values import parse_strict_json
from bethink.core.words import fold, jaccard
from bethink.errors import Refused
from bethink.ingest.admission import WriteContext, admit
from bethink.ingest.deduplication import shingles_of
from bethink.ingest.files import read_drafts
from bethink.ingest.pipeline import remember
from bethink.model import Draft
from bethink.models.name_model import name_model
from bethink.store.sqlite import SqliteStore

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=5),
    st.lists(st.text(max_size=5), max_size=3),
    st.datetimes(),
    st.dictionaries(st.text(max_size=3), st.floats(), max_size=2),
)
VOCABULARY = "the deploy key lives in vault B never 3 4 Ana Ben , . ! ? 東京 café"
WORDS = st.sampled_from(VOCABULARY.split())
SENTENCES = st.lists(WORDS, min_size=1, max_size=8).map(" ".join).filter(has_substance)
FIELDS = sorted(set(Draft._fields) - {"text"})


@given(st.text(max_size=20), st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=4))
def test_a_draft_is_admitted_or_refused(text, about):
    """Whatever is put into its fields; never another error."""
    try:
        shaped = admit(Draft(text, **about), NOW)
    except Refused as refused:
        assert refused.message  # noqa: PT017
    else:
        assert shaped.text == text
        assert 0 <= shaped.importance <= 1
        assert math.isfinite(shaped.emotion)


@settings(max_examples=30)
@given(st.lists(SENTENCES, min_size=1, max_size=12))
def test_every_memory_is_stored_once_and_comes_back(texts):
    """One item for each way of folding, its text as it first came; again: nothing new."""
    store = SqliteStore.open(None, space="laws")
    ctx = WriteContext(store, None, NOW, "tester", IdGenerator(), find_names=name_model.find)

    answers = remember([Draft(text) for text in texts], ctx)
    again = remember([Draft(text) for text in texts], ctx)

    first = {}
    for text in texts:
        first.setdefault(fold(text), text)
    assert store.admin.count() == len(first) == sum(answer.status == "stored" for answer in answers)
    items = store.items.get([answer.id for answer in answers])
    assert [items[answer.id].text for answer in answers] == [first[fold(text)] for text in texts]
    assert [(answer.status, answer.id) for answer in again] == [
        ("duplicate", a.id) for a in answers
    ]
    store.close()


@settings(max_examples=30)
@given(
    st.lists(st.tuples(SENTENCES, st.sampled_from(["a", "b", None])), max_size=10),
    st.integers(1, 4),
)
def test_conversations_are_numbered_without_gaps(turns, size):
    """However the turns are cut into batches."""
    store = SqliteStore.open(None, space="laws")
    ctx = WriteContext(store, None, NOW, "tester", IdGenerator(), find_names=name_model.find)
    drafts = [Draft(text, session=session) for text, session in turns]

    answers = [
        a for at in range(0, len(drafts), size) for a in remember(drafts[at : at + size], ctx)
    ]

    items = store.items.get([answer.id for answer in answers])
    for session in ("a", "b"):
        numbers = [
            items[a.id].seq for a, d in zip(answers, drafts, strict=True) if d.session == session
        ]
        assert numbers == list(range(len(numbers)))
    store.close()


@given(SENTENCES, SENTENCES)
def test_similarity_is_symmetric_and_one_only_for_equals(one, other):
    """A share between nothing and all."""
    a, b = shingles_of(fold(one)), shingles_of(fold(other))

    assert jaccard(a, b) == jaccard(b, a)
    assert 0 <= jaccard(a, b) <= 1
    assert jaccard(a, a) == 1


@given(st.binary(max_size=200), st.sampled_from(["jsonl", "text", "lines"]))
def test_any_bytes_can_be_read(raw, form):
    """Drafts and refusals, nothing else; a damaged archive is refused as a whole."""
    try:
        lines = list(read_drafts(io.BytesIO(raw), form))
    except Refused:
        assert raw[:2] == b"\x1f\x8b"
    else:
        assert all(isinstance(found, Draft | Refused) for _, found in lines)


@given(st.text('{}[]",:0123456789.eE-+ntfalsru\\', max_size=60))
def test_json_is_read_or_refused(text):
    """Never another error."""
    try:
        parse_strict_json(text)
    except Refused as refused:
        assert refused.message  # noqa: PT017
