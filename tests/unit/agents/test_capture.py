"""Keeping what was said in a session."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from agent_session import Transcript
from bethink.agents.briefing import format_context
from bethink.agents.capture import CaptureResult, capture, capture_edits, count_new_turns
from bethink.agents.prompt import prompt_context
from bethink.agents.session import quoted_ids, session_state
from bethink.importers.claude_code import Turn, drafts_of_turns, read_turns, tool_edits
from bethink.memory import Memory
from bethink.render.quoting import Quote
from corpus import NOW
from secrets_made import TOKENS


@pytest.fixture
def said(tmp_path: Path, project: Path) -> Transcript:
    return Transcript(tmp_path / "transcripts" / "s1.jsonl", "s1", cwd=project)


def caught(memory: Memory, transcript: Transcript) -> CaptureResult:
    return capture(memory, transcript.path, session=transcript.session, host="claude-code")


def count(memory: Memory) -> int:
    return len(memory.browse(limit=1000))


def test_turns_are_stored_with_who_said_them(kept: Memory, said: Transcript) -> None:
    """User and agent are kept apart, in order, with session, time and source."""
    said.user("We deploy on port 5433.")
    said.agent("Port 5433 it is.")

    assert caught(kept, said) == CaptureResult(stored=2)

    agent, user = kept.browse(level="raw")
    assert [item.text for item in (user, agent)] == ["We deploy on port 5433.", "Port 5433 it is."]
    assert (user.source_class, agent.source_class) == ("user", "agent")
    assert (user.speaker, agent.speaker) == ("user", "assistant")
    assert {user.session, agent.session} == {"s1"}
    assert (user.seq or 0) < (agent.seq or 0)
    assert (user.source, user.writer) == ("claude-code", "claude-code")
    assert user.occurred_at is not None


def test_every_turn_is_stored_once(kept: Memory, said: Transcript) -> None:
    """After every turn, at the end and by another reader: each turn is one memory."""
    for n in range(3):
        said.user(f"Question {n} about module {n}")
        said.agent(f"Answer {n} about module {n}")
        caught(kept, said)
        caught(kept, said)
    caught(kept, said)
    assert count(kept) == 6

    again = kept.remember_each(
        one.draft for one in drafts_of_turns(read_turns(said.path)) if one.draft
    )

    assert {getattr(one, "status", "refused") for one in again} == {"repeated"}
    assert count(kept) == 6


def test_a_lost_state_changes_nothing(kept: Memory, said: Transcript, tmp_path: Path) -> None:
    """Where the small state is gone or damaged, everything is known all the same."""
    said.user("We deploy on port 5433.")
    said.agent("Port 5433 it is.")
    caught(kept, said)
    for file in (tmp_path / "data").rglob("*.json"):
        file.write_text("[1, {")

    assert caught(kept, said) == CaptureResult(known=2)


def test_what_was_erased_is_not_captured_again(kept: Memory, said: Transcript) -> None:
    """A turn or a file that was erased after its capture stays erased as the session goes on."""
    said.user("My aunt lives in Quince Street, so change the address list.")
    said.tool("Edit", {"file_path": f"{said.cwd}/addresses.py"})
    said.agent("The list has the address in Quince Street.")
    caught(kept, said)
    kept.forget(*(item.id for item in kept.browse()), erase=True)
    kept.forget_file("addresses.py")

    said.entry(type="system", subtype="stop_hook_summary")
    caught(kept, said)
    said.agent("Two tests fail.")
    said.user("Which tests of the parser fail?")
    capture_edits(kept, said.path, session="s1")
    caught(kept, said)

    assert {item.text for item in kept.browse()} == {
        "Two tests fail.",
        "Which tests of the parser fail?",
    }
    assert kept.recall_file("addresses.py").edits == 0


def test_a_transcript_begun_anew_is_read_from_its_beginning(kept: Memory, said: Transcript) -> None:
    """A file that is shorter than it was is another file."""
    said.user("A first question of some length about the ferry")
    said.agent("An answer")
    said.user("Another question of some length about the ferry")
    caught(kept, said)
    said.path.write_bytes(b"")
    said.user("New")

    assert caught(kept, said).stored == 1


def test_an_answer_that_grows_is_stored_when_it_is_there(kept: Memory, said: Transcript) -> None:
    """What is written to the transcript after a capture is caught by the next one."""
    said.user("Do it.")
    caught(kept, said)
    said.agent("Working on it.")
    caught(kept, said)
    said.tool("Bash", {"command": "make"})
    said.agent("Done: all tests pass.")

    assert caught(kept, said).stored == 1
    assert "Done: all tests pass." in {item.text for item in kept.browse()}


def test_secrets_are_taken_out(kept: Memory, said: Transcript, tmp_path: Path) -> None:
    """No secret of a transcript is found in what is kept, in turns as little as in intents."""
    rng = Random(5)
    secrets = [make(rng) for make in TOKENS.values()]
    for secret in secrets:
        said.user(f"{'Please, ' * 35} use {secret} for the deploy")
        said.tool("Write", {"file_path": f"{said.cwd}/a.py", "content": secret})
    caught(kept, said)

    kept.store.close()
    held = b"".join(path.read_bytes() for path in tmp_path.glob("m.db*"))
    held += b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*.json"))
    assert not [secret for secret in secrets if secret.encode() in held]
    assert not [secret for secret in secrets if secret.split()[-1][-24:].encode() in held]


def test_courtesies_are_not_kept(kept: Memory, said: Transcript) -> None:
    """A yes, a thank-you and an offer of help tell nothing, and are not stored."""
    said.user("hi!")
    said.agent("Hi there! How can I help you today?")
    said.user("Move the parser to its own module.")
    said.agent("It is in parser.py now. Shall I run the tests?")
    said.user("yes")
    said.agent("Done.")
    said.user("thanks!")
    said.agent("You're welcome! Let me know if there's anything else I can help with.")

    assert caught(kept, said) == CaptureResult(stored=2, echoes=6)
    assert [item.speaker for item in kept.browse()] == ["assistant", "user"]


def test_a_turn_has_the_kind_of_what_it_says(kept: Memory, said: Transcript) -> None:
    """A decision, a goal or a rule in a turn is known as one; all else is an episode."""
    said.user("ok, we decided to use asyncpg for the ingest, because the ORM is slow.")
    said.user("Goal for this week: billing has to be live by Friday.")
    said.user("Commit it. And please never force-push to main.")
    said.user("Fix the login page.")

    caught(kept, said)

    kinds = [item.kind for item in reversed(kept.browse(level="raw"))]
    assert kinds == ["decision", "goal", "caveat", "episode"]
    assert not any(item.protected or item.layer for item in kept.browse())


def test_a_refused_turn_is_counted(kept: Memory, said: Transcript) -> None:
    """A turn that breaks a rule does not keep out the others."""
    said.user("x" * 100_000)
    said.user("…")
    said.user("We deploy on port 5433.")

    assert caught(kept, said) == CaptureResult(stored=1, refused=1, echoes=1)


def test_edits_are_noted_with_their_prompt(kept: Memory, said: Transcript, tmp_path: Path) -> None:
    """A file of the project is noted with what the user wanted; others are not."""
    said.user("Make the parser quicker, it takes a second now.")
    said.tool("Edit", {"file_path": f"{said.cwd}/src/parser.py"})
    said.tool("Write", {"file_path": "notes/plan.md"})
    said.tool("Write", {"file_path": str(tmp_path / "elsewhere.py")})
    said.tool("Write", {"file_path": f"{said.cwd}/../outside.py"})
    said.tool("Write", {"file_path": "bad\u0000name"})
    said.agent("It takes a tenth now.")

    assert caught(kept, said).edits == 3
    assert caught(kept, said).edits == 0
    history = kept.recall_file("parser.py")
    assert history.edits == 1
    assert [intent.text for intent in history.intents] == [
        "Make the parser quicker, it takes a second now."
    ]
    assert history.sessions == ("s1",)
    assert kept.recall_file("notes/plan.md").edits == 1
    assert kept.recall_file("elsewhere").edits == 0
    assert kept.recall_file("outside").edits == 0


def test_a_link_that_leads_out_is_not_the_projects(
    kept: Memory, said: Transcript, project: Path, tmp_path: Path
) -> None:
    """A file counts by where it really is, and links in a circle do no harm."""
    (project / "out").symlink_to(tmp_path)
    (project / "round").symlink_to(project / "round")
    said.user("Change it, please, all of it.")
    said.tool("Write", {"file_path": f"{project}/out/x.py"})
    said.tool("Write", {"file_path": f"{project}/round/y.py"})

    caught(kept, said)

    assert kept.recall_file("x.py").edits == 0


def test_edits_at_once_and_later_are_one(kept: Memory, said: Transcript) -> None:
    """Noted when it happens and captured at the end, an edit is one edit."""
    said.user("Make the parser quicker, it takes a second now.")
    said.tool("Edit", {"file_path": f"{said.cwd}/parser.py"})
    assert capture_edits(kept, said.path, session="s1") == 1
    said.tool("Edit", {"file_path": f"{said.cwd}/parser.py"})
    assert capture_edits(kept, said.path, session="s1") == 1
    said.agent("Done.")

    caught(kept, said)

    assert kept.recall_file("parser.py").edits == 2
    assert len(kept.recall_file("parser.py").intents) == 1


def test_a_subagents_edit_is_noted_with_the_sessions_prompt(kept: Memory, said: Transcript) -> None:
    """What a subagent changes stands in another file, and is noted all the same."""
    said.user("Make the parser quicker, it takes a second now.")
    edits = tool_edits("Edit", {"file_path": f"{said.cwd}/parser.py"}, NOW, "toolu_7")
    turn = Turn("assistant", "", NOW, "toolu_7", "s1", 0, said.cwd, edits)

    assert capture_edits(kept, said.path, session="s1", subagent_turn=turn) == 1
    assert capture_edits(kept, said.path, session="s1", subagent_turn=turn) == 0
    assert kept.recall_file("parser.py").intents[0].text.startswith("Make the parser quicker")


def test_news_is_known_without_the_store(kept: Memory, said: Transcript) -> None:
    """How much there is to capture can be told from the transcript alone."""
    state = session_state(kept, "s1")
    assert count_new_turns(state, said.path, "s1") == 0
    said.user("Hello there, ferry.")
    assert count_new_turns(state, said.path, "s1") == 1
    caught(kept, said)
    said.entry(type="system", subtype="stop_hook_summary")
    assert count_new_turns(state, said.path, "s1") == 0
    said.agent("Hello.")
    said.user("How are you?")
    assert count_new_turns(state, said.path, "s1") == 2


def test_what_was_recalled_is_never_stored_again(
    kept: Memory, project: Path, tmp_path: Path
) -> None:
    """Ten sessions that quote what they were given, in every way, add no memory by it."""
    kept.remember(
        "The ferry service is deployed on port 5433 because 5432 is taken", kind="decision"
    )
    kept.remember("Money is kept in cents, never as a float, since the March incident", kind="fact")
    sizes = []
    for n in range(10):
        said = Transcript(tmp_path / f"{n}.jsonl", f"s{n}", cwd=project)
        prompt = ("Which port is the ferry service deployed on?", "How is money kept?")[n % 2]
        given = prompt_context(kept, {"prompt": prompt, "session_id": f"s{n}"})
        lines = [line for line in given.splitlines() if "5433" in line or "cents" in line]
        assert lines
        said.user(prompt)
        said.given(given)
        said.agent(f"From memory:\n{given}")
        said.agent("\n".join(f"> {line}" for line in lines))
        said.agent("According to the memory, " + lines[0][:60] + ".")
        said.agent(given[: len(given) // 2])
        said.tool("mcp__plugin_bethink_bethink__recall", {"query": "port"}, result=given)
        said.agent("**" + lines[-1] + "**")
        said.user(f"{given}\nIs that so?")
        caught(kept, said)
        texts = [item.text for item in kept.browse(limit=1000)]
        sizes.append(sum("5433" in text or "cents" in text for text in texts))

    assert sizes == [2] * 10, sizes


def test_a_long_session_repeats_nothing_either(kept: Memory, said: Transcript) -> None:
    """However much an agent was given before, what it was given last is known."""
    for n in range(150):
        words = " ".join(f"crane{n} berth{at} tide{n}" for at in range(100))
        said.given(format_context("From memory:", [Quote(f"id{n} | fact", words)], "memories"))
        said.user(f"What about crane {n}?")
    caught(kept, said)
    said.agent(f"The memory says: {words}.")

    assert caught(kept, said).stored == 0


def test_the_state_holds_no_text(kept: Memory, said: Transcript, tmp_path: Path) -> None:
    """Beside the memory only ids and places in files are kept: an erase need not look there."""
    kept.remember("The zanzibar port is 5433")
    told = prompt_context(kept, {"prompt": "which zanzibar port?", "session_id": "s1"})
    session_state(kept, "s1").add_given(quoted_ids(told))
    said.user("The quokka port is 5434.")
    caught(kept, said)

    files = list((tmp_path / "data").rglob("*.json"))
    assert len(files) == 2
    for file in files:
        told = file.read_text()
        json.loads(told)
        assert "zanzibar" not in told
        assert "quokka" not in told
        assert file.stat().st_mode & 0o077 == 0
