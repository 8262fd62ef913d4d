"""What was written where, kept so that exactly that can be taken back.

One file for each place something was installed into, beside the user's own settings; it may
hold a few bytes of a file that was changed, so it is the user's alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import BadSetting
from recollect.places import config_folder
from recollect.plugin.install.patch import Patch
from recollect.plugin.install.writing import PRIVATE, content_of, remove, write_whole

_FORMAT = 1


class Written(NamedTuple):
    """One file as it was left: its ``mark`` then and, unless it was new, what undoes that.

    ``keys`` lead to the ``value`` that was set, where only a part of the file is ours;
    ``parents`` says how many of them there were before.
    """

    path: Path
    mark: str
    created: bool
    patch: Patch | None = None
    keys: tuple[str, ...] = ()
    value: Any = None
    parents: int = 0


class Manifest(NamedTuple):
    """All that one installation has written."""

    files: tuple[Written, ...] = ()
    folders: tuple[Path, ...] = ()
    version: str = ""

    def of(self, path: Path) -> Written | None:
        return next((one for one in self.files if one.path == path), None)


def manifest_path(host: str, place: Path, env: Mapping[str, str]) -> Path:
    """Where the manifest of an installation into this place is kept."""
    key = hashlib.sha256(str(place).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return config_folder(env) / "installed" / f"{host}-{key}.json"


def read_manifest(path: Path) -> Manifest:
    """What was installed; empty where nothing was."""
    content = content_of(path)
    if content is None:
        return Manifest()
    try:
        told = json.loads(content)
        if told["format"] != _FORMAT:
            raise BadSetting(f"{path} was written by a newer Recollect", remedy="update Recollect")
        return Manifest(
            tuple(_read(one) for one in told["files"]),
            tuple(Path(one) for one in told["folders"]),
            str(told["version"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadSetting(f"{path} is damaged", remedy=f"remove {path}") from error


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Keeps a manifest, or removes it where nothing is installed any more."""
    if not manifest.files:
        remove(path)
        return
    told = {
        "format": _FORMAT,
        "version": manifest.version,
        "files": [_told(one) for one in manifest.files],
        "folders": [str(folder) for folder in manifest.folders],
    }
    write_whole(path, json.dumps(told, indent=2).encode() + b"\n", PRIVATE)


def _told(one: Written) -> dict[str, Any]:
    told = one._asdict() | {"path": str(one.path), "keys": list(one.keys)}
    if one.patch is not None:
        removed, inserted = (base64.b64encode(part).decode() for part in one.patch[1:])
        told["patch"] = [one.patch.offset, removed, inserted]
    return told


def _read(told: dict[str, Any]) -> Written:
    patch = told["patch"]
    if patch is not None:
        offset, *parts = patch
        patch = Patch(int(offset), *(base64.b64decode(part) for part in parts))
    return Written(
        Path(told["path"]),
        str(told["mark"]),
        bool(told["created"]),
        patch,
        tuple(told["keys"]),
        told["value"],
        int(told["parents"]),
    )
