"""The page docs/python.md: every public name with its signature, fields and docstring."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import bethink
from bethink import testing
from bethink.api.options import (
    FilterOptions,
    MemoryChanges,
    MemoryFields,
    RecallOptions,
    ThreadFields,
)

_WIDTH = 88
_INTRO = """# Python reference

Import these names from `bethink`. The [guide](python-guide.md) shows how to use them; \
[compatibility](compatibility.md) says what you can rely on. This page is written by \
`make reference` from the code.
"""
_GROUPS: dict[str, tuple[str, ...]] = {
    "The memory": ("Memory", "AsyncMemory"),
    "Values": (
        *("Draft", "Remembered", "Item", "Entity", "Link", "Thread", "Query", "Filters"),
        *("Recall", "Candidate", "Evidence", "Embedding", "Forgotten"),
    ),
    "Settings and profiles": ("Settings", "load_settings", "Profile", "load_profile"),
    "Protocols": (
        *("Retriever", "Fusion", "Stage", "Assembler", "Context", "Embedder", "Reranker"),
        *("LanguageModel", "Importer", "Store"),
    ),
}
_KEYWORDS = (MemoryFields, MemoryChanges, FilterOptions, RecallOptions, ThreadFields)
_GROUP_NOTES = {
    "Keywords": "Keyword arguments that several methods share, and their types.",
    "Protocols": "A part of your own fulfils one of these; see [extending](extending.md).",
    "Errors": "Every error has a `message` and, where possible, a `remedy`.",
    "Tests": "Import these from `bethink.testing`. Each check raises `LawBroken` with the law "
    "and the case.",
}


def page() -> str:
    """Return the whole page."""
    named = {name for names in _GROUPS.values() for name in names}
    rest = [name for name in bethink.__all__ if name not in named and name != "__version__"]
    groups = _GROUPS | {"Errors": tuple(sorted(rest, key=_depth))}
    parts = [_INTRO]
    for title, names in groups.items():
        parts += _section(title, {name: getattr(bethink, name) for name in names})
        if title == "The memory":
            parts += _section("Keywords", {kind.__name__: kind for kind in _KEYWORDS})
    laws = {name: getattr(testing, name) for name in testing.__all__}
    parts += _section("Tests", laws)
    return "\n".join(parts).rstrip() + "\n"


def _depth(name: str) -> tuple[int, str]:
    """Sort errors from the base class on."""
    return len(getattr(bethink, name).__mro__), name


def _section(title: str, members: dict[str, Any]) -> Iterator[str]:
    yield f"## {title}\n"
    if title in _GROUP_NOTES:
        yield f"{_GROUP_NOTES[title]}\n"
    for name, member in members.items():
        yield from _class_entry(name, member) if isinstance(member, type) else _entry(name, member)


def _class_entry(name: str, kind: type) -> Iterator[str]:
    base = kind.__mro__[1].__name__
    yield f"### {name}\n"
    if issubclass(kind, Exception):
        yield f"A kind of `{base}`. {_prose(kind)}"
        return
    yield _prose(kind)
    if fields := list(_fields(kind)):
        heads = ["| keyword | type |", "|---|---|"] if kind in _KEYWORDS else _FIELD_HEADS
        yield "\n".join([*heads, *fields]) + "\n"
    if kind in _KEYWORDS:
        return
    for member in _public_members(kind):
        yield from _entry(f"{name}.{member}", inspect.getattr_static(kind, member), level=4)


def _fields(kind: type) -> Iterator[str]:
    """Rows of a table: the fields of a dataclass or a named tuple."""
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            if not field.name.startswith("_"):
                yield _row(field.name, field.type, _field_default(field))
    elif kind in _KEYWORDS:
        for name, annotation in kind.__annotations__.items():
            if kind is not RecallOptions or name not in FilterOptions.__annotations__:
                yield _keyword_row(name, annotation)
    elif hasattr(kind, "_fields"):
        defaults: dict[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
        for name, annotation in kind.__annotations__.items():
            yield _row(name, annotation, _value(defaults[name]) if name in defaults else "")


_FIELD_HEADS = ["| field | type | default |", "|---|---|---|"]


def _keyword_row(name: str, annotation: Any) -> str:
    kind = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    kind = getattr(kind, "__forward_arg__", kind)
    shown = re.sub(
        r"ForwardRef\('(.*?)'\)",
        r"\1",
        _annotation(kind) if isinstance(kind, type | str) else str(kind),
    )
    shown = re.sub(r"\b(?:\w+\.)+(?=\w)", "", shown).replace("NoneType", "None").replace("|", "\\|")
    return f"| `{name}` | `{shown}` |"


def _row(name: str, annotation: Any, default: str) -> str:
    shown = _annotation(annotation).replace("|", "\\|")
    return f"| `{name}` | `{shown}` | {f'`{default}`' if default else 'required'} |"


def _field_default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return _value(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return f"{getattr(field.default_factory, '__name__', 'made')}()".replace("<lambda>", "made")
    return ""


def _public_members(kind: type) -> list[str]:
    """The public methods and properties of a class, in the order of the source."""
    ignored = {*dir(tuple), *dir(object)}
    fields = (
        {field.name for field in dataclasses.fields(kind)}
        if dataclasses.is_dataclass(kind)
        else set()
    )
    fields |= set(getattr(kind, "_fields", ()))
    found: dict[str, None] = {}
    for base in kind.__mro__:
        if base.__module__.startswith("bethink"):
            for name, value in vars(base).items():
                told = callable(value) or isinstance(value, property | classmethod | staticmethod)
                told = told and (kind is not bethink.AsyncMemory or _is_own(value))
                if not name.startswith("_") and told and name not in ignored | fields:
                    found.setdefault(name)
    if "__call__" in vars(kind):
        found.setdefault("__call__")
    return list(found)


def _is_own(member: Any) -> bool:
    """Whether a method of `AsyncMemory` is more than one of `Memory` that is awaited."""
    return not hasattr(member, "__wrapped__") or isinstance(member, staticmethod)


def _entry(name: str, member: Any, level: int = 3) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    called = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    if isinstance(called, property):
        shown = _annotation(inspect.signature(called.fget).return_annotation)  # type: ignore[arg-type]
        yield f"```py\n{name.rpartition('.')[2]}: {shown}\n```\n"
    else:
        yield f"```py\n{_signature(name, called)}\n```\n"
    yield _prose(called)


def _signature(name: str, function: Any) -> str:
    """A signature as it is written in the source, one parameter a line where it is long."""
    signature = inspect.signature(function)
    words: list[str] = []
    keyword_only = False
    for one in signature.parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(word.startswith("*") for word in words):
                words.append("*")
        words.append(_parameter(one))
    if any(one.kind is one.POSITIONAL_ONLY for one in signature.parameters.values()):
        words.append("/")
    result = signature.return_annotation
    returns = "" if result is inspect.Signature.empty else f" -> {_annotation(result)}"
    line = f"{name}({', '.join(words)}){returns}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {word}," for word in words), f"){returns}"])


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    shown = stars + one.name
    if one.annotation is not one.empty:
        shown += f": {_annotation(one.annotation)}"
    if one.default is one.empty:
        return shown
    return shown + (" = " if ":" in shown else "=") + _value(one.default)


def _annotation(annotation: Any) -> str:
    annotation = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__name__", None) or str(annotation).replace("typing.", "")


def _value(value: Any) -> str:
    """A default as it would be written; without addresses and without a platform's separators."""
    if inspect.isroutine(value) or isinstance(value, type):
        return value.__name__
    shown = repr(value)
    return "..." if len(shown) > 60 or " at 0x" in shown else shown.replace("\n", " ")


def _prose(member: Any) -> str:
    """The docstring as Markdown: code in single quotes, examples in a fence."""
    text = inspect.cleandoc(getattr(member, "__doc__", None) or "")
    if (
        isinstance(member, type)
        and dataclasses.is_dataclass(member)
        and text.startswith(member.__name__ + "(")
    ):
        text = ""
    blocks = []
    for block in text.split("\n\n"):
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```pycon\n{inspect.cleandoc(block)}\n```")
        elif block.startswith("    "):
            blocks.append(f"```py\n{inspect.cleandoc(block)}\n```")
        else:
            blocks.append(re.sub(r"``(.+?)``", r"`\1`", block, flags=re.DOTALL))
    return "\n\n".join(blocks) + "\n" if text else ""
