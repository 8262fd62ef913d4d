"""A statement as a tree of tokens: parentheses are groups, the rest is words and signs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from bethink.core.named_tuple import NamedTuple
from bethink.errors import StoreError

Kind = Literal["word", "text", "number", "mark", "sign"]

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|--[^\n]*)
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<mark>\?\d*)
    |(?P<word>[A-Za-z_$][A-Za-z_0-9$]*)
    |(?P<number>0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<sign>::|<>|<=|>=|\|\||->>|->|\#>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A word, literal, mark of a bound value, or sign."""

    kind: Kind
    text: str

    def is_word(self, *names: str) -> bool:
        """Whether it is one of these words, in upper case."""
        return self.kind == "word" and self.text.upper() in names


class Group(tuple["Token | Group", ...]):
    """What stands between parentheses."""

    __slots__ = ()


Node = Token | Group
NO_TOKEN = Token("sign", "")


def parse(sql: str) -> Group:
    """Return the tree of a statement. Marks are numbered: ``?`` is one more than the last."""
    stack: list[list[Node]] = [[]]
    last_mark = 0
    for token in _tokens(sql):
        if token.text == "(":
            stack.append([])
        elif token.text == ")":
            group = Group(stack.pop())
            if not stack:
                raise StoreError(f"a parenthesis is closed too often: {sql}")
            stack[-1].append(group)
        elif token.kind == "mark":
            number = int(token.text[1:]) if len(token.text) > 1 else last_mark + 1
            last_mark = max(last_mark, number)
            stack[-1].append(Token("mark", str(number)))
        else:
            stack[-1].append(token)
    if len(stack) != 1:
        raise StoreError(f"a parenthesis is not closed: {sql}")
    return Group(stack[0])


def _tokens(sql: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        if kind in ("word", "text", "number", "mark", "sign"):
            yield Token(kind, match[0])  # type: ignore[arg-type]  # one of the kinds


def at(nodes: Sequence[Node], place: int) -> Token:
    """Return the token at a place; an empty one beyond the end, and for a group."""
    if 0 <= place < len(nodes):
        node = nodes[place]
        if isinstance(node, Token):
            return node
    return NO_TOKEN


def group_at(nodes: Sequence[Node], place: int) -> Group | None:
    """Return the group at a place, if there is one."""
    node = nodes[place] if 0 <= place < len(nodes) else None
    return node if isinstance(node, Group) else None


def split_at_commas(nodes: Iterable[Node]) -> list[Group]:
    """Return the parts between commas; none where there is nothing."""
    parts: list[list[Node]] = [[]]
    for node in nodes:
        if isinstance(node, Token) and node.text == ",":
            parts.append([])
        else:
            parts[-1].append(node)
    return [Group(part) for part in parts] if parts != [[]] else []


def find_word(nodes: Sequence[Node], *names: str, start: int = 0) -> int:
    """Return the place of the first of these words at this level; the length without one."""
    for place in range(start, len(nodes)):
        if at(nodes, place).is_word(*names):
            return place
    return len(nodes)
