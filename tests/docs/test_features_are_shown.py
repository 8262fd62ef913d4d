"""Every feature in the list is shown by tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

from bethink.config.aliases import aliases_of
from rows import each_row

ROOT = Path(__file__).parents[2]
SYSTEMS = ("remind", "abmind", "memind", "siftcoder", "linksee")
PAGES = ["features.md", *(f"systems/{name}.md" for name in SYSTEMS)]
TEXT = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
ROWS = re.findall(r"^\| ([RAMSL]\d+) \| (.+?) \| (.+?) \| (.+?) \|$", TEXT, re.MULTILINE)
PROMISED = [
    *(f"R{number}" for number in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12)),
    *(f"A{number}" for number in range(1, 13)),
    *(f"M{number}" for number in (1, 4, 5, 6, 8, 9, 10, 11, 12)),
    *(f"S{number}" for number in range(1, 14)),
    *(f"L{number}" for number in range(1, 8)),
]


def test_every_feature_has_its_row() -> None:
    """In order, and once."""
    listed = [number for number, *_ in ROWS]

    assert [number for number in listed if number in PROMISED] == PROMISED
    assert len(listed) == len(set(listed))


@each_row("shown", sorted(set(re.findall(r"`([\w/]+\.py::\w+)`", TEXT))))
def test_what_shows_a_feature_is_there(shown: str) -> None:
    """A test that is renamed is renamed in the list too."""
    file, _, function = shown.partition("::")
    path = ROOT / "tests" / file

    assert path.is_file()
    assert re.search(rf"^def {function}\b", path.read_text(encoding="utf-8"), re.MULTILINE)


@each_row(("number", "where"), [(row[0], row[2]) for row in ROWS])
def test_where_a_feature_lives_is_there(number: str, where: str) -> None:
    """Modules that are named exist."""
    for named in re.findall(r"`([\w/]+(?:\.py|\.toml|/))`", where):
        assert (ROOT / "src" / "bethink" / named).exists(), number


def test_every_name_of_another_system_is_documented() -> None:
    """Each variable and each key, with what it changes, in one row of that system's page."""
    systems = [
        path.parent.name for path in (ROOT / "src" / "bethink").glob("systems/*/aliases.toml")
    ]
    pairs = [(system, one) for system in systems for one in aliases_of(system)]
    for system, alias in pairs:
        page = ROOT / "docs" / "systems" / f"{system}.md"
        rows = page.read_text(encoding="utf-8").splitlines()
        named = [f"`{name}`" for name in (alias.variable, alias.key) if name]
        assert any(
            all(name in row for name in (*named, *(f"`{one}`" for one in alias.targets)))
            for row in rows
        ), alias.name
