"""Answers for people: hits, reasons, two ways of finding nothing, steps, comparisons."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bethink import Memory
from bethink.cli.answers import format_score, matched_by, print_answer, print_trace, print_why_not
from bethink.cli.app import App
from bethink.cli.recall import print_comparison
from bethink.model import Candidate, Degraded, Evidence, Item, Page, Query, Recall, Step
from bethink.retrieval.explain import RetrieverView, WhyNot

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ITEM = Item("0000000000000abc", "Tests run with\nmake test", NOW, "user", kind="fact")
HIT = Candidate(
    ITEM,
    0.5,
    (
        Evidence("channel.lexical", "seen", 0.7, "tests, run", None, 1),
        Evidence("fuse.lexical", "add", 0.5, "rank 1"),
    ),
    relevance=0.62,
)
ANSWER = Recall(
    query=Query("how do I run the tests?", NOW),
    profile="default",
    status="found",
    reason="1 relevant of 1 considered",
    hits=(HIT,),
    page=Page(0, 1, 1, False, "end", 12),
    confidence=0.83,
    steps=(
        Step("channel.lexical", 0.001, (HIT,), 0),
        Step("channel.dense", 0.0, (), 0, "skipped", "not needed"),
    ),
)
EMPTY = replace(ANSWER, hits=(), page=Page(0, 0, 0, False, "end", 0), steps=())


def test_a_hit_says_what_it_is_and_why_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    """Rank, relevance and text; below it id, kind, date, source and what each channel saw."""
    print_answer(App(), ANSWER)

    assert capsys.readouterr().out.splitlines() == [
        "  1  62%     Tests run with",
        "             make test",
        "             0000000000000abc · fact · 2026-03-01 · user · lexical #1 (tests,",
        "             run)",
        "",
        "1-1 of 1 · 12 tokens · default",
    ]


def test_arithmetic_stands_under_its_hit(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a reason."""
    print_answer(App(), ANSWER, explain_scores=True)

    assert "+   0.5000  fuse.lexical" in capsys.readouterr().out


def test_a_hit_that_no_channel_found_tells_who_woke_it() -> None:
    """Spreading has reasons, too."""
    woken = Candidate(ITEM, 0.2, (Evidence("spread", "set", 0.2, "part_of of", "x"),))

    assert matched_by(woken) == "spread: part_of of"


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        ("nothing_stored", "try: bethink remember"),
        ("nothing_matched", "try: use other words"),
    ],
)
def test_finding_nothing_says_which_nothing(
    status: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty answer never looks like lost memories, and shows a way on."""
    print_answer(App(), replace(EMPTY, status=status, reason="why"))  # type: ignore[arg-type]

    said = capsys.readouterr().out
    assert said.startswith("why\n")
    assert hint in said


def test_a_page_behind_the_last_needs_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """The reason says it all."""
    print_answer(App(), replace(EMPTY, reason="all 3 lie before offset 9"))

    assert capsys.readouterr().out == "all 3 lie before offset 9\n"


def test_small_scores_are_not_nothing() -> None:
    """A memory that has faded is told from one that scored nothing."""
    assert [format_score(Candidate(ITEM, score)) for score in (0.0, 0.25, 0.0005, 0.00004)] == [
        "0.0000",
        "0.2500",
        "0.0005",
        "4e-05",
    ]


def test_the_nearest_miss_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """With a way to ask what was missing."""
    print_answer(App(), replace(EMPTY, status="nothing_matched", nearest_miss=HIT))

    said = capsys.readouterr().out
    assert "nearest miss" in said
    assert "try: bethink why-not 0000000000000abc" in said
    assert "--min-confidence 0 returns it" in said


def test_what_the_least_relevance_left_out_is_told_with_its_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The hint names the limit that emptied the answer."""
    with Memory.open(":memory:") as memory:
        memory.remember("The gateway listens on port 51820")
        print_answer(App(), memory.recall("gateway port", min_relevance=1))

    said = capsys.readouterr().out
    assert "min_relevance 1" in said
    assert "--min-relevance 0 returns it" in said
    assert "subject" not in said


@pytest.mark.parametrize("status", ["found", "unsure"])
def test_only_an_unsure_answer_is_marked(status: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Above its hits, and never where the answer is found."""
    print_answer(App(), replace(ANSWER, status=status))  # type: ignore[arg-type]

    said = capsys.readouterr().out
    assert said.startswith("May be related:\n") == (status == "unsure")


def test_without_a_relevance_the_score_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A hit that no gate judged still has a number."""
    print_answer(App(), replace(ANSWER, hits=(HIT._replace(relevance=None),)))

    assert capsys.readouterr().out.startswith("  1  0.5000  Tests run with\n")


def test_warnings_and_degraded_parts_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that came without a part says so."""
    told = replace(ANSWER, warnings=("a contradicts b",), degraded=(Degraded("dense", "no model"),))

    print_answer(App(), told)

    said = capsys.readouterr().out
    assert "warning: a contradicts b" in said
    assert "degraded: dense: no model" in said


def test_more_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The cursor, or the limit that cut the answer."""
    page = Page(0, 1, 9, True, "tokens", 12, "CURSOR")

    print_answer(App(), replace(ANSWER, page=page))

    assert "more: --cursor CURSOR or a larger --max-tokens" in capsys.readouterr().out


def test_the_trace_has_a_line_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    """With counts, times and remarks; what was skipped says why."""
    print_trace(App().out, ANSWER)

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["channel.lexical", "1", "1.00"]
    assert "channel.dense (skipped)" in lines[2]
    assert "not needed" in lines[2]
    assert lines[3].split()[:3] == ["all", "1", "1.00"]
    assert lines[3].endswith("profile default, strategy simple")


def test_why_not_tells_stage_numbers_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """And how each channel saw the memory."""
    looks = (
        RetrieverView("lexical", 0.1, 0.4, "tests"),
        RetrieverView("dense", None, 0.3, "no match"),
    )
    told = WhyNot(ITEM, False, "gate.threshold", "not relevant enough", 0.1, 0.4, "ask", looks)

    print_why_not(App().out, told)

    said = capsys.readouterr().out
    assert "dropped at gate.threshold: not relevant enough" in said
    assert "score 0.1000, needed 0.4000" in said
    assert "no match" in said
    assert "try: ask" in said


def test_why_not_of_what_was_returned(capsys: pytest.CaptureFixture[str]) -> None:
    """Needs no remedy."""
    print_why_not(App().out, WhyNot(ITEM, True, "answer", "at rank 1", 0.5))

    said = capsys.readouterr().out
    assert "returned: at rank 1" in said
    assert "try:" not in said


def test_a_comparison_stands_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """What not every profile found is marked; an empty answer gives its reason."""
    other = Candidate(ITEM._replace(id="0000000000000def", text="other"), 0.25)
    wider = replace(ANSWER, profile="wide", hits=(HIT, other))

    print_comparison(App().out, {"default": ANSWER, "wide": wider, "none": EMPTY})
    three = capsys.readouterr().out
    print_comparison(App().out, {"default": ANSWER, "wide": wider})
    two = capsys.readouterr().out

    assert "none: 1 relevant of 1 considered" in three
    assert "* 0.2500 other" in two
    assert "found by all: 1" in two
    assert "wide 1" in two


def test_many_profiles_are_compared_place_by_place(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a memory, the most agreed on first, with its place in every answer."""
    other = Candidate(ITEM._replace(id="0000000000000def", text="other"), 0.25)
    wider = replace(ANSWER, profile="wide", hits=(other, HIT))

    names = ("default", "wide", "third", "fourth")
    print_comparison(App().out, dict(zip(names, (ANSWER, wider, ANSWER, EMPTY), strict=True)))
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "1 default   2 wide   3 third   4 fourth"
    assert lines[3] == "1  2  1  ·  Tests run with make test [0000000000000abc]"
    assert lines[4] == "·  1  ·  ·  other [0000000000000def]"
    assert "fourth: 1 relevant of 1 considered" in lines
    assert "found by all: 0 of 2; · not found" in lines
