"""The view of an answer in Chromium: a real server, the official client and host, real keys."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bethink.server.mcp.view import MIME
from naughty import NAUGHTY
from nodes import browser, packages, ran
from server_process import PATIENT

SCRIPT = str(Path(sys.executable).with_name("bethink"))
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

MARKUP = (
    "<img src=x onerror=\"window.pwned=1;alert('heron')\"> heron",
    "<script>window.pwned=1;alert(1)</script> heron",
    "</script><svg onload=alert(1)> heron </style><iframe src=javascript:alert(1)>",
    "<a href=javascript:alert(1) autofocus onfocus=alert(1)>heron</a>",
    "{{constructor.constructor('alert(1)')()}} heron ${alert(1)} <%= 7*7 %>",
    "<meta http-equiv=refresh content='0;url=http://evil.test/heron'>",
    "<link rel=stylesheet href=http://evil.test/heron.css> heron",
    "<style>*{display:none}</style> heron <base href=http://evil.test/>",
)
NAMES = ("Amber", "Basalt", "Cobalt", "Dolomite", "Emerald", "Feldspar")
KNOWN = [f"Release {name} of the ferry planner went out" for name in NAMES]


@pytest.fixture(scope="module")
def drawn(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What a host and its reader see of several answers."""
    folder, chromium = packages(request.config), browser()
    place = tmp_path_factory.mktemp("view")
    shots = Path(os.environ.get("PICTURES_FOLDER", place))
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "BETHINK_DATA_DIR": str(place)}
    env |= PATIENT | {"BETHINK_WORKER": "off"}
    hostile = [{"text": f"heron {text}"} for text in (*MARKUP, *NAUGHTY[::9]) if text.strip()]
    about = ("kind", "topic", "source")
    hostile += [
        {"text": f"heron number {number}", **dict.fromkeys(about, text[:400])}
        for number, text in enumerate(MARKUP)
    ]
    known = [{"text": text} for text in KNOWN]
    told = {
        "server": {"command": SCRIPT, "args": ["mcp"], "env": env, "cwd": str(place)},
        "chromium": chromium,
        "shots": str(shots),
        "memories": [*hostile, *known],
        "markup": MARKUP[0],
        "hostile": "heron",
        "query": "ferry planner release",
        "names": NAMES,
        "missed": MARKUP[0],
        "unknown": "how do I tune a violin?",
    }
    report: dict[str, Any] = ran("view_in_browser.mjs", told, folder=folder)
    return report


def test_nothing_a_memory_says_becomes_more_than_text(drawn: dict[str, Any]) -> None:
    """Neither an element nor a script nor a request; it stands there as it was stored."""
    hostile, seen = drawn["hostile"], drawn["seen"]

    assert len(hostile["given"]) > len(MARKUP)
    assert hostile["drawn"] == hostile["given"]
    assert sum(MARKUP[1] in fact for fact in hostile["facts"]) >= 3
    assert not [name for name in hostile["attributes"] if name.startswith("on")]
    assert not {"href", "src", "srcset", "action"} & {*hostile["attributes"]}
    assert not {"img", "iframe", "a", "style", "link", "meta", "base"} & {*hostile["tags"]}
    assert hostile["drawings"] == ["bar-svg", "meter", "rect"]  # ours, not a memory's
    assert hostile["scripts"] == 1
    assert hostile["pwned"] == "undefined"
    assert (seen["dialogs"], seen["requests"], seen["console"]) == (0, [], [])
    assert seen["mime"] == MIME


def test_an_answer_can_be_read_and_asked_about(drawn: dict[str, Any]) -> None:
    """Scores, sums by the keyboard alone, a filter, the rest, the theme, the height."""
    found = drawn["found"]

    assert found["question"] == "ferry planner release"
    assert found["scores"] == [f"{round(100 * one)}% relevant" for one in found["relevance"]]
    assert drawn["focused"] == "Evidence of rank 1"
    assert drawn["sum"] == f"{found['answer'][0]:.3f}"
    assert drawn["filtered"] == {"shown": 1, "status": "1 of 3 shown"}
    assert found["leftOut"] > 0
    assert drawn["more"]["hits"] == 3 + min(3, found["leftOut"])
    assert f"there is no memory {MARKUP[0]!r}" in drawn["missed"]
    assert drawn["dark"] == "rgb(22, 26, 33)"
    assert drawn["seen"]["sizes"] > 0


def test_what_is_not_known_is_said_plainly(drawn: dict[str, Any]) -> None:
    """With the nearest miss; asked why only where the host passes calls on."""
    assert drawn["silent"]["status"] == "No memory is returned."
    assert drawn["silent"]["buttons"] == []
    assert drawn["helpful"]["status"] == "No memory is returned."
    assert "Why not?" in drawn["helpful"]["buttons"]
    assert "from 1 to 50" in drawn["refused"]
    assert drawn["asked"] == [f"entity: {MARKUP[0]}"]
