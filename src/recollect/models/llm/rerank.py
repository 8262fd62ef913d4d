"""Reranks by a language model: one digit a candidate, as siftcoder does it.

Every candidate is read alone, so no memory can speak for or against another.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from recollect.ports import Budget, LanguageModel, Unusable
from recollect.prompts import Passage, fill

PROMPT = "rerank"
_AT_ONCE = 8
_HIGHEST = 9
_MOST_KEPT = 10_000


def usual_budget() -> Budget:
    """What one reranking may cost: two hundred candidates in ten seconds."""
    return Budget(calls=400, tokens_in=400_000, tokens_out=40_000, seconds=10.0)


class LlmReranker:
    """Scores of 0 to 1 for texts of one space. Judgements are kept in memory.

    A text whose judgement cannot be used scores 0: a memory that keeps the model from
    its work loses by it, and the others are judged all the same. Raises ModelError if
    there is no usable judgement at all, or the model does not answer.
    """

    def __init__(
        self,
        model: LanguageModel,
        space: str,
        *,
        budget: Callable[[], Budget] = usual_budget,
        at_once: int = _AT_ONCE,
    ) -> None:
        self._model, self._space, self._budget, self._at_once = model, space, budget, at_once
        self._lock = Lock()
        self._kept: OrderedDict[bytes, float] = OrderedDict()

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        keys = [self._key(query, text) for text in texts]
        judged = self._known(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in judged}
        failures: list[Unusable] = []
        if missing:
            judged |= self._judge_all(query, missing, failures)
        if failures and len(failures) == len(set(keys)):
            raise failures[0]
        return [judged[key] for key in keys]

    def _judge_all(
        self, query: str, missing: dict[bytes, str], failures: list[Unusable]
    ) -> dict[bytes, float]:
        budget = self._budget()

        def judge(key: bytes, text: str) -> float:
            try:
                score = self._judge(query, text, budget)
            except Unusable as failure:
                failures.append(failure)
                return 0.0
            self._keep(key, score)
            return score

        with ThreadPoolExecutor(self._at_once, thread_name_prefix="rerank") as threads:
            asked = {key: threads.submit(judge, key, text) for key, text in missing.items()}
            try:
                return {key: answer.result() for key, answer in asked.items()}
            finally:
                # After a failure nobody waits for those that have not begun.
                threads.shutdown(cancel_futures=True)

    def _judge(self, query: str, text: str, budget: Budget) -> float:
        candidate = Passage(self._space, "", text)
        prompt = fill(PROMPT, self._space, question=query, candidate=[candidate])
        score: int = self._model.complete(prompt, budget=budget)["score"]
        return score / _HIGHEST

    def _key(self, query: str, text: str) -> bytes:
        parts = (part.encode(errors="replace") for part in (self._model.name, query, text))
        framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hashlib.sha256(framed).digest()

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, float]:
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        return found

    def _keep(self, key: bytes, score: float) -> None:
        with self._lock:
            self._kept[key] = score
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
