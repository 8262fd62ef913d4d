"""A recall's trace as JSON: every step, bounded in size, and what came of it all."""

from __future__ import annotations

from recollect.jsonable import Json, iso, number
from recollect.model import Candidate, Pool, Recall, Step
from recollect.text import shorten, visible

MOST_STEPS = 32
MOST_CANDIDATES = 8
PREVIEW = 160


def trace_json(answer: Recall, *, candidates: int | None = MOST_CANDIDATES) -> Json:
    """The walk that led to an answer: at most 32 steps and, of each step, so many
    candidates; None shows them all. ``truncated`` says whether anything was left out."""
    shown = answer.steps if candidates is None else answer.steps[:MOST_STEPS]
    longest = max((len(step.pool) for step in shown), default=0)
    run = answer.run
    return {
        "id": run.id if run else None,
        "started_at": iso(run.started_at) if run else None,
        "completed_at": iso(run.completed_at) if run else None,
        "milliseconds": round(sum(step.seconds for step in answer.steps) * 1000, 3),
        "strategy": answer.strategy,
        "profile": answer.profile,
        "cached": bool(run and run.cached),
        "truncated": len(shown) < len(answer.steps)
        or (candidates is not None and longest > candidates),
        "steps": [step_json(step, candidates=candidates) for step in shown],
        "merge": _merge(answer),
        "final": {
            "status": answer.status,
            "insights": len(answer.insights),
            "items": len(answer.items),
            "raw": len(answer.raw),
            "captions": len(answer.captions),
            "evidences": len(answer.evidences),
            "degraded": len(answer.degraded),
        },
    }


def step_json(step: Step, *, candidates: int | None = MOST_CANDIDATES) -> Json:
    """A step of the walk with the best candidates it left, ranks and scores included."""
    return {
        "step": step.name,
        "status": step.status,
        "milliseconds": round(step.seconds * 1000, 3),
        "came_in": step.came_in,
        "left": len(step.pool),
        "note": step.note,
        "candidates": _candidates(step.pool[:candidates]),
    }


def legs(cand: Candidate) -> Json:
    """Rank and score in every channel that found the memory."""
    return {
        reason.by.removeprefix("channel."): {"rank": reason.rank, "score": number(reason.value)}
        for reason in cand.evidence
        if reason.by.startswith("channel.")
    }


def _candidates(pool: Pool) -> list[Json]:
    return [
        {
            "rank": rank,
            "id": cand.item.id,
            "level": cand.item.level,
            "score": number(cand.score),
            "text": shorten(" ".join(visible(cand.item.text[: 4 * PREVIEW]).split()), PREVIEW),
            "channels": legs(cand),
        }
        for rank, cand in enumerate(pool, start=1)
    ]


def _merge(answer: Recall) -> Json:
    """How many candidates the channels brought, and how many were left once merged."""
    asked = [s for s in answer.steps if s.name.startswith("channel.") and s.status == "ok"]
    fused = next((step for step in answer.steps if step.name == "fuse"), None)
    found = {cand.item.id for step in asked for cand in step.pool}
    came_in = sum(len(step.pool) for step in asked)
    return {
        "channels": sum(bool(step.pool) for step in asked),
        "came_in": came_in,
        "duplicates": came_in - len(found),
        "left": len(fused.pool) if fused else 0,
    }
