"""The commands `doctor`, `reindex`, `stats`, `store`, `move`, `completion` and `version`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from bethink.cli.app import App, progress
from bethink.cli.help import COMPLETION_VARIABLE, PROGRAM
from bethink.cli.options import Group, command, option
from bethink.cli.output import (
    Piece,
    bold,
    columns,
    dim,
    format_time,
    green,
    print_table,
    red,
    yellow,
)
from bethink.core import plural
from bethink.errors import (
    BadPlugin,
    BadSetting,
    MissingExtra,
    ModelError,
    NotFound,
    StoreDamaged,
    StoreError,
)
from bethink.version import __version__

if TYPE_CHECKING:
    from bethink.api.maintenance import ReindexCounts
    from bethink.core.json_values import Json
    from bethink.memory import Memory
    from bethink.ports import CheckResult
    from bethink.store.postgres.move import Moved


_EXIT_UNHEALTHY = 3
_HOOK_LOG_DAYS = 7
_STATS_SHOWN = (
    *("space", "path", "server", "bytes", "sqlite", "schema", "memories", "vectors", "embedder"),
)


@command("doctor", examples=["bethink doctor", "bethink doctor --repair"])
@option("--repair", "Recreate derived data that is wrong.")
def doctor(app: App, *, repair: bool) -> int:
    """Check the store for problems.

    Shows the configuration in use, then checks the file, the hashes of the memories, the
    word indexes, the vectors, the journal, and whether the models answer. Exit code 3
    when something is wrong; a warning alone does not change it.
    """
    with app.open() as memory:
        statistics = _readable_stats(memory)
        with progress(app, "checking", unit="checks") as advance:
            findings = memory.doctor(repair=repair, progress=advance)
        findings += _check_models(memory)
        if not any(finding.name == "embedder" and finding.warning for finding in findings):
            with suppress(StoreDamaged):  # the findings say what cannot be read
                findings += _check_embeddings(memory, repair=repair)
    findings += _check_hooks_log()
    findings += _check_plugins()
    in_use = {name: statistics[name] for name in _STATS_SHOWN if name in statistics}
    in_use |= {"vector_path": "bits scan", "profile": app.settings.profile}
    wrong = [finding for finding in findings if not (finding.ok or finding.repaired)]
    from bethink.render.wire import mapping_json  # other commands of this module do without

    results = [finding._asdict() for finding in findings]
    app.document({"ok": not wrong, "in_use": mapping_json(in_use), "findings": results})
    _print_facts(app, in_use)
    app.out.line()
    _print_findings(app, findings)
    _print_summary(app, findings, len(wrong))
    return _EXIT_UNHEALTHY if wrong else 0


def _readable_stats(memory: Memory) -> Json:
    """Return the statistics; none of a store too damaged to count, which the checks will name."""
    try:
        return memory.stats()
    except StoreDamaged:
        return {}


def _print_summary(app: App, findings: list[CheckResult], wrong: int) -> None:
    warnings = sum(finding.warning for finding in findings)
    if wrong:
        app.out.line(red(f"{plural(wrong, 'problem')} found"))
    elif warnings:
        app.out.line(yellow(f"no problems found, but {plural(warnings, 'warning')}"))
    else:
        app.out.line(green("no problems found"))


_PROBE_SECONDS = 20.0
_PROBE_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


def _check_models(memory: Memory) -> Iterator[CheckResult]:
    """Use every configured model once, with a harmless text."""
    from bethink.ports import Budget, Prompt  # only for this command

    embedder, reranker, llm = memory.embedder, memory.reranker, memory.llm
    settings = memory.settings
    if embedder is not None:
        yield _probe("embedder", settings.embedder, lambda: embedder.embed_query("A test"))
    if reranker is not None:
        yield _probe("reranker", settings.reranker, lambda: reranker("A test", ["A test"]))
    if llm is not None:
        prompt = Prompt(
            "doctor", 1, "Answer yes.", "Do you work?", _PROBE_SCHEMA, output_tokens=100
        )
        budget = Budget(calls=2, seconds=_PROBE_SECONDS)
        yield _probe("llm", llm.name, lambda: llm.complete(prompt, budget=budget))


def _probe(role: str, name: str | None, use: Callable[[], object]) -> CheckResult:
    from bethink.ports import CheckResult

    try:
        use()
    except (MissingExtra, ModelError) as error:
        remedy = f"; {error.remedy}" if error.remedy else ""
        return CheckResult(role, True, f"{name}: {error.message}{remedy}", warning=True)
    return CheckResult(role, True, f"{name} answers")


def _check_hooks_log() -> Iterator[CheckResult]:
    """Report recent lines of the hooks log, if there are any."""
    from bethink.config.paths import hooks_log  # only for this command
    from bethink.ports import CheckResult

    path = hooks_log()
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    since = f"{datetime.now(UTC) - timedelta(days=_HOOK_LOG_DAYS):%Y-%m-%d}"
    recent = [line for line in lines if line >= since]
    if recent:
        problems = plural(len(recent), "hook problem")
        text = f"{problems} in the last {_HOOK_LOG_DAYS} days, see {path}; latest: {recent[-1]}"
        yield CheckResult("hooks", True, text, warning=True)


def _check_plugins() -> Iterator[CheckResult]:
    """Load every installed plug-in, if there are any; report what cannot be used."""
    from bethink.importers import IMPORTERS
    from bethink.models import EMBEDDERS
    from bethink.models.llm import LLMS
    from bethink.models.rerank import RERANKERS
    from bethink.ports import CheckResult
    from bethink.retrieval.retrievers import RETRIEVERS
    from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES
    from bethink.store import STORES

    models = (EMBEDDERS, RERANKERS, LLMS)
    for table in (RETRIEVERS, FUSIONS, STAGES, ASSEMBLERS, *models, IMPORTERS, STORES):
        for name in table.installed:
            try:
                table[name]
            except BadPlugin as error:
                yield CheckResult("plug-ins", False, error.message)
            else:
                yield CheckResult("plug-ins", True, f"{table.kind} {name}")
        for problem in table.shadowed():
            yield CheckResult("plug-ins", False, problem)


def _check_embeddings(memory: Memory, *, repair: bool) -> Iterator[CheckResult]:
    """Check that every memory has a vector of the current model; they can be recreated."""
    from bethink.ports import CheckResult  # only for this command

    if memory.embedder is None:
        return
    model = memory.embedder.model
    lacking = ["memories"] if memory.store.vectors.unembedded(model, 1) else []
    lacking += ["entities"] if memory.store.vectors.unembedded_entities(model, 1) else []
    if not lacking:
        yield CheckResult("embeddings", True, f"all memories and entities have vectors of {model}")
        return
    text = f"{' and '.join(lacking)} lack vectors of {model}; bethink reindex creates them"
    try:
        if repair:
            text = _describe_reindexed(memory.make_missing())
        yield CheckResult("embeddings", False, text, repaired=repair)
    except StoreError as error:
        yield CheckResult("embeddings", False, f"{text}; not repaired: {error.message}")


def _describe_reindexed(counts: ReindexCounts) -> str:
    """Describe what was created, by kind; memories are always named, even if none."""
    parts = [f"created vectors for {plural(counts.vectors, 'memory')}"]
    parts += [f"vectors for {plural(counts.entities, 'entity')}"] if counts.entities else []
    parts += [plural(counts.index_entries, "index entry")] if counts.index_entries else []
    return ", ".join(parts)


def _print_findings(app: App, findings: list[CheckResult]) -> None:
    heads = columns("", "check", "*result")
    rows = [(_finding_label(finding), bold(finding.name), finding.detail) for finding in findings]
    print_table(app.out, heads, rows)


def _finding_label(finding: CheckResult) -> Piece:
    if finding.repaired:
        return yellow("repaired")
    if finding.ok and finding.warning:
        return yellow("warning")
    return green("ok") if finding.ok else red("problem")


@command("stats", examples=["bethink stats", "bethink stats --json"])
def stats(app: App) -> None:
    """Show statistics of the store."""
    with app.open() as memory:
        statistics = memory.stats()
    from bethink.render.wire import mapping_json  # as above

    app.document(mapping_json(statistics))
    _print_facts(app, statistics)


def _print_facts(app: App, facts: Mapping[str, object]) -> None:
    for name, value in facts.items():
        text = _format_value(value)
        if text:
            title = f"{name.replace('_', ' '):<18}"
            app.out.block(text, first=(dim(title),), indent=len(title))


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format_value(count)}" for name, count in value.items())
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


@command("reindex", examples=["bethink reindex"])
def reindex(app: App) -> None:
    """Create missing vectors.

    Needed after the embedder was changed or an older database was opened.
    Can be interrupted and resumed at any time.
    """
    with app.open() as memory, progress(app, "reindexing", unit="memories") as advance:
        counts = memory.make_missing(progress=advance)
    counted = {"entities": counts.entities, "index_entries": counts.index_entries}
    shown = green(_describe_reindexed(counts))
    app.report({"reindexed": counts.vectors, **counted}, shown)


@command(
    "completion",
    examples=[
        'eval "$(bethink completion bash)"              # in ~/.bashrc',
        'eval "$(bethink completion zsh)"               # in ~/.zshrc',
        "bethink completion fish > ~/.config/fish/completions/bethink.fish",
    ],
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(app: App, shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class  # only for this command

    from bethink.cli.commands import bethink

    completer = get_completion_class(shell)
    assert completer is not None, "click supports these shells"
    script = completer(bethink, {}, PROGRAM, COMPLETION_VARIABLE).source()
    if app.json:
        app.out.json({"shell": shell, "script": script})
    else:
        app.out.raw(script)


@command("version", examples=["bethink version", "bethink version -v"])
def version(app: App) -> None:
    """Print the version.

    With -v also those of Python and SQLite.
    """
    versions = {"bethink": __version__}
    if app.json or app.verbose:
        import apsw

        versions |= {"python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}
    app.document(versions)
    for name, number in versions.items():
        app.out.line(f"{name} {number}")


@click.group(
    "store",
    cls=Group,
    invoke_without_command=False,
    no_args_is_help=False,  # the whole help would be the error
    examples=[
        "bethink store init postgresql://owner@host/memories",
        "bethink store status postgresql://app@host/memories",
        "bethink --store postgresql://app@host/memories remember 'Deploy on Mondays'",
    ],
)
def store() -> None:
    """Prepare a PostgreSQL database for memories.

    The role that calls init and migrate owns the tables. Those that only use them need no
    more than to be members of the role that serves, which status names. Without URL it is the
    store in use.
    """


_URL = click.argument("url", required=False)


@store.subcommand("init", examples=["bethink store init postgresql://owner@host/memories"])
@_URL
def store_init(app: App, url: str | None) -> int:
    """Create the schema, the tables and the role that serves them.

    What exists is left as it is, and brought up to date.
    """
    return _show_store(app, url, "init")


@store.subcommand("migrate", examples=["bethink store migrate postgresql://owner@host/memories"])
@_URL
def store_migrate(app: App, url: str | None) -> int:
    """Bring the schema up to date, under a lock, in one transaction."""
    return _show_store(app, url, "migrate")


@store.subcommand(
    "distribute", examples=["bethink store distribute postgresql://owner@host/memories"]
)
@_URL
def store_distribute(app: App, url: str | None) -> int:
    """Distribute the tables over the servers of a Citus cluster, by space.

    Each space then lies on one server, and every call asks that one. Call it on the
    coordinator; nothing is written meanwhile. What is distributed is left as it is. The number
    of shards is the one the coordinator is set to (citus.shard_count).
    """
    return _show_store(app, url, "distribute")


@store.subcommand("status", examples=["bethink store status postgresql://app@host/memories"])
@_URL
def store_status(app: App, url: str | None) -> int:
    """Show the server, the schema's version, and whether rows are secured.

    Exit code 1 where something is missing.
    """
    return _show_store(app, url, "status")


def _show_store(app: App, url: str | None, step: str) -> int:
    from bethink.store import prepare_server
    from bethink.store.url import is_server, shown_store

    address = url or app.settings.store
    if not is_server(address):
        raise BadSetting(
            f"{shown_store(address)} is no server", remedy="name its URL: postgresql://..."
        )
    found = prepare_server(address, step)
    ready = found["schema"] == found["known"] and found["serving"] and found["secured"]
    ready = ready and not found["unreachable"]
    app.document({**found, "ready": ready})
    away = found.pop("unreachable")
    for name, value in found.items():
        if found["distributed"] or name not in {"nodes", "shards"}:
            app.out.line(dim(f"{name:>11}  "), str(value))
    missing = f"no answer from {', '.join(away)}" if away else "bethink store init, as the owner"
    state = green("ready") if ready else yellow(f"not ready: {missing}")
    app.out.line(state)
    return 0 if ready else 1


@command(
    "move",
    examples=[
        "bethink move work --to postgresql://app@host/memories",
        "bethink --store postgresql://app@host/memories move work --to sqlite",
        "bethink move work --to postgresql://app@host/memories --remove-source",
    ],
)
@click.argument("name", metavar="SPACE")
@option("--to target STORE", "URL of a PostgreSQL database, or sqlite.", required=True)
@option("--remove-source", "Then remove what was moved from.")
def move(app: App, name: str, *, target: str, remove_source: bool) -> int:
    """Move a space to a server, or back into a file.

    Everything goes along: revisions, links, journal, usage, vectors. All rows are compared
    by count and hash before the new place can be used. Until then the space can be read, not
    written. The old one stays, read-only, unless --remove-source is given, now or in a later
    call. A move that was interrupted goes on with the same command.
    """
    from bethink.config.spaces import resolve_space  # only for this command
    from bethink.store import DEFAULT_STORE, list_shelves, move_space, space_exists
    from bethink.store.url import is_server, shown_store

    source, path = app.settings.store, resolve_space(name, app.settings).path
    if target == source or not (is_server(target) or target == DEFAULT_STORE):
        raise BadSetting(
            f"a space cannot be moved from {shown_store(source)} to {shown_store(target)}",
            remedy="name a server (postgresql://...) or sqlite; --store names the one it is in",
        )
    with progress(app, f"moving {name}", unit="rows") as advance:
        try:
            # First what only some people see: a space that has moved has moved with it.
            for shelf, file in list_shelves(source, name, path):
                move_space(shelf, file, source=source, target=target, progress=advance)
            done = move_space(name, path, source=source, target=target, progress=advance)
        except NotFound as error:
            if space_exists(target, name, path):
                there = shown_store(target)
                raise NotFound(f"{name} is at {there} already, and nowhere else") from error
            raise
    if remove_source:
        from bethink.cli.config import remove_space  # only for this option

        remove_space(source, name, path)
    _report_move(app, name, shown_store(target), done, removed=remove_source)
    return 0


def _report_move(app: App, space: str, target: str, done: Moved, *, removed: bool) -> None:
    facts = {"space": space, "already": done.already, "resumed": done.resumed}
    facts |= {"rows": done.rows, "source": "removed" if removed else "kept"}
    count = sum(done.rows.values())
    what = "was moved before" if done.already else f"moved, {plural(count, 'row')} compared"
    app.report(facts, green(f"{space}: {what}"))
    if not removed:
        app.note(dim("the old one stays, read-only; the same with --remove-source removes it"))
    app.note(dim(f"to use the new one: bethink config set store {target}"))
