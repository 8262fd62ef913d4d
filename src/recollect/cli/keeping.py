"""Looking after it: `doctor`, `reindex`, `stats`, `completion`, `version`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.cli.overview import PROGRAM
from recollect.cli.printing import Piece, bold, dim, green, moment, plural, red, yellow
from recollect.cli.progress import progress
from recollect.cli.tables import Column, print_table

if TYPE_CHECKING:
    from recollect.facade.upkeep import Made
    from recollect.memory import Memory
    from recollect.ports import Finding

_SOMETHING_WRONG = 3
_LATELY_DAYS = 7
_IN_USE = ("space", "path", "bytes", "sqlite", "schema", "memories", "vectors", "embedder")


@command("doctor", examples=["recollect doctor", "recollect doctor --repair"])
@click.option("--repair", is_flag=True, help="Make anew what is derived and wrong.")
@pass_app
def doctor(app: App, *, repair: bool) -> int:
    """Check everything that could be wrong.

    Says what is in use, then looks at the file, the hashes of the memories, the word
    indexes, the vectors and the journal. Exit code 3 when something is wrong.
    """
    with app.open() as memory:
        counted = memory.stats()
        findings = [*memory.doctor(repair=repair), *_embeddings(memory, repair=repair)]
    findings += _hooks()
    in_use = {name: counted[name] for name in _IN_USE}
    in_use |= {"vector_path": "bits scan", "profile": app.settings.profile}
    wrong = [finding for finding in findings if not (finding.ok or finding.repaired)]
    if app.json:
        from recollect.wire import mapping_json  # plain output does without

        told = [finding._asdict() for finding in findings]
        app.out.json({"ok": not wrong, "in_use": mapping_json(in_use), "findings": told})
    else:
        _print_facts(app, in_use)
        app.out.line()
        _print_findings(app, findings)
        if wrong:
            app.out.line(red(f"{plural(len(wrong), 'finding')} to look at"))
        else:
            app.out.line(green("all is well"))
    return _SOMETHING_WRONG if wrong else 0


def _hooks() -> Iterator[Finding]:
    """What went wrong in hooks of late; nothing where nothing did."""
    from recollect.places import hooks_log  # the other commands do without
    from recollect.ports import Finding

    path = hooks_log()
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    since = f"{datetime.now(UTC) - timedelta(days=_LATELY_DAYS):%Y-%m-%d}"
    recent = [line for line in lines if line >= since]
    if recent:
        told = f"{plural(len(recent), 'line')} of late in {path}; the last: {recent[-1]}"
        yield Finding("hooks", True, told)


def _embeddings(memory: Memory, *, repair: bool) -> Iterator[Finding]:
    """Whether every memory has a vector of the model in use; they can be made anew."""
    from recollect.ports import Finding  # the other commands do without

    if memory.embedder is None:
        return
    model = memory.embedder.model
    lacking = ["memories"] if memory.store.unembedded(model, 1) else []
    lacking += ["entities"] if memory.store.unembedded_entities(model, 1) else []
    if not lacking:
        yield Finding("embeddings", True, f"all memories and entities have vectors of {model}")
    elif repair:
        yield Finding("embeddings", False, _made(memory.make_missing()), repaired=True)
    else:
        told = f"{' and '.join(lacking)} lack vectors of {model}: recollect reindex makes them"
        yield Finding("embeddings", False, told)


def _made(made: Made) -> str:
    """What was made, by kind; of memories always, even if there was none to make."""
    told = [f"made vectors for {plural(made.vectors, 'memory')}"]
    told += [f"vectors for {plural(made.entities, 'entity')}"] if made.entities else []
    told += [plural(made.signatures, "signature")] if made.signatures else []
    return ", ".join(told)


def _print_findings(app: App, findings: list[Finding]) -> None:
    heads = [Column(""), Column("what"), Column("finding", wide=True)]
    rows = [(_mark(finding), bold(finding.name), finding.detail) for finding in findings]
    print_table(app.out, heads, rows)


def _mark(finding: Finding) -> Piece:
    if finding.repaired:
        return yellow("repaired")
    return green("ok") if finding.ok else red("wrong")


@command("stats", examples=["recollect stats", "recollect stats --json"])
@pass_app
def stats(app: App) -> None:
    """Count what is stored."""
    with app.open() as memory:
        counted = memory.stats()
    if app.json:
        from recollect.wire import mapping_json  # plain output does without

        app.out.json(mapping_json(counted))
    else:
        _print_facts(app, counted)


def _print_facts(app: App, facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        told = _told(value)
        if told:
            title = f"{name.replace('_', ' '):<18}"
            app.out.block(told, first=(dim(title),), indent=len(title))


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_told(count)}" for name, count in value.items())
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


@command("reindex", examples=["recollect reindex"])
@pass_app
def reindex(app: App) -> None:
    """Make the vectors that are missing.

    Signatures too. Needed after the embedder was changed or an older database was
    opened. Can be stopped at any time and taken up again.
    """
    with app.open() as memory, progress(app, "reindexing", unit="memories") as advance:
        made = memory.make_missing(progress=advance)
    if app.json:
        counted = {"entities": made.entities, "signatures": made.signatures}
        app.out.json({"reindexed": made.vectors, **counted})
    else:
        app.out.line(green(_made(made)))


@command(
    "completion",
    examples=[
        'eval "$(recollect completion bash)"              # in ~/.bashrc',
        'eval "$(recollect completion zsh)"               # in ~/.zshrc',
        "recollect completion fish > ~/.config/fish/completions/recollect.fish",
    ],
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_app
def completion(app: App, shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class  # needed here only

    from recollect.cli.calling import COMPLETION
    from recollect.cli.commands import recollect

    made = get_completion_class(shell)
    assert made is not None, "click knows these three"
    script = made(recollect, {}, PROGRAM, COMPLETION).source()
    if app.json:
        app.out.json({"shell": shell, "script": script})
    else:
        app.out.raw(script)


@command("version", examples=["recollect version", "recollect version -v"])
@pass_app
def version(app: App) -> None:
    """Print the version.

    With -v also those of Python and SQLite.
    """
    import platform  # click has it loaded already

    from recollect.version import __version__

    told = {"recollect": __version__}
    if app.json or app.verbose:
        import apsw

        told |= {"python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}
    if app.json:
        app.out.json(told)
    else:
        for name, number in told.items():
            app.out.line(f"{name} {number}")
