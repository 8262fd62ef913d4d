"""Tokens of texts in several scripts, beside what a language model counts."""

from __future__ import annotations

from bethink.core.characters import estimate_tokens
from bethink.models.embed.encoder import count_tokens
from rows import each_row

# Sentences of one meaning with about the tokens that a current vocabulary has for each; not
# counted here, and the lengths in `estimate_tokens` were chosen on them.
SAID = (
    (24, "Hello, my name is GPT-4o. I'm a new type of language model, it's nice to meet you!"),
    (23, "Привет, меня зовут GPT-4o. Я — новая языковая модель, приятно познакомиться!"),
    (26, "مرحبًا، اسمي جي بي تي-4o. أنا نوع جديد من نموذج اللغة، سررت بلقائك!"),
    (31, "नमस्ते, मेरा नाम जीपीटी-4o है। मैं एक नए प्रकार का भाषा मॉडल हूं। आपसे मिलकर अच्छा लगा!"),
    (24, "你好，我的名字是GPT-4o。我是一种新型的语言模型，很高兴见到你!"),
    (
        27,
        "안녕하세요, 제 이름은 GPT-4o입니다. 저는 새로운 유형의 언어 모델입니다, 만나서 반갑습니다!",
    ),
    (26, "こんにちは、私の名前はGPT-4oです。私は新しいタイプの言語モデルです。初めまして!"),
)


@each_row(("counted", "text"), SAID)
def test_tokens_are_estimated_within_a_quarter(counted: int, text: str) -> None:
    """Latin, Cyrillic, Arabic, Devanagari, Chinese, Korean, Japanese: with our vocabulary or not."""
    assert 0.75 <= estimate_tokens(text) / counted <= 1.25
    assert 0.75 <= estimate_tokens(text, count_tokens(text)) / counted <= 1.25


def test_english_is_counted_by_the_vocabulary() -> None:
    """A dash or a name with an accent changes nothing; an empty text has none."""
    assert estimate_tokens("The key — José's — lives in vault B", 12) == 12
    assert estimate_tokens("") == 0
