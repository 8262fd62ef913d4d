"""What both stores do, in SQL over a connection: searches, writes, history, checks."""
