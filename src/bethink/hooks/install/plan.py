"""Plan and apply an installation or its removal, file by file.

The manifest records what was written where, so that exactly that can be undone; it
may contain a few bytes of a changed file, so it is private to the user. Files are
written atomically and never through a link that leads out of the root.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from bethink.config.paths import config_folder
from bethink.core.atomic_write import atomic_replace
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.small_files import read_small_file
from bethink.errors import BadSetting
from bethink.hooks.install import hosts
from bethink.hooks.install.config_text import look_up, without_comments
from bethink.version import __version__

T = TypeVar("T")


class Patch(NamedTuple):
    """A byte patch: at ``offset``, ``removed`` was replaced by ``inserted``."""

    offset: int
    removed: bytes
    inserted: bytes

    def undone(self, after: bytes) -> bytes:
        """Return the original bytes, given the patched ones."""
        end = self.offset + len(self.inserted)
        return after[: self.offset] + self.removed + after[end:]


def make_patch(before: bytes, after: bytes) -> Patch:
    """Compute the patch from one content to the other."""
    start = _common_prefix_length(before, after)
    # The common suffix must not overlap the common prefix.
    most = min(len(before), len(after)) - start
    same = _common_prefix_length(before[::-1][:most], after[::-1][:most])
    return Patch(start, before[start : len(before) - same], after[start : len(after) - same])


def _common_prefix_length(first: bytes, other: bytes) -> int:
    """Length of the common prefix."""
    pairs = enumerate(zip(first, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(other)))


def content_hash(content: bytes) -> str:
    """Hash of a file's content."""
    return hashlib.sha256(content).hexdigest()


SHARED_MODE = 0o644
PRIVATE_MODE = 0o600
_MAX_FILE_BYTES = 4 * 1024 * 1024


def resolve_within(path: Path, root: Path) -> Path:
    """Resolve a path, following links that stay below ``root``.

    A link inside is the user's choice; one that leads out could make us write anywhere,
    so it is refused.
    """
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(root)):
        raise BadSetting(f"{path} is a link to {real}, outside {root}; refusing to write there")
    if real.exists() and not real.is_file():
        raise BadSetting(f"{path} is not a file")
    return real


def read_file(path: Path) -> bytes | None:
    """Read a file; None where there is none."""
    try:
        return read_small_file(path, _MAX_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadSetting(f"cannot read {path}: {error.strerror}") from error


def missing_folders(path: Path) -> list[Path]:
    """The missing parent folders of a file, outermost first."""
    missing = []
    folder = path.parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return missing[::-1]


def write_file(path: Path, content: bytes, mode: int) -> None:
    """Replace a file atomically; an existing one keeps its permissions and owner."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existing = path.stat() if path.exists() else None
        if existing is not None:
            mode = existing.st_mode & 0o777
        # Keep the owner when the command runs as root.
        owner = None if existing is None else (existing.st_uid, existing.st_gid)
        atomic_replace(path, content, mode=mode, owner=owner)
    except OSError as error:
        raise BadSetting(f"cannot write {path}: {error.strerror}") from error


def remove_file(path: Path) -> None:
    """Remove a file, if it exists."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BadSetting(f"cannot remove {path}: {error.strerror}") from error


def remove_empty_folders(folders: list[Path]) -> None:
    """Remove empty folders, innermost first."""
    for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()


_FORMAT = 1


class WrittenFile(NamedTuple):
    """One written file: its content hash and, unless it was new, how to undo it.

    ``keys`` lead to the ``value`` that was set, where only a part of the file is ours;
    ``parents`` is how many of them existed before.
    """

    path: Path
    mark: str
    created: bool
    patch: Patch | None = None
    keys: tuple[str, ...] = ()
    value: object = None
    parents: int = 0


class Manifest(NamedTuple):
    """Everything that one installation has written."""

    files: tuple[WrittenFile, ...] = ()
    folders: tuple[Path, ...] = ()
    version: str = ""

    def of(self, path: Path) -> WrittenFile | None:
        return next((file for file in self.files if file.path == path), None)


def manifest_path(host: str, target: Path, env: Mapping[str, str]) -> Path:
    """Path of the manifest for an installation into this target."""
    key = hashlib.sha256(str(target).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return config_folder(env) / "installed" / f"{host}-{key}.json"


def read_manifest(path: Path) -> Manifest:
    """Read the manifest; empty where nothing was installed."""
    content = read_file(path)
    if content is None:
        return Manifest()
    try:
        document = json.loads(content)
        if document["format"] != _FORMAT:
            raise BadSetting(f"{path} was written by a newer Bethink", remedy="update Bethink")
        return Manifest(
            tuple(_file_from_json(file) for file in document["files"]),
            tuple(Path(folder) for folder in document["folders"]),
            str(document["version"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadSetting(f"{path} is damaged", remedy=f"remove {path}") from error


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest, or remove it where nothing is installed any more."""
    if not manifest.files:
        remove_file(path)
        return
    document = {
        "format": _FORMAT,
        "version": manifest.version,
        "files": [_file_to_json(file) for file in manifest.files],
        "folders": [str(folder) for folder in manifest.folders],
    }
    write_file(path, json.dumps(document, indent=2).encode() + b"\n", PRIVATE_MODE)


def _file_to_json(written: WrittenFile) -> Json:
    document = written._asdict() | {"path": str(written.path), "keys": list(written.keys)}
    if written.patch is not None:
        removed, inserted = (base64.b64encode(part).decode() for part in written.patch[1:])
        document["patch"] = [written.patch.offset, removed, inserted]
    return document


def _file_from_json(value: Json) -> WrittenFile:
    patch = value["patch"]
    if patch is not None:
        offset, *parts = patch
        patch = Patch(int(offset), *(base64.b64decode(part) for part in parts))
    path, keys = Path(value["path"]), tuple(value["keys"])
    return WrittenFile(**value | {"path": path, "keys": keys, "patch": patch})


class Change(NamedTuple):
    """A file before and after; None where there is none."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = SHARED_MODE


class KeptFile(NamedTuple):
    """A file that is left unchanged, and why."""

    path: Path
    why: str


class Plan(NamedTuple):
    """The planned changes, and the manifest that would record them."""

    changes: tuple[Change, ...] = ()
    kept: tuple[KeptFile, ...] = ()
    manifest: Manifest = Manifest()
    emptied: tuple[Path, ...] = ()


class _FileStep(NamedTuple):
    """The planned outcome for one file."""

    change: Change | None = None
    kept: KeptFile | None = None
    written: WrittenFile | None = None


def plan_install(installation: hosts.Installation, known: Manifest, *, force: bool = False) -> Plan:
    """Plan an installation; files the user changed or created are kept, unless forced."""
    files = [
        file._replace(path=resolve_within(file.path, installation.root))
        for file in installation.files
    ]
    entries = [
        entry._replace(path=resolve_within(entry.path, installation.root))
        for entry in installation.entries
    ]
    steps = [_plan_owned_file(file, known.of(file.path), force=force) for file in files]
    steps += [_plan_entry(entry, known.of(entry.path), force=force) for entry in entries]
    planned = {file.path for file in files} | {entry.path for entry in entries}
    steps += [_plan_removal(old, force=force) for old in known.files if old.path not in planned]
    created = [
        folder
        for step in steps
        if step.change is not None and step.change.before is None
        for folder in missing_folders(step.change.path)
    ]
    folders = tuple(dict.fromkeys((*known.folders, *created)))
    return _collect_plan(steps, Manifest(_written_files(steps), folders, __version__))


def plan_uninstall(known: Manifest, root: Path, *, force: bool = False) -> Plan:
    """Plan a removal: exactly what was written and has not changed since."""
    for file in known.files:
        resolve_within(file.path, root)
    steps = [_plan_removal(file, force=force) for file in known.files]
    left = _written_files(steps)
    plan = _collect_plan(steps, Manifest(left, known.folders if left else (), known.version))
    return plan._replace(emptied=known.folders)


def apply_plan(plan: Plan) -> None:
    """Apply the plan; refuse if a file has changed since planning."""
    for change in plan.changes:
        if read_file(change.path) != change.before:
            raise BadSetting(f"{change.path} changed while this command ran", remedy="try again")
    for change in plan.changes:
        if change.after is None:
            remove_file(change.path)
        else:
            write_file(change.path, change.after, change.mode)
    remove_empty_folders(list(plan.emptied))


def _collect_plan(steps: list[_FileStep], manifest: Manifest) -> Plan:
    changes = tuple(step.change for step in steps if step.change is not None)
    kept = tuple(step.kept for step in steps if step.kept is not None)
    return Plan(changes, kept, manifest)


def _written_files(steps: list[_FileStep]) -> tuple[WrittenFile, ...]:
    return tuple(step.written for step in steps if step.written is not None)


def _plan_owned_file(file: hosts.OwnedFile, known: WrittenFile | None, *, force: bool) -> _FileStep:
    current = read_file(file.path)
    ours = WrittenFile(file.path, content_hash(file.content), created=True)
    if current == file.content:
        return _FileStep(written=ours)
    intact = known is not None and current is not None and known.mark == content_hash(current)
    if current is None or intact or force:
        return _FileStep(Change(file.path, current, file.content), written=ours)
    why = "changed since it was installed" if known else "another file is already there"
    return _FileStep(kept=KeptFile(file.path, why), written=known)


def _plan_entry(entry: hosts.ConfigEntry, known: WrittenFile | None, *, force: bool) -> _FileStep:
    path, keys = entry.path, entry.keys
    content = read_file(path)
    by_hand = f"add it by hand, below {keys[0]}: {json.dumps({keys[-1]: entry.value})[1:-1]}"
    if not entry.comments and path.suffix == ".json":
        _refuse_comments(path, content, by_hand)
    current = look_up(_parse_file(path, content), keys)
    if current == entry.value:
        return _FileStep(written=known)
    ours = known is not None and known.value == current
    if current is not None and not ours and not force:
        return _FileStep(
            kept=KeptFile(path, f"it already has another entry {keys[-1]}"), written=known
        )
    before = _revert_content(content, known) if known is not None else content
    text = hosts.decode_file(path, before or b"")
    after = _with_file_in_error(
        path, lambda: hosts.file_format(path).set_entry(text, keys, entry.value), by_hand
    ).encode()
    parsed = _parse_file(path, before)
    written = WrittenFile(
        path,
        content_hash(after),
        created=before is None,
        patch=None if before is None else make_patch(before, after),
        keys=keys,
        value=dict(entry.value),
        parents=sum(look_up(parsed, keys[:depth]) is not None for depth in range(1, len(keys))),
    )
    return _FileStep(Change(path, content, after, PRIVATE_MODE), written=written)


def _refuse_comments(path: Path, content: bytes | None, by_hand: str) -> None:
    """Refuse comments and trailing commas, which the host of this file cannot read."""
    text = hosts.decode_file(path, content or b"")
    if without_comments(text) != text:
        raise BadSetting(
            f"{path}: it is not plain JSON, but has comments or trailing commas", remedy=by_hand
        )


def _plan_removal(known: WrittenFile, *, force: bool) -> _FileStep:
    current = read_file(known.path)
    if current is None:
        return _FileStep()
    if not known.keys:
        if known.mark == content_hash(current) or force:
            return _FileStep(Change(known.path, current, None))
        kept = KeptFile(known.path, "changed since it was installed")
        return _FileStep(kept=kept, written=known)
    value = look_up(_parse_file(known.path, current), known.keys)
    if value is None:
        return _FileStep()
    if value != known.value and not force:
        kept = KeptFile(
            known.path, f"its entry {known.keys[-1]} was changed since it was installed"
        )
        return _FileStep(kept=kept, written=known)
    return _FileStep(Change(known.path, current, _revert_content(current, known), PRIVATE_MODE))


def _revert_content(content: bytes | None, known: WrittenFile) -> bytes | None:
    """Return a file's content without our change.

    To the byte if the file was not changed since, else without our entry and the parents
    created for it.
    """
    if content is None:
        return None
    if known.mark == content_hash(content):
        return known.patch.undone(content) if known.patch is not None else None
    path, keys = known.path, known.keys
    format_, text = hosts.file_format(path), hosts.decode_file(path, content)
    for depth in range(len(keys), known.parents, -1):
        inner = look_up(format_.parse(text), keys[:depth])
        if depth < len(keys) and inner != {}:
            break
        text = _with_file_in_error(path, partial(format_.remove_entry, text, keys[:depth]))
    empty = known.created and format_.parse(text) == {}
    return None if empty else text.encode()


def _parse_file(path: Path, content: bytes | None) -> object:
    text = hosts.decode_file(path, content or b"")
    return _with_file_in_error(path, lambda: hosts.file_format(path).parse(text))


def _with_file_in_error(path: Path, work: Callable[[], T], by_hand: str = "") -> T:
    """Run the work; a refusal names the file, which was not touched."""
    try:
        return work()
    except BadSetting as error:
        remedy = by_hand or error.remedy or "fix the file first; nothing was changed"
        raise BadSetting(f"{path}: {error.message}", remedy=remedy) from error
