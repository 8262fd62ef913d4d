"""What the second story is made of: is it enough, what else to ask, whom to ask it."""
