"""Where the notes are: the space's own folder, the user's choice, or inside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from bethink import Memory
from bethink.config.settings import load_settings, set_project_setting
from bethink.errors import BadSetting


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "home" / "app"
    (root / ".bethink").mkdir(parents=True)
    return root


def env_of(project: Path, **more: str) -> dict[str, str]:
    home = project.parent
    return {
        "HOME": str(home),
        "BETHINK_CONFIG_DIR": str(home / "settings"),
        "BETHINK_DATA_DIR": str(home / "data"),
        "BETHINK_EMBEDDER": "none",
        **more,
    }


def write_note(folder: Path, text: str = "The archive moved to SQLite.") -> None:
    (folder / "daily").mkdir(parents=True)
    (folder / "daily" / "daily_2026-01-05.md").write_text(text)


def notes_of(memory: Memory) -> list[str]:
    pool = next(
        step.pool
        for step in memory.recall("archive", profile="abmind").steps
        if step.name == "channel.s6"
    )
    return [cand.item.id for cand in pool]


def test_without_a_setting_they_lie_beside_the_space(project: Path) -> None:
    """DATA_DIR/SPACE/notes, found as soon as there is such a folder."""
    settings = load_settings(project, env_of(project))
    with Memory.open("work", settings=settings) as memory:
        before = notes_of(memory)
        write_note(project.parent / "data" / "work" / "notes")
        after = notes_of(memory)

    assert before == []
    assert after == ["note:daily_2026-01-05#1"]


def test_a_memory_that_is_no_space_has_none_by_itself(tmp_path: Path, project: Path) -> None:
    """Neither one in memory nor a file named by its path looks into the data folder."""
    settings = load_settings(project, env_of(project))
    write_note(project.parent / "data" / "memory" / "notes")
    write_note(project.parent / "data" / "own" / "notes")

    with Memory.open(":memory:", settings=settings) as memory:
        assert memory.notes is None
    with Memory.open(path=tmp_path / "own.db", settings=settings) as memory:
        assert memory.notes is None


def test_a_projects_notes_lie_inside_of_it(project: Path) -> None:
    """Any other place is refused when the settings are read, links included."""
    file = project / ".bethink" / "config.toml"
    (project / "away").symlink_to(project.parent)

    for bad in ("..", "/", "../elsewhere", "~/notes", "away/notes"):
        file.write_text(f'notes_dir = "{bad}"\n')
        with pytest.raises(BadSetting, match="inside the project"):
            load_settings(project, env_of(project))
        file.unlink()
        with pytest.raises(BadSetting, match="inside the project"):
            set_project_setting("notes_dir", bad, project, env_of(project))
    file.write_text('notes_dir = "docs/notes"\n')
    assert load_settings(project, env_of(project)).notes_dir == project / "docs" / "notes"


def test_a_project_does_not_vouch_for_its_notes(project: Path) -> None:
    """It cannot set the trust, and the user's trust in notes is not meant for them."""
    file = project / ".bethink" / "config.toml"
    file.write_text("notes_trust = 3\n")
    with pytest.raises(BadSetting):
        load_settings(project, env_of(project))

    write_note(project / "notes")
    file.write_text('notes_dir = "notes"\n')
    settings = load_settings(project, env_of(project, BETHINK_NOTES_TRUST="3"))
    with Memory.open(":memory:", settings=settings) as memory:
        assert memory.get("note:daily_2026-01-05#1").trust == 1


def test_the_users_own_notes_are_trusted_as_set(project: Path, tmp_path: Path) -> None:
    """From the environment, wherever they are."""
    write_note(tmp_path / "mine")
    env = env_of(project, BETHINK_NOTES_DIR=str(tmp_path / "mine"), BETHINK_NOTES_TRUST="3")
    with Memory.open(":memory:", settings=load_settings(project, env)) as memory:
        assert memory.get("note:daily_2026-01-05#1").trust == 3
