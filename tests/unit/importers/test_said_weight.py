"""What in a turn weighs, what is mere courtesy, and what is code."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.importers.turn_text import (
    find_statement,
    is_assent,
    is_courtesy,
    is_uninformative,
    summarise_code,
)
from rows import each_row


@each_row(
    ("text", "kind"),
    [
        ("ok so we've decided on Redis streams", "decision"),
        ("let's use pnpm instead of npm", "decision"),
        ("use httpx rather than requests", "decision"),
        ("The deadline is Friday", "goal"),
        ("we want to ship 2.0 in March", "goal"),
        ("Note: prod must never be touched on Fridays", "caveat"),
        ("- never run migrations on startup", "caveat"),
        ("please always ask before you push", "directive"),
        ("My name is Ines. I like tabs.", "preference"),
    ],
)
def test_what_lasts_is_seen(text: str, kind: str) -> None:
    """Goals, decisions, caveats, rules and preferences are known by how they are said."""
    found = find_statement(text, "user")

    assert found is not None
    assert found.kind == kind


@each_row(
    "text",
    ["never mind", "I like it, go on", "I've never seen this", "it never worked", "fix the login",
     "this should never happen", "don't change the tests", "let's use the debugger for a moment",
     "can we agree on a format?", "I want to see the file", "fix the deadline bug in cron.py",
     "you never answered my question", "```\n# never do this\n```"],
)  # fmt: skip
def test_what_passes_is_not(text: str) -> None:
    """A wish of the moment, a question, an observation and code are none of these."""
    assert find_statement(text, "user") is None


def test_an_agent_only_warns() -> None:
    """What an agent decides is for the task at hand; what it warns of lasts."""
    assert find_statement("We decided to use asyncpg instead of the ORM", "assistant") is None
    found = find_statement("It works. Watch out: the pool is small.", "assistant")
    assert found == ("caveat", "Watch out: the pool is small.")


@each_row("text", ["yes", "Hi there!", "thanks!", "ok, go ahead", "👍", "vale, gracias"])
def test_assent_tells_nothing(text: str) -> None:
    """A yes, a greeting and a thank-you are nothing by themselves."""
    assert is_assent(text)


@each_row(
    ("text", "before", "nothing"),
    [
        ("yes", "We could. Shall we use Postgres for billing?", False),
        ("no!", "Does anything else read **that table?**", False),
        ("对", "用 Postgres 吗？", False),
        ("yes", "I use Postgres for billing.", True),
        ("yes", "It is in parser.py now. Do you want me to run the tests?", True),
        ("thanks", "The parser is done. Anything else?", True),
        ("yes", "", True),
        ("", "Shall we?", True),
        ("👍", "Shall we use Postgres?", False),
    ],
)
def test_a_yes_is_kept_where_it_answers(text: str, before: str, nothing: bool) -> None:
    """After a question it is all there is of a decision; elsewhere it tells nothing."""
    assert is_uninformative(text, "user", before) is nothing


def test_courtesy_is_every_sentence_or_none() -> None:
    """One sentence that tells something makes an answer of the whole."""
    assert is_courtesy("You're welcome! Let me know if you need anything else.")
    assert is_courtesy("Got it. What would you like to do first?")
    assert not is_courtesy("You're welcome! The port is 5433.")
    assert not is_courtesy("The parser is done.")


@each_row(
    "text",
    ["I'm happy to report that the deploy passed.", "Happy that you chose Postgres!",
     "Glad it runs on Rust now.", "Anything else would break the v2 API.",
     "Let me know if port 5432 should stay open.",
     "Let me know once it is merged; the old cluster goes on Friday."],
)  # fmt: skip
def test_what_only_begins_like_a_courtesy_is_none(text: str) -> None:
    """An answer of one such sentence may be all that is said of a thing."""
    assert not is_courtesy(text)


@each_row(
    "text",
    ["I'm glad I could help!", "Happy to help with anything else.", "Glad that worked!",
     "Glad to hear it!", "Anything else?", "Feel free to ask.", "Is there anything else I can do?"],
)  # fmt: skip
def test_a_courtesy_may_be_said_in_many_ways(text: str) -> None:
    """None of them tells anything."""
    assert is_courtesy(text)


def test_long_code_is_told_by_its_length() -> None:
    """Short code stays, long code becomes a line, also where it is not closed."""
    short = "Run:\n```sh\nmake test\n```\nThen push."
    long = "See:\n~~~python\n" + "a\n```\n" * 4 + "~~~\nDone so."

    assert summarise_code(short) == short
    assert summarise_code(long) == "See:\n[8 lines of python]\nDone so."
    assert summarise_code("Look:\n```\n" + "a\n" * 9 + "b") == "Look:\n[10 lines of code]"


def test_code_that_ends_on_its_line_hides_nothing() -> None:
    """What follows it are words."""
    said = "```make``` builds it.\nNever run it\nas root,\nnot even\nin a container."

    assert summarise_code(said) == said


@settings(deadline=None)
@given(st.text(alphabet="`~ab \n", max_size=80))
def test_no_text_is_too_odd(text: str) -> None:
    """Whatever stands in a text, taking its code out ends, adds no fence, and twice is once."""
    once = summarise_code(text)

    assert once.count("```") <= text.count("```")
    assert summarise_code(once) == once
    find_statement(text, "user")
