"""Count which words are ordinary, and write the table of the package; measure the names found.

    apt-get download wordnet-base fortunes
    python training/words.py --packages wordnet-base_*.deb fortunes_*.deb
    python training/words.py --judge training/data/names/chats.txt other.txt

A word is ordinary if it is written in lower case where a capital would tell something: not first
in a sentence. Read are the texts of ``data`` (of ``data/names`` what is outside of the brackets),
the explanations of WordNet and the sayings of ``fortunes``.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from bethink.ingest.entity_extraction import extract_names
from bethink.lang.words import stems
from bethink.models.name_model import name_model
from collect import package_files

DATA = Path(__file__).parent / "data"
TABLE = Path(__file__).parents[1] / "src/bethink/lang/data/ordinary.txt"
# At least so often in the own texts, or in all of them.
MIN_OWN, MIN_ALL = 2, 4
LOWER_SHARE = 0.75
OWN_WEIGHT = 5  # they have names that are words: "Slack", "Rust"
CLEAR = 150  # a name this often in lower case is also a word: "will", the German "mit"
LONGEST = 24  # letters
OLD_NAME = "recoll"  # as the project was once called: in no file
TAGGED = re.compile(r"\[([^\[\]|]+)\|(\w+)\]")
WORD = re.compile(r"(?<![\w/@.&'’])[^\W\d_]+(?:['’][^\W\d_]+)*(?![\w/@])")
OPENING = frozenset('.!?:;\n—–-•*"“”«»„(…')
NO_TEXTS = frozenset(("id", "date", "speaker", "label", "domain", "lang", "replaces", "role"))
WORDNET = re.compile(r"/data\.(?:noun|verb|adj|adv)$")
# WordNet's numbers of adjectives and of nouns of time.
SUBJECTS = frozenset(("00", "01", "28"))
LANGUAGE = re.compile(r"\b(?:language|dialect|spoken)")
SYMBOLS = frozenset(("file", "function", "class", "identifier", "ticket", "host", "module"))

Name = tuple[int, int, str]
Counts = tuple[Counter[str], Counter[str]]


# -- the table


def own_texts() -> Iterator[str]:
    for path in sorted(DATA.rglob("*")):
        if path.suffix in (".jsonl", ".json"):
            whole = path.read_text()
            for record in whole.splitlines() if path.suffix == ".jsonl" else (whole,):
                yield from texts_in(json.loads(record))
        elif path.suffix == ".txt" and not path.stem.startswith("held"):
            yield from (TAGGED.sub("0", line) for line in path.read_text().splitlines())


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from () if name in NO_TEXTS else texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)


def package_texts(package: Path) -> Iterator[tuple[bool, str]]:
    """Read the texts of a package; first whether their capitals tell names: not in sayings."""
    for name, content in package_files(package.read_bytes()):
        if WORDNET.search(name):
            for line in content.decode("latin-1").splitlines():
                yield True, line.partition("|")[2].strip()
        elif "/fortunes/" in name and "." not in Path(name).name:
            yield from ((False, text) for text in content.decode().split("\n%\n"))


def no_names(package: Path) -> Iterator[str]:
    """Read the words that have a capital and are no names: peoples, languages, holidays."""
    for name, content in package_files(package.read_bytes()):
        for line in content.decode("latin-1").splitlines() if WORDNET.search(name) else ():
            fields = line.split()
            is_language = fields[1:2] == ["10"] and LANGUAGE.search(line)
            if not line.startswith(" ") and (fields[1] in SUBJECTS or is_language):
                count = int(fields[3], 16)
                words = (word.partition("(")[0] for word in fields[4 : 4 + 2 * count : 2])
                yield from (word.lower() for word in words if word.istitle() and word.isalpha())


def count_cases(texts: Iterable[str]) -> Counts:
    """Count how often words are written in lower case, and with a capital inside of a sentence."""
    lower, capital = Counter[str](), Counter[str]()
    for text in texts:
        for found in WORD.finditer(text):
            word = found[0].replace("’", "'")
            if not 1 < len(word) <= LONGEST:
                continue
            if word.islower():
                lower[word] += 1
            elif word.istitle():
                before = text[max(0, found.start() - 3) : found.start()].rstrip(" ")
                if before and before[-1] not in OPENING:
                    capital[word.lower()] += 1
    return lower, capital


def choose_words(
    own: Counts, wordnet: Counts, sayings: Counts, capitals: Iterable[str]
) -> list[str]:
    """Choose the ordinary words; without those of which another one is a form."""
    known = tomllib.loads((DATA / "names/known.toml").read_text())
    names = {name.strip().lower() for text in known.values() for name in re.split("[,\n]", text)}
    other = wordnet[0] + sayings[0]
    chosen = set(capitals) - names
    for word, count in (own[0] + other).items():
        lower = OWN_WEIGHT * own[0][word] + other[word]
        capital = OWN_WEIGHT * max(0, own[1][word] - 1) + wordnet[1][word]  # once may be a title
        is_often = own[0][word] >= MIN_OWN or count >= MIN_ALL
        is_name = word in names and wordnet[0][word] < MIN_ALL and own[0][word] < CLEAR
        if is_often and not is_name and lower >= LOWER_SHARE * (lower + capital):
            chosen.add(word)
    chosen |= {word.replace("'", "") for word in chosen}  # "Im" and "dont"
    chosen = {word for word in chosen if not word.startswith(OLD_NAME)}
    kept: set[str] = set()
    for word in sorted(chosen, key=lambda one: (len(one), one)):
        if kept.isdisjoint(stems(word)):
            kept.add(word)
    return sorted(kept)


# -- names


def read_line(written: str) -> tuple[str, dict[tuple[int, int], str]]:
    """Read a line with names in brackets: its text, and the kind of the name at each place."""
    text, names, at = "", {}, 0
    for tag in TAGGED.finditer(written):
        text += written[at : tag.start()]
        names[len(text), len(text) + len(tag[1])] = tag[2]
        text, at = text + tag[1], tag.end()
    return text + written[at:], names


def find_spans(text: str) -> dict[tuple[int, int], str]:
    """Find the names of a text; a handle counts with its sign, a function with its brackets."""
    spans, at = {}, 0
    for name, kind, _ in extract_names(text, name_model.find):
        begin = text.find(name, at)
        if begin < 0:
            continue
        at = end = begin + len(name)
        begin -= kind in ("person", "topic") and text[begin - 1 : begin] in ("@", "#")
        end += 2 * (kind == "function" and text[end : end + 2] == "()")
        spans[begin, end] = "symbol" if kind in SYMBOLS else kind
    return spans


def judge(path: Path) -> None:
    found = right = of_kind = there = 0
    for line in path.read_text().splitlines():
        text, names = read_line(line)
        spans = find_spans(text)
        found, there = found + len(spans), there + len(names)
        right += len(spans.keys() & names.keys())
        of_kind += len(spans.items() & names.items())
    precision, recall = right / found, right / there
    both, with_kind = 2 * right / (found + there), 2 * of_kind / (found + there)
    print(f"{path.stem:8} P {precision:.3f} R {recall:.3f} F1 {both:.3f} with kind {with_kind:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--packages", type=Path, nargs="*", help="write the table anew with these")
    parser.add_argument("--judge", type=Path, nargs="*", default=(), help="lines with names")
    options = parser.parse_args()
    if options.packages:
        texts = [text for package in options.packages for text in package_texts(package)]
        others = (
            count_cases(text for named, text in texts if named is kind) for kind in (True, False)
        )
        capitals = (word for package in options.packages for word in no_names(package))
        chosen = choose_words(count_cases(own_texts()), *others, capitals)
        TABLE.write_text("\n".join(chosen) + "\n")
    for path in options.judge:
        judge(path)


if __name__ == "__main__":
    main()
