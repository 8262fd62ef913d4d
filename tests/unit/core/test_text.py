"""What a text is made of: characters, forms, sentences, captions, fingerprints."""

from __future__ import annotations

import json
import unicodedata

import pytest

from bethink.core.characters import (
    escape_hidden,
    find_unstorable,
    has_substance,
    hidden_text_flags,
    strip_hidden,
)
from bethink.core.sentences import caption, sentences, shorten
from bethink.core.words import fingerprint, fold, word_set
from naughty import NAUGHTY
from rows import each_row


@each_row(
    ("text", "found"),
    [
        ("plain", None),
        ("ünï 日本 👩‍💻", None),
        ("a\x00b", (1, "NUL")),
        ("\ud800", (0, "lone surrogate U+D800")),
        ("ab\udfff", (2, "lone surrogate U+DFFF")),
        ("\uffff\ufdd0\U0010ffff", None),
        ("\x01\x1b\x9f", None),
    ],
)
def test_only_nul_and_lone_surrogates_cannot_be_kept(text, found):
    """The position and the name of the first such character are told."""
    assert find_unstorable(text) == found


@each_row(
    ("text", "flags"),
    [
        ("plain\ttext\r\n", ()),
        ("café 日本語 👍🏽", ()),
        ("👨‍👩‍👧‍👦 and 👩‍💻", ()),
        ("می‌خواهم", ()),
        ("क्‍ष", ()),
        ("❤️ 1️⃣", ()),
        ("bell\x07", ("control_text",)),
        ("nel\x85", ("control_text",)),
        ("a\ufffe", ("control_text",)),
        ("\u202egnp.exe", ("bidi_control",)),
        ("\u200fx", ("bidi_control",)),
        ("zero\u200bwidth", ("invisible_text",)),
        ("tag\U000e0041", ("invisible_text",)),
        ("pass\u200dword", ("invisible_text",)),
        ("x\ufe0f\ufe0e\ufe0f", ("invisible_text",)),
        ("a\u200d\u200d\u200db", ("invisible_text",)),
        ("\u202e\x07\u200b", ("bidi_control", "control_text", "invisible_text")),
    ],
)
def test_what_a_reader_would_not_see_is_flagged(text, flags):
    """Joiners are no sign where a script or an emoji needs them."""
    assert hidden_text_flags(text) == flags


@each_row(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("unclosed \x1b]0;title stays", "unclosed 0;title stays"),
        ("\x9b31mred", "red"),
        ("bell\x07", "bell"),
        ("\u202egnp.exe", "gnp.exe"),
        ("tag\U000e0041\U000e0042s", "tags"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("pass\u200dword", "password"),
        ("👩‍💻 می‌خواهم", "👩‍💻 می‌خواهم"),
        ("é\u200d\u202eb", "éb"),
        ("\x00", ""),
    ],
)
def test_visible_text_hides_nothing(text, shown):
    """Escape sequences, direction controls, tags and zero-width characters go; words stay."""
    assert strip_hidden(text) == shown


def test_no_control_line_end_or_private_character_is_shown():
    """Of all there are only line feed and tab; JSON escapes the others and means the same."""
    hidden = [
        one
        for one in map(chr, range(0x110000))
        if unicodedata.category(one) in ("Cc", "Co", "Zl", "Zp") and one not in "\n\t"
    ]
    text = "".join(f"a{one}b" for one in hidden if one != "\r")
    shown = escape_hidden(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == text
    for one in (*strip_hidden(text), *shown):
        assert one in "\n\x7f" or unicodedata.category(one) not in ("Cc", "Co", "Zl", "Zp")


@each_row(
    ("one", "other"),
    [
        ("Hello, World!", "hello world"),
        ("  spaces\n\tand lines ", "spaces and lines"),
        ("ＦＵＬＬ width", "full width"),
        ("“Quoted”", "quoted"),
        ("STRASSE", "straße"),
        ("cafe\u0301", "café"),
        ("(done)", "done"),
    ],
)
def test_texts_that_differ_in_form_fold_alike(one, other):
    """Case, width, composition, spaces and closing punctuation do not count."""
    assert fold(one) == fold(other)


@each_row(
    ("one", "other"),
    [
        ("I prefer C++", "I prefer C#"),
        ("the limit is -5", "the limit is 5"),
        ("10⁵ rows", "105 rows"),
        ("We ship on Friday?", "We ship on Friday."),
        ("edit .env", "edit env"),
        ("call __init__", "call init"),
        ("v1.2", "v12"),
        ("3.5", "35"),
        ("[x] done", "[ ] done"),
    ],
)
def test_texts_that_mean_different_things_fold_apart(one, other):
    """What would be taken for a duplicate would be lost."""
    assert fold(one) != fold(other)


def test_a_text_of_punctuation_still_folds_to_something():
    """Nothing that can be stored shares the empty fingerprint."""
    assert fold("``") == "``"
    assert fold("!!! ???")


def test_word_sets_compare_any_script():
    """Where no spaces part the words, pairs of characters stand for them."""
    assert word_set("The deploy key, rotated!") == {"the", "deploy", "key", "rotated"}
    assert word_set("東京タワー") == {"東京", "京タ", "タワ", "ワー"}


@each_row(
    ("text", "parts"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Dr. Wu met J. Doe at 3 p.m. today. Fine.",
            ["Dr. Wu met J. Doe at 3 p.m. today.", "Fine."],
        ),
        ("Uses e.g. Redis v1.2.3 here", ["Uses e.g. Redis v1.2.3 here"]),
        ("line one\nline two", ["line one", "line two"]),
        ("これは文です。次の文。", ["これは文です。", "次の文。"]),
        ('He said "stop." Then left.', ['He said "stop."', "Then left."]),
        ("", []),
        ("\n \n", []),
    ],
)
def test_sentences_end_where_people_end_them(text, parts):
    """Not at abbreviations, initials or versions."""
    assert sentences(text) == parts


def test_long_runs_of_spaces_are_read_once():
    """The work grows with the text, not with its square: this would take minutes."""
    spaces = " \t" * 200_000

    assert sentences(f"One{spaces}two.{spaces}Three") == [f"One{spaces}two.", "Three"]


def test_a_caption_names_the_speaker_and_the_first_telling_sentence():
    """Greetings tell nothing."""
    text = "Hey Mel! Good to see you! I went to a support group yesterday. It helped."

    assert caption(text, "Caroline") == "Caroline: I went to a support group yesterday."
    assert caption("Caroline: I went to the lake today", "Caroline").count("Caroline") == 1
    assert caption("Thanks!") == "Thanks!"
    assert caption("...") == "..."


def test_a_caption_is_short_and_hides_nothing():
    """It is cut between words and shown as it will be seen."""
    made = caption("word " * 100 + "\x1b[31m", "A" * 30)

    assert len(made) <= 160
    assert made.endswith("word…")
    assert "\x1b" not in caption("\x1b[31mred alert on the main server")


@pytest.mark.parametrize("limit", [2, 10, 40])
def test_shortening_keeps_the_limit(limit):
    """Never one character more, and untouched when it fits."""
    assert len(shorten("some words that go on " * 5, limit)) <= limit
    assert shorten("ab", 2) == "ab"


@each_row("text", ["a", "7", "→", "€", "日", "👍", "!a", "+", "^", " x "])
def test_letters_digits_and_symbols_are_substance(text):
    """Everything somebody could mean to keep."""
    assert has_substance(text)


@each_row("text", ["", " \n\t", "...", "!?", "---", "___", "\u200b", "\u0301", "\x00"])
def test_blanks_and_punctuation_are_no_substance(text):
    """There is nothing in it to find it by."""
    assert not has_substance(text)


def test_fingerprints_tell_circumstances_apart():
    """The same words at another level or in another turn are another memory."""
    assert fingerprint("a b", "item") == fingerprint("a b", "item")
    assert fingerprint("a b", "item") != fingerprint("a b", "raw")
    assert fingerprint("a", "b c") != fingerprint("a", "b", "c")
    assert len(fingerprint("a")) == 64


@each_row("text", NAUGHTY, ids=range(len(NAUGHTY)))
def test_any_text_passes_through_every_function(text):
    """Nothing here raises on the texts a store accepts."""
    if find_unstorable(text):
        return
    for work in (
        fold,
        strip_hidden,
        word_set,
        sentences,
        caption,
        hidden_text_flags,
    ):
        work(text)
