"""Which memory is meant, and where it lives."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.config.paths import find_project
from bethink.config.settings import SPACE_NAME, Settings, load_settings
from bethink.config.spaces import (
    SpaceRef,
    TrustedSpace,
    data_dir,
    list_spaces,
    project_space,
    resolve_space,
    set_trust,
    space_path,
)
from bethink.errors import BadSetting, StoreError, UntrustedSpace
from rows import each_row

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")


def project(folder: Path) -> Path:
    (folder / ".git").mkdir(parents=True)
    return Path(os.path.realpath(folder))


def test_a_name_given_is_the_name_taken(tmp_path: Path):
    """Over the configured one and the project's."""
    given_here = Settings(space="other", data_dir=tmp_path, project=tmp_path)

    ref = resolve_space("work", given_here)

    assert ref == SpaceRef("work", tmp_path / "spaces" / "work.db", "named by the caller")


def test_the_configured_space_beats_the_projects(tmp_path: Path):
    """And says who configured it."""
    root = project(tmp_path / "app")
    env = {
        "BETHINK_SPACE": "work",
        "BETHINK_DATA_DIR": str(tmp_path / "d"),
        "BETHINK_CONFIG_DIR": str(tmp_path),
    }

    ref = resolve_space(None, load_settings(root, env))

    assert ref.name == "work"
    assert ref.path == tmp_path / "d" / "spaces" / "work.db"
    assert ref.why == "set by environment BETHINK_SPACE"


def pinned(folder: Path, space: str) -> Path:
    """A project whose file names a space."""
    root = project(folder)
    (root / ".bethink").mkdir()
    (root / ".bethink" / "config.toml").write_text(f'space = "{space}"\n')
    return root


def test_a_project_can_pin_a_space_that_the_user_allows(tmp_path: Path):
    """The pin travels with the project's file; what it may open is the user's to say."""
    root = pinned(tmp_path / "app", "shared")
    (root / "src").mkdir()
    found = load_settings(root / "src", {"BETHINK_CONFIG_DIR": str(tmp_path)})

    with pytest.raises(UntrustedSpace, match="your space 'shared'") as refused:
        resolve_space(None, found)
    assert "bethink trust shared" in refused.value.remedy
    set_trust(tmp_path, [TrustedSpace(str(root), "shared")])
    ref = resolve_space(None, found)

    assert ref.name == "shared"
    assert "config.toml" in ref.why
    assert resolve_space("other", found).name == "other"


def test_trust_is_for_one_project_and_one_space(tmp_path: Path):
    """Another project, or the same with another name in its file, asks again."""
    env = {"BETHINK_CONFIG_DIR": str(tmp_path / "config")}
    root, copied = pinned(tmp_path / "app", "shared"), pinned(tmp_path / "copy", "shared")
    set_trust(tmp_path / "config", [TrustedSpace(str(root), "shared")])

    assert resolve_space(None, load_settings(root, env)).name == "shared"
    with pytest.raises(UntrustedSpace):
        resolve_space(None, load_settings(copied, env))
    (root / ".bethink" / "config.toml").write_text('space = "work"\n')
    with pytest.raises(UntrustedSpace):
        resolve_space(None, load_settings(root, env))


def test_a_project_may_use_spaces_beside_its_own(tmp_path: Path):
    """Those that are named after it; nobody is asked."""
    root = project(tmp_path / "app")
    (root / ".bethink").mkdir()
    beside = f"{project_space(root)}.docs"
    (root / ".bethink" / "config.toml").write_text(f'space = "{beside}"\n')

    assert resolve_space(None, load_settings(root, {})).name == beside


@each_row("content", ["{", '{"a": 1}', "[1]", '[["x"]]'])
def test_a_broken_list_of_trust_allows_nothing(tmp_path: Path, content: str):
    """It is named, and nothing is opened."""
    root = pinned(tmp_path / "app", "shared")
    (tmp_path / "trusted-spaces.json").write_text(content)

    with pytest.raises(BadSetting, match=r"shared|trusted-spaces"):
        resolve_space(None, load_settings(root, {"BETHINK_CONFIG_DIR": str(tmp_path)}))


def test_a_project_has_a_space_of_its_own(tmp_path: Path):
    """Named after its folder and place, from anywhere inside."""
    root = project(tmp_path / "My App")

    ref = resolve_space(None, Settings(project=root, data_dir=tmp_path))

    assert re.fullmatch(r"my-app-[0-9a-f]{8}", ref.name)
    assert ref.why == f"the project in {root}"


def test_outside_any_project_it_is_personal(tmp_path: Path):
    """And without settings too."""
    assert resolve_space(None, Settings(data_dir=tmp_path)).name == "personal"
    assert resolve_space().name == "personal"


def test_equal_names_in_two_places_stay_apart(tmp_path: Path):
    """The hash is of the whole path, and always the same for the same path."""
    first, second = project(tmp_path / "a" / "app"), project(tmp_path / "b" / "app")

    assert project_space(first) == project_space(first)
    assert project_space(first) != project_space(second)


@posix
def test_the_hash_does_not_change_between_releases():
    """A name made once is found for ever."""
    assert project_space(Path("/srv/no-such-place/app")) == "app-8632b923"


@posix
def test_a_project_is_the_same_whatever_the_locale_says(tmp_path: Path):
    """The name of its space comes from the bytes of its path, not from how they are read."""
    root = tmp_path / "prôject"
    root.mkdir()
    told = "import sys; from bethink.config.spaces import project_space; from pathlib import Path; "
    told += "print(project_space(Path(sys.argv[1])))"
    plain = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    named = subprocess.run(
        [sys.executable, "-c", told, str(root)],
        env=os.environ | plain, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert named.stdout.strip() == project_space(root)
    assert project_space(root).startswith("project-")


@posix
def test_a_link_is_the_same_project(tmp_path: Path):
    """Either way in, one memory."""
    root = project(tmp_path / "real")
    (tmp_path / "link").symlink_to(root)

    assert project_space(tmp_path / "link") == project_space(root)
    assert find_project(tmp_path / "link") == root


@settings(deadline=None)
@given(
    st.text(
        st.characters(exclude_characters="/\\\x00", exclude_categories=["Cs"]),
        min_size=1,
        max_size=80,
    )
)
def test_any_folder_name_makes_a_good_space_name(name):
    """Letters of every script, dots, emoji, any length."""
    made = project_space(Path("/srv") / f"x{name}")

    assert SPACE_NAME.fullmatch(made)
    assert space_path(made, Path("/data")).parent == Path("/data/spaces")


@each_row(
    ("folder", "slug"),
    [("Café-Menü", "cafe-menu"), ("日本", "project"), ("a" * 90, "a" * 40), ("--x--", "x"), ("v2.3_b", "v2-3-b")],
)  # fmt: skip
def test_slugs_are_readable(folder, slug):
    """Plain letters where there are some."""
    assert project_space(Path("/srv") / folder).rpartition("-")[0] == slug


@each_row(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", "/etc/passwd", "A", "ä", "a b", "-a", "_a", "a\n", "a\x00",
     "x" * 65, "con", "nul", "com1", "lpt9", "aux.notes", "a:b", "~", "$HOME"],
)  # fmt: skip
def test_a_name_can_never_lead_elsewhere(name):
    """Anything but a plain lower-case name is refused, devices of Windows too."""
    with pytest.raises(BadSetting, match="cannot be the name") as caught:
        resolve_space(name, Settings())

    assert "lower-case" in caught.value.remedy


@each_row("name", ["a", "0", "a.b", "x" * 64, "work_2-x", "console", "com1x", "a.con"])
def test_plain_names_are_taken(name, tmp_path: Path):
    """Letters, digits, dots, underscores, hyphens."""
    assert (
        resolve_space(name, Settings(data_dir=tmp_path)).path == tmp_path / "spaces" / f"{name}.db"
    )


def test_the_data_folder_is_the_platforms_unless_set(tmp_path: Path, monkeypatch):
    """BETHINK_DATA_DIR moves everything."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    env = {"BETHINK_DATA_DIR": str(tmp_path / "moved"), "BETHINK_CONFIG_DIR": str(tmp_path)}

    assert data_dir(load_settings(tmp_path, env)) == tmp_path / "moved"
    assert data_dir(Settings()).name == "bethink"


def test_spaces_are_listed_with_size_and_time(tmp_path: Path):
    """By name; what waits in the write-ahead log counts; other files do not."""
    folder = tmp_path / "spaces"
    folder.mkdir()
    for name, size, moment in [("b.db", 10, 2000), ("a.db", 5, 1000), ("a.db-wal", 7, 3000)]:
        (folder / name).write_bytes(b"x" * size)
        os.utime(folder / name, (moment, moment))
    for other in ("a.db-shm", "a.db.lock", "Upper.db", "note.txt", ".db"):
        (folder / other).touch()
    (folder / "folder.db").mkdir()

    spaces = list_spaces(tmp_path)

    assert [(space.name, space.size) for space in spaces] == [("a", 12), ("b", 10)]
    assert spaces[0].path == folder / "a.db"
    assert [space.modified for space in spaces] == [
        datetime.fromtimestamp(3000, UTC),
        datetime.fromtimestamp(2000, UTC),
    ]


@posix
def test_a_space_that_vanishes_is_not_listed(tmp_path: Path):
    """A link to nowhere looks like a file that was just removed."""
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "gone.db").symlink_to(tmp_path / "nowhere")

    assert list_spaces(tmp_path) == []


def test_no_folder_means_no_spaces(tmp_path: Path):
    """A new machine has none, which is no error; a file in the folder's place is."""
    assert list_spaces(tmp_path) == []

    (tmp_path / "spaces").touch()

    with pytest.raises(StoreError, match="cannot be read"):
        list_spaces(tmp_path)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_all_working_trees_of_a_repository_share_a_space(tmp_path: Path):
    """What is learnt in one is known in the others; a clone is another project."""
    main, tree, clone = tmp_path / "main", tmp_path / "tree", tmp_path / "clone"

    def git(*words: str) -> None:
        options = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        subprocess.run(["git", *options, *words], check=True, capture_output=True)

    git("init", "-q", str(main))
    git("-C", str(main), "commit", "-q", "--allow-empty", "-m", "first")
    git("-C", str(main), "worktree", "add", "-q", "--detach", str(tree))
    git("clone", "-q", str(main), str(clone))

    assert project_space(tree) == project_space(main)
    assert project_space(clone) != project_space(main)


@each_row("content", ["", "gitdir: ", "gitdir: ../main/.git", "nonsense", "gitdir: \x00", "gitdir: fake/worktrees/x"])  # fmt: skip
def test_a_forged_git_file_opens_nobodys_memory(tmp_path: Path, content):
    """A .git file counts only if the repository it names points back."""
    project(tmp_path / "main")
    forged = tmp_path / "forged"
    forged.mkdir()
    plain = project_space(forged)

    (forged / ".git").write_text(content)

    assert project_space(forged) == plain


def test_a_git_file_must_be_known_to_its_repository(tmp_path: Path):
    """The right shape alone is not enough: the way back must lead here."""
    root = project(tmp_path / "main")
    entry = root / ".git" / "worktrees" / "x"
    entry.mkdir(parents=True)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {entry}\n")

    (entry / "gitdir").write_text(f"{tmp_path / 'another' / '.git'}\n")
    assert project_space(tree) != project_space(root)

    (entry / "gitdir").write_text(f"{tree / '.git'}\n")
    assert project_space(tree) == project_space(root)


def test_a_git_file_that_is_no_text_is_passed_by(tmp_path: Path):
    """Bytes that are no text name nothing."""
    (tmp_path / ".git").write_bytes(b"gitdir: \xff\xfe")

    assert SPACE_NAME.fullmatch(project_space(tmp_path))
