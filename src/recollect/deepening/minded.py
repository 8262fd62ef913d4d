"""The same two judgements by a language model, of which nothing is believed unchecked.

What it says decides only whether and with which words to search on. No text of its own
gets into an answer, and it can name no file, no space and no address to go to.
"""

from __future__ import annotations

from recollect.context import Context
from recollect.deepening.enough import Verdict
from recollect.deepening.expansion import Expansion
from recollect.deepening.settings import Deep
from recollect.model import Caption, Pool
from recollect.ports import Budget, LanguageModel, Unusable
from recollect.prompts import Passage, cited, fill, passages_of
from recollect.text import has_substance

_NOTHING_YET = "(nothing)"


def judge_by(
    model: LanguageModel,
    hits: Pool,
    captions: tuple[Caption, ...],
    ctx: Context,
    *,
    budget: Budget,
) -> Verdict:
    """The model's verdict; "enough" without naming a memory that says so is none."""
    store, query = ctx.store, ctx.query
    passages = (
        *passages_of(store, [cand.item.id for cand in hits], as_of=query.as_of),
        *(Passage(store.space, "", caption.text) for caption in captions),
    )
    prompt = fill(
        "sufficiency",
        store.space,
        question=query.text,
        memories=passages,
        today=query.moment.date(),
    )
    said = model.complete(prompt, budget=budget)
    evidences = tuple(key for key in cited(passages, said["evidences"]) if key)
    gaps = tuple(said["gaps"])
    if said["sufficient"] and gaps:
        return Verdict(False, f"{model.name} says both enough and what is missing", gaps, evidences)
    if said["sufficient"] and not evidences:
        return Verdict(False, f"{model.name} says enough, but not by which memory")
    return Verdict(said["sufficient"], f"so says {model.name}", gaps, evidences)


def expand_by(
    model: LanguageModel,
    known: Pool,
    verdict: Verdict,
    ctx: Context,
    *,
    deep: Deep,
    budget: Budget,
) -> tuple[Expansion, ...]:
    """The model's further searches; Unusable where none of them says anything."""
    store, query = ctx.store, ctx.query
    ids = verdict.evidences or tuple(cand.item.id for cand in known)
    read = passages_of(store, ids[: deep.feedback], as_of=query.as_of)
    prompt = fill(
        "expand",
        store.space,
        question=query.text,
        known="\n".join(passage.text for passage in read) or _NOTHING_YET,
        gaps="\n".join(verdict.gaps) or _NOTHING_YET,
        today=query.moment.date(),
    )
    said = model.complete(prompt, budget=budget)["queries"]
    same = query.text.casefold()
    usable = [
        Expansion(one["type"], " ".join(one["text"].split()), f"by {model.name}")
        for one in said
        if has_substance(one["text"]) and one["text"].strip().casefold() != same
    ]
    if said and not usable:
        raise Unusable(f"{model.name} gave no search that says anything new")
    return tuple(dict.fromkeys(usable))[: deep.most]
