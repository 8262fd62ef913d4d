"""Extract entities from text by rules: people, files, tools, tickets, identifiers."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.speakers import ROLES
from bethink.core.words import fold
from bethink.lang.words import CALENDAR_WORDS, is_ordinary, load_words, parse_mapping, stop_words
from bethink.model import Draft, Entity
from bethink.ports import Mention

_DATA: dict[str, str] = load_words("entities")


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


# lang/data/entities.toml documents each list.
GIVEN_NAMES = _words("given_names")
PERSON_TITLES = _words("person_titles")
PERSON_LABELS = _words("person_labels")
NAME_LABELS = PERSON_LABELS | _words("other_labels")
BEFORE_PERSON = _words("before_person") | {f"{label}:" for label in PERSON_LABELS}
AFTER_PERSON = _words("after_person")
AFTER_NAME = AFTER_PERSON | _words("after_name")
NAME_CONNECTORS = _words("name_connectors")
KIND_BY_PRECEDING_WORD = parse_mapping(_DATA["kind_by_preceding_word"])
COMMON_ACRONYMS = _words("common_acronyms")

MAX_ENTITIES = 12
ENTITY_KINDS = frozenset(
    {"person", "project", "tool", "file", "function", "class", "identifier", "ticket", "host"}
    | {"module", "subject", "concept", "topic", "company", "other"}
)
_MAX_WORD_CHARACTERS = 120
_MAX_NAME_WORDS = 4  # words
_VERB_ENDS = frozenset("sdteaoóé")
_FIRST_CONFIDENCE = 0.6  # every sentence begins with a capital
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
_VERSION = lazy_pattern(r"v?\d+(\.\d+)+[\w.+-]{0,20}")
_LOWERCASE_WORD = lazy_pattern(r"[a-z]+(?:['’-][a-z]+)*[.,;:!?)]*")
# "I'm" and "We’ve" are no names, "O'Brien" is one.
_NAME = lazy_pattern(r"[^\W\d_]+(?:(?:[-.]|['’](?!(?:m|d|t|ve|re|ll)$))[^\W\d_]+)*")
_KEYED = lazy_pattern(r"(.*\S)\s+<([^<>\s]{1,200})>", re.DOTALL)  # name <key>
_QUOTES = '"“”„«»‘’'
SENTENCE_ENDS = (".", "!", "?", ":", "…")
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


def extract_mentions(draft: Draft, stored: Sequence[Entity] = ()) -> tuple[Mention, ...]:
    """Return the entities that a draft mentions, at most twelve, in text order.

    ``stored`` are entities that the text may name.
    """
    entities_by_key: dict[str, Entity] = {}
    for known in stored:
        for name in (known.name, *known.aliases):
            entities_by_key.setdefault(entity_key(name), known)
    _add_keyed_entities(draft.entities, entities_by_key)
    found: dict[str, Mention] = {}
    for name, kind, confidence in _all_names(draft, stored, entities_by_key):
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
    draft: Draft, stored: Iterable[Entity], known: Container[str]
) -> Iterator[ExtractedName]:
    yield from map(parse_entity, draft.entities)
    if draft.speaker and draft.speaker.casefold() not in ROLES:
        yield ExtractedName(" ".join(draft.speaker.split()), "person", 1.0)
    yield from find_known_names(draft.text, stored)
    yield from extract_names(draft.text[:_SEARCHED_CHARACTERS], draft.language, known)


def extract_names(
    text: str, language: str | None = None, known: Container[str] = ()
) -> Iterator[ExtractedName]:
    """Yield the names found in a text, in order, possibly repeated; ``known`` has keys of names."""
    # In a text with more words that only German has every noun has a capital.
    lower, german, english = set(text.lower().split()), stop_words("de"), stop_words("en")
    is_german = language == "de" or len((lower & german) - english) > len(
        (lower & english) - german
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
                end, name = _read_proper_name(words, i, known)
            may_be_noun = name and name.kind == "other" and name.confidence > _FIRST_CONFIDENCE
            if name and not (may_be_noun and " " not in name.name and is_german):
                yield name


def _word_at(words: Sequence[str], i: int) -> TextWord | None:
    """Return the word at a position; None for a label, a sign or past the line's end.

    "Decision:" is a label; "FW-12:" is a ticket.
    """
    if not 0 <= i < len(words):
        return None
    raw = words[i]
    first = i == 0 or words[i - 1].endswith(SENTENCE_ENDS)
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
    is_label = ending.startswith(":") and (
        text.lower() in NAME_LABELS or (first and (text.isupper() or is_ordinary(text)))
    )
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
        is_lowercase = name.isalpha() and name.islower() and not is_ordinary(name)
        return ExtractedName(name, "tool", 0.8) if is_lowercase else None
    if i + 1 == len(words) or not word.text.isalpha() or is_ordinary(word.text):
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
    if "://" in text:
        host = _strip_name(text, "host")
        return "host" if "." in host and not host.replace(".", "").isdigit() else None
    return next((kind for kind, form in _FORMS if form.fullmatch(text)), None)


def _read_proper_name(
    words: Sequence[str], start: int, known: Container[str]
) -> tuple[int, ExtractedName | None]:
    """Read a run of capitalised words; return where to continue and the name."""
    run = _read_run(words, start)
    end = start + len(run)
    if not run:
        return start + 1, None
    last, ends_phrase = words[end - 1], run[-1].last
    quoted = words[start][0] in _QUOTES and last.rstrip(".,;:!?")[-1] in _QUOTES
    cues: list[str] = []
    if entity_key(_join(run)) not in known and not quoted:
        run, cues = _trim_name_run(run, known)
    cues += [words[start - 1].lower()] if start else []
    after = "" if ends_phrase else " ".join(words[end : end + 1]).lower()
    after = after.rstrip(_CLOSING_PUNCTUATION)
    kind = next((KIND_BY_PRECEDING_WORD[cue] for cue in cues if cue in KIND_BY_PRECEDING_WORD), "")
    if not kind and (not BEFORE_PERSON.isdisjoint(cues) or after in AFTER_PERSON):
        kind = "person"
    stops = stop_words("en", "de", "fr", "es", "it", "nl", "pt")
    # A verb is rather said of a name: "wants", "moved", "hat", "dejó".
    is_verb = after in AFTER_NAME or (after[-1:] in _VERB_ENDS and after not in stops)
    opens = last.endswith((":", "'s", "’s")) or (after.islower() and is_verb)
    is_title = quoted and (len(run) > 1 or run[0].text.lower() not in stops)
    return end, _classify_name(run, kind, is_title=is_title, opens=opens) if run else None


def _read_run(words: Sequence[str], start: int) -> list[TextWord]:
    """Read capitalised words and what connects them: "Lord of the Rings", "Harris & Sons"."""
    run: list[TextWord] = []
    between: list[TextWord] = []
    while len(run) < _MAX_NAME_WORDS and (word := _word_at(words, start + len(run) + len(between))):
        if word.text[0].isupper() and len(word.text) > 1 and _NAME.fullmatch(word.text):
            run, between = [*run, *between, word], []
            if word.last or word.text.endswith(("'s", "’s")):
                break
        elif run and word.text in NAME_CONNECTORS and not run[-1].text[1:2].isupper():
            between.append(word)
        else:
            break
    return run


def _join(run: Iterable[TextWord]) -> str:
    return " ".join(word.text.removesuffix("'s").removesuffix("’s") for word in run)


def _trim_name_run(run: list[TextWord], known: Container[str]) -> tuple[list[TextWord], list[str]]:
    """Strip an ordinary first word, titles and days from a run; also return what was stripped."""
    cues: list[str] = []
    while run:
        word = run[0].text.lower().rstrip(".")
        opens = run[0].first and (is_ordinary(word) or entity_key(_join(run[1:])) in known)
        stripped = word in PERSON_TITLES or word in CALENDAR_WORDS or run[0].text in NAME_CONNECTORS
        if not stripped and (cues or not opens):
            break
        cues.append("met" if word in PERSON_TITLES else word)  # a title is as good as "met"
        run = run[1:]
    return run, cues


def _classify_name(
    run: Sequence[TextWord], kind: str, *, is_title: bool, opens: bool
) -> ExtractedName | None:
    """Return the name that a run is, if it is one; ``opens``: a sentence may begin with it."""
    name, single, first = _join(run), len(run) == 1, run[0].first
    ordinary = not is_title and all(map(is_ordinary, name.split()))
    acronym = name.removesuffix("s")
    if acronym.isupper() and (single or ordinary):
        is_topic = acronym.isalpha() and acronym.lower() not in COMMON_ACRONYMS and not ordinary
        return ExtractedName(acronym, "topic", 0.6) if is_topic and 2 < len(acronym) < 9 else None
    if kind or name.split()[0].lower() in GIVEN_NAMES:
        return ExtractedName(name, kind or "person", 0.8)
    if single and (ordinary or (first and not (opens or is_title))):
        return None
    return ExtractedName(name, "other", _FIRST_CONFIDENCE if first else 0.8)


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
