"""Registries of fusions, stages and assemblers. A new one is a class, a line, a docs row."""

from __future__ import annotations

from bethink.core.registry import Registry

__all__ = ["ASSEMBLERS", "FUSIONS", "STAGES"]


FUSIONS = Registry(
    {
        "rrf": "bethink.retrieval.stages.fusion:Rrf",
        "weighted": "bethink.retrieval.stages.fusion:WeightedSum",
        "rrf_bonus": "bethink.systems.memind.stages:RrfBonus",
        "priority": "bethink.systems.abmind.stages:PriorityFusion",
        "blend": "bethink.systems.remind:Blend",
    },
)

ASSEMBLERS = Registry(
    {
        "captions": "bethink.systems.memind.stages:Captions",
        "timelines": "bethink.systems.abmind.stages:Timelines",
        "interference": "bethink.systems.abmind.stages:Interference",
    },
)

STAGES = Registry(
    {
        "keep": "bethink.retrieval.stages.fusion:PassThrough",
        "beside": "bethink.retrieval.stages.late_interaction:NeighbourExpansion",
        "reading": "bethink.retrieval.stages.late_interaction:LateInteractionScoring",
        "conversation": "bethink.retrieval.stages.conversation:Conversation",
        "top": "bethink.retrieval.stages.late_interaction:TopK",
        "entity_meaning": "bethink.systems.remind:EntityMeaning",
        "spread": "bethink.systems.remind:Spread",
        "entity_name": "bethink.systems.remind:EntityName",
        "time_factor": "bethink.systems.memind.stages:TimeFactor",
        "thread_assist": "bethink.systems.memind.stages:ThreadAssist",
        "graph_assist": "bethink.systems.memind.stages:GraphAssist",
        "ancestors": "bethink.systems.memind.stages:Ancestors",
        "decay": "bethink.retrieval.stages.adjust:Decay",
        "recency": "bethink.retrieval.stages.adjust:Recency",
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
        "quality": "bethink.systems.abmind.stages:Quality",
        "heat": "bethink.systems.linksee:Heat",
        "momentum": "bethink.systems.linksee:Momentum",
        "composite": "bethink.systems.linksee:Composite",
        "boost": "bethink.retrieval.stages.adjust:CallerBoost",
        "answer_kind": "bethink.retrieval.stages.adjust:AnswerTypeBoost",
        "speaker": "bethink.retrieval.stages.adjust:SpeakerBoost",
        "period": "bethink.retrieval.stages.adjust:PeriodBoost",
        "length": "bethink.retrieval.stages.adjust:LengthPenalty",
        "maxsim": "bethink.retrieval.stages.rerank:MaxSim",
        "overlap": "bethink.retrieval.stages.rerank:OverlapRerank",
        "read": "bethink.retrieval.stages.rerank:Rerank",
        "mmr": "bethink.retrieval.stages.diversify:Mmr",
        "rotate": "bethink.retrieval.stages.diversify:Rotate",
        "collapse": "bethink.retrieval.stages.diversify:Collapse",
        "openings": "bethink.retrieval.stages.late_interaction:PrefixCollapse",
        "threshold": "bethink.retrieval.stages.gate:Threshold",
        "abstain": "bethink.retrieval.stages.gate:Abstain",
        "elbow": "bethink.systems.memind.stages:Elbow",
    },
)
