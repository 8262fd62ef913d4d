"""The five emulated systems: each folder has its own parts, profile and settings names.

`PARTS` are the parts of profiles that the systems add to what Bethink itself has, by the
entry-point group of their kind and by name.
"""

from __future__ import annotations

_MODULE = "bethink.systems"
PARTS = {
    "bethink.retrievers": {
        "entity": f"{_MODULE}.linksee:Entities",
        "trigram": f"{_MODULE}.abmind.retrievers:Trigram",
        "signature": f"{_MODULE}.abmind.retrievers:Signature",
        "notes": f"{_MODULE}.abmind.retrievers:NotesRetriever",
        "edges": f"{_MODULE}.abmind.retrievers:Edges",
        "keyword": f"{_MODULE}.memind.retrievers:Keyword",
        "timed": f"{_MODULE}.memind.retrievers:Timed",
        "window": f"{_MODULE}.memind.retrievers:Window",
    },
    "bethink.fusions": {
        "rrf_bonus": f"{_MODULE}.memind.stages:RrfBonus",
        "priority": f"{_MODULE}.abmind.stages:PriorityFusion",
        "blend": f"{_MODULE}.remind:Blend",
    },
    "bethink.stages": {
        "entity_meaning": f"{_MODULE}.remind:EntityMeaning",
        "spread": f"{_MODULE}.remind:Spread",
        "entity_name": f"{_MODULE}.remind:EntityName",
        "time_factor": f"{_MODULE}.memind.stages:TimeFactor",
        "thread_assist": f"{_MODULE}.memind.assists:ThreadAssist",
        "graph_assist": f"{_MODULE}.memind.assists:GraphAssist",
        "ancestors": f"{_MODULE}.memind.stages:Ancestors",
        "decay": f"{_MODULE}.siftcoder:Decay",
        "scale": f"{_MODULE}.abmind.stages:Scale",
        "emotion": f"{_MODULE}.abmind.stages:Emotion",
        "recalled": f"{_MODULE}.abmind.stages:Recalled",
        "relevance": f"{_MODULE}.abmind.stages:Relevance",
        "trust": f"{_MODULE}.abmind.stages:Trust",
        "credibility": f"{_MODULE}.abmind.stages:Credibility",
        "tier": f"{_MODULE}.abmind.stages:Tier",
        "fading": f"{_MODULE}.abmind.stages:Fading",
        "unconfirmed": f"{_MODULE}.abmind.stages:Unconfirmed",
        "moment": f"{_MODULE}.abmind.stages:Moment",
        "spacing": f"{_MODULE}.abmind.stages:Spacing",
        "composite": f"{_MODULE}.linksee:Composite",
        "maxsim": f"{_MODULE}.memind.stages:MaxSim",
        "overlap": f"{_MODULE}.siftcoder:OverlapRerank",
        "mmr": f"{_MODULE}.abmind.stages:Mmr",
        "elbow": f"{_MODULE}.memind.stages:Elbow",
    },
    "bethink.assemblers": {
        "captions": f"{_MODULE}.memind.stages:Captions",
        "timelines": f"{_MODULE}.abmind.stages:Timelines",
        "interference": f"{_MODULE}.abmind.stages:Interference",
    },
}
