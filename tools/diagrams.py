"""Draw the diagrams of the concepts page: `python tools/diagrams.py` writes docs/assets."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from bethink.ingest.updates import MIN_SUPERSESSION, MIN_UPDATE

ASSETS = Path(__file__).parent.parent / "docs" / "assets"
# Follows the reader's light or dark setting; the card keeps it legible on any page.
STYLE = """
:root{--card:#fbfaf7;--edge:#d9d4c7;--ink:#22262b;--soft:#5d6670;--line:#8a929b;
--blue:#e3edf7;--blue-edge:#5b87b5;--green:#e2f1e5;--green-edge:#4f9361;
--amber:#fbeed3;--amber-edge:#c08a2c;--rose:#f8e3e1;--rose-edge:#bb5f57}
@media (prefers-color-scheme:dark){:root{--card:#1c2025;--edge:#3a4149;--ink:#e7e9ec;--soft:#a6afb9;
--line:#7d8791;--blue:#22344a;--blue-edge:#7ba6d6;--green:#1f3a2b;--green-edge:#72b987;
--amber:#43351b;--amber-edge:#dcae59;--rose:#452725;--rose-edge:#dd8a82}}
text{font:15px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--ink)}
.head{font-weight:600}.label{font-size:14px}.note{font-size:13px;fill:var(--soft)}
.mono{font:13px ui-monospace,SFMono-Regular,Menlo,monospace}
.card{fill:var(--card);stroke:var(--edge)}.plain{fill:var(--card);stroke:var(--line)}
.blue{fill:var(--blue);stroke:var(--blue-edge)}.green{fill:var(--green);stroke:var(--green-edge)}
.amber{fill:var(--amber);stroke:var(--amber-edge)}.rose{fill:var(--rose);stroke:var(--rose-edge)}
.arrow{fill:none;stroke:var(--line);stroke-width:1.6;marker-end:url(#tip)}
.dash{stroke-dasharray:5 4}.tip{fill:var(--line)}
"""
MIDDLE_LINE = 19
SMALL = 34  # a box for one word or two


SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
    'width="{width}" height="{height}" role="img" aria-labelledby="title about">'
)
MARKER = (
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
    'markerHeight="7" orient="auto-start-reverse">'
    '<path class="tip" d="M0 0 10 5 0 10z"/></marker></defs>'
)


class Drawing:
    """An SVG with boxes, arrows and notes at the places that they are given."""

    def __init__(self, title: str, description: str, width: int, height: int) -> None:
        self._parts = [
            SVG.format(width=width, height=height),
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="about">{escape(description)}</desc><style>{STYLE}</style>',
            MARKER,
            f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="10"/>',
        ]

    def box(self, place: tuple[int, int, int, int], *lines: str, kind: str = "plain") -> None:
        """Draw a box (left, top, width, height) with a heading and notes, centred."""
        x, y, width, height = place
        self._parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="7"/>'
        )
        top = y + height / 2 - (len(lines) - 1) * MIDDLE_LINE / 2 + 5
        for number, line in enumerate(lines):
            style = "head" if number == 0 and height > SMALL else "note" if number else "label"
            self.text((x + width // 2, int(top + number * MIDDLE_LINE)), line, style, "middle")

    def text(
        self, place: tuple[int, int], words: str, style: str = "note", anchor: str = "start"
    ) -> None:
        """Write words at a place (left, base line)."""
        x, y = place
        self._parts.append(
            f'<text class="{style}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def arrow(self, path: str, style: str = "") -> None:
        """Draw an arrow along an SVG path."""
        self._parts.append(f'<path class="arrow {style}" d="{path}"/>')

    def svg(self) -> str:
        """Return the whole file."""
        return "\n".join([*self._parts, "</svg>", ""])


def answer() -> str:
    """How a question is answered."""
    draw = Drawing(
        "How a question is answered",
        "A question goes to several retrievers; their rankings are fused, linked memories "
        "are added, the best are compared closely, and a gate decides between found, unsure and "
        "nothing. Every step adds evidence to the score.",
        880, 520,
    )  # fmt: skip
    draw.box((30, 30, 250, 56), "question", "“when do we ship?”", kind="blue")
    draw.text((300, 50), "with filters, limits and the time it is asked at")
    draw.text((300, 68), "one snapshot of the store: nothing changes underneath")
    retrievers = (
        ("words", "BM25 over stems"),
        ("meaning", "vectors, cosine"),
        ("time", "“last Tuesday”"),
        ("parts of words", "typos, identifiers"),
    )
    for number, (name, note) in enumerate(retrievers):
        left = 30 + number * 208
        draw.arrow(f"M155 86V108H{left + 98}V126")
        draw.box((left, 128, 196, 56), name, note)
        draw.arrow(f"M{left + 98} 184V204H440V222")
    draw.text((850, 100), "1 retrieve: each has its own ranking", "note", "end")
    draw.box((280, 224, 320, 44), "fuse the rankings into one pool")
    draw.text((616, 251), "2 fuse")
    draw.arrow("M440 268V288")
    draw.box((280, 290, 320, 56), "add what belongs to them", "neighbouring turns, linked memories")
    draw.text((616, 322), "3 expand")
    draw.arrow("M440 346V366")
    draw.box((280, 368, 320, 56), "compare closely with the question",
             "newer statements first, no repeats")  # fmt: skip
    draw.text((616, 400), "4 rerank, diversify")
    draw.arrow("M440 424V444")
    draw.box((280, 446, 320, 44), "is anything on the subject?", kind="amber")
    draw.text((440, 508), "5 gate", "note", "middle")
    draw.arrow("M600 468H640")
    draw.box((642, 440, 208, 54), "found, or unsure", "what fits the token budget", kind="green")
    draw.arrow("M280 468H240")
    draw.box((30, 440, 208, 54), "nothing", "and the nearest miss", kind="rose")
    draw.box((30, 238, 208, 108), "evidence", "every step adds a reason;",
             "replaying the reasons", "gives the score exactly", kind="blue")  # fmt: skip
    draw.arrow("M278 246H240", "dash")
    draw.arrow("M278 318H240", "dash")
    draw.arrow("M278 396H134V348", "dash")
    return draw.svg()


def storing() -> str:
    """How a memory is stored."""
    draw = Drawing(
        "How a memory is stored",
        "A text is checked, secrets are removed, duplicates found, a vector, entities and dates "
        "made, older statements compared; then text, indexes, vector, links and journal are "
        "written in one transaction.",
        880, 400,
    )  # fmt: skip
    draw.box((30, 30, 250, 56), "remember", "“Releases go out on Thursdays”", kind="blue")
    steps = (
        ((30, 128, 196, 74), "check", "size, characters,", "not a pasted log"),
        ((238, 128, 196, 74), "remove secrets", "keys, tokens,", "personal numbers"),
        ((446, 128, 196, 74), "find duplicates", "the same text is", "not stored twice"),
        ((654, 128, 196, 74), "read it", "vector, entities,", "dates, kind"),
    )
    draw.arrow("M128 86V126")
    for place, *lines in steps:
        draw.box(place, *lines)
    for left in (226, 434, 642):
        draw.arrow(f"M{left} 165H{left + 10}")
    draw.box((654, 240, 196, 56), "compare with older", "does it update one?", kind="amber")
    draw.arrow("M752 202V238")
    draw.box((30, 240, 560, 128), "", kind="green")
    draw.text((310, 264), "one transaction: all of it, or nothing", "head", "middle")
    parts = (("text, as revision 1", 46), ("word index", 232), ("vector", 418))
    for name, left in parts:
        draw.box((left, 278, 156, 34), name)
    for name, left in (
        ("links, entities", 46),
        ("journal: who, when", 232),
        ("hash of the text", 418),
    ):
        draw.box((left, 322, 156, 34), name)
    draw.arrow("M654 268H592")
    draw.text((654, 322), "The result says what it")
    draw.text((654, 340), "collided with, and which")
    draw.text((654, 358), "command resolves it.")
    draw.text((310, 54), "If the embedder is down, the memory is stored and found by its words;")
    draw.text((310, 74), "bethink reindex", "mono")
    draw.text((434, 74), "adds the vector later.")
    return draw.svg()


def correction() -> str:
    """What happens to a correction."""
    draw = Drawing(
        "What happens to a correction",
        "A newer statement is linked to the older one with a probability. Answers put the newer "
        "first and mark the older; the past can still be asked for; undo and unlink take it back.",
        880, 430,
    )  # fmt: skip
    draw.box((30, 34, 270, 56), "Monday", "“Releases go out on Tuesdays”", kind="blue")
    draw.box((30, 130, 270, 56), "Wednesday", "“Releases now go out on Thursdays”", kind="blue")
    draw.arrow("M300 62H350V100H396")
    draw.arrow("M300 158H350V120H396")
    draw.box(
        (398, 76, 210, 68), "a small local model", "reads both together:",
        "update, same, both, other?", kind="amber",
    )  # fmt: skip
    draw.arrow("M608 96H650")
    draw.box((652, 34, 198, 62), f"{MIN_SUPERSESSION} or more", "link “supersedes”", kind="green")
    draw.arrow("M608 124H650")
    draw.box((652, 110, 198, 62), f"{MIN_UPDATE} or more", "link “updates”", kind="green")
    draw.text((751, 190), "less: no link", "note", "middle")
    draw.text(
        (30, 232),
        "Nothing is deleted or overwritten. What follows depends on the question:",
        "head",
    )
    answers = (
        ("“when do we ship?”", "1  Thursdays", "2  Tuesdays (older)", "green"),
        ("“which day was it before?”", "1  Tuesdays", "2  Thursdays", "green"),
        ("--as-of Tuesday", "1  Tuesdays", "as it was known then", "green"),
    )
    for number, (question, first, second, kind) in enumerate(answers):
        left = 30 + number * 280
        draw.box((left, 252, 260, 34), question)
        draw.arrow(f"M{left + 130} 286V302")
        draw.box((left, 304, 260, 50), first, second, kind=kind)
    draw.text((30, 386), "Was it wrong?", "head")
    draw.text((162, 386), "bethink unlink NEW supersedes OLD", "mono")
    draw.text((30, 410), "Sure of it?", "head")
    draw.text((162, 410), "bethink forget OLD", "mono")
    draw.text((312, 410), "(it can be restored)")
    draw.text((500, 386), "A less trusted memory never comes before")
    draw.text((500, 404), "a more trusted one: both are shown as contradicting.")
    return draw.svg()


DIAGRAMS = {"answer": answer, "storing": storing, "correction": correction}


def main() -> int:
    """Write the three diagrams."""
    for name, make in DIAGRAMS.items():
        (ASSETS / f"diagram-{name}.svg").write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
