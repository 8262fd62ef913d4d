"""Tools and commands of other memory systems by their own names, over the same memory.

`systems/NAME/tools.toml` declares them: arguments, defaults, limits, and the fields of answers.
"""

SYSTEMS = ("abmind", "linksee", "memind", "remind", "siftcoder")
