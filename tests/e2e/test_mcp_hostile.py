"""No string, in any place a client can put it, gets anything but an answer or a refusal by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from jsonschema import Draft202012Validator

from bethink import Memory, errors
from bethink.config.settings import Settings
from bethink.errors import BethinkError
from bethink.render.wire import dumps
from bethink.server.mcp.manifest import (
    ENTITY_NAME_ARGUMENTS,
    PROMPTS,
    TEMPLATES,
    complete_argument,
    read_resource,
    render_prompt,
)
from bethink.server.mcp.requests import ERROR_KIND_KEY
from bethink.server.tools import TOOLS
from bethink.server.tools.tool import Call, Reply, validate_arguments
from bethink.testing import FixedClock
from corpus import NOTES, NOW
from deferred import Deferred
from naughty import NAUGHTY
from server_process import SCRIPT, clean_environment
from thorough import share

mcp_sdk = Deferred("mcp.client.client", "mcp.client.stdio", "mcp.shared.exceptions")
types = Deferred("mcp_types")

pytestmark = pytest.mark.timeout(600)

INTERNALS = re.compile(
    r"Traceback|\.py\b|sqlite|apsw|SELECT |0x[0-9a-f]{6}|bug in Bethink", re.IGNORECASE
)
KINDS = {
    name for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, BethinkError)
}  # fmt: skip
OTHERS: tuple[Any, ...] = (
    float("nan"), float("inf"), -1, 0, 2**63, -(2**63), 10**5000, 1e308, True, [], {}, [[[[]]]],
    {"$ne": None}, ["a", 7], ["a" * 2000], [None], {"a": {"b": {}}},
)  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {
    "remember": {"text": "The deploy key lives in vault B"},
    "note_edit": {"path": "a.py"},
    "recall": {"query": "deploy key"},
    "recall_file": {"path": "a.py"},
    "read_smart": {"path": "notes.txt"},
}
EVERYWHERE = [
    (tool.name, name) for tool in TOOLS.values() for name in tool.input_schema["properties"]
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A few notes, by words alone: what is tested here is no matter of meaning."""
    (tmp_path / "notes.txt").write_text("a note\n")
    settings = Settings(project=tmp_path)
    with Memory.open(
        ":memory:", embedder="none", clock=FixedClock(NOW), settings=settings
    ) as opened:
        opened.remember_many(NOTES[:6])
        yield opened


def attempt(call: Callable[[], Any], given: Any) -> Any:
    """What a call answers, or its refusal, which has a name and nothing of what is inside."""
    try:
        return call()
    except BethinkError as error:
        refused = error
    except Exception as error:
        error.add_note(
            f"given {type(given).__name__} {str(given)[:200] if isinstance(given, str) else ''}"
        )
        raise
    assert type(refused).__name__ in KINDS
    assert refused.message
    if not INTERNALS.search(str(given) if isinstance(given, str | list) else ""):
        assert not INTERNALS.search(refused.message)
    return refused


def asked(memory: Memory, tool: str, **told: Any) -> Reply:
    """A tool as the server calls it, its answer held to its schema and to UTF-8."""
    reply = TOOLS[tool](Call(memory, validate_arguments(told, TOOLS[tool].input_schema)))
    Draft202012Validator(TOOLS[tool].output_schema).validate(reply.content)
    dumps(reply.content).encode("utf-8")
    reply.text.encode("utf-8")
    return reply


@pytest.mark.parametrize(("tool", "name"), EVERYWHERE)
def test_every_parameter_of_every_tool(memory: Memory, tool: str, name: str) -> None:
    """Every string and what is no string: answered in the tool's schema, or refused.
    Neighbouring parameters share the strings; the texts of memories and questions get all
    of them in the tests below and in `test_hostile`."""
    takes = TOOLS[tool].input_schema["properties"]
    needed = NEEDED.get(tool) or ({"id": memory.browse(limit=1)[0].id} if "id" in takes else {})
    wraps: list[Callable[[str], Any]] = [lambda text: text]
    if takes[name]["type"] == "array":
        wraps.append(lambda text: [text])
    # Where no string belongs, each is refused before it is read: a few will do.
    strings = NAUGHTY[::20]
    if takes[name]["type"] in ("string", "array"):
        strings = share(NAUGHTY, EVERYWHERE.index((tool, name)))
    for value in [wrap(text) for text in strings for wrap in wraps] + list(OTHERS):
        attempt(lambda given=value: asked(memory, tool, **needed | {name: given}), value)

    assert [finding for finding in memory.doctor() if not finding.ok] == []


def test_what_is_stored_comes_back(memory: Memory) -> None:
    """The text and all that is said about it, as they were given; or the memory is refused."""
    kept = 0
    for number, text in enumerate(NAUGHTY):
        stored = attempt(lambda given=text: asked(memory, "remember", text=given), text)
        if isinstance(stored, Reply) and stored.content["status"] == "stored":
            item = memory.get(stored.content["id"])
            assert item.text == text or stored.content["redacted"]
            kept += 1
        about = {"kind": text, "topic": text, "tags": [text], "source": text}
        told = {"text": f"note {number} with details", **about}
        stored = attempt(lambda given=told: asked(memory, "remember", **given), text)
        if isinstance(stored, Reply) and not stored.content["redacted"] and text.strip():
            item = memory.get(stored.content["id"])
            found = (item.kind, item.topic, item.tags, item.source)
            assert found == (text.strip(), text.strip(), (text,), text)

    assert kept > 250


def test_every_name_that_is_not_known(memory: Memory) -> None:
    """Of an argument, a resource, a prompt, a filter: each is refused, none is searched for."""
    known = {*TOOLS["recall"].input_schema["properties"]}
    for text in NAUGHTY:
        for tool in TOOLS.values():
            if text not in known:
                refused = attempt(
                    lambda given=text, to=tool: validate_arguments({given: 1}, to.input_schema),
                    text,
                )
                assert isinstance(refused, BethinkError)
        for uri in (text, f"memory://{text}", f"memory://{text}/x", f"ui://{text}"):
            assert isinstance(
                attempt(lambda given=uri: read_resource(given, memory), uri), BethinkError
            )
        gone = attempt(lambda given=text: render_prompt(given, {}, lambda: memory), text)
        assert isinstance(gone, BethinkError)


def test_every_template_and_prompt_argument(memory: Memory) -> None:
    """Written as it is and as an address writes it, whole and to be completed."""
    for number, text in enumerate(NAUGHTY):
        for template in share(TEMPLATES, number, 2):
            start = template["uriTemplate"].partition("{")[0]
            for written in (text, quote(text, safe="", errors="surrogatepass")):
                attempt(lambda given=start + written: read_resource(given, memory), text)
        for name, prompt in share(tuple(PROMPTS.items()), number, 2):
            given = dict.fromkeys(prompt.arguments, text)
            told = attempt(
                lambda one=name, args=given: render_prompt(one, args, lambda: memory), text
            )
            if isinstance(told, str):
                told.encode("utf-8")
        for taker, argument in ENTITY_NAME_ARGUMENTS:
            attempt(
                lambda given=text, at=(taker, argument): complete_argument(*at, given, memory), text
            )
            for at in ((text, argument), (taker, text)):
                gone = attempt(lambda given=at: complete_argument(*given, "a", memory), text)
                assert isinstance(gone, BethinkError)


def test_a_sample_through_a_real_server(tmp_path: Path) -> None:
    """Over standard input and output: no protocol error, no traceback, every failure named."""
    strings = [
        text for text in NAUGHTY[::7] if not any("\ud800" <= one <= "\udfff" for one in text)
    ]
    log, refused = tmp_path / "log.txt", list[str]()

    async def call(client: mcp_sdk.Client, tool: str, **told: Any) -> types.CallToolResult:
        result = await client.call_tool(tool, told)
        text = "".join(one.text for one in result.content if isinstance(one, types.TextContent))
        if result.is_error:
            assert (result.meta or {})[ERROR_KIND_KEY] in KINDS, text
            assert not INTERNALS.search(text) or any(one in text for one in told.values())
        return result

    async def read_one(client: mcp_sdk.Client, uri: str) -> None:
        try:
            await client.read_resource(uri)
        except mcp_sdk.MCPError as error:
            refused.append(error.data["kind"])

    async def run() -> None:
        server = mcp_sdk.StdioServerParameters(
            command=SCRIPT, args=["mcp", "--tools", "all"], cwd=tmp_path,
            env=clean_environment(tmp_path, BETHINK_EMBEDDER="none"),
        )  # fmt: skip
        with log.open("w") as errors_:
            async with mcp_sdk.Client(mcp_sdk.stdio_client(server, errlog=errors_)) as client:
                for text in strings:
                    stored = await call(client, "remember", text=text)
                    if not stored.is_error:
                        item = (stored.structured_content or {})["id"]
                        await call(client, "explain", query=text, id=item)
                    await call(client, "recall", query=text, entity=text)
                    await call(client, "read_smart", path=text)
                    await call(client, "forget", ids=[text])
                    for uri in (f"memory://entity/{quote(text, safe='')}", "memory://item/%00"):
                        await read_one(client, uri)

    anyio.run(run)
    assert {*refused} <= KINDS
    assert "Traceback" not in log.read_text()
