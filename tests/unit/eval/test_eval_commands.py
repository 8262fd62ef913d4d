"""`eval` and `tune` inside one process: what they print, write and return."""

from __future__ import annotations

import json

import pytest

from bethink.cli import main
from rows import each_row


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """The command line in an empty folder; gives exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "memories"))
    (tmp_path / "m.jsonl").write_text(
        "".join(
            json.dumps({"id": f"m{n}", "text": text}) + "\n"
            for n, text in enumerate(
                ["The kite is red", "The boat is blue", "Bread takes twelve hours",
                 "The clock loses four minutes", "The cat is called Minka", "Rent is due on Friday"]
            )
        )
    )  # fmt: skip
    (tmp_path / "q.jsonl").write_text(
        "".join(
            json.dumps({"query": text, "relevant": [f"m{n}"], "category": "ab"[n % 2]}) + "\n"
            for n, text in enumerate(
                ["which colour is the kite?", "which colour is the boat?", "how long does bread take?",
                 "what does the clock lose?", "what is the cat called?", "when is the rent due?"]
            )
        )
    )  # fmt: skip

    def run(*words):
        code = main(list(words))
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


OWN = ("jsonl", "q.jsonl", "--corpus", "m.jsonl", "--in-memory")


def test_the_tables_have_a_line_for_every_kind_of_question(call):
    """Profiles, categories, parts and strangers are all there."""
    code, out, _ = call("eval", *OWN, "--parts", "lexical", "--profiles", "siftcoder,default")

    assert code == 0
    assert "q.jsonl on m.jsonl: 6 memories, 6 questions" in out
    assert "siftcoder without lexical" in out
    assert "default – siftcoder" in out
    assert "foreign" in out


def test_a_report_is_written_and_compared_with(call):
    """--save writes a file that --against reads."""
    first, *_ = call("eval", *OWN, "--save", "r.json", "--parts", "dense")
    code, out, _ = call("eval", *OWN, "--against", "r.json", "--json")

    assert (first, code) == (0, 0)
    assert json.loads(out)["against"]["worse"] == 0


def test_a_profile_file_is_tuned_and_measured(call, tmp_path):
    """tune writes a TOML file that eval reads; a second tune may start from it."""
    code, out, err = call("tune", *OWN, "--trials", "2", "--out", "mine.toml")
    again, json_out, _ = call(
        "tune", *OWN, "--profile", "mine.toml", "--trials", "1", "--out", "more.toml", "--json"
    )
    measured, *_ = call("eval", *OWN, "--profiles", "more.toml", "--abstention", "off")

    assert (code, again, measured) == (0, 0, 0)
    assert "held out" in out
    assert "wrote mine.toml" in out
    assert "to use it by name: --profile mine" in err
    assert json.loads(json_out)["measured_on"] == "q.jsonl on m.jsonl"


def test_an_existing_space_is_asked(call, tmp_path):
    """Without a corpus the questions go to the space; one that is not there is named."""
    call("remember", "The kite is red", "--space", "mine")
    (tmp_path / "one.jsonl").write_text('{"query": "kite colour", "relevant": ["kite is red"]}')

    code, out, _ = call("eval", "jsonl", "one.jsonl", "--space", "mine", "--json")
    missing, _, err = call("eval", "jsonl", "one.jsonl", "--space", "other")

    assert code == 0
    assert json.loads(out)["profiles"][0]["quality"]["all"]["hit@5"]["value"] == 1.0
    assert missing == 2
    assert "there is no space other" in err


def test_what_no_memory_holds_is_left_out_and_told(call, tmp_path):
    """Otherwise a misspelt id would pass for something that is always found."""
    (tmp_path / "two.jsonl").write_text(
        '{"query": "kite colour", "relevant": ["m0", "the printer"], "id": "kite"}'
    )

    code, out, err = call("eval", "jsonl", "two.jsonl", *OWN[2:], "--abstention", "off")
    _, told, _ = call("eval", "jsonl", "two.jsonl", *OWN[2:], "--abstention", "off", "--json")

    assert code == 0
    assert "1 question," in out
    assert "no memory has this id or text: 'the printer' of kite: kite colour" in " ".join(
        err.split()
    )
    assert json.loads(told)["measured_on"]["unknown"] == ["'the printer' of kite: kite colour"]


def test_a_folder_is_measured_set_by_set(call, tmp_path):
    """One row for each set, progress on the other stream, and the sets can be chosen."""
    for name, text in (("tea-1", "Anna drinks green tea"), ("tea-2", "Bo drinks black coffee")):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        (folder / "memories.jsonl").write_text(json.dumps({"id": "m", "text": text}) + "\n")
        asked = {"id": "q", "question": text.replace("drinks", "and her"), "relevant": ["m"]}
        (folder / "questions.jsonl").write_text(json.dumps(asked) + "\n")
    words = ("eval", "data", "--in-memory", "--baselines")

    code, out, err = call(*words, "--save", "sets.json")
    again, told, _ = call(*words, "--against", "sets.json", "--json")
    _, one, _ = call(*words, "--sets", "tea-2")

    assert (code, again) == (0, 0)
    assert "Quality by set and type" in out
    assert "1 of 2: tea-1" in err
    assert [report["measured_on"]["label"] for report in json.loads(told)["sets"]] == [
        "tea-1", "tea-2",
    ]  # fmt: skip
    assert "tea-2: 1 memory, 1 question" in one


def test_a_turn_over_the_limit_does_not_end_a_run(call, tmp_path):
    """One turn of the official LongMemEval file has 76,719 bytes: it is stored in parts."""
    long = "The kite is red. " + "It flies over the hill and far away. " * 2074
    record = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which colour is the kite?",
        "question_date": "2023/05/30 (Tue) 16:40",
        "haystack_dates": ["2023/05/20 (Sat) 00:29"],
        "haystack_session_ids": ["answer_1"],
        "haystack_sessions": [[{"role": "user", "content": long, "has_answer": True}]],
        "answer_session_ids": ["answer_1"],
    }
    (tmp_path / "longmemeval_s.json").write_text(json.dumps([record]))
    assert len(long.encode()) >= 76_719

    code, out, err = call("eval", "longmemeval", "longmemeval_s.json", "--in-memory", "--json")

    assert code == 0
    report = json.loads(out)
    assert report["measured_on"]["split"] == ["answer_1:0"]
    assert report["profiles"][0]["quality"]["all"]["hit@1"]["value"] == 1.0
    _, _, err = call("eval", "longmemeval", "longmemeval_s.json", "--in-memory")
    assert "stored in parts, because it is over the limit of a memory: answer_1:0" in err


@each_row(
    ("words", "told"),
    [
        (("eval", "gone"), "there is no data set, file or folder gone"),
        (("eval", "locomo", "a.json", "b.json"), "a data set has one path"),
        (("eval", "--ablate"), "on one data set at a time"),
        (("eval", *OWN, "--sets", "other"), "no data set is called 'other'"),
        (("tune", "--out", "x.toml"), "tuned on one data set"),
        (("eval", *OWN, "--profiles", ","), "no profile was given"),
        (("eval", *OWN, "--profiles", "gone.toml"), "there is no file gone.toml"),
        (("eval", *OWN, "--against", "gone.json"), "there is no file gone.json"),
        (("eval", "jsonl", "gone.jsonl", "--corpus", "m.jsonl"), "there is no file gone.jsonl"),
        (("eval", *OWN, "--profiles", "defalt"), "did you mean 'default'?"),
        (("eval", *OWN, "--profiles", "default,default"), "two profiles are called"),
        (("eval", *OWN, "--parts", "lexcal"), "available: lexical, dense"),
        (("eval", *OWN, "--save", "no/report.json"), "there is no folder no"),
        (("eval", *OWN, "--save", "."), "it is a folder"),
        (("tune", *OWN, "--out", "no/mine.toml"), "there is no folder no"),
        (("eval", "jsonl", "gone.jsonl"), "there is no file gone.jsonl"),
        (("eval", *OWN[:3], "gone.jsonl"), "there is no file gone.jsonl"),
        (("eval", "locomo"), "needs a path"),
        (("tune", *OWN, "--settings", "nothing", "--out", "x.toml"), "no setting matches"),
        (("tune", *OWN, "--metrics", "fame@5", "--out", "x.toml"), "unknown metric"),
    ],
)
def test_mistakes_are_bad_use_and_say_what(call, words, told):
    """Exit code 2 and one sentence."""
    code, _, err = call(*words)

    assert code == 2
    assert told in err
