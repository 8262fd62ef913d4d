"""Ways of re-judging a pool. A new stage is one class, one line here, one row in the docs."""

from recollect.parts import Parts

FUSIONS = Parts(
    __name__,
    {
        "rrf": "fuse:Rrf",
        "weighted": "fuse:Weighted",
        "rrf_bonus": "fuse_bonus:RrfBonus",
        "priority": "priority:Priority",
        "blend": "blend:Blend",
    },
)

ASSEMBLERS = Parts(
    __name__,
    {
        "captions": "captions:Captions",
        "timelines": "enrich:Timelines",
        "interference": "enrich:Interference",
    },
)

STAGES = Parts(
    __name__,
    {
        "keep": "keep:Keep",
        "beside": "reading:Beside",
        "reading": "reading:Reading",
        "conversation": "conversation:Conversation",
        "top": "reading:Top",
        "entity_meaning": "entity_signals:EntityMeaning",
        "spread": "spread:Spread",
        "entity_name": "entity_signals:EntityName",
        "time_factor": "time_factor:TimeFactor",
        "thread_assist": "thread_assist:ThreadAssist",
        "graph_assist": "graph_assist:GraphAssist",
        "ancestors": "insights:Ancestors",
        "decay": "adjust:Decay",
        "recency": "adjust:Recency",
        "importance": "adjust:Importance",
        "scale": "fitness:Scale",
        "emotion": "fitness:Emotion",
        "recalled": "fitness:Recalled",
        "relevance": "fitness:Relevance",
        "trust": "fitness:Trust",
        "credibility": "fitness:Credibility",
        "tier": "fitness:Tier",
        "fading": "fitness:Fading",
        "unconfirmed": "boosts:Unconfirmed",
        "moment": "boosts:Moment",
        "spacing": "boosts:Spacing",
        "quality": "boosts:Quality",
        "heat": "warmth:Heat",
        "momentum": "warmth:Momentum",
        "composite": "warmth:Composite",
        "boost": "adjust:CallerBoost",
        "answer_kind": "likely:AnswerKind",
        "speaker": "likely:Speaker",
        "period": "likely:Period",
        "length": "likely:Length",
        "maxsim": "rerank:MaxSim",
        "overlap": "rerank:Overlap",
        "read": "rerank:Read",
        "mmr": "diversify:Mmr",
        "rotate": "diversify:Rotate",
        "collapse": "diversify:Collapse",
        "openings": "openings:Openings",
        "threshold": "gate:Threshold",
        "abstain": "gate:Abstain",
        "elbow": "elbow:Elbow",
    },
)

__all__ = ["ASSEMBLERS", "FUSIONS", "STAGES"]
