"""Ways of finding. A new channel is one class, one line here, one row in the docs."""

from recollect.channels.dense import Dense
from recollect.channels.entity import Entities
from recollect.channels.lexical import Lexical, Substring
from recollect.channels.temporal import Temporal

CHANNELS = {
    "lexical": Lexical,
    "substring": Substring,
    "dense": Dense,
    "entity": Entities,
    "temporal": Temporal,
}

__all__ = ["CHANNELS", "Dense", "Entities", "Lexical", "Substring", "Temporal"]
