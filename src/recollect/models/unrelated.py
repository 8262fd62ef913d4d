"""How alike a model finds texts that have nothing to do with each other.

Cosines of two models cannot be compared: one may give 0.05 to strangers, another 0.7.
Where a stage judges a cosine by itself, it must know where the model's scale begins.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.models.breaker import Breaker
from recollect.models.lazy import Once
from recollect.places import cache_folder, make_private_folder
from recollect.ports import Embedder
from recollect.whole_file import replace_whole

if TYPE_CHECKING:
    from recollect.ports import Matrix

FILE = "scales.json"
# A measurement that failed must not hold up every question.
_REST_S = 300.0
# Of a model that finds everything alike nothing could be judged: as good as that.
_HIGHEST = 0.99

_log = logging.getLogger(__name__)

QUESTIONS = (
    "Which port does the billing service listen on?",
    "When is my sister's wedding?",
    "Who repaired the roof last winter?",
    "What did the dentist say about the wisdom tooth?",
    "How long does the train to Lisbon take?",
    "Where did we plant the apple trees?",
    "Why was the release postponed?",
    "What is the name of the neighbour's dog?",
    "Which book did the reading group choose?",
    "How much flour goes into the bread?",
    "What colour will the kitchen be painted?",
    "Did the violin teacher move to another school?",
)
STATEMENTS = (
    "The museum is closed on Mondays in the low season.",
    "Our compiler warns about unused variables by default.",
    "She scored twice in the second half and was named player of the match.",
    "The bank raised the interest on savings by a quarter of a percent.",
    "Glaciers in the valley have lost a third of their ice since the eighties.",
    "He collects stamps from countries that no longer exist.",
    "The hearing before the court was adjourned until further notice.",
    "A battery of this kind survives about two thousand charging cycles.",
    "Bees find their way home by the position of the sun.",
    "The actor forgot his lines and the audience applauded all the same.",
    "Customs officers seized forty crates at the border.",
    "Their satellite sends a picture of the coast every ninety minutes.",
)


def measure(embedder: Embedder) -> float:
    """Asks the model about questions and statements on as many subjects; the same model
    gives the same answer."""
    import numpy as np  # start-up time

    asked = np.stack([embedder.embed_query(text).vector for text in QUESTIONS])
    return between(asked, np.stack([one.vector for one in embedder.embed(STATEMENTS)]))


def between(asked: Matrix, told: Matrix) -> float:
    """How alike unit vectors of questions and of statements are, usually."""
    return float((asked @ told.T).mean())


class Scale:
    """Where a model's scale begins: measured once on this machine, then read from a file.

    Where measuring fails it raises ModelError, and for a while does so without trying
    again. Without a place for the file every process measures for itself.
    """

    def __init__(
        self, model: Callable[[], str], ask: Callable[[], float], *, cache: Path | None = None
    ) -> None:
        """``model`` names the model and ``ask`` measures it; neither is called yet.
        ``cache`` is where the file is; without it, in the user's cache folder."""
        self._model, self._ask, self._cache = model, ask, cache
        self._begins = Once(self._find)
        self._breaker = Breaker(limit=1, rest_s=_REST_S)

    def __call__(self) -> float:
        """The cosine of two texts that have nothing to do with each other, usually."""
        return self._begins() if self._begins else self._breaker(self._begins)

    def _find(self) -> float:
        path = (self._cache or cache_folder() / "models") / FILE
        known = _read(path)
        model = self._model()
        if model not in known:
            known[model] = min(self._ask(), _HIGHEST)
            _keep(path, known)
        return known[model]


def _read(path: Path) -> dict[str, float]:
    """What is known of models; of a file that is damaged, what can be believed."""
    with suppress(OSError, ValueError, RecursionError):
        kept = json.loads(path.read_bytes())
        if isinstance(kept, dict):
            return {name: value for name, value in kept.items() if _is_cosine(value)}
    return {}


def _is_cosine(value: object) -> bool:
    return isinstance(value, float) and -1.0 <= value <= _HIGHEST


def _keep(path: Path, known: dict[str, float]) -> None:
    try:
        make_private_folder(path.parent)
        replace_whole(path, json.dumps(known, indent=1, sort_keys=True).encode() + b"\n")
    except OSError as error:
        _log.debug("the scale of a model is not kept: %s", error)
