"""For tests: a fixed clock, a scripted language model, and the laws that parts keep.

The laws are in `bethink.testing.conformance`. Nothing here is used as a default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bethink.core.json_schema import SchemaViolation, validate
from bethink.core.json_values import Json
from bethink.ports import Budget, Prompt, Unusable
from bethink.testing.conformance import (
    LawBroken,
    check_assembler,
    check_embedder,
    check_fusion,
    check_importer,
    check_pool,
    check_reranker,
    check_retriever,
    check_stage,
    check_store,
    sample_context,
    sample_memory,
    sample_pools,
)

__all__ = [
    "FixedClock", "LawBroken", "ScriptedModel", "check_assembler", "check_embedder",
    "check_fusion", "check_importer", "check_pool", "check_reranker", "check_retriever",
    "check_stage", "check_store", "sample_context", "sample_memory", "sample_pools",
]  # fmt: skip


@dataclass(slots=True)
class FixedClock:
    """A clock that only moves when advanced."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        """Advance by so many ``days``, ``hours``, ``seconds``."""
        self.now += timedelta(**by)


@dataclass(slots=True)
class ScriptedModel:
    """A language model whose answers come from a function; they are validated as usual.

    ``prompts`` keeps the prompts it received, in order.
    """

    answer: Callable[[Prompt], Json]
    name: str = "scripted:model"
    prompts: list[Prompt] = field(default_factory=list)

    def complete(self, prompt: Prompt, *, budget: Budget) -> Json:
        """Return the function's answer if it matches the schema; else raise Unusable."""
        tokens_in = (len(prompt.system) + len(prompt.user)) // 4
        with budget.reserve(tokens_in, prompt.output_tokens) as charge:
            self.prompts.append(prompt)
            made = self.answer(prompt)
            charge.commit(tokens_in, len(str(made)) // 4)
        try:
            validate(made, prompt.schema)
        except SchemaViolation as misfit:
            raise Unusable(
                f"{self.name} gave no usable answer to {prompt.name!r}: {misfit}"
            ) from misfit
        return made
