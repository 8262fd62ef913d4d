"""Telling what was said from what was put there."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from bethink.importers.turn_text import EchoFilter, fenced_texts, strip_fences, strip_host_text
from bethink.render.quoting import Quote, fence_quotes
from rows import each_row

FENCED = fence_quotes([Quote("id1 | fact", "The deploy port is 5433"), Quote("id2", "Use tabs")])


def test_a_fence_is_found_with_what_it_quotes() -> None:
    """What stands in a fence is given back without the lines that are ours."""
    assert fenced_texts(f"before\n{FENCED}\nafter") == ["The deploy port is 5433\n\nUse tabs"]


def test_a_whole_fence_goes() -> None:
    """Quoted whole, nothing of a fence is left."""
    assert strip_fences(f"before\n{FENCED}\nafter").split() == ["before", "after"]


@each_row("cut", range(1, len(FENCED), 5))
def test_a_part_of_a_fence_goes_too(cut: int) -> None:
    """Wherever a quotation is torn off, neither part leaves anything of a memory."""
    beginning, end = (
        strip_host_text(f"I said this.\n{FENCED[:cut]}"),
        strip_host_text(f"{FENCED[cut:]}\nAnd this."),
    )

    for words in ("deploy", "5433", "tabs", "id1", "id2"):
        assert words not in beginning
        assert words not in end
    assert beginning.startswith("I said this.")
    assert end.endswith("And this.")


def test_the_head_of_an_entry_takes_its_text_along() -> None:
    """An entry quoted alone is not taken for the speaker's words."""
    entry = FENCED.splitlines()[2:4]

    assert strip_fences("\n".join([*entry, "", "My own words."])) == "My own words."


def test_text_without_a_fence_stays_as_it_is() -> None:
    """What only looks a little like a fence is left alone."""
    text = "a << b >> c\n[1] see <<end of story>>\n[deadbeef 1] x  "

    assert strip_fences(text) == text


@given(st.text(max_size=300))
def test_a_fence_never_survives(text: str) -> None:
    """Whatever stands around it, a whole fence is gone, and doing it again changes nothing."""
    left = strip_fences(f"{text}\n{FENCED}\n{text}")

    assert "5433" not in left or "5433" in text
    assert strip_fences(left) == left


def test_marks_without_end_take_no_time() -> None:
    """A text full of openings is gone through once."""
    text = "".join(f"<<memories {n:016x}>> word " for n in range(20_000))

    begun = time.process_time()
    assert strip_fences(text) == ""
    strip_host_text("<system-reminder>" * 50_000)
    assert time.process_time() - begun < 60


def given_texts(*texts: str) -> EchoFilter:
    known = EchoFilter()
    known.add(texts)
    return known


def test_a_sentence_that_was_given_is_an_echo() -> None:
    """Of a text only the sentences stay that were not given."""
    known = given_texts("The deploy port of the ferry service is 5433")
    text = "According to memory, the deploy port of the ferry service is 5433. I changed the tests."

    assert known.remove_echoes(text, "assistant") == "I changed the tests."
    assert known.remove_echoes("- The deploy port of the ferry service is 5433.", "assistant") == ""


def test_a_correction_by_the_user_is_no_echo() -> None:
    """A user who repeats a memory to contradict it is heard."""
    known = given_texts("The deploy port of the ferry service is 5433")
    said = "No, the deploy port of the ferry service is 5433 no longer, it is 6000 now."

    assert known.remove_echoes(said, "user") == said
    assert known.remove_echoes("The deploy port of the ferry service is 5433.", "user") == ""


def test_one_word_is_enough_to_correct_a_long_memory() -> None:
    """However long what the user repeats: another word in it, or one more, makes it news."""
    memory = (
        "We decided that the ferry service is deployed on port 5433, because 5432 is taken by the "
        "legacy billing database of the island"
    )
    known = given_texts(memory)

    for said in (memory.replace("5433", "5434"), memory.replace("deployed", "not deployed")):
        assert known.remove_echoes(said, "user") == said
    assert known.remove_echoes(memory, "user") == ""


def test_layout_stays_where_nothing_is_an_echo() -> None:
    """A text without an echo is not touched at all."""
    known = given_texts("The deploy port is 5433 since June")
    text = "Steps:\n\n  1. build   it\n  2. run it\n"

    assert known.remove_echoes(text, "assistant") == text
    assert EchoFilter().remove_echoes(text, "user") == text


def test_scripts_without_spaces_are_compared_too() -> None:
    """An echo is known in Chinese as well."""
    known = given_texts("我们决定使用端口五千四百三十三")

    assert known.remove_echoes("我们决定使用端口五千四百三十三。", "assistant") == ""
    assert known.remove_echoes("测试都通过了，没有任何问题。", "assistant")


@each_row(
    "text",
    [
        "SessionStart hook is broken, mend it",
        "Stop hook feedback should be shorter",
        "What does <b>bold</b> mean, and List<int>?",
        "a << 3 and b >> 2",
    ],
)
def test_what_only_sounds_like_the_host_stays(text: str) -> None:
    """Somebody who speaks of hooks and tags is heard."""
    assert strip_host_text(text) == text
