"""Laws that hold for every text."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import apsw.unicode
from hypothesis import given
from hypothesis import strategies as st

from bethink.core.characters import find_unstorable, hidden_text_flags, strip_hidden
from bethink.core.passages import LONG_TEXT_WORDS, count_words, split_passages
from bethink.core.sentences import caption, sentences, shorten
from bethink.core.words import fold, word_set
from bethink.ingest.content_checks import detect_paste, is_injection
from bethink.ingest.deduplication import minhash_sketch
from bethink.ingest.redaction import redact
from bethink.lang.dates import find_times

HIDDEN = "\u200b\u200c\u200d\u202e\u2066\u061c\ufeff\U000e0041\x00\x1b\x07\r\n\x85\ufe0f"
CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(f"{HIDDEN} [];m0aZé日.!?\"'"),
)
TEXTS = st.text(CHARACTERS, max_size=80)
TIMES = """
last next this 3 two a few of May march 8 8th , 2023 2023-05-08 14:30 at pm am on Friday in days weeks
ago later from now to between and since yesterday evening Q3 summer 1990s 31 30 . : - /
"""
TIME_WORDS = st.sampled_from(TIMES.split())


@given(TEXTS)
def test_visible_text_is_seen_whole(text):
    """Nothing hidden is left, a second look changes nothing, and letters stay."""
    shown = strip_hidden(text)

    assert strip_hidden(shown) == shown
    assert hidden_text_flags(shown) == ()
    assert not any(
        0xE0000 <= ord(char) <= 0xE007F or char in "\x00\x1b\u202e\u2066\u061c" for char in shown
    )


@given(TEXTS)
def test_folding_is_stable(text):
    """A folded text is its own fold, and spaces do not matter."""
    folded = fold(text)

    assert fold(folded) == folded
    assert fold(f"  {text}\n") == folded


@given(TEXTS)
def test_case_does_not_matter(text):
    """For texts whose letters have both cases."""
    if text.isascii():
        assert fold(text.upper()) == fold(text.lower())


@given(TEXTS)
def test_sentences_lose_nothing_but_blanks(text):
    """Put together they are the text."""
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@given(TEXTS, st.one_of(st.none(), TEXTS), st.integers(20, 200))
def test_captions_are_short_and_on_one_line(text, speaker, limit):
    """Whoever speaks."""
    made = caption(text, speaker, limit=limit)

    assert len(made) <= limit
    assert "\n" not in made
    assert hidden_text_flags(made) == ()


@given(TEXTS, st.integers(2, 50))
def test_shortening_only_shortens(text, limit):
    """What fits is left as it is."""
    made = shorten(text, limit)

    assert len(made) <= limit
    assert made == text or made.endswith("…")


@given(st.text(max_size=50))
def test_what_can_be_kept_can_be_encoded(text):
    """And the other way round, NUL apart."""
    assert (find_unstorable(text) is None) == ("\x00" not in text)


@given(st.lists(TIME_WORDS, max_size=12).map(" ".join), st.datetimes(timezones=st.just(UTC)))
def test_times_stand_in_the_text_in_order(text, anchor):
    """Half open, not empty, without overlap; whatever the anchor."""
    spans = find_times(text, anchor)

    assert all(span.start < span.end for span in spans)
    assert all(text[span.at : span.at + len(span.text)] == span.text for span in spans)
    assert all(one.at + len(one.text) <= other.at for one, other in pairwise(spans))
    assert spans == find_times(text, anchor)


@given(TEXTS)
def test_texts_without_secrets_come_back_as_they_were(text):
    """Redacting is the identity where nothing is found, and is done once."""
    once = redact(text)

    assert once.kinds or once.text == text
    assert redact(once.text).text == once.text


@given(TEXTS)
def test_every_text_can_be_judged(text):
    """No check breaks on any text; equal texts have equal sketches."""
    detect_paste(text)
    is_injection(text)
    assert minhash_sketch(fold(text)) == minhash_sketch(fold(text))
    assert word_set(text) == word_set(fold(text))


@given(st.datetimes(timezones=st.just(UTC)))
def test_last_and_next_touch_this(anchor):
    """Last week ends where this week begins, and so on."""
    if not datetime(2, 1, 1, tzinfo=UTC) < anchor < datetime(9990, 1, 1, tzinfo=UTC):
        return
    for unit in ("week", "month", "quarter", "year"):
        last, this, following = (
            find_times(f"{which} {unit}", anchor)[0] for which in ("last", "this", "next")
        )
        assert last.end == this.start <= anchor < this.end == following.start


WORDS = st.one_of(
    st.text(CHARACTERS, min_size=1, max_size=12),
    st.sampled_from(
        ("key.", "Dr.", "e.g.", "漢字かな。", "กำลังใจ", "क्षत्रिय", "한국어", "\r\n", "\n\n", "… ».")
    ),
    st.sampled_from(("\U0001f468\u200d\U0001f469\u200d\U0001f467", "🇩🇪🇫🇷", "e\u0301\u0323")),
    st.sampled_from(("漢字" * 90, "x" * 700, "e\u0301" * 400, "🇩🇪" * 200, "word " * 130)),
)
LONG_TEXTS = st.builds(
    lambda words, times, space: space.join(words * times),
    st.lists(WORDS, min_size=1, max_size=60),
    st.integers(1, 12),
    st.sampled_from((" ", "\n", "", ". ")),
)


@given(LONG_TEXTS)
def test_passages_are_the_text(text):
    """None is missing, each adds something, and a text that is not long has none."""
    spans = split_passages(text)

    assert bool(spans) == (count_words(text) > LONG_TEXT_WORDS)
    assert spans == split_passages(text)
    if spans:
        assert spans[0][0] == 0
        assert spans[-1][1] == len(text)
        assert all(start < later <= end < last for (start, end), (later, last) in pairwise(spans))


@given(LONG_TEXTS)
def test_no_passage_is_long(text):
    """About a hundred words, whatever the script; more only for a character without end."""
    for start, end in split_passages(text):
        assert count_words(text[start:end]) <= 170 or not any(
            char.isalnum() for char in text[start + 100 : end - 100]
        )


@given(LONG_TEXTS)
def test_no_passage_divides_a_character(text):
    """What a reader sees as one character is in one passage."""
    borders, at = {0}, 0
    while at < len(text):
        at = apsw.unicode.grapheme_next_break(text, at)
        borders.add(at)

    assert all(borders.issuperset(span) for span in split_passages(text))


def test_passages_end_with_sentences_and_paragraphs():
    """Where they can; a short last sentence begins the next passage, too."""
    sentence = "The keeper of the northern lighthouse wrote this sentence of ten words. "
    paragraph = sentence * 7 + "\n\n"
    text = (paragraph * 4).rstrip()

    passages = [text[start:end] for start, end in split_passages(text)]

    assert passages[:-1] == [paragraph] * 3
    flowing = sentence * 30
    (_, first_end), (second_start, _), *_ = split_passages(flowing)
    assert flowing[second_start:first_end] == sentence
