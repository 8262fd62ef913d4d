"""What a profile says about looking deeper."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deep:
    """A profile's ``[deep]`` table: its slots are then those of the wider walk.

    ``first`` names the profile of the first walk; without it that is this profile's own
    channels, fusion and gate. The best ``look`` hits and ``captions`` are judged.
    ``covered`` of the question's telling words, by rarity, must be held by the best hit
    for it to be enough. A lexical score of ``strong`` that leads by ``lead`` needs no
    expansions; otherwise at most ``most`` are asked, for ``share`` of what the question
    itself counts: LEX of the channels ``lex``, VEC and HYDE of ``vec`` (by default all
    that go by words, or by meaning). The best ``protect`` of the first walk stay in
    front, ``protect_several`` where several things are asked for: then the first look
    has seen the least of it. A model may take ``seconds`` and so many tokens.
    """

    first: str = ""
    look: int = 20
    captions: int = 5
    covered: float = 1.0
    strong: float = 0.85
    lead: float = 0.15
    most: int = 3
    share: float = 0.5
    protect: int = 0
    protect_several: int = 0
    lex: tuple[str, ...] = ()
    vec: tuple[str, ...] = ()
    feedback: int = 5
    days: float = 7.0
    seconds: float = 20.0
    tokens_in: int = 40_000
    tokens_out: int = 4_000
