"""Tune a profile's parameters, and report whether the gain is significant.

Questions are split by the seed: the search sees the training ones only, and the
held-out ones are run before and after. A gain there that resampling cannot
distinguish from noise is called noise. Also ablations, and writing profiles as TOML.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from random import Random
from time import monotonic
from typing import Any

import numpy as np
import tomlkit

from bethink.core import plural
from bethink.core.json_values import Json
from bethink.core.registry import Registry, location_of
from bethink.errors import BadProfile, Refused
from bethink.eval.case import Question
from bethink.eval.metrics import Difference, Values, get_metric, paired_difference
from bethink.eval.runner import ProgressCallback, pool_units, run_recall
from bethink.eval.spaces import FilledSpace
from bethink.eval.tables import Cells, ReportTable, difference_columns, make_table
from bethink.retrieval.profile import SLOTS, Profile, bounds_of
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES

ABLATION_SEPARATOR = " without "


def ablations(profile: Profile, label: str, only: Sequence[str] = ()) -> dict[str, Profile]:
    """Return variants of the profile with one slot or part removed each.

    Where a slot holds one stage, removing it and emptying the slot are one variant. The
    last retriever stays: without any there is no pipeline. ``only`` names the parts to
    remove.
    """
    available = (*removable_parts(profile), *SLOTS)
    for part in only:
        if part not in available:
            raise Refused(
                f"profile {label} has no part {part!r}",
                remedy=f"available: {', '.join(dict.fromkeys(available))}",
            )
    variants: dict[str, Profile] = {}
    seen = {profile}
    for part in only or removable_parts(profile):
        changed = profile.without(part)
        if changed.channels and changed not in seen:
            seen.add(changed)
            variants[f"{label}{ABLATION_SEPARATOR}{part}"] = changed
    return variants


def removable_parts(profile: Profile) -> list[str]:
    """Names of everything that ``Profile.without`` can remove."""
    names = [channel.name for channel in profile.channels]
    for slot in SLOTS:
        stages = profile.slot(slot)
        names += [stage.name for stage in stages]
        if len(stages) > 1:
            names.append(slot)
    return list(dict.fromkeys(names))


# The gate trades recall for abstention; a search for recall alone would open it.
TUNED_SLOTS = tuple(slot for slot in SLOTS if slot != "gate")
RANGE_FACTOR = 4.0
_SIGNIFICANT_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tunable parameter: its position in the profile, its name and its range."""

    slot: str
    place: int
    field: str
    name: str
    low: float
    high: float
    whole: bool

    def read(self, profile: Profile) -> float:
        """Return its value in a profile."""
        value: float = getattr(_get_part(profile, self), self.field)
        return value

    def turn(self, profile: Profile, value: float) -> Profile:
        """Return the profile with this parameter changed, clamped to its range."""
        held = min(self.high, max(self.low, value))
        # More digits would be false precision.
        chosen: float = round(held) if self.whole else float(f"{held:.{_SIGNIFICANT_DIGITS}g}")
        part = dataclasses.replace(_get_part(profile, self), **{self.field: chosen})
        if self.slot == "fuse":
            return dataclasses.replace(profile, fuse=part)
        parts = list(getattr(profile, self.slot))
        parts[self.place] = part
        changes: Json = {self.slot: tuple(parts)}
        return dataclasses.replace(profile, **changes)

    def mutate(self, value: float, step: float, random: Random) -> float:
        """Return a random value nearby: about ``step`` of the way to either end."""
        if self.low > 0:
            width = step * math.log(self.high / self.low)
            return value * math.exp(random.gauss(0.0, width / 2))
        return value + random.gauss(0.0, step * (self.high - self.low) / 2)


def tunable_parameters(profile: Profile, only: Sequence[str] = ()) -> list[Parameter]:
    """Tunable parameters of a profile, or those whose names match a pattern.

    Of retrievers the fractions (weights and parameters of the score), of the fusion and
    the stages integers too. An integer of 0 means off and stays.
    """
    found = [
        *_parameters_of("channels", profile.channels, integers=False),
        *_parameters_of("fuse", (profile.fuse,), integers=True),
        *(
            parameter
            for slot in TUNED_SLOTS
            for parameter in _parameters_of(slot, profile.slot(slot), integers=True)
        ),
    ]
    chosen = [
        parameter
        for parameter in found
        if not only or any(fnmatchcase(parameter.name, pattern) for pattern in only)
    ]
    if not chosen:
        available = ", ".join(parameter.name for parameter in found) or "none"
        raise Refused("no setting matches", remedy=f"available: {available}")
    return chosen


def _parameters_of(slot: str, parts: Sequence[Any], *, integers: bool) -> Iterator[Parameter]:
    for place, part in enumerate(parts):
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            low, high = 0.0, 1.0
            if isinstance(value, float) and value:
                low, high = sorted((value / RANGE_FACTOR, value * RANGE_FACTOR))
            elif integers and type(value) is int and value > 0:
                low, high = max(1.0, value // RANGE_FACTOR), value * RANGE_FACTOR
            elif not isinstance(value, float):
                continue
            allowed, name = bounds_of(slot, field.name), f"{slot}.{part.name}.{field.name}"
            limits = max(low, allowed.low), min(high, allowed.high)
            yield Parameter(slot, place, field.name, name, *limits, whole=type(value) is int)


def _get_part(profile: Profile, parameter: Parameter) -> Any:
    return (
        profile.fuse
        if parameter.slot == "fuse"
        else getattr(profile, parameter.slot)[parameter.place]
    )


def profile_toml(profile: Profile, comments: Sequence[str] = ()) -> str:
    """Format the profile with every setting, so that no later default changes it."""
    sections: Json = {
        **{name: getattr(profile, name) for name in ("title", "untopiced", "shared", "deeper")},
        "deep": profile.deep or (),
        "channels": [_part_table(part, RETRIEVERS) for part in profile.channels],
        "fuse": _part_table(profile.fuse, FUSIONS),
        **{slot: [_part_table(part, STAGES) for part in profile.slot(slot)] for slot in SLOTS},
        "budget": profile.budget,
        "assemble": [_part_table(part, ASSEMBLERS) for part in profile.assemble],
        "track": profile.track,
        "text": list(profile.text),
    }
    given = {name: _toml_value(value) for name, value in sections.items() if value not in ([], ())}
    return "".join(f"# {line}\n" for line in comments) + tomlkit.dumps(given)


def _part_table(part: object, registry: Registry[Any]) -> Json:
    use = registry.name_of(type(part)) or location_of(type(part))
    if use is None:
        raise BadProfile(f"{type(part).__name__} is not registered under a name")
    return {"use": use, **_toml_value(part)}


def _toml_value(value: object) -> Any:
    """A value in its TOML form; pairs of a name and a value become an inline table."""
    if dataclasses.is_dataclass(value):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return {name: _toml_value(one) for name, one in fields.items() if one is not None}
    if isinstance(value, list | tuple):
        is_pair = [isinstance(one, tuple) and len(one) == 2 for one in value]
        if value and all(is_pair) and all(isinstance(one[0], str) for one in value):
            table = tomlkit.inline_table()
            table.update({name: _toml_value(one) for name, one in value})
            return table
        return [_toml_value(one) for one in value]
    if isinstance(value, dict | bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise BadProfile(f"{value!r} has no TOML form")


Sample = tuple[FilledSpace, Question]

# A candidate that trails by more than this many standard errors is given up early.
_EARLY_STOP_ERRORS = 1.0
_CHECKPOINTS = (0.25, 0.5)
_FIRST_STEP = 0.5
_LAST_STEP = 0.1


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of the search. ``metrics`` are averaged."""

    metrics: tuple[str, ...] = ("recall@10", "ndcg@10")
    trials: int = 60
    minutes: float = 10.0
    holdout: float = 0.4
    seed: int = 7


@dataclass(frozen=True, slots=True)
class TuneResult:
    """Result of tuning; ``train`` and ``held_out`` compare the new with the old."""

    profile: Profile
    changes: tuple[tuple[str, float, float], ...]
    train: Difference
    held_out: Difference
    trials: int

    @property
    def is_noise(self) -> bool:
        """Whether the held-out questions show no significant gain."""
        return not (self.held_out.value > 0 and self.held_out.is_significant)


def split_samples(
    samples: Sequence[Sample], search: SearchOptions
) -> tuple[list[Sample], list[Sample]]:
    """Split into training and held-out questions, shuffled by the seed."""
    shuffled = [sample for sample in samples if sample[1].answerable]
    Random(search.seed).shuffle(shuffled)  # noqa: S311 - to be repeatable
    kept_back = round(len(shuffled) * search.holdout)
    train, held_out = shuffled[kept_back:], shuffled[:kept_back]
    if len(train) < 2 or len(held_out) < 2:
        raise Refused(
            f"{len(shuffled)} answerable questions are too few to split",
            remedy="add questions, or change --holdout",
        )
    return train, held_out


def tune(
    profile: Profile,
    turned: Sequence[Parameter],
    samples: Sequence[Sample],
    search: SearchOptions,
    watch: ProgressCallback = lambda *_: None,
) -> TuneResult:
    """Search for better parameters; return the profile itself where there are none."""
    train, held_out = split_samples(samples, search)
    before = np.asarray(list(_metric_values(profile, train, search)))
    best, best_values = profile, before
    tried = 0
    deadline = monotonic() + search.minutes * 60
    for parameters, step, random in _moves(turned, search):
        if monotonic() > deadline:
            break
        proposal = best
        for one in parameters:
            proposal = one.turn(proposal, one.mutate(one.read(proposal), step, random))
        values = _evaluate_or_stop(proposal, best_values, train, search)
        if values is not None and values.mean() > best_values.mean():
            best, best_values = proposal, values
        tried += 1
        watch(tried, search.trials)
    old = np.asarray(list(_metric_values(profile, held_out, search)))
    new = np.asarray(list(_metric_values(best, held_out, search))) if best != profile else old
    return TuneResult(
        profile=best,
        changes=tuple(
            (one.name, old_value, new_value)
            for one in turned
            if (old_value := one.read(profile)) != (new_value := one.read(best))
        ),
        train=paired_difference(before, best_values, search.seed),
        held_out=paired_difference(old, new, search.seed),
        trials=tried,
    )


def _moves(
    turned: Sequence[Parameter], search: SearchOptions
) -> Iterator[tuple[list[Parameter], float, Random]]:
    """Yield which parameters to change, how far, and a random source of its own.

    First each parameter by itself, then up to three, in decreasing steps.
    """
    random = Random(f"{search.seed}/moves")  # noqa: S311 - to be repeatable
    order = random.sample(list(turned), len(turned))
    for trial in range(search.trials):
        done = trial / max(1, search.trials - 1)
        step = _FIRST_STEP * (_LAST_STEP / _FIRST_STEP) ** done
        if trial < 2 * len(order):
            chosen = [order[trial % len(order)]]
        else:
            chosen = random.sample(order, min(len(order), random.randint(1, 3)))
        yield chosen, step, Random(f"{search.seed}/{trial}")  # noqa: S311


def _metric_values(
    profile: Profile, samples: Sequence[Sample], search: SearchOptions
) -> Iterator[float]:
    functions = [get_metric(name) for name in search.metrics]
    for filled, question in samples:
        answer = run_recall(filled, question, profile)
        ranked = pool_units(answer.hits, filled.units)
        scored = (function(ranked, question.relevant) for function in functions)
        yield sum(scored) / len(functions)


def _evaluate_or_stop(
    profile: Profile, best: Values, samples: Sequence[Sample], search: SearchOptions
) -> Values | None:
    """Evaluate the profile's values; None if it clearly trails at a checkpoint."""
    stops = {round(len(samples) * share) for share in _CHECKPOINTS}
    values: list[float] = []
    for value in _metric_values(profile, samples, search):
        values.append(value)
        if len(values) in stops and len(values) > 1:
            gains = np.asarray(values) - best[: len(values)]
            error = float(gains.std(ddof=1)) / math.sqrt(len(values))
            if gains.mean() < -_EARLY_STOP_ERRORS * error:
                return None
    return np.asarray(values)


def tune_result_json(result: TuneResult, title: str, file: str) -> Json:
    """The result of tuning as one JSON document."""
    return {
        "file": file,
        "measured_on": title,
        "trials": result.trials,
        "noise": result.is_noise,
        "verdict": tune_verdict(result),
        "train": asdict(result.train),
        "held_out": asdict(result.held_out),
        "changes": [
            {"setting": name, "before": before, "after": after}
            for name, before, after in result.changes
        ],
    }


def tune_result_tables(result: TuneResult, metrics: str) -> Iterator[ReportTable]:
    """Tables of the changed settings, and of their effect on both splits."""
    yield ReportTable(
        f"Settings changed in {plural(result.trials, 'trial')}",
        ("setting", ">before", ">after"),
        tuple((name, f"{before:g}", f"{after:g}") for name, before, after in result.changes),
    )
    gains = {"training": result.train, "held out": result.held_out}
    columns = (Cells("questions", "name"), *difference_columns("before", "after"))
    rows = [{"name": name, **asdict(gain)} for name, gain in gains.items()]
    yield make_table(f"Mean of {metrics}", columns, rows)


def tune_verdict(result: TuneResult) -> str:
    """State in one sentence whether the new profile is worth keeping."""
    gain = result.held_out
    if not result.changes:
        return "No improvement was found; the profile is unchanged."
    if result.is_noise:
        return (
            f"On the {gain.n:,} held-out questions the change of {gain.value:+.3f} may be "
            "noise: keep the old profile, or add questions."
        )
    return f"On the {gain.n:,} held-out questions it gains {gain.value:+.3f} (p {gain.p:.3f})."
