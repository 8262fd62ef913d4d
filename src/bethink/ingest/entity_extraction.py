"""Extract entities from text by rules: people, files, tools, tickets, identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bethink.core.text import ROLES, fold
from bethink.model import Draft, Entity
from bethink.ports import Mention

# Words that open sentences, labels and headings; capitalised they are still no names.
_OPENER_WORDS = """
a about above across act actually add adds after again against ago all allow almost along already
also although always am among an and another any anyone anything apply are aren't around as ask at
avoid back backend based be because been before behind being below beneath best better between
beyond both bring build builds but by call called can can't cannot careful caveat change changed
changes check choose clean client close code come commit compare concerning config configure
consider context continue could couldn't create current currently customer customers data database
date day dear debug decide decided decision default define delete deploy deployed deployment
describe design despite did didn't disable do docs documentation does doesn't doing don't done
down drop due during each early easy edit either else enable end enough ensure error errors
especially even ever every everyone everything everybody example except expect explain export
extend fact fail failed failing feature file files final finally find first fix fixed fixes focus
follow for forget former found from frontend full further general get gets give given go goal
goals going good got great had half has hasn't have haven't having he he's hello help hence her
here here's hers hey hi high him his hold how however i i'd i'll i'm i've idea if implement import
important in include including increase indeed info input inside insight install instead
integration into is isn't issue issues it it's item its itself just keep key last later latest
learn learned learning least leave lesson less let let's like likely limit limits line list little
load local log logs long look low made main maintain major make makes making manager many maybe me
mean means meanwhile measure meeting memory merge message metrics might migrate mind mine minor
miss missing mode more most mostly mount move moved much must my myself name near need needed
needs neither never new next nice no nobody none nor not note notes nothing now number obviously
of off often oh ok okay old on once one ones only onto open option or order other others otherwise
our ours out output outside over overall own owner page part past people per perhaps place plan
please point possible prefer preference present prevent previous print prior probably problem
product production project provide pull push put question quick quickly quite rather read ready
really reason recall recent recently record reduce refactor regarding release remember remind
remove rename replace report request require required reset restart result results return returns
review right role root rotate rule rules run running runs same save say says schedule search
second section see seems select send sent sentence server service services set sets several shall
she she's ship should show shows side simple since single sir skip small so some somebody someone
something sometimes soon sorry source staging standard start started state status stay step still
stop store stored such sum summary support sure switch system table tag take task tasks team tell
term test tested testing tests than thank thanks that that's the their theirs them then there
there's therefore these they they're thing things think third this those though three through
throughout thus ticket time tip title to today todo together tomorrow tonight too tool tools
toward track try turn two type under unfortunately unless until up update updated updates upgrade
upon us use used user users uses using usually value verify version very via view visit wait walk
want wants warning was wasn't watch way we we'll we're we've week well went were weren't what
what's whatever when whenever where whereas wherever whether which while who who's whoever whole
whom whose why will wish with within without won't word work worked working works worth would
wouldn't write wrong yeah year yes yesterday yet you you'd you'll you're you've your yours mr mrs
ms dr prof sir madam
"""
_CALENDAR_WORDS = """
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
monday tuesday wednesday thursday friday saturday sunday
mondays tuesdays wednesdays thursdays fridays saturdays sundays
"""
CALENDAR_NAMES = frozenset(_CALENDAR_WORDS.split())
SENTENCE_OPENERS = frozenset(_OPENER_WORDS.split()) | CALENDAR_NAMES
# German writes every noun with a capital; two of these words give the language away.
_GERMAN_WORDS = "der die das und ist nicht ein eine den dem mit für auf von zu im wir ich sind wird"
GERMAN_FUNCTION_WORDS = frozenset(_GERMAN_WORDS.split())

_GIVEN_NAME_WORDS = """
aaron abdul abigail adam adrian agnes ahmed aiko akira alan albert alejandro alex alexander
alexandra alexei ali alice alicia alina amanda amara amelia amina amir amy ana anastasia anders
andre andrea andreas andrew andy angela anil anita anja ann anna anne annika anthony anton antonio
arjun arthur astrid audrey aylin barbara bart beatrice ben benjamin bernard beth bianca bill bjorn
bob boris brad brandon brenda brian bruno camila carla carlos carmen carol caroline catherine
cecilia chan chandra charles charlie charlotte chen chiara chloe chris christian christina
christine christopher claire clara claudia clemens colin connor cristina cynthia dan daniel
daniela danielle darius dave david deborah deepak denis dennis derek diana diego dieter dimitri
dmitri dominic donald donna doris dorothy douglas duncan dylan eduardo edward elena eleanor eli
elias elif elijah elisa elizabeth ella ellen emil emilia emily emma eric erik erika esther ethan
eugene eva evelyn fabian farah fatima felicia felix fernando filip fiona florian frances francesca
francis francois frank franziska fred frederick gabriel gabriela gary george georgia gerald gianni
gina giovanni giulia gloria gordon grace graham greg gregory greta guillaume gunther gustav guy
hana hannah hans haruto harry hassan heather hector heidi helen helena henrik henry herbert hideo
hiroshi holger hugo ian ibrahim igor ilona imran ines ingrid irene iris isaac isabel isabella ivan
jack jacob jacques jake james jamie jan jane janet jasmine jason javier jean jeff jeffrey jennifer
jens jeremy jerry jesse jessica jill jim jin joan joanna joao joe joel johan johanna john johnny
jon jonas jonathan jordan jorge jose josef joseph joshua juan judith judy julia julian julie julio
jun jurgen justin kai karen karim karin karl kate katherine kathleen katja katrin kavita keiko
keith kelly ken kenji kenneth kevin khalid kim klaus kristina kumar kyle lara larry lars laszlo
laura lauren lea leah lena leo leon leonard leonie leslie li liam lily lin linda lisa logan lorena
lorenzo louis louise luca lucas lucia lucy luis luisa lukas luke luna madeleine magda magnus malik
manuel marc marco marcos marcus margaret maria mariam marie marina mario marion marius mark markus
marta martha martin martina mary mateo mathias mathilde matt matteo matthew matthias maurice max
maximilian maya megan mei melanie melissa mia michael michel michelle miguel mika mike mila milan
miles miriam mohamed mohammed moira monica monika morgan mustafa nadia nancy naomi natalia natalie
natasha nathan neha neil nicholas nick nicolas nicole nigel nikhil nikita nikolai nils nina noah
noor nora norbert norman olaf oleg olga oliver olivia omar oscar osman otto pablo pamela paola
pascal patricia patrick paul paula pauline pavel pedro peggy penelope peter petra phil philip
philipp pierre piotr pooja priya rachel rafael rahul raj rajesh ralf ralph ramon raul ravi raymond
rebecca reinhard rene renata ricardo richard rita robert roberto robin rodrigo roger rohan roland
roman romy ron ronald rosa rose rowan roy ruben rudolf russell ruth ryan sabine sabrina said
sakura salma sam samantha samir samuel sandra sandy sanjay sara sarah sascha scott sean sebastian
selma serena sergei sergio shane shannon sharon shaun sheila shinji silvia simon simone sofia
sonia sophia sophie stacy stefan stefanie stella stephanie stephen steve steven stuart sue sunita
susan susanne sven sylvia takeshi tamara tanja tanya tara tariq tatiana ted teresa terry theo
theodore theresa thomas tim timo timothy tina tobias todd tom tomas tomasz toni tony tracy tyler
ulrich ursula uwe valentina valeria vanessa vera verena veronica victor victoria vijay vikram
vincent viola virginia vivian vladimir walter wang wanda wei wendy werner william wolfgang xavier
xin yan yara yasmin yi yolanda yuki yuri yusuf yves yvonne zara zoe
"""
GIVEN_NAMES = frozenset(_GIVEN_NAME_WORDS.split())

PERSON_TITLES = frozenset({"mr", "mrs", "ms", "dr", "prof", "professor", "sir", "madam"})
_BEFORE_PERSON_WORDS = (
    "met told asked colleague friend named sister brother wife husband son daughter boss mother"
)
# Labels that stand before a name, with a colon, and those that somebody's name follows.
PERSON_LABELS = frozenset({"owner", "author", "assignee", "reviewer", "contact", "lead", "name"})
NAME_LABELS = PERSON_LABELS | {
    "role",
    "position",
    "title",
    "team",
    "company",
    "employer",
    "department",
}
BEFORE_PERSON = (
    frozenset(_BEFORE_PERSON_WORDS.split())
    | {"father", "cc", "cousin", "partner", "uncle", "aunt"}
    | {f"{label}:" for label in PERSON_LABELS}
)
# What the word before a name says about it.
KIND_BY_PRECEDING_WORD = {"project": "project", "repo": "project", "repository": "project"}
KIND_BY_PRECEDING_WORD |= dict.fromkeys(
    ("customer", "client", "company", "vendor", "team"), "other"
)
_AFTER_PERSON_WORDS = """
said says told asked thinks prefers likes wants lives works joined left wrote suggested agreed
complained mentioned loves hates believes reported insists moved plays reviewed approved owns
"""
AFTER_PERSON = frozenset(_AFTER_PERSON_WORDS.split())
_CLASS_SUFFIX_WORDS = """
Error Exception Warning Server Client Service Exporter Importer Handler Manager Factory Builder
Parser Reader Writer Loader Store Controller Provider Adapter Worker Model View Config Settings
Test Case Queue Cache Pool Engine Runner Context Request Response Repository Middleware Listener
Session
"""
CLASS_SUFFIXES = tuple(_CLASS_SUFFIX_WORDS.split())
_COMMON_ACRONYM_WORDS = (
    "api url http https json sql xml html css todo note faq asap fyi eta ok id ui ux ci cd pr"
)
# Known to everyone, so nothing is gained by linking memories through them.
COMMON_ACRONYMS = frozenset(_COMMON_ACRONYM_WORDS.split()) | frozenset(
    {"utc", "gmt", "pdf", "csv", "cpu", "gpu", "ram", "and", "not", "the", "or", "no", "yes", "all"}
    | {"usa", "am", "pm", "vs", "etc", "warn", "info", "error", "debug", "fixme", "tbd", "wip"}
)
NON_TICKET_PREFIXES = frozenset(
    {
        "UTF",
        "ISO",
        "SHA",
        "MD",
        "RFC",
        "COVID",
        "HTTP",
        "GPT",
        "AES",
        "RSA",
        "RS",
        "HS",
        "ES",
        "IEEE",
    }
    | {"TLS", "SSL", "PEP", "IPV", "EC", "MP", "USB", "BASE", "FP", "INT", "UTC", "GMT", "Q", "H"}
)
TOP_LEVEL_DOMAINS = frozenset(
    {"com", "org", "net", "io", "dev", "ai", "co", "app", "edu", "gov", "eu", "de"}
)
_FILE_SUFFIX_WORDS = """
py pyi js jsx ts tsx mjs md rst txt json jsonl toml yaml yml ini cfg conf env lock rs go java kt c h
cc cpp hpp cs rb php swift scala sh bash zsh ps1 bat sql db sqlite csv tsv parquet html css scss vue
svelte xml svg png jpg jpeg gif pdf docx xlsx ipynb proto tf dockerfile gradle log zip gz tar whl
"""
FILE_SUFFIXES = frozenset(_FILE_SUFFIX_WORDS.split())
_FOLDER_WORDS = (
    "src lib tests test docs bin etc app apps cmd pkg packages scripts config internal var usr"
)
FOLDER_NAMES = frozenset(_FOLDER_WORDS.split()) | {
    "home",
    "opt",
    "tmp",
    "node_modules",
    "public",
    "bench",
}

MAX_ENTITIES = 12
ENTITY_KINDS = frozenset(
    {"person", "project", "tool", "file", "function", "class", "identifier", "ticket", "host"}
    | {"module", "subject", "concept", "topic", "other"}
)
_MAX_WORD_CHARACTERS = 120
_MAX_NAME_WORDS = 4  # words
_CODE_KINDS = frozenset({"identifier", "class", "function", "tool", "module", "project", "file"})
_SEARCHED_CHARACTERS = 20_000  # characters: twelve entities are found long before

_TICKET = re.compile(r"#\d{1,7}|[A-Z][A-Z0-9]{1,9}-\d{1,7}")
_HANDLE = re.compile(r"@[A-Za-z][\w.-]{1,60}")
_HASHTAG = re.compile(r"#[^\W\d_][\w-]{1,60}")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_CALL = re.compile(r"([A-Za-z_][\w.:]{2,})\(")
_SNAKE = re.compile(r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}|__[a-z]+__")
_DOTTED = re.compile(r"[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+")
_CAMEL_CASE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VERSION = re.compile(r"v?\d+(\.\d+)+[\w.+-]{0,20}")
_LOWERCASE_WORD = re.compile(r"[a-z]+(?:['’-][a-z]+)*[.,;:!?)]*")
_NAME = re.compile(r"[^\W\d_]+(?:[-'’.][^\W\d_]+)*")
_OPENING_PUNCTUATION = "\"'`([{<*“‘«_"
_CLOSING_PUNCTUATION = "\"'`.,;:!?)]}>*”’»…"


class TextWord(NamedTuple):
    """A word without its punctuation; ``first`` in a sentence, ``last`` before a pause."""

    text: str
    first: bool
    last: bool
    code: bool


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
    for old in stored:
        for name in (old.name, *old.aliases):
            entities_by_key.setdefault(entity_key(name), old)
    found: dict[str, Mention] = {}
    for name, kind, confidence in _all_names(draft, stored):
        key = entity_key(name)
        entity = entities_by_key.get(key)
        if entity is None and kind in _CODE_KINDS:
            entity = next(
                (entities_by_key[one] for one in code_spellings(name) if one in entities_by_key),
                None,
            )
            if entity is not None:
                entity = entities_by_key[key] = entity._replace(aliases=(*entity.aliases, key))
        if entity is None:
            entity = Entity(f"{kind}:{key}", kind, name)
            entities_by_key[key] = entity
        found.setdefault(entity.id, Mention(entity, confidence))
        if len(found) == MAX_ENTITIES:
            break
    return tuple(found.values())


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
    """Parse an entity given as ``kind:name``, with a label ("Role: Ana"), or by name."""
    kind, colon, name = text.partition(":")
    label = kind.strip().lower()
    if colon and label in ENTITY_KINDS and name.strip():
        return ExtractedName(" ".join(name.split()), label, 1.0)
    if colon and label in NAME_LABELS and name.strip():
        return ExtractedName(
            " ".join(name.split()), "person" if label in PERSON_LABELS else "other", 1.0
        )
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
        done = 0
        for i, raw in enumerate(words):
            # Most words end here: small letters alone are no name.
            if i < done or (raw.islower() and (raw.isalpha() or _LOWERCASE_WORD.fullmatch(raw))):
                continue
            word = _word_at(words, i)
            if word is None:
                continue
            name = _name_by_shape(word) or _name_by_version(word, words, i)
            if name is None:
                done, name = _read_proper_name(words, i)
            if name and not (nouns_are_capital and name.kind == "other"):
                yield name


def _word_at(words: Sequence[str], i: int) -> TextWord | None:
    """Return the word at a position; None for a label, a sign or past the line's end.

    "Decision:" is a label; "FW-12:" is a ticket.
    """
    if not 0 <= i < len(words):
        return None
    raw = words[i]
    bare = raw.lstrip(_OPENING_PUNCTUATION)
    text = bare.rstrip(_CLOSING_PUNCTUATION)
    if raw.startswith(("__", "/", "~/", "./", "../")) or bare.startswith("."):
        text = raw.rstrip(_CLOSING_PUNCTUATION)
        bare = raw
    ending = bare[len(text) :]
    if "(" in text and ")" in ending:
        text += ")"
    first = i == 0 or words[i - 1].endswith((".", "!", "?", ":")) or len(words[i - 1]) == 1
    is_label = ending.startswith(":") and (first or text.lower() in NAME_LABELS)
    if not text or (is_label and not _TICKET.fullmatch(text)):
        return None
    return TextWord(text, first, bool(ending), raw.startswith("`"))


def _name_by_shape(word: TextWord) -> ExtractedName | None:
    """Recognise a name by the shape of a single word."""
    text = word.text
    if len(text) > _MAX_WORD_CHARACTERS or len(text) < 2:
        return None
    kind = _kind_by_sign(text) or _kind_by_path(text) or _kind_by_code_style(text)
    if kind is None and word.code and text.isidentifier():
        kind = "identifier"
    return ExtractedName(_strip_name(text, kind), kind, 0.9) if kind else None


def _name_by_version(word: TextWord, words: Sequence[str], i: int) -> ExtractedName | None:
    """Recognise a tool by the version after its name; lower case needs a full 1.2.3."""
    if i and word.text.count(".") > 1 and _VERSION.fullmatch(word.text):
        name = words[i - 1]
        small = name.isalpha() and name.islower() and name not in SENTENCE_OPENERS
        return ExtractedName(name, "tool", 0.8) if small else None
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


def _read_proper_name(words: Sequence[str], start: int) -> tuple[int, ExtractedName | None]:
    """Read a run of capitalised words; return where to continue and the name."""
    run: list[TextWord] = []
    while len(run) < _MAX_NAME_WORDS:
        word = _word_at(words, start + len(run))
        if word is None or not _is_capitalised_name(word.text):
            break
        run.append(word)
        if word.last or word.text.endswith(("'s", "’s")):
            break
    end = start + len(run)
    if not run:
        return start + 1, None
    pause = run[-1].last
    run, cues = _trim_name_run(run)
    if not run:
        return end, None
    if start:
        cues.append(words[start - 1].lower())
    name = " ".join(word.text.removesuffix("'s").removesuffix("’s") for word in run)
    after = words[end].lower() if end < len(words) and not pause else ""
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
            or word in CALENDAR_NAMES
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
