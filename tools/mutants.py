"""Changes one line of the source at a time and sees whether a test notices: `make mutants`.

A mutant is one small change: `<` for `<=`, `or` for `and`, a statement left out. All that
can be made are listed in a fixed order of their own, so that the same seed takes the same
ones as long as their lines stand. Each runs in a copy of the tree, first against the tests
nearest to it, then against a wider set. Those that change nothing anybody could observe
are named with their reason in `mutants-equivalent.toml` and are not counted.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = "bethink"
EQUIVALENT = ROOT / "tools" / "mutants-equivalent.toml"


class Area(NamedTuple):
    """Files and folders of the package, and the tests that should notice a change there:
    near ones first, the wider set only for what these let pass. The tests that import the
    changed module come before both."""

    sources: tuple[str, ...]
    near: tuple[str, ...]
    wide: tuple[str, ...]


# The one place that knows where things are. Paths are below src/<package> and tests.
_RANKINGS = ("golden/test_rankings.py", "property/test_engine_laws.py")
_MEMORY = ("unit/test_memory.py", "unit/retrieval/test_recall_edges.py")
AREAS = {
    "engine": Area(
        sources=("retrieval/engine.py", "retrieval/context.py", "retrieval/trace.py",
                 "retrieval/profile.py", "retrieval/query_builder.py",
                 "retrieval/query_analysis.py", "retrieval/scope.py", "retrieval/explain.py"),
        near=("unit/retrieval/test_recall_edges.py", "unit/retrieval/test_asking.py",
              "unit/retrieval/test_profile.py", "unit/retrieval/test_explain.py",
              "unit/retrieval/test_wordless.py", *_RANKINGS, *_MEMORY),
        wide=("unit/retrieval/test_stages.py", "unit/retrieval/test_once_found.py",
              "unit/retrieval/test_dates_in_questions.py",
              "unit/api/test_merging.py", "unit/config/test_aliases.py", "unit/api/test_ceiling.py",
              "property/test_scope_twins.py", "property/test_as_of.py",
              "conformance/test_as_of_laws.py", "property/test_profile_laws.py",
              "systems"),
    ),
    "stages": Area(
        sources=("retrieval/stages", "retrieval/retrievers"),
        near=("unit/retrieval/test_stages.py", "unit/retrieval/test_gate.py",
              "unit/retrieval/test_reranking.py", *_RANKINGS, *_MEMORY),
        wide=("systems", "conformance/test_stage_laws.py",
              "conformance/test_retriever_laws.py", "unit/api/test_threads.py",
              "unit/retrieval/test_once_found.py", "unit/retrieval/test_dates_in_questions.py",
              "unit/retrieval/test_explain.py", "property/test_as_of.py", "golden/test_year.py"),
    ),
    "store": Area(
        sources=("store",),
        near=("unit/store/test_store_edges.py", "conformance/test_store_laws.py", *_RANKINGS),
        wide=("unit/store", "conformance/test_store_warmth_laws.py",
              "conformance/test_thread_laws.py", "conformance/test_as_of_laws.py",
              "property/test_scope_twins.py", "property/test_as_of.py", "unit/test_memory.py",
              "unit/api"),
    ),
    "search": Area(
        sources=("store/sql/search", "store/sql/state_cache.py"),
        near=("unit/store/test_state_cache.py", "unit/store/test_vectors.py",
              "unit/store/test_postings.py", "unit/store/test_words.py",
              "unit/store/test_spelling.py", "unit/store/test_pieces.py",
              "unit/store/test_store_edges.py", "property/test_cache_laws.py"),
        wide=("conformance/test_store_laws.py", "conformance/test_store_warmth_laws.py",
              "unit/store/test_damage.py", "unit/store/test_state_damage.py",
              "unit/store/test_sqlite_check.py", "unit/store/test_sqlite_erase.py",
              "conformance/test_as_of_laws.py", "property/test_scope_twins.py",
              "property/test_as_of.py", *_RANKINGS),
    ),
    "ingest": Area(
        sources=("ingest",),
        near=("unit/ingest/test_ingest_edges.py", "unit/ingest/test_remember.py",
              "unit/ingest/test_settle.py", "property/test_ingest_laws.py"),
        wide=("unit/ingest", "property/test_fact_laws.py", "unit/test_memory.py",
              "unit/api/test_undo.py", "unit/config/test_aliases.py", "unit/maintain", *_RANKINGS),
    ),
    "access": Area(
        sources=("access",),
        near=("unit/access",),
        wide=("conformance/test_authorisation.py", "conformance/test_network_surface.py",
              "unit/server", "unit/cli/test_cli_tokens.py"),
    ),
}  # fmt: skip

# What a copy of the tree does without.
_LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", "*_cache", "__pycache__", "dist", "build"
)
_SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.Add: ("+", "-"), ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
}  # fmt: skip
_SQL = re.compile(r"\b(SELECT|DELETE|UPDATE|WHERE|AND|i\.\w+)\b.*(\?|\bFROM\b|=)", re.DOTALL)
_SQL_SWAPS = ((" <= ", " < "), (" < ", " <= "), (" >= ", " > "), (" > ", " >= "),
              (" AND ", " OR "), (" DESC", ""), (" IS NULL", " IS NOT NULL"))  # fmt: skip
# Calls whose words are for people alone, and conditions that hold on one system alone.
_SAYS = re.compile(r"(_?log(ger)?\.|warnings\.|.*\.add_step_note$|.*progress)")
_MACHINE = re.compile(r"os\.name|sys\.platform|TYPE_CHECKING")
_LONGEST_TABLE = 12  # names in a table of which one is left out; longer ones are vocabularies


@dataclass(frozen=True)
class Mutant:
    """One change of one file; lines as they read before and after it, for people."""

    area: str
    file: str
    line: int
    function: str
    kind: str
    was: str
    now: str
    start: int
    end: int
    text: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same when other lines come and go."""
        return (self.file, self.function, self.was, self.now)


class Edit(NamedTuple):
    """Bytes of a file that are replaced, and by what."""

    kind: str
    start: int
    end: int
    text: str


class Maker(ast.NodeVisitor):
    """Finds every change that can be made to one file."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.functions: list[str] = []
        self.returns_bool = False
        self.found: list[tuple[str, Edit]] = []

    def at(self, node: ast.AST, *, end: bool = False) -> int:
        """Where in the file a node begins or ends, in bytes."""
        row, col = ("end_lineno", "end_col_offset") if end else ("lineno", "col_offset")
        return self.lines[getattr(node, row) - 1] + int(getattr(node, col))

    def text(self, node: ast.AST) -> str:
        return self.source[self.at(node) : self.at(node, end=True)].decode()

    def add(self, kind: str, start: int, end: int, text: str) -> None:
        self.found.append((".".join(self.functions), Edit(kind, start, end, text)))

    def replace(self, kind: str, node: ast.AST, text: str) -> None:
        self.add(kind, self.at(node), self.at(node, end=True), text)

    def swap(self, kind: str, left: ast.AST, operator: ast.AST, right: ast.AST) -> None:
        """The operator alone is replaced: parentheses and comments stay where they are."""
        if type(operator) not in _SWAPS:
            return
        old, new = _SWAPS[type(operator)]
        start, end = self.at(left, end=True), self.at(right)
        found = re.search(re.escape(old).replace(r"\ ", r"\s+"), self.source[start:end].decode())
        if found:
            self.add(kind, start + found.start(), start + found.end(), new)

    def scoped(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """What is below a class or a function; what it is decorated with is left alone."""
        is_port = isinstance(node, ast.ClassDef) and any(
            "Protocol" in self.text(b) for b in node.bases
        )
        if node.name == "__repr__" or is_port:
            return
        self.functions.append(node.name)
        before = self.returns_bool
        if not isinstance(node, ast.ClassDef):
            self.returns_bool = node.returns is not None and self.text(node.returns) == "bool"
            for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.returns_bool = before
        self.functions.pop()

    visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = scoped  # noqa: N815 - ast's names

    def skip(self, node: ast.AST) -> None:
        """Messages, checks of our own, imports: nothing to change there."""

    visit_Raise = visit_Assert = visit_JoinedStr = visit_Import = skip  # noqa: N815
    visit_ImportFrom = skip  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.leave_out_elements(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        if not any(self.text(target) == "__all__" for target in node.targets):
            self.leave_out_elements(node.value)

    def leave_out_elements(self, node: ast.AST) -> None:
        """A table of the module without one of its rows."""
        if self.functions or not isinstance(node, ast.Tuple | ast.List | ast.Set):
            return
        rows = node.elts
        if 2 < len(rows) <= _LONGEST_TABLE:
            for row, after in pairwise(rows):
                self.add("element", self.at(row), self.at(after), "")

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            self.swap("comparison", left, operator, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if len(node.values) == 2:
            self.swap("and/or", node.values[0], node.op, node.values[1])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        literal = (ast.JoinedStr, ast.List, ast.Tuple)
        joins = any(
            isinstance(side, literal)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
            for side in (node.left, node.right)
        )
        if not joins:
            self.swap("arithmetic", node.left, node.op, node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.add("not", self.at(node), self.at(node.operand), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, str):
            self.change_sql(node, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            # One more of few; of many, where nobody counts to one, twice as many.
            self.replace("constant", node, repr(value + 1 if value < 10 else value * 2))

    def change_sql(self, node: ast.Constant, value: str) -> None:
        if not _SQL.search(value):
            return
        written = self.text(node)
        for old, new in _SQL_SWAPS:
            for found in re.finditer(re.escape(old), written):
                start = self.at(node) + len(written[: found.start()].encode())
                self.add("sql", start, start + len(old), new)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None or self.text(node.value) == "None":
            return
        if self.returns_bool:
            self.replace("return", node.value, f"not ({self.text(node.value)})")
        elif not isinstance(node.value, ast.Constant):
            self.replace("return", node.value, "None")
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not _SAYS.match(self.text(node.value.func)):
            self.drop(node)
            self.visit(node.value)
        elif isinstance(node.value, ast.Await):
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.drop(node)
        self.visit(node.value)

    def drop(self, node: ast.stmt) -> None:
        self.replace("dropped", node, f"pass  # {self.text(node).splitlines()[0]}")

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        if _MACHINE.search(self.text(node.test)):
            return
        for value in ("True", "False"):
            self.replace("condition", node.test, value)
        self.generic_visit(node)

    visit_IfExp = visit_If  # noqa: N815

    def visit_Call(self, node: ast.Call) -> None:
        name = self.text(node.func)
        if _SAYS.match(name):
            return
        if name in ("min", "max"):
            self.replace("min/max", node.func, "max" if name == "min" else "min")
        self.generic_visit(node)


def mutants_of(area: str, path: Path, package: Path) -> Iterator[Mutant]:
    """Every change of one file that still is Python."""
    source = path.read_bytes()
    maker = Maker(source)
    maker.visit(ast.parse(source))
    file = path.relative_to(package).as_posix()
    for function, edit in maker.found:
        changed = source[: edit.start] + edit.text.encode() + source[edit.end :]
        with suppress(SyntaxError):
            ast.parse(changed)
            line = source[: edit.start].count(b"\n")
            was, now = (text.decode().splitlines()[line].strip() for text in (source, changed))
            if was != now:
                yield Mutant(area, file, line + 1, function, edit.kind, was, now, *edit[1:])


def files_of(area: Area, package: Path) -> list[Path]:
    """The source files of an area; a path that is gone is a mistake in the table."""
    found: list[Path] = []
    for name in area.sources:
        place = package / name
        if not place.exists():
            sys.exit(f"{place} is not there: mend AREAS in tools/mutants.py")
        found += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return found


def sample(name: str, seed: int, count: int, equivalent: set[tuple[str, ...]]) -> list[Mutant]:
    """So many of an area's mutants, the same as long as their lines stay what they are."""
    package = ROOT / "src" / PACKAGE
    every = [
        one for path in files_of(AREAS[name], package) for one in mutants_of(name, path, package)
    ]

    def draw(one: Mutant) -> str:
        return hashlib.sha256(repr((seed, *one.key)).encode()).hexdigest()

    unique = {one.key: one for one in every if one.key not in equivalent}
    return sorted(unique.values(), key=draw)[:count]


def judged(path: Path) -> set[tuple[str, ...]]:
    """The mutants that somebody found to change nothing, each with its reason."""
    if not path.exists():
        return set()
    told = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
    without = [one for one in told if not one.get("reason")]
    if without:
        sys.exit(f"{path.name}: {without[0].get('file')} is said to be equivalent without a reason")
    return {(one["file"], one["function"], one["was"], one["now"]) for one in told}


@cache
def imports_of(test: Path) -> frozenset[str]:
    """The modules that a test names."""
    tree = ast.parse(test.read_bytes())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(found)


def nearest(file: str, tests: Path) -> list[str]:
    """Tests that import the changed module or are called like it, the latter first."""
    module = f"{PACKAGE}.{file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")
    words = {word for word in Path(file).stem.split("_") if len(word) > 3}
    ranked = []
    for rank, part in enumerate(("unit", "conformance", "property")):
        for path in (tests / part).rglob("test_*.py"):
            named = any(word in path.stem for word in words)
            imports = module in imports_of(path)
            if imports or (named and path.parent.name in (*Path(file).parts, "property")):
                ranked.append((-2 * named - imports, rank, path.relative_to(tests).as_posix()))
    return [path for _, _, path in sorted(ranked)[:6]]


class Room:
    """A copy of the tree in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=_LEFT_BEHIND, dirs_exist_ok=True, symlinks=True)

    def noticed(self, tests: Sequence[str], within_s: float) -> str:
        """What fails first of the tests, run here in their order; empty where all pass."""
        there = [f"tests/{test}" for test in dict.fromkeys(tests)]
        there = [test for test in there if (self.folder / test).exists()]
        if not there:
            return ""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-n0",
                   "-p", "no:cacheprovider", *there]  # fmt: skip
        env = os.environ | {"PYTHONPATH": str(self.folder / "src"), "TEST_EXAMPLES": "fixed"}
        try:
            ran = subprocess.run(  # noqa: S603 - our own tests
                command,
                cwd=self.folder,
                env=env,
                capture_output=True,
                timeout=within_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no end within {within_s:g} s"
        if ran.returncode == 0:
            return ""
        said = ran.stdout.decode(errors="replace").splitlines()
        failed = (line for line in reversed(said) if line.startswith(("FAILED", "ERROR")))
        return next(failed, f"pytest ended with {ran.returncode}")[:160]

    def try_out(self, mutant: Mutant, within_s: float) -> str:
        """What notices the mutant first; empty where it survives every test there is for it."""
        path = self.folder / "src" / PACKAGE / mutant.file
        source = path.read_bytes()
        text = mutant.text.encode()
        area = AREAS[mutant.area]
        try:
            self._write(path, source[: mutant.start] + text + source[mutant.end :])
            close = [*nearest(mutant.file, self.folder / "tests"), *area.near]
            rest = [test for test in area.wide if test not in close]
            return self.noticed(close, within_s) or self.noticed(rest, within_s)
        finally:
            self._write(path, source)

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # A change may leave length and second as they were: Python must not take the old one.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def run(chosen: Sequence[Mutant], jobs: int, within_s: float, *, check_first: bool) -> list[Mutant]:
    """The mutants that no test noticed."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        rooms: SimpleQueue[Room] = SimpleQueue()
        for number in range(jobs):
            rooms.put(Room(Path(folder) / str(number)))

        def borrowed(use: Callable[[Room], str]) -> str:
            room = rooms.get()
            try:
                return use(room)
            finally:
                rooms.put(room)

        def try_out(mutant: Mutant) -> str:
            by = borrowed(lambda room: room.try_out(mutant, within_s))
            told = f"killed by {by}" if by else "SURVIVED"
            sys.stderr.write(f"{mutant.file}:{mutant.line} {told}\n")
            return by

        def check(name: str) -> str:
            tests = (*AREAS[name].near, *AREAS[name].wide)
            return borrowed(lambda room: room.noticed(tests, 10 * within_s))

        with ThreadPoolExecutor(jobs) as pool:
            names = list(dict.fromkeys(one.area for one in chosen)) if check_first else []
            for name, failed in zip(names, pool.map(check, names), strict=True):
                if failed:
                    sys.exit(f"{name}: a test fails without any mutant: {failed}")
            kills = list(pool.map(try_out, chosen))
    return [mutant for mutant, by in zip(chosen, kills, strict=True) if not by]


def shown(mutant: Mutant) -> str:
    return (
        f"{mutant.file}:{mutant.line} in {mutant.function or 'the module'} ({mutant.kind})\n"
        f"  - {mutant.was}\n  + {mutant.now}\n"
    )


def report(chosen: Sequence[Mutant], survivors: Sequence[Mutant], *, as_json: bool) -> None:
    """The share killed, by area and in all, and who is left."""
    names = dict.fromkeys(one.area for one in chosen)
    counts = {
        name: (sum(one.area == name for one in chosen), sum(one.area == name for one in survivors))
        for name in (*names,)
    }
    if as_json:
        areas = {name: {"tried": tried, "survived": left} for name, (tried, left) in counts.items()}
        told = {"areas": areas, "survivors": [asdict(one) for one in survivors]}
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
        return
    counts["in all"] = (len(chosen), len(survivors))
    for name, (tried, left) in counts.items():
        share = (tried - left) / tried if tried else 1.0
        sys.stdout.write(f"{name:<8} {tried - left:>4} of {tried:>4} killed  {share:.0%}\n")
    for one in survivors:
        sys.stdout.write("\n" + shown(one))


def main() -> int:
    """Tries a sample of mutants; the exit code says whether at least 90 % were noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--area", action="append", choices=AREAS, help="one area; else all")
    parser.add_argument("--per-area", type=int, default=12, help="how many of each area")
    parser.add_argument("--seed", type=int, default=1, help="another one takes other mutants")
    parser.add_argument("--jobs", type=int, default=2, help="how many are tried at once")
    parser.add_argument("--timeout", type=float, default=240, help="seconds for a set of tests")
    parser.add_argument("--equivalent", type=Path, default=EQUIVALENT, help="who is not counted")
    parser.add_argument("--list", action="store_true", help="show the sample and try nothing")
    parser.add_argument("--json", action="store_true", help="the report for programs")
    parser.add_argument("--no-check", action="store_true", help="the tests are known to pass")
    asked = parser.parse_args()
    equivalent = judged(asked.equivalent)
    names = asked.area or list(AREAS)
    chosen = [one for name in names for one in sample(name, asked.seed, asked.per_area, equivalent)]
    if asked.list:
        sys.stdout.write("\n".join(map(shown, chosen)))
        return 0
    survivors = run(chosen, asked.jobs, asked.timeout, check_first=not asked.no_check)
    report(chosen, survivors, as_json=asked.json)
    return 0 if len(survivors) <= len(chosen) / 10 else 1


if __name__ == "__main__":
    sys.exit(main())
