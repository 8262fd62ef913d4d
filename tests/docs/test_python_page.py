"""The public names: what `bethink` exports, and the reference page that describes them."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bethink
from bethink import Memory, errors, testing
from rows import each_row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
INTERFACES = {
    f"{module}.{name}"
    for module, names in re.findall(
        r"^::: (\S+)\n.*?members: \[(.*?)\]",
        (ROOT / "docs" / "interfaces.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    for name in names.split(", ")
}
HEADINGS = set(re.findall(r"^#{3,4} (\S+)$", PAGE, re.MULTILINE))
EXTENDING = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


@each_row("name", [name for name in bethink.__all__ if name != "__version__"])
def test_every_public_name_is_on_the_page(name: str) -> None:
    """It exists, is described, and says what it is."""
    member = getattr(bethink, name)

    assert name in HEADINGS
    assert (member.__doc__ or "").strip()


@each_row("name", [name for name in dir(Memory) if not name.startswith("_")])
def test_every_public_method_of_memory_is_on_the_page(name: str) -> None:
    """With a docstring."""
    assert f"Memory.{name}" in HEADINGS
    assert (inspect.getattr_static(Memory, name).__doc__ or "").strip()


@each_row("name", testing.__all__)
def test_everything_for_tests_is_on_the_page(name: str) -> None:
    """The checks as well as the doubles."""
    assert name in HEADINGS


def test_the_page_shows_no_addresses_or_placeholders() -> None:
    """What is shown can be read."""
    assert not re.search(r"0x[0-9a-f]{6}|ForwardRef|<class|<lambda>", PAGE)


def test_every_error_is_a_public_name() -> None:
    """Whoever calls can catch it."""
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.BethinkError)
    }

    assert classes <= set(bethink.__all__)


def test_type_checkers_see_the_same_names() -> None:
    """What is imported for them is what is exported, from the same modules."""
    tree = ast.parse(Path(bethink.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert seen == {name: f"bethink.{module}" for name, module in bethink._MODULES.items()}
    assert sorted([*seen, "__version__"]) == sorted(bethink.__all__) == dir(bethink)
    with pytest.raises(AttributeError, match="no attribute 'Absent'"):
        bethink.Absent  # noqa: B018


def test_importing_the_package_is_cheap() -> None:
    """Nothing of it is loaded before it is used."""
    code = "import sys, bethink; print(sorted(m for m in sys.modules if m.startswith('bethink')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "['bethink', 'bethink.version']"


def test_the_extending_page_has_every_group_and_check() -> None:
    """A new kind of part needs its row."""
    from bethink.importers import IMPORTERS
    from bethink.models import EMBEDDERS
    from bethink.models.llm import LLMS
    from bethink.models.rerank import RERANKERS
    from bethink.retrieval.retrievers import RETRIEVERS
    from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES
    from bethink.store import STORES

    tables = (
        *(RETRIEVERS, FUSIONS, STAGES, ASSEMBLERS, EMBEDDERS, RERANKERS, LLMS, IMPORTERS, STORES),
    )
    for table in tables:
        assert f"| {table.kind} | " in EXTENDING
        assert f"`{table.group}`" in EXTENDING
    for name in testing.__all__:
        if name.startswith("check_") and name != "check_pool":
            assert f"`{name}`" in EXTENDING


def names_for_authors() -> list[str]:
    """Every dotted name of `bethink` on the extending page, in a sentence or imported."""
    groups = set(re.findall(r"\| `(bethink\.\w+)` \|", EXTENDING))
    named = set(re.findall(r"`(bethink\.[\w.]+)`", EXTENDING)) - groups
    imported = re.findall(r"^from (bethink\S*) import (.+)$", EXTENDING, re.MULTILINE)
    return sorted(
        named | {f"{module}.{name}" for module, names in imported for name in names.split(", ")}
    )


@each_row("name", sorted(INTERFACES))
def test_every_interface_can_be_imported(name: str) -> None:
    """By the module under which the page lists it; it says what it is."""
    assert (pkgutil.resolve_name(name).__doc__ or "").strip()


@each_row("name", names_for_authors())
def test_authors_of_parts_need_only_public_names(name: str) -> None:
    """What the extending page names can be imported and is public, as compatibility says."""
    module, _, last = name.rpartition(".")
    public = INTERFACES | {"bethink.testing", "bethink.errors"}

    assert pkgutil.resolve_name(name)
    if module in ("bethink", "bethink.testing") and name not in public:
        assert last in pkgutil.resolve_name(module).__all__
    else:
        assert name in public


def test_the_package_exports_a_page_of_names() -> None:
    """At most fifty; the rest of what is public is on the page of interfaces."""
    assert len(bethink.__all__) <= 50
    assert "(interfaces.md)" in (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
