"""Shared helpers: open a memory, recall for a framework, hit metadata, quoted hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import MissingExtra, Refused
from bethink.memory import Memory
from bethink.model import Candidate, Recall
from bethink.render.quoting import Quote, fence_quotes, one_line
from bethink.render.wire import fields_json, passage_json
from bethink.retrieval.answer_text import UNSURE_NOTICE
from bethink.retrieval.explain import match_reasons
from bethink.retrieval.profile import Profile
from bethink.retrieval.query_builder import MAX_QUERY_BYTES


def open_memory(given: Memory | str | None) -> Memory:
    """Return the given memory, or open a space by name; None opens the project's own.

    It holds nothing above the classification that its settings allow.
    """
    if given is None or isinstance(given, str):
        given = Memory.open(given)
    if isinstance(given, Memory):
        return given.below(given.settings.max_classification)
    raise Refused(
        f"{type(given).__name__} is not a memory", remedy="give a Memory, or the name of a space"
    )


def missing_extra_error(
    error: ModuleNotFoundError, library: str, *, extra: str, modules: str
) -> Exception:
    """Return the error to raise for a failed import: MissingExtra, or the error itself.

    ``modules`` are the top-level modules of the extra; any other missing module is not its fault.
    """
    if (error.name or "").partition(".")[0] in modules.split():
        return MissingExtra(library, extra=extra)
    return error


_HEAD_CHARS, _TAIL_CHARS = 1500, 500  # characters kept of a question that is too long


class RecallOptions(NamedTuple):
    """The options of a recall that an integration exposes to its user."""

    k: int | None = None
    profile: str | None = None
    max_tokens: int | None = None
    deep: bool = False
    filters: Mapping[str, Any] | None = None
    abstain: bool = True
    whole: bool = False

    def recall(self, memory: Memory, question: str) -> Recall | None:
        """Recall for a question; None if there is neither a question nor a filter."""
        text = clean_question(question)
        if not text.strip() and not self.filters:
            return None
        return memory.recall(
            text,
            k=self.k,
            profile=resolve_profile(memory, self.profile, abstain=self.abstain),
            max_tokens=self.max_tokens,
            deep=self.deep,
            whole=self.whole,
            **(self.filters or {}),
        )


def clean_question(question: str) -> str:
    """Return a question that recall accepts.

    In a chat the question may be anything, such as a pasted log: of a long one the beginning and
    the end are used, and invalid characters are replaced.
    """
    said = question.encode("utf-8", "replace").decode().replace("\0", " ")
    if len(said.encode()) <= MAX_QUERY_BYTES:
        return said
    return f"{said[:_HEAD_CHARS]}\n{said[-_TAIL_CHARS:]}"


def resolve_profile(memory: Memory, profile: str | None, *, abstain: bool) -> Profile:
    """Return the named or default profile; without ``abstain`` its gate is removed."""
    chosen = memory.profile(profile)
    return chosen if abstain or not chosen.gate else chosen.without("gate")


def hit_metadata(hit: Candidate, answer: Recall) -> Json:
    """Return the metadata of a hit as plain JSON."""
    item = hit.item
    return {
        "id": item.id,
        "relevance": hit.relevance,
        "score": hit.score,
        "reasons": list(match_reasons(hit, answer)),
        **fields_json(item, "trust when kind level source speaker session topic tags status flags"),
        "profile": answer.profile,
        "outcome": answer.status,
        "confidence": answer.confidence,
        "passage": passage_json(hit),
    }


def quote_hits(texts: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Format texts as quoted data for a model, each with its source and trust.

    They are marked where the answer they come from is unsure. Empty if there are no texts.
    """
    given = list(texts)
    quotes = [Quote(_quote_label(known), text) for text, known in given]
    unsure = any(known.get("outcome") == "unsure" for _, known in given)
    notice = f"{UNSURE_NOTICE}\n" if unsure else ""
    return f"{notice}{fence_quotes(quotes, max_chars=None)}"


def _quote_label(metadata: Mapping[str, Any]) -> str:
    flags = metadata.get("flags")
    named = [
        metadata.get("id"),
        (metadata.get("when") or "")[:10],
        f"trust {metadata.get('trust', 0)} of 3",
        f"source {metadata.get('source')}",
        metadata.get("speaker"),
        f"flagged: {' '.join(flags)}" if flags else "",
    ]
    return " | ".join(one_line(str(part), 100) for part in named if part)
