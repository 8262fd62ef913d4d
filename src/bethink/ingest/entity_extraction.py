"""Extract entities from text: names by a model; files, tickets, identifiers by their form."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from bethink.core.characters import strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.speakers import ROLES
from bethink.core.words import fold
from bethink.lang.words import is_ordinary, load_words
from bethink.model import Draft, Entity
from bethink.ports import FindNames, FoundName, Mention

_DATA: dict[str, str] = load_words("entities")


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


# lang/data/entities.toml documents each list.
PERSON_TITLES = _words("person_titles")
PERSON_LABELS = _words("person_labels")
NAME_LABELS = PERSON_LABELS | _words("other_labels")
COMMON_ACRONYMS = _words("common_acronyms")

MAX_ENTITIES = 12
ENTITY_KINDS = frozenset(
    {"person", "project", "tool", "file", "function", "class", "identifier", "ticket", "host"}
    | {"module", "subject", "concept", "topic", "company", "place", "other"}
)
_MAX_NAME_CHARACTERS = 120
# Names without a capital must be surer: most such words are none. Chosen on lines kept back.
_MIN_PROBABILITY, _MIN_LOWER_PROBABILITY = 0.8, 0.97
_CODE_KINDS = frozenset({"identifier", "class", "function", "tool", "module", "project", "file"})
_SEARCHED_CHARACTERS = 20_000  # characters: twelve entities are found long before

_OR = {name: "|".join(words.split()) for name, words in _DATA.items()}
_TICKET = lazy_pattern(
    rf"#\d{{1,7}}|(?!(?:{_OR['non_ticket_prefixes']})-)[A-Z][A-Z0-9]{{1,9}}-\d{{1,7}}"
)
_DOTTED = r"[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)*"
_CAMEL_CASE = r"(?![A-Z\d]+s?$)[^\W_]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z])[^\W_]*"
# The kinds of names that a word's form tells; the first that fits counts.
_FORMS = (
    ("person", lazy_pattern(r"@[A-Za-z][\w.-]{1,60}|[\w.+-]{1,64}@[\w.-]{1,253}\.[^\W\d_][\w-]+")),
    ("ticket", _TICKET),
    ("topic", lazy_pattern(r"#[^\W\d_][\w-]{1,60}")),
    ("tool", lazy_pattern(r"[A-Z][^/()]*\.js")),  # Node.js is a product, index.js a file
    ("file", lazy_pattern(
        rf"(?=.{{4}})(?=[^/]*/)(?!(?:[^/]*/){{20}})(?:[/~.]|(?i:{_OR['folder_names']})/).*"
        rf"|(?:[^\d/()]|[^()]*/)[^()]*\.(?i:{_OR['file_suffixes']})"
    )),
    ("function", lazy_pattern(r"(?!.*\(e?s\)$)[A-Za-z_][\w.:]{2,}\(.*")),
    ("identifier", lazy_pattern(r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}|__[a-z]+__")),
    ("host", lazy_pattern(rf"{_DOTTED}\.(?i:{_OR['top_level_domains']})")),
    ("identifier", lazy_pattern(rf"{_DOTTED}\.[A-Za-z_]\w+|(?=[a-z][a-z\d]){_CAMEL_CASE}")),
    ("class", lazy_pattern(rf"(?=.*(?:{_OR['class_suffixes']})$){_CAMEL_CASE}")),
    ("tool", lazy_pattern(_CAMEL_CASE)),
)  # fmt: skip
_CAMEL_BOUNDARY = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS = lazy_pattern(r"\S+")
_VERSION = lazy_pattern(r"v?\d+(\.\d+)+[\w.+-]{0,20}")
_KEYED = lazy_pattern(r"(.*\S)\s+<([^<>\s]{1,200})>", re.DOTALL)  # name <key>
SENTENCE_ENDS = (".", "!", "?", ":", "…")
_OPENING_PUNCTUATION = "\"'`([{<*“‘«_"
_CLOSING_PUNCTUATION = "\"'`.,;:!?)]}>*”’»…"

_Span = tuple[int, int]


class ExtractedName(NamedTuple):
    """A name found in a text, its probable kind and the confidence."""

    name: str
    kind: str
    confidence: float


def extract_mentions(
    draft: Draft, stored: Sequence[Entity] = (), find: FindNames | None = None
) -> tuple[Mention, ...]:
    """Return the entities that a draft mentions, at most twelve, in text order.

    ``stored`` are entities that the text may name; ``find`` is the model of names.
    """
    entities_by_key: dict[str, Entity] = {}
    for known in stored:
        for name in (known.name, *known.aliases):
            entities_by_key.setdefault(entity_key(name), known)
    _add_keyed_entities(draft.entities, entities_by_key)
    found: dict[str, Mention] = {}
    for name, kind, confidence in _all_names(draft, stored, find):
        key = entity_key(name)
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


def _all_names(
    draft: Draft, stored: Iterable[Entity], find: FindNames | None
) -> Iterator[ExtractedName]:
    yield from map(parse_entity, draft.entities)
    if draft.speaker and draft.speaker.casefold() not in ROLES:
        yield ExtractedName(" ".join(draft.speaker.split()), "person", 1.0)
    yield from find_known_names(draft.text, stored)
    yield from extract_names(draft.text[:_SEARCHED_CHARACTERS], find)


def extract_names(text: str, find: FindNames | None) -> list[ExtractedName]:
    """Return the names found in a text, in order, possibly repeated.

    The form of a word tells files, identifiers, addresses and tickets; ``find`` finds the
    names that only a reader knows, of people, companies, products, projects and places.
    """
    found = dict(_names_by_form(text))
    forms = list(found)  # in order, and none overlaps another
    begins, ends = [begin for begin, _ in forms], [end for _, end in forms]
    for span, name in _names_by_reading(text, find(text)) if find else ():
        around = forms[bisect_right(ends, span[0]) : bisect_left(begins, span[1])]
        inside = [place for place in around if place in found]
        # Of "GitHub" the form only tells that it is a name.
        if all(found[place].kind in ("tool", "topic") for place in inside):
            for place in inside:
                del found[place]
            found[span] = name
    return [found[span] for span in sorted(found)]


def _names_by_form(text: str) -> Iterator[tuple[_Span, ExtractedName]]:
    """Yield where a name is that a word's own form or the version after it tells."""
    before: re.Match[str] | None = None
    for raw in _WORDS.finditer(text):
        if raw[0].islower() and raw[0].isalpha():
            before = raw  # most words
            continue
        word = _strip_punctuation(raw[0])
        version = before and _VERSION.fullmatch(word)
        if before and version and _is_versioned(before[0], word):
            yield before.span(), ExtractedName(before[0], "tool", 0.9)
        elif 1 < len(word) <= _MAX_NAME_CHARACTERS:
            kind = _kind_by_form(word)
            if kind is None and raw[0].startswith("`") and word.isidentifier():
                kind = "identifier"
            if kind:
                begin = raw.start() + raw[0].find(word)
                yield (begin, begin + len(word)), ExtractedName(_strip_name(word, kind), kind, 0.9)
        before = raw


def _strip_punctuation(raw: str) -> str:
    """Return a word without the punctuation around it; a path begins with its own."""
    bare = raw.lstrip(_OPENING_PUNCTUATION)
    if raw.startswith(("__", "/", "~/", "./", "../")) or bare.startswith("."):
        bare = raw
    word = bare.rstrip(_CLOSING_PUNCTUATION)
    return word + ")" if "(" in word and ")" in bare[len(word) :] else word


def _is_versioned(name: str, version: str) -> bool:
    """Tell whether a tool's version follows its name; lower case needs a full 1.2.3."""
    is_clear = name[:1].isupper() or version.count(".") > 1
    is_name = name.isalpha() and len(name) <= _MAX_NAME_CHARACTERS
    return is_clear and is_name and not is_ordinary(name)


def _names_by_reading(
    text: str, names: Iterable[FoundName]
) -> Iterator[tuple[_Span, ExtractedName]]:
    """Yield the names that are sure enough; what is a symbol its form tells better."""
    for begin, end, kind, probability in names:
        name = " ".join(strip_hidden(text[begin:end]).split())
        is_lower = name.islower()
        limit = _MIN_LOWER_PROBABILITY if is_lower else _MIN_PROBABILITY
        if probability < limit or (is_lower and not name.replace(" ", "").isalpha()):
            continue
        if len(name) > _MAX_NAME_CHARACTERS or not any(map(str.isalpha, name)):
            continue  # a date is no place
        words = name.split()
        while words and _only_describes(words[0], kind, is_last=len(words) == 1):
            del words[0]
        if words and text.startswith(":", end) and words[-1].lower() in NAME_LABELS:
            del words[-1]  # "Owner: Ana Role: Backend"
        if words and kind != "symbol":
            yield (begin, end), ExtractedName(" ".join(words), kind, round(probability, 2))


def _only_describes(word: str, kind: str, *, is_last: bool) -> bool:
    """Tell whether a word is a title ("Dr.") or a noun before the name ("project Falcon")."""
    if kind == "person" and word.lower().rstrip(".") in PERSON_TITLES:
        return True
    return not is_last and len(word) > 3 and word.islower() and is_ordinary(word)


def _strip_name(text: str, kind: str) -> str:
    if kind == "host" and "://" in text:
        host = text.partition("://")[2].split("/")[0].split("?")[0].rpartition("@")[2]
        return host.partition(":")[0].removeprefix("www.")
    if kind == "function":
        return text.partition("(")[0]
    if kind in ("person", "topic"):
        bare = text.lstrip("@#")
        return bare.removesuffix("s") if bare[:-1].isupper() else bare
    return text


@lru_cache(maxsize=4_096)
def _kind_by_form(text: str) -> str | None:
    """Return the kind of name that a word's own form tells; words come again and again."""
    if "://" in text:
        host = _strip_name(text, "host")
        return "host" if "." in host and not host.replace(".", "").isdigit() else None
    kind = next((kind for kind, form in _FORMS if form.fullmatch(text)), None)
    acronym = text.removesuffix("s")
    is_acronym = acronym.isalpha() and acronym.isupper() and 2 < len(acronym) < 9
    if kind or not is_acronym or acronym.lower() in COMMON_ACRONYMS or is_ordinary(acronym):
        return kind
    return "topic"


def find_known_names(text: str, entities: Iterable[Entity]) -> Iterator[ExtractedName]:
    """Yield stored entities whose name the text spells as a name, not inside of a longer one."""
    lower = text.lower()
    for entity in entities:
        for name in (entity.name, *entity.aliases):
            at = lower.find(name.lower())
            end = at + len(name)
            if at < 0 or len(name) < 3 or text[at - 1 : at].isalnum() or text[end:][:1].isalnum():
                continue
            is_sure = text[at:end] == name or not text[at:end].islower()
            if is_sure or (entity.kind != "other" and not is_ordinary(name)):
                lower = lower.replace(name.lower(), "\n" * len(name))
                yield ExtractedName(entity.name, entity.kind, 0.9)
                break
