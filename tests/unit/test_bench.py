"""The benchmark's public conversations: what it reads, and what it says of a bad folder."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bethink.errors import Refused
from language_server import talking

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def natural() -> ModuleType:
    # Under a name of its own: the folder is not a package, and tests have a `corpus` too.
    spec = importlib.util.spec_from_file_location("bench_natural", BENCH / "natural.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_conversation(folder: Path) -> None:
    """A conversation as LoCoMo writes it."""
    talk: dict[str, Any] = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ann", "text": "I bought a red kayak."},
            {"dia_id": "D1:2", "speaker": "Bo", "text": "Where will you paddle?"},
        ],
    }
    asked = [
        {"question": "What did Ann buy?", "answer": "a kayak", "evidence": ["D1:1"], "category": 4},
        {"question": "What was never said?", "evidence": [], "category": 5},
    ]
    record = {"sample_id": "c1", "conversation": talk, "qa": asked}
    (folder / "locomo-tiny.json").write_text(json.dumps([record]), encoding="utf-8")


def test_public_conversations_are_read_as_the_evaluation_reads_them(
    natural: ModuleType, tmp_path: Path
) -> None:
    """Every turn is a memory, and a question with an answer knows the turn that holds it."""
    write_conversation(tmp_path)
    (corpus,) = natural.read(tmp_path)
    first, second = corpus.turns()
    (question,) = corpus.questions(90)
    assert len(corpus) == 2
    assert question.text == "What did Ann buy?"
    assert question.now is not None
    assert corpus.answers(question, first.session, first.seq)
    assert not corpus.answers(question, second.session, second.seq)
    assert list(corpus.turns(1, 2)) == [second]


def test_a_folder_without_conversations_is_refused(natural: ModuleType, tmp_path: Path) -> None:
    """A set without sessions is no conversation: its speed would say nothing about one."""
    with pytest.raises(Refused, match="no data set of a known format"):
        natural.read(tmp_path)
    (tmp_path / "own.jsonl").write_text('{"id": "a", "text": "x"}\n', encoding="utf-8")
    (tmp_path / "own.questions.jsonl").write_text(
        '{"id": "q", "question": "x?", "relevant": ["a"]}\n', encoding="utf-8"
    )
    with pytest.raises(Refused, match="contains no conversations"):
        natural.read(tmp_path)


def test_the_command_says_what_is_wrong_with_a_folder(tmp_path: Path) -> None:
    """A wrong folder ends with one clear line, not with a traceback."""
    command = [sys.executable, str(BENCH / "run.py"), "walk", "--corpus", str(tmp_path / "none")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "--corpus: there is no data set, file or folder" in ended.stderr
    assert "Traceback" not in ended.stderr


JUDGE = "import nothing_installed\n\ndef get_anscheck_prompt(task, question, answer, response, abstention=False):\n    return f'{task}: {question} {answer} {response}'\n"


def test_a_model_answers_from_what_is_recalled_and_is_judged(tmp_path: Path) -> None:
    """By a published prompt, read from its file; an interrupted run asks nothing twice."""
    write_conversation(tmp_path)
    (tmp_path / "evaluate_qa.py").write_text(JUDGE, encoding="utf-8")
    with talking() as server:
        server.answer = "Yes: a red kayak"
        command = [
            *(sys.executable, str(BENCH / "answers.py"), "locomo", tmp_path / "locomo-tiny.json"),
            *("--url", f"{server.url}/v1", "--model", "m", "--out", tmp_path / "out.jsonl"),
        ]
        by_words = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (line,) = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
        (tmp_path / "out.jsonl").unlink()
        command += ["--judge", tmp_path / "evaluate_qa.py"]
        judged = [
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for _ in range(2)
        ]
        asked = [body["messages"][0]["content"] for _, _, body in server.asked]
    assert json.loads(line)["score"] == pytest.approx(2 / 4)
    assert "F1 of words" in by_words
    assert len(asked) == 3
    assert "I bought a red kayak" in asked[0]
    assert asked[2] == "single-hop: What did Ann buy? a kayak Yes: a red kayak"
    assert all("single-hop                           1  1.000" in text for text in judged)
