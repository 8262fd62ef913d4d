"""Ways of re-judging a pool. A new stage is one class, one line here, one row in the docs."""

from recollect.context import Assembler, Keep
from recollect.stages.adjust import CallerBoost, Decay, Importance, Recency
from recollect.stages.blend import Blend
from recollect.stages.boosts import Moment, Quality, Spacing, Unconfirmed
from recollect.stages.budget import Budget
from recollect.stages.captions import Captions
from recollect.stages.conversation import Conversation
from recollect.stages.diversify import Collapse, Mmr, Rotate
from recollect.stages.elbow import Elbow
from recollect.stages.enrich import Interference, Timelines
from recollect.stages.entity_signals import EntityMeaning, EntityName
from recollect.stages.fitness import (
    Credibility,
    Emotion,
    Fading,
    Recalled,
    Relevance,
    Scale,
    Tier,
    Trust,
)
from recollect.stages.fuse import Rrf, Weighted
from recollect.stages.fuse_bonus import RrfBonus
from recollect.stages.gate import Abstain, Threshold
from recollect.stages.graph_assist import GraphAssist
from recollect.stages.insights import Ancestors
from recollect.stages.likely import AnswerKind, Length, Period, Speaker
from recollect.stages.openings import Openings
from recollect.stages.priority import Priority
from recollect.stages.reading import Beside, Reading, Top
from recollect.stages.rerank import MaxSim, Overlap, Read
from recollect.stages.spread import Spread
from recollect.stages.thread_assist import ThreadAssist
from recollect.stages.time_factor import TimeFactor
from recollect.stages.warmth import Composite, Heat, Momentum

FUSIONS = {
    "rrf": Rrf,
    "weighted": Weighted,
    "rrf_bonus": RrfBonus,
    "priority": Priority,
    "blend": Blend,
}

ASSEMBLERS: dict[str, type[Assembler]] = {
    "captions": Captions,
    "timelines": Timelines,
    "interference": Interference,
}

STAGES = {
    "keep": Keep,
    "beside": Beside,
    "reading": Reading,
    "conversation": Conversation,
    "top": Top,
    "entity_meaning": EntityMeaning,
    "spread": Spread,
    "entity_name": EntityName,
    "time_factor": TimeFactor,
    "thread_assist": ThreadAssist,
    "graph_assist": GraphAssist,
    "ancestors": Ancestors,
    "decay": Decay,
    "recency": Recency,
    "importance": Importance,
    "scale": Scale,
    "emotion": Emotion,
    "recalled": Recalled,
    "relevance": Relevance,
    "trust": Trust,
    "credibility": Credibility,
    "tier": Tier,
    "fading": Fading,
    "unconfirmed": Unconfirmed,
    "moment": Moment,
    "spacing": Spacing,
    "quality": Quality,
    "heat": Heat,
    "momentum": Momentum,
    "composite": Composite,
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
    "openings": Openings,
    "threshold": Threshold,
    "abstain": Abstain,
    "elbow": Elbow,
}

__all__ = ["ASSEMBLERS", "FUSIONS", "STAGES", "Budget"]
