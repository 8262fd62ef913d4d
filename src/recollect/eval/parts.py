"""What each channel and each stage is worth, from the traces of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from recollect.eval.asking import Asked
from recollect.eval.looking import CHANNEL, StepLook

CUT = 10


def channels(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Each channel: how often it answered, what it found, and what only it found.

    A dead channel found nothing relevant at all. One that found nothing alone may
    still matter: what two channels agree on rises. Its ablation tells.
    """
    judged = [one for one in asked if one.relevant]
    names = dict.fromkeys(step.name for one in judged for step in one.looks if step.is_channel)
    wanted = sum(len(one.relevant) for one in judged)
    return [_channel(name, judged, wanted) for name in names]


def _channel(name: str, judged: Sequence[Asked], wanted: int) -> dict[str, Any]:
    own = [(one, step) for one in judged for step in one.looks if step.name == name]
    unique = [(one, unit) for one, step in own for unit in step.places if _only(unit, step, one)]
    answered = sum(1 for one, unit in unique if unit in one.ranked[:CUT])
    found = sum(len(step.places) for _, step in own)
    return {
        "channel": name.removeprefix(CHANNEL),
        "n": len(own),
        "skipped": sum(step.status == "skipped" for _, step in own),
        "degraded": sum(step.status == "degraded" for _, step in own),
        "returned": _mean(step.left for _, step in own),
        "found": found,
        "found_share": found / wanted if wanted else None,
        "unique": len(unique),
        "unique_share": len(unique) / wanted if wanted else None,
        "unique_answered": answered,
        "dead": not found,
        "milliseconds": 1000 * _mean(step.seconds for _, step in own),
    }


def _only(unit: str, own: StepLook, one: Asked) -> bool:
    others = (step for step in one.looks if step.is_channel and step is not own)
    return not any(unit in step.places for step in others)


def stages(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Each step from the fusion on: where it moved the relevant ones.

    ``rise`` is the mean of how many places the first relevant one moved up, over
    the questions where it stood before and after; ``gained`` and ``lost`` count the
    relevant units that were in the pool only after, or only before.
    """
    judged = [one for one in asked if one.relevant]
    walks = [[step for step in one.looks if not step.is_channel] for one in judged]
    names = dict.fromkeys(step.name for walk in walks for step in walk)
    return [_stage(name, walks, judged) for name in names]


def _stage(
    name: str, walks: Sequence[Sequence[StepLook]], judged: Sequence[Asked]
) -> dict[str, Any]:
    moves = []
    recalls = []
    for walk, one in zip(walks, judged, strict=True):
        for place, step in enumerate(walk):
            if step.name == name:
                before = walk[place - 1] if place else None
                moves.append((before, step))
                recalls.append((_recall(before, one), _recall(step, one)))
    rises = [
        min(before.places.values()) - min(step.places.values())
        for before, step in moves
        if before is not None and before.places and step.places
    ]
    return {
        "stage": name,
        "n": len(moves),
        "milliseconds": 1000 * _mean(step.seconds for _, step in moves),
        "left": _mean(step.left for _, step in moves),
        "recall_before": _mean(before for before, _ in recalls if before is not None),
        "recall_after": _mean(after for _, after in recalls if after is not None),
        "rise": _mean(rises),
        "up": sum(rise > 0 for rise in rises),
        "down": sum(rise < 0 for rise in rises),
        "gained": sum(len(step.places.keys() - before.places) for before, step in moves if before),
        "lost": sum(len(before.places.keys() - step.places) for before, step in moves if before),
        "degraded": sum(step.status == "degraded" for _, step in moves),
    }


def _recall(step: StepLook | None, one: Asked) -> float | None:
    if step is None:
        return None
    return sum(place <= CUT for place in step.places.values()) / len(one.relevant)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
