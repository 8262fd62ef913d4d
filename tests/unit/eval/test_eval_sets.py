"""Several data sets in one run: finding, choosing, storing and comparing them."""

from __future__ import annotations

import copy
import gzip
import json

import pytest

from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.eval.case import Case, Dataset, Question, neutral_id
from bethink.eval.datasets import (
    OWN_SETS,
    DatasetOptions,
    find_datasets,
    open_dataset,
    select_datasets,
)
from bethink.eval.metrics import newer_first
from bethink.eval.report import build_report, combine_reports, compare_reports
from bethink.eval.runner import Judged, RunPlan, run_evaluation
from bethink.eval.spaces import EmbeddingCache, SpaceProvider
from bethink.eval.tables import headline, how_asked, report_tables, unresolved_lines
from bethink.model import Draft
from bethink.models import open_embedder
from bethink.retrieval.profile import load_profile
from rows import each_row

PLAIN = {"default": load_profile("default")}
MEMORIES = [
    {"id": "m1", "text": "The kite is red", "kind": "fact"},
    {"id": "m2", "text": "The kite is green now", "occurred_at": "2026-05-01T10:00:00Z"},
    {"id": "m3", "text": "Bread takes twelve hours"},
]
QUESTIONS = [
    {"id": "q1", "question": "which colour is the kite?", "type": "current",
     "relevant": ["m2"], "outdated": ["m1"]},
    {"id": "q2", "question": "how long does bread take?", "type": "direct", "relevant": ["m3"]},
    {"id": "q3", "question": "who is the mayor of Lisbon?", "type": "absent-far", "relevant": []},
]  # fmt: skip
TURNS = [
    {"id": "t1", "text": "Hi there Bo", "speaker": "Ada", "session": "s1", "seq": 0,
     "occurred_at": "2024-01-01T10:00:00Z"},
    {"id": "t3", "text": "...", "speaker": "Bo", "session": "s1", "seq": 2},
    {"id": "t2", "text": "My cat is called Minka", "speaker": "Bo", "session": "s1", "seq": 1,
     "occurred_at": "2024-01-01T10:01:00Z"},
]  # fmt: skip
ASKED = [{"id": "1", "question": "what is Bo's cat called?", "relevant": ["t2"], "type": "single",
          "asked_at": "2024-02-01T10:00:00Z"}]  # fmt: skip


def lines(records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def data(tmp_path):
    """A folder as people keep them: sets of several formats side by side."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for store in ("home", "work"):
        (notes / f"{store}.jsonl").write_text(lines(MEMORIES))
        (notes / f"{store}.questions.jsonl").write_text(lines(QUESTIONS))
    for name in ("chat-1", "chat-2"):
        folder = tmp_path / "more" / name
        folder.mkdir(parents=True)
        (folder / "memories.jsonl.gz").write_bytes(gzip.compress(lines(TURNS).encode()))
        (folder / "questions.jsonl.gz").write_bytes(gzip.compress(lines(ASKED).encode()))
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    (beir / "corpus.jsonl").write_text('{"_id": "d", "title": "", "text": "A text"}\n')
    (beir / "queries.jsonl").write_text('{"_id": "q", "text": "text?"}\n')
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    (tmp_path / "README.md").write_text("no data")
    return tmp_path


def shelf() -> SpaceProvider:
    return SpaceProvider(Settings(), in_memory=True)


def measured(folder, **plan) -> dict:
    datasets = find_datasets([folder / "notes", folder / "more"], DatasetOptions())
    return combine_reports(
        [build_report(run_evaluation(one, PLAIN, RunPlan(**plan), shelf())) for one in datasets]
    )


def test_every_set_in_a_folder_is_found_by_its_content(data):
    """Stores of one folder are one set; a folder of two files is one; BEIR is told by qrels."""
    found = {dataset.label: dataset for dataset in find_datasets([data], DatasetOptions())}

    assert sorted(found) == ["beir-beir-test", "chat-1", "chat-2", "notes"]
    assert [case.name for case in found["notes"].cases()] == ["home", "work"]
    assert found["chat-1"].kind == found["chat-2"].kind


def test_turns_are_stored_as_turns_and_notes_as_notes(data):
    """What has a session was said in a conversation; a turn without a word is left out."""
    notes, chat = (
        next(open_dataset("notes", DatasetOptions(path=data / place)).cases())
        for place in ("notes", "more/chat-1")
    )

    assert {draft.level for draft in notes.drafts} == {"item"}
    assert {draft.level for draft in chat.drafts} == {"raw"}
    assert chat.refs == ("t1", "t2")
    assert chat.drafts[1].speaker == "Bo"
    assert chat.questions[0].now is not None
    assert notes.questions[0].outdated == {"m1"}
    assert [question.category for question in notes.questions] == [
        "current",
        "direct",
        "absent-far",
    ]


def test_sets_are_chosen_by_name(data):
    """Patterns choose, and a pattern without any set says what there is."""
    found = find_datasets([data], DatasetOptions())

    assert [one.label for one in select_datasets(found, ["chat-*"])] == ["chat-1", "chat-2"]
    with pytest.raises(Refused, match="no data set is called") as caught:
        select_datasets(found, ["chats"])
    assert "chat-1" in caught.value.remedy


def test_paths_without_a_set_are_refused(data, tmp_path):
    """A missing path, a folder without data, and the same set twice are named."""
    (tmp_path / "empty").mkdir()

    for places, told in (
        (["gone"], "there is no data set, file or folder"),
        (["empty"], "contains no data set"),
        (["notes", "notes"], "two data sets are called 'notes'"),
    ):
        with pytest.raises(Refused, match=told):
            find_datasets([tmp_path / place for place in places], DatasetOptions())


def test_longmemeval_is_measured_by_turns_and_by_sessions(tmp_path):
    """Both figures are published; a level that was asked for is the only one."""
    record = {"question_id": "q", "question_type": "x", "haystack_dates": []}
    (tmp_path / "data.json").write_text(json.dumps([record]))

    both = find_datasets([tmp_path], DatasetOptions())
    one = find_datasets([tmp_path], DatasetOptions(level="session"))

    assert [dataset.level for dataset in both] == ["turn", "session"]
    assert [dataset.level for dataset in one] == ["session"]


def test_the_tables_have_a_row_for_every_set_and_type(data):
    """Absent types have no quality, but shares of found, unsure and silent."""
    document = measured(data, baselines=True)
    tables = {table.title: table for table in report_tables(document)}

    assert [row[:2] for row in tables["Quality by set and type"].rows] == [
        ("notes", "all"), ("", "current"), ("", "direct"), ("", "absent-far"),
        ("chat-1", "all"), ("chat-2", "all"),
    ]  # fmt: skip
    assert (
        "as a default caller gets it (k = 40, 2,000 tokens)"
        in tables["Quality by set and type"].note
    )
    for table in tables.values():
        assert {len(row) for row in table.rows} <= {len(table.heads)}
    assert "3 data sets" in headline(document)


def test_a_baseline_that_is_ahead_is_marked(data):
    """The ratio is to the better of BM25 and cosine; behind either is said."""
    document = measured(data, baselines=True)
    row = document["sets"][0]["profiles"][0]["types"][0]
    row["quality"]["recall@10"] = 0.1

    table = next(one for one in report_tables(document) if one.title == "Against plain baselines")

    assert table.rows[0][-1].startswith("behind: recall@10")
    assert table.rows[0][table.heads.index(">ratio")] == "0.10"


def test_other_limits_than_a_callers_are_told(data):
    """A table that does not show what a default caller gets says so."""
    (one,) = find_datasets([data / "more" / "chat-1"], DatasetOptions())
    plan = RunPlan(k=50, max_tokens=9000, ungated=True)

    report = build_report(run_evaluation(one, PLAIN, plan, shelf()))

    assert how_asked(report) == (
        "not what a default caller gets: k = 50, 9,000 tokens, before the gate"
    )


def test_sets_are_compared_with_their_own_earlier_figures(data):
    """Each set with itself; a document that shares none is refused."""
    document = measured(data)

    found = compare_reports(document, document, file="f", tolerance=0.0)

    assert found["worse"] == 0
    assert {row["profile"] for row in found["rows"]} == {
        "chat-1: default", "chat-2: default", "notes: default",
    }  # fmt: skip
    other = copy.deepcopy(document)
    for report in other["sets"]:
        report["measured_on"]["name"] = "another"
    with pytest.raises(Refused, match="shares no data set"):
        compare_reports(document, other, file="f", tolerance=0.0)


@each_row(("ranked", "value"), [("xnyo", 1.0), ("on", 0.0), ("n", 1.0), ("xy", 0.0), ("", 0.0)])
def test_newer_first_is_above_every_outdated_one(ranked, value):
    """n corrects o: found and above it. What was not found does not come first."""
    assert newer_first(Judged("q", "", {"n": 1.0}, tuple(ranked), frozenset("o"))) == value


def test_a_text_over_the_limit_is_stored_in_parts_and_named():
    """The run goes on; finding any part of it is finding it, and duplicates still count."""
    long = " ".join(f"sentence {n} is about nothing in particular." for n in range(2400))
    texts = {
        "long": f"The kite is red. {long}",
        "boat": "The boat is blue",
        "twin": "The boat is blue",
    }
    case = Case(
        name="c",
        questions=(
            Question("q1", "which colour is the kite?", {"long": 1.0}),
            Question("q2", "which colour is the boat?", {"twin": 1.0}),
        ),
        drafts=tuple(Draft(text, id=neutral_id(ref)) for ref, text in texts.items()),
        refs=tuple(texts),
        units=tuple(texts),
    )

    run = run_evaluation(Dataset("d", "d", lambda: iter([case])), PLAIN, RunPlan(), shelf())
    report = build_report(run)

    assert run.split == ["long"]
    assert report["profiles"][0]["quality"]["all"]["recall@10"]["value"] == 1.0
    assert any("stored in parts" in line and "long" in line for line in unresolved_lines(report))


def test_a_text_is_embedded_once_for_ever(tmp_path):
    """A second run reads what the first has made."""
    embedder = open_embedder("hash")
    calls = []

    def counted(texts):
        calls.append(list(texts))
        return embedder.embed(texts)

    made = EmbeddingCache(tmp_path / "e", counted)(["kite", "boat", "kite"])
    again = EmbeddingCache(tmp_path / "e", counted)(["boat", "bread"])

    assert calls == [["kite", "boat"], ["bread"]]
    assert (again[0].vector == made[1].vector).all()
    assert again[0].tokens == made[1].tokens


def test_embeddings_of_earlier_weights_are_removed(tmp_path):
    """One file for each model: what its earlier version made is of no use."""
    assert SpaceProvider(Settings(), embedder="hash", cache_folder=tmp_path).embedder is not None
    (made,) = tmp_path.glob("*.embeddings")
    old = made.with_name(f"{made.name.rsplit('.', 2)[0]}.0123456789ab.embeddings")
    made.rename(old)
    other = tmp_path / "another.0123456789ab.embeddings"
    other.write_bytes(b"")

    assert SpaceProvider(Settings(), embedder="hash", cache_folder=tmp_path).embedder is not None

    assert not old.exists()
    assert other.exists()


def test_what_comes_with_bethink_needs_no_path():
    """The sets that are measured without arguments are there, with their questions."""
    counts = {}
    for name in OWN_SETS:
        cases = list(open_dataset(name, DatasetOptions()).cases())
        counts[name] = [(len(case.drafts), len(case.questions)) for case in cases]

    assert counts == {"notes": [(70, 80), (80, 80), (80, 80)], "builtin": [(136, 103)]}
