"""Ways of finding. A new channel is one class, one line here, one row in the docs."""

from recollect.channels.dense import Dense
from recollect.channels.edges import Edges
from recollect.channels.entity import Entities
from recollect.channels.keyword import Keyword
from recollect.channels.lexical import Lexical, Substring
from recollect.channels.newest import Newest
from recollect.channels.notes import NotesChannel
from recollect.channels.signature import Signature
from recollect.channels.temporal import Temporal
from recollect.channels.timed import Timed
from recollect.channels.trigram import Trigram
from recollect.channels.window import Window

CHANNELS = {
    "lexical": Lexical,
    "substring": Substring,
    "dense": Dense,
    "entity": Entities,
    "temporal": Temporal,
    "newest": Newest,
    "trigram": Trigram,
    "signature": Signature,
    "notes": NotesChannel,
    "edges": Edges,
    "keyword": Keyword,
    "timed": Timed,
    "window": Window,
}

# What a channel goes by, whatever a profile calls it: a reader of answers may ask.
WAYS: dict[type, str] = {
    Lexical: "words",
    Keyword: "words",
    NotesChannel: "words",
    Substring: "pieces",
    Trigram: "pieces",
    Dense: "meaning",
    Timed: "meaning",
    Entities: "names",
    Edges: "names",
    Temporal: "time",
    Window: "time",
}

__all__ = [
    "CHANNELS",
    "WAYS",
    "Dense",
    "Edges",
    "Entities",
    "Keyword",
    "Lexical",
    "Newest",
    "NotesChannel",
    "Signature",
    "Substring",
    "Temporal",
    "Timed",
    "Trigram",
    "Window",
]
