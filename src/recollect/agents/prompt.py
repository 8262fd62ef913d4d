"""What a prompt calls to mind, for the agent that is about to answer it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from recollect.agents.asides import is_aside
from recollect.agents.budget import cost_of, frame_cost, framed, may_be_given, shown
from recollect.agents.session import session_of
from recollect.errors import Refused
from recollect.model import Candidate, Item
from recollect.quoting import Quote, labelled
from recollect.sources.said.assent import is_assent
from recollect.sources.said.wrappers import spoken
from recollect.text import sentences, word_set

if TYPE_CHECKING:
    from recollect.memory import Memory

MOST_TOKENS = 600
NAME = "memories"
OPENING = "What this project's memory (Recollect) has to this prompt, best first:"
_LONGEST = (480, 240, 120)  # characters of one memory; fewer where they are dear
_MOST = 6
# Nobody asked: what is far behind the best is rather left out than given.
_NEAR_BEST = 0.7
_SAME = 0.8  # of all words of two texts, shared: who says that again says nothing new
_SPARE = 24  # looked at beyond that, for those that were given before
_HEAD, _TAIL = 1500, 500  # characters of a long prompt that are asked about


def prompt_context(memory: Memory, payload: Mapping[str, Any]) -> str:
    """What to put before the agent with this prompt; empty where nothing passes the gate.

    ``payload`` is what the host said: the prompt and the session's id. What the session
    was given before is not given again, nor what was said in the session itself; whoever
    passes it on notes what it holds as given (``budget.given_in``).
    """
    prompt, name = str(payload.get("prompt") or ""), str(payload.get("session_id") or "")
    question = question_of(prompt)
    if not question:
        return ""
    try:
        answer = memory.recall(question, k=_MOST + _SPARE, max_tokens=8 * MOST_TOKENS, track=False)
    except Refused:
        return ""  # a prompt that is no question to a memory: without a word, for example
    known = {*session_of(memory, name).given}
    telling = [hit for hit in answer.hits if _tells(hit.item, question)]
    near = (hit for hit in telling if hit.score >= _NEAR_BEST * telling[0].score)
    fresh = [hit for hit in near if hit.item.id not in known and _is_news(hit, name)]
    return framed(OPENING, list(_fitting(fresh)), NAME)


def question_of(prompt: str) -> str:
    """What is asked of the memory for a prompt: its words without the host's wrappings, of
    a long one the beginning and the end; empty where there is nothing to ask."""
    said = spoken(prompt)
    if is_aside(said):
        return ""
    return said if len(said) <= _HEAD + _TAIL else f"{said[:_HEAD]}\n{said[-_TAIL:]}"


def _is_news(hit: Candidate, session: str) -> bool:
    mine = bool(session) and hit.item.session == session
    return not mine and may_be_given(hit.item)


def _tells(item: Item, question: str) -> bool:
    """Whether a turn tells more than that something was asked, or than a yes to something
    that is not beside it: what answered it does."""
    if item.level != "raw" or item.speaker != "user":
        return True
    if is_assent(item.text):
        return False
    if all(one.endswith(("?", "？")) for one in sentences(item.text)):
        return False
    said, asked = word_set(item.text), word_set(question)
    return len(said & asked) < _SAME * len(said | asked)


def _fitting(hits: list[Candidate]) -> Iterator[Quote]:
    """As many of the best as fit, each cut as little as that needs."""
    room = MOST_TOKENS - frame_cost(OPENING)
    for hit in hits[:_MOST]:
        quotes = (shown(labelled(hit.item), longest) for longest in _LONGEST)
        quote = next((one for one in quotes if cost_of(one) <= room), None)
        if quote is not None:
            yield quote
            room -= cost_of(quote)
