"""Registries of fusions, stages and assemblers. A new one is a class, a line, a docs row."""

from __future__ import annotations

from typing import Any

from bethink.core.registry import Registry

__all__ = ["ASSEMBLERS", "FUSIONS", "STAGES"]


FUSIONS: Registry[Any] = Registry(
    "fusion",
    {
        "rrf": "bethink.retrieval.stages.fusion:Rrf",
        "weighted": "bethink.retrieval.stages.fusion:WeightedSum",
        "rrf_bonus": "bethink.systems.memind.stages:RrfBonus",
        "priority": "bethink.systems.abmind.stages:PriorityFusion",
        "blend": "bethink.systems.remind:Blend",
    },
    group="bethink.fusions",
)

ASSEMBLERS: Registry[Any] = Registry(
    "assembler",
    {
        "captions": "bethink.systems.memind.stages:Captions",
        "timelines": "bethink.systems.abmind.stages:Timelines",
        "interference": "bethink.systems.abmind.stages:Interference",
    },
    group="bethink.assemblers",
)

STAGES: Registry[Any] = Registry(
    "stage",
    {
        "beside": "bethink.retrieval.stages.late_interaction:NeighbourExpansion",
        "match": "bethink.retrieval.stages.late_interaction:MatchScoring",
        "conversation": "bethink.retrieval.stages.conversation:Conversation",
        "top": "bethink.retrieval.stages.rerank:TopK",
        "entity_meaning": "bethink.systems.remind:EntityMeaning",
        "spread": "bethink.systems.remind:Spread",
        "entity_name": "bethink.systems.remind:EntityName",
        "time_factor": "bethink.systems.memind.stages:TimeFactor",
        "thread_assist": "bethink.systems.memind.assists:ThreadAssist",
        "graph_assist": "bethink.systems.memind.assists:GraphAssist",
        "ancestors": "bethink.systems.memind.stages:Ancestors",
        "decay": "bethink.systems.siftcoder:Decay",
        "importance": "bethink.retrieval.stages.adjust:Importance",
        "scale": "bethink.systems.abmind.stages:Scale",
        "emotion": "bethink.systems.abmind.stages:Emotion",
        "recalled": "bethink.systems.abmind.stages:Recalled",
        "relevance": "bethink.systems.abmind.stages:Relevance",
        "trust": "bethink.systems.abmind.stages:Trust",
        "credibility": "bethink.systems.abmind.stages:Credibility",
        "tier": "bethink.systems.abmind.stages:Tier",
        "fading": "bethink.systems.abmind.stages:Fading",
        "unconfirmed": "bethink.systems.abmind.stages:Unconfirmed",
        "moment": "bethink.systems.abmind.stages:Moment",
        "spacing": "bethink.systems.abmind.stages:Spacing",
        "composite": "bethink.systems.linksee:Composite",
        "boost": "bethink.retrieval.stages.adjust:CallerBoost",
        "answer_kind": "bethink.retrieval.stages.adjust:AnswerTypeBoost",
        "speaker": "bethink.retrieval.stages.adjust:SpeakerBoost",
        "period": "bethink.retrieval.stages.adjust:PeriodBoost",
        "length": "bethink.retrieval.stages.adjust:LengthPenalty",
        "maxsim": "bethink.systems.memind.stages:MaxSim",
        "overlap": "bethink.systems.siftcoder:OverlapRerank",
        "read": "bethink.retrieval.stages.rerank:Rerank",
        "mmr": "bethink.systems.abmind.stages:Mmr",
        "collapse": "bethink.retrieval.stages.diversify:Collapse",
        "newer_first": "bethink.retrieval.stages.diversify:NewerFirst",
        "fill_up": "bethink.retrieval.stages.diversify:FillUp",
        "threshold": "bethink.retrieval.stages.gate:Threshold",
        "named_time": "bethink.retrieval.stages.gate:NamedTime",
        "confidence": "bethink.retrieval.stages.gate:Confidence",
        "elbow": "bethink.systems.memind.stages:Elbow",
    },
    group="bethink.stages",
)
