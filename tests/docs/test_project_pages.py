"""The pages about the project: changelog, architecture, glossary, recording, site, workflows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import bethink
from rows import each_row

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bethink"
OLD_NAME = "recol" + "lect"
CHANGES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
LARGEST_MAP = 10 * 1024


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tracked() -> list[Path]:
    """The files of the repository; of an unpacked distribution, all that is there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


# What recognises and carries over what was stored under the old name.
OF_THE_OLD_NAME = {
    "CHANGELOG.md",
    "docs/cli.md",
    "docs/upgrade.md",
    "src/bethink/cli/transfer.py",
    "src/bethink/config/paths.py",
    "src/bethink/store/sql/export.py",
    "tests/golden/help.txt",
    "tests/unit/cli/test_cli_upgrade.py",
}


def test_the_old_name_is_only_where_its_files_are_carried_over() -> None:
    """Nothing else needs it."""
    named = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.is_file()
        and str(path.relative_to(ROOT)) not in OF_THE_OLD_NAME
        and (
            OLD_NAME in path.name.lower()
            or OLD_NAME.encode() in path.read_bytes().lower()
        )
    ]  # fmt: skip

    assert named == []


def test_the_changelog_keeps_its_form() -> None:
    """Unreleased first, then versions from newest to oldest; only the six kinds of change, once."""
    text = read("CHANGELOG.md")
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    numbers = [
        re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\]( - \d{4}-\d\d-\d\d)?", one) for one in versions[1:]
    ]

    assert versions[0] == "[Unreleased]"
    assert all(numbers)
    keys = [tuple(int(part) for part in one.groups()[:3]) for one in numbers if one]
    assert keys == sorted(keys, reverse=True)
    assert bethink.__version__.startswith(".".join(str(part) for part in keys[0]))
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert kinds or section.strip() == "[Unreleased]"
        assert len(kinds) == len(set(kinds))
        assert set(kinds) <= CHANGES


def test_every_change_is_an_entry_of_a_kind() -> None:
    """Lists only, and no entry longer than a few lines."""
    text = read("CHANGELOG.md")
    below = text[text.index("## [Unreleased]") :].splitlines()
    for line in below:
        assert not line or line.startswith(("## ", "### ", "- ")), line
        assert len(line) <= 400, line


def packages() -> set[str]:
    return {
        path.name for path in SOURCE.iterdir() if path.is_dir() and not path.name.startswith("_")
    }


def test_the_map_is_short_and_names_every_package() -> None:
    """And no package that is not there."""
    text = read("ARCHITECTURE.md")
    table = text[text.index("## Packages") : text.index("## Rules that are checked")]
    rows = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)

    assert len(text.encode()) <= LARGEST_MAP
    assert sorted(rows) == sorted(packages())


@each_row("named", sorted(set(re.findall(r"`([\w/]+/[\w./]*)`", read("ARCHITECTURE.md")))))
def test_every_path_on_the_map_is_there(named: str) -> None:
    """In the source, in the store's folder, or in the repository."""
    homes = (SOURCE, SOURCE / "store" / "sql", ROOT)

    assert any((home / named).exists() for home in homes)


def test_the_map_names_the_layers() -> None:
    """Every package and module of the contract in pyproject.toml."""
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    named = {
        name.strip().removeprefix("bethink.")
        for layer in contracts[0]["layers"]
        for name in re.split(r"[|:]", layer)
    }
    text = read("ARCHITECTURE.md")

    assert [name for name in sorted(named - {"version"}) if f"`{name}" not in text] == []


def test_the_tree_is_printed() -> None:
    """Every module with its first line."""
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "docs.py", "--tree"],
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip

    assert "engine.py" in ran.stdout
    assert not re.search(r"^\s*\w+\.py\s*$", ran.stdout, re.MULTILINE)


GLOSSARY = read("docs/glossary.md")
WORDS = re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", GLOSSARY, re.MULTILINE)


def test_the_glossary_is_in_order_and_short() -> None:
    """Alphabetical, each word once, at most three sentences."""
    words = [word for word, _ in WORDS]

    assert words == sorted(set(words))
    assert [word for word, text in WORDS if len(re.findall(r"[.:] [A-Z]", text)) > 2] == []


@each_row("name", [name for name in bethink.__all__ if isinstance(getattr(bethink, name), type)])
def test_every_public_class_is_in_the_glossary(name: str) -> None:
    """Errors apart, which their own page explains."""
    if issubclass(getattr(bethink, name), Exception):
        return

    assert f"`{name}`" in GLOSSARY


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is needed")
def test_the_recording_shows_what_the_commands_print() -> None:
    """Word for word; `make recording` writes it anew."""
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "recording.py", "--check"],
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr


def test_the_recorded_commands_are_those_of_the_readme() -> None:
    """The picture shows the first minute."""
    shown = re.findall(r"^    '(bethink .*)':", read("tools/recording.py"), re.MULTILINE)
    first = re.search(r"```console\n(.*?)```", read("README.md"), re.DOTALL)

    assert first is not None
    assert shown == [line.removeprefix("$ ") for line in first[1].splitlines()]
    assert len(shown) == 5


def test_the_recording_fetches_nothing() -> None:
    """No font and no picture of another host."""
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", read("docs/assets/terminal.svg"))


def test_readme_begins_with_the_two_commands() -> None:
    """The set-up is in the first screen."""
    head = "\n".join(read("README.md").splitlines()[:20])

    assert "make demo" in head
    assert "make test" in head


@each_row(
    "page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md"]
)
def test_links_of_root_pages_lead_somewhere(page: str) -> None:
    """Those of docs/ are checked by the strict build of the site."""
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", read(page)):
        assert (ROOT / link).exists(), link


def anchors(page: Path) -> set[str]:
    """The headings of a page, as the site and GitHub make anchors of them."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", head).strip().lower() for head in heads]
    return {re.sub(r"[\s-]+", "-", head) for head in plain}


def test_links_to_a_heading_lead_to_one() -> None:
    """In every page; headings of the Python reference are made when the site is built."""
    pages = [path for path in tracked() if path.suffix == ".md" and path.exists()]
    wrong = [
        f"{page.name}: {link}#{anchor}"
        for page in pages
        for link, anchor in re.findall(r"\]\(([^)\s:#]*\.md)?#([\w-]+)\)", page.read_text("utf-8"))
        if (link or page.name) not in ("python.md", "docs/python.md")
        and re.sub("-+", "-", anchor) not in anchors(page.parent / link if link else page)
    ]

    assert wrong == []


def test_an_install_from_an_index_is_only_announced() -> None:
    """Until there is a release, the name on PyPI may be anybody's: a page says that it is to come."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *SOURCE.rglob("*.py")]
    named = [
        f"{page.name}: {paragraph}"
        for page in pages
        for paragraph in page.read_text(encoding="utf-8").split("\n\n")
        if re.search(r"(pip|pipx|uv tool) install (-U )?'?bethink\b", paragraph)
        and not re.search(r"Once version [\d.]+ is published", paragraph)
    ]

    assert named == []


def test_every_page_is_in_the_navigation() -> None:
    """By itself, or by its folder; and the navigation leads to no page that is not there."""
    listed = re.findall(r"([\w/-]+(?:\.md|/))(?:\s|$)", read("mkdocs.yml").split("\nnav:")[1])
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    left_out = [page for page in pages if not page.startswith(tuple(listed))]

    assert left_out == []
    assert len(listed) == len(set(listed))


def test_the_readme_is_short_and_named_for_the_registry() -> None:
    """At most 750 words, with the marker that the MCP registry looks for."""
    assert len(read("README.md").split()) <= 750
    assert "<!-- mcp-name: io.github.bethink/bethink -->" in read("README.md")


def test_the_diagrams_are_those_of_the_tool() -> None:
    """Drawn by tools/diagrams.py, light and dark, and fetching nothing."""
    sys.path.insert(0, str(ROOT / "tools"))
    import diagrams

    for name, make in diagrams.DIAGRAMS.items():
        assert read(f"docs/assets/diagram-{name}.svg") == make()
        assert "prefers-color-scheme:dark" in make()
        assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", make())


def test_workflows_run_what_the_checks_run() -> None:
    """Every supported Python on three platforms; a release is tested before it is published."""
    test = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]
    release = yaml.safe_load(read(".github/workflows/release.yml"))["jobs"]
    classifiers = tomllib.loads(read("pyproject.toml"))["project"]["classifiers"]
    versions = [one.split(" :: ")[2] for one in classifiers if re.search(r":: 3\.\d+$", one)]

    assert test["test"]["strategy"]["matrix"]["python"] == versions
    assert len(test["test"]["strategy"]["matrix"]["os"]) == 3
    ran = [step.get("run", "") for step in test["check"]["steps"]]
    for command in ("ruff check .", "mypy", "lint-imports", "python -m mkdocs build --strict"):
        assert command in ran
    assert release["publish"]["needs"] == "test-wheel"
    assert release["publish"]["permissions"] == {"id-token": "write"}


def test_the_demo_runs_what_is_checked_out() -> None:
    """Both installs of the Makefile are editable: a newer checkout needs no other step."""
    installs = re.findall(r"pip-version-check (.+)$", read("Makefile"), re.MULTILINE)

    assert installs[:2] == ["--editable .", "--editable '.[dev]'"]


def test_every_released_version_has_its_date() -> None:
    """Newest first, in the form of Keep a Changelog."""
    first, *released = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)

    assert first == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head) for head in released)


def test_the_architecture_lists_the_layers_that_are_checked() -> None:
    """In their order, with the packages of each."""
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    checked = [re.findall(r"bethink\.(\w+)", layer) for layer in contracts[0]["layers"]]
    listed = re.search(r"top to bottom: (.+?)\. The core", read("ARCHITECTURE.md"))

    assert listed
    assert [re.findall(r"`(\w+)`", layer) for layer in listed[1].split(" → ")] == checked
