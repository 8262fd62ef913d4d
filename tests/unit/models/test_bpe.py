"""The small splitter gives what the tokenizer library gives."""

from __future__ import annotations

import inspect
import json
import json.decoder
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bethink.errors import ModelError
from bethink.models.embed.static import WORDLLAMA_TOKENIZER, _installed_folder
from bethink.models.embed.tokenizers import SPACE_PIECE, BpeTokenizer, read_vocabulary

FILE = _installed_folder() / WORDLLAMA_TOKENIZER
VOCABULARY = read_vocabulary(FILE)
BPE = BpeTokenizer(VOCABULARY)
LIBRARY = Tokenizer.from_file(str(FILE))
LIBRARY.encode_special_tokens = True

ODD = [
    "",
    " ",
    "  ",
    " " * 40,
    "a  b   c    d",
    " leading and trailing ",
    "\n\n\tdef f(x):\n        return x  # done\n",
    "tabs\tand\rreturns\r\n",
    "<s>", "</s>", "<unk>", "<s>hello</s>",
    "<0x0A>", "<0x0A><0xE2>", "a<0x41>b",
    "▁", "▁▁▁x", "a▁b c",
    "aaaaaaaaaaaaaaaaaaa", "=======------=====", "((((((((()))))))))",
    "日本語のテキスト", "中文 记忆 检索", "한국어 문장", "ไทย", "हिन्दी में पाठ", "العربية",
    "naïve café e\u0301", "\u0301\u0301", "Straße ẞ", "İstanbul",
    "👩‍👩‍👧 🎉🏳️‍🌈", "\U0001f9ff\U000e0041", "\x00\x01\x7f", "\ufeff\u200b\u2028", "\U0010ffff",
    "parse_config auth-middleware src/a/b.py v2.3.1 CamelCaseName",
]  # fmt: skip

words = st.sampled_from(sorted(VOCABULARY))
varied = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=80),
    st.text(st.characters(min_codepoint=0x3040, max_codepoint=0x9FFF), max_size=40),
    st.text(st.characters(min_codepoint=0x1F300, max_codepoint=0x1FAFF), max_size=20),
    st.text("ab ▁=-_.()<>/0x\n\t", max_size=80),
    st.lists(words, max_size=25).map("".join),
    st.lists(words, max_size=25).map(lambda found: "".join(found).replace(SPACE_PIECE, " ")),
)


def library_ids(text: str) -> list[int]:
    ids: list[int] = LIBRARY.encode(text, add_special_tokens=False).ids
    return ids


@settings(deadline=None, max_examples=300)
@given(st.lists(varied, min_size=12, max_size=12))
def test_any_text_is_split_as_the_library_splits_it(texts):
    """At least 3,600 texts of every kind have the same ids both ways."""
    assert [BPE.encode(text) for text in texts] == [library_ids(text) for text in texts]


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_split_as_the_library_splits_them(text):
    """Spaces, control tokens as text, unknown characters: nothing is special."""
    assert BPE.encode(text) == library_ids(text)


def test_source_code_is_split_as_the_library_splits_it():
    """Lines of real code, and the whole of it, have the same ids both ways."""
    source = inspect.getsource(json.decoder)[:2000]

    texts = [source, *source.splitlines()]

    assert [BPE.encode(text) for text in texts] == [library_ids(text) for text in texts]


def test_the_vocabulary_has_the_facts_the_splitter_relies_on():
    """Merges are ranked by the id of their result, and spaces only lead or fill a piece."""
    model = json.loads(FILE.read_text(encoding="utf-8"))["model"]
    pairs = [tuple(merge.split(" ")) for merge in model["merges"]]
    vocabulary = model["vocab"]

    def rank(pair):
        left, right = pair
        run = set(left + right) == {SPACE_PIECE}
        return run, vocabulary[left + right], vocabulary[left], vocabulary[right]

    assert vocabulary == VOCABULARY
    assert [rank(pair) for pair in pairs] == sorted(rank(pair) for pair in pairs)
    assert all(SPACE_PIECE not in piece[1:] or set(piece) == {SPACE_PIECE} for piece in vocabulary)
    merged = {
        (piece[:cut], piece[cut:])
        for piece, number in vocabulary.items()
        if number > vocabulary["<0xFF>"]
        for cut in range(1, len(piece))
        if piece[:cut] in vocabulary and piece[cut:] in vocabulary
    }
    assert merged == set(pairs)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"vocab": [', b'{"vocab": {"a": 1, "merges"', b"\xff"]
)
def test_a_damaged_tokenizer_file_is_named(tmp_path: Path, content):
    """What is no tokenizer file is a ModelError with the file's name."""
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)

    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        read_vocabulary(path)


def test_a_missing_tokenizer_file_is_named(tmp_path: Path):
    """A file that is not there is a ModelError, not a traceback."""
    with pytest.raises(ModelError, match=r"nothing\.json"):
        read_vocabulary(tmp_path / "nothing.json")
