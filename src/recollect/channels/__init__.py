"""Ways of finding. A new channel is one class, one line here, one row in the docs."""

from recollect.parts import Parts

CHANNELS = Parts(
    __name__,
    {
        "lexical": "lexical:Lexical",
        "substring": "lexical:Substring",
        "dense": "dense:Dense",
        "entity": "entity:Entities",
        "temporal": "temporal:Temporal",
        "newest": "newest:Newest",
        "trigram": "trigram:Trigram",
        "signature": "signature:Signature",
        "notes": "notes:NotesChannel",
        "edges": "edges:Edges",
        "keyword": "keyword:Keyword",
        "timed": "timed:Timed",
        "window": "window:Window",
    },
)

# What a channel goes by, by its class, whatever a profile calls it: a reader of answers
# may ask.
WAYS = {
    "Lexical": "words",
    "Keyword": "words",
    "NotesChannel": "words",
    "Substring": "pieces",
    "Trigram": "pieces",
    "Dense": "meaning",
    "Timed": "meaning",
    "Entities": "names",
    "Edges": "names",
    "Temporal": "time",
    "Window": "time",
}

__all__ = ["CHANNELS", "WAYS"]
