"""Reading a Claude Code transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_session import Transcript
from bethink.importers import claude_code as claude_code_transcript
from bethink.importers.claude_code import Turn, drafts_of_turns, read_turns


@pytest.fixture
def said(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path / "s1.jsonl", "s1")


def turns(transcript: Transcript, **where: int) -> list[Turn]:
    return list(read_turns(transcript.path, **where))


def texts(transcript: Transcript) -> list[tuple[str, str]]:
    return [(turn.who, turn.text) for turn in turns(transcript)]


def test_prompts_and_final_answers_are_turns(said: Transcript) -> None:
    """A turn is what the user said, or what the agent said after its last tool."""
    said.user("Which port do we deploy on?")
    said.agent("Let me look.")
    said.tool("Read", {"file_path": "/project/a.py"})
    said.agent({"type": "thinking", "thinking": "hmm"}, "It is 5433.")
    said.user([{"type": "text", "text": "Thanks."}, {"type": "image", "source": {}}])

    found = turns(said)

    assert [(turn.who, turn.text) for turn in found] == [
        ("user", "Which port do we deploy on?"),
        ("assistant", "It is 5433."),
        ("user", "Thanks."),
    ]
    assert [turn.number for turn in found] == [1, 2, 3]
    assert {turn.session for turn in found} == {"s1"}
    assert len({turn.uuid for turn in found}) == 3
    assert all(turn.at is not None and turn.at.tzinfo is not None for turn in found)


def test_what_nobody_said_is_left_out(said: Transcript) -> None:
    """Meta entries, side chains, summaries, tool results and the host's own words are no turns."""
    said.entry(type="summary", summary="A title", leafUuid="x")
    said.user("caveat", isMeta=True)
    said.user("a subagent's task", isSidechain=True)
    said.user("This session is being continued from a previous conversation.",
              isCompactSummary=True)  # fmt: skip
    said.user("the summary, for the screen", isVisibleInTranscriptOnly=True)
    said.user("<command-name>/clear</command-name>\n<command-args></command-args>")
    said.user("<local-command-stdout>ok</local-command-stdout>")
    said.user("<system-reminder>Be careful.</system-reminder>")
    said.user("[Request interrupted by user for tool use]")
    said.user("a task is done", origin={"kind": "task-notification"})
    said.user("made by the host", promptSource="system")
    said.agent("API Error: 500", isApiErrorMessage=True)
    said.agent("a subagent's answer", isSidechain=True)
    said.tool("Bash", {"command": "ls"}, result="a\nb")
    said.entry(type="system", subtype="turn_duration", durationMs=3)
    said.entry(type="file-history-snapshot", snapshot={})

    assert texts(said) == []


def test_wrappings_are_taken_off_what_was_said(said: Transcript) -> None:
    """What the host wraps around a prompt goes, the prompt stays."""
    said.user("<ide_selection>x = 1</ide_selection>\n\n\n\nRename x.\n"
              "<system-reminder>secret\nplan")  # fmt: skip

    assert texts(said) == [("user", "Rename x.")]


def test_a_prompt_typed_meanwhile_is_a_prompt(said: Transcript) -> None:
    """What the user types while the agent works is kept as an attachment and is a turn."""
    queued = {"type": "queued_command", "prompt": "Use tabs.", "commandMode": "prompt"}
    said.entry(type="attachment", attachment=queued)
    said.entry(type="attachment", attachment={**queued, "isMeta": True})
    said.entry(type="attachment", attachment={**queued, "commandMode": "task-notification"})

    assert texts(said) == [("user", "Use tabs.")]


def test_edits_belong_to_the_agents_turn(said: Transcript) -> None:
    """The files a turn changed come with it, also where nothing was said."""
    said.user("Add a cache.")
    said.tool("Edit", {"file_path": "/project/a.py", "old_string": "a", "new_string": "b"})
    said.tool("NotebookEdit", {"notebook_path": "/project/n.ipynb", "new_source": ""})
    said.tool("Bash", {"command": "rm x"})
    said.tool("Write", {"file_path": 7})
    said.user("Good.")
    said.tool("Write", {"file_path": "/project/b.py", "content": ""})
    said.agent("Done.")

    silent, told = [turn for turn in turns(said) if turn.who == "assistant"]

    assert silent.text == ""
    assert [(edit.path, edit.operation) for edit in silent.edits] == [
        ("/project/a.py", "edit"),
        ("/project/n.ipynb", "edit"),
    ]
    assert [(edit.path, edit.operation) for edit in told.edits] == [("/project/b.py", "write")]
    assert told.text == "Done."


def test_an_edit_that_failed_did_not_happen(said: Transcript) -> None:
    """What was refused or went wrong is no edit; what has no result yet is one."""
    said.user("Change both.")
    said.tool("Write", {"file_path": "/project/a.py"}, "not granted", failed=True)
    said.user("And again.")
    said.tool("Write", {"file_path": "/project/b.py"}, "not granted", failed=True)
    said.agent({"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": "/c.py"}})

    found = [turn for turn in turns(said) if turn.who == "assistant"]

    assert [edit.path for turn in found for edit in turn.edits] == ["/c.py"]
    assert len(found) == 1


def test_broken_lines_are_passed_over(said: Transcript) -> None:
    """Whatever stands in a line, the others are read."""
    said.user("one")
    for line in (
        b'not json with "user"\n',
        b"\n",
        b'[1, "user"]\n',
        b'"user"\n',
        b'\xff\xfe"user"\n',
        b'{"type": "user"}\n',
        b'{"type": "user", "uuid": 5, "message": {"content": "x"}}\n',
        b'{"type": "user", "uuid": "u", "message": "x"}\n',
        b'{"type": "user", "uuid": "v", "message": {"content": [1, null, {"text": 3}]}}\n',
        b'{"type": "user", "uuid": ' + b"9" * 5000 + b"}\n",
        b'{"user": ' + b"[" * 200_000 + b"\n",
        b'{"type": "user", "uuid": "t", "timestamp": "yesterday", "message": {"content": "two"}}\n',
    ):
        said.raw(line)
    said.raw('{"type": "user", "uuid": "half", "message": {"role": "user", "con')

    assert texts(said) == [("user", "one"), ("user", "two")]
    assert turns(said)[1].at is None


def test_what_no_store_can_keep_is_replaced(said: Transcript) -> None:
    """NUL and lone surrogates do not get as far as the store."""
    said.raw('{"type": "user", "uuid": "u", "sessionId": "s", '
             '"message": {"content": "a\\u0000b \\ud800 c"}}\n')  # fmt: skip

    assert texts(said) == [("user", "ab \ufffd c")]


def test_a_line_that_is_too_long_is_not_read(
    said: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry beyond the limit is passed over without being held in memory."""
    monkeypatch.setattr(claude_code_transcript, "MAX_LINE_BYTES", 2000)
    said.user("one")
    said.user("x" * 9000)
    said.user("two")

    found = turns(said)

    assert [turn.text for turn in found] == ["one", "two"]
    assert [turn.text for turn in turns(said, start=found[1].start)] == ["two"]


def test_an_entry_that_stands_twice_is_one_turn(said: Transcript) -> None:
    """A compaction may copy entries; each id counts once."""
    said.user("one", uuid="same")
    said.agent("answer", uuid="its")
    said.user("one", uuid="same")
    said.agent("answer", uuid="its")

    assert texts(said) == [("user", "one"), ("assistant", "answer")]


def test_reading_goes_on_where_it_is_told(said: Transcript) -> None:
    """From a turn's place on, the same turns come with the same numbers."""
    for n in range(4):
        said.user(f"question {n}")
        said.agent(f"answer {n}")
    whole = turns(said)

    for turn in whole:
        assert turns(said, start=turn.start, number=turn.number) == whole[turn.number - 1 :]


def test_what_was_given_is_known_from_every_place(said: Transcript) -> None:
    """Texts that Bethink gave come with the next turn, also where reading goes on later."""
    said.given("Note:\n<<memories 0123456789abcdef>>\n[0123456789abcdef 1] x | fact\n"
               "The port is 5433\n<<end 0123456789abcdef>>")  # fmt: skip
    said.user("one")
    said.tool("mcp__bethink__recall", {"query": "x"},
              result="<<memories 00000000000000ff>>\nTabs, not spaces\n<<end 00000000000000ff>>")  # fmt: skip
    said.agent("two")
    said.user("three")

    found = turns(said)

    assert found[0].given == ("The port is 5433",)
    assert found[1].given == ("Tabs, not spaces",)
    assert set(turns(said, start=found[2].start)[0].given) == {
        "The port is 5433",
        "Tabs, not spaces",
    }


def test_a_turn_is_the_same_draft_whoever_reads_it(said: Transcript) -> None:
    """Key, words and session of a draft do not depend on where reading began."""
    said.user("We deploy on port 5433.")
    said.agent("Noted for the deploy job.")
    said.user("And on 5434 for tests.")
    whole = [one.draft for one in drafts_of_turns(read_turns(said.path))]
    last = turns(said)[2]

    again = [one.draft for one in drafts_of_turns(read_turns(said.path, start=last.start))]

    assert again == whole[2:]
    assert [draft and draft.source_class for draft in whole] == ["user", "agent", "user"]
    assert whole[0] is not None
    assert (whole[0].level, whole[0].session, whole[0].speaker) == ("raw", "s1", "user")


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_any_bytes_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    """No file makes the reader fail."""
    path = tmp_path_factory.mktemp("any") / "t.jsonl"
    path.write_bytes(b'{"type":"user","uuid":"a","message":{"content":"hello"}}\n' +
                     b'\n"user"'.join(lines))  # fmt: skip

    assert [turn.text for turn in read_turns(path)][:1] == ["hello"]
