"""Feed parsers with inputs that atheris (libFuzzer) finds by coverage; stop at the first crash.

``python tools/fuzz.py`` runs every target for a minute, ``--seconds 600 --target times`` one of
them for ten. An answer or an error of ours is right; any other exception, and an input that
takes longer than a second, is a finding: it is written to the folder that is printed, and
belongs into the tests. Needs ``pip install atheris``, which only this tool uses.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
_MAX_LENGTH = {"project": 65_536}  # bytes of an input: all that is read of such a file
Target = Callable[[bytes], Any]
SEEDS = (
    "the meeting is on the second Tuesday after 3 March 2026 at half past nine",
    "letzten Freitag um 14 Uhr, vor drei Wochen, am 5.6.2027",
    "password=hunter22x; AKIAQ3EGLQ7XUVZ5T2MB and 4111 1111 1111 1111",
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall"}}',
    '{"type":"bethink","version":1,"end":true}\n{"type":"item","id":"x"}\n{"type":"end"}',
    'space = "work"\nk = 5\n[profile.default]\n',
    '\0a.b."c".d = [[1], {e.f = 0x1f}]\nprofile = "default"\n',
    '\1[[channels]]\nuse = "lexical"\nname = "a"\n[fuse]\nuse = "rrf"\n',
    "\2gitdir: ../main/.git/worktrees/theirs\n",
    '\3{"siftcoder": {"recall": {"limit": 5}}}',
    "# 2026-03-02\n\n- first\n- second\n\n<!-- bethink:notes x -->\n",
    "le mot de passe est Sommer2024! et das Passwort lautet x9Fk2lPq8z",
)


def targets() -> dict[str, Target]:
    """The functions that read what others wrote; each takes bytes."""
    from bethink import Memory
    from bethink.config.settings import load_settings
    from bethink.core.json_values import parse_strict_json
    from bethink.importers import IMPORTERS
    from bethink.importers.detection import detect_source
    from bethink.importers.entry import ReadProgress
    from bethink.importers.streams import open_stream, read_records
    from bethink.ingest.files import read_drafts
    from bethink.ingest.notes import split_paragraphs
    from bethink.ingest.redaction import redact
    from bethink.lang.dates import find_times
    from bethink.render.quoting import Quote, fence_quotes
    from bethink.server.tools.answers import in_tool_words

    folder = Path(tempfile.mkdtemp(prefix="bethink-fuzz-"))
    memory = Memory.open(":memory:", embedder="none")
    memory.remember_many(["The deploy key lives in vault B", "Maria likes green tea"])

    def importing(data: bytes) -> None:
        path = folder / "input.jsonl"
        path.write_bytes(data)
        kind, _ = detect_source(path)
        if kind in IMPORTERS:
            source = IMPORTERS[kind](path, ReadProgress())
            deque((*source.entries(), *source.links()), maxlen=0)
        elif kind != "bethink":
            deque(read_drafts(path, kind), maxlen=0)
        else:
            with open_stream(str(path)) as stream:
                deque(read_records(stream), maxlen=0)

    def configuring(data: bytes) -> None:
        (folder / "config.toml").write_bytes(data)
        load_settings(folder, {"BETHINK_CONFIG_DIR": str(folder)})

    def fencing(data: bytes) -> None:
        fenced = fence_quotes([Quote("head", _text(data))])
        code = re.search(r"between the (\w+) markers", fenced)
        if code is None or code[1] in _text(data):
            raise AssertionError("the fence can be closed")

    return {
        "query": lambda data: memory.recall(_text(data), k=3, track=False),
        "times": lambda data: find_times(_text(data), NOW),
        "redactor": lambda data: redact(_text(data)),
        "importer": importing,
        "notes": lambda data: split_paragraphs(_text(data)),
        "fence": fencing,
        "settings": configuring,
        "project": lambda data: _open_project(data, folder),
        "json": lambda data: parse_strict_json(_text(data)),
        "messages": lambda data: in_tool_words(_text(data)),
    }


def _open_project(data: bytes, folder: Path) -> None:
    """Read a stranger's project: the first byte says as which of its files."""
    from bethink.config.settings import load_settings
    from bethink.config.spaces import resolve_space
    from bethink.retrieval.profile import load_profile

    project = folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    for name in (".bethink/profiles", ".siftcoder"):
        (project / name).mkdir(parents=True)
    names = (".bethink/config.toml", ".bethink/profiles/theirs.toml", ".git",
             ".siftcoder/config.json")  # fmt: skip
    name = names[(data or b"\0")[0] % len(names)]
    (project / name).write_bytes(data[1:])
    env = {"BETHINK_CONFIG_DIR": str(folder / "none")}
    profile = "siftcoder" if name.endswith("json") else "theirs"
    settings = load_settings(project, env, {"profile": profile})
    resolve_space(None, settings)
    load_profile(profile, settings.profile_folders(), settings.changes(profile))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def fuzz(name: str, seconds: int, findings: Path) -> None:
    """Run one target; libFuzzer ends the process."""
    import atheris  # not a dependency of the project

    from bethink.errors import BethinkError

    with atheris.instrument_imports(include=["bethink"]):
        run = targets()[name]

    def once(data: bytes) -> None:
        try:
            run(data)
        except BethinkError:
            return

    corpus = Path(tempfile.mkdtemp(prefix="bethink-corpus-"))
    for number, seed in enumerate(SEEDS):
        (corpus / str(number)).write_text(seed, "utf-8")
    options = [
        f"-max_total_time={seconds}", "-timeout=1", f"-max_len={_MAX_LENGTH.get(name, 4096)}",
        "-print_final_stats=1",
        f"-artifact_prefix={findings}/{name}-", "-rss_limit_mb=0",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], once)
    atheris.Fuzz()


def main() -> int:
    """Run the targets one after another, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--target", default="")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--findings", type=Path, default=Path("build") / "fuzz")
    given = parser.parse_args()
    given.findings.mkdir(parents=True, exist_ok=True)
    if given.target:
        fuzz(given.target, given.seconds, given.findings)
    failed = 0
    for name in () if given.target else targets():
        command = [sys.executable, __file__, "--target", name, "--seconds", str(given.seconds)]
        done = subprocess.run(  # noqa: S603 - this file itself
            [*command, "--findings", str(given.findings)], capture_output=True, check=False
        )
        told = done.stderr.decode("utf-8", "replace")
        executed = re.search(r"number_of_executed_units: (\d+)", told)
        runs = int(executed[1]) if executed else 0
        outcome = "no finding" if done.returncode == 0 else f"a finding in {given.findings}"
        sys.stdout.write(f"{name:10} {runs:>9,} inputs  {outcome}\n")
        sys.stdout.flush()
        if done.returncode:
            failed += 1
            sys.stdout.write(f"{told[-2000:]}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
