"""Collect the training texts from Debian packages, with their licences.

Writes ``texts.tsv.xz`` (kind, left text, right text) and ``sources.tsv`` (package, version,
pairs, the licences its copyright file names). A kind is P (two English texts that belong
together), C (what a function does and its code) or a language: a text in it and its English
original. Nothing of the evaluation sets is read. ``paragraphs.jsonl`` has paragraphs of the
help in five languages for measuring; their pages and their sentences are in no pair.
"""

from __future__ import annotations

import argparse
import bz2
import gettext
import gzip
import html
import io
import json
import lzma
import random
import re
import tarfile
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import everyday
import pyfunctions

MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
# The languages, as the archive spells them in the names of files.
LANGUAGES = {
    "de": ("de",), "fr": ("fr",), "es": ("es",), "pt": ("pt_BR", "pt"), "it": ("it",),
    "nl": ("nl",), "pl": ("pl",), "ru": ("ru",), "zh": ("zh_CN",), "ja": ("ja",),
}  # fmt: skip
# Letters without which a text is not in the language: a translation that was never made.
LETTERS = {"ru": "[а-яА-Я]", "zh": "[\u4e00-\u9fff]", "ja": "[\u3040-\u30ff\u4e00-\u9fff]"}
MEASURED = ("de", "ru", "zh", "ja")

HTML_PACKAGES = [
    "python3.11-doc",
    "postgresql-doc-15",
    "git-doc",
    "python-django-doc",
    "python-sqlalchemy-doc",
    "rust-doc",
    "apache2-doc",
    "sqlite3-doc",
    "python-flask-doc",
    "python-requests-doc",
    "python-pandas-doc",
    "bash-doc",
    "cmake-doc",
    "debian-policy",
    "developers-reference",
    "r-doc-html",
    "python-celery-doc",
    "python-tornado-doc",
    "twisted-doc",
    "python-scrapy-doc",
    "python-pytest-doc",
    "sphinx-doc",
    "python-jinja2-doc",
    "exim4-doc-html",
    "postfix-doc",
    "bind9-doc",
    "nodejs-doc",
    "lilypond-doc-html",
    "debian-faq",
    "debian-reference-en",
    "harden-doc",
    "perl-doc",
    "docker-doc",
    "icinga2-doc",
    "varnish-doc",
    "ganeti-doc",
    "libvirt-doc",
    "borgbackup-doc",
    "zsh-doc",
    "python-djangorestframework-doc",
    "ledger",
    "postgis-doc",
    "haproxy-doc",
    "gramps",
    "debian-edu-doc-en",
    "ansible",
    "mercurial-common",
    "taskwarrior",
    "git-annex",
    "vim-doc",
    "dokuwiki",
    "nginx-doc",
    "squid-common",
]
# Translated help: the same files and paragraph ids in every language.
HELP_PACKAGES = {
    "en": "libreoffice-help-en-us", "pt": "libreoffice-help-pt-br", "zh": "libreoffice-help-zh-cn",
    **{language: f"libreoffice-help-{language}" for language in LANGUAGES
       if language not in ("pt", "zh")},
}  # fmt: skip
# Translated documents whose paragraphs follow each other in the same order.
PARALLEL_PACKAGES = {
    "debian-faq": [f"debian-faq-{one}" for one in ("de", "fr", "it", "ja", "nl", "ru", "zh-cn")],
    "debian-reference-en": [
        f"debian-reference-{one}" for one in ("de", "fr", "es", "it", "ja", "pt", "zh-cn")
    ],
    "aptitude-doc-en": [f"aptitude-doc-{one}" for one in ("es", "fr", "it", "ja", "nl", "ru")],
    "installation-guide-amd64": ["installation-guide-amd64"],
    "debian-handbook": ["debian-handbook"],
    "gnome-user-docs": ["gnome-user-docs"],
}
# Message catalogues: interfaces, and the stories of a game (prose and dialogue).
CATALOGUE_PACKAGES = [
    "wesnoth-1.16-data",
    "iso-codes",
    "gnucash-common",
    "gramps",
    "homebank-data",
    "evolution-common",
    "krita-l10n",
    "wordpress-l10n",
    "inkscape",
    "kmymoney-common",
    "freeciv-data",
    "freedroidrpg-data",
    "tuxpaint-data",
    "digikam-data",
    "kstars-data",
    "phpmyadmin",
    "zim",
    "shotwell-common",
    "gnome-calendar",
    "mediawiki",
    *(
        f"libreoffice-l10n-{one}"
        for one in ("de", "fr", "es", "pt", "pt-br", "it", "nl", "pl", "ru", "zh-cn", "ja")
    ),
]
CODE_PACKAGES = [
    "libpython3.11-stdlib",
    "python3-django",
    "python3-numpy",
    "python3-pandas",
    "python3-scipy",
    "python3-sympy",
    "python3-matplotlib",
    "python3-nltk",
    "python3-sklearn",
    "python3-twisted",
    "python3-networkx",
    "python3-sqlalchemy",
    "python3-dulwich",
    "mercurial-common",
    "ansible-core",
    "python3-nova",
    "python3-djangorestframework",
    "python3-boto3",
    "ansible",
]
# Dictionaries: P explains English words; of the others the language of the words, with a minus
# where the English word comes first.
DICTIONARIES = {
    "dict-gcide": "P",
    "dict-foldoc": "P",
    "dict-jargon": "P",
    "dict-devil": "P",
    **{
        f"dict-freedict-{name}-eng": language
        for name, language in {
            "fra": "fr", "spa": "es", "por": "pt", "ita": "it", "nld": "nl", "pol": "pl",
            "jpn": "ja",
        }.items()
    },
    **{
        f"dict-freedict-eng-{name}": f"-{language}"
        for name, language in {
            "fra": "fr", "spa": "es", "por": "pt", "ita": "it", "nld": "nl", "pol": "pl",
            "jpn": "ja", "rus": "ru",
        }.items()
    },
}  # fmt: skip
# Russian words by way of German ones.
GERMAN_RUSSIAN, GERMAN_ENGLISH = "dict-freedict-deu-rus", "trans-de-en"

MAX_CHARACTERS = 1000
_SPACE = re.compile(r"\s+")
_TAG = re.compile(r"<[^>]*>")
_BLOCK = re.compile(
    r"<(h[1-6]|p|dt|dd|li|title)\b[^>]*>(.*?)(?=</\1>|<(?:h[1-6]|p|dt|dd|li|ul|ol|table|div|pre)\b)",
    re.DOTALL | re.IGNORECASE,
)
_DROPPED = re.compile(
    r"<(script|style|nav|footer|head)\b.*?</\1>|<!--.*?-->", re.DOTALL | re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-ZА-ЯÀ-Ž¿¡\"“«])|(?<=[。！？])(?=.)")
_MARK = re.compile(r"[./](C|[a-z]{2}(?:[-_][A-Za-z]{2,4})?)(?=[./])")


class Pair(NamedTuple):
    """Two texts that belong together; the right one is English, or code."""

    kind: str
    left: str
    right: str


def clean(text: str) -> str:
    """One line of plain text, cut at a word."""
    text = _SPACE.sub(" ", html.unescape(text)).replace("¶", "").strip()
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS].rsplit(" ", 1)[0]


def is_prose(text: str) -> bool:
    """Whether a text consists mostly of letters."""
    return len(text) >= 12 and sum(map(str.isalpha, text)) > 0.6 * len(text)


def sentences(text: str) -> list[str]:
    """The sentences of a text, in any of the languages."""
    return _SENTENCE.split(text)


def language_of(mark: str) -> str:
    """The language that a mark in a file's name means; nothing for any other."""
    plain = mark.replace("_", "-").lower()
    if plain == "c" or plain.startswith("en"):
        return "en"
    if plain.startswith("zh"):
        return "zh" if plain in ("zh-cn", "zh-hans") else ""
    return plain[:2] if plain[:2] in LANGUAGES else ""


def translated(language: str, text: str, original: str) -> Iterator[Pair]:
    """The pair of a text and its original, unless it was left in English."""
    letters = LETTERS.get(language)
    written = not letters or len(re.findall(letters, text)) > 0.2 * len(text)
    if written and text and text != original:
        yield Pair(language, text, original)


# -- the archive


def fetch(url: str, folder: Path) -> bytes:
    """Download a file once."""
    kept = folder / url.removeprefix("http://").replace("/", "_")
    if not kept.is_file():
        with urllib.request.urlopen(url, timeout=120) as answer:
            content = answer.read()
        part = kept.with_suffix(".part")
        part.write_bytes(content)
        part.replace(kept)
    return kept.read_bytes()


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """The records of a Debian control file."""
    for block in text.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line[:1] in " \t":
                fields[name] += "\n" + line[1:]
            else:
                name, _, value = line.partition(": ")
                fields[name] = value
        if fields:
            yield fields


def package_files(deb: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of a package: name and content."""
    place = 8
    while place < len(deb):
        name = deb[place : place + 16].decode().strip().rstrip("/")
        size = int(deb[place + 48 : place + 58])
        if name.startswith("data.tar"):
            with tarfile.open(fileobj=io.BytesIO(deb[place + 60 : place + 60 + size])) as tar:
                for member in tar:
                    if member.isfile() and member.size < 60_000_000:
                        file = tar.extractfile(member)
                        yield member.name.lstrip("./"), file.read() if file else b""
        place += 60 + size + size % 2


def licences(files: dict[str, bytes]) -> str:
    """The licence names in a package's machine-readable copyright file."""
    for name, content in files.items():
        if name.endswith("/copyright"):
            text = content.decode("utf-8", "replace")
            found = Counter(re.findall(r"^License: *(\S[^\n]*)", text, re.MULTILINE))
            named = ", ".join(name.strip() for name, _ in found.most_common(4) if len(name) < 40)
            return named or "see its copyright file"
    return "see its source package"


# -- what is read from each kind of file


def description_pairs(folder: Path) -> Iterator[Pair]:
    """Synopsis and paragraphs of every package, and both with their translations."""
    base = f"{MIRROR}/dists/{SUITE}/main/i18n/Translation-"
    english: dict[str, list[str]] = {}
    for record in stanzas(lzma.decompress(fetch(base + "en.xz", folder)).decode()):
        parts = description(record, "Description-en")
        if parts:
            english[record["Description-md5"]] = parts
            yield from in_sequence(parts)
    for language, spelled in ((one, mark) for one, marks in LANGUAGES.items() for mark in marks):
        content = bz2.decompress(fetch(f"{base}{spelled}.bz2", folder)).decode()
        for record in stanzas(content):
            parts = description(record, f"Description-{spelled}")
            original = english.get(record.get("Description-md5", ""))
            if parts and original:
                rest = zip(parts[1:], original[1:]) if len(parts) == len(original) else ()
                for text, right in ((parts[0], original[0]), *rest):
                    yield from translated(language, text, right)


def description(record: dict[str, str], field: str) -> list[str]:
    text = record.get(field, "")
    synopsis, _, rest = text.partition("\n")
    parts = [clean(part) for part in re.split(r"\n\.\n", rest)]
    return [clean(synopsis), *(part for part in parts if is_prose(part))] if synopsis else []


def in_sequence(parts: list[str]) -> Iterator[Pair]:
    """A heading with its text, and every sentence with the next one."""
    if len(parts) > 1 and parts[0]:
        yield Pair("P", parts[0], parts[1])
    for part in parts[1:]:
        prose = [one for one in sentences(part) if is_prose(one)]
        yield from (Pair("P", *two) for two in zip(prose[::2], prose[1::2]))


def html_blocks(content: bytes) -> list[tuple[str, str]]:
    """The headings and paragraphs of a page, in order."""
    text = _DROPPED.sub(" ", content.decode("utf-8", "replace"))
    found = ((tag.lower(), clean(_TAG.sub("", body))) for tag, body in _BLOCK.findall(text))
    return [(tag, body) for tag, body in found if body]


def html_pairs(files: dict[str, bytes]) -> Iterator[Pair]:
    for name, content in files.items():
        if name.endswith((".html", ".htm", ".xhtml")):
            yield from block_pairs(html_blocks(content))
        elif name.endswith((".html.gz", ".htm.gz")):
            yield from block_pairs(html_blocks(gzip.decompress(content)))
        elif name.endswith((".txt", ".md", ".rst", ".pod", ".txt.gz")) and "/doc" in name:
            text = gzip.decompress(content) if name.endswith(".gz") else content
            yield from plain_pairs(text.decode("utf-8", "replace"))
        elif name.endswith(".pod"):
            yield from plain_pairs(content.decode("utf-8", "replace"))


def block_pairs(blocks: list[tuple[str, str]]) -> Iterator[Pair]:
    heading = ""
    for place, (tag, text) in enumerate(blocks):
        if len(text) < 3:
            continue
        if tag[0] == "h" or tag in ("dt", "title"):
            heading = text
        elif is_prose(text):
            if heading and len(text) > 40:
                yield Pair("P", heading, text)
                heading = ""
            elif place % 2:
                yield from in_sequence(["", text])


def plain_pairs(text: str) -> Iterator[Pair]:
    """Paragraphs of a plain file; a short line before one is its heading."""
    heading = ""
    for part in re.split(r"\n\s*\n", text):
        line = clean(re.sub(r"^=\w+\s*|[=~^#*_`-]{3,}", "", part, flags=re.MULTILINE))
        if 4 < len(line) < 90 and line[-1:] != ".":
            heading = line
        elif is_prose(line) and part[:1] not in " \t":
            if heading:
                yield Pair("P", heading, line)
            yield from in_sequence(["", line])
            heading = ""


def read_help(files: dict[str, dict[str, bytes]]) -> dict[str, dict[tuple[str, str], str]]:
    """Paragraphs of the translated help: by language, and by page and id."""
    pattern = re.compile(r'<(?:p|h\d)[^>]*\bid="([^"]+)"[^>]*>(.*?)</(?:p|h\d)>', re.DOTALL)
    read: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for language, pages in files.items():
        for name, content in pages.items():
            if name.endswith(".html"):
                page = name.split("/help/", 1)[-1].partition("/")[2]
                for key, body in pattern.findall(content.decode("utf-8", "replace")):
                    read[language][page, key] = clean(_TAG.sub("", body))
    return read


def help_pairs(read: dict[str, dict[tuple[str, str], str]], held: set[str]) -> Iterator[Pair]:
    """Paragraphs of the same id, but for the pages that are held back."""
    for language in set(read) - {"en"}:
        for key, text in read[language].items():
            original = read["en"].get(key, "")
            if is_prose(original) and key[0] not in held:
                yield from translated(language, text, original)


def hold_back(
    read: dict[str, dict[tuple[str, str], str]], count: int = 240
) -> tuple[list[dict[str, str]], set[str], set[str]]:
    """Paragraphs for measuring, one a page; their pages; their sentences in all languages."""
    draw = random.Random(23)
    pages: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, text in sorted(read["en"].items()):
        others = [read[language].get(key, "") for language in MEASURED]
        whole = len(text) < MAX_CHARACTERS - 50 and 40 <= len(text.split()) <= 100
        if whole and len(sentences(text)) > 1 and all(others) and text not in others:
            pages[key[0]].append(key)
    order = sorted(pages)
    draw.shuffle(order)
    found, seen, chosen, held = [], set(), set(), set()
    for page in order:
        key = draw.choice(pages[page])
        text = read["en"][key]
        if len(found) == count or seen & set(sentences(text)):
            continue
        row = {"id": "/".join(key), "en": text}
        row |= {language: read[language][key] for language in MEASURED}
        if all(list(translated(language, row[language], text)) for language in MEASURED):
            found.append(row)
            chosen.add(page)
            seen.update(sentences(text))
            for texts in read.values():
                held.update(long_sentences(texts.get(key, "")))
    return found, chosen, held


def long_sentences(text: str) -> Iterator[str]:
    """The sentences that would give a paragraph away."""
    for one in sentences(text):
        if len(one) >= (12 if re.search(LETTERS["ja"], one) else 25):
            yield one.strip()


def parallel_pairs(english: dict[str, bytes], other: dict[str, bytes]) -> Iterator[Pair]:
    """Paragraphs of pages that have the same name and the same tags in the same order."""

    def by_page(files: dict[str, bytes]) -> dict[tuple[str, str], bytes]:
        pages = {}
        for name, content in files.items():
            if name.endswith((".html", ".page")):
                marks = _MARK.findall("/" + name)
                language = language_of(marks[-1]) if marks else "en"
                pages[language, _MARK.sub("", "/" + name)] = content
        return pages

    originals, pages = by_page(english), by_page(other)
    for (language, page), content in pages.items():
        if language in LANGUAGES and ("en", page) in originals:
            left, right = html_blocks(content), html_blocks(originals["en", page])
            if [tag for tag, _ in left] == [tag for tag, _ in right]:
                for (_, text), (_, original) in zip(left, right):
                    if is_prose(original):
                        yield from translated(language, text, original)


def catalogue_pairs(files: dict[str, bytes]) -> Iterator[Pair]:
    """Messages and their translations; neighbours in a story belong together."""
    for name, content in files.items():
        found = re.search(
            r"/([a-z]{2}(?:_[A-Z]{2})?)/LC_MESSAGES/|[/-]([a-z]{2}(?:_[A-Z]{2})?)\.mo$", name
        )
        language = language_of(found[1] or found[2]) if found else ""
        if language not in LANGUAGES or not name.endswith(".mo"):
            continue
        try:
            catalogue = gettext.GNUTranslations(io.BytesIO(content))._catalog  # noqa: SLF001
        except (OSError, UnicodeDecodeError, ValueError):
            continue
        before = ""
        for message, translation in catalogue.items():
            if not isinstance(message, str) or not isinstance(translation, str):
                continue
            text = clean(re.sub(r"<[^>]*>|[_&](?=\w)", "", message.rpartition("\x04")[2]))
            other = clean(re.sub(r"<[^>]*>|[_&](?=\w)", "", translation))
            if len(text) < 4 or "%" in text or "{" in text or sum(map(str.isalpha, text)) < 3:
                continue
            yield from translated(language, other, text)
            if "wesnoth" in name and language == "de" and len(text) > 30:
                yield from in_sequence(["", text])
                if before:
                    yield Pair("P", before, text)
                before = "" if before else text


def message_pairs(files: dict[str, bytes]) -> Iterator[Pair]:
    """Messages in JSON files, one a language: mediawiki."""
    for name, content in files.items():
        folder, _, file = name.rpartition("/")
        language = language_of(file.removesuffix(".json"))
        original = files.get(f"{folder}/en.json")
        if not folder.endswith("i18n") or language not in LANGUAGES or not original:
            continue
        english = json.loads(original)
        for key, message in json.loads(content).items():
            text = english.get(key)
            if isinstance(text, str) and isinstance(message, str) and is_prose(text):
                left, right = (
                    clean(_TAG.sub("", one.replace("'''", ""))) for one in (message, text)
                )
                if not re.search(r"\$\d|[{\[<|]", left + right):
                    yield from translated(language, left, right)


def wordnet_pairs(files: dict[str, bytes]) -> Iterator[Pair]:
    """Words with their glosses, and the example sentences."""
    for name, content in files.items():
        if "/data." not in name:
            continue
        for line in content.decode("utf-8", "replace").splitlines():
            if line.startswith("  ") or " | " not in line:
                continue
            fields, _, gloss = line.partition(" | ")
            parts = fields.split()
            words = [parts[4 + 2 * place].replace("_", " ") for place in range(int(parts[3], 16))]
            words = [re.sub(r"\(\w+\)$", "", word) for word in words]
            examples = [one for one in re.findall(r'"([^"]+)"', gloss) if len(one) > 8]
            meaning = clean(re.sub(r';? *"[^"]*"', "", gloss))
            yield Pair("P", ", ".join(words[:3]), meaning)
            yield from (Pair("P", f"{words[0]}: {meaning}", one) for one in examples)


def dictionary_pairs(files: dict[str, bytes], kind: str) -> Iterator[Pair]:
    """Entries of a dictd dictionary."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

    def number(text: str) -> int:
        value = 0
        for digit in text:
            value = value * 64 + digits.index(digit)
        return value

    index = next((files[name] for name in files if name.endswith(".index")), b"")
    packed = next((files[name] for name in files if name.endswith((".dict.dz", ".dict"))), b"")
    content = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    for line in index.decode("utf-8", "replace").splitlines():
        word, start, size = [*line.split("\t"), "", ""][:3]
        if not size or word.startswith("00"):
            continue
        entry = content[number(start) : number(start) + number(size)].decode("utf-8", "replace")
        if kind == "P":
            body = clean(re.sub(r"[{}\\]|\[[^\]]*\]", "", " ".join(entry.split("\n")[1:])))
            if is_prose(body):
                yield Pair("P", word, body[:400])
            continue
        meaning = first_meaning(entry)
        if 1 < len(meaning) < 80 and word:
            left, right = (meaning, word) if kind[0] == "-" else (word, meaning)
            yield from translated(kind.strip("-"), left, right)


def first_meaning(entry: str) -> str:
    """The first line of a dictionary's entry that says a meaning."""
    for line in entry.split("\n")[1:]:
        plain = re.sub(r"Note: .*?(?:alone|$)", "", line)
        plain = re.sub(r"\(.*\)|[/<\[{].*?[/>\]}]|\d+\.", "", plain)
        plain = clean(plain)
        if sum(map(str.isalpha, plain)) > 0.5 * len(plain):
            return plain
    return ""


def unihan_pairs(files: dict[str, bytes]) -> Iterator[Pair]:
    """Chinese characters of everyday use and what they mean."""
    for name, packed in files.items():
        if name.endswith("/Unihan_Readings.txt.bz2"):
            for line in bz2.decompress(packed).decode().splitlines():
                code, _, rest = line.partition("\tkDefinition\t")
                character = chr(int(code.replace("U+", "0x"), 0)) if rest else ""
                if rest and character.encode("gb2312", "ignore"):
                    meaning = re.sub(r"\([^)]*\)", "", rest)
                    yield Pair("zh", character, clean(", ".join(re.split("[;,]", meaning)[:3])))


def russian_pairs(russian: dict[str, bytes], english: dict[str, bytes]) -> Iterator[Pair]:
    """Russian words whose German translation has an English one."""
    known = {pair.left.casefold(): pair.right for pair in ding_pairs(english)}
    for pair in dictionary_pairs(russian, "-ru"):
        if pair.right.casefold() in known:
            yield Pair("ru", pair.left, known[pair.right.casefold()])


def ding_pairs(files: dict[str, bytes]) -> Iterator[Pair]:
    """The German-English word list: words and phrases."""
    marks = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|/[^/]*/|<[^>]*>")
    for name, content in files.items():
        if not name.endswith("/de-en") and "trans/" not in name:
            continue
        for line in content.decode("utf-8", "replace").splitlines():
            if line.startswith("#") or "::" not in line:
                continue
            german, _, english = line.partition("::")
            for left, right in zip(german.split("|"), english.split("|")):
                other = clean(marks.sub("", left.split(";")[0]))
                text = clean(marks.sub("", right.split(";")[0]))
                if len(other) > 2 and len(text) > 2:
                    yield Pair("de", other, text)


# -- all together


def read_package(job: tuple[str, str, str, Path]) -> tuple[str, str, str, list[Pair]]:
    """Everything one package gives: its name, version, licences and pairs."""
    package, version, url, folder = job
    files = dict(package_files(fetch(url, folder)))
    found: list[Pair] = []
    if package in HTML_PACKAGES:
        found += html_pairs(files)
    if package in CATALOGUE_PACKAGES:
        found += catalogue_pairs(files)
        found += message_pairs(files)
    if package in CODE_PACKAGES:
        sources = (code for name, code in files.items() if name.endswith(".py"))
        found += (Pair("C", *both) for both in pyfunctions.documented(sources))
    if package in DICTIONARIES:
        found += dictionary_pairs(files, DICTIONARIES[package])
    if package == GERMAN_ENGLISH:
        found += ding_pairs(files)
    if package == "unicode-data":
        found += unihan_pairs(files)
    if package == "wordnet-base":
        found += wordnet_pairs(files)
    return package, version, licences(files), found


def jobs(folder: Path) -> dict[str, tuple[str, str, str, Path]]:
    index = fetch(f"{MIRROR}/dists/{SUITE}/main/binary-amd64/Packages.xz", folder)
    return {
        record["Package"]: (
            record["Package"], record["Version"], f"{MIRROR}/{record['Filename']}", folder,
        )
        for record in stanzas(lzma.decompress(index).decode())
        if "Filename" in record
    }  # fmt: skip


def collect(folder: Path, workers: int) -> Iterator[tuple[str, str, str, Iterable[Pair]]]:
    known = jobs(folder)
    yield "package descriptions", SUITE, "as their packages", description_pairs(folder)
    wanted = dict.fromkeys(
        [*HTML_PACKAGES, *CATALOGUE_PACKAGES, *CODE_PACKAGES, *DICTIONARIES, GERMAN_ENGLISH,
         "wordnet-base", "unicode-data"]
    )  # fmt: skip
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(read_package, [known[name] for name in wanted if name in known])

    def files(name: str) -> dict[str, bytes]:
        return dict(package_files(fetch(known[name][2], folder)))

    for english, others in PARALLEL_PACKAGES.items():
        original = files(english)
        for name in others:
            other = original if name == english else files(name)
            yield name, known[name][1], licences(other), parallel_pairs(original, other)
    russian = files(GERMAN_RUSSIAN)
    words = russian_pairs(russian, files(GERMAN_ENGLISH))
    yield GERMAN_RUSSIAN, known[GERMAN_RUSSIAN][1], licences(russian), words
    yield (
        "written by rule (everyday.py)",
        "",
        "Apache-2.0",
        (Pair("P", *both) for both in everyday.pairs()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "work")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--most", type=int, default=60_000, help="pairs of one package and kind")
    given = parser.parse_args()
    downloads = given.work / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    known = jobs(downloads)
    pages = {
        language: dict(package_files(fetch(known[name][2], downloads)))
        for language, name in HELP_PACKAGES.items()
    }
    read = read_help(pages)
    paragraphs, held_pages, held = hold_back(read)
    with (given.work / "paragraphs.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in paragraphs)
    helped = (
        ", ".join(HELP_PACKAGES.values()), known[HELP_PACKAGES["en"]][1], licences(pages["en"]),
        help_pairs(read, held_pages),
    )  # fmt: skip
    draw = random.Random(0)
    seen: set[Pair] = set()
    rows = ["package\tversion\tpairs\tlicences"]
    limits = {"package descriptions": 400_000, "trans-de-en": 150_000, "wordnet-base": 180_000}
    limits["dict-gcide"] = 40_000
    for package, version, licence, found in chain([helped], collect(downloads, given.workers)):
        fresh = sorted(set(found) - seen)
        draw.shuffle(fresh)
        counts: Counter[str] = Counter()
        for pair in fresh:
            counts[pair.kind] += 1
            if counts[pair.kind] <= limits.get(package, given.most) and held.isdisjoint(
                one for text in pair[1:] for one in long_sentences(text)
            ):
                seen.add(pair)
        kept = sum(min(count, limits.get(package, given.most)) for count in counts.values())
        rows.append(f"{package}\t{version}\t{kept}\t{licence}")
        print(rows[-1], dict(counts), flush=True)
    ordered = sorted(seen)
    with lzma.open(given.work / "texts.tsv.xz", "wt", encoding="utf-8", preset=1) as file:
        for pair in ordered:
            file.write("\t".join(_SPACE.sub(" ", part) for part in pair) + "\n")
    (given.work / "sources.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(len(paragraphs), "paragraphs;", Counter(pair.kind for pair in ordered))


if __name__ == "__main__":
    main()
