"""Prepare what the model of secrets learns from: words with their pieces and shapes.

    python training/secret_lines.py OUT.npz --ordinary FOLDER...

The lines of ``data/redaction`` with their secrets in double brackets; the same with other values,
with a placeholder instead of the value, joined with other lines or put into other texts; the same
with other words, of which only the teachers say what is secret. Harmless are the other texts of
``data``, paragraphs of documentation and pieces of source code in the folders, but for those that
speak of codes, keys or passwords.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
from collections.abc import Iterator, Sequence
from pathlib import Path

from alter import Lexicon, read_lexicon, replacement
from bethink.models.secret_model import split_words, word_shapes
from names import BLOCK, CJK, DATA, MADE, UNLABELLED, Line, Words, join_lines, other_texts

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
VARIANTS, HARMLESS, ALTERED = 7, 2, 2
SIGNS, SHAPES = "!#$%&*+-_.@?~^", ("{w}{n}", "{W}{n}", "{w}-{v}", "{w}_{v}{n}", "{W}{s}{n}", "{w}{v}",
    "{w}-{v}-{u}", "{W}{V}{n}", "{n}{w}{s}", "{w}{s}{v}", "{w}", "{W}{V}", "{w} {v} {u} {x}")  # fmt: skip
LIST_FILE, HARMLESS_FILE = 19, 49
# Suffixes of ordinary texts, and whether they are code; so many of prose and of code at most.
ORDINARY = {".md": False, ".rst": False, ".pod": False, ".py": True, ".js": True, ".ts": True}
MOST_ORDINARY, BLOCKS = 14_000, 30_000
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


class OtherValues:
    """Draws another value for a secret: of the same form, of another line, or a made one."""

    def __init__(
        self, lines: Sequence[tuple[int, int, str]], words: Sequence[str], draw: random.Random
    ) -> None:
        self._draw, self._words = draw, words
        self._seen = [
            value for _, _, line in lines for value in MARKED.findall(line) if "«" not in value
        ]

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


def alter_words(marked: str, lexicon: Lexicon, draw: random.Random) -> str:
    """Replace some words around the secrets; what is secret then, the teachers say."""
    parts = re.split("(⟦.*?⟧|«.*?»|\\w+)", marked, flags=re.DOTALL)
    for at in range(1, len(parts), 2):
        word = parts[at]
        if word.isalpha() and draw.random() < 0.3:
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
        parts = re.split(r"\n\s*\n", path.read_text(errors="replace"))
        for part in draw.sample(parts, min(len(parts), 4 if is_code else 12)):
            text = part.strip() if is_code else " ".join(part.split())
            if 20 < len(text) < 1_200:
                code, prose = code + is_code, prose + (not is_code)
                yield text


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
    plain = list(other_texts(draw))
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
            words.add(
                read_line(
                    fill(alter_words(vary(text, other, draw), lexicon, draw), draw), file, block
                ),
                UNLABELLED,
            )
    for place, text in enumerate((*plain, *ordinary_texts(given.ordinary, draw))):
        if not SPEAKS.search(text):
            words.add(Line(text, [], HARMLESS_FILE, place % BLOCKS), HARMLESS_FILE)
    words.save(given.out)
    print(f"{len(words.texts)} texts, {len(words.tags)} words")


if __name__ == "__main__":
    main()
