"""Searches of the SQLite store: lexical, fuzzy, by vector, by signature, by time."""
