"""Deep recall: sufficiency check, query expansion and a second, wider pass."""

from __future__ import annotations

from bethink.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeepSettings:
    """A profile's ``[deep]`` table: its slots are then those of the wider pass.

    ``first`` names the profile of the first pass; by default it is this profile's own
    channels, fusion and gate. The best ``look`` hits and ``captions`` are judged. The best
    hit must hold ``covered`` of the question's content terms, weighted by idf, to be
    sufficient. A lexical score of ``strong`` that leads by ``lead`` needs no expansions;
    otherwise at most ``most`` are run, each weighted by ``share``: LEX by the channels
    ``lex``, VEC and HYDE by ``vec`` (by default all that search by words, or by meaning).
    The best ``protect`` hits of the first pass stay on top, ``protect_several`` where
    several answers are expected. ``feedback`` hits feed the expansions, ``days`` is their
    time window. ``seconds``, ``tokens_in`` and ``tokens_out`` limit the model.
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
