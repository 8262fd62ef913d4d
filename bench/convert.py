"""Turn a checkout of BEAM into the form that ``bethink eval`` reads.

BEAM (mohammadtavakoli78/BEAM, arXiv 2510.27246) asks twenty questions of each chat with an
assistant. A chat becomes a store, a message a memory. Where a chat was shortened, the questions
are about the short form. The messages that answer a question are its ``source_chat_ids``::

    git clone --depth 1 https://github.com/mohammadtavakoli78/BEAM
    python bench/convert.py BEAM beam-100K
    bethink eval beam-100K --baselines

RealMem is read by bench/realmem.py. The data belong to their authors and are not part of this
repository.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_MARKER = re.compile(r"\s*->->[\s\d,]*(?:N/A)?\)?\s*$")  # the place in BEAM's plan
_ABSTENTION = "abstention"


def beam_chats(checkout: Path, size: str) -> Iterator[tuple[str, list[Json], list[Json]]]:
    """The name, memories and questions of every chat of a size."""
    folders = [one for one in (checkout / "chats" / size).iterdir() if one.name.isdecimal()]
    for folder in sorted(folders, key=lambda one: int(one.name)):
        shortened = folder / "chat_trunecated.json"  # spelt like this
        chat = _load(shortened if shortened.exists() else folder / "chat.json")
        asked = _load(folder / "probing_questions" / "probing_questions.json")
        yield f"chat-{folder.name}", list(_beam_memories(chat)), list(_beam_questions(asked))


def _beam_memories(chat: list[Json]) -> Iterator[Json]:
    for number, batch in enumerate(chat, start=1):
        messages = [message for turn in batch["turns"] for message in turn]
        day = next(one["time_anchor"] for one in messages if one.get("time_anchor"))
        for seq, message in enumerate(messages):
            yield {
                "id": str(message["id"]),
                "text": _MARKER.sub("", message["content"]),
                "speaker": message["role"],
                "session": f"s{number}",
                "seq": seq,
                "occurred_at": datetime.strptime(day, "%B-%d-%Y").replace(tzinfo=UTC).isoformat(),
            }


def _beam_questions(asked: dict[str, list[Json]]) -> Iterator[Json]:
    """Questions that name no source are left out, unless they have no answer on purpose."""
    for kind, questions in asked.items():
        for number, question in enumerate(questions, start=1):
            sources = sorted(set(_numbers(question.get("source_chat_ids"))))
            if sources or kind == _ABSTENTION:
                yield {
                    "id": f"{kind}-{number}",
                    "question": question["question"],
                    "relevant": [str(source) for source in sources],
                    "type": kind,
                }


def _numbers(value: object) -> Iterator[int]:
    """The numbers in a list, or in an object of lists."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, records: Iterable[Json]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as stream:
        for record in records:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def main() -> None:
    """Convert one checkout."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("folder", type=Path, help="where the stores are written")
    parser.add_argument("--size", default="100K", choices=("100K", "500K", "1M"))
    chosen = parser.parse_args()
    for name, memories, questions in beam_chats(chosen.checkout, chosen.size):
        _write(chosen.folder / f"{name}.jsonl", memories)
        _write(chosen.folder / f"{name}.questions.jsonl", questions)


if __name__ == "__main__":
    main()
