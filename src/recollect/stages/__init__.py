"""Ways of re-judging a pool. A new stage is one class, one line here, one row in the docs."""

from recollect.context import Assembler, Keep
from recollect.stages.adjust import CallerBoost, Decay, Importance, Recency
from recollect.stages.budget import Budget
from recollect.stages.conversation import Conversation
from recollect.stages.diversify import Collapse, Mmr, Rotate
from recollect.stages.fuse import Rrf, Weighted
from recollect.stages.gate import Abstain, Threshold
from recollect.stages.likely import AnswerKind, Length, Period, Speaker
from recollect.stages.reading import Beside, Reading, Top
from recollect.stages.rerank import MaxSim, Overlap, Read
from recollect.stages.spread import Spread

FUSIONS = {"rrf": Rrf, "weighted": Weighted}

ASSEMBLERS: dict[str, type[Assembler]] = {}

STAGES = {
    "keep": Keep,
    "beside": Beside,
    "reading": Reading,
    "conversation": Conversation,
    "top": Top,
    "spread": Spread,
    "decay": Decay,
    "recency": Recency,
    "importance": Importance,
    "boost": CallerBoost,
    "answer_kind": AnswerKind,
    "speaker": Speaker,
    "period": Period,
    "length": Length,
    "maxsim": MaxSim,
    "overlap": Overlap,
    "read": Read,
    "mmr": Mmr,
    "rotate": Rotate,
    "collapse": Collapse,
    "threshold": Threshold,
    "abstain": Abstain,
}

__all__ = ["ASSEMBLERS", "FUSIONS", "STAGES", "Budget"]
