"""The tools as functions of a chat API: for any model that can call functions, by no server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from recollect.errors import RecollectError, Refused
from recollect.ingest.strict_json import strict_json
from recollect.jsonable import Json
from recollect.mcp.schema import checked
from recollect.mcp.tool import Call
from recollect.mcp.tools import chosen
from recollect.quoting import one_line

if TYPE_CHECKING:
    from recollect.memory import Memory

VIA = "function"


class Functions:
    """The tools over one memory, as the OpenAI APIs have functions, which many servers speak.

    ``offered`` goes into a request as ``tools``. What a model then calls, `answer` carries
    out and gives the message to send back. Needs no extra. ``tools`` names tools beside the
    usual seven, ``client`` whoever shall stand as the source of what is written.
    """

    def __init__(
        self,
        memory: Memory,
        tools: Sequence[str] = (),
        *,
        api: Literal["chat", "responses"] = "chat",
        client: str = "",
    ) -> None:
        self.memory, self._api, self._client = memory, api, client
        self._tools = chosen(tools)

    @property
    def offered(self) -> list[Json]:
        """The tools, as a request names them."""
        told = [
            {"name": tool.name, "description": tool.description, "parameters": tool.takes}
            for tool in self._tools.values()
        ]
        if self._api == "responses":
            # Not strict: most arguments may be left out, which strict functions do not know.
            return [{"type": "function", "strict": False, **one} for one in told]
        return [{"type": "function", "function": one} for one in told]

    def answer(self, call: Any) -> Json:
        """The message that answers a call: an object of the SDK, or the same as JSON."""
        told = call if isinstance(call, Mapping) else call.model_dump()
        if self._api == "responses":
            said = self.call(told["name"], told["arguments"])
            return {"type": "function_call_output", "call_id": told["call_id"], "output": said}
        function = told["function"]
        said = self.call(function["name"], function["arguments"])
        return {"role": "tool", "tool_call_id": told["id"], "content": said}

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> str:
        """What the tool says to a model; a mistake of the model's is a sentence to act on."""
        try:
            if name not in self._tools:
                known = ", ".join(self._tools)
                raise Refused(f"there is no function {name!r:.80}", remedy=f"one of {known}")
            tool = self._tools[name]
            told = checked(_object(arguments), tool.takes)
            return tool(Call(self.memory, told, self._client, VIA)).text
        except RecollectError as error:
            remedy = f". Try: {one_line(error.remedy, 1000)}" if error.remedy else ""
            return f"error: {one_line(error.message, 500)}{remedy}"


def _object(arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    told = strict_json(arguments or "{}") if isinstance(arguments, str) else arguments
    if not isinstance(told, Mapping):
        raise Refused("the arguments must be a JSON object")
    return dict(told)
