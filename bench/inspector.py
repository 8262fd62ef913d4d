"""How long a click in the inspector takes, from the key to the last change on the screen.

``python bench/inspector.py SPACE_FILE`` copies a space, opens the inspector on it in the machine's
Chromium and clicks through the views, measured by the DevTools protocol: the time from the event to
the first frame that shows the answer, and the processor time of the page and of the server for it,
which do not depend on what else the machine does. The first round warms the server and is not
counted.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import CDPSession, Page

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from inspector_page import Inspector, running_browser, running_inspector

ROUNDS = 9
# Each: where it begins, what is clicked, and what is there when it is done.
CLICKS = {
    "to a view (Memories)": ("/ui/time", ".nav a[href='/ui/memories']", ".vrow a"),
    "to a memory": ("/ui/memories", ".vrow:nth-child(3) a", ".facts"),
    "evidence of a hit": ("/ui/ask?q=release", ".hit button[aria-expanded]", ".sums"),
    "a question": ("/ui/ask", "button.primary", ".hit"),
    "to the trace": ("/ui/ask?q=release", ".tier a[href^='/ui/trace']", ".steps"),
    "to the times": ("/ui/memories", ".nav a[href='/ui/time']", ".brush"),
}
# Click, and wait for what is expected and for the frame after it.
_CLICK = """([clicked, expected, words]) => new Promise((done) => {
  if (words) {
    const field = document.querySelector("[data-search]");
    field.value = words;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  setTimeout(() => {
    const old = new Set(document.querySelectorAll(expected));
    const start = performance.now();
    document.querySelector(clicked).click();
    const look = () => {
      const found = [...document.querySelectorAll(expected)].some((one) => !old.has(one));
      const idle = !document.querySelector(".loading.on");
      if (!found || !idle) requestAnimationFrame(look);
      else requestAnimationFrame(() => done(performance.now() - start));
    };
    requestAnimationFrame(look);
  }, 50);
})"""


def _processor_ms(session: CDPSession) -> float:
    told = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(one["value"] for one in told if one["name"] == "TaskDuration")


def _server_ms(pid: int) -> float:
    """Return the processor time of a process so far, in milliseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(page: Page, inspector: Inspector, name: str) -> tuple[float, float, float]:
    """Return the median time of a click, and the processor times of page and server, in ms."""
    begin, clicked, expected = CLICKS[name]
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    took, worked, served = [], [], 0.0
    for turn in range(ROUNDS + 1):
        page.goto(inspector.url + begin)
        page.locator(clicked).first.wait_for()
        page.wait_for_timeout(300)
        words = f"release number {turn}" if name == "a question" else ""
        before, asked = _processor_ms(session), _server_ms(inspector.process.pid)
        ms = page.evaluate(_CLICK, [clicked, expected, words])
        if turn:
            took.append(ms)
            worked.append(_processor_ms(session) - before)
            served += _server_ms(inspector.process.pid) - asked
    session.detach()
    return statistics.median(took), statistics.median(worked), served / ROUNDS


def main() -> int:
    """Print a row for each click."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "data" / "spaces" / "big.db"
        place.parent.mkdir(parents=True)
        shutil.copyfile(sys.argv[1], place)
        with running_browser() as browser, running_inspector(Path(folder), "big") as inspector:
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.set_default_timeout(120_000)
            page.goto(inspector.link)
            page.locator("[data-search]").wait_for()
            for name in CLICKS:
                took, page_ms, server_ms = measure(page, inspector, name)
                row = f"{name:24}{took:6.0f} ms; page {page_ms:3.0f}, server {server_ms:3.0f}"
                sys.stdout.write(f"{row}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
