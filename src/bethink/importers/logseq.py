"""Logseq's graph: a memory for every block at the margin of a page, with those below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from bethink.importers import entry
from bethink.importers.markdown import Note, NoteReader, date_in, hashtags, linked_notes
from bethink.model import Draft

_PROPERTY = re.compile(r"[ \t]*(?:- )?[ \t]*(?P<key>[\w./-]+):: ?(?P<value>.*)")
_LOGBOOK = re.compile(r"^[ \t]*:LOGBOOK:.*?^[ \t]*:END:[ \t]*\n?", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^- ?", re.MULTILINE)


def is_logseq(folder: Path) -> bool:
    """Whether a folder is a graph: it has Logseq's own settings."""
    return (folder / "logseq" / "config.edn").is_file()


class Logseq(NoteReader):
    """A graph of pages and journals; its back-ups are left out."""

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield nothing: the pages that a block names are its entities."""
        yield from ()

    def _note_entries(self, name: str, note: Note) -> Iterator[entry.Entry]:
        if name.startswith("logseq/"):
            return
        stem = name.rpartition("/")[2].removesuffix(".md")
        title = entry.line_of(unquote(stem.replace("___", "/")))
        day = date_in(stem) if name.startswith("journals/") else None
        _, *blocks = _BLOCK.split("\n" + _LOGBOOK.sub("", note.body))
        for block in blocks:
            found = [_PROPERTY.fullmatch(line) for line in block.split("\n")]
            kept = (line for line, one in zip(block.split("\n"), found, strict=True) if not one)
            text = "\n".join(kept).strip()
            keys = {one["key"].lower(): one["value"] for one in found if one}
            pages = (title, *linked_notes(text)) if day is None else linked_notes(text)
            names = tuple(entry.entity_name_of("other", page) for page in pages)
            own = entry.digest(self._place, "block", keys["id"]) if keys.get("id") else ""
            for part, piece in enumerate(entry.split_text(text, 63 * 1024)):
                draft = Draft(
                    piece if day else f"{title}: {piece}",
                    kind="note",
                    topic=None if day else title,
                    tags=hashtags(text)[: entry.MAX_TAGS],
                    entities=names[: entry.MAX_TAGS],
                    occurred_at=day,
                    metadata=entry.metadata_of({"file": name, **keys}),
                    force=True,
                )
                named = f"{own}/{part}" if own else ""
                group = "" if own else entry.digest(self._place, name)
                yield entry.Entry(name, draft, id=named, group=group)
