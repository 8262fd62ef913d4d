"""Word pieces as the library tokenizers finds them, to compare ours with."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from bethink.models.embed.tokenizers import TextPieces


class LibraryTokenizer:
    """A tokenizer that the library reads from a file, with its start and end token ids."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # "[SEP]" in a text is text, not a control token.
        self._tokenizer.encode_special_tokens = True
        self.start_id, self.end_id = self._tokenizer.encode("").ids
        self.vocabulary: dict[str, int] = self._tokenizer.get_vocab()

    def __call__(self, text: str) -> TextPieces:
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return TextPieces(text, found.ids, found.offsets)
