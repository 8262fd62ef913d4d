"""Both parts keep the laws that Bethink's own parts keep. Runs with and without pytest."""

from __future__ import annotations

from bethink_example.hashtags import Hashtags
from bethink_example.trigrams import TrigramEmbedder

from bethink.testing import check_embedder, check_retriever, sample_context, sample_memory


def test_the_retriever_keeps_the_laws() -> None:
    """Best first, every score explained, filters before the cut, any text a question."""
    with sample_memory() as memory:
        memory.remember("The pager of the week is Ben", tags=["ops", "alerts"])
        memory.remember("Alerts are muted at night", tags=["alerts"])
        questions = ("#alerts", "what is new in #ops and #alerts?", "#", "no tag")
        check_retriever(Hashtags(), memory, questions=questions)

        pool = Hashtags()(sample_context(memory, "#ops #alerts"))
        assert [cand.score for cand in pool] == [1.0, 0.5, 0.5]
        assert pool[0].evidence[0].why == "tagged #alerts, #ops"


def test_the_embedder_keeps_the_laws() -> None:
    """Unit vectors, zeros for nothing, the same at every call; a misspelling is still near."""
    check_embedder(TrigramEmbedder())

    right, wrong, other = TrigramEmbedder().embed(["deployment", "deploymant", "breakfast"])
    assert right.vector @ wrong.vector > right.vector @ other.vector + 0.3


if __name__ == "__main__":
    test_the_retriever_keeps_the_laws()
    test_the_embedder_keeps_the_laws()
    print("both parts keep the laws")
