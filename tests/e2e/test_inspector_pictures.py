"""Every view of the inspector looks as it did: light and dark, on a phone and on a desk.

The answers of the server are recorded ones of the demo's memories, so that only the page itself can
change a picture. What is compared does not depend on the fonts of a machine: which parts there are,
where the large ones lie, and the colours of each. Where the fonts measure as they did when the
references were made, small pictures are compared as well, with room for another Chromium.

``INSPECTOR_REFERENCES=write`` records the answers and the references anew.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

import warm
from bethink import Memory
from inspector_page import (
    LATEST_MS,
    SCRIPT,
    WAITING,
    Inspector,
    new_context,
    own_headers,
    room,
    running_browser,
    running_inspector,
)

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]
FOLDER = Path(__file__).parents[1] / "golden" / "inspector"
ANSWERS, LAYOUT, PICTURES = (
    FOLDER / name for name in ("answers.json.gz", "layout.json", "pictures.npz")
)
WRITES = os.environ.get("INSPECTOR_REFERENCES") == "write"
SIZES = {375: 812, 1440: 900}
SCHEMES = ("light", "dark")
VIEWS = ("ask", "trace", "compare", "memories", "memory", "inbox", "graph", "time", "insights",
         "threads", "sharing", "health")  # fmt: skip
QUESTION = "how many times is a failed text message retried?"
SCALE = 0.1
# Their place and width do not depend on fonts.
BLOCKS = (".side", "main", ".card", ".columns", ".vtable", ".vbody", ".chart", ".hit",
          ".hit-rank", "table", ".notice", ".search-row")  # fmt: skip
# Their number and their colours do not.
PARTS = (*BLOCKS, "h1", "h2", ".input", ".button", ".badge", ".meter", ".meter rect", ".bar",
         ".bar-svg", ".nav a", "mark", ".vrow", "th", ".bump.kept", ".slope-box", ".node", ".edge",
         ".lane-row", ".text", ".pre", ".facts dt", ".tree > li", "summary", ".muted")  # fmt: skip
NEAR_PX = 18  # a scroll bar more or less
MEASURED = "The quick brown fox jumps over 1,234 lazy dogs."

_LOOK = """([blocks, parts]) => {
  const seen = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
  const colours = (one) => {
    const style = getComputedStyle(one);
    return [style.color, style.backgroundColor, style.borderTopColor, style.fill, style.stroke].join(" ");
  };
  return {
    counts: Object.fromEntries(parts.map((name) => [name, all(name).length])),
    places: Object.fromEntries(blocks.map((name) => [name, all(name).slice(0, 6).map((one) => {
      const box = one.getBoundingClientRect();
      return [Math.round(box.left), Math.round(box.width)];
    })])),
    colours: Object.fromEntries(parts.map((name) => [name, [...new Set(all(name).slice(0, 20).map(colours))].sort()])),
  };
}"""
_FONTS = """(text) => {
  const pen = document.createElement("canvas").getContext("2d");
  return ["--sans", "--mono"].map((name) => {
    pen.font = `100px ${getComputedStyle(document.documentElement).getPropertyValue(name)}`;
    return pen.measureText(text).width.toFixed(1);
  }).join(" ");
}"""
# How many requests the page waits for; a view stands still only while it waits for none.
_COUNT_REQUESTS = """(() => {
  const ask = window.fetch;
  window.requestsUnderWay = 0;
  window.fetch = (...given) => {
    window.requestsUnderWay += 1;
    return ask(...given).finally(() => { window.requestsUnderWay -= 1; });
  };
})()"""


class Recorded:
    """Answers of a server, by what was asked."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.addresses: dict[str, str] = told.get("addresses", {})
        self.now: str = told.get("now", "")
        self.answers: dict[str, Any] = told.get("answers", {})
        self.unknown: list[str] = []

    def replay(self, route: Route) -> None:
        key = _asked(route)
        if key in self.answers:
            route.fulfill(json=self.answers[key])
        else:
            self.unknown.append(key)
            route.abort()

    def record(self, route: Route) -> None:
        if _asked(route) in self.answers:  # the picture and the answer belong together
            self.replay(route)
            return
        answer = route.fetch()
        if answer.ok and "page_key" not in answer.text():
            self.answers[_asked(route)] = answer.json()
        route.fulfill(response=answer)


def _asked(route: Route) -> str:
    """What a request asks for, whatever the order in which it says so."""
    request = route.request
    parts = urlsplit(request.url)
    body = json.loads(request.post_data) if request.post_data else {}
    return json.dumps(
        [request.method, parts.path, sorted(parse_qsl(parts.query)), body], sort_keys=True
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    if WRITES:
        FOLDER.mkdir(exist_ok=True)
        return Recorded({})
    return Recorded(json.loads(gzip.decompress(ANSWERS.read_bytes())))


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspector]:
    """The server of the page: with the demo's memories to record, else with none."""
    folder = tmp_path_factory.mktemp("pictures")
    if WRITES:
        warm.run(
            [SCRIPT, "demo", "--keep"], cwd=folder, env=room(folder), check=True,
            capture_output=True,
        )  # fmt: skip
        with Memory.open(path=folder / "data" / "spaces" / "demo.db") as memory:
            memory.remember_many(WAITING, review=True)
    else:
        place = folder / "data" / "spaces" / "demo.db"
        place.parent.mkdir(parents=True)
        Memory.open(path=place, embedder="none").close()
    with running_inspector(
        folder, "demo", **({} if WRITES else {"BETHINK_EMBEDDER": "none"})
    ) as found:
        yield found


@pytest.fixture(scope="module")
def context(browser: Browser, inspector: Inspector, recorded: Recorded) -> Iterator[BrowserContext]:
    with new_context(browser, timezone_id="UTC", reduced_motion="reduce") as made:
        made.add_init_script(_COUNT_REQUESTS)
        if WRITES:
            page = made.new_page()
            page.goto(inspector.link)
            expect(page.get_by_role("heading", name="Ask")).to_be_visible(timeout=LATEST_MS)
            _find_addresses(made, inspector, recorded)
            page.close()
        made.route("**/v1/**", recorded.record if WRITES else recorded.replay)
        yield made
    if WRITES:
        told = {"addresses": recorded.addresses, "now": recorded.now, "answers": recorded.answers}
        text = json.dumps(told, sort_keys=True, ensure_ascii=False)
        ANSWERS.write_bytes(gzip.compress(text.encode(), mtime=0))


def _find_addresses(context: BrowserContext, inspector: Inspector, recorded: Recorded) -> None:
    """Choose what the views show, and the moment at which they show it."""
    headers = own_headers(context, inspector.url)
    asked = {"query": QUESTION}
    answer = context.request.post(f"{inspector.url}/v1/recall", data=asked, headers=headers)
    best = answer.json()["memories"][0]["id"]
    words = quote(QUESTION)
    recorded.now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    recorded.addresses |= {name: f"/{name}" for name in VIEWS} | {
        "ask": f"/ask?q={words}&open={best}",
        "trace": f"/trace?q={words}",
        "compare": f"/compare?q={words}",
        "memory": f"/memories/{best}",
        "graph": "/graph?node=person:ines",
    }


@pytest.fixture(scope="module")
def references() -> Iterator[dict[str, Any]]:
    """The references: those that are kept, or those of this run, which are then kept."""
    if not WRITES:
        known = json.loads(LAYOUT.read_text(encoding="utf-8"))
        with np.load(PICTURES) as pictures:
            known["pictures"] = dict(pictures)
        yield known
        return
    made: dict[str, Any] = {"fonts": "", "layout": {}, "pictures": {}}
    yield made
    np.savez_compressed(PICTURES, **made.pop("pictures"))
    LAYOUT.write_text(json.dumps(made, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def open_view(page: Page, inspector: Inspector, recorded: Recorded, view: str, width: int) -> None:
    """Open a view as wide as this."""
    page.set_viewport_size({"width": width, "height": SIZES[width]})
    page.clock.set_fixed_time(recorded.now)
    page.goto(f"{inspector.url}/ui{recorded.addresses[view]}")
    expect(page.locator("main h1")).to_be_visible(timeout=LATEST_MS)


def show_in(page: Page, scheme: str) -> None:
    """Show the page in light or in dark, and wait until it stands still."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    expect(page.locator(".loading.on")).to_have_count(0, timeout=LATEST_MS)
    before, until = "", time.monotonic() + LATEST_MS / 1000
    while time.monotonic() < until:
        now = json.dumps(page.evaluate(_LOOK, [BLOCKS, PARTS])) + _captured(page)
        if now == before and page.evaluate("window.requestsUnderWay") == 0:
            return
        before = now
        page.wait_for_timeout(150)
    pytest.fail(f"{page.url} does not come to rest")


def _captured(page: Page) -> str:
    """A small picture of the window, as Chromium gives it."""
    size = page.viewport_size
    assert size is not None
    session = page.context.new_cdp_session(page)
    clip = {"x": 0, "y": 0, "scale": SCALE, **size}
    told = session.send("Page.captureScreenshot", {"format": "png", "clip": clip})
    session.detach()
    return str(told["data"])


def picture(page: Page) -> np.ndarray[Any, Any]:
    """A small picture of the window: rows, columns, red green blue."""
    return decoded(base64.b64decode(_captured(page)))


def decoded(png: bytes) -> np.ndarray[Any, Any]:
    """The colours of a PNG of 8 bits without interlacing."""
    at, data, width, height, depth = 8, b"", 0, 0, 0
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, bits, colour, *_, interlaced = struct.unpack(">IIBBBBB", body)
            assert (bits, interlaced) == (8, 0)
            depth = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * depth)
    made = np.zeros((height, width * depth), np.uint8)
    above = [0] * (width * depth)
    for place, line in enumerate(lines.tolist()):
        above = _unfiltered(line[0], line[1:], above, depth)
        made[place] = above
    return made.reshape(height, width, depth)[:, :, :3]


def _unfiltered(kind: int, line: list[int], above: list[int], depth: int) -> list[int]:
    made: list[int] = []
    for at, value in enumerate(line):
        left = made[at - depth] if at >= depth else 0
        corner = above[at - depth] if at >= depth else 0
        up = above[at]
        guess = left + up - corner
        nearest = min((left, up, corner), key=lambda one: abs(guess - one))
        added = (0, left, up, (left + up) // 2, nearest)[kind]
        made.append((value + added) % 256)
    return made


def differences(known: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    """What is not as it was, in words."""
    found = [
        f"{name}: {seen['counts'][name]} instead of {count}"
        for name, count in known["counts"].items()
        if seen["counts"][name] != count
    ]
    for name, places in known["places"].items():
        for one, other in zip(places, seen["places"][name], strict=False):
            if max(abs(a - b) for a, b in zip(one, other, strict=True)) > NEAR_PX:
                found.append(f"{name} at {other} instead of {one}")
    for name, colours in known["colours"].items():
        if seen["colours"][name] != colours:
            found.append(f"colours of {name}: {seen['colours'][name]} instead of {colours}")
    return found


def share_of_differing(known: np.ndarray[Any, Any], seen: np.ndarray[Any, Any]) -> float:
    """The share of a small picture that has clearly another colour."""
    if known.shape != seen.shape:
        return 1.0
    return float((np.abs(known.astype(int) - seen.astype(int)).max(axis=2) > 40).mean())


MOST_DIFFERING = 0.01


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_looks_as_it_did(
    context: BrowserContext,
    inspector: Inspector,
    recorded: Recorded,
    references: dict[str, Any],
    view: str,
) -> None:
    """The same parts at the same places in the same colours, and the same picture."""
    page = context.new_page()
    for width in SIZES:
        open_view(page, inspector, recorded, view, width)
        for scheme in SCHEMES:
            name = f"{view}-{width}-{scheme}"
            show_in(page, scheme)
            seen, drawn = page.evaluate(_LOOK, [BLOCKS, PARTS]), picture(page)
            fonts = page.evaluate(_FONTS, MEASURED)
            if WRITES:
                references["layout"][name], references["pictures"][name] = seen, drawn
                references["fonts"] = fonts
                continue
            assert differences(references["layout"][name], seen) == [], name
            if fonts == references["fonts"]:
                share = share_of_differing(references["pictures"][name], drawn)
                assert share <= MOST_DIFFERING, name
    page.close()
    assert recorded.unknown == []


PLANTED = {
    "one column": ".columns { grid-template-columns: 1fr !important }",
    "no meters": ".meter { display: none !important }",
    "another accent": ":root { --accent: #c02020 !important }",
    "no bars": ".bar { fill: none !important }",
    "unreadable marks": "mark { background: var(--ink) !important }",
    "wide cards": ".page { max-width: 40rem !important }",
}


@pytest.mark.skipif(WRITES, reason="the references are being written")
def test_what_breaks_a_view_is_seen(
    context: BrowserContext,
    inspector: Inspector,
    recorded: Recorded,
    references: dict[str, Any],
) -> None:
    """On every machine, whatever its fonts: the planted faults differ without the picture."""
    page = context.new_page()
    open_view(page, inspector, recorded, "ask", 1440)
    show_in(page, "light")
    known, unseen = references["layout"]["ask-1440-light"], []
    for fault, rule in PLANTED.items():
        page.evaluate("rule => document.styleSheets[0].insertRule(rule)", rule)
        if not differences(known, page.evaluate(_LOOK, [BLOCKS, PARTS])):
            unseen.append(fault)
        page.evaluate("document.styleSheets[0].deleteRule(0)")
    sound = differences(known, page.evaluate(_LOOK, [BLOCKS, PARTS]))
    page.close()

    assert (unseen, sound) == ([], [])


def test_a_picture_is_read_as_it_was_drawn() -> None:
    """All five ways to write a line of a PNG, and the share that differs."""
    rng = np.random.default_rng(7)
    image = rng.integers(0, 256, (5, 6, 3), dtype=np.uint8)
    lines, above = [], np.zeros(18, int)
    for kind, row in enumerate(image.reshape(5, 18).astype(int)):
        left = np.concatenate([np.zeros(3, int), row[:-3]])
        corner = np.concatenate([np.zeros(3, int), above[:-3]])
        guess = left + above - corner
        choice = np.stack([left, above, corner])
        nearest = choice[np.abs(guess - choice).argmin(axis=0), np.arange(18)]
        added = (0, left, above, (left + above) // 2, nearest)[kind]
        lines.append(bytes([kind]) + ((row - added) % 256).astype(np.uint8).tobytes())
        above = row
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 6, 5, 8, 2, 0, 0, 0)),
              (b"IDAT", zlib.compress(b"".join(lines))))  # fmt: skip
    png = bytes(8) + b"".join(
        struct.pack(">I", len(body)) + kind + body + bytes(4) for kind, body in chunks
    )

    assert (decoded(png) == image).all()
    assert share_of_differing(image, image) == 0.0
    assert share_of_differing(image, 255 - image) > 0.5
