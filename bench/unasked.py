"""Notes that hooks show unasked: how many are of use, and how many were missed.

    python bench/unasked.py FOLDER [--verbose]

FOLDER holds sessions of a coding agent as JSON: memories of a project, and events with the
memories that should, or may, be shown with each (training/data/sessions). The notes are those
that the hooks would give with default settings. Precision: of the notes, those that should or
may be shown. Recall: of the events at which one should be shown, those at which it was.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bethink import Memory
from bethink.agents.session import quoted_ids, session_state
from bethink.agents.unasked import OPENINGS, unasked_note
from bethink.config.settings import Settings

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def payload(event: dict[str, Any], session: str, project: Path) -> dict[str, Any]:
    """An event as Claude Code describes it to a hook."""
    given = {"command": event["command"]} if event["tool"] == "Bash" else {}
    if event["tool"] != "Bash":
        given = {
            "file_path": str(project / event["path"]),
            "old_string": event.get("old", ""),
            "new_string": event.get("new", ""),
        }
    told = "error" if event["event"] == "PostToolUseFailure" else "tool_response"
    return {
        "hook_event_name": event["event"],
        "session_id": session,
        "cwd": str(project),
        "tool_name": event["tool"],
        "tool_input": given,
        told: event.get("output", ""),
    }


@contextmanager
def opened(file: Path) -> Iterator[tuple[Memory, Path, list[str]]]:
    """Open a memory with those of a session; yield it, its project and their ids."""
    session = json.loads(file.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        settings = Settings(project=project, data_dir=Path(folder) / "data")
        with Memory.open("unasked", path=Path(folder) / "m.db", settings=settings) as memory:
            ids = [
                memory.remember(
                    one["text"],
                    occurred_at=START + timedelta(days=number),
                    kind=one.get("kind"),
                    anchors=[one["at"]] if "at" in one else [],
                    force=True,
                ).id
                for number, one in enumerate(session["memories"])
            ]
            memory.recall("ready")
            yield memory, project, ids


def run(file: Path) -> Iterator[tuple[dict[str, Any], list[int], str, float]]:
    """Yield each event of a session with what was shown, the kind of note and the CPU seconds."""
    session = json.loads(file.read_text(encoding="utf-8"))
    with opened(file) as (memory, project, ids):
        for event in session["events"]:
            began = time.process_time()
            note = unasked_note(memory, payload(event, file.stem, project))
            spent = time.process_time() - began
            shown = quoted_ids(note)
            session_state(memory, file.stem).add_given(shown)
            kind = next((kind for kind, text in OPENINGS.items() if note.startswith(text)), "")
            yield event, [ids.index(one) for one in shown], kind, spent


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("folder", type=Path)
    given.add_argument("--verbose", action="store_true")
    chosen = given.parse_args()
    counts: dict[str, Counter[str]] = {}
    spent: list[float] = []
    for file in sorted(chosen.folder.glob("*.json")):
        session = json.loads(file.read_text(encoding="utf-8"))
        for event, shown, kind, seconds in run(file):
            spent.append(seconds)
            right = bool({*shown} & {*event["should"], *event["may"]})
            met = bool({*shown} & {*event["should"]})
            for group in ("all", session["kind"], *([f"note: {kind}"] if kind else [])):
                tally = counts.setdefault(group, Counter())
                tally.update(
                    events=1, shown=bool(shown), right=right, wanted=bool(event["should"]), met=met
                )
            if chosen.verbose and ((bool(shown) and not right) or (event["should"] and not met)):
                texts = [session["memories"][one]["text"][:90] for one in shown]
                wanted = [session["memories"][one]["text"][:90] for one in event["should"]]
                about = event.get("command") or event.get("path")
                print(
                    f"{file.stem} {event['event']} {about!r}: shown {kind} {texts}, wanted {wanted}"
                )
    print(f"{'':24} events  notes  precision  wanted  recall")
    for group, one in counts.items():
        precision = f"{one['right'] / one['shown']:9.2f}" if one["shown"] else f"{'–':>9}"
        recall = f"{one['met'] / one['wanted']:6.2f}" if one["wanted"] else f"{'–':>6}"
        print(
            f"{group:24} {one['events']:6} {one['shown']:6}  {precision}{one['wanted']:8}  {recall}"
        )
    high = statistics.quantiles(spent, n=20)[-1] if len(spent) > 1 else spent[0]
    print(
        f"CPU of an event: median {statistics.median(spent) * 1e3:.0f} ms, p95 {high * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    main()
