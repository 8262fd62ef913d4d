"""Extract entities from text by rules: people, files, tools, tickets, identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.speakers import ROLES
from bethink.core.words import fold
from bethink.lang.words import CALENDAR_NAMES, RECURRING_WEEKDAYS, load_words, parse_mapping
from bethink.model import Draft, Entity
from bethink.ports import Mention

_DATA: dict[str, str] = load_words("entities")


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


# lang/data/entities.toml documents each list.
CALENDAR_WORDS = CALENDAR_NAMES | RECURRING_WEEKDAYS
SENTENCE_OPENERS = _words("sentence_openers") | CALENDAR_WORDS
GERMAN_FUNCTION_WORDS = _words("german_function_words")
GIVEN_NAMES = _words("given_names")
PERSON_TITLES = _words("person_titles")
PERSON_LABELS = _words("person_labels")
NAME_LABELS = PERSON_LABELS | _words("other_labels")
BEFORE_PERSON = _words("before_person") | {f"{label}:" for label in PERSON_LABELS}
AFTER_PERSON = _words("after_person")
KIND_BY_PRECEDING_WORD = parse_mapping(_DATA["kind_by_preceding_word"])
CLASS_SUFFIXES = tuple(_DATA["class_suffixes"].split())
COMMON_ACRONYMS = _words("common_acronyms")
NON_TICKET_PREFIXES = _words("non_ticket_prefixes")
TOP_LEVEL_DOMAINS = _words("top_level_domains")
FILE_SUFFIXES = _words("file_suffixes")
FOLDER_NAMES = _words("folder_names")

MAX_ENTITIES = 12
ENTITY_KINDS = frozenset(
    {"person", "project", "tool", "file", "function", "class", "identifier", "ticket", "host"}
    | {"module", "subject", "concept", "topic", "company", "other"}
)
_MAX_WORD_CHARACTERS = 120
_MAX_NAME_WORDS = 4  # words
_CODE_KINDS = frozenset({"identifier", "class", "function", "tool", "module", "project", "file"})
_SEARCHED_CHARACTERS = 20_000  # characters: twelve entities are found long before

_TICKET = lazy_pattern(r"#\d{1,7}|[A-Z][A-Z0-9]{1,9}-\d{1,7}")
_HANDLE = lazy_pattern(r"@[A-Za-z][\w.-]{1,60}")
_HASHTAG = lazy_pattern(r"#[^\W\d_][\w-]{1,60}")
_MAIL = lazy_pattern(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_CALL = lazy_pattern(r"([A-Za-z_][\w.:]{2,})\(")
_SNAKE = lazy_pattern(r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}|__[a-z]+__")
_DOTTED = lazy_pattern(r"[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+")
_CAMEL_CASE = lazy_pattern(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_CAMEL_BOUNDARY = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_VERSION = lazy_pattern(r"v?\d+(\.\d+)+[\w.+-]{0,20}")
_LOWERCASE_WORD = lazy_pattern(r"[a-z]+(?:['’-][a-z]+)*[.,;:!?)]*")
# "I'm" and "We’ve" are no names, "O'Brien" is one.
_NAME = lazy_pattern(r"[^\W\d_]+(?:(?:[-.]|['’](?!(?:m|d|t|ve|re|ll)$))[^\W\d_]+)*")
_KEYED = lazy_pattern(r"(.*\S)\s+<([^<>\s]{1,200})>", re.DOTALL)  # name <key>
_OPENING_PUNCTUATION = "\"'`([{<*“‘«_"
_CLOSING_PUNCTUATION = "\"'`.,;:!?)]}>*”’»…"


class TextWord(NamedTuple):
    """A word without its punctuation; ``first`` in a sentence, ``last`` before a pause."""

    text: str
    first: bool
    last: bool
    is_code: bool


class ExtractedName(NamedTuple):
    """A name found in a text, its probable kind and the confidence."""

    name: str
    kind: str
    confidence: float


def extract_mentions(
    draft: Draft, entities_by_key: dict[str, Entity], stored: Sequence[Entity] = ()
) -> tuple[Mention, ...]:
    """Return the entities that a draft mentions, at most twelve, in text order.

    ``stored`` are entities of the store that the text may name. ``entities_by_key`` is
    updated with new entities, so that one name is one entity throughout a batch.
    """
    for known in stored:
        for name in (known.name, *known.aliases):
            entities_by_key.setdefault(entity_key(name), known)
    _add_keyed_entities(draft.entities, entities_by_key)
    found: dict[str, Mention] = {}
    for name, kind, confidence in _all_names(draft, stored):
        key = entity_key(name)
        # The capital of a sentence's first word tells nothing: "Wow Jon" is Jon, if he is known.
        if confidence < 0.8 and key not in entities_by_key:
            rest = key.partition(" ")[2]
            key = rest if rest in entities_by_key else key
        entity = entities_by_key.get(key)
        forms = code_spellings(name) if entity is None and kind in _CODE_KINDS else ()
        if known_forms := [form for form in forms if form in entities_by_key]:
            spelt = entities_by_key[known_forms[0]]
            entity = entities_by_key[key] = spelt._replace(aliases=(*spelt.aliases, key))
        if entity is None:
            entity = Entity(f"{kind}:{key}", kind, name)
            entities_by_key[key] = entity
        found.setdefault(entity.id, Mention(entity, confidence))
        if len(found) >= max(MAX_ENTITIES, len(draft.entities)):  # all that were given
            break
    return tuple(found.values())


def _add_keyed_entities(given: Iterable[str], entities_by_key: dict[str, Entity]) -> None:
    """Add the entities that are given with a key, with key and name as aliases of one entity."""
    for text in given:
        key = canonical_key(text)
        if key:
            name, kind, _ = parse_entity(text)
            own = entity_key(name)
            entity = entities_by_key.get(key) or entities_by_key.get(own)
            entity = entity or Entity(f"{kind}:{own}", kind, name)
            aliases = tuple(dict.fromkeys((*entity.aliases, key, own)))
            entities_by_key[key] = entities_by_key[own] = entity._replace(aliases=aliases)


def canonical_key(text: str) -> str:
    """Return the key of an entity given as ``kind:name <key>``: an address, a domain, a path."""
    keyed = _KEYED.fullmatch(text.strip())
    return entity_key(keyed[2]) if keyed else ""


def entity_key(name: str) -> str:
    """Return the normalised name used in an entity's id; spellings of a name agree."""
    return fold(name) or " ".join(name.casefold().split())


def code_spellings(name: str) -> tuple[str, ...]:
    """Return the other code spellings of a compound name.

    For example PaymentGateway, payment_gateway, payment-gateway.
    """
    if not name.isascii() or " " in name or "." in name or "/" in name:
        return ()
    parts = _CAMEL_BOUNDARY.sub("_", name).lower().replace("-", "_").strip("_").split("_")
    if len(parts) < 2 or any(len(part) < 2 for part in parts) or "" in parts:
        return ()
    own = entity_key(name)
    return tuple(form for form in (sep.join(parts) for sep in ("", "_", "-")) if form != own)


def parse_entity(text: str) -> ExtractedName:
    """Parse an entity given as ``kind:name``, with a label ("Role: Ana"), or by name.

    A key after it ("Ana <ana@example.org>") is left out.
    """
    keyed = _KEYED.fullmatch(text.strip())
    text = keyed[1] if keyed else text
    kind, colon, name = text.partition(":")
    label = kind.strip().lower()
    if colon and label in ENTITY_KINDS | NAME_LABELS and name.strip():
        labelled = "person" if label in PERSON_LABELS else "other"
        kind = label if label in ENTITY_KINDS else labelled
        return ExtractedName(" ".join(name.split()), kind, 1.0)
    return ExtractedName(" ".join(text.split()), "other", 1.0)


def _all_names(draft: Draft, stored: Iterable[Entity]) -> Iterator[ExtractedName]:
    yield from map(parse_entity, draft.entities)
    if draft.speaker and draft.speaker.casefold() not in ROLES:
        yield ExtractedName(" ".join(draft.speaker.split()), "person", 1.0)
    yield from find_known_names(draft.text, stored)
    yield from extract_names(draft.text[:_SEARCHED_CHARACTERS], draft.language)


def extract_names(text: str, language: str | None = None) -> Iterator[ExtractedName]:
    """Yield the names found in a text, in order, possibly repeated."""
    nouns_are_capital = (
        language == "de" or len(GERMAN_FUNCTION_WORDS.intersection(text.lower().split())) > 1
    )
    for line in text.splitlines():
        words = line.split()
        end = 0
        for i, raw in enumerate(words):
            # Fast path: a word in lower case is no name.
            if i < end or (raw.islower() and (raw.isalpha() or _LOWERCASE_WORD.fullmatch(raw))):
                continue
            word = _word_at(words, i)
            if word is None:
                continue
            name = _name_by_shape(word) or _name_by_version(word, words, i)
            if name is None:
                end, name = _read_proper_name(word, words, i)
            if name and not (nouns_are_capital and name.kind == "other"):
                yield name


def _word_at(words: Sequence[str], i: int) -> TextWord | None:
    """Return the word at a position; None for a label, a sign or past the line's end.

    "Decision:" is a label; "FW-12:" is a ticket.
    """
    if not 0 <= i < len(words):
        return None
    raw = words[i]
    first = i == 0 or words[i - 1].endswith((".", "!", "?", ":")) or len(words[i - 1]) == 1
    if raw.isalpha():
        return TextWord(raw, first, False, False)
    bare = raw.lstrip(_OPENING_PUNCTUATION)
    text = bare.rstrip(_CLOSING_PUNCTUATION)
    if raw.startswith(("__", "/", "~/", "./", "../")) or bare.startswith("."):
        text = raw.rstrip(_CLOSING_PUNCTUATION)
        bare = raw
    ending = bare[len(text) :]
    if "(" in text and ")" in ending:
        text += ")"
    is_label = ending.startswith(":") and (first or text.lower() in NAME_LABELS)
    if not text or (is_label and not _TICKET.fullmatch(text)):
        return None
    return TextWord(text, first, bool(ending), raw.startswith("`"))


def _name_by_shape(word: TextWord) -> ExtractedName | None:
    """Recognise a name by the shape of a single word."""
    text = word.text
    if len(text) > _MAX_WORD_CHARACTERS or len(text) < 2:
        return None
    kind = _kind_by_form(text)
    if kind is None and word.is_code and text.isidentifier():
        kind = "identifier"
    return ExtractedName(_strip_name(text, kind), kind, 0.9) if kind else None


def _name_by_version(word: TextWord, words: Sequence[str], i: int) -> ExtractedName | None:
    """Recognise a tool by the version after its name; lower case needs a full 1.2.3."""
    if i and word.text.count(".") > 1 and _VERSION.fullmatch(word.text):
        name = words[i - 1]
        is_lowercase = name.isalpha() and name.islower() and name not in SENTENCE_OPENERS
        return ExtractedName(name, "tool", 0.8) if is_lowercase else None
    if i + 1 == len(words) or not word.text.isalpha() or word.text.lower() in SENTENCE_OPENERS:
        return None
    version = _VERSION.fullmatch(words[i + 1].strip(_OPENING_PUNCTUATION + _CLOSING_PUNCTUATION))
    return ExtractedName(word.text, "tool", 0.9) if version else None


def _strip_name(text: str, kind: str) -> str:
    if kind == "host" and "://" in text:
        host = text.partition("://")[2].split("/")[0].split("?")[0].rpartition("@")[2]
        return host.partition(":")[0].removeprefix("www.")
    if kind == "function":
        return text.partition("(")[0]
    if kind in ("person", "topic"):
        return text.lstrip("@#")
    return text


@lru_cache(maxsize=4_096)
def _kind_by_form(text: str) -> str | None:
    """Return the kind of name that a word's own form tells; words come again and again."""
    return _kind_by_sign(text) or _kind_by_path(text) or _kind_by_code_style(text)


def _kind_by_sign(text: str) -> str | None:
    if "://" in text:
        host = _strip_name(text, "host")
        return "host" if "." in host and not host.replace(".", "").isdigit() else None
    if text[0] == "@":
        return "person" if _HANDLE.fullmatch(text) else None
    if "@" in text:
        return "person" if _MAIL.fullmatch(text) else None
    if text[0] == "#":
        return (
            "ticket" if _TICKET.fullmatch(text) else "topic" if _HASHTAG.fullmatch(text) else None
        )
    if (
        "-" in text
        and _TICKET.fullmatch(text)
        and text.partition("-")[0] not in NON_TICKET_PREFIXES
    ):
        return "ticket"
    return None


def _kind_by_path(text: str) -> str | None:
    name, dot, ending = text.rpartition(".")
    is_file = bool(dot) and ending.lower() in FILE_SUFFIXES and not name.endswith(("(", ")"))
    if "/" in text:
        head = text.split("/", maxsplit=1)[0]
        rooted = text[0] in "/~." or head.lower() in FOLDER_NAMES
        return "file" if text.count("/") < 20 and (is_file or rooted) and len(text) > 3 else None
    if not is_file or not name or name[0].isdigit() or "(" in name:
        return None
    # Node.js is a product, index.js a file.
    return "tool" if ending == "js" and name[0].isupper() else "file"


def _kind_by_code_style(text: str) -> str | None:
    if "(" in text:
        call = _CALL.match(text)
        return "function" if call and not text.endswith(("(s)", "(es)")) else None
    if "_" in text:
        return "identifier" if _SNAKE.fullmatch(text) else None
    if _DOTTED.fullmatch(text):
        return "host" if text.rpartition(".")[2].lower() in TOP_LEVEL_DOMAINS else "identifier"
    if (
        text.isalnum()
        and _CAMEL_CASE.search(text)
        and not (text[:-1].isupper() and text[-1] == "s")
    ):
        if text[:2].islower():
            return "identifier"
        return "class" if text.endswith(CLASS_SUFFIXES) else "tool"
    return None


def _read_proper_name(
    first: TextWord, words: Sequence[str], start: int
) -> tuple[int, ExtractedName | None]:
    """Read a run of capitalised words; return where to continue and the name."""
    run: list[TextWord] = []
    word: TextWord | None = first
    while word is not None and _is_capitalised_name(word.text):
        run.append(word)
        if word.last or word.text.endswith(("'s", "’s")) or len(run) == _MAX_NAME_WORDS:
            break
        word = _word_at(words, start + len(run))
    end = start + len(run)
    if not run:
        return start + 1, None
    ends_phrase = run[-1].last
    run, cues = _trim_name_run(run)
    if not run:
        return end, None
    if start:
        cues.append(words[start - 1].lower())
    name = " ".join(word.text.removesuffix("'s").removesuffix("’s") for word in run)
    after = words[end].lower() if end < len(words) and not ends_phrase else ""
    kind = next((KIND_BY_PRECEDING_WORD[cue] for cue in cues if cue in KIND_BY_PRECEDING_WORD), "")
    if not kind and (not BEFORE_PERSON.isdisjoint(cues) or after in AFTER_PERSON):
        kind = "person"
    return end, _classify_name(name, run, kind)


def _trim_name_run(run: list[TextWord]) -> tuple[list[TextWord], list[str]]:
    """Strip openers, titles and days from a run; also return the stripped words."""
    cues = []
    while run:
        word = run[0].text.lower().rstrip(".")
        if not (
            word in PERSON_TITLES
            or word in CALENDAR_WORDS
            or (run[0].first and word in SENTENCE_OPENERS)
        ):
            break
        cues.append("met" if word in PERSON_TITLES else word)  # a title is as good as "met"
        run = run[1:]
    if all(word.text.lower() in SENTENCE_OPENERS for word in run):
        return [], cues
    return run, cues


def _is_capitalised_name(text: str) -> bool:
    return text[0].isupper() and len(text) > 1 and _NAME.fullmatch(text) is not None


def _classify_name(name: str, run: list[TextWord], kind: str) -> ExtractedName | None:
    head = run[0].text.lower().removesuffix("'s").removesuffix("’s")
    acronym = name.removesuffix("s")
    if len(run) == 1 and acronym.isupper():
        plain = not 3 <= len(acronym) <= 8 or acronym.lower() in COMMON_ACRONYMS
        return None if plain else ExtractedName(acronym, "topic", 0.6)
    if not kind and head in GIVEN_NAMES:
        kind = "person"
    if kind:
        return ExtractedName(name, kind, 0.8)
    if len(run) == 1 and run[0].first:
        return None  # every sentence begins with a capital
    return ExtractedName(name, "other", 0.6 if run[0].first else 0.8)


def find_known_names(text: str, entities: Iterable[Entity]) -> Iterator[ExtractedName]:
    """Yield stored entities whose name the text spells as a name."""
    lower = text.lower()
    for entity in entities:
        if any(
            _is_mentioned(name, text, lower, entity.kind) for name in (entity.name, *entity.aliases)
        ):
            yield ExtractedName(entity.name, entity.kind, 0.9)


def _is_mentioned(name: str, text: str, lower: str, kind: str) -> bool:
    at = lower.find(name.lower())
    end = at + len(name)
    if at < 0 or len(name) < 3 or text[at - 1 : at].isalnum() or text[end : end + 1].isalnum():
        return False
    surface = text[at:end]
    return surface == name or kind == "person" or not surface.islower()
