"""The commands `eval` and `tune`, and their shared options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from bethink.cli.app import App, progress
from bethink.cli.options import command, option
from bethink.core import plural
from bethink.core.json_values import Json
from bethink.errors import NotFound, Refused
from bethink.eval import tune
from bethink.eval.case import Case, Dataset
from bethink.eval.datasets import (
    DATASETS,
    OWN_SETS,
    DatasetOptions,
    find_datasets,
    open_dataset,
    select_datasets,
)
from bethink.eval.datasets.jsonl import saved_dataset
from bethink.eval.report import build_report, combine_reports, compare_reports, read_report
from bethink.eval.runner import RunPlan, run_evaluation
from bethink.eval.spaces import SpaceProvider
from bethink.eval.tables import headline, print_tables, report_tables, unresolved_lines
from bethink.render.wire import dumps
from bethink.retrieval.profile import Profile, configured_profile, load_profile_file

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)


def dataset_options(function: F) -> F:
    """Add the options that select and read the data set, passed as keyword arguments."""
    decorators = (
        click.argument("what", nargs=-1, metavar="[DATASET [PATH] | PATH...]"),
        option("--level", "Unit that counts as found: the turn or its session.",
               click.Choice(["turn", "session"]), shown="turn"),
        option("--protocol",
               "LongMemEval: user turns and no abstention questions, or everything.",
               click.Choice(["official", "all"]), shown="official"),
        option("--split NAME", "BEIR: name of the qrels; default test."),
        option("--corpus FILE", "jsonl: file of the memories; without it the space is used.",
               _FILE),
        option("--limit N", "Only the first N conversations or haystacks.", click.IntRange(0),
               default=0),
        option("--seed N", "Random seed.", int, shown=7),
        option("--embedder NAME", "Embedder to use instead of the configured one."),
        option("--in-memory", "Use spaces without files."),
        option("--cache DIR", "Keep the filled spaces and the embeddings in DIR for the next run.",
               _FILE),
    )  # fmt: skip
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def open_selected_datasets(app: App, options: Json) -> list[Dataset]:
    """Open what was named: one data set, everything at some paths, or what comes with us."""
    what = options["what"]
    reading = DatasetOptions(
        **{key: options[key] for key in ("level", "protocol", "split", "corpus", "limit")}
    )
    if not what:
        return [open_dataset(name, reading) for name in OWN_SETS]
    if what[0] not in DATASETS:
        return find_datasets([Path(place) for place in what], reading)
    if len(what) > 2:
        raise Refused(
            f"a data set has one path, not {len(what) - 1}",
            remedy="give only paths to measure several data sets",
        )
    name, path = what[0], Path(what[1]) if len(what) > 1 else None
    found = app.where() if name == "jsonl" and options["corpus"] is None else None
    space = found.name if found else None
    if found and path is None and app.check_space():
        with app.open(create=False) as memory:
            return [saved_dataset(found.name, memory.questions())]
    dataset = open_dataset(name, replace(reading, path=path, space=space))
    if found and not found.path.exists():
        raise Refused(
            f"there is no space {found.name}",
            remedy="name one with --space, or give the memories with --corpus FILE",
        )
    return [dataset]


def guest_cases(dataset: Dataset, others: Sequence[Dataset]) -> list[Case]:
    """Cases of questions foreign to a data set: of other sets of its kind, else built-in ones."""
    kin = [
        other
        for other in others
        if dataset.kind and other.kind == dataset.kind and other.name != dataset.name
    ]
    if not kin:
        named = "notes" if dataset.name == "builtin" else "builtin"
        kin = [open_dataset(named, DatasetOptions())]
    return [case for other in kin for case in other.cases()]


def load_profiles(app: App, names: str) -> dict[str, Profile]:
    found: dict[str, Profile] = {}
    for name in split_names(names):
        profile = (
            _profile_from_file(app, Path(name))
            if name.endswith(".toml")
            else _profile_by_name(app, name)
        )
        if profile.name in found:
            raise Refused(f"two profiles are called {profile.name!r}")
        found[profile.name] = profile
    if not found:
        raise Refused("no profile was given")
    return found


def _profile_from_file(app: App, file: Path) -> Profile:
    if not file.is_file():
        raise Refused(f"there is no file {file}")
    return load_profile_file(file, trusted=app.settings.own_profile_folder())


def _profile_by_name(app: App, name: str) -> Profile:
    try:
        return configured_profile(name, app.settings, app.settings.profile_folders())
    except NotFound as error:
        # A usage error: exit code 1 is reserved for a regression.
        raise Refused(error.message, remedy=error.remedy) from error


def require_writable(file: Path | None) -> None:
    """Refuse an output file that cannot be written, before the long run starts."""
    if file is not None:
        if not file.absolute().parent.is_dir():
            raise Refused(f"cannot write {file}: there is no folder {file.parent}")
        if file.is_dir():
            raise Refused(f"cannot write {file}: it is a folder")


def make_space_provider(app: App, options: Json) -> SpaceProvider:
    return SpaceProvider(
        app.settings,
        embedder=options["embedder"],
        in_memory=options["in_memory"],
        cache_folder=options["cache"],
    )


def split_names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


EXIT_REGRESSED = 1


@command(
    "eval",
    examples=[
        "bethink eval",
        "bethink eval data/ --baselines --cache ~/.cache/eval",
        "bethink eval data/ --sets 'realtalk-*,notes' --json",
        "bethink eval locomo locomo10.json --profiles default,siftcoder",
        "bethink eval longmemeval data.json --level session --cache ~/.cache/eval",
        "bethink eval jsonl questions.jsonl --space work --ablate",
        "bethink eval jsonl --space work",
        "bethink eval builtin --against last.json --save last.json",
    ],
)
@dataset_options
@option(
    "--profiles A,B,...",
    "Profiles by name or TOML file; the others are compared to the first.",
    shown="default",
)
@option("--ablate", "Also run the first profile without each of its parts.")
@option("--parts A,B,...", "Like --ablate, for these parts only.", default="")
@option(
    "--abstention",
    "Whether to add questions of other conversations.",
    click.Choice(["off", "easy"]),
    shown="easy",
)
@option(
    "--strangers N",
    "Number of such questions, and of own ones asked without their answers.",
    click.IntRange(1),
    shown=200,
)
@option("--sets A,B,...", "Only data sets that match.", default="")
@option("--baselines", "Compare with BM25, cosine of the embedder, and RRF of both.")
@option(
    "-k N",
    "Number of results per question; by default the profile's, as a caller gets it.",
    click.IntRange(1, 200),
)
@option(
    "--max-tokens N",
    "Token budget of an answer; by default the profile's, as a caller gets it.",
    click.IntRange(1),
)
@option("--ungated", "Judge what stood before the gate.")
@option("--save FILE", "Save the report for --against.", _FILE)
@option("--against FILE", "Compare with a saved report.", _FILE)
@option(
    "--tolerance X", "Maximum loss that is not reported as worse.", click.FloatRange(0), shown=0.0
)
def eval_command(app: App, /, **options: Any) -> int:  # fmt: skip
    """Measure recall quality.

    Stores the memories of a data set, runs its questions with every profile as a default
    caller would, and prints quality with intervals, abstention, calibration, speed and cost;
    with --ablate also what each part of a profile is worth. PATH is the data set's file or
    folder; with paths alone every data set in them is measured, and the tables have a row for
    each. Without arguments the sets that come with Bethink are measured. Exit code 1 when
    --against finds something significantly worse.
    """
    require_writable(options["save"])
    earlier = read_report(options["against"]) if options["against"] else None
    reports = _measure(app, options)
    report = combine_reports(reports) if len(reports) > 1 else reports[0]
    if earlier is not None:
        report["against"] = compare_reports(
            report, earlier, file=str(options["against"]), tolerance=options["tolerance"]
        )
    _print_report(app, report, options["save"])
    return EXIT_REGRESSED if earlier is not None and report["against"]["worse"] else 0


def _measure(app: App, options: Json) -> list[Json]:
    everything = open_selected_datasets(app, options)
    datasets = select_datasets(everything, split_names(options["sets"]))
    if len(datasets) > 1 and (options["ablate"] or options["parts"]):
        raise Refused("parts are taken out on one data set at a time", remedy="choose with --sets")
    profiles = _profiles_and_ablations(app, options)
    names = ("seed", "strangers", "k", "max_tokens", "ungated", "baselines")
    plan = RunPlan(foreign=options["abstention"], **{name: options[name] for name in names})
    provider = make_space_provider(app, options)
    reports = []
    for place, dataset in enumerate(datasets, start=1):
        if len(datasets) > 1:
            app.note(f"{place} of {len(datasets)}: {dataset.label}")
        with progress(app, f"evaluating {dataset.label}", unit="questions") as advance:
            guests = guest_cases(dataset, everything)
            measured = run_evaluation(
                dataset, profiles, plan, provider, guest_cases=guests, progress=advance
            )
        reports.append(build_report(measured))
    return reports


def _profiles_and_ablations(app: App, options: Json) -> dict[str, Profile]:
    profiles = load_profiles(app, options["profiles"])
    if options["ablate"] or options["parts"]:
        first = next(iter(profiles))
        profiles |= tune.ablations(profiles[first], first, split_names(options["parts"]))
    return profiles


def _print_report(app: App, report: Json, file: Path | None) -> None:
    if file is not None:
        file.write_text(dumps(report) + "\n", encoding="utf-8")
        app.note(f"wrote {file}")
    if app.json:
        app.out.json(report)
        return
    app.out.line(headline(report))
    for line in unresolved_lines(report):
        app.note(line)
    print_tables(app.out, report_tables(report))


@command(
    "tune",
    examples=[
        "bethink tune jsonl questions.jsonl --space work --out mine.toml",
        "bethink tune locomo locomo10.json --trials 100 --minutes 20 --out mine.toml",
        "bethink tune builtin --settings 'channels.*.weight' --out mine.toml",
    ],
)
@dataset_options
@option("--profile NAME", "Profile to start from, by name or TOML file.", shown="default")
@option("--out FILE", "File for the new profile.", _FILE, required=True)
@option(
    "--settings patterns A,B,...",
    "Only settings that match, for example 'rerank.*,channels.*.weight'.",
    default="",
)
@option(
    "--metrics A,B,...", "Metrics to maximise; several are averaged.", shown="recall@10,ndcg@10"
)
@option("--trials N", "Maximum number of trials.", click.IntRange(1), shown=60)
@option("--minutes N", "Maximum duration.", click.FloatRange(0), shown=10.0)
@option(
    "--holdout SHARE",
    "Share of the questions held out from the search.",
    click.FloatRange(0.1, 0.9),
    shown=0.4,
)
def tune_command(app: App, /, **options: Any) -> int:  # fmt: skip
    """Tune a profile's parameters.

    Varies the numeric settings of a profile's retrievers and stages, keeps what helps on
    the training questions, and reports the held-out ones separately. The gate is not
    tuned: a search for recall alone would always open it. Reports when the gain may be
    noise.
    """
    require_writable(options["out"])
    dataset = _single_dataset(app, options)
    start, result = _tune(app, dataset, options)
    origin = f"Tuned from {start.name} on {dataset.title}, seed {options['seed']}"
    remarks = [f"{origin}, {plural(result.trials, 'trial')}.", tune.tune_verdict(result)]
    options["out"].write_text(tune.profile_toml(result.profile, remarks), encoding="utf-8")
    _print_tuned(app, result, dataset.title, options)
    return 0


def _single_dataset(app: App, options: Json) -> Dataset:
    datasets = open_selected_datasets(app, options)
    if len(datasets) > 1:
        names = ", ".join(dataset.label for dataset in datasets)
        raise Refused("a profile is tuned on one data set", remedy=f"name one of: {names}")
    return datasets[0]


def _tune(app: App, dataset: Dataset, options: Json) -> tuple[Profile, tune.TuneResult]:
    start = next(iter(load_profiles(app, options["profile"]).values()))
    parameters = tune.tunable_parameters(start, split_names(options["patterns"]))
    same = {name: options[name] for name in ("trials", "minutes", "holdout", "seed")}
    search = tune.SearchOptions(metrics=split_names(options["metrics"]), **same)
    provider = make_space_provider(app, options)
    with ExitStack() as stack:
        samples = []
        for case in dataset.cases():
            filled = stack.enter_context(provider.open(dataset.name, case))
            samples += [(filled, question) for question in filled.questions]
        with progress(app, "tuning", unit="profiles") as advance:
            return start, tune.tune(start, parameters, samples, search, advance)


def _print_tuned(app: App, result: tune.TuneResult, title: str, options: Json) -> None:
    if app.json:
        app.out.json(tune.tune_result_json(result, title, str(options["out"])))
        return
    app.out.line(f"{title}, seed {options['seed']}")
    print_tables(app.out, tune.tune_result_tables(result, options["metrics"]))
    app.out.line()
    app.out.line(tune.tune_verdict(result))
    app.out.line(f"wrote {options['out']}")
    folders = [folder.absolute() for folder in app.settings.profile_folders()]
    if folders and options["out"].absolute().parent not in folders:
        app.note(f"move it to {folders[-1]} to use it by name: --profile {options['out'].stem}")
