"""Memories as Markdown: list items with block ids, and notes with front matter.

A file is its lines. Lines that belong to no memory are kept as they are; a memory's own
lines are replaced only where they say something else than the memory.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time

from bethink.core.ids import short_id
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import caption
from bethink.errors import BadText, Refused
from bethink.importers.markdown import FrontMatterValue, parse_front_matter
from bethink.model import RELATIONS, Item

MAX_ITEM_CHARACTERS = 300  # a longer memory is a file of its own
TIME_KEYS = {
    "when": "occurred_at", "until": "occurred_end",
    "valid_from": "valid_from", "valid_to": "valid_to",
}  # fmt: skip
_KIND = re.compile(r"\[(?![xX]\])([^\W\d_][^\[\]\n]{0,59})\](?:[ ]|$)")
_BULLET = re.compile(r"[-*+](?:[ ]|$)")
_NESTED = re.compile(r"[ \t]+[-*+] ")
# Not shorter: "r ^2" is no block id. Obsidian's own have six characters.
_REF = re.compile(r"[A-Za-z0-9-]{4,64}")
_ID = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]{4,64})[ \t]*$")
_ANY_ID = re.compile(r"[ \t]\^([A-Za-z0-9-]{4,64})[ \t]*\r?$", re.MULTILINE)
# Where Logseq keeps the id of a block: a line of the file, not of the text.
PROPERTY = re.compile(r"[ \t]+id:: [0-9a-f]{8}-[0-9a-f-]{27}\s*")
_BROKEN = re.compile(r"(\w+):[ \t]*(?:\[[^\]\n]*|\"[^\"\n]*|'[^'\n]*)")
_TAG = re.compile(r"[^\W\d_][\w/-]{0,60}")
_TAIL = re.compile(
    r"(?:^|[ \t])(?:#(?P<tag>[^\W\d_][\w/-]{0,60})"
    r"|\[(?P<key>[a-z_]+)::[ ]*(?P<value>[^\[\]\n]*|\[\[[^\[\]\n]+\]\])\])[ \t]*$"
)
_LINK = re.compile(r"(?P<relation>[a-z_]+) \[\[(?P<target>[^\[\]\n]+)\]\]")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_CALLOUT = re.compile(r"[ \t]*>[ ]?\[!conflict\]")
_MERGE = re.compile(r"^(?:<{7} |>{7} )", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"

Links = tuple[tuple[str, str], ...]  # relation, and what it points to


class Editable(NamedTuple):
    """What a file shows of a memory and a person may edit.

    A time that is no date is kept as it was written; an empty ``kind`` is not stated.
    """

    text: str
    kind: str = ""
    topic: str | None = None
    tags: tuple[str, ...] = ()
    occurred_at: datetime | str | None = None
    occurred_end: datetime | str | None = None
    valid_from: datetime | str | None = None
    valid_to: datetime | str | None = None
    pinned: bool = False
    links: Links = ()

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(tuple(self)).encode("utf-8", "replace")).hexdigest()[:32]


def editable_of(item: Item, links: Iterable[tuple[str, str]] = ()) -> Editable:
    """Return what a file shows of a memory."""
    fields = {name: getattr(item, name) for name in Editable._fields if name != "links"}
    return Editable(**fields, links=tuple(sorted(links)))


def block_id(item_id: str) -> str:
    """Return the id of a memory as a block id: letters, digits and dashes."""
    if _REF.fullmatch(item_id):
        return item_id
    return f"x-{hashlib.sha256(item_id.encode()).hexdigest()[:16]}"


def _format_time(value: datetime | str) -> str:
    if isinstance(value, str):
        return value
    is_day = value.tzinfo is UTC and value.time() == time()
    return f"{value:%Y-%m-%d}" if is_day else value.isoformat().replace("+00:00", "Z")


def _parse_time(text: str) -> datetime | str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def format_item(shown: Editable, ref: str) -> list[str]:
    """Write a memory as the lines of a list item, without line ends."""
    tail = [f"#{tag}" for tag in shown.tags]
    tail += [
        f"[{key}:: {_format_time(value)}]"
        for key, name in TIME_KEYS.items()
        if (value := getattr(shown, name)) is not None
    ]
    tail += ["[pinned:: yes]"] if shown.pinned else []
    tail += [f"[{relation}:: [[{target}]]]" for relation, target in shown.links]
    head = f"[{shown.kind}] " if shown.kind else ""
    whole = " ".join((f"- {head}{shown.text}", *tail, f"^{ref}"))
    return whole.replace("\n", "\n  ").split("\n")


def parse_item(lines: list[str], topic: str | None = None) -> tuple[Editable, str]:
    """Read the lines of a list item; return it with its block id, empty where it has none."""
    indent = indent_of(lines[0])
    lines = [line.removeprefix(indent) for line in lines if not PROPERTY.fullmatch(line)]
    body = [lines[0][2:], *(line[1 if line[:1] == "\t" else 2 :] for line in lines[1:])]
    # Editors add lines below the one with the id, so it is not always on the last.
    at = next((n for n in (len(body) - 1, *range(len(body) - 1)) if _ID.search(body[n])), None)
    found = _ID.search(body[at]) if at is not None else None
    at = len(body) - 1 if at is None else at
    body[at] = body[at][: found.start()] if found else body[at]
    fields: dict[str, object] = {}
    tags, links = [], []
    while tail := _TAIL.search(body[at]):
        key, value = tail["key"], (tail["value"] or "").strip()
        if tail["tag"]:
            tags.append(tail["tag"])
        elif key in TIME_KEYS and value:
            fields[TIME_KEYS[key]] = _parse_time(value)
        elif key == "pinned":
            fields["pinned"] = value.lower() in ("yes", "true", "on")
        elif key in RELATIONS and value.startswith("[["):
            links.append((key, value[2:-2]))
        else:
            break  # a field of another program
        body[at] = body[at][: tail.start()]
    if kind := _KIND.match(body[0]):
        fields["kind"] = kind[1]
        body[0] = body[0][kind.end() :]
    text = "\n".join(body).strip()
    shown = Editable(text, topic=topic, tags=tuple(reversed(tags)), **fields)  # type: ignore[arg-type]
    return shown._replace(links=tuple(sorted(links))), found[1] if found else ""


def fits_item(shown: Editable, limit: int | None = MAX_ITEM_CHARACTERS) -> bool:
    """Whether a memory is short enough for a list item, and is the same when it is read."""
    if (limit and len(shown.text) > limit) or not shown.kind:
        return False
    lines = format_item(shown, "abcd")
    return (
        all(line.strip() and "\r" not in line for line in lines)
        and not any(map(_CALLOUT.match, lines))
        and all(_TAG.fullmatch(tag) for tag in shown.tags)
        and parse_item(lines, shown.topic) == (shown, "abcd")
    )


class Block(NamedTuple):
    """A memory in a file: its lines, from ``start`` to ``end``, and its conflict up to ``stop``."""

    shown: Editable
    ref: str
    start: int
    end: int
    stop: int


class Document(NamedTuple):
    """A file: its lines with their ends, its front matter, what it groups, its blocks.

    ``group`` is "topic:NAME", "day:DATE" or "note". ``head`` are the lines of its front
    matter, with the two that enclose it.
    """

    lines: tuple[str, ...]
    newline: str
    has_bom: bool
    keys: Mapping[str, FrontMatterValue]
    head: tuple[int, int]
    group: str
    blocks: tuple[Block, ...]

    def to_bytes(self) -> bytes:
        return (_BOM if self.has_bom else b"") + "".join(self.lines).encode()

    def stray_ids(self) -> set[str]:
        """Return the block ids that stand at no list item: in code, in a quotation."""
        found = set(_ANY_ID.findall("".join(self.lines[self.head[1] :])))
        return found - {block.ref for block in self.blocks}


OWN_KEYS = ("bethink", "id", "kind", "topic", "day", "tags", *TIME_KEYS, "pinned", "links")
FOLDERS = {"topics": "topic", "days": "day", "notes": "note"}


def parse_document(content: bytes, path: str, known: str = "") -> Document | None:
    """Parse a file; None where it is not one of memories, Refused where it cannot be read.

    ``known`` is what it grouped before: that holds where its front matter no longer says it.
    """
    try:
        text = content.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise BadText(f"not UTF-8 at byte {error.start + 1}") from error
    parts = text.split("\n")
    lines = tuple(f"{part}\n" for part in parts[:-1]) + ((parts[-1],) if parts[-1] else ())
    ended = [line for line in lines if line.endswith("\n")]
    newline = "\r\n" if ended and all(line.endswith("\r\n") for line in ended) else "\n"
    keys, head = _find_head(lines)
    sort = str(keys.get("bethink") or FOLDERS.get(path.partition("/")[0] if "/" in path else ""))
    if sort not in FOLDERS.values():
        return None
    if head is None:
        raise Refused("its front matter has no end")
    found = (_BROKEN.fullmatch(line.rstrip()) for line in lines[head[0] : head[1]])
    if wrong := [one[1] for one in found if one and one[1] in OWN_KEYS]:
        raise Refused(f"its front matter is broken at {wrong[0]}")
    group, stem = sort, path.rpartition("/")[2].removesuffix(".md")
    if sort != "note":
        is_known = known.startswith(f"{sort}:") and not keys.get(sort)
        group = known if is_known else f"{sort}:{keys.get(sort) or stem}"
    whole = Document(lines, newline, content.startswith(_BOM), keys, head, group, ())
    blocks = (_note_block(whole),) if sort == "note" else tuple(_item_blocks(whole))
    return whole._replace(blocks=tuple(block for block in blocks if block.shown.text or block.ref))


def has_merge_markers(content: bytes) -> bool:
    """Whether a merge of versions is not finished in a file."""
    return len(_MERGE.findall(content.decode("utf-8", "replace"))) > 1


def _find_head(
    lines: tuple[str, ...],
) -> tuple[Mapping[str, FrontMatterValue], tuple[int, int] | None]:
    """Find the front matter: ours, also where another program wrote its own before it."""
    keys, head = _front_matter(lines, 0)
    if head and head[1] and "bethink" not in keys:
        after = next((n for n in range(head[1], len(lines)) if lines[n].strip()), len(lines))
        more, second = _front_matter(lines, after)
        if second and "bethink" in more:
            return {**keys, **more}, second
    return keys, head


def _front_matter(
    lines: tuple[str, ...], start: int
) -> tuple[dict[str, FrontMatterValue], tuple[int, int] | None]:
    if start >= len(lines) or lines[start].rstrip() != "---":
        return {}, (0, 0)
    for end in range(start + 1, len(lines)):
        if lines[end].rstrip() in ("---", "..."):
            inner = "".join(lines[start + 1 : end]).replace("\r\n", "\n")
            return parse_front_matter(inner), (start, end + 1)
    return {}, None


def _item_blocks(document: Document) -> Iterable[Block]:
    """Yield the list items of a file, outside of code: at its margin, or with an id."""
    sort, _, name = document.group.partition(":")
    topic = name if sort == "topic" else None
    bare = [line.rstrip("\r\n") for line in document.lines]
    at, fence = document.head[1], ""
    while at < len(bare):
        line = bare[at]
        mark = _FENCE.match(line)
        if fence or mark:
            closes = mark and mark[1].startswith(fence)
            fence = "" if fence and closes else fence or (mark[1] if mark else "")
        if fence or mark or not (_BULLET.match(line) or _has_id(bare, at)):
            at += 1
            continue
        start, at, has_id = at, at + 1, bool(_ID.search(line))
        while at < len(bare) and _is_inner(bare[at], line) and not _CALLOUT.match(bare[at]):
            if has_id and _has_id(bare, at):
                break  # a memory below another one in an outline
            has_id |= bool(_ID.search(bare[at]))
            at += 1
        shown, ref = parse_item(bare[start:at], topic)
        end = at
        if at < len(bare) and _CALLOUT.match(bare[at]):
            at += 1
            while at < len(bare) and bare[at].lstrip().startswith(">"):
                at += 1
        yield Block(shown, ref, start, end, at)


def indent_of(line: str) -> str:
    """Return the white space at the beginning of a line."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_inner(line: str, bullet: str) -> bool:
    """Whether a line belongs to the item that begins with a bullet."""
    indent = indent_of(bullet)
    return line.startswith((f"{indent}  ", f"{indent}\t")) and bool(line.strip())


def _has_id(bare: list[str], at: int) -> bool:
    """Whether a list item begins here, inside of something, that has an id of its own."""
    end = at + 1
    while end < len(bare) and _is_inner(bare[end], bare[at]) and not _NESTED.match(bare[end]):
        end += 1
    return bool(_NESTED.match(bare[at])) and any(map(_ID.search, bare[at:end]))


def _note_block(document: Document) -> Block:
    """Return the one memory of a note: its front matter and all the text below."""
    keys, start = document.keys, document.head[1]
    end = stop = len(document.lines)
    last = end
    while last > start and document.lines[last - 1].startswith(">"):
        last -= 1
        if _CALLOUT.match(document.lines[last]):
            end = last
            break
    return Block(_note_shown(document, start, end), _text_of(keys.get("id")), start, end, stop)


def whole_note(document: Document) -> Editable:
    """Return a note with what looks like a conflict at its end: it belongs to the text."""
    block = document.blocks[0]
    return _note_shown(document, block.start, block.stop)


def _note_shown(document: Document, start: int, end: int) -> Editable:
    keys = document.keys
    text = "".join(document.lines[start:end])
    text = text.replace("\r\n", "\n") if document.newline == "\r\n" else text
    times = {
        name: _parse_time(_text_of(keys[key])) for key, name in TIME_KEYS.items() if keys.get(key)
    }
    found = (_LINK.fullmatch(link) for link in _words_of(keys.get("links")))
    links = [(one[1], one[2]) for one in found if one and one[1] in RELATIONS]
    return Editable(
        text.removesuffix("\n"),
        kind=_text_of(keys.get("kind")),
        topic=_text_of(keys.get("topic")) or None,
        tags=_words_of(keys.get("tags")),
        pinned=_text_of(keys.get("pinned")).lower() in ("yes", "true", "on"),
        links=tuple(sorted(links)),
        **times,
    )


def _text_of(value: FrontMatterValue | None) -> str:
    return value if isinstance(value, str) else ""


def _words_of(value: FrontMatterValue | None) -> tuple[str, ...]:
    words = value if isinstance(value, list) else [value] if value else []
    return tuple(dict.fromkeys(words))


def front_matter(
    sort: str, keys: Mapping[str, str], shown: Editable | None = None
) -> dict[str, str]:
    """Return the lines of a file's own keys, by key."""
    values: dict[str, object] = {"bethink": sort, **keys}
    if shown is not None:
        values |= {"kind": shown.kind, "topic": shown.topic, "tags": list(shown.tags)}
        values |= {key: getattr(shown, name) for key, name in TIME_KEYS.items()}
        links = [f"{relation} [[{target}]]" for relation, target in shown.links]
        values |= {"pinned": "yes" if shown.pinned else "", "links": links}
    return {key: f"{key}: {_format_value(value)}" for key, value in values.items() if value}


_PLAIN = re.compile(r"[^\W\d_][\w./ -]*[\w./-]|[^\W\d_]|\d[0-9a-z-]*[a-z-][0-9a-z:.-]*", re.ASCII)


def _format_value(value: object) -> str:
    if isinstance(value, list):
        plain = all(_TAG.fullmatch(word) for word in value)
        ascii_only = not all(word.isprintable() for word in value)
        inner = ", ".join(value) if plain else json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        return f"[{inner}]"
    text = _format_time(value) if isinstance(value, datetime) else str(value)
    is_time = isinstance(value, datetime) or text == "yes"
    if is_time or (_PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


_YAML_WORDS = ("yes", "no", "true", "false", "on", "off", "null", "y", "n")


def with_front_matter(document: Document, wanted: Mapping[str, str]) -> Document:
    """Return a file whose own keys are these; those of other programs stay as they are."""
    start, end = document.head
    kept: list[str] = []
    left = dict(wanted)
    for key, chunk in _key_chunks(document.lines[start + 1 : end - 1] if end else ()):
        if key not in OWN_KEYS:
            kept += chunk
        elif key in left:
            new = left.pop(key)
            before = parse_front_matter("".join(chunk).replace("\r\n", "\n"))
            same = before.get(key) == parse_front_matter(new).get(key)
            kept += chunk if same else [new + document.newline]
    lines = [*kept, *(line + document.newline for line in left.values())]
    fence = f"---{document.newline}"
    opening, closing = (document.lines[start], document.lines[end - 1]) if end else (fence, fence)
    closing = closing if closing.endswith("\n") else closing + document.newline
    head = (opening, *lines, closing)
    whole = (*document.lines[:start], *head, *document.lines[end:])
    return document._replace(lines=whole, head=(start, start + len(head)))


def _key_chunks(lines: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Split a front matter into its keys, each with the lines that belong to it."""
    chunks: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        if line[0] not in " \t-#\r\n":
            chunks.append((line.partition(":")[0].strip().lower(), []))
        chunks[-1][1].append(line)
    return chunks


def new_document(group: str) -> Document:
    """Return an empty file of a group."""
    sort, _, name = group.partition(":")
    empty = Document((), "\n", has_bom=False, keys={}, head=(0, 0), group=group, blocks=())
    return with_front_matter(empty, front_matter(sort, {sort: name} if name else {}))


def format_note(document: Document, shown: Editable, ref: str, conflict: str = "") -> Document:
    """Return a note with another content; ``conflict`` is shown below it."""
    text = f"{shown.text}\n{conflict}".replace("\n", document.newline)
    headed = with_front_matter(document, front_matter("note", {"id": ref}, shown))
    body = tuple(f"{line}\n" for line in text.split("\n")[:-1])
    old = document.lines[document.head[1] :]
    if old and not old[-1].endswith("\n") and not conflict:
        last = body[-1].removesuffix(document.newline)  # the file has no last line end
        body = (*body[:-1], last)
    return headed._replace(lines=(*headed.lines[: headed.head[1]], *body))


def format_conflict(text: str, label: str, indent: str = "") -> str:
    """Write the other version of a memory as a callout, with a last line end."""
    lines = f"[!conflict] {label}: {text}".split("\n")
    return "".join(f"{indent}> {line}".rstrip() + "\n" for line in lines)


def slug_of(name: str, limit: int = 40) -> str:
    """Return a name as part of a path: ASCII, lower case, no spaces."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", letters)[:limit].strip("-")
    return slug or f"t-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def note_name(item: Item) -> str:
    """Return the path of a memory's own file."""
    title = item.caption or caption(item.text)
    return f"notes/{slug_of(title)}--{short_id(block_id(item.id))}.md"


def fold_path(path: str) -> str:
    """Return a path as file systems compare it that ignore case and Unicode forms."""
    return unicodedata.normalize("NFC", path).casefold()
