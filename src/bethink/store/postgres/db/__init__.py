"""Connections to a PostgreSQL server, and the statements that go to it."""
