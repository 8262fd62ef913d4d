"""`eval` and `tune`: measuring recall, and searching better numbers for a profile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.cli.progress import progress
from recollect.eval.options import (
    listed,
    places_for,
    reading_options,
    the_dataset,
    the_guests,
    the_profiles,
    the_shelf,
)

if TYPE_CHECKING:
    from recollect.eval.case import Dataset
    from recollect.eval.tune import Tuned
    from recollect.profile import Profile

REGRESSED = 1
_FILE = click.Path(path_type=Path)


@command(
    "eval",
    examples=[
        "recollect eval builtin",
        "recollect eval locomo locomo10.json --profiles default,siftcoder",
        "recollect eval longmemeval longmemeval_s.json --level session --cache ~/.cache/eval",
        "recollect eval jsonl questions.jsonl --space work --ablate --html report.html",
        "recollect eval builtin --against last.json --save last.json",
    ],
)
@reading_options
@click.option(
    "--profiles",
    default="default",
    show_default=True,
    metavar="A,B,...",
    help="Profiles by name or TOML file; the first is what the others are compared to.",
)
@click.option("--ablate", is_flag=True, help="Also without each part of the first profile.")
@click.option("--parts", default="", metavar="A,B,...", help="Also without these parts only.")
@click.option(
    "--abstention",
    type=click.Choice(["off", "easy", "hard"]),
    default="easy",
    show_default=True,
    help="Questions of other conversations; hard replaces names.",
)
@click.option(
    "--strangers",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    metavar="N",
    help="How many such questions in all.",
)
@click.option("-k", type=click.IntRange(1, 200), metavar="N", help="How many to ask for.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page with plots.")
@click.option("--save", type=_FILE, metavar="FILE", help="Keep the report for --against.")
@click.option("--against", type=_FILE, metavar="FILE", help="Compare with a saved report.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    metavar="X",
    help="A loss of at most so much is borne.",
)
@pass_app
def eval_command(app: App, /, **given: Any) -> int:  # fmt: skip
    """Measure how well the right memories come back.

    Stores the memories of DATASET for real, asks its questions of every profile and
    prints quality with intervals, abstention, speed, cost, and what each channel and
    stage is worth. PATH is the data set's file or folder; builtin needs none. Exit
    code 1 when --against finds something significantly worse.
    """
    from recollect.eval.regression import against, read_report  # help does without

    places_for(given["html"], given["save"])
    earlier = read_report(given["against"]) if given["against"] else None
    report = _measure(app, given)
    if earlier is not None:
        report["against"] = against(
            report, earlier, file=str(given["against"]), tolerance=given["tolerance"]
        )
    _write(app, report, given)
    _print(app, report)
    return REGRESSED if earlier is not None and report["against"]["worse"] else 0


def _measure(app: App, given: dict[str, Any]) -> dict[str, Any]:
    from recollect.eval.ablation import ablations  # help does without
    from recollect.eval.report import build
    from recollect.eval.runner import Plan, run

    dataset = the_dataset(app, given)
    profiles = the_profiles(app, given["profiles"])
    if given["ablate"] or given["parts"]:
        first = next(iter(profiles))
        profiles |= ablations(profiles[first], first, listed(given["parts"]))
    plan = Plan(
        seed=given["seed"],
        foreign=given["abstention"],
        strangers=given["strangers"],
        k=given["k"] or 0,
    )
    with progress(app, "asking", unit="questions") as advance:
        measured = run(
            dataset,
            profiles,
            plan,
            the_shelf(app, given),
            guests=the_guests(dataset),
            watch=advance,
        )
    return build(measured)


def _write(app: App, report: dict[str, Any], given: dict[str, Any]) -> None:
    from recollect.eval.page import page  # help does without
    from recollect.wire import dumps

    if given["html"]:
        given["html"].write_text(page(report), encoding="utf-8")
        app.note(f"the page is {given['html']}")
    if given["save"]:
        given["save"].write_text(dumps(report) + "\n", encoding="utf-8")
        app.note(f"the report is {given['save']}")


def _print(app: App, report: dict[str, Any]) -> None:
    from recollect.eval.drawing import print_sheets  # help does without
    from recollect.eval.sheets import headline, left_out, sheets

    if app.json:
        app.out.json(report)
        return
    app.out.line(headline(report))
    for line in left_out(report):
        app.note(line)
    print_sheets(app.out, sheets(report))


@command(
    "tune",
    examples=[
        "recollect tune jsonl questions.jsonl --space work --out mine.toml",
        "recollect tune locomo locomo10.json --trials 100 --minutes 20 --out mine.toml",
        "recollect tune builtin --settings 'channels.*.weight' --out mine.toml",
    ],
)
@reading_options
@click.option(
    "--profile",
    default="default",
    show_default=True,
    metavar="NAME",
    help="Where to begin: a profile by name or TOML file.",
)
@click.option("--out", type=_FILE, required=True, metavar="FILE", help="The new profile.")
@click.option(
    "--settings",
    "patterns",
    default="",
    metavar="A,B,...",
    help="Only settings that fit, for example 'rerank.*,channels.*.weight'.",
)
@click.option(
    "--metrics",
    default="recall@10,ndcg@10",
    show_default=True,
    metavar="A,B,...",
    help="What to raise; several are averaged.",
)
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    metavar="N",
    help="At most so many profiles are tried.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    metavar="N",
    help="At most so long.",
)
@click.option(
    "--holdout",
    type=click.FloatRange(0.1, 0.9),
    default=0.4,
    show_default=True,
    metavar="SHARE",
    help="The share of the questions that the search never sees.",
)
@pass_app
def tune_command(app: App, /, **given: Any) -> int:  # fmt: skip
    """Search better numbers for a profile.

    Turns the numeric settings of a profile's channels and stages, keeps what helps on
    the training questions, and reports the held-out ones apart. The gate is left
    alone: recall alone would always open it. Says so when the gain may be noise.
    """
    from recollect.eval.toml import profile_toml  # help does without
    from recollect.eval.tuned import verdict

    places_for(given["out"])
    dataset = the_dataset(app, given)
    start, result = _tune(app, dataset, given)
    origin = f"Tuned from {start.name} on {dataset.title}, seed {given['seed']}"
    remarks = [f"{origin}, {result.trials} trials.", verdict(result)]
    given["out"].write_text(profile_toml(result.profile, remarks), encoding="utf-8")
    _print_tuned(app, result, dataset.title, given)
    return 0


def _tune(app: App, dataset: Dataset, given: dict[str, Any]) -> tuple[Profile, Tuned]:
    from contextlib import ExitStack  # help does without

    from recollect.eval.knobs import knobs
    from recollect.eval.runner import DEPTH
    from recollect.eval.tune import Search, tune

    start = next(iter(the_profiles(app, given["profile"]).values()))
    turned = knobs(start, listed(given["patterns"]))
    search = Search(
        metrics=listed(given["metrics"]),
        trials=given["trials"],
        minutes=given["minutes"],
        holdout=given["holdout"],
        seed=given["seed"],
        k=DEPTH[dataset.level],
    )
    shelf = the_shelf(app, given)
    with ExitStack() as stack:
        samples = []
        for case in dataset.cases():
            filled = stack.enter_context(shelf.open(dataset.name, case))
            samples += [(filled, question) for question in filled.questions]
        with progress(app, "trying", unit="profiles") as advance:
            return start, tune(start, turned, samples, search, advance)


def _print_tuned(app: App, result: Tuned, title: str, given: dict[str, Any]) -> None:
    from recollect.eval.drawing import print_sheets  # help does without
    from recollect.eval.tuned import tuned_json, tuned_sheets, verdict

    if app.json:
        app.out.json(tuned_json(result, title, str(given["out"])))
        return
    app.out.line(f"{title}, seed {given['seed']}")
    print_sheets(app.out, tuned_sheets(result, given["metrics"]))
    app.out.line()
    app.out.line(verdict(result))
    app.out.line(f"the profile is {given['out']}")
    folders = [folder.absolute() for folder in app.settings.profile_folders()]
    if folders and given["out"].absolute().parent not in folders:
        app.note(f"in {folders[-1]} it can be used by name: --profile {given['out'].stem}")
