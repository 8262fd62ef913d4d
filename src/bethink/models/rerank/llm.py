"""Rerank with a language model: one digit per candidate, as siftcoder does.

Every candidate is judged alone, so no memory can influence the score of another.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock

from bethink.ports import Budget, LanguageModel, Unusable
from bethink.prompts import Passage, fill_prompt

RERANK_PROMPT = "rerank"
_MAX_CONCURRENT = 8
_MAX_DIGIT = 9
_MAX_CACHED = 10_000


# Of one reranking: two hundred candidates in ten seconds.
_BUDGET = partial(Budget, calls=400, tokens_in=400_000, tokens_out=40_000, seconds=10.0)


class LlmReranker:
    """Scores of 0 to 1 for texts of one space. Judgements are cached in memory.

    A text whose judgement is unusable scores 0: a memory that disrupts the model loses by it,
    and the others are judged all the same. Raises ModelError if there is no usable judgement
    at all, or the model does not answer.
    """

    remote = True

    def __init__(
        self,
        model: LanguageModel,
        space: str,
        *,
        budget: Callable[[], Budget] = _BUDGET,
        max_concurrent: int = _MAX_CONCURRENT,
    ) -> None:
        self._model, self._space = model, space
        self._budget, self._max_concurrent = budget, max_concurrent
        self._lock = Lock()
        self._cache: OrderedDict[bytes, float] = OrderedDict()

    def __call__(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        keys = [self._cache_key(query, text) for text in texts]
        judged = self._cached_scores(keys)
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
            self._cache_score(key, score)
            return score

        with ThreadPoolExecutor(self._max_concurrent, thread_name_prefix="rerank") as threads:
            futures = {key: threads.submit(judge, key, text) for key, text in missing.items()}
            try:
                return {key: answer.result() for key, answer in futures.items()}
            finally:
                # After a failure, cancel the calls that have not started.
                threads.shutdown(cancel_futures=True)

    def _judge(self, query: str, text: str, budget: Budget) -> float:
        candidate = Passage(self._space, "", text)
        prompt = fill_prompt(RERANK_PROMPT, self._space, question=query, candidate=[candidate])
        score: int = self._model.complete(prompt, budget=budget)["score"]
        return score / _MAX_DIGIT

    def _cache_key(self, query: str, text: str) -> bytes:
        parts = (part.encode(errors="replace") for part in (self._model.name, query, text))
        framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hashlib.sha256(framed).digest()

    def _cached_scores(self, keys: Sequence[bytes]) -> dict[bytes, float]:
        with self._lock:
            found = {key: self._cache[key] for key in keys if key in self._cache}
            for key in found:
                self._cache.move_to_end(key)
        return found

    def _cache_score(self, key: bytes, score: float) -> None:
        with self._lock:
            self._cache[key] = score
            while len(self._cache) > _MAX_CACHED:
                self._cache.popitem(last=False)
