"""Emulations of five published memory systems, each a profile over the same engine."""
