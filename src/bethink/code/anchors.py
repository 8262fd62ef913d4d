"""Tie memories to code: make anchors, find them in a text, and detect changes of the code."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from bethink.code.git import Repository, find_repository
from bethink.code.symbols import Symbol, count_changes, find_symbol, find_symbols, hash_code
from bethink.code.symbols import knows_language as has_symbols
from bethink.core.lazy import lazy_pattern
from bethink.errors import Refused
from bethink.model import Item
from bethink.model.anchor import Anchor, CodeState, parse_anchor

MAX_FOUND = 3  # anchors that are found in one text
RECALL_LIMIT_S = 0.25  # for all questions to git of one recall
WRITE_LIMIT_S = 2.0
_MAX_ELSEWHERE = 20  # files that are searched for a symbol that left its own
_MIN_MOVED_LINES = 3  # shorter bodies are the same by chance
_MAX_KNOWN = 4096
# A path as a text names it: with a folder, or a file with a suffix.
_PATH = lazy_pattern(r"(?<![\w/.:~-])(?:[\w@.+-]+/){0,9}[\w@+-][\w@.+-]*\.[A-Za-z]\w*(?![\w/])")
_IDENTIFIER = lazy_pattern(r"(`?)([A-Za-z_$][\w$]*(?:(?:\.|::|#)[\w$]+)*)(`|\()?")
# Written as code: with an underscore, a capital inside, or a dot.
_CODE = lazy_pattern(r"\w_\w|[a-z][A-Z]|\w(?:\.|::|#)\w")
_MAX_CHARACTERS = 8000  # of a text that are searched for identifiers
_MAX_REPOSITORIES = 16  # other repositories' commits that are looked up in one recall


class _File:
    """A source file: its text, what git would call its content, and its symbols."""

    def __init__(self, path: str, content: bytes) -> None:
        head = b"blob %d\0" % len(content)
        self.blob = hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
        self._path, self._content = path, content

    @cached_property
    def text(self) -> str:
        return self._content.decode(errors="replace").replace("\r\n", "\n")

    @cached_property
    def symbols(self) -> list[Symbol]:
        return find_symbols(self._path, self.text)

    def find(self, name: str) -> Symbol | None:
        return find_symbol(self.symbols, name) if name else None

    def lines_of(self, symbol: Symbol | None) -> list[str]:
        lines = self.text.split("\n")
        return lines if symbol is None else lines[symbol.start : symbol.end]

    def hash_of(self, symbol: Symbol | None) -> str:
        return hash_code(self.lines_of(symbol), symbol.name if symbol else "")


def pin_anchors(given: Iterable[str], folder: Path | None, text: str = "") -> tuple[str, ...]:
    """Anchors as a memory holds them, with what the repository of a folder has there now.

    What was read before, and anything outside of a repository, stays as it is. Raises Refused
    for a path that is not there, or a symbol that its file does not define. Where none is
    given, those that a ``text`` names are found.
    """
    anchors = [parse_anchor(one) for one in dict.fromkeys(given)]
    repo = find_repository(folder, WRITE_LIMIT_S)
    if not anchors:
        return find_anchors(text, repo)
    return tuple(one.text if repo is None or one.repo else _pin(one, repo).text for one in anchors)


def _pin(anchor: Anchor, repo: Repository) -> Anchor:
    """The anchor with what is there now; a path is of the folder or, failing that, the root."""
    for path in dict.fromkeys((str(repo.inner / anchor.path), anchor.path)):
        content = repo.read(path)
        if content is not None:
            break
    else:
        raise Refused(f"there is no text file {anchor.path} in {repo.root}")
    file = _File(path, content.content)
    symbol = file.find(anchor.symbol)
    if anchor.symbol and symbol is None and has_symbols(path):
        named = [one.name for one in file.symbols if anchor.symbol in one.name]
        known = ", ".join(named[:5] or [one.name for one in file.symbols[:5]])
        raise Refused(
            f"{path} does not define one {anchor.symbol!r:.80}",
            remedy=f"one of {known}" if known else "name the file alone",
        )
    return _made(Anchor(path, anchor.symbol, anchor.how), file, symbol, repo)


def _made(anchor: Anchor, file: _File, symbol: Symbol | None, repo: Repository) -> Anchor:
    count = sum(bool(line.strip()) for line in file.lines_of(symbol))
    name = symbol.name if symbol else anchor.symbol
    root, commit = repo.origin
    body = file.hash_of(symbol) if symbol or not anchor.symbol else ""
    return Anchor(anchor.path, name, anchor.how, root, commit, file.blob, body, count)


def find_anchors(text: str, repo: Repository | None, edited: Sequence[str] = ()) -> tuple[str, ...]:
    """The anchors of what a text names, at most three: tracked files, and symbols in them.

    A symbol is one that exactly one of these files, or of those ``edited`` with it, defines. A
    file stands for itself where the text names it and no symbol of it.
    """
    paths = [path for path in dict.fromkeys(_PATH.findall(text)) if has_symbols(path)]
    words = _code_words(text)
    if repo is None or not (paths or (words and edited)):
        return ()
    named = repo.tracked([*paths, *(str(repo.inner / path) for path in paths)])
    files = {
        path: _File(path, content.content)
        for path in dict.fromkeys((*named, *repo.tracked(edited)))
        if (content := repo.read(path)) is not None
    }
    found: dict[str, tuple[str, Symbol | None]] = {}
    for word in words:
        holders = [(path, one) for path in files if (one := files[path].find(word))]
        if len(holders) == 1:
            found[f"{holders[0][0]}::{holders[0][1].name}"] = holders[0]
    taken = {path for path, _ in found.values()}
    found |= {path: (path, None) for path in named if path in files and path not in taken}
    return tuple(
        _made(Anchor(path, how="found"), files[path], symbol, repo).text
        for path, symbol in list(found.values())[:MAX_FOUND]
    )


def _code_words(text: str) -> list[str]:
    """The identifiers of a text that are written as code, each once."""
    found = _IDENTIFIER.finditer(text[:_MAX_CHARACTERS])
    return list(dict.fromkeys(m[2] for m in found if m[1] or m[3] or _CODE.search(m[2])))


# What became of an anchor, by what it depends on, and the content where it was found.
_known: dict[tuple[object, ...], tuple[CodeState, str]] = {}
_ours: set[tuple[Path, str]] = set()  # first commits of repositories


def code_states(anchors: Sequence[Anchor], folder: Path | None, limit_s: float) -> list[CodeState]:
    """What has become of each anchor in the repository of a folder.

    ``unknown`` for one of another repository, one that was never read, and where git does not
    answer in time.
    """
    asked = {anchor.repo for anchor in anchors if anchor.repo and anchor.blob}
    repo = find_repository(folder, limit_s) if asked else None
    if repo is None:
        return [CodeState(anchor, "unknown") for anchor in anchors]
    if new := [one for one in sorted(asked) if (repo.root, one) not in _ours]:
        _ours.update((repo.root, one) for one in repo.knows(new[:_MAX_REPOSITORIES]))
    ours = [one for one in anchors if one.blob and (repo.root, one.repo) in _ours]
    tree = _Tree(repo, ours)
    return [tree.state_of(one) if one in ours else CodeState(one, "unknown") for one in anchors]


def states_of(
    items: Iterable[Item], folder: Path | None, limit_s: float
) -> dict[str, list[CodeState]]:
    """What has become of the code of memories, by their ids."""
    anchors = {item.id: _anchors_of(item) for item in items}
    states = iter(code_states([one for each in anchors.values() for one in each], folder, limit_s))
    return {item: [next(states) for _ in found] for item, found in anchors.items()}


def find_moved(items: Iterable[Item], part: str, folder: Path | None, limit_s: float) -> list[Item]:
    """Those of some memories whose code went to a path::symbol that contains this part.

    Git is asked only about what is not where it was. Of symbols that the part, where it is a
    file, does not name, only those are looked at whose own file is gone.
    """
    repo = find_repository(folder, limit_s)
    if repo is None:
        return []
    root, read, target = repo.root, cache(repo.read), repo.read(part)

    def is_lost(anchor: Anchor) -> bool:
        name = _bare(anchor).encode()
        if target is not None and (not name or name not in target.content):
            return not os.path.exists(root / anchor.path)  # noqa: PTH110 - no error for odd names
        file = read(anchor.path)
        return file is None or name not in file.content

    lost = [item for item in items if any(one.blob and is_lost(one) for one in _anchors_of(item))]
    states = states_of(lost, folder, limit_s)
    return [item for item in lost if any(part in state.now for state in states[item.id])]


def path_in_repository(path: str, folder: Path | None) -> str:
    """A path as anchors have it: an absolute one relative to the repository of the folder."""
    real, repo = Path(os.path.realpath(path)), find_repository(folder, 0)
    if repo and os.path.isabs(path) and real.is_relative_to(repo.root):  # noqa: PTH117
        return real.relative_to(repo.root).as_posix()
    return path.replace("\\", "/").removeprefix("./")


def _anchors_of(item: Item) -> list[Anchor]:
    """The anchors of a memory; what an import or another machine wrote may be none."""
    found = []
    for text in item.anchors:
        with suppress(Refused):
            found.append(parse_anchor(text))
    return found


def _bare(anchor: Anchor) -> str:
    """The name of a symbol without those that it is in."""
    return re.split(r"[.:#]", anchor.symbol)[-1]


class _Tree:
    """The working tree of a repository, of which each file is read once."""

    def __init__(self, repo: Repository, anchors: Sequence[Anchor]) -> None:
        self._repo, self._stamp = repo, repo.stamp()
        self._files: dict[str, _File | None] = {}
        # What several of them need of git is asked together.
        new = [(one, self._file(one.path)) for one in anchors if not self._recall(one)]
        self._blobs = repo.blobs(
            {one.blob for one, file in new if not file or file.blob != one.blob}
        )
        lost = (one for one, file in new if one.symbol and not (file and file.find(one.symbol)))
        self._mentions = repo.mentioning({_bare(one) for one in lost})
        commits = {one.commit for one, file in new if file is None}
        self._renames = {commit: repo.renames(commit) for commit in sorted(commits)}

    def state_of(self, anchor: Anchor) -> CodeState:
        """What has become of an anchor, as known from before where nothing moved since."""
        if known := self._recall(anchor):
            return known
        state = self._compare(anchor, self._file(anchor.path))
        if self._stamp and not self._repo.is_late:
            if len(_known) >= _MAX_KNOWN:
                _known.clear()
            _known[self._key(anchor)] = state, self._blob_at(state.now)
        return state

    def _recall(self, anchor: Anchor) -> CodeState | None:
        state, blob = _known.get(self._key(anchor), (None, ""))
        return state if state and self._blob_at(state.now) == blob else None

    def _key(self, anchor: Anchor) -> tuple[object, ...]:
        return self._repo.root, anchor, self._blob_at(anchor.path), self._stamp

    def _blob_at(self, name: str) -> str:
        file = self._file(name.partition("::")[0]) if name else None
        return file.blob if file else ""

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            content = self._repo.read(path)
            self._files[path] = _File(path, content.content) if content else None
        return self._files[path]

    def _compare(self, anchor: Anchor, file: _File | None) -> CodeState:
        if file is not None and (state := self._compare_in(anchor, anchor.path, file)):
            return state
        renamed = self._renames.get(anchor.commit, {}).get(anchor.path)
        for path in filter(None, (renamed, *self._elsewhere(anchor))):
            other = self._file(path)
            if other is not None and (state := self._compare_in(anchor, path, other)):
                return state
        return CodeState(anchor, "unknown" if self._repo.is_late else "gone")

    def _compare_in(self, anchor: Anchor, path: str, file: _File) -> CodeState | None:
        """The state of an anchor if it is in this file; None where it is not."""
        moved = "" if path == anchor.path else anchor._replace(path=path).name
        symbol = file.find(anchor.symbol)
        same = file.blob == anchor.blob or file.hash_of(symbol) == anchor.body
        if same and (symbol or not (anchor.symbol and anchor.body)):
            return CodeState(anchor, "moved" if moved else "same", moved)
        if anchor.symbol and anchor.body and anchor.lines >= _MIN_MOVED_LINES:
            twins = [one for one in file.symbols if file.hash_of(one) == anchor.body]
            if len(twins) == 1:
                return CodeState(anchor, "moved", f"{path}::{twins[0].name}")
        if anchor.symbol and anchor.body and symbol is None:
            return None
        return self._count(anchor, file.lines_of(symbol), moved)

    def _count(self, anchor: Anchor, now: Sequence[str], moved: str) -> CodeState:
        """How much has changed, by the text of then, if the repository has it."""
        before = _File(anchor.path, self._blobs.get(anchor.blob, b""))
        symbol = before.find(anchor.symbol)
        if before.blob != anchor.blob or (anchor.symbol and anchor.body and symbol is None):
            return CodeState(anchor, "changed", moved)
        changed, added = count_changes(before.lines_of(symbol), now)
        return CodeState(anchor, "changed", moved, changed, added)

    def _elsewhere(self, anchor: Anchor) -> Iterator[str]:
        """Other files that may have the code: the same content, or a symbol of that name."""
        if not anchor.symbol:
            yield from self._repo.holders(anchor.blob)[:1]
            return
        suffix = Path(anchor.path).suffix
        paths = [path for path in self._mentions.get(_bare(anchor), ()) if path.endswith(suffix)]
        defining = [
            (path, file, one)
            for path in paths[:_MAX_ELSEWHERE]
            if path != anchor.path
            and (file := self._file(path))
            and (one := file.find(anchor.symbol))
        ]
        same = [path for path, file, one in defining if file.hash_of(one) == anchor.body]
        if same or len(defining) == 1:
            yield (same or [defining[0][0]])[0]
