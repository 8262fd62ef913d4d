"""What a release consists of: manifests of registries and hosts, workflows, the changelog's cut."""

from __future__ import annotations

import importlib.util
import json
import re
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from bethink.version import __version__
from rows import each_row

ROOT = Path(__file__).parents[2]
MARKETPLACES = (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json")


def held(name: str) -> dict:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_manifest_is_written_from_the_code(release: ModuleType) -> None:
    """With this version; `tools/release.py write` writes them anew."""
    assert release.stale() == []


def test_the_registry_takes_the_entry() -> None:
    """The rules of its schema of 2025-12-11, and the mark in the README that it looks for."""
    entry = held("server.json")
    (package,) = entry["packages"]

    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert len(entry["description"]) <= 100
    assert entry["version"] == package["version"] == __version__
    assert f"mcp-name: {entry['name']} " in (ROOT / "README.md").read_text(encoding="utf-8")
    assert package["registryType"] == "pypi"
    assert "runtimeArguments" not in package, "the server needs no extra"


def test_plugins_are_where_the_marketplaces_say() -> None:
    """One folder for Claude Code and Codex, with every file that a manifest names."""
    for name in MARKETPLACES:
        (plugin,) = held(name)["plugins"]
        source = plugin["source"]
        folder = ROOT / (source if isinstance(source, str) else source["path"])
        assert (folder / ".claude-plugin" / "plugin.json").is_file()
    manifest = held("plugins/bethink/.codex-plugin/plugin.json")
    for part in ("hooks", "mcpServers", "skills"):
        assert (ROOT / "plugins/bethink" / manifest[part]).exists()
    server = held("plugins/bethink/.mcp.json")["mcpServers"]["bethink"]
    assert server == held("gemini-extension.json")["mcpServers"]["bethink"]
    assert server["args"][1] == f"bethink=={__version__}"


def test_the_skill_keeps_to_the_format() -> None:
    """Agent Skills: the name is the folder's, keys and lengths as the specification has them."""
    path = ROOT / "plugins/bethink/skills/bethink/SKILL.md"
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    keys = yaml.safe_load(head)

    assert keys["name"] == path.parent.name
    assert 0 < len(keys["description"]) <= 1024
    assert len(keys["compatibility"]) <= 500
    assert set(keys) <= {
        "name", "description", "license", "compatibility", "metadata", "allowed-tools"
    }  # fmt: skip
    assert len(body.splitlines()) <= 500


def test_the_bundle_is_the_same_twice(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For Claude Desktop: a manifest, a project with one requirement, and what starts it."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    first, second = release.bundle(tmp_path / "a"), release.bundle(tmp_path / "b")

    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["server"]["entry_point"] in archive.namelist()
        assert f"bethink=={__version__}" in archive.read("pyproject.toml").decode()


def test_the_changelog_is_cut(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was unreleased is the version's, once; the notes of the release are just that."""
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release.version, "__version__", "9.9.9")
    path = tmp_path / "CHANGELOG.md"
    path.write_text("# C\n\n## [Unreleased]\n\n### Added\n\n- New.\n\n## [0.1.0] - 2020-01-01\n")

    release.cut("2030-01-02")

    assert path.read_text().startswith(
        "# C\n\n## [Unreleased]\n\n## [9.9.9] - 2030-01-02\n\n### Added\n\n- New.\n"
    )
    with pytest.raises(SystemExit):
        release.cut("2030-01-03")


@each_row("workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")))
def test_actions_are_pinned_by_hash(workflow: Path) -> None:
    """A tag can be moved; each hash has the version that it was beside it."""
    for line in workflow.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d", line), line


def test_containers_run_without_rights() -> None:
    """Not as root, on a read-only root, with the image of this version and a real health check."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    more = yaml.safe_load((ROOT / "compose.postgres.yaml").read_text())["services"]
    image = (ROOT / "Containerfile").read_text()

    for service in (services["bethink"], more["prepare"]):
        assert service["read_only"]
        assert service["image"].endswith(f":{__version__}")
    assert services["bethink"]["healthcheck"]["test"] == ["CMD", "healthy"]
    assert services["bethink"]["cap_drop"] == ["ALL"]
    assert "USER 10001:10001" in image
    assert all((ROOT / "packaging/container" / name).is_file() for name in ("start", "healthy"))
