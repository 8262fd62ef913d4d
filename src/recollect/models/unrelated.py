"""How alike a model finds texts that have nothing to do with each other.

Cosines of two models cannot be compared: one may give 0.05 to strangers, another 0.7.
Where a stage judges a cosine by itself, it must know where the model's scale begins.
"""

from __future__ import annotations

from recollect.ports import Embedder

QUESTIONS = (
    "Which port does the billing service listen on?",
    "When is my sister's wedding?",
    "Who repaired the roof last winter?",
    "What did the dentist say about the wisdom tooth?",
    "How long does the train to Lisbon take?",
    "Where did we plant the apple trees?",
    "Why was the release postponed?",
    "What is the name of the neighbour's dog?",
    "Which book did the reading group choose?",
    "How much flour goes into the bread?",
    "What colour will the kitchen be painted?",
    "Did the violin teacher move to another school?",
)
STATEMENTS = (
    "The museum is closed on Mondays in the low season.",
    "Our compiler warns about unused variables by default.",
    "She scored twice in the second half and was named player of the match.",
    "The bank raised the interest on savings by a quarter of a percent.",
    "Glaciers in the valley have lost a third of their ice since the eighties.",
    "He collects stamps from countries that no longer exist.",
    "The hearing before the court was adjourned until further notice.",
    "A battery of this kind survives about two thousand charging cycles.",
    "Bees find their way home by the position of the sun.",
    "The actor forgot his lines and the audience applauded all the same.",
    "Customs officers seized forty crates at the border.",
    "Their satellite sends a picture of the coast every ninety minutes.",
)


def measure(embedder: Embedder) -> float:
    """Asks the model about questions and statements on as many subjects; the same model
    gives the same answer."""
    import numpy as np  # start-up time

    asked = np.stack([embedder.embed_query(text).vector for text in QUESTIONS])
    told = np.stack([one.vector for one in embedder.embed(STATEMENTS)])
    return float((asked @ told.T).mean())
