"""Takes the snapshots, reads and writes their files, and says where two of them differ.

What is kept: every recall's answer and trace without its timings, the help of every command,
the OpenAPI document, and the keys and types of all JSON that is handed out. The package's own
name is kept as a placeholder, so that a package by another name can be held to the same files.
"""

from __future__ import annotations

import atexit
import difflib
import json
import lzma
import math
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from snapshot_questions import QUESTIONS
from snapshot_shapes import called, elsewhere, shapes
from snapshot_stores import NAME, READERS, open_store

from bethink import Memory
from bethink.cli import reference
from bethink.errors import Refused
from bethink.render.wire import dumps, recall_json
from bethink.retrieval.profile import profile_names
from bethink.server.rest.routes import openapi_document

HERE = Path(__file__).parent
HELP = HERE / "help.txt"
OPENAPI = HERE / "openapi.json"
SHAPES = HERE / "wire-shapes.json"
PROFILES = tuple(sorted(profile_names()))
# Processors add up in different orders, and stored vectors are rounded: similarities differ.
TOLERANCE = 1e-4
WIDTH = 80

Json = dict[str, Any]

# --- Recalls --------------------------------------------------------------------------------


@cache
def opened(store: str) -> Memory:
    """One of the stores, filled once for all profiles; asking does not change it."""
    folder = Path(tempfile.mkdtemp(prefix="snapshot-"))
    memory = open_store(store, folder / "home", _embedder())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(memory.close)
    return memory


@cache
def _embedder() -> Any:
    with Memory.open(":memory:", embedder="encoder") as memory:
        return memory.embedder


def take(store: str, profile: str) -> list[Json]:
    """Every question of a store as a profile answers it."""
    memory = opened(store)
    return [_asked(memory, profile, text, options) for text, options in QUESTIONS[store]]


def _asked(memory: Memory, profile: str, text: str, options: Json) -> Json:
    asked = {"profile": profile, "question": text, "options": options}
    how = (
        {**options, "reranker": READERS[options["reranker"]]} if "reranker" in options else options
    )
    try:
        answer = memory.recall(text, profile=profile, track=False, **how)
    except Refused as error:
        return _nameless(asked | {"refused": error.message, "remedy": error.remedy})
    told = json.loads(dumps(recall_json(answer, trace=True)))
    return _nameless(asked | _reduced(told))


def _reduced(told: Json) -> Json:
    """What matters of an answer: no texts of memories, nothing that a watch measured."""
    hits = {hit["id"]: hit for hit in (*told["insights"], *told["items"], *told["raw"])}
    missed = told["nearest_miss"]
    kept = (
        *("reason", "strategy", "warnings", "degraded", "page"),
        *("captions", "timelines", "relations", "evidences"),
    )
    trace = told["trace"]
    return {
        "status": told["status"],
        "hits": [_hit(hits[key]) for key in told["order"]],
        **{name: told[name] for name in kept},
        "filters": told["query"]["filters"],
        "limits": [told["query"][name] for name in ("k", "max_tokens", "most", "as_of")],
        "nearest_miss": _hit(missed) if missed else None,
        "merge": trace["merge"],
        "final": trace["final"],
        "truncated": trace["truncated"],
        "steps": [_step(step) for step in trace["steps"]],
    }


def _hit(hit: Json) -> Json:
    named = ("bm25_rank", "vector_rank", "cosine", "recency", "heat", "band", "momentum")
    return {
        "id": hit["id"],
        "score": hit["score"],
        "reasons": hit["match_reasons"],
        "named": {name: hit[name] for name in named if hit[name] is not None},
        "breakdown": hit["breakdown"],
        "evidence": hit["evidence"],
    }


def _step(step: Json) -> Json:
    kept = {name: step[name] for name in ("step", "status", "came_in", "left", "note")}
    return kept | {"best": [[one["id"], one["score"]] for one in step["candidates"]]}


# --- Help, OpenAPI, shapes ------------------------------------------------------------------


def help_texts() -> dict[str, str]:
    """What ``--help`` prints for the program, each command and each subcommand."""
    paths = re.findall(rf"^## {NAME} (.+)$", reference(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder, elsewhere(Path(folder), COLUMNS=str(WIDTH)):
        return {path: _helped(path.split()) for path in ("", *paths)}


def _helped(words: list[str]) -> str:
    code, printed = called(*words, "--help")
    assert code == 0, f"{words} --help ends with {code}"
    lines = _nameless(printed).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def openapi() -> Json:
    """The description of the HTTP interface, whatever the version."""
    told: Json = _nameless(json.loads(dumps(openapi_document())))
    told["info"]["version"] = "any"
    return told


def wire_shapes() -> Json:
    """Keys and types of all that is handed out as JSON."""
    told: Json = _nameless(json.loads(dumps(shapes(opened))))
    return told


# --- Files ----------------------------------------------------------------------------------

_MARK = "=== "
_WHOLE = "(the program)"


def recalls_file(store: str) -> Path:
    return HERE / "snapshots" / f"{store}.jsonl.xz"


def write_recalls(store: str, taken: Iterable[Json]) -> None:
    """One answer a line, compressed; the same answers give the same bytes."""
    lines = [json.dumps(_short(one), ensure_ascii=False, separators=(",", ":")) for one in taken]
    packed = lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    recalls_file(store).parent.mkdir(exist_ok=True)
    recalls_file(store).write_bytes(packed)


@cache
def read_recalls(store: str) -> tuple[Json, ...]:
    if not recalls_file(store).exists():
        return ()
    text = lzma.decompress(recalls_file(store).read_bytes()).decode()
    return tuple(json.loads(line) for line in text.split("\n"))


def kept_recalls(store: str, profile: str) -> list[Json]:
    """What a store's file holds of one profile."""
    return [one for one in read_recalls(store) if one["profile"] == profile]


def write_help(texts: Mapping[str, str]) -> None:
    pages = [f"{_MARK}{path or _WHOLE}\n\n{text}\n" for path, text in texts.items()]
    HELP.write_text("\n".join(pages), encoding="utf-8")


def read_help() -> dict[str, str]:
    text = HELP.read_text(encoding="utf-8") if HELP.exists() else ""
    pages = f"\n{text}".split(f"\n{_MARK}")[1:]
    parted = [page.partition("\n") for page in pages]
    return {"" if path == _WHOLE else path: told.strip("\n") for path, _, told in parted}


def write_json(file: Path, value: Json) -> None:
    file.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(file: Path) -> Json:
    told: Json = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return told


def _short(value: Any) -> Any:
    """Numbers with nine digits: a thousand times finer than they are compared."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: _short(one) for name, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, list) else value


def _nameless(value: Any) -> Any:
    """The same without the package's name: it may change, and nothing else with it."""
    if isinstance(value, str):
        for name, mark in ((NAME, "{name}"), (NAME.title(), "{Name}"), (NAME.upper(), "{NAME}")):
            value = value.replace(name, mark)
        return value
    if isinstance(value, dict):
        return {_nameless(name): _nameless(one) for name, one in value.items()}
    return [_nameless(one) for one in value] if isinstance(value, list) else value


# --- Comparing ------------------------------------------------------------------------------


def difference(kept: Any, now: Any, path: str = "") -> str | None:
    """The first place where two values differ, with both; None where they agree."""
    if isinstance(kept, dict) and isinstance(now, dict):
        return _of_tables(kept, now, path)
    if isinstance(kept, list) and isinstance(now, list):
        for number, (was, is_) in enumerate(zip(kept, now, strict=False)):
            if found := difference(was, is_, f"{path}[{number}]"):
                return found
        if len(kept) != len(now):
            longer = kept if len(kept) > len(now) else now
            extra = _shown(longer[min(len(kept), len(now))])
            which = "only kept" if longer is kept else "only now"
            return (
                f"{path}: {len(kept)} entries were kept, {len(now)} are there now; {which}: {extra}"
            )
        return None
    return None if _alike(kept, now) else f"{path}: kept {_shown(kept)}, now {_shown(now)}"


def _of_tables(kept: Json, now: Json, path: str) -> str | None:
    for name, was in kept.items():
        if name not in now:
            return f"{path}.{name}: kept {_shown(was)}, now not there"
        if name.endswith("rank") and _are_neighbours(was, now[name]):
            continue
        if found := difference(was, now[name], f"{path}.{name}"):
            return found
    new = next((name for name in now if name not in kept), None)
    return None if new is None else f"{path}.{new}: not kept, now {_shown(now[new])}"


def _are_neighbours(kept: Any, now: Any) -> bool:
    """Whether two ranks are next to one another: processors round equal similarities apart."""
    return isinstance(kept, int) and isinstance(now, int) and abs(kept - now) == 1


def _alike(kept: Any, now: Any) -> bool:
    if isinstance(kept, bool) or isinstance(now, bool):
        return kept is now
    if isinstance(kept, int | float) and isinstance(now, int | float):
        return math.isclose(kept, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(kept, str) and isinstance(now, str):
        return same_text(kept, now)
    return bool(kept == now)


def same_text(kept: str, now: str) -> bool:
    """Whether two texts say the same: decimals and ranks may differ by one in the last digit."""
    if kept == now:
        return True
    if _NUMBER.sub("", kept) != _NUMBER.sub("", now):
        return False
    pairs = zip(_NUMBER.findall(kept), _NUMBER.findall(now), strict=True)
    return all(
        abs(float(was) - float(is_)) < 1.5 * 10.0 ** -len(was.partition(".")[2])
        for was, is_ in pairs
    )


_NUMBER = re.compile(r"\d+\.\d+|(?<=\brank )\d+")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"


def recall_differences(kept: list[Json], now: list[Json]) -> list[str]:
    """Each question whose answer has changed, with the first place where it has."""
    if len(kept) != len(now):
        return [f"{len(kept)} answers were kept, {len(now)} are there now"]
    told = []
    for was, is_ in zip(kept, now, strict=True):
        if found := difference(was, is_):
            asked = f"{is_['question']!r} {is_['options'] or ''}".strip()
            told.append(f"[{is_['profile']}] {asked}\n    {found}")
    return told


def help_differences(kept: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Commands that came, went or say other words. Where lines break is not compared: that
    depends on how long the program's name is."""
    told = [f"{path}: no longer there" for path in kept if path not in now]
    for path, text in now.items():
        if path not in kept:
            told.append(f"{path}: new")
        elif "".join(kept[path].split()) != "".join(text.split()):
            lines = difflib.unified_diff(
                kept[path].splitlines(), text.splitlines(), "kept", "now", n=0, lineterm=""
            )
            told.append("\n    ".join([f"{path}:", *lines]))
    if not told and list(kept) != list(now):
        told.append("the commands stand in another order")
    return told
