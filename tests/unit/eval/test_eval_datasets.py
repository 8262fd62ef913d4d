"""Reading data sets: what becomes a memory, what becomes a question."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest

from bethink.errors import Refused
from bethink.eval.case import neutral_id
from bethink.eval.datasets import DatasetOptions, open_dataset
from rows import each_row

LOCOMO = [
    {
        "sample_id": "conv-x",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Bo",
            "session_2_date_time": "12:09 am on 13 September, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "We moved to the lake."}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I have a new kite."},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a red boat"},
            ],
        },
        "qa": [
            {"question": "What is new?", "evidence": ["D1:1"], "category": 4},
            {"question": "Two places?", "evidence": ["D1:2; D2:1", "D:1:1"], "category": 1},
            {"question": "Nothing to go by", "evidence": ["D"], "category": 3},
            {"question": "A turn that is not there", "evidence": ["D9:9"], "category": 2},
        ],
    }
]


def haystack(name: str, kind: str = "multi-session") -> dict:
    return {
        "question_id": name,
        "question_type": kind,
        "question": "How many kites?",
        "question_date": "2023/05/30 (Tue) 16:40",
        "haystack_dates": ["2023/05/20 (Sat) 00:29", "2023/05/21 (Sun) 10:00"],
        "haystack_session_ids": ["filler", "answer_1"],
        "haystack_sessions": [
            [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
            [
                {"role": "user", "content": "I own a kite", "has_answer": True},
                {"role": "assistant", "content": "One kite then", "has_answer": True},
                {"role": "user", "content": "  "},
            ],
        ],
        "answer_session_ids": ["answer_1"],
    }


def only(dataset):
    (case,) = dataset.cases()
    return case


@pytest.fixture
def locomo(tmp_path):
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps(LOCOMO))
    return path


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_locomo_turns_keep_speaker_order_and_session_date(locomo):
    """Sessions come in order of their number; each turn has who said it and when."""
    case = only(open_dataset("locomo", DatasetOptions(path=locomo)))

    assert case.refs == ("conv-x/D1:1", "conv-x/D1:2", "conv-x/D2:1")
    assert [draft.speaker for draft in case.drafts] == ["Ada", "Bo", "Bo"]
    assert case.drafts[0].occurred_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert case.drafts[2].occurred_at == datetime(2023, 9, 13, 0, 9, tzinfo=UTC)
    assert {draft.level for draft in case.drafts} == {"raw"}
    assert [draft.seq for draft in case.drafts] == [0, 1, 0]


def test_locomo_captions_are_read(locomo):
    """A shared picture's caption is part of the text."""
    case = only(open_dataset("locomo", DatasetOptions(path=locomo)))

    assert case.drafts[1].text == "Look! (shares a red boat)"


def test_locomo_evidence_is_normalised_and_what_cannot_be_resolved_is_counted(locomo):
    """Several turns in one string and a stray colon are read; the rest is skipped."""
    case = only(open_dataset("locomo", DatasetOptions(path=locomo)))

    assert [sorted(question.relevant) for question in case.questions] == [
        ["conv-x/D1:1"],
        ["conv-x/D1:1", "conv-x/D1:2", "conv-x/D2:1"],
    ]
    assert [question.category for question in case.questions] == ["single-hop", "multi-hop"]
    assert case.skipped == 2


def test_locomo_at_session_level_counts_sessions(locomo):
    """Units are sessions, for the memories and for the answers."""
    case = only(open_dataset("locomo", DatasetOptions(path=locomo, level="session")))

    assert case.units == ("conv-x/D1", "conv-x/D1", "conv-x/D2")
    assert sorted(case.questions[1].relevant) == ["conv-x/D1", "conv-x/D2"]


def test_ids_and_sessions_of_the_data_set_are_not_told_to_the_engine(tmp_path):
    """A session called answer_1 must not be recognisable: ties are broken by id."""
    path = written(tmp_path / "s.jsonl", [haystack("q1")])

    case = only(open_dataset("longmemeval", DatasetOptions(path=path)))

    assert all("answer" not in f"{draft.id} {draft.session}" for draft in case.drafts)
    assert case.drafts[0].id == neutral_id("filler:0")


def test_longmemeval_official_keeps_user_turns_and_drops_abstention(tmp_path):
    """Assistant turns are no units; questions without an answer are not asked."""
    path = written(tmp_path / "s.jsonl", [haystack("q1"), haystack("q2_abs")])

    asked, dropped = open_dataset("longmemeval", DatasetOptions(path=path)).cases()

    assert [draft.text for draft in asked.drafts] == ["hello", "I own a kite"]
    assert dict(asked.questions[0].relevant) == {"answer_1:0": 1.0}
    assert asked.questions[0].now == datetime(2023, 5, 30, 16, 40, tzinfo=UTC)
    assert (dropped.questions, dropped.skipped) == ((), 1)


def test_longmemeval_all_text_keeps_everything(tmp_path):
    """Both sides are stored; a question without an answer stays, with no unit."""
    path = written(tmp_path / "s.jsonl", [haystack("q1"), haystack("q2_abs")])

    asked, unanswerable = open_dataset(
        "longmemeval", DatasetOptions(path=path, protocol="all")
    ).cases()

    assert len(asked.drafts) == 4
    assert sorted(asked.questions[0].relevant) == ["answer_1:0", "answer_1:1"]
    assert not unanswerable.questions[0].answerable


def test_gzipped_files_and_folders_are_read(tmp_path):
    """A packed file reads like an unpacked one, and a folder stands for the file in it."""
    (tmp_path / "locomo.json.gz").write_bytes(gzip.compress(json.dumps(LOCOMO).encode()))

    assert only(open_dataset("locomo", DatasetOptions(path=tmp_path))).name == "conv-x"


def test_beir_folders_with_grades(tmp_path):
    """Titles belong to the text, grades become gains, unjudged queries are left out."""
    written(tmp_path / "corpus.jsonl", [
        {"_id": "d1", "title": "Kites", "text": "fly"}, {"_id": "d2", "title": "", "text": "sink"},
    ])  # fmt: skip
    written(tmp_path / "queries.jsonl", [
        {"_id": "q1", "text": "flying"}, {"_id": "q2", "text": "unjudged"},
    ])  # fmt: skip
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq1\tgone\t1\n"
    )

    case = only(open_dataset("beir", DatasetOptions(path=tmp_path)))

    assert [draft.text for draft in case.drafts] == ["Kites\nfly", "sink"]
    assert [(q.key, dict(q.relevant)) for q in case.questions] == [("q1", {"d1": 2.0})]


def test_own_questions_with_a_corpus(tmp_path):
    """Memories and questions from two files; times are read as people write them."""
    corpus = written(tmp_path / "m.jsonl", [
        {"id": "a", "text": "The kite is red", "occurred_at": "2026-01-05"}, {"text": "no id"},
    ])  # fmt: skip
    asked = written(tmp_path / "q.jsonl", [
        {"query": "colour?", "relevant": ["a"], "now": "2026-02-01", "category": "colour"},
    ])  # fmt: skip

    case = only(open_dataset("jsonl", DatasetOptions(path=asked, corpus=corpus)))

    assert case.refs == ("a", "2")
    assert case.drafts[0].occurred_at == datetime(2026, 1, 5, tzinfo=UTC)
    assert case.questions[0].now == datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["locomo", "longmemeval", "beir"])
def test_missing_data_says_where_it_is_published(name, tmp_path):
    """Nothing is downloaded: the message names the project that publishes the data."""
    with pytest.raises(Refused) as caught:
        open_dataset(name, DatasetOptions(path=tmp_path / "nowhere"))

    assert "published as" in caught.value.remedy
    assert "http" not in caught.value.remedy


@pytest.mark.parametrize(
    ("content", "told"),
    [("{broken", "not valid JSON"), ("[1]", "expected an object"), ('{"a": 1}', "is missing")],
)
def test_bad_files_are_named_by_place(tmp_path, content, told):
    """A file that is not what it should be is refused by name and place."""
    path = tmp_path / "locomo10.json"
    path.write_text(content)

    with pytest.raises(Refused, match=told) as caught:
        list(open_dataset("locomo", DatasetOptions(path=path)).cases())

    assert "locomo10.json" in caught.value.message


@pytest.mark.parametrize("content", [b"\x1f\x8bnot really", b'[{"a": "\xff"}]', b'{"a": "\xff"}'])
def test_files_that_cannot_be_read_are_named(tmp_path, content):
    """Broken packing and broken encoding are refused by name."""
    path = tmp_path / "locomo10.json"
    path.write_bytes(content)

    with pytest.raises(Refused, match=r"cannot read .*locomo10\.json"):
        list(open_dataset("locomo", DatasetOptions(path=path)).cases())


def test_a_folder_without_the_data_says_what_it_looked_for(tmp_path):
    """The names that would have been taken, and who publishes them."""
    with pytest.raises(Refused, match="contains none of"):
        open_dataset("locomo", DatasetOptions(path=tmp_path))


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("locomo", {"session_1_date_time": "yesterday"}, "not a date as LoCoMo"),
        ("longmemeval", {"question_date": "yesterday"}, "not a date as LongMemEval"),
        ("longmemeval", {"haystack_dates": []}, "sessions, ids and dates differ"),
    ],
)
def test_dates_that_are_none_are_refused(tmp_path, name, change, told):
    """A data set that is not in its known form is not guessed at."""
    if name == "locomo":
        record = {**LOCOMO[0], "conversation": {**LOCOMO[0]["conversation"], **change}}
    else:
        record = {**haystack("q1"), **change}
    path = written(tmp_path / "locomo.jsonl", [record])

    with pytest.raises(Refused, match=told):
        list(open_dataset(name, DatasetOptions(path=path)).cases())


def without(record: dict, *path) -> dict:
    """A copy without what stands at a path."""
    copy = json.loads(json.dumps(record))
    at = copy
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return copy


@each_row(
    ("name", "record", "told"),
    [
        ("locomo", without(LOCOMO[0], "conversation", "session_1", 0, "dia_id"),
         r"\[0\]\.session_1\[0\]: the field 'dia_id' is missing"),
        ("locomo", without(LOCOMO[0], "conversation", "session_1", 1, "speaker"), "'speaker'"),
        ("locomo", without(LOCOMO[0], "qa", 1, "question"), r"qa\[1\]: the field 'question'"),
        ("locomo", {**LOCOMO[0], "qa": "none"}, "qa: expected a list, found text"),
        ("locomo", {**LOCOMO[0], "qa": [None]}, r"qa\[0\]: expected an object, found null"),
        ("locomo", {**LOCOMO[0], "conversation": []}, "conversation: expected an object"),
        *(("longmemeval", without(haystack("q"), gone), f"the field '{gone}' is missing")
          for gone in ("question", "question_type", "question_date", "answer_session_ids")),
        ("longmemeval", without(haystack("q"), "haystack_sessions", 0, 0, "content"),
         r"haystack_sessions\[0\]\[0\]: the field 'content' is missing"),
        ("longmemeval", {**haystack("q"), "haystack_sessions": [None, []]},
         r"haystack_sessions\[0\]: expected a list, found null"),
        ("longmemeval", {**haystack("q"), "haystack_sessions": [["hi"], []]},
         r"haystack_sessions\[0\]\[0\]: expected an object, found text"),
        ("longmemeval", {**haystack("q"), "question_date": "2023/02/30 (Thu) 16:40"}, "is not a valid date"),
    ],
)  # fmt: skip
def test_whatever_is_missing_is_named_by_place(tmp_path, name, record, told):
    """However deep it lies: a broken file is no bug of the program."""
    path = written(tmp_path / "locomo.jsonl", [record])

    with pytest.raises(Refused, match=told):
        list(open_dataset(name, DatasetOptions(path=path)).cases())


def test_a_category_nobody_knows_is_kept_as_it_is(tmp_path):
    """And a question without evidence is counted, not asked."""
    record = {**LOCOMO[0], "qa": [{**LOCOMO[0]["qa"][0], "category": "odd"}, {"question": "why?"}]}

    case = only(
        open_dataset("locomo", DatasetOptions(path=written(tmp_path / "locomo.jsonl", [record])))
    )

    assert [question.category for question in case.questions] == ["odd"]
    assert case.skipped == 1


@pytest.mark.parametrize(
    ("protocol", "expected"), [("official", ["answer_1"]), ("all", ["answer_1"])]
)
def test_longmemeval_at_session_level(tmp_path, protocol, expected):
    """The sessions that hold the evidence are the units."""
    path = written(tmp_path / "s.jsonl", [haystack("q1")])

    case = only(
        open_dataset("longmemeval", DatasetOptions(path=path, level="session", protocol=protocol))
    )

    assert sorted(case.questions[0].relevant) == expected
    assert set(case.units) == {"filler", "answer_1"}


def test_questions_only_the_assistant_answers_are_not_asked_officially(tmp_path):
    """Without a user turn as evidence there is nothing to find; a repeated session is told apart."""
    record = haystack("q1")
    record["haystack_sessions"][1][0].pop("has_answer")
    record["haystack_session_ids"] = ["answer_1", "answer_1"]
    path = written(tmp_path / "s.jsonl", [record])

    case = only(open_dataset("longmemeval", DatasetOptions(path=path)))

    assert case.questions == ()
    assert case.refs == ("answer_1:0", "answer_1#2:0")


def test_turns_of_punctuation_are_nothing_to_remember(tmp_path):
    """They are left out, as the write walk would refuse them."""
    record = json.loads(json.dumps(LOCOMO[0]))
    record["conversation"]["session_1"].append({"speaker": "Bo", "dia_id": "D1:3", "text": ";)"})
    path = written(tmp_path / "locomo.jsonl", [record])

    assert "conv-x/D1:3" not in only(open_dataset("locomo", DatasetOptions(path=path))).refs


def test_limits_take_the_first_cases(tmp_path):
    """--limit reads no further than it must."""
    path = written(tmp_path / "s.jsonl", [haystack("q1"), haystack("q2")])
    path.write_text(path.read_text() + "broken")

    dataset = open_dataset("longmemeval", DatasetOptions(path=path, limit=1))

    assert only(dataset).name == "q1"
    assert dataset.title.endswith("first 1")


@each_row(
    ("files", "told"),
    [
        ({}, "qrels contains no .tsv"),
        ({"qrels/dev.tsv": "q\td\t1\n", "corpus.jsonl": '{"_id": "d", "text": "a"}',
          "queries.jsonl": '{"_id": "q"}'}, "queries.jsonl: the field 'text' is missing"),
        ({"qrels/dev.tsv": "q\td\t1\n"}, "contains no corpus.jsonl"),
        ({"qrels/dev.tsv": "h\th\th\nq\td\tx\n", "corpus.jsonl": '{"_id": "d", "text": "a"}'},
         "not a grade"),
    ],
)  # fmt: skip
def test_incomplete_beir_folders_are_refused(tmp_path, files, told):
    """What is missing or wrong is named."""
    (tmp_path / "qrels").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)

    with pytest.raises(Refused, match=told):
        list(open_dataset("beir", DatasetOptions(path=tmp_path)).cases())


@each_row(
    ("line", "told"),
    [
        ({"query": "x"}, "'relevant' is missing"),
        ({"query": "x", "relevant": "m1"}, "relevant: expected a list, found text"),
        ({"query": ["x"], "relevant": []}, "query: expected text, found a list"),
        ({"query": " ", "relevant": []}, "the query is empty"),
        ({"query": "x", "relevant": [], "filters": [1]}, "filters: expected an object"),
        ({"query": "x", "relevant": [], "filters": {"k": 3}}, "there is no filter 'k'"),
        ({"query": "x", "relevant": [], "filters": {"kind": 3}}, "filter kind takes text"),
        ({"query": "x", "relevant": [], "now": "never ever"}, "not a valid time"),
    ],
)
def test_own_questions_in_the_wrong_form_are_named_by_line(tmp_path, line, told):
    """File and line, and what is wrong there."""
    corpus = written(tmp_path / "m.jsonl", [{"text": "a"}])
    asked = written(tmp_path / "q.jsonl", [line])

    with pytest.raises(Refused, match=rf"q\.jsonl:1: .*{told}"):
        list(open_dataset("jsonl", DatasetOptions(path=asked, corpus=corpus)).cases())


@each_row(
    ("line", "told"),
    [
        ({"txt": "a"}, "the field 'text' is missing"),
        ({"text": 5}, "text: expected text, found a number"),
        ({"text": "a", "colour": "red"}, "there is no field 'colour'"),
        ({"text": "a", "occurred_at": "never ever"}, "occurred_at: .* not a valid time"),
        ({"text": "b", "id": "first"}, "the id 'first' is already used at .*:2"),
    ],
)
def test_own_memories_in_the_wrong_form_are_named_by_line(tmp_path, line, told):
    """Lines are counted as an editor counts them, empty ones too."""
    asked = written(tmp_path / "q.jsonl", [{"query": "x", "relevant": []}])
    corpus = tmp_path / "m.jsonl"
    corpus.write_text("\n" + json.dumps({"text": "a", "id": "first"}) + "\n\n" + json.dumps(line))

    with pytest.raises(Refused, match=rf"m\.jsonl:4: {told}"):
        list(open_dataset("jsonl", DatasetOptions(path=asked, corpus=corpus)).cases())


def test_two_questions_of_one_id_are_refused(tmp_path):
    """They would be taken for one when two runs are compared."""
    asked = written(tmp_path / "q.jsonl", [{"query": q, "relevant": [], "id": "a"} for q in "xy"])

    with pytest.raises(Refused, match="the id 'a' is already used at"):
        list(open_dataset("jsonl", DatasetOptions(path=asked, space="mine")).cases())


def test_own_questions_need_a_memory_to_ask(tmp_path):
    """Neither a corpus nor a space: refused."""
    asked = written(tmp_path / "q.jsonl", [{"query": "x", "relevant": []}])

    with pytest.raises(Refused, match="no memories to query"):
        open_dataset("jsonl", DatasetOptions(path=asked))


def test_a_data_set_that_does_not_exist_is_named():
    """With what there is."""
    with pytest.raises(Refused) as caught:
        open_dataset("trivia", DatasetOptions())

    assert "locomo" in caught.value.remedy


def test_options_that_mean_nothing_are_refused(locomo):
    """An option the data set has no use for is not ignored."""
    with pytest.raises(Refused, match="has no use for corpus"):
        open_dataset("locomo", DatasetOptions(path=locomo, corpus=locomo))


def test_the_builtin_set_has_every_family():
    """At least 60 questions in twelve families, at least thirty of them without an answer."""
    case = only(open_dataset("builtin", DatasetOptions()))
    families = {question.category for question in case.questions}

    assert families == {
        "exact term", "paraphrase", "typo", "identifier", "entity", "multi-hop", "temporal",
        "superseded fact", "contradiction", "non-English", "irrelevant", "unanswerable",
    }  # fmt: skip
    assert len(case.questions) >= 70
    assert sum(not question.answerable for question in case.questions) >= 30
    assert len(case.drafts) >= 120
    assert all(unit in case.units for q in case.questions for unit in q.relevant)


def test_a_split_that_is_not_there_is_named_beside_those_that_are(tmp_path):
    """And no folder at all is told as what it is."""
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("q\td\t1\n")

    with pytest.raises(Refused, match=r"contains no dev\.tsv") as caught:
        open_dataset("beir", DatasetOptions(path=tmp_path, split="dev"))
    assert caught.value.remedy == "available: test"
    with pytest.raises(Refused, match="needs a path"):
        open_dataset("beir", DatasetOptions())
    with pytest.raises(Refused, match="needs a path"):
        open_dataset("jsonl", DatasetOptions(space="mine"))
