"""BEIR folders: corpus.jsonl, queries.jsonl and qrels/*.tsv (Thakur et al., NeurIPS 2021)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from recollect.errors import Refused
from recollect.eval.case import Case, Dataset, Question, neutral_id
from recollect.eval.datasets.files import field, read_lines, read_records
from recollect.model import Draft
from recollect.text import has_substance

PUBLISHED = "folders with corpus.jsonl, queries.jsonl and qrels by the BEIR project (beir-cellar)"
SPLITS = ("test", "dev", "train")


def beir(path: Path | None, *, split: str | None = None) -> Dataset:
    """One space with the whole corpus; answers are documents."""
    folder = _located(path)
    qrels = _qrels_file(folder, split)

    def cases() -> Iterator[Case]:
        yield _case(folder, qrels)

    name = folder.resolve().name
    return Dataset(
        name=f"beir-{name}-{qrels.stem}", title=f"BEIR {name}, {qrels.stem} split", cases=cases
    )


def _located(path: Path | None) -> Path:
    """The folder; a sentence where there is none."""
    where = f"the data is published as {PUBLISHED}"
    if path is None:
        raise Refused("this data set needs a path", remedy=f"{where}; give the folder")
    if not path.is_dir():
        raise Refused(f"there is no folder {path}", remedy=where)
    return path


def _qrels_file(folder: Path, split: str | None) -> Path:
    there = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    for name in [split] if split else [*SPLITS, *there]:
        if name in there:
            return there[name]
    wanted = f"{split}.tsv" if split else ".tsv file"
    known = f"there are: {', '.join(there)}" if there else f"the data is published as {PUBLISHED}"
    raise Refused(f"{folder / 'qrels'} holds no {wanted}", remedy=known)


def _case(folder: Path, qrels: Path) -> Case:
    corpus = _one_of(folder, "corpus")
    rows = [
        (str(field(record, "_id", str(corpus))), text)
        for record in read_records(corpus)
        if has_substance(text := _text(record.get("title"), record.get("text")))
    ]
    judged = _judgements(qrels, {ref for ref, _ in rows})
    queries = _one_of(folder, "queries")
    questions = tuple(
        Question(key, field(record, "text", str(queries), str), judged[key])
        for record in read_records(queries)
        if (key := str(field(record, "_id", str(queries)))) in judged
    )
    answerable = tuple(question for question in questions if question.answerable)
    refs = tuple(ref for ref, _ in rows)
    return Case(
        name=folder.resolve().name,
        questions=answerable,
        drafts=tuple(
            Draft(text, id=neutral_id(ref), source="document", force=True) for ref, text in rows
        ),
        refs=refs,
        units=refs,
        skipped=len(judged) - len(answerable),
    )


def _text(title: object, text: object) -> str:
    return "\n".join(part for part in (str(title or "").strip(), str(text or "").strip()) if part)


def _one_of(folder: Path, stem: str) -> Path:
    for name in (f"{stem}.jsonl", f"{stem}.jsonl.gz"):
        if (folder / name).exists():
            return folder / name
    raise Refused(f"{folder} holds no {stem}.jsonl", remedy=f"the data is published as {PUBLISHED}")


def _judgements(path: Path, known: set[str]) -> dict[str, dict[str, float]]:
    """Gains by query and document; documents that are not in the corpus are left out."""
    judged: dict[str, dict[str, float]] = defaultdict(dict)
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if not line.strip() or (number == 1 and not cells[-1].strip().lstrip("-").isdigit()):
            continue  # an empty line, or the heading
        # Four columns are the older TREC form with an iteration between.
        query, document = cells[0], cells[-2] if len(cells) > 2 else ""
        try:
            gain = float(cells[-1])
        except ValueError as error:
            raise Refused(f"{path}:{number}: {cells[-1]!r} is not a grade") from error
        gains = judged[query]
        if gain > 0 and document in known:
            gains[document] = gain
    return judged
