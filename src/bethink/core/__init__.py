"""Helpers without domain knowledge: files, ids, JSON, registries, text."""
