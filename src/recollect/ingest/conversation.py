"""Keeps the order of what was said: a number for every turn, and the turn before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.ingest.writing import Prepared
from recollect.ports import Store


def in_order(prepared: Sequence[Prepared], store: Store) -> tuple[list[Prepared], dict[str, str]]:
    """The same drafts with every turn numbered, and for each the id of the turn before.

    A turn without a number comes after the last one of its session.
    """
    numbered = list(prepared)
    before: dict[str, str] = {}
    sessions: dict[str, list[int]] = {}
    for i, piece in enumerate(prepared):
        if piece.draft.session is not None:
            sessions.setdefault(piece.draft.session, []).append(i)
    for session, places in sessions.items():
        last = store.last_turn(session)
        highest = last.seq if last and last.seq is not None else -1
        for i in places:
            if numbered[i].draft.seq is None:
                numbered[i] = replace(
                    numbered[i], draft=numbered[i].draft._replace(seq=highest + 1)
                )
            highest = max(highest, numbered[i].draft.seq or 0)
        previous = (last.seq, last.id) if last else None
        for seq, piece_id in sorted((numbered[i].draft.seq or 0, numbered[i].id) for i in places):
            if previous and previous[0] is not None and previous[0] < seq:
                before[piece_id] = previous[1]
            previous = (seq, piece_id)
    return numbered, before
