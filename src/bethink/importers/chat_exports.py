"""ChatGPT and Claude.ai data exports: ``conversations.json`` as a file, folder or zip.

Every message becomes a raw turn at its place in the conversation. Nothing is unpacked
to disk, so no name inside an archive can escape; zip bombs are refused.

A ChatGPT conversation is a tree of messages, because they can be edited and answered
again; the branch last shown is imported. Of Claude.ai both sides' text and the names of
attached files are imported. Instructions, tool calls, thinking and the content of
attachments are left out.

A turn without a number gets a key from its content and its repetition count: the same
lines read again are the same turns.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from errno import EINVAL
from lzma import LZMAError
from pathlib import Path
from struct import error as StructError  # noqa: N812
from typing import IO, BinaryIO, ClassVar, Literal

from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, NotFound, Refused, TooLarge
from bethink.importers import entry
from bethink.importers.streams import json_elements
from bethink.importers.turn_text import is_uninformative
from bethink.ingest.files import MAX_COMPRESSION_RATIO, BoundedReader
from bethink.model import Draft

ZIP_MAGIC = b"PK\x03\x04"
MAX_BYTES = 16 << 30
_MAX_MEMBERS = 100_000
_MIN_BYTES_FOR_RATIO = 1 << 20  # bytes; small files may compress well without being an attack
_ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, LZMAError, StructError),
    *(EOFError, NotImplementedError, ValueError, OverflowError),
)
_CONVERSATIONS_NAME = re.compile(
    r"(?:.*[/\\])?conversations(?:[-_ ]?\d{1,6})?\.json", re.IGNORECASE
)


def open_members(path: Path, gauge: entry.ReadProgress) -> Iterator[BinaryIO]:
    """Open the conversation files of an export; each must be read before the next."""
    files = conversation_files(path) if path.is_dir() else [path]
    if not files:
        raise NotFound(f"there is no conversations.json in {path.name}")
    if not path.is_dir() and _is_zip(path):
        yield from _zip_members(path, gauge)
        return
    gauge.total = sum(one.stat().st_size for one in files)
    for one in files:
        with one.open("rb") as file:
            bounded = io.BufferedReader(BoundedReader(file, max_bytes=MAX_BYTES))
            yield io.BufferedReader(_ProgressStream(bounded, one.name, gauge))


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == ZIP_MAGIC


def conversation_files(folder: Path) -> list[Path]:
    """Return the files of an unpacked export that hold conversations, by name."""
    with os.scandir(folder) as found:
        names = sorted(path.name for path in found if path.is_file(follow_symlinks=False))
    return [folder / name for name in names if _CONVERSATIONS_NAME.fullmatch(name)]


def _zip_members(path: Path, gauge: entry.ReadProgress) -> Iterator[BinaryIO]:
    with _translate_archive_errors(path.name), zipfile.ZipFile(path) as archive:
        found = _conversation_members(archive, path.name)
        gauge.total = sum(member.file_size for member in found)
        for member in found:
            _refuse_bomb(member)
            with archive.open(member) as stream:
                yield io.BufferedReader(_ProgressStream(stream, path.name, gauge))


def _conversation_members(archive: zipfile.ZipFile, name: str) -> list[zipfile.ZipInfo]:
    inside = archive.infolist()
    if len(inside) > _MAX_MEMBERS:
        raise TooLarge(name, limit=_MAX_MEMBERS, actual=len(inside), unit="files")
    found = [member for member in inside if _CONVERSATIONS_NAME.fullmatch(member.filename)]
    if not found:
        raise Refused(
            f"there is no conversations.json in {name}",
            remedy="a zip is read as an export of chats; unpack any other, or save its text",
        )
    return sorted(found, key=lambda member: member.filename)


def _refuse_bomb(member: zipfile.ZipInfo) -> None:
    if member.file_size > MAX_BYTES:
        raise TooLarge("the unpacked file", limit=MAX_BYTES, actual=member.file_size)
    most = max(_MIN_BYTES_FOR_RATIO, MAX_COMPRESSION_RATIO * member.compress_size)
    if member.file_size > most:
        ratio = member.file_size // max(1, member.compress_size)
        raise TooLarge(
            "the unpacked file", limit=MAX_COMPRESSION_RATIO, actual=ratio, unit="times as big"
        )


@contextmanager
def _translate_archive_errors(name: str) -> Iterator[None]:
    """Translate errors of unpacking an archive to BadText."""
    try:
        yield
    except _ARCHIVE_ERRORS as error:
        raise BadText(f"{name} cannot be unpacked: {error}") from error
    except OSError as error:
        # Raised for an invalid offset in the file, or damaged bzip2 data.
        if error.filename is not None or error.errno not in (None, EINVAL):
            raise
        raise BadText(f"{name} cannot be unpacked: it is damaged") from error
    except RuntimeError as error:
        # What zipfile raises for an archive with a password.
        if "password" not in str(error) and "encrypted" not in str(error):
            raise
        raise BadText(f"{name} is protected by a password", remedy="unpack it first") from error


class _ProgressStream(io.RawIOBase):
    """A stream that reports how far it has been read."""

    def __init__(self, stream: IO[bytes], name: str, gauge: entry.ReadProgress) -> None:
        self._stream = stream
        self._name = name
        self._gauge = gauge

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with _translate_archive_errors(self._name):
            piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        self._gauge.done += len(piece)
        return len(piece)


def with_turn_keys(entries: Iterable[entry.Entry], source: str) -> Iterator[entry.Entry]:
    """Yield the entries; turns get a key from their content and its repetition count."""
    said: Counter[bytes] = Counter()
    for turn in entries:
        draft = turn.found
        if isinstance(draft, Refused) or draft.key or draft.id or draft.seq is not None:
            yield turn
            continue
        if not (isinstance(draft.session, str) and isinstance(draft.text, str)):
            yield turn
            continue
        own = entry.digest(
            source, draft.session, str(draft.speaker), str(draft.occurred_at), draft.text
        )
        mark = bytes.fromhex(own)
        said[mark] += 1
        yield turn._replace(found=draft._replace(key=f"turn:{own}:{said[mark]}"))


class Message(NamedTuple):
    """One message of a conversation, by its own id."""

    id: str
    who: Literal["user", "assistant"]
    text: str
    at: datetime | None


class Conversation(NamedTuple):
    """A conversation by its own id, and its messages."""

    id: str
    title: str
    messages: Iterable[Message]


class ConversationExport(entry.Reader, ABC):
    """An export whose ``conversations.json`` is a list of conversations."""

    source: ClassVar[str]

    def entries(self) -> Iterator[entry.Entry]:
        """Yield the turns of every conversation, in the order of the file."""
        for stream in open_members(self._path, self._gauge):
            for number, found in json_elements(stream):
                where, talk = f"conversation {number}", self._conversation(entry.Fields(found))
                if isinstance(found, Refused):
                    yield entry.Entry(where, found)
                elif talk is None:
                    yield entry.Entry(where, Refused("it is not a conversation"))
                else:
                    yield from self._turns(talk, where)

    @abstractmethod
    def _conversation(self, chat: entry.Fields) -> Conversation | None:
        """Return a conversation; None where it is none."""

    def _turns(self, talk: Conversation, where: str) -> Iterator[entry.Entry]:
        """Yield an entry for every informative message; a long one in several parts.

        A "thanks" and its "you're welcome" are left out, and keep their sequence numbers.
        """
        number, before = 0, ""
        for place, message in enumerate(talk.messages, start=1):
            is_empty = is_uninformative(message.text, message.who, before)
            before, own = message.text, message.id or str(place)
            for part, text in enumerate(entry.split_text(message.text)):
                number += 1
                if is_empty:
                    continue
                draft = Draft(
                    text,
                    level="raw",
                    topic=talk.title or None,
                    speaker=message.who,
                    session=f"{self.source}:{talk.id}"[:200],
                    seq=number,
                    occurred_at=message.at,
                    metadata=entry.metadata_of({"title": talk.title}),
                )
                key = entry.digest(self.source, talk.id, own, str(part) if part else "")
                yield entry.Entry(f"{where}, message {place}", draft, id=key, origin=message.id)


_ROLES: dict[str, Literal["user", "assistant"]] = {
    "human": "user",
    "user": "user",
    "assistant": "assistant",
}
_TEXT_CONTENT_TYPES = ("text", "multimodal_text", "code")
# Citation marks in an answer; their targets are not in the text.
_CITATION = re.compile(
    r"[ \t]*(?:\ue200[^\ue200\ue201\n]{0,500}\ue201|【\d{1,4}(?::\d{1,4})?†[^】\n]{0,200}】)"
)
_ASSET_TEXTS = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "",
    "real_time_user_audio_video_asset_pointer": "",
}


class ChatGpt(ConversationExport):
    """One ChatGPT export."""

    source = "chatgpt"

    def _conversation(self, chat: entry.Fields) -> Conversation | None:
        nodes = chat.fields("mapping")
        if not nodes.given:
            return None
        title = chat.line("title")
        own = chat.text("conversation_id", "id")
        own = own or entry.digest(title, str(chat.get("create_time")))
        return Conversation(own, title, _chatgpt_messages(nodes, chat.text("current_node")))


def _chatgpt_messages(nodes: entry.Fields, current: str) -> Iterator[Message]:
    for name in reversed(_branch(nodes, current)):
        message = nodes.fields(name).fields("message")
        role = message.fields("author").text("role")
        text = _chatgpt_text(message.fields("content"))
        if role in ("user", "assistant") and text and _is_visible(message):
            at = message.time("create_time")
            yield Message(message.text("id") or name, _ROLES[role], text, at)


def _branch(nodes: entry.Fields, current: str) -> list[str]:
    """Return the node names from the last one up to the root; stop at a cycle."""
    name = current if current in nodes else _last_leaf(nodes)
    seen: dict[str, None] = {}
    while name in nodes and name not in seen:
        seen[name] = None
        name = nodes.fields(name).text("parent")
    return list(seen)


def _last_leaf(nodes: entry.Fields) -> str:
    """Return the last node without an answer, where the export names no current one."""
    leaves = [name for name in nodes.given if not nodes.fields(name).get("children")]
    return leaves[-1] if leaves else next(reversed(nodes.given))


def _is_visible(message: entry.Fields) -> bool:
    """Whether a message was shown to the other side: not hidden, not addressed to a tool."""
    if message.fields("metadata").get("is_visually_hidden_from_conversation"):
        return False
    return message.text("recipient") in ("", "all")


def _chatgpt_text(content: entry.Fields) -> str:
    kind = content.text("content_type")
    if kind not in _TEXT_CONTENT_TYPES:
        return ""
    if kind == "code":
        return content.text("text")
    return "\n\n".join(filter(None, map(_part_text, content.array("parts"))))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return _CITATION.sub("", part).strip()
    fields = entry.Fields(part)
    return fields.text("text") or _ASSET_TEXTS.get(fields.text("content_type"), "")


class ClaudeAi(ConversationExport):
    """One Claude.ai export."""

    source = "claude"

    def _conversation(self, chat: entry.Fields) -> Conversation | None:
        if not chat.has_list("chat_messages"):
            return None
        title = chat.line("name")
        own = chat.text("uuid") or entry.digest(title, chat.text("created_at"))
        return Conversation(own, title, _claude_messages(chat))


def _claude_messages(chat: entry.Fields) -> Iterator[Message]:
    for message in chat.each("chat_messages"):
        role = _ROLES.get(message.text("sender"))
        text = _claude_text(message)
        if role is not None and text:
            yield Message(message.text("uuid"), role, text, message.time("created_at"))


def _claude_text(message: entry.Fields) -> str:
    """Join the text blocks and file names; older exports have the text alone."""
    blocks = message.each("content")
    spoken = [block.text("text") for block in blocks if block.get("type") == "text"]
    words = "\n\n".join(filter(None, spoken)) or ("" if blocks else message.text("text"))
    files = [*message.each("attachments"), *message.each("files")]
    names = filter(None, (file.line("file_name") for file in files))
    return "\n\n".join(filter(None, (words, *(f"[file: {name}]" for name in dict.fromkeys(names)))))
