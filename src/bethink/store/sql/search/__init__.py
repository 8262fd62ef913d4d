"""Searches of the SQLite store: lexical, fuzzy, by vector, by sets of words, by time."""
