"""What an installation or its removal would change, file by file, before anything is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import BadSetting
from recollect.plugin.install.json_text import look_up
from recollect.plugin.install.manifest import Manifest, Written
from recollect.plugin.install.patch import mark_of, patch_of
from recollect.plugin.install.wanted import Entry, Wanted, WholeFile, notation_of, text_of
from recollect.plugin.install.writing import (
    PRIVATE,
    SHARED,
    content_of,
    missing_folders,
    remove,
    remove_empty,
    settled,
    write_whole,
)
from recollect.version import __version__


class Change(NamedTuple):
    """A file as it is and as it would be; None where there is none."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = SHARED


class Kept(NamedTuple):
    """A file that is left as it is, and why."""

    path: Path
    why: str


class Plan(NamedTuple):
    """What would be done, and the manifest that would tell of it."""

    changes: tuple[Change, ...] = ()
    kept: tuple[Kept, ...] = ()
    manifest: Manifest = Manifest()
    emptied: tuple[Path, ...] = ()


class _Step(NamedTuple):
    """What becomes of one file."""

    change: Change | None = None
    kept: Kept | None = None
    written: Written | None = None


def plan_install(wanted: Wanted, known: Manifest, *, force: bool = False) -> Plan:
    """What installing would change; what the user has changed since or made themselves is
    kept, unless it is forced."""
    files = [one._replace(path=settled(one.path, wanted.root)) for one in wanted.files]
    entries = [one._replace(path=settled(one.path, wanted.root)) for one in wanted.entries]
    steps = [_put(one, known.of(one.path), force=force) for one in files]
    steps += [_set(one, known.of(one.path), force=force) for one in entries]
    here = {one.path for one in files} | {one.path for one in entries}
    steps += [_take(one, force=force) for one in known.files if one.path not in here]
    made = [
        folder
        for step in steps
        if step.change is not None and step.change.before is None
        for folder in missing_folders(step.change.path)
    ]
    folders = tuple(dict.fromkeys((*known.folders, *made)))
    return _plan(steps, Manifest(_kept_track(steps), folders, __version__))


def plan_uninstall(known: Manifest, root: Path, *, force: bool = False) -> Plan:
    """What taking back would change: exactly what was written and is still as it was."""
    for one in known.files:
        settled(one.path, root)
    steps = [_take(one, force=force) for one in known.files]
    left = _kept_track(steps)
    plan = _plan(steps, Manifest(left, known.folders if left else (), known.version))
    return plan._replace(emptied=known.folders)


def carry_out(plan: Plan) -> None:
    """Writes and removes what was planned. A file that has changed since is not touched."""
    for change in plan.changes:
        if content_of(change.path) != change.before:
            raise BadSetting(f"{change.path} has changed meanwhile", remedy="try again")
    for change in plan.changes:
        if change.after is None:
            remove(change.path)
        else:
            write_whole(change.path, change.after, change.mode)
    remove_empty(list(plan.emptied))


def _plan(steps: list[_Step], manifest: Manifest) -> Plan:
    changes = tuple(step.change for step in steps if step.change is not None)
    kept = tuple(step.kept for step in steps if step.kept is not None)
    return Plan(changes, kept, manifest)


def _kept_track(steps: list[_Step]) -> tuple[Written, ...]:
    return tuple(step.written for step in steps if step.written is not None)


def _put(file: WholeFile, known: Written | None, *, force: bool) -> _Step:
    current = content_of(file.path)
    ours = Written(file.path, mark_of(file.content), created=True)
    if current == file.content:
        return _Step(written=ours)
    intact = known is not None and current is not None and known.mark == mark_of(current)
    if current is None or intact or force:
        return _Step(Change(file.path, current, file.content), written=ours)
    why = "changed since it was installed" if known else "there is another file already"
    return _Step(kept=Kept(file.path, why), written=known)


def _set(entry: Entry, known: Written | None, *, force: bool) -> _Step:
    path, keys = entry.path, entry.keys
    content = content_of(path)
    there = look_up(_meant(path, content), keys)
    if there == entry.value:
        return _Step(written=known)
    ours = known is not None and known.value == there
    if there is not None and not ours and not force:
        return _Step(kept=Kept(path, f"it has an entry {keys[-1]} of its own"), written=known)
    before = _without_ours(content, known) if known is not None else content
    text = text_of(path, before or b"")
    after = _changed(path, lambda: notation_of(path).with_entry(text, keys, entry.value)).encode()
    meant = _meant(path, before)
    written = Written(
        path,
        mark_of(after),
        created=before is None,
        patch=None if before is None else patch_of(before, after),
        keys=keys,
        value=dict(entry.value),
        parents=sum(look_up(meant, keys[:depth]) is not None for depth in range(1, len(keys))),
    )
    return _Step(Change(path, content, after, PRIVATE), written=written)


def _take(known: Written, *, force: bool) -> _Step:
    current = content_of(known.path)
    if current is None:
        return _Step()
    if not known.keys:
        if known.mark == mark_of(current) or force:
            return _Step(Change(known.path, current, None))
        kept = Kept(known.path, "changed since it was installed")
        return _Step(kept=kept, written=known)
    there = look_up(_meant(known.path, current), known.keys)
    if there is None:
        return _Step()
    if there != known.value and not force:
        kept = Kept(known.path, f"its entry {known.keys[-1]} was changed since")
        return _Step(kept=kept, written=known)
    return _Step(Change(known.path, current, _without_ours(current, known), PRIVATE))


def _without_ours(content: bytes | None, known: Written) -> bytes | None:
    """A file as it would be if we had never been there: to the byte where nobody else has
    changed it since, else without our entry and the parents made for it."""
    if content is None:
        return None
    if known.mark == mark_of(content):
        return known.patch.undone(content) if known.patch is not None else None
    path, keys = known.path, known.keys
    notation, text = notation_of(path), text_of(path, content)
    for depth in range(len(keys), known.parents, -1):
        inner = look_up(notation.parsed(text), keys[:depth])
        if depth < len(keys) and inner != {}:
            break
        text = _changed(path, lambda at=depth, now=text: notation.without_entry(now, keys[:at]))
    empty = known.created and notation.parsed(text) == {}
    return None if empty else text.encode()


def _meant(path: Path, content: bytes | None) -> Any:
    text = text_of(path, content or b"")
    return _changed(path, lambda: notation_of(path).parsed(text))


def _changed(path: Path, work: Any) -> Any:
    """What the work gives; a refusal names the file, which was not touched."""
    try:
        return work()
    except BadSetting as error:
        remedy = error.remedy or "nothing was changed; mend the file first"
        raise BadSetting(f"{path}: {error.message}", remedy=remedy) from error
