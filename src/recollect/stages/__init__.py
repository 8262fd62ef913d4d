"""Ways of re-judging a pool. A new stage is one class, one line here, one row in the docs."""

from recollect.context import Keep
from recollect.stages.adjust import CallerBoost, Decay, Importance, Recency
from recollect.stages.budget import Budget
from recollect.stages.diversify import Collapse, Mmr
from recollect.stages.fuse import Convex, Rrf
from recollect.stages.gate import Threshold
from recollect.stages.rerank import MaxSim, Overlap, Read
from recollect.stages.spread import Spread

FUSIONS = {"rrf": Rrf, "convex": Convex}

STAGES = {
    "keep": Keep,
    "spread": Spread,
    "decay": Decay,
    "recency": Recency,
    "importance": Importance,
    "boost": CallerBoost,
    "maxsim": MaxSim,
    "overlap": Overlap,
    "read": Read,
    "mmr": Mmr,
    "collapse": Collapse,
    "threshold": Threshold,
}

__all__ = ["FUSIONS", "STAGES", "Budget"]
