"""RealMem as its authors measure it: sessions are stored one by one, questions asked between.

RealMem (AvatarMemory/RealMemBench, arXiv 2601.06966) has ten people who talk with an assistant
for half a year. A question sees all sessions before its own, and what counts as found is a
session: those that the answer in the data was made of. Every turn is a memory; a session has
the rank of its first turn. Questions are asked as a default caller asks them; BM25 and the
cosine of the same embedder rank the same turns::

    git clone --depth 1 https://github.com/AvatarMemory/RealMemBench
    python bench/realmem.py RealMemBench --out realmem.jsonl

Every question is a line of ``--out``; a later run goes on with the people who are not in it.
The data belong to their authors and are not part of this repository.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any

from bethink import Memory
from bethink.core.characters import has_substance
from bethink.core.speakers import with_speaker
from bethink.eval.runner import Baselines
from bethink.eval.case import neutral_id
from bethink.eval.metrics import question_groups, score_results
from bethink.eval.runner import Judged, pool_units
from bethink.importers.entry import split_text
from bethink.model import Draft
from bethink.models import open_embedder
from bethink.ports import Embedder, Embedding
from bethink.retrieval.profile import load_profile

Json = dict[str, Any]
Question = tuple[str, str, list[str]]  # text, type, relevant sessions
METRICS = ("recall@5", "recall@10", "hit@10", "all@10", "ndcg@10")


@dataclass
class Person:
    """What was said so far."""

    now: datetime = datetime(2025, 1, 1, tzinfo=UTC)
    texts: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)

    def store(self, memory: Memory, session: Json) -> None:
        """Store a session, a memory for every turn."""
        name = session["session_uuid"]
        drafts = [
            Draft(part, id=neutral_id(f"{name}:{seq}:{number}"), level="raw", session=name, seq=seq,
                  speaker=turn["speaker"], occurred_at=self.now, source="conversation", force=True)
            for seq, turn in enumerate(session["dialogue_turns"])
            for number, part in enumerate(split_text(turn["content"]))
            if has_substance(part)
        ]  # fmt: skip
        for draft, stored in zip(drafts, memory.remember_many(drafts), strict=True):
            self.texts[stored.id] = with_speaker(draft)
            self.sessions.setdefault(stored.id, name)

    def ask(
        self, memory: Memory, embedder: Embedder, questions: Sequence[Question]
    ) -> Iterator[Json]:
        """Yield the sessions that each method finds, best first."""
        k = load_profile("default").budget.k
        index = Baselines(self.texts, embedder)
        for text, kind, relevant in questions:
            hits = memory.recall(text, now=self.now, track=False).hits
            plain = {
                name: tuple(dict.fromkeys(self.sessions[item] for item in ids))
                for name, ids in index.rank(text, k).items()
            }
            ranked = {**plain, "default": pool_units(hits, self.sessions)}
            yield {"type": kind, "relevant": relevant, "ranked": ranked}


def questions_of(session: Json, known: set[str]) -> list[Question]:
    """Text, type and sessions of every question; the answer after it names the sessions."""
    return [
        (turn["content"], turn["category_name"], used)
        for turn, answer in pairwise(session["dialogue_turns"])
        if turn.get("is_query")
        and (used := [one for one in answer.get("memory_session_uuids") or () if one in known])
    ]


def embed_once(embedder: Embedder) -> Embedder:
    """Embed a text once, for the store and the baselines."""
    known: dict[str, Embedding] = {}
    embed = embedder.embed

    def embed_new(texts: Sequence[str]) -> list[Embedding]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, embed(new) if new else (), strict=True))
        return [known[text] for text in texts]

    vars(embedder)["embed"] = embed_new
    return embedder


def run_person(sessions: Sequence[Json], embedder: Embedder) -> Iterator[Json]:
    """Go through the sessions in their order: ask first, then store."""
    person, known = Person(), set[str]()
    with Memory.open(":memory:", embedder=embedder, clock=lambda: person.now) as memory:
        for session in sessions:
            day, _, _ = session["current_time"].partition(" ")  # of the week
            person.now = datetime.fromisoformat(f"{day}T12:00:00+00:00")
            if questions := questions_of(session, known):
                yield from person.ask(memory, embedder, questions)
            person.store(memory, session)
            known.add(session["session_uuid"])


def paper_ndcg(ranked: Sequence[str], relevant: Sequence[str]) -> float:
    """NDCG@10 as RealMem computes it: the second place counts as much as the first."""
    weights = [1.0 / max(1.0, log2(place)) for place in range(1, 11)]
    gained = (weight for weight, one in zip(weights, ranked, strict=False) if one in relevant)
    return sum(gained) / sum(weights[: len(relevant)])


def print_table(rows: Sequence[Json]) -> None:
    """A line for every type of question and method."""
    for method in rows[0]["ranked"] if rows else ():
        scores = score_results([
            Judged(str(number), row["type"], dict.fromkeys(row["relevant"], 1.0),
                   tuple(row["ranked"][method]))
            for number, row in enumerate(rows)
        ])  # fmt: skip
        for name, places in question_groups(scores, {}).items():
            chosen = slice(None) if places is None else places
            means = {metric: scores.column(metric)[chosen].mean() for metric in METRICS}
            shown = "  ".join(f"{metric} {mean:.3f}" for metric, mean in means.items())
            print(f"{name:22} {method:8} {len(scores.column(METRICS[0])[chosen]):5}  {shown}")
        theirs = fmean(paper_ndcg(row["ranked"][method], row["relevant"]) for row in rows)
        sessions = fmean(len(row["ranked"][method]) for row in rows)
        print(
            f"{method}: NDCG@10 by the formula of RealMem {theirs:.3f}, sessions {sessions:.1f}\n"
        )


def main() -> None:
    """Measure the people who are not yet in the file, and print the table of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--person", action="append", default=[], help="only these")
    chosen = parser.parse_args()
    rows = [json.loads(line) for line in chosen.out.open()] if chosen.out.exists() else []
    for file in sorted((chosen.checkout / "dataset").glob("*_dialogues_256k.json")):
        person = file.name.removesuffix("_dialogues_256k.json")
        done = any(row["person"] == person for row in rows)
        embedder = open_embedder()
        if done or embedder is None or (chosen.person and person not in chosen.person):
            continue
        sessions = json.loads(file.read_text(encoding="utf-8"))["dialogues"]
        made = [{"person": person, **row} for row in run_person(sessions, embed_once(embedder))]
        with chosen.out.open("a") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in made)
        rows += made
    print_table(rows)


if __name__ == "__main__":
    main()
