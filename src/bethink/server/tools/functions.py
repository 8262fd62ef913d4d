"""The tools as function definitions of a chat API, usable without a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bethink.core.json_values import Json, parse_strict_json
from bethink.errors import BethinkError, Refused
from bethink.memory import Memory
from bethink.render.quoting import one_line
from bethink.server.tools import select_tools
from bethink.server.tools.answers import in_tool_words
from bethink.server.tools.tool import Call, validate_arguments

VIA = "function"


class Functions:
    """The tools over one memory as functions of the OpenAI APIs, which many servers support.

    Pass ``offered`` as ``tools`` in a request. `answer` runs what a model calls and returns the
    message to send back. Needs no extra. ``tools`` names tools in addition to the seven default
    ones; ``client`` is recorded in the source of every memory it writes.
    """

    def __init__(
        self,
        memory: Memory,
        tools: Sequence[str] = (),
        *,
        api: Literal["chat", "responses"] = "chat",
        client: str = "",
    ) -> None:
        # A model is shown nothing above the classification that the settings allow.
        self.memory = memory.below(memory.settings.max_classification)
        self._api, self._client = api, client
        self._tools = select_tools(tools)

    @property
    def offered(self) -> list[Json]:
        """The function definitions for a request's ``tools``."""
        definitions = [
            {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
            for tool in self._tools.values()
        ]
        if self._api == "responses":
            # Not strict: strict functions have no optional arguments.
            return [
                {"type": "function", "strict": False, **definition} for definition in definitions
            ]
        return [{"type": "function", "function": definition} for definition in definitions]

    def answer(self, call: Any) -> Json:
        """Run a call, an SDK object or its JSON, and return the message that answers it."""
        data = call if isinstance(call, Mapping) else call.model_dump()
        if self._api == "responses":
            output = self.call(data["name"], data["arguments"])
            return {"type": "function_call_output", "call_id": data["call_id"], "output": output}
        function = data["function"]
        output = self.call(function["name"], function["arguments"])
        return {"role": "tool", "tool_call_id": data["id"], "content": output}

    def call(self, name: str, arguments: str | Mapping[str, object]) -> str:
        """Run a tool and return its text; a model's mistake becomes a message to act on."""
        try:
            if name not in self._tools:
                known = ", ".join(self._tools)
                raise Refused(f"there is no function {name!r:.80}", remedy=f"use one of {known}")
            tool = self._tools[name]
            validated = validate_arguments(_parse_arguments(arguments), tool.input_schema)
            return tool(Call(self.memory, validated, self._client, VIA)).text
        except BethinkError as error:
            remedy = f". Try: {one_line(error.remedy, 1000)}" if error.remedy else ""
            return in_tool_words(f"error: {one_line(error.message, 500)}{remedy}")


def _parse_arguments(arguments: str | Mapping[str, object]) -> Json:
    parsed = parse_strict_json(arguments or "{}") if isinstance(arguments, str) else arguments
    if not isinstance(parsed, Mapping):
        raise Refused("the arguments must be a JSON object")
    return dict(parsed)
