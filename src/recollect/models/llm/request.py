"""One question to a language model's server, in as many tries as it needs; each is paid for."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(slots=True)
class Request:
    """Calling it is one try; ``said`` is what the successful one brought.

    ``charge`` is the first try's price, set aside by whoever made the request.
    """

    dialect: Dialect
    body: dict[str, Any]
    asked: Asked
    budget: Budget
    charge: Charge | None
    connect_s: float
    said: Said | None = None

    def __call__(self, left_s: float) -> Reply:
        """Sends it once, and notes what that cost."""
        with self.charge or self._another() as charge:
            self.charge = None  # the next try pays for itself
            headers = self.dialect.headers()
            # Once it is on its way it may be read, whether or not an answer comes.
            charge.cost(self.asked.input_tokens, 0)
            reply = post(
                self.dialect.url,
                self.body,
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
        asked = self.asked
        try:
            return self.budget.reserve(asked.input_tokens, asked.output_tokens)
        except BudgetSpent as spent:
            # The server's fault: without its failing there would be no second try.
            raise ModelError(
                f"{self.dialect.who} failed, and the budget has no other try"
            ) from spent

    def _price(self, said: Said) -> tuple[int, int]:
        written = said.content if isinstance(said.content, str) else str(said.content)
        return (
            self.asked.input_tokens if said.tokens_in is None else said.tokens_in,
            estimated_tokens(written) if said.tokens_out is None else said.tokens_out,
        )

    def _read(self, reply: Reply) -> Said:
        try:
            return self.dialect.read(reply.json())
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as e:
            raise ModelError(f"{self.dialect.who} gave something that is no answer") from e
