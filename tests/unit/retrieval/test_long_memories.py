"""Long memories: searched by passage, shown by their best passage, paid for as shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink import Memory
from bethink.core.passages import split_passages
from bethink.errors import ModelError
from bethink.integrations.hits import RecallOptions, hit_metadata
from bethink.model import Candidate, Draft, Query
from bethink.models import open_embedder
from bethink.ports import Budget as LlmBudget
from bethink.ports import Embedder
from bethink.render.wire import recall_json
from bethink.retrieval.context import Context
from bethink.retrieval.deep.engine import judge_by_model
from bethink.retrieval.stages.assemble import token_cost
from bethink.retrieval.stages.gate import Threshold
from bethink.server.tools.catalog import RECALL
from bethink.server.tools.tool import Call, validate_arguments
from bethink.store.sql.search.vector_index import append_vectors
from fallible import Replaced
from rows import each_row

FACT = "The spare key of the boathouse hangs behind the red fuse box."
BY_WORDS = "Where does the spare key of the boathouse hang?"
BY_MEANING = "How do I get into the shed by the lake where the rowing boats are?"


def filler(number: int, words: int) -> str:
    """Plain sentences about nothing that is asked, so many words of them."""
    sentences = []
    count = 0
    while count < words:
        n = number * 1000 + count
        sentence = f"Invoice {n} was sent to customer {n % 97} and paid within {n % 29} days."
        sentences.append(sentence)
        count += len(sentence.split())
    return " ".join(sentences)


LONG = f"{filler(0, 690)} {FACT}"


@pytest.fixture(scope="module")
def memory(embedder: Embedder) -> Iterator[Memory]:
    """A 700-word note whose last sentence tells something, among 200 short ones."""
    with Memory.open(":memory:", embedder=embedder) as opened:
        short = [Draft(f"{filler(n, 12)} It was filed in folder {n}.") for n in range(1, 200)]
        opened.remember_many([Draft(LONG, id="long"), *short])
        yield opened


@pytest.mark.parametrize("question", [BY_WORDS, BY_MEANING])
def test_the_last_sentence_of_a_long_note_is_found_and_shown(memory, question):
    """By its words and by its meaning; what is shown is the passage that tells it."""
    answer = memory.recall(question, profile=memory.profile().without("gate"))

    best = answer.hits[0]
    assert best.item.id == "long"
    assert best.item.text == LONG
    assert FACT in best.text
    assert len(best.text.split()) <= 160
    assert best.marked_text == f"… {best.text}"


def test_a_long_note_is_found_by_words_without_an_embedder():
    """Its best window of words is scored, not the whole."""
    with Memory.open(":memory:", embedder="none") as opened:
        opened.remember(LONG, id="long")
        opened.remember_many([Draft(f"The key of room {n} is spare.") for n in range(60)])
        best = opened.recall(BY_WORDS).hits[0]

    assert best.item.id == "long"
    assert FACT in best.text


def test_the_only_memory_is_kept_though_penalties_leave_it_nothing(embedder):
    """A threshold that is a share of the best says nothing where the best is negative."""
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember(LONG, id="long")
        ctx = Context(Query("x", opened.session.clock()), opened.store)
        low = Candidate(opened.get("long"), -0.2)

        assert Threshold(min_share=0.4)((low, low._replace(score=-0.3)), ctx) == (low,)
        assert Threshold(min_score=0.1)((low,), ctx) == ()


def test_the_whole_is_shown_on_request(memory):
    """Then the budget counts all of it."""
    part = memory.recall(BY_WORDS, k=1)
    whole = memory.recall(BY_WORDS, k=1, whole=True)

    assert whole.hits[0].passage is None
    assert whole.hits[0].text == whole.hits[0].marked_text == LONG
    assert whole.page.tokens > 4 * part.page.tokens


def test_a_short_memory_has_no_passage(memory):
    """It is shown as it is."""
    hit = next(hit for hit in memory.recall("invoice folder 7").hits if hit.item.id != "long")

    assert hit.passage is None
    assert hit.text == hit.marked_text == hit.item.text


def test_json_says_which_part_it_shows(memory):
    """The text is the passage, with its place and both lengths; null where it is all."""
    answer = memory.recall(BY_WORDS, k=1)
    shown = recall_json(answer)["items"][0]

    start, end = shown["passage"]["start"], shown["passage"]["end"]
    assert shown["text"] == LONG[start:end] == answer.hits[0].text
    assert shown["passage"]["tokens"] < shown["passage"]["of_tokens"] == shown["tokens"]
    assert recall_json(memory.recall(BY_WORDS, k=1, whole=True))["items"][0]["passage"] is None


def test_an_agent_sees_the_passage_and_how_to_get_the_rest(memory):
    """In words and in data; ``whole`` gives all."""

    def ask(**arguments):
        validated = validate_arguments(
            {"query": BY_WORDS, "k": 1, **arguments}, RECALL.input_schema
        )
        return RECALL(Call(memory, validated, "", "function"))

    part, whole = ask(), ask(whole=True, max_tokens=9000)

    shown = part.content["memories"][0]
    assert FACT in shown["text"]
    assert shown["passage"]["of_tokens"] > shown["passage"]["tokens"]
    assert f"… {shown['text']}" in part.text
    assert "a passage, " in part.text
    assert "whole: true" in part.text
    assert whole.content["memories"][0]["text"] == LONG
    assert whole.content["memories"][0]["passage"] is None
    assert "whole: true" not in whole.text


def test_long_notes_share_the_budget_by_what_is_shown(embedder):
    """Twelve long notes of one subject fit into the usual 2,000 tokens."""
    subject = "The lighthouse keeper logged the storm."
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember_many(
            [
                Draft(f"{filler(n, 300)} {subject} Wave {n}. {filler(n + 50, 300)}")
                for n in range(12)
            ]
        )
        answer = opened.recall("lighthouse keeper storm log")

    assert len(answer.hits) == 12
    assert all(subject in hit.text for hit in answer.hits)
    assert sum(map(token_cost, answer.hits)) == answer.page.tokens <= 2000


@given(
    budget=st.integers(20, 3000),
    k=st.integers(1, 12),
    question=st.sampled_from((BY_WORDS, "invoice paid days", "customer 12")),
)
def test_what_is_shown_never_exceeds_the_budget(memory, budget, k, question):
    """Whatever is asked; only a single hit may, because one is always returned."""
    answer = memory.recall(question, k=k, max_tokens=budget)

    spent = sum(map(token_cost, answer.hits))
    assert spent <= budget or len(answer.hits) == 1
    assert spent == answer.page.tokens
    for hit in answer.hits:
        assert (hit.passage is None) == (not split_passages(hit.item.text))
        assert hit.text in hit.item.text


def forget_passages(memory: Memory, embedder: Embedder) -> None:
    """Bring the long note to the state in which an older release left it."""
    with memory.store._connections.write_transaction() as db:
        rid = db.execute("SELECT rid FROM item WHERE id = 'long'").get
        append_vectors(db, embedder.model, [(rid, embedder.embed([LONG])[0])])
        db.execute("UPDATE vector SET passages = NULL WHERE key = ?", (rid,))


def test_a_memory_of_an_older_release_is_found_and_reindexed(embedder):
    """It keeps its one vector until a reindex gives it passages; a restore changes nothing."""
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember_many([Draft(LONG, id="long"), *map(Draft, [filler(9, 12), "A short one"])])
        forget_passages(opened, embedder)
        opened.forget("long")
        opened.restore("long")

        before = opened.recall(BY_WORDS, profile=opened.profile().without("gate")).hits
        assert any(FACT in hit.text for hit in before if hit.item.id == "long")
        assert opened.stats()["passages"] == 0
        assert [item.id for item in opened.store.vectors.unembedded(embedder.model, 9)] == ["long"]
        assert opened.reindex() == 1
        assert opened.stats()["passages"] == len(split_passages(LONG))
        assert all(check.ok for check in opened.doctor())


def test_a_corrected_note_is_searched_by_its_new_passages(embedder):
    """What the old ones told is found only as of then."""
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember(LONG, id="long")
        opened.update("long", text=LONG.replace(FACT, "The harvest festival was moved to October."))
        vectors = opened.store.vectors.embeddings(["long"], embedder.model)["long"]

        shown = opened.recall("harvest festival", k=1).hits[0].text
        assert "harvest festival" in shown
        assert len(vectors.passages) == len(split_passages(opened.get("long").text))


def test_a_restored_note_has_its_passages_again(embedder):
    """Forgetting keeps them for the past, restoring copies them."""
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember(LONG, id="long")
        opened.forget("long")
        opened.restore("long")

        vectors = opened.store.vectors.embeddings(["long"], embedder.model)["long"]
        assert len(vectors.passages) == len(split_passages(LONG))
        assert FACT in opened.recall(BY_WORDS).hits[0].text


def test_the_speaker_stands_before_every_passage():
    """A passage means what it says and who says it; all are embedded in one call."""
    inner = open_embedder("hash")
    calls: list[list[str]] = []

    def embed(texts):
        calls.append(list(texts))
        return inner.embed(texts)

    with Memory.open(":memory:", embedder=Replaced(inner, embed=embed)) as opened:
        opened.remember_many([Draft(LONG, speaker="Ana"), Draft("Short", speaker="Ben")])

    spans = split_passages(LONG)
    assert calls[0] == [*(f"Ana: {LONG[start:end]}" for start, end in spans), "Ben: Short"]


def test_a_reranker_reads_the_best_passage(memory):
    """It reads only so much of a text."""
    read: list[str] = []

    def rerank(query, texts):
        read.extend(texts)
        return [0.5] * len(texts)

    memory.recall(BY_WORDS, reranker=rerank)

    assert any(FACT in text for text in read)
    assert max(len(text.split()) for text in read) <= 160


@each_row(
    "damage",
    [
        "DELETE FROM vector WHERE key = (SELECT max(key) FROM vector)",
        "DELETE FROM vector WHERE key = rid",
        "UPDATE model SET passages = passages + 1",
        "UPDATE vector SET passages = passages + 1 WHERE key = rid",
    ],
    ids=["a passage", "the whole", "their number", "their number in the whole"],
)
def test_missing_passages_are_noticed_and_made_again(embedder, damage):
    """The doctor takes what is left away, and a reindex makes all of it anew."""
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember(LONG, id="long")
        with opened.store._connections.write_transaction() as db:
            db.execute(damage)

        findings = {check.name: check.ok for check in opened.doctor()}
        assert not findings["vectors"]
        assert all(check.ok or check.repaired for check in opened.doctor(repair=True))
        opened.reindex()
        assert all(check.ok for check in opened.doctor())
        assert opened.stats()["passages"] == len(split_passages(LONG))
        assert FACT in opened.recall(BY_WORDS).hits[0].text


def test_an_export_brings_the_passages_along(embedder):
    """They are made from the text when it is imported."""
    with (
        Memory.open(":memory:", embedder=embedder) as opened,
        Memory.open(":memory:", embedder=embedder) as other,
    ):
        opened.remember(LONG, id="long")
        other.import_(list(opened.export()))

        assert other.stats()["passages"] == len(split_passages(LONG))
        assert FACT in other.recall(BY_WORDS).hits[0].text


def test_an_integration_gives_the_passage_unless_asked_for_the_whole(memory):
    """What it gives counts in the budget, so it is what is shown."""
    part = RecallOptions(k=1).recall(memory, BY_WORDS)
    whole = RecallOptions(k=1, whole=True).recall(memory, BY_WORDS)

    metadata = hit_metadata(part.hits[0], part)
    assert metadata["passage"]["start"] == LONG.index(part.hits[0].text)
    assert hit_metadata(whole.hits[0], whole)["passage"] is None


def test_a_deep_recall_shows_a_model_the_passage(memory):
    """A prompt holds only so much of a text: its beginning would not tell anything."""
    asked: list[str] = []

    class Model:
        name = "test"

        def complete(self, prompt, *, budget):
            asked.append(prompt.user)
            raise ModelError("no answer")

    answer = memory.recall(BY_WORDS, k=3)
    ctx = Context(answer.query, memory.store, memory.embedder)
    with pytest.raises(ModelError):
        judge_by_model(Model(), answer.hits, (), ctx, budget=LlmBudget())

    assert FACT in asked[0]
    assert "Invoice 0 was" not in asked[0]
