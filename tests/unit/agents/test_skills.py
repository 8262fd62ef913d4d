"""What twice turned a failure into a pass is proposed as a procedure, and exported as a skill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_session import Transcript
from bethink import Memory
from bethink.agents.capture import capture
from bethink.agents.skills import export_skill, list_skills
from bethink.errors import Refused
from rows import each_row


def ran(said: Transcript, command: str, error: str = "") -> None:
    """Run a command in a session; it fails where there is an error."""
    call = f"call-{said._count}"
    said.agent({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}})
    result = {"type": "tool_result", "tool_use_id": call, "content": error or "ok"}
    said.user([result | {"is_error": bool(error)}], toolUseResult={"stdout": ""})


def session(memory: Memory, folder: Path, name: str, *steps: str, word: str = "") -> Any:
    """Capture a session in which the tests fail, some steps are done, and they pass."""
    said = Transcript(folder / f"{name}.jsonl", name)
    said.user("Run the tests of the parser")
    ran(said, "pytest tests/parser", "E   ModuleNotFoundError: No module named 'parser_pb2'")
    for step in steps:
        ran(said, step)
    if word:
        said.user(word)
    ran(said, "pytest tests/parser")
    said.agent("The parser tests pass: its protobufs had to be made anew after the update.")
    return capture(memory, said.path, session=name, host="claude-code")


@pytest.fixture
def memory() -> Any:
    with Memory.open(":memory:", embedder="none") as opened:
        yield opened


MAKE = ("uv sync", "make proto OUT=/tmp/a1", "git status")
AGAIN = ("uv sync", "make proto OUT=/tmp/b2", "git status")


def test_two_sessions_make_a_procedure(memory: Memory, tmp_path: Path) -> None:
    session(memory, tmp_path, "one", *MAKE)
    assert list_skills(memory) == []
    session(memory, tmp_path, "two", *AGAIN)

    (found,) = list_skills(memory)
    own, state, text = found
    assert state == "waiting"
    assert "`make proto <value>`" in text
    assert "ModuleNotFoundError" in text
    memory.accept(own)
    item = memory.get(own)
    assert (item.kind, item.metadata["procedure"]["sessions"]) == ("procedure", ["one", "two"])
    path = export_skill(item, tmp_path / "make-protobufs")
    page = path.read_text("utf-8")
    assert page.startswith('---\nname: make-protobufs\ndescription: "Use when pytest')
    assert "2. `make proto <value>`" in page
    with pytest.raises(Refused, match="name of a skill"):
        export_skill(item, tmp_path / "Make Protobufs")


def test_a_procedure_names_the_error_that_a_count_follows(memory: Memory, tmp_path: Path) -> None:
    """Test runners end with a summary: it says how many failed, not what."""
    for name in ("one", "two"):
        said = Transcript(tmp_path / f"{name}.jsonl", name)
        said.user("Run the tests of the parser")
        ran(said, "pytest tests", "E   ModuleNotFoundError: No module named 'hypothesis'\n1 error")
        ran(said, "uv sync --group dev")
        ran(said, "pytest tests")
        capture(memory, said.path, session=name, host="claude-code")

    ((_, _, text),) = list_skills(memory)
    assert "(E ModuleNotFoundError: No module named 'hypothesis')" in " ".join(text.split())


NOT_PROPOSED: dict[str, list[tuple[str, tuple[str, ...], str]]] = {
    "one session": [("one", MAKE, "")],
    "the same session twice": [("one", MAKE, ""), ("one", MAKE, "")],
    "other steps": [("one", MAKE, ""), ("two", ("npm install", "npm run build"), "")],
    "a word of the user": [("one", MAKE, ""), ("two", AGAIN, "no, make the protobufs")],
    "no steps": [("one", (), ""), ("two", (), "")],
}


@each_row("name", NOT_PROPOSED)
def test_what_is_no_procedure(name: str, tmp_path: Path) -> None:
    with Memory.open(":memory:", embedder="none") as memory:
        for number, (own, steps, word) in enumerate(NOT_PROPOSED[name]):
            folder = tmp_path / name.replace(" ", "-") / f"{number}"
            session(memory, folder, own, *steps, word=word)
        assert list_skills(memory) == []


def test_what_can_lose_data_is_not_exported(memory: Memory, tmp_path: Path) -> None:
    steps = ("rm -rf build", "make proto", "export TOKEN=ghp_" + "a1B2" * 9)
    session(memory, tmp_path, "one", *steps)
    session(memory, tmp_path, "two", *steps)
    own = list_skills(memory)[0][0]
    memory.accept(own)

    assert "ghp_a1B2" not in repr(list(memory.export()))
    with pytest.raises(Refused, match="lose data: rm -rf build"):
        export_skill(memory.get(own), tmp_path / "clean-build")
