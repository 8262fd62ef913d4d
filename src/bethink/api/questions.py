"""Saved questions, with the memories that were marked as right and wrong answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from bethink.api.session import SessionMethods
from bethink.core.json_values import Json, iso
from bethink.core.named_tuple import NamedTuple
from bethink.errors import NotFound, Refused
from bethink.retrieval.query_builder import make_filters

MAX_QUESTIONS = 500


class SavedQuestion(NamedTuple):
    """A question that was saved to be asked again; `bethink eval jsonl` measures with them.

    ``relevant`` are the ids of the memories that answer it: None while the answer is not marked,
    none at all where nothing stored answers it. ``now`` is when it was saved.
    """

    query: str
    relevant: list[str] | None
    wrong: list[str]
    filters: Mapping[str, object]
    now: str


class QuestionMethods(SessionMethods):
    """Keeps questions; a person's are in the person's own store."""

    def questions(self) -> list[SavedQuestion]:
        """List the saved questions, the last one first."""
        ceiling = self.settings.max_classification  # who sees less is not told what was asked
        seen = [one for one in self.store.admin.questions() if one["ceiling"] <= ceiling]
        names = SavedQuestion._fields
        shown = [SavedQuestion(*(one[name] for name in names)) for one in reversed(seen)]
        marked = {item for one in shown for item in (*(one.relevant or ()), *one.wrong)}
        there = self.store.items.get(sorted(marked))  # not what was erased, or is above the ceiling
        keep = partial(filter, there.__contains__)
        return [
            one._replace(relevant=one.relevant and [*keep(one.relevant)], wrong=[*keep(one.wrong)])
            for one in shown
        ]

    def save_question(
        self,
        query: str,
        *,
        relevant: Sequence[str] | None = None,
        wrong: Sequence[str] = (),
        filters: Mapping[str, object] | None = None,
    ) -> SavedQuestion:
        """Save a question, in place of one with the same words.

        ``relevant`` are the memories that answer it, ``wrong`` some that do not; an empty
        ``relevant`` says that nothing stored answers it.
        """
        if not query.strip():
            raise Refused("the question is empty")
        make_filters(filters or {}, self.now)  # refuses what cannot be asked
        known = {one: self.session.stored_item(one).id for one in (*(relevant or ()), *wrong)}
        right = None if relevant is None else [known[one] for one in relevant]
        others = [known[one] for one in wrong]
        made = SavedQuestion(query.strip(), right, others, filters or {}, iso(self.now) or "")
        self._change_questions(made.query, made._asdict())
        return made

    def drop_question(self, query: str) -> None:
        """Remove a saved question."""
        if all(one.query != query.strip() for one in self.questions()):
            raise NotFound("there is no such saved question")
        self._change_questions(query.strip(), None)

    def _change_questions(self, query: str, entry: Json | None) -> None:
        ceiling = self.settings.max_classification

        def change(kept: list[Json]) -> list[Json]:
            others = [one for one in kept if one["query"] != query or one["ceiling"] > ceiling]
            if entry and sum(one["ceiling"] == ceiling for one in others) >= MAX_QUESTIONS:
                raise Refused(f"{MAX_QUESTIONS} questions are saved", remedy="remove some")
            return others + ([{**entry, "ceiling": ceiling}] if entry else [])

        self.store.admin.change_questions(change)
