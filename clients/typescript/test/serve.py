"""Runs the tests of the client against real servers: serve.py RUNTIME... -- TEST...

Each runtime (node, deno, or a path to one) gets servers of its own in an empty home. Besides,
the client runs once in Chromium, if it is installed, and LangGraph in Python reads and writes
the store that LangGraph.js uses.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SPACE = "from-typescript"
PAGE = Path(__file__).parent / "browser.html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WAIT_S = 60
FROM_PYTHON = """
from bethink.integrations.langgraph import BethinkStore
store = BethinkStore("from-typescript")
store.put(("both", "sides"), "python", {"text": "Written in Python: the kiln fires at noon", "n": 1})
"""
IN_PYTHON = """
from bethink.integrations.langgraph import BethinkStore
store = BethinkStore("from-typescript")
found = store.get(("both", "sides"), "node")
assert found.value == {"text": "Written in JavaScript: Ümläute \\x7f 東京 😀", "n": [1, 2.5, None]}, found
assert [one.key for one in store.search(("both",), filter={"n": 1})] == ["python"]
assert store.search(("both",), query="what was written in JavaScript?", limit=1)[0].key == "node"
assert store.get(("both", "sides"), "removed") is None
"""


@contextmanager
def server(home: dict[str, str], *options: str) -> Iterator[str]:
    """Start `bethink serve` at a free port and yield its address."""
    command = [sys.executable, "-m", "bethink", "serve", "--port", "0", "--json", "--space", SPACE]
    process = subprocess.Popen([*command, *options], env=home, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait(WAIT_S)


def run_tests(runtime: str, tests: list[str]) -> None:
    """Run the tests in one runtime, and what they left in Python."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = empty_home(Path(folder))
        say = [sys.executable, "-m", "bethink", "token", "create", "test", "--json"]
        told = subprocess.run([*say, "--scope", "admin", "--space", SPACE], env=home, check=True,
                              capture_output=True, text=True)  # fmt: skip
        token = json.loads(told.stdout)["token"]
        subprocess.run([sys.executable, "-c", FROM_PYTHON], env=home, check=True)
        url = stack.enter_context(server(home, "--rate", "0"))
        guarded = stack.enter_context(server(home, "--require-token", "--rate", "120"))
        env = home | {"BETHINK_URL": url, "BETHINK_GUARDED": guarded, "BETHINK_TOKEN": token}
        is_deno = Path(runtime).name.startswith("deno")
        options = (
            ["test", "--allow-all", "--no-check"]
            if is_deno
            else ["--test", "--test-concurrency=1", "--test-timeout=60000"]
        )
        subprocess.run([runtime, *options, *tests], env=env, check=True, timeout=300)
        subprocess.run([sys.executable, "-c", IN_PYTHON], env=home, check=True)


def run_browser(modules: Path) -> None:
    """Open a page that uses the client, of another origin than the server's."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("no chromium") if os.environ.get("CI") else print("no chromium: not tested there")
        return
    told: list[str] = []
    heard = threading.Event()

    class Pages(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()
            heard.set()

        def log_message(self, *_: object) -> None:
            pass

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        site = Path(folder) / "site"
        shutil.copytree(modules / "bethink" / "dist", site / "dist")
        shutil.copy(PAGE, site / "index.html")
        pages = ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Pages(*a, directory=str(site)))
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        stack.callback(pages.shutdown)
        origin = f"http://127.0.0.1:{pages.server_port}"
        home = empty_home(Path(folder))
        url = stack.enter_context(server(home, "--allow-origin", origin))
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu",
                   f"--user-data-dir={folder}/browser", f"{origin}/#{url}"]  # fmt: skip
        shown = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert heard.wait(WAIT_S), "the page told nothing"
        finally:
            shown.terminate()
            shown.wait(WAIT_S)
        assert told == ["found stored"], told
        print("1 passed, 0 failed")


def empty_home(folder: Path) -> dict[str, str]:
    """Return an environment in which nothing is stored or set yet."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("BETHINK", "XDG"))
    }
    home = folder / "home"
    home.mkdir()
    return kept | {"HOME": str(home), "DENO_DIR": str(folder / "deno")}


if __name__ == "__main__":
    at = sys.argv.index("--")
    for each in sys.argv[1:at]:
        run_tests(each, sys.argv[at + 1 :])
    run_browser(Path("node_modules"))
