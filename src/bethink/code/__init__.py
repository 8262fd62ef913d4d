"""Code that memories speak of: a repository, its symbols, and what became of them."""
