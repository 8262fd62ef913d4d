"""The view of an answer: one closed page, for hosts that draw views; nothing for the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from bethink import Memory
from bethink.model import Evidence, replay
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.mcp.view import (
    EVIDENCE_KEY,
    EXTENSION,
    MIME,
    URI,
    client_supports_views,
    render_page,
)
from bethink.server.tools import TOOLS
from deferred import Deferred
from nodes import ran
from rows import each_row

mcp_server = Deferred("bethink.server.mcp.server")

mcp_sdk = Deferred("mcp.client.client", "mcp.client.extension")
types = Deferred("mcp_types")

SOURCE = Path(__file__).parents[4] / "ui" / "src"
MOST_BYTES = 45_000
NAMESPACES = r'"http://www\.w3\.org/[\w/]+"|`http://www\.w3\.org/[\w/]+`'  # of SVG: no addresses


MAKES_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|\bFunction\("
    r"|createContextualFragment|DOMParser|setHTMLUnsafe"
)


@each_row("path", sorted(SOURCE.rglob("*.ts*")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_source_makes_markup_from_text(path: Path) -> None:
    """Neither the inspector nor the view of a recall has a way to turn a memory into HTML."""
    text = path.read_text(encoding="utf-8")

    assert not MAKES_MARKUP.search(text)
    assert "dangerouslySetInnerHTML" not in text


def test_the_view_is_made_of_the_parts_of_the_inspector() -> None:
    """A hit, its text and its evidence are the same components in both."""
    view = (SOURCE / "recall" / "view.tsx").read_text(encoding="utf-8")
    ask = (SOURCE / "views" / "ask.tsx").read_text(encoding="utf-8")

    for part in ("<Hit ", "<EvidenceWaterfall "):
        assert part in view
        assert part in ask


def test_the_page_is_small_and_closed() -> None:
    """No address, no markup made from data, no code but its own: the hashes say so."""
    made = render_page()

    assert len(made.encode()) < MOST_BYTES
    assert "{" + "script}" not in made
    assert "{" + "policy}" not in made
    assert not re.search(r"https?:|//[a-z]|src=|@import|url\(", re.sub(NAMESPACES, "", made))
    assert not MAKES_MARKUP.search(made)
    shell = re.sub(r"<(script|style)>.*?</\1>", "", made, flags=re.DOTALL)
    assert not re.search(r"\bon\w+=|<(?!/|!|html|head|meta|title|body|div)", shell)
    assert re.search(r"script-src 'sha256-[^']+'; style-src 'sha256-[^']+'", made)
    assert "default-src 'none'" in made
    assert made.count("<script>") == made.count("</script>") == 1


@each_row(
    ("capabilities", "draws"),
    [
        ({"extensions": {EXTENSION: {"mimeTypes": [MIME]}}}, True),
        ({"extensions": {EXTENSION: {"mimeTypes": ["text/html", MIME]}}}, True),
        ({"extensions": {EXTENSION: {"mimeTypes": ["text/html"]}}}, False),
        ({"extensions": {EXTENSION: {"mimeTypes": MIME}}}, False),
        ({"extensions": {EXTENSION: {}}}, False),
        ({"extensions": {EXTENSION: None}}, False),
        ({"extensions": {"other": {"mimeTypes": [MIME]}}}, False),
        ({"extensions": []}, False),
        ({"extensions": None}, False),
        ({}, False),
    ],
)
def test_who_says_so_draws(capabilities: dict[str, Any], draws: bool) -> None:
    """By the extension and the kind of page; whatever else is said is no promise."""
    assert client_supports_views(capabilities) is draws


def test_only_who_draws_hears_of_the_view() -> None:
    """The other's lists are the same to the byte as if there were none."""
    plain = ServerManifest(TOOLS).lists_for({})
    drawn = ServerManifest(TOOLS).lists_for({"extensions": {EXTENSION: {"mimeTypes": [MIME]}}})

    [recall, *others] = drawn["tools/list"]["tools"]
    assert recall["_meta"] == {"ui": {"resourceUri": URI}, "ui/resourceUri": URI}
    assert not any("_meta" in tool for tool in others)
    assert drawn["resources/list"]["resources"][-1]["uri"] == URI
    assert "ui://" not in str(plain)


class Given(MemoryLoader):
    """A memory that is open already."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.settings)
        self._given = memory
        self._load_model()

    def _open(self) -> Memory:
        return self._given


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_host_that_draws_gets_the_page_and_the_sums(memory: Memory, mode: str) -> None:
    """In both eras; the evidence beside the answer adds up to the scores in it."""
    memory.remember("The deploy key lives in vault B")

    async def run() -> None:
        server = mcp_server.make_server(ServerManifest(TOOLS), Given(memory))
        asked = {"query": "where is the deploy key?"}
        draws = [mcp_sdk.advertise(EXTENSION, {"mimeTypes": [MIME]})]
        async with mcp_sdk.Client(server, mode=mode, extensions=draws) as drawing:
            told = await drawing.call_tool("recall", asked)
            read = (await drawing.read_resource(URI)).contents[0]
            assert isinstance(read, types.TextResourceContents)
            assert read.mime_type == MIME
            assert read.text == render_page()
            assert read.meta == {"ui": {"prefersBorder": True}}
        async with mcp_sdk.Client(server, mode=mode) as plain:
            same = await plain.call_tool("recall", asked)
            assert same.structured_content == told.structured_content
            assert EVIDENCE_KEY not in (same.meta or {})
        [hit] = (told.structured_content or {})["memories"]
        evidence = (told.meta or {})[EVIDENCE_KEY][hit["id"]]
        reasons = [Evidence(one["by"], one["op"], one["value"]) for one in evidence]
        assert replay(reasons) == pytest.approx(hit["score"])

    anyio.run(run)


def test_the_line_to_the_host() -> None:
    """The greeting, tools through the host and what is not heard: spoken in Node."""
    told = ran("view_line.mjs", {"script": str(SOURCE / "recall" / "host.js")})

    assert told == {"told": ["found", "k is 500", "denied", "nothing"]}
