"""The six layers a memory may lie in, and the other names people have for them."""

from __future__ import annotations

LAYERS = ("goal", "context", "emotion", "implementation", "caveat", "learning")
ALIASES = {
    "goal": ("why", "goals", "target", "targets", "intent"),
    "context": ("background", "reason", "situation", "timing"),
    "emotion": ("tone", "feelings", "mood"),
    "implementation": ("impl", "success", "failure", "how", "tried", "attempts"),
    "caveat": ("warning", "warnings", "pain", "rule", "rules", "pitfall", "pitfalls", "dont"),
    "learning": ("decision", "decisions", "learned", "insight", "insights", "growth"),
}
_LAYER_OF = {layer: layer for layer in LAYERS} | {
    alias: layer for layer, aliases in ALIASES.items() for alias in aliases
}


def layer_named(name: str) -> str | None:
    """The layer that a name or an alias stands for, in any case; None for a stranger."""
    return _LAYER_OF.get(name.strip().lower())


def layers_in_words() -> str:
    """Every layer with its aliases, for those who named none of them."""
    return ", ".join(f"{layer} (or {', '.join(ALIASES[layer])})" for layer in LAYERS)
