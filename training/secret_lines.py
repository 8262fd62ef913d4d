"""Prepare what the model of secrets learns from: words with their pieces and shapes.

    python training/secret_lines.py OUT.npz --ordinary FOLDER...

The lines of ``data/redaction`` with their secrets in double brackets; the same with other values,
with a placeholder instead of the value, joined with other lines or put into other texts; the same
with one word in eight replaced, and with more, of which only the teachers say what is secret;
sentences made in two kinds (``secret_frames.py``). Harmless are the other texts of ``data``, some
with other numbers, and lines of ``data/names`` with passwords in the place of names; paragraphs of
documentation and pieces of source code in the folders, but for those that speak of codes, keys or
passwords; a few words in a row of all of these. What ``MEASURED`` names is left out, to measure
what happens to ordinary texts (``judge_secrets.py --ordinary``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import string
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from alter import Lexicon, read_lexicon, replacement
from bethink.models.secret_model import split_words, word_shapes
from names import BLOCK, CJK, DATA, MADE, TAGGED, UNLABELLED, Line, Words, join_lines
from secret_frames import frames, values
from words import texts_in

FOLDER = DATA / "redaction"
MARKED = re.compile("⟦(.*?)⟧", re.DOTALL)
FILLED = re.compile("«([a-z0-9]+):(\\d+)»")
DIGITS = re.compile(r"[\d\W]+")
ALPHABETS = {
    "hex": "0123456789abcdef",
    "an": string.ascii_letters + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits,
    "url": string.ascii_letters + string.digits + "-_",
    "b64": string.ascii_letters + string.digits + "+/",
    "num": string.digits,
}  # fmt: skip
PLACEHOLDERS = (
    "********", "<password>", "${DB_PASSWORD}", "$TOKEN", "xxxxxxxx", "your-api-key", "{{ secret }}",
    "[hidden]", "(see vault)", "the usual one", "not set", "changeme?", "...", "None", "null", "''",
    "os.environ['KEY']", "process.env.KEY", "REDACTED", "secrets.DEPLOY_KEY", "op://team/db/password",
    "vault:kv/app#key", "!secret wifi", "%PASSWORD%", "required", "wrong", "expired", "too short",
    "still unknown", "in the safe", "<your token here>", "[redacted:password]", "•••••", "…", "hunter-",
)  # fmt: skip
VARIANTS, HARMLESS, ALTERED = 7, 3, 2
# So many lines have other words and keep their marks, and so many texts are a few words in a row.
REWORDED, FRAGMENTS = 3, 40_000
SIGNS, SHAPES = "!#$%&*+-_.@?~^", ("{w}{n}", "{W}{n}", "{w}-{v}", "{w}_{v}{n}", "{W}{s}{n}", "{w}{v}",
    "{w}-{v}-{u}", "{W}{V}{n}", "{n}{w}{s}", "{w}{s}{v}", "{W}{V}", "{w} {v} {u} {x}")  # fmt: skip
LIST_FILE, HARMLESS_FILE = 23, 49
# Files of ``data`` that nothing is learnt from, and those that are no texts of their own.
MEASURED = re.compile(
    r"(?:checks|unseen|later|capture-check)/|pairs/[ekl]|answers/(?:life2|more)|questions/rules"
    r"|names/(?:more\.|held)|capture/(?:turns-long-c|short-facts-c|infra)|sessions/e"
    r"|stores/(?:code-9|life-9|chat-9|lang-16|lang-8|assist-16|notes-[12]0|agent|minutes|docs-2"
    r"|diary-2|groups-5|friends-5)"
)
NO_TEXTS = re.compile(r"redaction/|README|names/known")
# Of sentences made in two kinds so many hide a secret, and so many do not.
HIDING, SHOWING = 9_000, 20_000
NUMBER = re.compile(r"(?<![\w.,:/-])\d{2,6}(?![\w:/-]|[.,]\d)")
SWAPPED = ("tool", "project", "symbol", "company", "place")
# Suffixes of ordinary texts, and whether they are code; so many of prose and of code at most.
ORDINARY = {
    ".md": False, ".rst": False, ".pod": False, ".txt": False, ".gz": False,
    ".py": True, ".js": True, ".ts": True,
}  # fmt: skip
MOST_ORDINARY, BLOCKS = 8_000, 30_000
# A text that speaks of these may tell one.
SPEAKS = re.compile(
    r"pass(?:wor[dt]|code|phrase|wd)|\bpwd?\b|\bpins?\b|\bcodes?\b|\bkeys?\b|token|secret|credential"
    r"|w-?lan|wi-?fi|login|log in|combination|kombination|contrase|mot de passe|código|codice|code:|senha"
    r"|wachtwoord|hasło|парол|код|密码|密碼|口令|验证码|パスワード|暗証|コード|alarm|alarme|safe\b|tresor|unlock",
    re.IGNORECASE,
)


def fill(written: str, draw: random.Random) -> str:
    """Put random values in the places for them."""
    return FILLED.sub(
        lambda mark: "".join(draw.choices(ALPHABETS.get(mark[1], ALPHABETS["an"]), k=int(mark[2]))),
        written,
    )


def read_line(written: str, file: int, block: int) -> Line:
    text, secrets, at = "", [], 0
    for mark in MARKED.finditer(written):
        text += written[at : mark.start()]
        secrets.append((len(text), len(text) + len(mark[1]), "secret"))
        text, at = text + mark[1], mark.end()
    return Line(text + written[at:], secrets, file, block)


def read_marked() -> list[tuple[int, int, str]]:
    """The lines with their marks: of which file and block they are, and as they are written."""
    found = []
    for number, path in enumerate(sorted(FOLDER.glob("*.txt"))):
        rows = [row for row in path.read_text().splitlines() if row[:2] in ("+ ", "- ")]
        found += [
            (number, at // BLOCK, row[2:].replace("\\n", "\n")) for at, row in enumerate(rows)
        ]
    for path in sorted((FOLDER / "lists").glob("*.jsonl")):
        for at, row in enumerate(map(json.loads, path.read_text().splitlines())):
            text, secret = row["text"], row["secret"]
            marked = text.replace(secret, f"⟦{secret}⟧") if secret else text
            found.append((LIST_FILE, at // BLOCK, marked))
    return found


def told_texts() -> frozenset[str]:
    """The other texts of ``data`` that tell a secret or may tell one."""
    rows = (FOLDER / "told.txt").read_text().splitlines()
    return frozenset(re.sub("[⟦⟧]", "", row[2:]).replace("\\n", "\n") for row in rows)


def own_texts(measured: bool) -> Iterator[str]:
    """The other texts of ``data``, each once: those that are learnt from, or the others."""
    seen = set(told_texts())
    for path in sorted(DATA.rglob("*.*")):
        name = str(path.relative_to(DATA))
        if NO_TEXTS.search(name) or bool(MEASURED.match(name)) is not measured:
            continue
        whole = path.read_text()
        if path.suffix == ".txt":
            found = [written_text(row) for row in whole.splitlines()]
        else:
            rows = filter(str.strip, whole.splitlines()) if path.suffix == ".jsonl" else (whole,)
            found = [text for row in rows for text in texts_in(json.loads(row))]
        for text in found:
            if len(text) > 12 and text not in seen:
                seen.add(text)
                yield text


def written_text(row: str) -> str:
    """The text of a line of a list, without marks and what stands before it."""
    row = (
        row.rsplit("\t", maxsplit=1)[-1]
        if row[:2] in ("+\t", "-\t")
        else re.sub(r"^[+-] (?:\w+: )?", "", row)
    )
    return TAGGED.sub(r"\1", row)


def other_numbers(texts: Sequence[str], draw: random.Random) -> Iterator[str]:
    """Texts once more with other numbers."""
    for text in texts:
        if len(text) < 300 and NUMBER.search(text):
            yield NUMBER.sub(
                lambda one: "".join(draw.choices(string.digits, k=draw.choice((len(one[0]), 4)))),
                text,
            )


def other_names(value: Callable[[], str], draw: random.Random) -> Iterator[str]:
    """Lines with names once more, with what may be a password in the place of a name."""
    for path in sorted((DATA / "names").glob("*.txt")):
        if MEASURED.match(f"names/{path.name}"):
            continue
        for row in path.read_text().splitlines():
            if any(f"|{kind}]" in row for kind in SWAPPED) and not CJK.search(row):
                yield TAGGED.sub(
                    lambda tag: value() if tag[2] in SWAPPED and draw.random() < 0.7 else tag[1],
                    row,
                )


class OtherValues:
    """Draws another value for a secret: of the same form, of another line, or a made one."""

    def __init__(
        self, lines: Sequence[tuple[int, int, str]], words: Sequence[str], draw: random.Random
    ) -> None:
        self._draw, self._words = draw, words
        self._seen = [
            value for _, _, line in lines for value in MARKED.findall(line) if "«" not in value
        ]
        self.short = [value for value in self._seen if len(value) < 30 and not CJK.search(value)]

    def __call__(self, old: str) -> str:
        if "«" in old or len(old) > 60 or "\n" in old:
            return old
        if DIGITS.fullmatch(old):
            return self.other_digits(old)
        if self._draw.random() < 0.5:
            for _ in range(9):
                new = self._draw.choice(self._seen)
                if not DIGITS.fullmatch(new) and bool(CJK.search(new)) == bool(CJK.search(old)):
                    return new
        return self.made()

    def other_digits(self, old: str) -> str:
        return "".join(self._draw.choice(string.digits) if one.isdigit() else one for one in old)

    def made(self) -> str:
        if self._draw.random() < 0.2:
            signs = string.ascii_letters + string.digits + "!#$%&*+@?~^-_"
            return "".join(self._draw.choices(signs, k=self._draw.randint(8, 18)))
        w, v, u, x = (self._draw.choice(self._words) for _ in range(4))
        number = str(self._draw.randint(1, 10 ** self._draw.randint(1, 4)))
        sign = self._draw.choice(SIGNS)
        shape = self._draw.choice(SHAPES)
        made = shape.format(
            w=w, v=v, u=u, x=x, W=w.capitalize(), V=v.capitalize(), n=number, s=sign
        )
        return made.replace("o", "0").replace("e", "3") if self._draw.random() < 0.08 else made


def vary(marked: str, other: OtherValues, draw: random.Random) -> str:
    """Give a line other values, secret and harmless numbers alike."""
    marked = MARKED.sub(
        lambda mark: f"⟦{other(mark[1]) if draw.random() < 0.75 else mark[1]}⟧", marked
    )
    if draw.random() < 0.5:
        parts = re.split("(⟦.*?⟧|«.*?»)", marked, flags=re.DOTALL)
        parts[::2] = [
            re.sub(r"(?<![\w.])\d{1,6}(?![\w.])", lambda one: other.other_digits(one[0]), part)
            for part in parts[::2]
        ]
        marked = "".join(parts)
    return marked


def alter_words(marked: str, lexicon: Lexicon, draw: random.Random, share: float) -> str:
    """Replace a share of the words around the secrets."""
    parts = re.split("(⟦.*?⟧|«.*?»|\\w+)", marked, flags=re.DOTALL)
    for at in range(1, len(parts), 2):
        word = parts[at]
        if word.isalpha() and draw.random() < share:
            parts[at] = replacement(word, lexicon, draw) or word
    return "".join(parts)


def ordinary_texts(folders: Sequence[Path], draw: random.Random) -> Iterator[str]:
    """Paragraphs of documentation and pieces of source code."""
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in ORDINARY]
    draw.shuffle(paths)
    prose, code = 0, 0
    for path in paths:
        is_code = ORDINARY[path.suffix]
        if (code if is_code else prose) >= MOST_ORDINARY or not path.is_file():
            continue
        parts = re.split(r"\n\s*\n", read_ordinary(path))
        for part in draw.sample(parts, min(len(parts), 4 if is_code else 12)):
            text = part.strip() if is_code else " ".join(part.split())
            if 20 < len(text) < 1_200:
                code, prose = code + is_code, prose + (not is_code)
                yield text


def read_ordinary(path: Path) -> str:
    if path.suffix != ".gz":
        return path.read_text(errors="replace")
    try:
        with gzip.open(path, "rt", errors="replace") as file:
            return file.read(100_000)
    except gzip.BadGzipFile:  # data of a test
        return ""


def fragments(texts: Sequence[str], draw: random.Random) -> Iterator[str]:
    """A few words in a row of harmless texts, as titles, values and halves of notes are."""
    for _ in range(FRAGMENTS):
        words = draw.choice(texts).split()
        if words:
            size = draw.choice((1, 1, 2, 2, 3, 3, 4, 5, 6, 8))
            start = draw.randrange(max(1, len(words) - size + 1))
            text = " ".join(words[start : start + size])
            yield text.strip(".,;:") or text


def surround(line: Line, texts: Sequence[str], draw: random.Random) -> Line:
    """Put a line between two other texts."""
    before, after = draw.choice(texts), draw.choice(texts)
    before = before + draw.choice((" ", "\n", ". "))
    moved = [(a + len(before), b + len(before), kind) for a, b, kind in line.names]
    return line._replace(
        text=before + line.text + draw.choice((" ", "\n", ". ")) + after, names=moved
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--ordinary", type=Path, nargs="+", required=True)
    given = parser.parse_args()
    draw, marked = random.Random(5), read_marked()
    plain = list(own_texts(measured=False))
    lexicon = read_lexicon(plain)
    vocabulary = sorted({
        word.lower() for text in plain[::3] for word in re.findall(r"[^\W\d_]{3,11}", text)
        if not CJK.search(word)
    })  # fmt: skip
    other, words = (
        OtherValues(marked, vocabulary, draw),
        Words(("secret",), split_words, word_shapes),
    )
    short = [text for text in plain if len(text) < 160]
    first = [read_line(fill(text, draw), file, block) for file, block, text in marked]
    for line in first:
        words.add(line, line.file)
    made: list[Line] = []
    for file, block, text in marked:
        for _ in range(VARIANTS if "⟦" in text else HARMLESS):
            made.append(read_line(fill(vary(text, other, draw), draw), file, block))
        if "⟦" in text and draw.random() < 0.7:
            no_value = MARKED.sub(lambda _: draw.choice(PLACEHOLDERS), text)
            made.append(read_line(fill(no_value, draw), file, block))
    made += join_lines(first, draw)
    made += [surround(line, short, draw) for line in made if draw.random() < 0.25]
    made += [
        line._replace(text=line.text.lower())
        for line in first if draw.random() < 0.15 and len(line.text.lower()) == len(line.text)
    ]  # fmt: skip
    for line in made:
        words.add(line, MADE + line.file)
    for file, block, text in marked:
        for _ in range(ALTERED):
            altered = alter_words(vary(text, other, draw), lexicon, draw, 0.3)
            words.add(read_line(fill(altered, draw), file, block), UNLABELLED)
        for _ in range(REWORDED if text.isascii() else 0):
            altered = alter_words(vary(text, other, draw), lexicon, draw, 0.12)
            words.add(read_line(fill(altered, draw), file, block), MADE + file)
    hidden = values(other.made, other.short, draw)
    capitals = [word.capitalize() for word in draw.sample(vocabulary, len(vocabulary) // 3)]
    value = values(other.made, (*other.short, *vocabulary, *capitals), draw)
    for place, text in enumerate(frames(draw, hidden, HIDING, secret=True)):
        words.add(read_line(text, LIST_FILE, place % BLOCKS), MADE + LIST_FILE)
    documents = [text for text in ordinary_texts(given.ordinary, draw) if not SPEAKS.search(text)]
    harmless = [*plain, *other_numbers(plain, draw), *other_names(value, draw), *documents]
    harmless += fragments(harmless, draw)
    harmless += frames(draw, value, SHOWING, secret=False)
    for place, text in enumerate(harmless):
        words.add(Line(text, [], HARMLESS_FILE, place % BLOCKS), HARMLESS_FILE)
    words.save(given.out)
    print(f"{len(words.texts)} texts, {len(words.tags)} words")


if __name__ == "__main__":
    main()
