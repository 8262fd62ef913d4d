"""Parts for tests: clocks that stand still, models that say what they are told.

Never used behind a default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from recollect.ports import Budget, Prompt, Unusable
from recollect.prompts.schema import Misfit, validate


@dataclass(slots=True)
class FixedClock:
    """A clock that stands still until told otherwise."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        """Moves on by so many ``days``, ``hours``, ``seconds``."""
        self.now += timedelta(**by)


@dataclass(slots=True)
class ScriptedModel:
    """A language model whose answers a function makes; they are checked like any other's.

    ``prompts`` keeps what it was asked, in order.
    """

    answer: Callable[[Prompt], Any]
    name: str = "scripted:model"
    prompts: list[Prompt] = field(default_factory=list)

    def complete(self, prompt: Prompt, *, budget: Budget) -> dict[str, Any]:
        """What the function says, if that keeps the schema; else Unusable."""
        tokens_in = (len(prompt.system) + len(prompt.user)) // 4
        with budget.reserve(tokens_in, prompt.output_tokens) as charge:
            self.prompts.append(prompt)
            made = self.answer(prompt)
            charge.cost(tokens_in, len(str(made)) // 4)
        try:
            validate(made, prompt.schema)
        except Misfit as misfit:
            raise Unusable(
                f"{self.name} gave no usable answer to {prompt.name!r}: {misfit}"
            ) from misfit
        kept: dict[str, Any] = made
        return kept
