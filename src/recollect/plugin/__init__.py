"""Putting the memory into an agent: what is installed where, and the hooks a host calls."""
