"""See why an answer is what it is: every score is the sum of its evidence.

Run it with ``python examples/explain.py``. It prints the evidence of each hit, checks the
arithmetic, and asks why another memory was not returned.
"""

from __future__ import annotations

import math

from bethink import Candidate, Memory


def replayed(hit: Candidate) -> float:
    """Compute the score from the evidence alone: add, multiply or set, in order."""
    score = 0.0
    for reason in hit.evidence:
        if reason.op == "add":
            score += reason.value
        elif reason.op == "times":
            score *= reason.value
        elif reason.op == "set":
            score = reason.value
    return score


def main() -> None:
    """Store four memories, ask, and explain the answer."""
    with Memory.open(":memory:") as memory:
        memory.remember("The deploy key lives in vault B", kind="fact")
        memory.remember("The deploy key is rotated every quarter", kind="fact")
        memory.remember("Ben deploys on Fridays", kind="fact")
        lunch = memory.remember("Lunch is at noon", kind="fact")

        question = "where is the deploy key?"
        for hit in memory.recall(question, k=2).hits:
            print(f"{hit.score:.3f}  {hit.item.text}")
            for reason in hit.evidence:
                print(f"       {reason.op:5} {reason.value:7.3f}  {reason.by}: {reason.why}")
            assert math.isclose(replayed(hit), hit.score)

        missing = memory.why_not(lunch.id, question)
        print("not returned: Lunch is at noon")
        print(f"       {missing.stage}: {missing.reason}")


if __name__ == "__main__":
    main()
