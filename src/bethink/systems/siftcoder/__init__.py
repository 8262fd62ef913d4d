"""siftcoder: reciprocal rank fusion with time decay. It needs no part of its own."""
