"""One question to a language model's server, in as many tries as it needs; each is paid for."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from recollect.errors import ModelError
from recollect.models.exchange import Reply, post
from recollect.models.llm.dialect import Asked, Dialect, Said
from recollect.ports import Budget, BudgetSpent
from recollect.ports.language import Charge

MOST_BYTES = 4 << 20
# English needs about four bytes a token, most other languages two to three.
_BYTES_A_TOKEN = 3


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is, rather too many than too few."""
    return -(-len(text.encode(errors="replace")) // _BYTES_A_TOKEN)


class Request:
    """Calling it is one try; ``said`` is what the successful one brought.

    The first try's price was set aside by whoever made it.
    """

    def __init__(
        self, dialect: Dialect, body: dict[str, Any], asked: Asked, budget: Budget, first: Charge
    ) -> None:
        self._dialect, self._body, self._asked, self._budget = dialect, body, asked, budget
        self._charge: Charge | None = first
        self.connect_s: float | None = None
        self.said: Said | None = None

    def __call__(self, left_s: float) -> Reply:
        """Sends it once, and notes what that cost."""
        with self._charge or self._another() as charge:
            self._charge = None
            headers = self._dialect.headers()
            # Once it is on its way it may be read, whether or not an answer comes.
            charge.cost(self._asked.input_tokens, 0)
            reply = post(
                self._dialect.url,
                self._body,
                headers,
                timeout_s=left_s,
                limit=MOST_BYTES,
                connect_s=self.connect_s,
            )
            if reply.status == HTTPStatus.OK:
                self.said = self._read(reply)
                charge.cost(*self._price(self.said))
            else:
                charge.cost(0, 0)
        return reply

    def _another(self) -> Charge:
        asked = self._asked
        try:
            return self._budget.reserve(asked.input_tokens, asked.output_tokens)
        except BudgetSpent as spent:
            # The server's fault: without its failing there would be no second try.
            raise ModelError(f"{self.who} failed, and the budget has no other try") from spent

    def _price(self, said: Said) -> tuple[int, int]:
        written = said.content if isinstance(said.content, str) else str(said.content)
        return (
            self._asked.input_tokens if said.tokens_in is None else said.tokens_in,
            estimated_tokens(written) if said.tokens_out is None else said.tokens_out,
        )

    def _read(self, reply: Reply) -> Said:
        try:
            return self._dialect.read(reply.json())
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as e:
            raise ModelError(f"{self.who} gave something that is no answer") from e

    @property
    def who(self) -> str:
        """The server, in words."""
        return self._dialect.who
