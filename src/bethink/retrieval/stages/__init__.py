"""Registries of fusions, stages and assemblers. A new one is a class, a line, a docs row."""

from __future__ import annotations

from collections.abc import Callable

from bethink.core.registry import Registry
from bethink.retrieval.context import Assembler, Fusion, Stage

FUSIONS: Registry[Callable[..., Fusion]] = Registry(
    "fusion",
    {
        "rrf": "bethink.retrieval.stages.fusion:Rrf",
        "weighted": "bethink.retrieval.stages.fusion:WeightedSum",
    },
    group="bethink.fusions",
)

ASSEMBLERS: Registry[Callable[..., Assembler]] = Registry(
    "assembler", {}, group="bethink.assemblers"
)

STAGES: Registry[Callable[..., Stage]] = Registry(
    "stage",
    {
        "beside": "bethink.retrieval.stages.late_interaction:NeighbourExpansion",
        "match": "bethink.retrieval.stages.late_interaction:MatchScoring",
        "conversation": "bethink.retrieval.stages.conversation:Conversation",
        "top": "bethink.retrieval.stages.rerank:TopK",
        "importance": "bethink.retrieval.stages.adjust:Importance",
        "anchor": "bethink.retrieval.stages.adjust:CodeChanged",
        "boost": "bethink.retrieval.stages.adjust:CallerBoost",
        "answer_kind": "bethink.retrieval.stages.adjust:AnswerTypeBoost",
        "numbers": "bethink.retrieval.stages.adjust:NumberBoost",
        "speaker": "bethink.retrieval.stages.adjust:SpeakerBoost",
        "period": "bethink.retrieval.stages.adjust:PeriodBoost",
        "length": "bethink.retrieval.stages.adjust:LengthPenalty",
        "read": "bethink.retrieval.stages.rerank:Rerank",
        "collapse": "bethink.retrieval.stages.diversify:Collapse",
        "newer_first": "bethink.retrieval.stages.diversify:NewerFirst",
        "fill_up": "bethink.retrieval.stages.diversify:FillUp",
        "threshold": "bethink.retrieval.stages.gate:Threshold",
        "named_time": "bethink.retrieval.stages.gate:NamedTime",
        "helped": "bethink.retrieval.stages.gate:Helped",
        "confidence": "bethink.retrieval.stages.gate:Confidence",
    },
    group="bethink.stages",
)
