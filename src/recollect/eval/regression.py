"""Compares a report with an earlier one: by pairs of the same question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from recollect.errors import Refused
from recollect.eval.report import FORMAT, HEADLINES
from recollect.eval.resampling import Difference
from recollect.eval.scoring import Scores, compare

Json = dict[str, Any]

WORSE = "worse"


def read_report(path: Path) -> Json:
    """A report that an earlier run saved."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise Refused(f"there is no file {path}", remedy="make one with --save FILE") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not a saved report: {error}") from error
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise Refused(f"{path} is not a report of this version", remedy="measure again with --save")
    return report


def against(now: Json, then: Json, *, file: str, tolerance: float) -> Json:
    """What changed for every profile that both reports have.

    Worse is a loss of more than ``tolerance`` that is unlikely to be noise.
    """
    asked, before = now["measured_on"], then["measured_on"]
    if (asked["name"], asked["level"]) != (before["name"], before["level"]):
        raise Refused(f"{file} was measured on {before['title']}, not on {asked['title']}")
    same = asked["fingerprint"] == before["fingerprint"]
    rows = list(_rows(now, then, tolerance))
    if not rows:
        raise Refused(f"{file} shares no profile and question with this run")
    told = "the same questions" if same else "the questions that both runs asked"
    return {
        "file": file,
        "tolerance": tolerance,
        "rows": rows,
        "worse": sum(row["verdict"] == WORSE for row in rows),
        "note": f"{told}; then seed {before['seed']} and embedder {before['embedder']}",
    }


def _rows(now: Json, then: Json, tolerance: float) -> Iterator[Json]:
    earlier = {profile["name"]: _scores(profile) for profile in then["profiles"]}
    for profile in now["profiles"]:
        if profile["name"] not in earlier:
            continue
        for name in HEADLINES:
            found = compare(
                earlier[profile["name"]], _scores(profile), name, now["measured_on"]["seed"]
            )
            if found is not None:
                yield {
                    "profile": profile["name"],
                    "metric": name,
                    **asdict(found),
                    "significant": found.is_significant,
                    "verdict": _verdict(found, tolerance),
                }


def _verdict(found: Difference, tolerance: float) -> str:
    if not found.is_significant or abs(found.value) <= tolerance:
        return "equal"
    return "better" if found.value > 0 else WORSE


def _scores(profile: Json) -> Scores:
    kept = profile["questions"]
    names = tuple(kept["values"])
    columns = [kept["values"][name] for name in names]
    return Scores(
        keys=tuple(kept["keys"]),
        categories=tuple(kept["categories"]),
        values=np.asarray(columns, dtype=np.float64).T.reshape(len(kept["keys"]), len(names)),
        metrics=names,
    )
