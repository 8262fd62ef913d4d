"""Writes a profile as TOML that reads back as the same profile."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recollect.channels import CHANNELS
from recollect.errors import BadProfile
from recollect.profile import SLOTS, Profile
from recollect.stages import ASSEMBLERS, FUSIONS, STAGES

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def profile_toml(profile: Profile, remarks: Sequence[str] = ()) -> str:
    """The profile with every setting spelled out, so that no later default changes it."""
    blocks = ["\n".join(f"# {line}" for line in remarks)] if remarks else []
    blocks.append(
        f"title = {_value(profile.title)}\nuntopiced = {_value(profile.untopiced)}\n"
        f"deeper = {_value(profile.deeper)}"
    )
    if profile.deep is not None:
        blocks.append("\n".join(["[deep]", *_settings(profile.deep)]))
    blocks += [_block("[[channels]]", part, CHANNELS) for part in profile.channels]
    blocks.append(_block("[fuse]", profile.fuse, FUSIONS))
    for slot in SLOTS:
        blocks += [_block(f"[[{slot}]]", part, STAGES) for part in profile.slot(slot)]
    blocks.append("\n".join(["[budget]", *_settings(profile.budget)]))
    blocks += [_block("[[assemble]]", part, ASSEMBLERS) for part in profile.assemble]
    blocks.append("\n".join(["[track]", *_settings(profile.track)]))
    blocks += ["\n".join(["[[text]]", *_settings(section)]) for section in profile.text]
    return "\n\n".join(blocks) + "\n"


def _block(head: str, part: Any, table: Mapping[str, Any]) -> str:
    use = next((name for name, kind in table.items() if type(part) is kind), None)
    if use is None:
        raise BadProfile(f"{type(part).__name__} has no name that a profile could use")
    return "\n".join([head, f"use = {_value(use)}", *_settings(part)])


def _settings(part: Any) -> Iterator[str]:
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if value is not None:
            yield f"{field.name} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, str):
        # A JSON string is a TOML string, but for one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple) and value and all(_is_pair(entry) for entry in value):
        return "{ " + ", ".join(f"{_key(name)} = {_value(number)}" for name, number in value) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    raise BadProfile(f"{value!r} cannot be written as TOML")


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)
