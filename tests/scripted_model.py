"""A model of the OpenAI Agents SDK whose answers are prepared."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import ModelResponse, Usage
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.models.interface import Model


class ScriptedModel(Model):
    """A model that gives prepared answers and keeps what it was asked."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = list(answers)
        self.inputs: list[list[TResponseInputItem]] = []

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the interface's name
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        self.inputs.append(
            input if isinstance(input, list) else [{"role": "user", "content": input}]
        )
        return ModelResponse(output=self.answers.pop(0), usage=Usage(), response_id=None)

    async def stream_response(  # type: ignore[override]
        self, *args: Any, **kwargs: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError
        yield
