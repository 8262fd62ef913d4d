"""The MCP conformance suite against the server over HTTP, and what others' clients can do.

The suite tests servers by their address alone, so standard input and output are proven by
the Inspector and the two official clients. The packaged suite has no scenarios for 2026-07-28.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import warm
from bethink.server.mcp.manifest import PROMPTS, RESOURCES
from bethink.server.tools.catalog import DEFAULT_TOOLS
from nodes import SCRIPTS, node, packages, ran
from server_process import SCRIPT, clean_environment, http_server
from thorough import share

_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
EXPECTED = Path(__file__).parent / "mcp-conformance-expected.json"
# Each starts servers and Node.
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture(scope="module")
def npm(request: pytest.FixtureRequest) -> Path:
    return packages(request.config)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder whose memory holds a little."""
    (tmp_path / ".git").mkdir()
    for words in (
        ["remember", "Releases are cut on Tuesdays at ten", "--id", "rel-day"],
        ["note-edit", "app.py", "--intent", "faster start"],
    ):
        warm.run(
            [SCRIPT, *words],
            cwd=tmp_path,
            env=clean_environment(tmp_path),
            check=True,
            capture_output=True,
        )
    return tmp_path


def outcomes(npm: Path, url: str, out: Path, *which: str) -> dict[str, list[str]]:
    """What became of every check, by scenario."""
    suite = npm / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    asked = ["--url", url, "--output-dir", str(out), *which]
    done = subprocess.run(
        [node(), "--import", SCRIPTS / "older_node.mjs", suite, "server", *asked],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "passed" in done.stdout.lower(), done.stderr[-2000:]
    told: dict[str, list[str]] = {}
    for place in out.glob("server-*/checks.json"):
        named = _FOLDER.fullmatch(place.parent.name)
        assert named is not None, place
        told[named["scenario"]] = [one["status"] for one in json.loads(place.read_text())]
    return told


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_the_suite_fails_where_it_is_expected_to_and_nowhere_else(
    npm: Path, project: Path, tmp_path: Path, version: str
) -> None:
    """The list is kept true both ways; each entry has its reason."""
    expected = json.loads(EXPECTED.read_text())
    with http_server(project) as url:
        which = ("--suite", "all", "--spec-version", version)
        told = outcomes(npm, url, tmp_path / "out", *which)

    failed = {name for name, checks in told.items() if "FAILURE" in checks}
    assert len(told) > 20
    assert failed == {name for name in told if name in expected}
    if version == "2025-11-25":
        assert told["dns-rebinding-protection"].count("SUCCESS") == 2
        assert expected.keys() - told.keys() == {"about"}


def test_a_name_that_leads_here_from_elsewhere_is_refused(npm: Path, project: Path) -> None:
    """DNS rebinding, by the other address of this machine as well."""
    try:
        with http_server(project, host="::1") as url:
            told = outcomes(npm, url, project / "out", "--scenario", "dns-rebinding-protection")
    except OSError as error:
        pytest.skip(f"this machine has no address ::1: {error}")

    assert told == {"dns-rebinding-protection": ["SUCCESS", "SUCCESS"]}


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("remember", {"text": "The staging database is called heron"}),
    ("recall", {"query": "when are releases cut?"}),
    ("update_memory", {"id": "rel-day", "topic": "releases"}),
    ("forget", {"ids": ["rel-day"]}),
    ("list_entities", {}),
    ("recall_file", {"path": "app.py"}),
    ("explain", {"query": "when are releases cut?", "id": "rel-day"}),
]


def inspected(npm: Path, server: list[str], *words: str, **room: Any) -> Any:
    """What the Inspector's command line prints."""
    script = npm / "node_modules" / "@modelcontextprotocol" / "inspector-cli" / "build" / "index.js"
    done = subprocess.run(
        [node(), script, *server, *words], capture_output=True, text=True, check=False,
        timeout=300, **room,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_inspector_lists_and_calls_everything(npm: Path, project: Path, way: str) -> None:
    """By standard input and output and by HTTP: tools, the seven between them, resources, prompts."""

    def look(server: list[str], **at: Any) -> None:
        tools = inspected(npm, server, "--method", "tools/list", **at)["tools"]
        assert [tool["name"] for tool in tools] == [tool.name for tool in DEFAULT_TOOLS]
        for name, arguments in share(CALLS, ("stdio", "http").index(way), of=2):
            given = [
                f"--tool-arg={key}={value if isinstance(value, str) else json.dumps(value)}"
                for key, value in arguments.items()
            ]
            asked = ["--method", "tools/call", "--tool-name", name, *given]
            told = inspected(npm, server, *asked, **at)
            assert not told.get("isError"), told
            assert told["structuredContent"]
        found = inspected(npm, server, "--method", "resources/list", **at)["resources"]
        assert [one["uri"] for one in found] == [one["uri"] for one in RESOURCES]
        read = inspected(
            npm, server, "--method", "resources/read", "--uri", "memory://item/rel-day", **at
        )
        assert "Tuesdays" in read["contents"][0]["text"]
        prompts = inspected(npm, server, "--method", "prompts/list", **at)["prompts"]
        assert [one["name"] for one in prompts] == list(PROMPTS)

    if way == "stdio":
        look([SCRIPT, "mcp"], cwd=project, env=clean_environment(project))
    else:
        with http_server(project) as url:
            look([url, "--transport", "http"], cwd=project, env=clean_environment(project))


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_typescript_client_uses_everything(npm: Path, project: Path, way: str) -> None:
    """It checks every answer against its schema by itself."""
    if way == "stdio":
        server = {
            "command": SCRIPT,
            "args": ["mcp"],
            "env": clean_environment(project),
            "cwd": str(project),
        }
        told = ran("typescript_client.mjs", {"server": server, "calls": CALLS}, folder=npm)
    else:
        with http_server(project) as url:
            told = ran("typescript_client.mjs", {"url": url, "calls": CALLS}, folder=npm)

    assert told["tools"] == [tool.name for tool in DEFAULT_TOOLS]
    assert told["prompts"] == list(PROMPTS)
    assert told["calls"]["recall"]["memories"][0]["id"] == "rel-day"
    assert told["calls"]["explain"]["about"] == "why"
    assert not told["calls"]["forget"]["done"]


def test_the_official_host_understands_the_view(npm: Path) -> None:
    """Every message of the view's, checked by the schemas of MCP Apps; no browser is needed."""
    script = Path(__file__).parents[2] / "ui" / "src" / "recall" / "host.js"

    told = ran("view_bridge.mjs", {"script": str(script)}, folder=npm)

    assert told["app"] == {"name": "bethink", "version": "1"}
    assert told["heard"] == ["tool-input", "tool-result", "host-context-changed"]
    assert told["called"] == {"name": "explain", "arguments": {"query": "a", "id": "b"}}
    assert told["answers"] == ["why", "it is refused"]
    assert told["size"] == {"width": 600, "height": 321}
    assert told["warnings"] == []
