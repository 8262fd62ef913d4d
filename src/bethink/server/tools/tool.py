"""Tool definitions as data, argument validation, calls and replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from bethink.core.characters import find_unstorable
from bethink.core.dataclass import dataclass, field
from bethink.core.json_schema import Violation, find_violation, with_article
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, Refused, TooLarge
from bethink.server.tools.answers import NOTICE, sanitize

if TYPE_CHECKING:
    from bethink.memory import Memory


_UNITS = {"maxLength": "characters", "maxItems": "entries"}
_MAX_SHOWN_CHARS = 60  # characters of a wrong value to repeat
_MAX_SHOWN_BITS = 64  # bits of the largest integer that is written out


def validate_arguments(given: Mapping[str, object], schema: Json) -> Json:
    """Return the arguments without nulls, or raise Refused with the rule that one breaks.

    Null means that an argument was left out: many models send it so.
    """
    known = schema["properties"]
    for name in given:
        if name not in known:
            raise Refused(
                f"there is no argument {_describe_value(name)}",
                remedy=f"allowed: {', '.join(known)}",
            )
    arguments = {
        name: _listed(value, known[name]) for name, value in given.items() if value is not None
    }
    for name in schema.get("required", ()):
        if name not in arguments:
            raise Refused(f"the argument {name} is missing", remedy=known[name]["description"])
    for name, value in arguments.items():
        broken = find_violation(value, _without_entry_rules(known[name]), name)
        if broken is not None:
            raise _refusal(broken)
    return arguments


def _listed(value: object, schema: Json) -> object:
    """A list of one, where a text is given for a list of texts."""
    is_list = schema["type"] == "array" and schema["items"]["type"] == "string"
    return [value] if is_list and isinstance(value, str) else value


def _without_entry_rules(schema: Json) -> Json:
    """Leave the objects in a list to the tool, which stores or refuses each on its own."""
    is_batch = schema["type"] == "array" and schema["items"]["type"] == "object"
    return schema | {"items": {"type": "object"}} if is_batch else schema


def _refusal(broken: Violation) -> Refused:
    """Return the error for a broken rule: the argument, the value and the rule."""
    name, rule, value, schema = broken
    if rule == "type":
        expected = with_article(schema["type"])
        return Refused(f"{name} is {_describe_value(value)}, but must be {expected}")
    if rule == "additionalProperties":
        unknown = next(key for key in value if key not in schema["properties"])
        remedy = f"allowed: {', '.join(schema['properties'])}"
        return Refused(f"{name} has no {_describe_value(unknown)}", remedy=remedy)
    if rule == "storable":
        found = find_unstorable(value)
        assert found is not None
        return BadText(f"{name} holds a {found[1]} at character {found[0] + 1}", remedy="remove it")
    if rule == "enum":
        choices = ", ".join(schema["enum"])
        return Refused(f"{name} is {_describe_value(value)}", remedy=f"one of {choices}")
    if rule in _UNITS:
        return TooLarge(name, limit=schema[rule], actual=len(value), unit=_UNITS[rule])
    bounds = "a finite number"
    if "minimum" in schema:
        bounds = f"from {schema['minimum']:,} to {schema['maximum']:,}"
    return Refused(f"{name} is {_describe_value(value)}, but must be {bounds}")


def _describe_value(value: object) -> str:
    """Return a short description of a wrong value, however large or deep it is."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,}"
    if isinstance(value, int) and value.bit_length() > _MAX_SHOWN_BITS:
        return "a number beyond all bounds"
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN_CHARS else text[: _MAX_SHOWN_CHARS - 1] + "…"


class Reply(NamedTuple):
    """A tool's answer: text for the model, structured content, and metadata for a view."""

    text: str
    content: Json
    meta: Json | None = None


def ignore_progress(done: int, total: int) -> None:
    """Ignore progress (the default callback)."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the memory it may use, its validated arguments and its caller.

    It has no space: the server decides that, and no argument can change it. ``supports_views``
    says that the host draws views, which need more data than a model; ``for_program`` that a
    program reads the answer, which gets more of it than a model; ``may_track`` that a recall may
    record what it returned.
    """

    memory: Memory
    arguments: Json
    client: str = ""
    via: str = "mcp"
    progress: Callable[[int, int], None] = field(default=ignore_progress)
    supports_views: bool = False
    for_program: bool = False
    may_track: bool = True

    @property
    def source(self) -> str:
        """The default source of what the call writes."""
        return f"{self.via}:{self.client}" if self.client else self.via

    def given(self, *names: str) -> Json:
        """Return those of the named arguments that were given."""
        return {name: self.arguments[name] for name in names if name in self.arguments}


def _without_audience(schema: Json) -> Json:
    """Return a schema as it is offered: only people are offered an audience."""
    if "audience" not in schema["properties"]:
        return schema
    rest = {name: one for name, one in schema["properties"].items() if name != "audience"}
    return schema | {"properties": rest}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool definition with its JSON Schemas and the handler behind it.

    ``module`` holds the handler, a function of the tool's name, and is imported when the tool is
    called. What only reads is also idempotent. Texts in the answer are cut at ``max_text``
    characters; a tool with a budget of its own has None. ``view`` is the URI of the page that
    displays the answer, for hosts that support views. A tool of another ``system`` names the
    ``operation`` of the policy table that it does.
    """

    name: str
    title: str
    description: str
    input_schema: Json
    output_schema: Json
    module: str
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    max_text: int | None = 2000
    view: str = ""
    system: str = ""
    operation: str = ""

    def definition(self, *, supports_views: bool = False) -> Json:
        """Return the entry in `tools/list`, with its view only for hosts that support views."""
        entry: Json = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": _without_audience(self.input_schema),
            "outputSchema": self.output_schema,
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.read_only or self.idempotent,
                "openWorldHint": False,
            },
        }
        if not (self.view and supports_views):
            return entry
        # The second name is that of the draft of the extension; older hosts read it.
        return entry | {"_meta": {"ui": {"resourceUri": self.view}, "ui/resourceUri": self.view}}

    def run_untruncated(self, call: Call) -> Reply:
        """Run the tool and return the reply with uncut texts: for programs, not for models.

        An answer that holds stored texts says how to treat them.
        """
        module = import_module(self.module)
        made: Reply = module.run(self, call) if self.system else getattr(module, self.name)(call)
        if "notice" in self.output_schema["properties"]:
            return made._replace(content={"notice": NOTICE, **made.content})
        return made

    def __call__(self, call: Call) -> Reply:
        made = self.run_untruncated(call)
        return made._replace(
            content=sanitize(made.content, self.max_text), meta=sanitize(made.meta, self.max_text)
        )
