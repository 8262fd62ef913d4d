"""The inspector in Chromium: every view and action on the demo's memories, and hostile ones."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Error, Locator, Page, Route, expect

import warm
from bethink import Memory
from bethink.model import Draft
from bethink.server.rest.browser import open_browser
from inspector_page import (
    LATEST_MS,
    SCRIPT,
    WAITING,
    Faults,
    Inspector,
    new_context,
    own_headers,
    room,
    running_browser,
    running_inspector,
    running_server,
    wait_until,
)
from naughty import NAUGHTY

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
expect.set_options(timeout=LATEST_MS)

QUESTION = "how many times is a failed text message retried?"
ANSWER = "The SMS worker retries a failed message 3 times."
MARKUP = (
    "heron <img src=x onerror=\"alert('heron')\">",
    "heron <script>alert(1)</script>",
    "heron </script><svg onload=alert(1)></style><iframe src=javascript:alert(1)>",
    "heron <a href=javascript:alert(1) autofocus onfocus=alert(1)>heron</a>",
    "heron {{constructor.constructor('alert(1)')()}} ${alert(1)}",
    "heron <meta http-equiv=refresh content='0;url=http://evil.test/'><base href=http://evil.test/>",
    "heron <style>*{display:none}</style><link rel=stylesheet href=http://evil.test/heron.css>",
    "heron \u202egnp.exe\u202c \u2066hidden\u2069 \U000e0041 zero\u200bwidth",
    "heron " + "word " * 12_000,
    "heron 👩‍👩‍👧‍👦 🏳️‍🌈 مرحبا بالعالم 漢字かな " + "z" * 3000,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspector]:
    folder = tmp_path_factory.mktemp("demo")
    warm.run(
        [SCRIPT, "demo", "--keep"], cwd=folder, env=room(folder), check=True, capture_output=True
    )
    with running_inspector(folder, "demo") as found:
        yield found


@pytest.fixture(scope="module")
def signed_in(browser: Browser, demo: Inspector) -> Iterator[BrowserContext]:
    """A browser that opened the one-time link."""
    with new_context(browser, viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        with page.expect_response("**/v1/session") as answer:
            page.goto(demo.link)
        assert answer.value.status == 200
        expect(page.get_by_role("heading", name="Ask")).to_be_visible()
        page.close()
        yield context


@pytest.fixture
def faults(demo: Inspector) -> Faults:
    return Faults(demo.url)


@pytest.fixture
def page(signed_in: BrowserContext, faults: Faults) -> Iterator[Page]:
    """A page in which nothing may go wrong."""
    made = signed_in.new_page()
    faults.watch(made)
    yield made
    made.close()
    assert faults.found == []


def open_view(page: Page, demo: Inspector, path: str, heading: str) -> None:
    page.goto(f"{demo.url}/ui{path}")
    expect(page.get_by_role("heading", name=heading, exact=True, level=1)).to_be_visible()


def settle(page: Page) -> None:
    """Wait until nothing loads any more."""
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator(".loading.on")).to_have_count(0)


def focus_search(page: Page) -> None:
    """Press the key for the search until it answers: keys begin to count after the first paint."""
    search = page.locator("[data-search]").first
    expect(search).to_be_visible()

    def is_focused() -> bool:
        page.keyboard.press("/")
        return bool(search.evaluate("field => field === document.activeElement"))

    wait_until(page, is_focused, "the key for the search does not answer")


def test_a_question_is_answered_and_every_score_adds_up(page: Page, demo: Inspector) -> None:
    """The tier in words, matched words marked, the agent's text, and evidence per hit."""
    open_view(page, demo, "/ask", "Ask")
    focus_search(page)
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")

    expect(page.get_by_text("Stored on this subject.").first).to_be_visible()
    first = page.locator(".hit").first
    expect(first).to_contain_text(ANSWER)
    expect(first.locator("mark").first).to_be_visible()
    expect(page.locator(".pre")).to_contain_text("is stored data")
    first.get_by_role("button", name="Evidence").click()
    expect(page.get_by_text("The contributions add up to the score.")).to_be_visible()
    assert "open=" in page.url
    page.reload()
    expect(page.get_by_text("The contributions add up to the score.")).to_be_visible()


def test_a_missing_memory_is_explained(page: Page, demo: Inspector) -> None:
    """Why not: the step at which it fell out, and what would bring it in."""
    open_view(page, demo, f"/ask?q={quote('when does the nightly backup run?')}&k=1", "Ask")
    page.get_by_label("Words or id of a memory that you expected").fill("rehearsed")
    page.get_by_role("button", name="Restoring the backup was rehearsed").click()

    expect(page.get_by_text(re.compile("fell out at"))).to_be_visible()
    expect(page.get_by_text("To have it in the answer")).to_be_visible()


def test_every_step_has_its_time_and_its_reason(page: Page, demo: Inspector) -> None:
    """The trace lists steps, those that were skipped with why, and how ranks moved."""
    open_view(page, demo, f"/trace?q={quote(QUESTION)}", "Trace")

    steps = page.get_by_role("region", name="Steps").get_by_role("row")
    expect(steps.filter(has_text="Budget")).to_have_count(1)
    expect(steps.filter(has_text="skipped").first).to_contain_text("the question")
    page.locator(".bump.kept").first.locator("circle").last.click()
    expect(page.locator(".bump.on")).to_have_count(1)
    assert "follow=" in page.url


def test_a_deep_recall_shows_what_it_asked_in_addition(page: Page, demo: Inspector) -> None:
    """Its judgement of the first answer, and further searches where that was not enough."""
    open_view(page, demo, f"/trace?q={quote(QUESTION)}&profile=default-deep", "Trace")

    expect(page.get_by_role("heading", name="Deep recall")).to_be_visible()
    expect(page.get_by_text("Deep: sufficiency").last).to_be_visible()


def test_profiles_are_compared(page: Page, demo: Inspector) -> None:
    """Ranks side by side, and each difference with its reason."""
    open_view(page, demo, "/compare?q=text+messages", "Compare")

    expect(page.locator(".slope-line").first).to_be_attached()
    expect(page.get_by_text("not returned").first).to_be_visible()
    page.get_by_role("button", name="Add a profile").click()
    expect(page.locator(".card.series")).to_have_count(3)
    assert "profiles=" in page.url


def test_memories_are_listed_searched_and_filtered(page: Page, demo: Inspector) -> None:
    """The list, a search that answers while one types, and filters in the address."""
    open_view(page, demo, "/memories", "Memories")
    # Other tests store some, too.
    expect(
        page.get_by_role("status").filter(has_text=re.compile("2[5-9] memories"))
    ).to_be_visible()
    page.get_by_label("Search the memories").fill("backup")
    expect(page.get_by_role("table", name="Memories found")).to_contain_text("nightly backup")
    assert "q=backup" in page.url
    # A word is found before it is finished; what nothing is like is said to be so.
    page.get_by_label("Search the memories").fill("brie")
    first = page.get_by_role("table", name="Memories found").get_by_role("row").nth(1)
    expect(first).to_contain_text("weather briefing")
    page.get_by_label("Search the memories").fill("zzzzqqq")
    expect(page.get_by_role("status").filter(has_text="Perhaps none of these")).to_be_visible()
    open_view(page, demo, "/memories?kind=decision", "Memories")
    expect(page.get_by_role("status").filter(has_text="2 memories")).to_be_visible()


def test_a_memory_is_corrected_pinned_linked_forgotten_restored(
    page: Page, demo: Inspector
) -> None:
    """Every change says what it did, shows in the page, and can be taken back."""
    open_view(page, demo, "/memories?q=Tomas+is+on+call", "Memories")
    page.get_by_role("link", name="Tomas is on call").click()
    expect(page.get_by_text("It was never corrected.")).to_be_visible()

    page.get_by_role("button", name="Correct").click()
    text = page.get_by_role("textbox", name="Text")
    text.fill("Tomas is on call in even weeks, Ines in odd weeks.")
    text.press("Control+Enter")
    expect(page.get_by_text("Corrected; this is revision 2.")).to_be_visible()
    expect(page.locator(".revision .text").last).to_contain_text("odd → even")
    around = page.locator("section, .card").filter(has_text="Before and after")
    expect(around.locator("strong").last).to_contain_text("in even weeks")

    page.get_by_role("button", name="Correct").click()
    page.get_by_label("Tags").fill("rota, people")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("rota, people")).to_be_visible()

    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    page.get_by_role("button", name="Forget", exact=True).click()
    page.get_by_role("button", name="Unpin and forget").click()
    page.get_by_role("button", name="Restore").click()

    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Link to another").click()
    page.get_by_label("The other one").fill("deploys Tuesdays")
    page.get_by_role("button", name="Deploys go out on Tuesdays").click()
    page.get_by_role("dialog").get_by_role("button", name="Link").click()
    expect(page.get_by_role("link", name="Deploys go out").first).to_be_visible()

    page.get_by_role("button", name="Forget", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_text(re.compile("forgotten "))).to_be_visible()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_text("Restored.")).to_be_visible()
    expect(page.locator(".badge.good")).to_have_text("active")


def test_erasing_asks_twice(page: Page, demo: Inspector) -> None:
    """It shows what goes, and does nothing before the word is typed."""
    page.request.post(
        f"{demo.url}/v1/memories",
        data={"text": "A note that has to go"},
        headers=own_headers(page.context, demo.url),
    )
    open_view(page, demo, "/memories?q=a+note+that+has+to+go", "Memories")
    page.get_by_role("link", name="A note that has to go").click()
    expect(page.get_by_text("More", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Erase for good")).to_be_hidden()
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Erase for good").click()
    sure = page.get_by_role("dialog").get_by_role("button", name="Erase", exact=True)
    expect(sure).to_be_disabled()
    page.get_by_label("Type erase to confirm").fill("erase")
    sure.click()

    expect(page.get_by_role("heading", name="Memories", level=1)).to_be_visible()
    expect(page.get_by_text("Erased.")).to_be_visible()


def test_memories_are_added_and_imported(page: Page, demo: Inspector) -> None:
    """With a key and Ctrl+Enter, and from a file that is shown before anything is stored."""
    open_view(page, demo, "/memories", "Memories")
    expect(page.get_by_role("table", name="Memories")).to_be_visible()
    page.keyboard.press("n")
    page.get_by_label("One fact, decision or event").fill("The lock on pier nine is new")
    page.get_by_label("Topic").fill("piers")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog").get_by_text("Stored.")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("link", name="The lock on pier nine is new")).to_be_visible()

    page.get_by_role("button", name="Import").click()
    notes = b"# Piers\n\n- Pier ten is closed in winter\n- The lock on pier nine is new\n"
    page.get_by_label("Text or Markdown").set_input_files(
        {"name": "piers.md", "mimeType": "text/markdown", "buffer": notes}
    )
    expect(page.get_by_text("2 memories, each stored or refused")).to_be_visible()
    page.get_by_role("button", name="Import 2").click()
    expect(page.get_by_text("1 memory stored.")).to_be_visible()
    expect(page.get_by_text("is there already")).to_be_visible()


def test_an_answer_is_marked_and_the_question_saved(page: Page, demo: Inspector) -> None:
    """What is right stays marked, can be asked again, and is a file that `eval` reads."""
    open_view(page, demo, f"/ask?q={quote(QUESTION)}", "Ask")
    page.get_by_role("button", name="Right at rank 1").click()
    expect(page.get_by_role("button", name="Saved")).to_be_visible()
    open_view(page, demo, "/ask", "Ask")
    expect(page.get_by_text("1 right")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download 1 judged question").click()
    line = json.loads(saved.value.path().read_text(encoding="utf-8"))
    assert (line["query"], len(line["relevant"])) == (QUESTION, 1)
    page.get_by_role("link", name=QUESTION).click()
    marked = page.get_by_role("button", name="Right at rank 1")
    expect(marked).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Saved").click()
    expect(marked).to_have_attribute("aria-pressed", "false")


def test_a_person_switches_between_the_spaces_of_a_server(browser: Browser, tmp_path: Path) -> None:
    """Those of a role, no other; a space without one asks to sign in, as an unknown one does."""
    place = _space(tmp_path, "work").parent
    for name, text in (("work", "The heron"), ("home", "The cat"), ("secret", "The spy")):
        with Memory.open(path=place / f"{name}.db", embedder="none") as memory:
            memory.remember(f"{text} sleeps at noon")
    env, tokens = room(tmp_path) | {"BETHINK_EMBEDDER": "none"}, []
    for words in (
        ("anna", "--space", "work"),
        ("ben", "--space", "home"),
        ("ben", "--space", "secret"),
        ("anna", "--space", "home", "--role", "reader"),
    ):
        added = warm.run(
            [SCRIPT, "people", "add", *words, "--json"],
            env=env, cwd=tmp_path, check=True, capture_output=True, text=True,
        )  # fmt: skip
        tokens.append(json.loads(added.stdout).get("token"))
    with (
        running_server(tmp_path, "work", "--also-space", "home", "--also-space", "secret",
                       BETHINK_EMBEDDER="none") as url,
        new_context(browser) as context,
    ):  # fmt: skip
        page = context.new_page()
        faults = Faults(url)
        faults.expected = {401}  # of a space that is not Anna's
        faults.watch(page)
        page.goto(f"{url}/ui/ask")
        page.get_by_label("Token").fill(tokens[0])
        page.get_by_role("button", name="Sign in").click()
        space = page.get_by_label("Space")
        expect(space.locator("option")).to_have_text(["work", "home"])
        space.select_option("home")
        expect(page.get_by_text("The cat sleeps at noon")).to_be_visible()
        expect(page.get_by_text("Read only")).to_be_visible()
        page.get_by_role("link", name="Sharing").click()
        expect(page.get_by_role("row", name="anna you")).to_contain_text("reader")
        page.goto(f"{url}/spaces/work/ui/memories?do=add")
        page.get_by_label("One fact").fill("The heron eats at six")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("link", name="Open it").click()
        expect(
            page.get_by_text("anna (user)").or_(page.get_by_text("anna (agent)"))
        ).to_be_visible()
        page.get_by_role("button", name="Correct").click()
        page.get_by_label("Seen by").fill("private")
        expect(page.get_by_text("loses its history")).to_be_visible()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Corrected; this is")).to_be_visible()
        expect(page.get_by_role("region", name="Text")).to_contain_text("The heron eats at six")
        page.goto(f"{url}/spaces/secret/ui/memories")
        expect(page.get_by_text("Here you see nothing of this name.")).to_be_visible()
        expect(page.get_by_text("The spy")).to_have_count(0)
        assert faults.found == []


def test_a_neighbourhood_is_drawn_the_same_every_time(page: Page, demo: Inspector) -> None:
    """Nodes and typed edges, the same places again, and the same as a table."""
    places = []
    for _ in range(2):
        open_view(page, demo, "/graph?node=person:ines", "Graph")
        expect(page.locator(".node.entity.start")).to_have_count(1)
        places.append(
            page.locator(".node").evaluate_all(
                "all => all.map((one) => one.getAttribute('transform'))"
            )
        )
    assert places[0] == places[1]
    expect(page.get_by_role("region", name="Edges")).to_contain_text("mentions")
    page.locator(".node.memory").first.click()
    page.get_by_role("link", name="Put it in the middle").click()
    expect(page.locator(".node.memory.start")).to_have_count(1)


@pytest.mark.parametrize("width", [375, 1440])
def test_names_in_a_graph_do_not_cover_each_other(page: Page, demo: Inspector, width: int) -> None:
    """They can be read on every screen, and are whole; so are all views and the space."""
    page.set_viewport_size({"width": width, "height": 900})
    open_view(page, demo, "/graph?node=person:ines", "Graph")
    expect(page.locator(".node.entity.start text")).to_be_visible()
    boxes = page.locator(".graph text").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => "
        "[box.left + 1, box.right - 1, box.top + 2, box.bottom - 2])"
    )
    assert len(boxes) >= 4
    for place, (left, right, top, bottom) in enumerate(boxes):
        assert bottom - top >= 8
        assert 0 <= left < right <= width
        for other in boxes[:place]:
            assert right < other[0] or other[1] < left or bottom < other[2] or other[3] < top
    for part in [*page.locator(".nav a").all(), page.locator(".space")]:
        box = part.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= width - box["width"]
    expect(page.locator(".legend")).to_contain_text("person")


def test_a_period_is_chosen_with_a_brush(page: Page, demo: Inspector) -> None:
    """Dragging over the histogram sets the period, in the address and in the list."""
    open_view(page, demo, "/time", "Time")
    box = page.locator(".brush").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.99, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(page.locator(".brushed")).to_be_visible()
    assert "from=" in page.url
    expect(page.get_by_role("link", name="Agreed, sorted by distance")).to_be_visible()
    expect(page.get_by_role("link", name="Lantern texts people")).to_have_count(0)


def test_maintenance_is_previewed_carried_out_and_undone(page: Page, demo: Inspector) -> None:
    """Health: the checks, a run with its preview, and its undo; all in the journal."""
    open_view(page, demo, "/health", "Health")
    expect(page.get_by_text("everything is in order")).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    expect(
        page.get_by_text("Nothing to do.").or_(page.get_by_text("leave recall").first)
    ).to_be_visible()
    expect(page.get_by_role("region", name="Journal")).to_contain_text("stored")


def test_a_report_of_an_evaluation_is_drawn(page: Page, demo: Inspector) -> None:
    """From a file of this machine that is sent nowhere; another file is refused in words."""
    bins = [{"confidence": at / 10, "right": at / 10, "share": 0.1} for at in range(10)]
    profile = {
        "name": "default",
        "calibration": {"n": 40, "ece": 0.012, "auc": 0.9, "bins": bins},
        "types": [{"type": "all", "quality": {"hit@1": 0.75, "hit@10": 0.9}}],
    }
    measured = {"label": "notes", "questions": 40, "memories": 200}
    report = json.dumps({"measured_on": measured, "profiles": [profile]}).encode()
    open_view(page, demo, "/health", "Health")
    chooser = page.get_by_label("A report of")
    chooser.set_input_files({"name": "x.json", "mimeType": "application/json", "buffer": b"[1]"})
    expect(page.get_by_text("x.json is no report of bethink eval")).to_be_visible()
    chooser.set_input_files({"name": "r.json", "mimeType": "application/json", "buffer": report})
    expect(page.get_by_text("calibration error 0.012")).to_be_visible()
    expect(page.get_by_role("cell", name="75%")).to_be_visible()


@pytest.mark.parametrize("total", [100_000, 1_000_000])
def test_a_long_table_stays_small(page: Page, demo: Inspector, total: int) -> None:
    """Only visible rows are in the page, and every row can be reached, without those between."""
    asked = []

    def listed(route: Route) -> None:
        given = parse_qs(urlsplit(route.request.url).query)
        first, size = int(given.get("offset", ["0"])[0]), int(given["limit"][0])
        asked.append(first)
        rows = [
            ROW | {"id": f"row-{at}", "text": f"Memory number {at}"}
            for at in range(first, min(first + size, total))
        ]
        counted = total if "with_total" in given else None
        answer = {"notice": "", "memories": rows, "cursor": None, "total": counted}
        route.fulfill(json=answer)

    page.route(re.compile(r"/v1/memories\?"), listed)
    open_view(page, demo, "/memories", "Memories")
    expect(page.get_by_role("link", name="Memory number 0", exact=True)).to_be_visible()
    assert page.locator(".vrow").count() < 100
    body = page.locator(".vbody")
    body.evaluate("(body) => { body.scrollTop = body.scrollHeight; }")
    expect(page.get_by_role("link", name=f"Memory number {total - 1}")).to_be_in_viewport()
    body.evaluate("(body) => { body.scrollTop = 0; }")
    expect(page.get_by_role("link", name="Memory number 0", exact=True)).to_be_in_viewport()
    assert page.locator(".vrow").count() < 100
    assert len(asked) <= 3, asked


ROW = {
    "kind": "fact",
    "level": "item",
    "topic": None,
    "when": "2026-05-07T12:00:00Z",
    "trust": 2,
    "source": "notes",
    "speaker": None,
    "status": "active",
    "pinned": False,
    "flags": [],
}


def test_the_keyboard_goes_everywhere(page: Page, demo: Inspector) -> None:
    """g and a letter, the help, and out of a field."""
    open_view(page, demo, "/ask", "Ask")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("To the search field")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for keys, heading in (("gm", "Memories"), ("gt", "Trace"), ("ga", "Ask")):
        shown = page.get_by_role("heading", name=heading, exact=True, level=1)

        def is_there(keys: str = keys, shown: Locator = shown) -> bool:
            # Two keys that a busy machine hands over too far apart are no pair.
            page.keyboard.type(keys)
            page.wait_for_timeout(100)
            return shown.is_visible()

        wait_until(page, is_there, f"{keys} does not go to {heading}")
    open_view(page, demo, f"/ask?q={quote(QUESTION)}", "Ask")
    for keys, view in (("gt", "/trace"), ("gc", "/compare"), ("ga", "/ask")):

        def keeps(keys: str = keys, view: str = view) -> bool:
            page.keyboard.type(keys)
            page.wait_for_timeout(100)
            return view in page.url

        wait_until(page, keeps, f"{keys} does not go to {view}")
        assert parse_qs(urlsplit(page.url).query)["q"] == [QUESTION]


def test_the_pages_are_accessible(signed_in: BrowserContext, page: Page, demo: Inspector) -> None:
    """axe-core finds nothing to complain about, in light and in dark."""
    own = own_headers(signed_in, demo.url)
    newest = signed_in.request.get(f"{demo.url}/v1/memories?limit=1", headers=own).json()
    item = newest["memories"][0]["id"]
    views = {
        f"/ask?q={quote(QUESTION)}&why={item}": "Ask",
        f"/trace?q={quote(QUESTION)}": "Trace",
        "/compare?q=backup": "Compare",
        "/memories": "Memories",
        f"/memories/{item}": "Memory",
        "/graph?node=person:ines&q=who+is+on+call": "Graph",
        "/time": "Time",
        "/insights": "Insights",
        "/threads": "Threads",
        "/sharing": "Sharing",
        "/memories?do=add": "Memories",
        "/inbox": "Inbox",
        "/health": "Health",
    }
    for path, heading in views.items():
        page.emulate_media(color_scheme="light")
        open_view(page, demo, path, heading)
        settle(page)
        assert _complaints(Axe().run(page).response) == [], path
        page.emulate_media(color_scheme="dark")
        # Only colours depend on the scheme.
        dark = page.evaluate("axe.run(document, {runOnly: ['color-contrast']})")
        assert _complaints(dark) == [], f"{path} in dark"


def _complaints(found: dict[str, Any]) -> list[str]:
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found["violations"]]


@pytest.mark.parametrize("width", [375, 768, 3840])
def test_no_page_is_wider_than_the_screen(page: Page, demo: Inspector, width: int) -> None:
    """From a phone to 4K; no table or drawing has to be moved sideways."""
    page.set_viewport_size({"width": width, "height": 800})
    for path, heading in (
        (f"/ask?q={quote(QUESTION)}", "Ask"),
        (f"/trace?q={quote(QUESTION)}", "Trace"),
        ("/compare?q=backup", "Compare"),
        ("/memories", "Memories"),
        (f"/memories/{_linked(page, demo)}", "Memory"),
        ("/graph?node=person:ines", "Graph"),
        ("/time", "Time"),
        ("/sharing", "Sharing"),
        ("/health", "Health"),
    ):
        open_view(page, demo, path, heading)
        settle(page)
        assert page.evaluate(_OVERFLOW) <= 0, path
        if path.startswith("/ask"):
            page.locator(".hit").first.get_by_role("button", name="Evidence").click()
            expect(page.locator(".sums")).to_be_visible()
        for summary in page.get_by_text("The same as a table").all():
            summary.click()
        moved = page.locator(".scroll-x").evaluate_all(
            "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.ariaLabel)"
        )
        assert moved == [], path
        # Short texts are never cut off: neither axe nor a picture would show it.
        short = "h1, h2, .button, .tabs button, .nav a, .hit-rank, .link-row > .badge"
        cut = page.locator(short).evaluate_all(
            "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
        )
        assert cut == [], path


# How much wider a page is than its window, whose scroll bar is no room for it.
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def _linked(page: Page, demo: Inspector) -> str:
    """The id of a memory with links."""
    own = own_headers(page.context, demo.url)
    found = page.request.get(f"{demo.url}/v1/graph?node=person:ines", headers=own).json()
    return next(str(edge["from"]) for edge in found["edges"] if edge["type"] == "follows")


def test_a_link_works_once_and_the_cookie_is_out_of_reach(
    browser: Browser, signed_in: BrowserContext, demo: Inspector
) -> None:
    """Another browser with the same link is turned away; scripts cannot read the cookie."""
    cookie = next(one for one in signed_in.cookies() if one["name"].startswith("bethink_"))
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    with new_context(browser) as context:
        page = context.new_page()
        page.goto(demo.link)

        expect(page.get_by_role("alert")).to_contain_text("this link was used or is too old")
        assert "#" not in page.url
        assert page.request.get(f"{demo.url}/v1/memories").status == 401


def test_the_private_file_leads_a_browser_to_the_page(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `bethink ui` opens is a file; browsers count its link as one from another site."""
    opened: Queue[str] = Queue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    with Memory.open(path=_space(tmp_path, "work"), embedder="none") as memory:
        memory.remember("A heron")
    with (
        running_inspector(tmp_path, "work", BETHINK_EMBEDDER="none") as inspector,
        open_browser(inspector.link),
        new_context(browser) as context,
    ):
        page = context.new_page()
        page.goto(opened.get(timeout=LATEST_MS / 1000))

        expect(page.get_by_role("heading", name="Ask")).to_be_visible()
        assert page.url.startswith(f"{inspector.url}/ui/")


def test_a_lost_connection_is_said_and_comes_back(
    page: Page, demo: Inspector, faults: Faults
) -> None:
    """Nothing breaks while the server is away, and the page goes on by itself afterwards."""
    open_view(page, demo, "/memories", "Memories")
    page.route("**/v1/**", lambda route: route.abort())
    page.route("**/health", lambda route: route.abort())
    page.get_by_label("Search the memories").fill("backup")
    expect(page.get_by_text("The connection is lost.")).to_be_visible()
    page.unroute("**/v1/**")
    page.unroute("**/health")
    expect(page.get_by_role("table", name="Memories found")).to_contain_text("nightly backup")
    expect(page.get_by_text("The connection is lost.")).to_have_count(0)
    page.route("**/v1/memories?*", lambda route: route.abort())
    page.get_by_label("Search the memories").fill("")
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    page.unroute("**/v1/memories?*")
    expect(page.get_by_role("table", name="Memories", exact=True)).to_contain_text("nightly backup")


def test_an_error_of_the_server_is_shown_with_its_remedy(
    page: Page, demo: Inspector, faults: Faults
) -> None:
    """A refusal is a sentence, not an empty page."""
    faults.expected = {404, 422}
    open_view(page, demo, "/memories/nothing-has-this-id", "Memory")
    expect(page.get_by_role("alert").first).to_contain_text("nothing-has-this-id")
    open_view(page, demo, f"/ask?q={quote(QUESTION)}&since=neverever", "Ask")
    expect(page.get_by_role("alert")).to_contain_text("since")


def test_two_tabs_see_the_same(signed_in: BrowserContext, page: Page, demo: Inspector) -> None:
    """What one tab stores the other finds, with one session."""
    open_view(page, demo, "/memories", "Memories")
    other = signed_in.new_page()
    other.goto(f"{demo.url}/ui/memories")
    signed_in.request.post(
        f"{demo.url}/v1/memories",
        data={"text": "Pelicans nest at dock seven"},
        headers=own_headers(signed_in, demo.url),
    )
    for tab in (page, other):
        tab.get_by_label("Search the memories").fill("where do pelicans nest")
        expect(tab.get_by_role("table", name="Memories found")).to_contain_text("dock seven")
    other.close()


def test_who_may_only_read_sees_no_buttons_that_write(browser: Browser, tmp_path: Path) -> None:
    """In read-only mode, and a request that writes all the same is refused."""
    with Memory.open(path=_space(tmp_path, "quiet"), embedder="none") as memory:
        item = memory.remember("The heron is grey").id
    with (
        running_inspector(tmp_path, "quiet", "--read-only", BETHINK_EMBEDDER="none") as found,
        new_context(browser) as context,
    ):
        page = context.new_page()
        faults = Faults(found.url)
        faults.watch(page)
        page.goto(found.link)
        expect(page.get_by_text("Read only")).to_be_visible()
        page.goto(f"{found.url}/ui/memories/{item}")
        expect(page.locator(".text").filter(has_text="The heron is grey")).to_be_visible()
        page.get_by_text("More", exact=True).click()
        for name in ("Correct", "Pin", "Link to", "Forget", "Undo", "Erase"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        page.goto(f"{found.url}/ui/memories?do=add")
        expect(page.get_by_role("table", name="Memories")).to_be_visible()
        for name in ("Add", "Import", "Save"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        expect(page.get_by_role("link", name="Inbox")).to_have_count(0)
        page.goto(f"{found.url}/ui/ask?q=heron")
        expect(page.locator(".hit").first).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("Right|Wrong|Save"))).to_have_count(0)
        refused = context.request.post(
            f"{found.url}/v1/memories",
            data={"text": "no"},
            headers=own_headers(context, found.url),
        )
        assert refused.status == 403
        assert faults.found == []


def test_what_was_derived_is_shown_with_its_evidence_and_undone(
    browser: Browser, tmp_path: Path
) -> None:
    """The tree of insights, a thread with its memories, and the runs with their undo."""
    things, deeds = ("gauge", "boat", "radio"), ("fixed", "painted", "moved", "tested", "sold")
    with Memory.open(path=_space(tmp_path, "derived"), embedder="none") as memory:
        ids = [
            memory.remember(
                f"Ines {deeds[at % 5]} the {things[at % 3]} number {at} near pier {7 * at}",
                topic=things[at % 3],
            ).id
            for at in range(30)
        ]
        memory.build_insights()
        memory.put_thread("The things near the piers", ids[:4], id="piers")
    with (
        running_inspector(tmp_path, "derived", BETHINK_EMBEDDER="none") as found,
        new_context(browser, viewport={"width": 1200, "height": 900}) as context,
    ):
        page = context.new_page()
        faults = Faults(found.url)
        faults.watch(page)
        page.goto(found.link)
        expect(page.get_by_role("heading", name="Ask")).to_be_visible()
        page.goto(f"{found.url}/ui/insights")
        page.locator(".tree .tree summary").first.click()
        expect(page.locator(".tree .tree .revision a").first).to_contain_text("Ines")
        assert Axe().run(page).response["violations"] == []
        page.goto(f"{found.url}/ui/threads")
        page.get_by_role("button", name="The things near the piers").click()
        expect(page.locator(".lane-open a.line")).to_have_count(4)
        assert Axe().run(page).response["violations"] == []
        page.goto(f"{found.url}/ui/health")
        runs = page.locator(".run")
        expect(runs).to_have_count(2)
        runs.first.get_by_role("button", name="Undo").click()
        expect(page.get_by_text(re.compile("^Undone: "))).to_be_visible()
        assert faults.found == []


PAGE_TEXTS = {
    "https://example.org/limits": ("The API allows 90 calls a minute", "Buy two, get one free"),
    "https://example.org/roads": ("Marrow Bridge closes for lorries", "No lorry may cross it"),
}


def test_what_waits_is_reviewed(browser: Browser, tmp_path: Path) -> None:
    """Edited, merged, refused and accepted by source, each with its reason; all taken back."""
    with Memory.open(path=_space(tmp_path, "waits"), embedder="none") as memory:
        memory.remember("Marrow Bridge was built in 1931")
        memory.remember_many(
            [
                Draft(text, source_class="web", source=source)
                for source, texts in PAGE_TEXTS.items()
                for text in texts
            ],
            review=True,
        )
    with (
        running_inspector(tmp_path, "waits", BETHINK_EMBEDDER="none") as found,
        new_context(browser, viewport={"width": 375, "height": 812}) as context,
    ):
        page = context.new_page()
        faults = Faults(found.url)
        faults.watch(page)
        page.goto(found.link)
        expect(page.get_by_role("heading", name="Ask")).to_be_visible()
        page.get_by_role("link", name="Inbox 4 to review").click()
        rows = page.locator(".hit")
        expect(rows).to_have_count(4)
        expect(rows.first).to_contain_text("from a source under review (web)")
        expect(rows.first).to_contain_text("https://example.org/limits")
        assert page.evaluate(_OVERFLOW) <= 0
        assert _complaints(Axe().run(page).response) == []

        rows.first.get_by_role("button", name="Edit").click()
        page.get_by_label("Text").fill("The API allows 80 calls a minute")
        page.get_by_role("dialog").get_by_role("button", name="Accept").click()
        expect(rows).to_have_count(3)
        page.get_by_role("combobox", name="Source").select_option("https://example.org/roads")
        expect(rows).to_have_count(2)
        page.get_by_label("Select all 2").check()
        page.get_by_role("button", name="Merge").click()
        page.get_by_label("Add them to a stored memory").fill("Marrow Bridge 1931")
        page.get_by_role("button", name="Marrow Bridge was built in 1931").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("Text")).to_have_value(
            re.compile("1931.*lorries.*cross", re.DOTALL)
        )
        assert _complaints(Axe().run(page).response) == []
        dialog.get_by_role("button", name="Merge").click()
        expect(page.get_by_text("2 memories merged.")).to_be_visible()
        expect(page.get_by_text("Nothing of this source.")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(rows).to_have_count(2)
        page.get_by_role("combobox", name="Source").select_option("")
        page.get_by_label("Select all 3").check()
        page.get_by_role("button", name="Refuse").first.click()
        expect(page.get_by_text("Nothing waits.")).to_be_visible()
        expect(page.get_by_role("link", name="Inbox", exact=True)).to_be_visible()
        page.get_by_role("tab", name="Refused").click()
        rows.filter(has_text="Marrow Bridge").get_by_role("button", name="Accept").click()
        expect(rows).to_have_count(2)
        assert faults.found == []
    with Memory.open(path=tmp_path / "data/spaces/waits.db", embedder="none") as memory:
        assert {item.text for item in memory.browse()} == {
            "The API allows 80 calls a minute",
            "Marrow Bridge was built in 1931",
            "Marrow Bridge closes for lorries",
        }


def test_everything_is_exported_as_a_file(page: Page, demo: Inspector) -> None:
    """The button saves what the server exports, with the page's own rights."""
    open_view(page, demo, "/health", "Health")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export everything").click()

    assert saved.value.suggested_filename == "bethink-demo.jsonl"
    lines = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert any(ANSWER in line for line in lines)


# 100,000 on request, or the space in a file: what is proved does not depend on how many there are.
ROWS = int(os.environ.get("INSPECTOR_ROWS", "1200"))
SPACE_FILE = os.environ.get("INSPECTOR_SPACE")


def _long_space(place: Path) -> None:
    if SPACE_FILE:
        for ending in ("", ".key"):
            shutil.copyfile(SPACE_FILE + ending, f"{place}{ending}")
        return
    start = datetime(2020, 1, 1, tzinfo=UTC)
    with Memory.open(path=place, embedder="none") as memory:
        for first in range(0, ROWS, 500):
            memory.remember_each(
                Draft(
                    f"Ferry {number} left pier {number % 97} with {number * 7919 % 1013} crates",
                    occurred_at=start + timedelta(hours=number),
                    session=f"watch {number // 12}",
                    entities=("ship:heron",),
                    force=True,
                )
                for number in range(first, min(first + 500, ROWS))
            )


@pytest.mark.timeout(3600 if ROWS > 10_000 or SPACE_FILE else 600)
def test_a_long_list_is_read_where_one_looks(browser: Browser, tmp_path: Path) -> None:
    """A jump to a row loads that page alone; everything is counted, found and drawn."""
    place = _space(tmp_path, "long")
    _long_space(place)
    with Memory.open(path=place, embedder="none") as memory:
        rows = memory.stats()["memories"]
        at = {row: memory.browse(limit=1, offset=row)[0] for row in (0, rows // 2, rows - 1)}
        entity = memory.entities(limit=1)[0].id
    with (
        running_inspector(tmp_path, "long", BETHINK_EMBEDDER="none") as found,
        new_context(browser, viewport={"width": 1200, "height": 900}) as context,
    ):
        page = context.new_page()
        faults = Faults(found.url)
        faults.watch(page)
        asked: list[str] = []
        page.on("request", lambda one: asked.append(one.url) if "preview=" in one.url else None)
        page.goto(found.link)
        expect(page.get_by_role("heading", name="Ask")).to_be_visible()
        page.goto(f"{found.url}/ui/memories")
        expect(page.get_by_role("status").filter(has_text=f"{rows:,} memories")).to_be_visible()
        body = page.locator(".vbody")
        for row, most in ((0, 1), (rows - 1, 3), (rows // 2, 5)):
            body.evaluate(f"body => body.scrollTo(0, body.scrollHeight * {row / rows})")
            expect(page.locator(f"a[href$='/memories/{at[row].id}']")).to_be_attached()
            assert len(asked) <= most, asked
            assert page.locator(".vrow").count() < 100
        page.get_by_label("Search the memories").fill(at[rows - 1].text)
        expect(page.locator(f"a[href$='/memories/{at[rows - 1].id}']")).to_be_attached()
        page.goto(f"{found.url}/ui/time")
        expect(page.get_by_role("heading", name=f"{rows:,} memories")).to_be_visible()
        expect(page.get_by_role("heading", name="The last 60 conversations")).to_be_visible()
        first = at[rows - 1]
        page.goto(f"{found.url}/ui/time?from={first.when:%Y-%m-%d}&to={first.when:%Y-%m-%d}")
        expect(page.get_by_title(str(first.session), exact=True)).to_contain_text(first.text)
        page.goto(f"{found.url}/ui/graph?node={quote(entity)}&limit=300")
        expect(page.locator(".node.entity.start")).to_have_count(1)
        assert 20 < page.locator(".node").count() <= 300
        assert faults.found == []


def test_a_mistyped_space_is_not_created(tmp_path: Path) -> None:
    """The command says that there is none, and leaves nothing behind."""
    ran = warm.run(
        [SCRIPT, "ui", "--no-open", "--space", "nosuch"],
        env=room(tmp_path), cwd=tmp_path, check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert ran.returncode != 0
    assert "there is no space 'nosuch'" in ran.stderr
    assert not list(tmp_path.rglob("nosuch*"))


def test_a_token_opens_what_its_scope_allows(browser: Browser, tmp_path: Path) -> None:
    """`bethink serve` has the same page; a token that only reads sees no buttons that write."""
    with Memory.open(path=_space(tmp_path, "quiet"), embedder="none") as memory:
        item = memory.remember("The heron is grey").id
    env = room(tmp_path) | {"BETHINK_EMBEDDER": "none"}
    made = warm.run(
        [SCRIPT, "token", "create", "eyes", "--scope", "read", "--space", "quiet"],
        env=env, cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    with (
        running_server(tmp_path, "quiet", "--require-token", BETHINK_EMBEDDER="none") as url,
        new_context(browser) as context,
    ):
        page = context.new_page()
        faults = Faults(url)
        faults.expected = {403}
        faults.watch(page)
        page.goto(f"{url}/ui/memories/{item}")
        page.get_by_label("Token").fill("bt_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("this token is not valid here")
        page.get_by_label("Token").fill(made.stdout.strip())
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator(".text").filter(has_text="The heron is grey")).to_be_visible()
        expect(page.get_by_role("button", name="Correct")).to_have_count(0)
        faults.expected |= {401}  # of questions that were still under way
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert faults.found == []


class _Elsewhere(BaseHTTPRequestHandler):
    """Another program's page on this machine: same host, another port."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><h1>Elsewhere</h1>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


# What a frame shows; nothing while it is still at its beginning.
_SHOWN = "location.href === 'about:blank' ? '' : document.body?.innerText ?? ''"


def test_a_page_at_another_port_cannot_use_the_session(
    signed_in: BrowserContext, demo: Inspector
) -> None:
    """The browser sends the cookie along, and still nothing is read, stored or framed."""
    with HTTPServer(("127.0.0.1", 0), _Elsewhere) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        page = signed_in.new_page()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        answers: dict[str, int] = {}
        page.on(
            "response",
            lambda one: answers.setdefault(f"{one.request.method} {one.url}", one.status),
        )
        told = page.evaluate(
            """async (url) => {
                const options = {credentials: "include", mode: "no-cors"};
                await fetch(`${url}/v1/stats`, options);
                await fetch(`${url}/v1/memories`, {...options, method: "POST", body: '{"text": "forged"}'});
                try { return await (await fetch(`${url}/v1/events`, {credentials: "include"})).text(); }
                catch (error) { return error.name; }
            }""",
            demo.url,
        )
        page.evaluate(
            "url => { const f = document.createElement('iframe'); f.src = `${url}/ui/ask`;"
            " document.body.append(f); }",
            demo.url,
        )
        asked = {f"GET {demo.url}/v1/stats", f"POST {demo.url}/v1/memories"}
        asked |= {f"GET {demo.url}/ui/ask"}
        wait_until(page, lambda: asked <= answers.keys(), "the requests are not answered")
        framed: list[str] = []

        def is_framed() -> bool:
            try:
                framed[:] = [frame.evaluate(_SHOWN) for frame in page.frames[1:]]
            except Error:  # it is just being replaced
                return False
            return bool(framed) and "" not in framed

        wait_until(page, is_framed, "the frame shows nothing, not even an error")
        page.close()
        other.shutdown()

    assert told == "TypeError"
    assert {answers[name] for name in asked} == {403}
    assert not any("Bethink" in text for text in framed)
    alone = signed_in.request.get(f"{demo.url}/v1/memories?limit=500")
    assert alone.status == 401  # the cookie without the page's key
    own = own_headers(signed_in, demo.url)
    found = signed_in.request.get(f"{demo.url}/v1/memories?limit=500", headers=own)
    found = found.json()["memories"]
    assert not any(memory["text"] == "forged" for memory in found)


FAULTS = {
    "console": "console.error('planted')",
    "error": "setTimeout(() => { throw new Error('planted'); })",
    "TrustedScriptURL": "{const s = document.createElement('script'); s.src = 'https://evil.test/x.js';"
    " document.body.append(s);}",
    "img-src": "document.body.append(Object.assign(new Image(), {src: 'https://evil.test/x.png'}))",
    "style-src": "document.body.setAttribute('style', 'color: red')",
    "require-trusted-types-for": "document.body.innerHTML += '<b>planted</b>'",
    "answer 404": "fetch('/v1/nothing')",
    "connect-src": "fetch('https://evil.test/').catch(() => {})",
}


@pytest.mark.parametrize("kind", FAULTS)
def test_the_fixture_sees_every_kind_of_fault(
    signed_in: BrowserContext, demo: Inspector, kind: str
) -> None:
    """What these tests would overlook is planted here, once each."""
    page, faults = signed_in.new_page(), Faults(demo.url)
    faults.watch(page)
    page.goto(f"{demo.url}/ui/ask")
    expect(page.get_by_role("heading", name="Ask")).to_be_visible()
    page.evaluate(f"() => {{ try {{ {FAULTS[kind]} }} catch (error) {{ void error; }} }}")
    word = kind.split(" ", maxsplit=1)[0]
    wait_until(page, lambda: any(word in told or "planted" in told for told in faults.found), kind)
    page.close()


# Characters that no page may show, whatever field they stand in: they turn text around.
HIDDEN = re.compile("[\u200b\u202a-\u202e\u2066-\u2069\U000e0041]")
LONG_AGO = datetime(1, 3, 4, tzinfo=UTC)


def test_hostile_memories_are_only_text(browser: Browser, tmp_path: Path) -> None:
    """Scripts, bidirectional tricks, 60 KB and emoji: shown as written, nothing runs."""
    texts = [*MARKUP, *(f"heron {text}" for text in NAUGHTY[::11] if text.strip())]
    with Memory.open(path=_space(tmp_path, "hostile"), embedder="none") as memory:
        memory.remember_each([Draft(text, force=True) for text in texts])
        about = dict.fromkeys(("topic", "source", "session", "speaker"), f"heron {MARKUP[7]}")
        memory.remember_each([Draft("heron at sea", force=True, **about, occurred_at=LONG_AGO)])
        ids = [item.id for item in memory.browse(limit=100)]
        windows = memory.remember("one heron\r\ntwo herons").id
        waits = [Draft(f"{text} waits", source_class="web", source=text[:500]) for text in MARKUP]
        memory.remember_many(waits, review=True)
    with (
        running_inspector(tmp_path, "hostile", BETHINK_EMBEDDER="none") as found,
        new_context(browser, viewport={"width": 375, "height": 812}) as context,
    ):
        page = context.new_page()
        faults = Faults(found.url)
        faults.watch(page)
        page.goto(found.link)
        expect(page.get_by_role("heading", name="Ask")).to_be_visible()
        start = quote(ids[0])
        for path in (
            *("/ask?q=heron&k=50", "/trace?q=heron", "/compare?q=heron", "/memories", "/inbox"),
            *(f"/graph?node={start}", "/graph", "/time", "/threads", "/health"),
        ):
            page.goto(f"{found.url}/ui{path}")
            settle(page)
            assert page.evaluate(_OVERFLOW) <= 0, path
            assert not HIDDEN.search(page.locator("main").inner_text()), path
        for item in ids[: len(MARKUP)]:
            page.goto(f"{found.url}/ui/memories/{item}")
            expect(page.locator(".card .text").first).to_contain_text("heron")
            assert not HIDDEN.search(page.locator("main").inner_text())
        page.goto(f"{found.url}/ui/memories/{windows}")
        expect(page.locator(".card .text").first).to_have_text("one heron two herons")
        assert page.locator("main iframe, main script, main base").count() == 0
        assert faults.found == []


def test_unbroken_words_and_a_single_day_fit(browser: Browser, tmp_path: Path) -> None:
    """A topic without a space widens no page; one day has one label."""
    with Memory.open(path=_space(tmp_path, "narrow"), embedder="none") as memory:
        memory.remember("The heron is at sea", topic="t" * 120, speaker="S" * 60)
    with (
        running_inspector(tmp_path, "narrow", BETHINK_EMBEDDER="none") as found,
        new_context(browser, viewport={"width": 375, "height": 812}) as context,
    ):
        page = context.new_page()
        page.goto(found.link)
        expect(page.get_by_role("heading", name="Ask")).to_be_visible()
        page.goto(f"{found.url}/ui/ask?q=heron")
        expect(page.locator(".hit")).to_be_visible()
        assert page.evaluate(_OVERFLOW) <= 0
        page.goto(f"{found.url}/ui/time")
        expect(page.locator(".brush .bar")).to_be_visible()
        days = [text for text in page.locator(".brush .axis").all_text_contents() if " " in text]
        assert len(days) == len({" ".join(day.split()[:2]) for day in days}) > 0


def test_an_address_may_say_a_moment_in_words_or_wrongly(page: Page, demo: Inspector) -> None:
    """Addresses are typed, shared and kept: no view fails on one."""
    for path, heading in (
        ("/ask?q=backup&as_of=yesterday", "Ask"),
        ("/trace?q=backup&as_of=yesterday", "Trace"),
        ("/time?from=zzz&to=2026-99-99", "Time"),
    ):
        open_view(page, demo, path, heading)
        settle(page)
        if "as_of" in path:
            expect(page.get_by_text("Answer from what was stored at: yesterday")).to_be_visible()
        else:
            expect(page.get_by_text("Last stored")).to_be_visible()


def _space(folder: Path, name: str) -> Path:
    """The file of a space that the server will find."""
    place = folder / "data" / "spaces" / f"{name}.db"
    place.parent.mkdir(parents=True)
    return place


# What a team with two machines would see.
TEAM: dict[str, Any] = {
    "members": {
        "members": [
            {"name": name, "role": role, "you": name == "ines"}
            for name, role in (("ines", "owner"), ("tomas", "writer"), ("carla", "reader"))
        ]
    },
    "conflicts": {
        "notice": "",
        "conflicts": [
            {
                "memory": ROW | {"id": "alarm", "text": "The alarm of Marrow Bridge is at 4.2 m."},
                "others": [
                    {
                        "kind": "edited",
                        "device": "desktop",
                        "at": "2026-11-12T09:40:00Z",
                        "text": "The alarm of Marrow Bridge is at 4.4 m since November.",
                    }
                ],
            }
        ],
    },
    "sync": {
        "name": "laptop",
        "device": "a974eb2cdd08f525",
        "devices": [{"id": "a2613dde902d6d42", "name": "desktop"}],
        "targets": [{"target": "~/Dropbox/memory", "ceiling": 2, "last": "2026-11-12T09:46:00Z"}],
        "conflicts": 1,
        "hash": "dcf12fd179a7c43ffa11adf1cc1bfea6",
    },
}


@pytest.mark.skipif("PICTURES_FOLDER" not in os.environ, reason="pictures are taken on request")
def test_pictures_are_taken(page: Page, demo: Inspector) -> None:
    """The pictures of the documentation, from the demo's memories."""
    folder = Path(os.environ["PICTURES_FOLDER"])
    page.set_viewport_size({"width": 1440, "height": 900})
    open_view(page, demo, "/ask?q=alarm", "Ask")  # loads the model, which takes its time
    settle(page)
    for name, path, heading in (
        ("ask", f"/ask?q={quote(QUESTION)}", "Ask"),
        ("trace", f"/trace?q={quote(QUESTION)}", "Trace"),
        ("compare", "/compare?q=backup+of+the+database", "Compare"),
        ("memories", "/memories", "Memories"),
        ("graph", "/graph", "Graph"),
        ("health", "/health", "Health"),
        ("sharing", "/sharing", "Sharing"),
        ("inbox", "/inbox", "Inbox"),
    ):
        for place, answer in TEAM.items() if name == "sharing" else ():
            page.route(f"**/v1/{place}", partial(Route.fulfill, json=answer))
        if name == "inbox":
            with Memory.open(path=demo.folder / "data" / "spaces" / "demo.db") as memory:
                memory.remember_many(WAITING, review=True)
        open_view(page, demo, path, heading)
        settle(page)
        if name == "ask":
            page.locator(".hit").first.get_by_role("button", name="Evidence").click()
        page.screenshot(path=folder / f"inspector-{name}.png")
        if name == "ask":
            page.emulate_media(color_scheme="dark")
            page.screenshot(path=folder / "inspector-ask-dark.png")
            page.emulate_media(color_scheme="light")
