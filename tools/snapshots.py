"""Writes the snapshots of tests/golden anew and prints what has changed.

With --check nothing is written; the exit code says whether anything would be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
sys.path.insert(0, str(GOLDEN))

import snapshot_taking as taking  # noqa: E402 - it lies beside the files it keeps

MOST_SHOWN = 20


def changes() -> Iterator[tuple[Path, list[str], Callable[[], None]]]:
    """Each file, how what there is now differs from it, and what writes it anew."""
    for store in taking.QUESTIONS:
        kept, now, told = [], [], []
        for profile in taking.PROFILES:
            print(f"asking {store} by {profile}", file=sys.stderr)  # noqa: T201
            was, is_ = taking.kept_recalls(store, profile), taking.take(store, profile)
            told += taking.recall_differences(was, is_)
            kept += was
            now += is_
        if len(kept) != len(taking.read_recalls(store)):
            told.append("the file holds profiles that are no longer there")
        yield taking.recalls_file(store), told, lambda s=store, n=now: taking.write_recalls(s, n)
    texts = taking.help_texts()
    told = taking.help_differences(taking.read_help(), texts)
    yield taking.HELP, told, lambda: taking.write_help(texts)
    for file, make in ((taking.OPENAPI, taking.openapi), (taking.SHAPES, taking.wire_shapes)):
        value = make()
        found = taking.difference(taking.read_json(file), value)
        yield file, [found] if found else [], lambda f=file, v=value: taking.write_json(f, v)


def main() -> int:
    """Goes through the files; a file that says the same is left as it is."""
    check = "--check" in sys.argv
    stale = 0
    for file, told, write in changes():
        if told:
            stale += 1
            shown = [*told[:MOST_SHOWN], *([f"... {len(told)} in all"] * (len(told) > MOST_SHOWN))]
            sys.stdout.write("\n  ".join([f"{file.name}:", *shown]) + "\n")
            if not check:
                write()
    sys.stdout.write(f"{stale} files {'differ' if check else 'written'}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
