"""The five emulated systems: each folder has its own parts, profile and settings names."""

from __future__ import annotations

from pathlib import Path

from bethink.core.toml import parse_toml

# The parts of profiles that the systems add to what Bethink itself has, by the entry-point group
# of their kind and by name.
PARTS: dict[str, dict[str, str]] = {
    group: {name: f"{__name__}.{location}" for name, location in parts.items()}
    for group, parts in parse_toml(
        Path(__file__).with_name("parts.toml").read_text("utf-8")
    ).items()
}
