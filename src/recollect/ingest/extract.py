"""Finds by rules whom and what a text speaks of: people, files, tools, tickets, identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recollect.ingest.entity_words import (
    AFTER_PERSON,
    BEFORE_PERSON,
    CALENDAR,
    CLASS_ENDINGS,
    DOMAINS,
    FILE_ENDINGS,
    FOLDERS,
    GERMAN,
    GIVEN_NAMES,
    KIND_BEFORE,
    LABELS,
    NO_TICKETS,
    OF_PERSONS,
    OPENERS,
    PLAIN_ACRONYMS,
    TITLES,
)
from recollect.model import Draft, Entity
from recollect.ports import Mention
from recollect.text import ROLES, fold

MOST_ENTITIES = 12
ENTITY_KINDS = frozenset(
    {"person", "project", "tool", "file", "function", "class", "identifier", "ticket", "host"}
    | {"module", "subject", "concept", "topic", "other"}
)
_LONGEST_WORD = 120
_LONGEST_NAME = 4  # words
_CODE = frozenset({"identifier", "class", "function", "tool", "module", "project", "file"})
_SEARCHED = 20_000  # characters: twelve entities are found long before

_TICKET = re.compile(r"#\d{1,7}|[A-Z][A-Z0-9]{1,9}-\d{1,7}")
_AT = re.compile(r"@[A-Za-z][\w.-]{1,60}")
_TAG = re.compile(r"#[^\W\d_][\w-]{1,60}")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_CALL = re.compile(r"([A-Za-z_][\w.:]{2,})\(")
_SNAKE = re.compile(r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}|__[a-z]+__")
_DOTTED = re.compile(r"[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VERSION = re.compile(r"v?\d+(\.\d+)+[\w.+-]{0,20}")
_PLAIN = re.compile(r"[a-z]+(?:['’-][a-z]+)*[.,;:!?)]*")
_NAME = re.compile(r"[^\W\d_]+(?:[-'’.][^\W\d_]+)*")
_OPENING = "\"'`([{<*“‘«_"
_CLOSING = "\"'`.,;:!?)]}>*”’»…"


class Word(NamedTuple):
    """A word without its punctuation; ``first`` in a sentence, ``last`` before a pause."""

    text: str
    first: bool
    last: bool
    code: bool


class Spotted(NamedTuple):
    """A name found in a text, what it probably names, and how sure that is."""

    name: str
    kind: str
    confidence: float


def mentions_of(
    draft: Draft, known: dict[str, Entity], met: Sequence[Entity] = ()
) -> tuple[Mention, ...]:
    """The entities a draft speaks of, at most twelve, in the order of its text.

    ``met`` are entities of the store that the text may name. ``known`` maps keys to
    entities and learns the new ones, so that one name is one entity through a batch.
    """
    for old in met:
        for name in (old.name, *old.aliases):
            known.setdefault(key_of(name), old)
    found: dict[str, Mention] = {}
    for name, kind, confidence in _all_spotted(draft, met):
        key = key_of(name)
        entity = known.get(key)
        if entity is None and kind in _CODE:
            entity = next((known[one] for one in spellings(name) if one in known), None)
            if entity is not None:
                entity = known[key] = entity._replace(aliases=(*entity.aliases, key))
        if entity is None:
            entity = Entity(f"{kind}:{key}", kind, name)
            known[key] = entity
        found.setdefault(entity.id, Mention(entity, confidence))
        if len(found) == MOST_ENTITIES:
            break
    return tuple(found.values())


def key_of(name: str) -> str:
    """The part of an entity's id that names it: two spellings of one name agree."""
    return fold(name) or " ".join(name.casefold().split())


def spellings(name: str) -> tuple[str, ...]:
    """Other spellings of a name of several words in one, as code has them: PaymentGateway,
    payment_gateway, payment-gateway."""
    if not name.isascii() or " " in name or "." in name or "/" in name:
        return ()
    parts = _PARTS.sub("_", name).lower().replace("-", "_").strip("_").split("_")
    if len(parts) < 2 or any(len(part) < 2 for part in parts) or "" in parts:
        return ()
    own = key_of(name)
    return tuple(form for form in (sep.join(parts) for sep in ("", "_", "-")) if form != own)


def named(text: str) -> Spotted:
    """An entity given as ``kind:name``, behind a label ("Role: Ana") or as its name alone."""
    kind, colon, name = text.partition(":")
    label = kind.strip().lower()
    if colon and label in ENTITY_KINDS and name.strip():
        return Spotted(" ".join(name.split()), label, 1.0)
    if colon and label in LABELS and name.strip():
        return Spotted(" ".join(name.split()), "person" if label in OF_PERSONS else "other", 1.0)
    return Spotted(" ".join(text.split()), "other", 1.0)


def _all_spotted(draft: Draft, met: Iterable[Entity]) -> Iterator[Spotted]:
    yield from map(named, draft.entities)
    if draft.speaker and draft.speaker.casefold() not in ROLES:
        yield Spotted(" ".join(draft.speaker.split()), "person", 1.0)
    yield from known_in(draft.text, met)
    yield from spotted(draft.text[:_SEARCHED], draft.language)


def spotted(text: str, language: str | None = None) -> Iterator[Spotted]:
    """Names found in a text, in its order, some of them more than once."""
    nouns_are_capital = language == "de" or len(GERMAN.intersection(text.lower().split())) > 1
    for line in text.splitlines():
        words = line.split()
        done = 0
        for i, raw in enumerate(words):
            # Most words end here: small letters alone are no name.
            if i < done or (raw.islower() and (raw.isalpha() or _PLAIN.fullmatch(raw))):
                continue
            word = _word(words, i)
            if word is None:
                continue
            name = _shape(word) or _versioned(word, words, i)
            if name is None:
                done, name = _proper_name(words, i)
            if name and not (nouns_are_capital and name.kind == "other"):
                yield name


def _word(words: Sequence[str], i: int) -> Word | None:
    """The word at a place; None for a label ("Decision:"; "FW-12:" is a ticket),
    a sign, and beyond the line."""
    if not 0 <= i < len(words):
        return None
    raw = words[i]
    bare = raw.lstrip(_OPENING)
    text = bare.rstrip(_CLOSING)
    if raw.startswith(("__", "/", "~/", "./", "../")) or bare.startswith("."):
        text = raw.rstrip(_CLOSING)
        bare = raw
    ending = bare[len(text) :]
    if "(" in text and ")" in ending:
        text += ")"
    first = i == 0 or words[i - 1].endswith((".", "!", "?", ":")) or len(words[i - 1]) == 1
    is_label = ending.startswith(":") and (first or text.lower() in LABELS)
    if not text or (is_label and not _TICKET.fullmatch(text)):
        return None
    return Word(text, first, bool(ending), raw.startswith("`"))


def _shape(word: Word) -> Spotted | None:
    """A name known by the look of a single word."""
    text = word.text
    if len(text) > _LONGEST_WORD or len(text) < 2:
        return None
    kind = _sign_shape(text) or _path_shape(text) or _code_shape(text)
    if kind is None and word.code and text.isidentifier():
        kind = "identifier"
    return Spotted(_plain_name(text, kind), kind, 0.9) if kind else None


def _versioned(word: Word, words: Sequence[str], i: int) -> Spotted | None:
    """A tool, known by the version behind its name; small letters need all of 1.2.3."""
    if i and word.text.count(".") > 1 and _VERSION.fullmatch(word.text):
        name = words[i - 1]
        small = name.isalpha() and name.islower() and name not in OPENERS
        return Spotted(name, "tool", 0.8) if small else None
    if i + 1 == len(words) or not word.text.isalpha() or word.text.lower() in OPENERS:
        return None
    version = _VERSION.fullmatch(words[i + 1].strip(_OPENING + _CLOSING))
    return Spotted(word.text, "tool", 0.9) if version else None


def _plain_name(text: str, kind: str) -> str:
    if kind == "host" and "://" in text:
        host = text.partition("://")[2].split("/")[0].split("?")[0].rpartition("@")[2]
        return host.partition(":")[0].removeprefix("www.")
    if kind == "function":
        return text.partition("(")[0]
    if kind in ("person", "topic"):
        return text.lstrip("@#")
    return text


def _sign_shape(text: str) -> str | None:
    if "://" in text:
        host = _plain_name(text, "host")
        return "host" if "." in host and not host.replace(".", "").isdigit() else None
    if text[0] == "@":
        return "person" if _AT.fullmatch(text) else None
    if "@" in text:
        return "person" if _MAIL.fullmatch(text) else None
    if text[0] == "#":
        return "ticket" if _TICKET.fullmatch(text) else "topic" if _TAG.fullmatch(text) else None
    if "-" in text and _TICKET.fullmatch(text) and text.partition("-")[0] not in NO_TICKETS:
        return "ticket"
    return None


def _path_shape(text: str) -> str | None:
    name, dot, ending = text.rpartition(".")
    is_file = bool(dot) and ending.lower() in FILE_ENDINGS and not name.endswith(("(", ")"))
    if "/" in text:
        head = text.split("/", maxsplit=1)[0]
        rooted = text[0] in "/~." or head.lower() in FOLDERS
        return "file" if text.count("/") < 20 and (is_file or rooted) and len(text) > 3 else None
    if not is_file or not name or name[0].isdigit() or "(" in name:
        return None
    # Node.js is a product, index.js a file.
    return "tool" if ending == "js" and name[0].isupper() else "file"


def _code_shape(text: str) -> str | None:
    if "(" in text:
        call = _CALL.match(text)
        return "function" if call and not text.endswith(("(s)", "(es)")) else None
    if "_" in text:
        return "identifier" if _SNAKE.fullmatch(text) else None
    if _DOTTED.fullmatch(text):
        return "host" if text.rpartition(".")[2].lower() in DOMAINS else "identifier"
    if text.isalnum() and _HUMP.search(text) and not (text[:-1].isupper() and text[-1] == "s"):
        if text[:2].islower():
            return "identifier"
        return "class" if text.endswith(CLASS_ENDINGS) else "tool"
    return None


def _proper_name(words: Sequence[str], start: int) -> tuple[int, Spotted | None]:
    """A run of capitalised words from here on, and where to read on."""
    run: list[Word] = []
    while len(run) < _LONGEST_NAME:
        word = _word(words, start + len(run))
        if word is None or not _is_capital(word.text):
            break
        run.append(word)
        if word.last or word.text.endswith(("'s", "’s")):
            break
    end = start + len(run)
    if not run:
        return start + 1, None
    pause = run[-1].last
    run, cues = _trimmed(run)
    if not run:
        return end, None
    if start:
        cues.append(words[start - 1].lower())
    name = " ".join(word.text.removesuffix("'s").removesuffix("’s") for word in run)
    after = words[end].lower() if end < len(words) and not pause else ""
    kind = next((KIND_BEFORE[cue] for cue in cues if cue in KIND_BEFORE), "")
    if not kind and (not BEFORE_PERSON.isdisjoint(cues) or after in AFTER_PERSON):
        kind = "person"
    return end, _judged(name, run, kind)


def _trimmed(run: list[Word]) -> tuple[list[Word], list[str]]:
    """The run without sentence openers, titles and days, and what it lost in front."""
    cues = []
    while run:
        word = run[0].text.lower().rstrip(".")
        if not (word in TITLES or word in CALENDAR or (run[0].first and word in OPENERS)):
            break
        cues.append("met" if word in TITLES else word)  # a title is as good as "met"
        run = run[1:]
    if all(word.text.lower() in OPENERS for word in run):
        return [], cues
    return run, cues


def _is_capital(text: str) -> bool:
    return text[0].isupper() and len(text) > 1 and _NAME.fullmatch(text) is not None


def _judged(name: str, run: list[Word], kind: str) -> Spotted | None:
    head = run[0].text.lower().removesuffix("'s").removesuffix("’s")
    acronym = name.removesuffix("s")
    if len(run) == 1 and acronym.isupper():
        plain = not 3 <= len(acronym) <= 8 or acronym.lower() in PLAIN_ACRONYMS
        return None if plain else Spotted(acronym, "topic", 0.6)
    if not kind and head in GIVEN_NAMES:
        kind = "person"
    if kind:
        return Spotted(name, kind, 0.8)
    if len(run) == 1 and run[0].first:
        return None  # every sentence begins with a capital
    return Spotted(name, "other", 0.6 if run[0].first else 0.8)


def known_in(text: str, entities: Iterable[Entity]) -> Iterator[Spotted]:
    """Entities met before whose name the text writes the way names are written."""
    lower = text.lower()
    for entity in entities:
        if any(
            _is_written(name, text, lower, entity.kind) for name in (entity.name, *entity.aliases)
        ):
            yield Spotted(entity.name, entity.kind, 0.9)


def _is_written(name: str, text: str, lower: str, kind: str) -> bool:
    at = lower.find(name.lower())
    end = at + len(name)
    if at < 0 or len(name) < 3 or text[at - 1 : at].isalnum() or text[end : end + 1].isalnum():
        return False
    surface = text[at:end]
    return surface == name or kind == "person" or not surface.islower()
