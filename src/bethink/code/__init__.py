"""Code that memories are tied to: a repository, its symbols, and their changes."""
