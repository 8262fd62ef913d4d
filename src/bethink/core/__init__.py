"""Helpers without domain knowledge: files, ids, JSON, registries, text."""


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: ``1 memory``, ``2 memories``."""
    if count == 1:
        return f"1 {noun}"
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {many}"
