"""What a captured text seems worth: a logistic model over its form and its meaning.

The weights are fitted by ``training/fit_worth.py``: with those of our encoder's vector where it
made one, otherwise with the form alone. The reason of a judgement are the two terms
that speak most against a text.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold
from bethink.ingest.record_builder import classify_kind
from bethink.ports import Embedding

WEIGHTS = Path(__file__).parent / "worth.json"
_MEANING = "meaning"
_PLAIN_KINDS = ("note", "question", "episode", "insight")
_MAX_COUNTED = 4  # names of particular things
_MAX_WORDS = 8  # longer is not better
# What each term says against keeping a text.
SAYS = {
    "length": "short", "brevity": "a few words", "plain": "few plain words",
    "identifiers": "names nothing in particular", "numbers": "numbers instead of words",
    "symbols": "like the output of a program", "end": "no end of a sentence",
    "question": "a question", "longest": "like a path or a value", "capital": "like a fragment",
    "kind": "no decision, rule or fact", "instructions": "instructions to a model",
    "repeats": "nearly known already", _MEANING: "says what is being done, not what holds",
}  # fmt: skip
FEATURES = tuple(name for name in SAYS if name != _MEANING)


class Worth(NamedTuple):
    """What a text seems worth, 0 to 1, and why."""

    share: float
    reason: str


def form_of(text: str, flags: tuple[str, ...] = (), nearest: float = 0.0) -> list[float]:
    """Return the features of a text's form; ``nearest`` is the cosine of what is most like it."""
    words = text.split()
    bare = [word.strip(".,;:!?()\"'«»¿¡`") for word in words]
    plain = [word for word in bare if word.isalpha()]
    named = [w for w in bare if not w.isalpha() and any(map(str.isalpha, w))]
    named += [word for word in plain[1:] if not word.islower()]
    shown = [char for char in text if not char.isspace()] or [" "]
    odd = sum(not (char.isalnum() or char in ".,;:'’\"-?!()") for char in shown)
    kind = classify_kind(fold(text), "item")
    last = text.rstrip()[-1:]
    return [
        math.log1p(min(_MAX_WORDS, len(words))),
        1.0 / max(1, len(words)),
        len(plain) / max(1, len(words)),
        min(_MAX_COUNTED, len(named)) / _MAX_COUNTED,
        sum(any(map(str.isdigit, word)) for word in words) / max(1, len(words)),
        odd / len(shown),
        float(last in {".", "!", "。"}),
        float(last == "?"),
        math.log1p(max(map(len, words), default=0)),
        float(text[:1].isupper()),
        float(kind not in _PLAIN_KINDS),
        float("injection" in flags),
        max(0.0, nearest - 0.5),
    ]


@cache
def _weights() -> Json:
    read: Json = json.loads(WEIGHTS.read_text("utf-8"))
    return read


def is_ours(model: str) -> bool:
    """Whether the vectors of a model are those that the weights were fitted to."""
    return bool(model == _weights()["model"])


def judge(form: list[float], embedding: Embedding | None = None, model: str = "") -> Worth:
    """Judge a text by its form and, where our encoder made a vector of it, its meaning."""
    known = _weights()
    head = known["with_meaning" if embedding is not None and is_ours(model) else "form"]
    columns = zip(FEATURES, head["weights"], head["means"], form, strict=True)
    terms = {name: weight * (value - mean) for name, weight, mean, value in columns}
    if head is known["with_meaning"] and embedding is not None:
        found = sum(w * float(v) for w, v in zip(known["vector"], embedding.vector, strict=True))
        terms[_MEANING] = found * known["scale"] - head["meaning_mean"]
    total = head["bias"] + sum(terms.values())
    told = [SAYS[name] for name in sorted(terms, key=terms.__getitem__)[:2] if terms[name] < 0]
    return Worth(1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, total)))), ", ".join(told))
