"""A language model behind a server: asked within a budget, believed only after a check.

What may pass by itself is tried again; a server that does not answer is left alone for
a while; an answer of the wrong shape is asked for once more, with what was wrong about
it. What a server or a model says is never part of an error: it may come from a memory,
and be meant for whoever reads the error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from time import monotonic, sleep
from typing import Any, NamedTuple

from recollect.errors import BadSetting, ModelError
from recollect.models.breaker import Breaker
from recollect.models.llm.answers import object_in
from recollect.models.llm.dialect import Asked, Dialect, Said
from recollect.models.llm.request import Request, estimated_tokens
from recollect.models.patience import ask_patiently, check_status, read_seconds
from recollect.ports import Budget, Prompt, Unusable
from recollect.prompts.schema import Misfit, outline, validate

TIMEOUT_VARIABLE = "RECOLLECT_LLM_TIMEOUT_S"
THINKING_VARIABLE = "RECOLLECT_LLM_THINKING_TOKENS"

_ANSWERS = 2
_MOST_THINKING = 100_000
_FORM_UNKNOWN = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


class Patience(NamedTuple):
    """How long a connection and a whole answer may take, for how many tokens a model
    may think before it answers, and what tells the time."""

    connect_s: float = 5.0
    answer_s: float = 60.0
    thinking_tokens: int = 0
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep


class ServedModel:
    """Answers from a server, in the shape that was asked for."""

    def __init__(
        self,
        dialect: Dialect,
        model: str,
        *,
        patience: Patience | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self._dialect, self._model = dialect, model
        self._patience = patience or patience_from(os.environ)
        self._breaker = breaker or Breaker()
        self._form: int | None = None

    @property
    def name(self) -> str:
        return f"{self._dialect.provider}:{self._model}"

    def complete(self, prompt: Prompt, *, budget: Budget) -> dict[str, Any]:
        """An object that keeps the prompt's schema; a wrong one may be put right once."""
        problem, remedy = "", ""
        for _ in range(_ANSWERS):
            said = self._say(self._asked(prompt, problem), budget)
            if said.is_refused:
                raise Unusable(f"{self._dialect.who} refuses to answer {prompt.name!r}")
            try:
                return _checked(said, prompt)
            except Misfit as misfit:
                problem = str(misfit)
                remedy = f"{THINKING_VARIABLE} gives room to think first" if said.is_cut else ""
        raise Unusable(
            f"{self._dialect.who} gave no usable answer to {prompt.name!r}: {problem}",
            remedy=remedy,
        )

    def _asked(self, prompt: Prompt, problem: str) -> Asked:
        # The wrong answer itself is not shown again: it may hold what a memory put there.
        note = f"\n\nAn answer to this was not taken: {problem}. Answer anew." if problem else ""
        system, user, schema = prompt.system, prompt.user + note, prompt.schema
        return Asked(
            self._model,
            prompt.name,
            system,
            user,
            schema,
            outline(schema),
            prompt.output_tokens + self._patience.thinking_tokens,
            estimated_tokens(system + user + json.dumps(schema)),
        )

    def _say(self, asked: Asked, budget: Budget) -> Said:
        """What the model says, asked in the strictest form that its server knows."""
        forms = range(len(self._dialect.forms)) if self._form is None else (self._form,)
        for form in forms:
            # Before the breaker: a budget that is spent says nothing about the server.
            with budget.reserve(asked.input_tokens, asked.output_tokens) as charge:
                body, connect_s = self._dialect.forms[form](asked), self._patience.connect_s
                request = Request(self._dialect, body, asked, budget, charge, connect_s)
                wait_s = min(self._patience.answer_s, budget.seconds_left)
                status = self._breaker(partial(self._sent, request, wait_s))
            if request.said is not None:
                self._form = form
                return request.said
        raise ModelError(f"{self._dialect.who} answers {status} to {asked.task!r}")

    def _sent(self, request: Request, wait_s: float) -> int:
        """The status: a success, or that this form of asking, or the prompt, is too much."""
        patience, dialect = self._patience, self._dialect
        reply = ask_patiently(
            request,
            patience.clock() + wait_s,
            who=dialect.who,
            clock=patience.clock,
            sleep=patience.sleep,
        )
        if reply.status not in _FORM_UNKNOWN:
            check_status(
                reply.status,
                dialect.who,
                unknown=self._model,
                unknown_remedy=dialect.unknown_model,
                no_entry=dialect.no_entry,
            )
        return reply.status


def _checked(said: Said, prompt: Prompt) -> dict[str, Any]:
    if said.is_cut:
        raise Misfit(f"it was longer than {prompt.output_tokens} tokens")
    made = object_in(said.content) if isinstance(said.content, str) else said.content
    validate(made, prompt.schema)
    return made


def patience_from(env: Mapping[str, str]) -> Patience:
    """The usual patience, or what the environment says."""
    usual, given = Patience(), env.get(THINKING_VARIABLE, "").strip()
    if given and not (given.isdecimal() and int(given[:9]) <= _MOST_THINKING):
        raise BadSetting(
            f"{THINKING_VARIABLE} is {given!r}, but must be a number up to {_MOST_THINKING:,}"
        )
    return Patience(
        answer_s=read_seconds(env, TIMEOUT_VARIABLE, usual.answer_s),
        thinking_tokens=int(given or usual.thinking_tokens),
    )
