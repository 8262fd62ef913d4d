"""Three days with a coding agent: its hooks over a real repository, two machines, a teammate.

`docs/day.md` tells the same as a page: what happened at each step, and what was shown.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_hooks import SCRIPT, Host, Sitting

CELERY = "We decided against Celery, one more server to run: jobs go through the postgres queue."
ROUNDING = "total() rounds half even on purpose, the auditors asked for it"
CURRENCY = "test_prices needs PRICES_CURRENCY in the environment, else it ends with a KeyError"
OTHER_DECISIONS = [
    "We decided to keep invoices for ten years",
    "We decided that prices are stored in cents",
    "We decided to name branches by their ticket",
    "We decided that the shop speaks English and German",
    "We decided to deploy on Tuesdays",
]
OTHER_CAVEATS = [
    "The staging database is emptied on Sundays",
    "The label printer stops above 60 labels a minute",
    "Never rename a column while the import runs",
    "Holidays of Bavaria are missing in the calendar",
]
SOURCE = """import os


def currency():
    return os.environ["PRICES_CURRENCY"]


def total(prices):
    return round(sum(prices), 2)
"""
TEST = """from prices import currency, total


def test_prices():
    assert total([0.1, 0.2]) == 0.3
    assert currency() == "EUR"
"""


class Machine(Host):
    """A home with the plugin, a copy of the repository, and a worker."""

    def run(self, *words: str, cwd: Path, given: bytes = b"", **env: str) -> Any:
        shared = {"BETHINK_SPACE": "shop", "BETHINK_WORKER": "auto"}
        return super().run(*words, cwd=cwd, given=given, **(shared | env))

    def call(self, *words: str, **env: str) -> str:
        done = self.run(SCRIPT, *words, cwd=self.folder / "shop", **env)
        assert done.returncode == 0, done
        return str(done.stdout.decode())

    def sync(self, carrier: Path) -> None:
        self.call("sync", str(carrier), "--key", str(carrier.parent / "key"))


def note(sitting: Sitting, event: str, tool: str, given: dict[str, str], **more: Any) -> str:
    """What the agent is told with a call of a tool."""
    told = sitting.payload(event, tool_name=tool, tool_input=given, **more)
    return sitting.host.context(event, told, sitting.project)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    both = []
    for name in ("laptop", "desktop"):
        (tmp_path / name).mkdir()
        both.append(Machine(tmp_path / name))
    yield both[0], both[1]
    for machine in both:
        machine.run(SCRIPT, "worker", "stop", cwd=machine.folder)


def make_repository(folder: Path) -> None:
    folder.mkdir()
    for name, text in {"prices.py": SOURCE, "test_prices.py": TEST}.items():
        (folder / name).write_text(text, encoding="utf-8")
    who = ["-c", "user.name=Ana", "-c", "user.email=ana@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "Prices"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def test_two_days_with_an_agent(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    laptop, desktop = machines
    carrier = tmp_path / "drive"
    carrier.mkdir()
    make_repository(laptop.folder / "shop")

    # The first day, on the laptop: a rule said in a session, a decision, two tied to code.
    monday = Sitting(laptop, laptop.folder / "shop", "monday")
    assert monday.start() == ""
    assert monday.prompt("From now on we name tests after the rule that they check.") == ""
    monday.answer("Noted.")
    monday.end()
    laptop.call("worker", "start")
    laptop.call("remember", CELERY, "--kind", "decision")
    laptop.call("remember", ROUNDING, "--kind", "caveat", "--at", "prices.py::total")
    laptop.call("remember", CURRENCY, "--kind", "caveat", "--at", "test_prices.py")
    laptop.call("remember", *OTHER_DECISIONS, "--kind", "decision")
    laptop.call("remember", *OTHER_CAVEATS, "--kind", "caveat")
    laptop.sync(carrier)

    # The second day, on the desktop, which has its own clone.
    clone = ["git", "clone", "-q", str(laptop.folder / "shop"), str(desktop.folder / "shop")]
    subprocess.run(clone, check=True)
    desktop.sync(carrier)
    desktop.call("reindex")
    desktop.call("worker", "start")
    tuesday = Sitting(desktop, desktop.folder / "shop", "tuesday")
    briefing = tuesday.start()
    assert "We decided to deploy on Tuesdays" in briefing
    assert "From now on we name tests" in briefing
    assert CELERY not in briefing, "an older decision than the briefing has room for"

    adding = {"command": "uv add celery"}
    assert CELERY in note(tuesday, "PreToolUse", "Bash", adding)
    assert note(tuesday, "PreToolUse", "Bash", adding) == "", "once only"
    for _ in range(3):
        assert note(tuesday, "PreToolUse", "Bash", {"command": "uv add rich"}) == ""

    failed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_prices.py"],
        cwd=desktop.folder / "shop", capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    ran = {"command": "pytest -q test_prices.py"}
    told = note(tuesday, "PostToolUseFailure", "Bash", ran, error=f"Exit code 1\n{failed.stdout}")
    assert CURRENCY in told
    for _ in range(3):
        assert note(tuesday, "PreToolUse", "Bash", {"command": "uv add rich"}) == ""

    place = desktop.folder / "shop" / "prices.py"
    edit = {"file_path": str(place), "old_string": "round(sum(prices), 2)", "new_string": "total"}
    assert ROUNDING in note(tuesday, "PreToolUse", "Edit", edit)
    place.write_text(SOURCE.replace("round(sum(prices), 2)", "sum(prices)"), encoding="utf-8")
    (changed,) = json.loads(desktop.call("stale", "--json"))["memories"]
    assert ROUNDING in json.dumps(changed)

    # What was shown is counted; what is corrected here is corrected on the laptop, too.
    tuesday.said.agent("PRICES_CURRENCY is set now, and rounding stays half even.")
    shown = json.loads(desktop.call("helped", "--json"))["events"]
    assert sum(sum(counts.values()) for counts in shown.values()) > 3
    (rounding,) = json.loads(desktop.call("list", "--at", "prices.py::total", "--json"))
    desktop.call("update", rounding["id"], "total() rounds half up since the new auditors came")
    desktop.sync(carrier)
    laptop.sync(carrier)
    assert "half up" in laptop.call("recall", "how does total() round?")


OFFER = "The offer for the bakery chain is 40,000 euro"
LABELS = "The label printer wants PDF 1.4, with 1.7 it prints empty labels"
ALONE = {"BETHINK_WORKER": "off", "BETHINK_EMBEDDER": "none"}


def test_a_teammate_joins(tmp_path: Path) -> None:
    """What a ceiling lets through is in both memories, each with its writer; nothing else."""
    (tmp_path / "key").write_bytes(bytes(range(32)))
    team = tmp_path / "team"
    for name in ("team", "ana", "bo"):
        (tmp_path / name).mkdir()
    ana, bo = Machine(tmp_path / "ana"), Machine(tmp_path / "bo")
    exchange = ("sync", str(team), "--key", str(tmp_path / "key"), "--ceiling", "1")
    as_ana, as_bo = ALONE | {"BETHINK_ACTOR": "ana"}, ALONE | {"BETHINK_ACTOR": "bo"}
    make_repository(ana.folder / "shop")
    clone = ["git", "clone", "-q", str(ana.folder / "shop"), str(bo.folder / "shop")]
    subprocess.run(clone, check=True)
    ana.call("remember", CELERY, "--kind", "decision", **as_ana)
    ana.call("remember", OFFER, "--classification", "2", **as_ana)
    ana.call(*exchange, **as_ana)

    # The agent of a teammate knows the decision, and nothing of the offer.
    bo.call(*exchange, **as_bo)
    wednesday = Sitting(bo, bo.folder / "shop", "wednesday")
    told = wednesday.payload("SessionStart", source="startup")
    briefing = bo.context("SessionStart", told, wednesday.project, **as_bo)
    assert CELERY in briefing
    texts = {one["text"]: one["writer"] for one in json.loads(bo.call("list", "--json", **as_bo))}
    assert texts == {CELERY: "ana"}
    asked = bo.run(SCRIPT, "recall", "what is the offer?", cwd=bo.folder / "shop", **as_bo)
    assert b"40,000" not in asked.stdout

    # What the teammate learns is in the next briefing here, with the writer's name.
    bo.call("remember", LABELS, "--kind", "caveat", **as_bo)
    bo.call(*exchange, **as_bo)
    ana.call(*exchange, **as_ana)
    thursday = Sitting(ana, ana.folder / "shop", "thursday")
    told = thursday.payload("SessionStart", source="startup")
    assert LABELS in ana.context("SessionStart", told, thursday.project, **as_ana)
    texts = {one["text"]: one["writer"] for one in json.loads(ana.call("list", "--json", **as_ana))}
    assert texts == {CELERY: "ana", OFFER: "ana", LABELS: "bo"}
