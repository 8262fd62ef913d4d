"""Keyword arguments of `Memory`: the options of recall, the filters, the fields of a memory.

The options of recall and the filters are declared here for every surface. A row is a keyword
with its type. Its notes say how others offer it: an `Option` for the command line, a description
and a `Limit` for tools and REST. What has no note is for Python only. The annotations are read
as objects, hence no ``from __future__ import annotations``.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypedDict, Union

from bethink.core.named_tuple import NamedTuple
from bethink.model.fields import Limit
from bethink.model.item import LEVELS, Level, Lifecycle, ThreadEvent, ThreadKind, ThreadState
from bethink.retrieval.heat import BANDS

if TYPE_CHECKING:
    from bethink.model import Filters
    from bethink.ports import Reranker
    from bethink.retrieval.context import Boost
    from bethink.retrieval.profile import Profile

Texts: TypeAlias = str | Iterable[str] | None
Moment: TypeAlias = str | datetime | None
_TIME_TEXT = Limit(longest=100)


class Option(NamedTuple):
    """An option of the command line; ``names`` where they are not made from the keyword.

    ``bounds`` are checked by the command line, all others by what uses the value.
    """

    help: str
    metavar: str = "TEXT"
    names: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()


class FilterOptions(TypedDict, total=False):
    """Filters by keyword; a single value may stand for a list."""

    level: Annotated[Texts, Option("Level: raw, item or insight.", choices=LEVELS)]
    kind: Annotated[Texts, Option("Kind, such as decision, fact, event."), "Only this kind."]
    layer: Annotated[
        Texts,
        Option("Layer: goal, context, emotion, implementation, caveat, learning, or an alias.",
               choices=("goal", "context", "emotion", "implementation", "caveat", "learning")),
        "goal, context, emotion, implementation, caveat, learning.",
        Limit(longest=40),
    ]  # fmt: skip
    topic: Annotated[Texts, Option("Topic."), "Only this topic."]
    tier: Annotated[Texts, Option("Tier: core, general or your own.", names=("--tier", "--pool"))]
    tag: Annotated[Texts, Option("Tag; if repeated, all must match."), "Only with this tag."]
    entity: Annotated[
        Texts, Option("Entity that it mentions, by name or id."), "Only what mentions this name."
    ]
    source: Annotated[Texts, Option("Source that it came from.")]
    session: Annotated[Texts, Option("Session (conversation) that it belongs to.")]
    speaker: Annotated[Texts, Option("Who said it.")]
    user: Annotated[
        Texts, Option("Whose memory it is (user_id of its metadata)."), "Only this user's."
    ]
    band: Annotated[
        Texts,
        Option("Heat band, from use: hot, warm, cold or frozen.", choices=BANDS),
        "Only if used this much.",
        Limit(choices=BANDS),
    ]
    at: Annotated[Texts, Option("Tied to code whose PATH::SYMBOL contains this.")]
    id: Annotated[Texts, Option("Only these memories.")]
    since: Annotated[
        Moment,
        Option("Happened at TIME or later.", "TIME"),
        "Happened since: 2026-05-07, or words.",
        _TIME_TEXT,
    ]
    until: Annotated[
        Moment, Option("Happened before TIME.", "TIME"), "Happened before.", _TIME_TEXT
    ]
    min_trust: Annotated[
        int | None, Option("Minimum trust, from 0 (unknown) to 3 (owner).", "0-3", bounds=(0, 3))
    ]
    max_classification: Annotated[
        int | None, Option("From 0 (public) to 3 (secret); default 2.", "0-3", bounds=(0, 3))
    ]
    include_superseded: Annotated[
        bool, Option("Include memories that a newer one replaced."), "Include replaced ones."
    ]
    include_expired: Annotated[bool, Option("Include memories that are no longer valid.")]
    include_untopiced: Annotated[
        bool,
        Option(
            "With --topic: include memories without a topic, or not; default: the profile's.",
            names=("--include-untopiced/--no-untopiced",),
        ),
    ]
    include_shared: Annotated[
        bool,
        Option(
            "With --user: include public and internal memories of others, or not; default: the "
            "profile's.",
            names=("--include-shared/--no-shared",),
        ),
    ]
    stored_by: Moment
    levels: Texts
    kinds: Texts
    layers: Texts
    topics: Texts
    tiers: Texts
    tags: Texts
    entities: Texts
    sources: Texts
    sessions: Texts
    speakers: Texts
    users: Texts
    bands: Texts
    ids: Texts


class RecallOptions(FilterOptions, total=False):
    """Options of a recall; what is left out is as the setting or the profile says."""

    profile: Annotated[
        Union[str, "Profile", None],
        Option("Recall profile; bethink profiles lists them.", "NAME"),
        "Name of the profile.",
        Limit(longest=100),
    ]
    offset: Annotated[
        int,
        Option("Skip the first N results.", "N"),
        "Skip the first N results.",
        Limit(0, 100_000),
    ]
    cursor: Annotated[
        str | None,
        Option("Continue an earlier answer at its cursor."),
        "Of an earlier answer: its next page.",
        Limit(longest=20_000),
    ]
    k: Annotated[
        int | None,
        Option("Maximum number of results.", "N", ("-k", "--limit")),
        "Maximum number of memories.",
        Limit(1, 50),
    ]
    max_tokens: Annotated[
        int | None,
        Option("Maximum number of tokens.", "N"),
        "Maximum tokens of text.",
        Limit(100, 20_000),
    ]
    whole: Annotated[
        bool, Option("Show long memories whole, not by passage."), "Show long memories whole."
    ]
    min_confidence: Annotated[
        float | None,
        Option("Return nothing if the confidence is below X (0 to 1); 0 returns all.", "X"),
        "Nothing if less sure; 0 returns all.",
        Limit(0, 1),
    ]
    min_relevance: Annotated[
        float | None,
        Option("Leave out results below X (0 to 1), in place of the usual cut; 0: none.", "X"),
        "Replaces the usual cut; 0: none.",
        Limit(0, 1),
    ]
    as_of: Annotated[
        Moment,
        Option("Answer from what was known at TIME.", "TIME"),
        "Answer from what was stored then.",
        _TIME_TEXT,
    ]
    turns_before: Annotated[
        Texts,
        Option("What was said just before, for a short reply such as 'and the second one?'.",
               names=("--turn-before",)),
        "The turns before a short reply.",
        Limit(longest=8000, is_list=True),
    ]  # fmt: skip
    own_session: Annotated[
        str | None,
        Option("The session you are in, not 'our last' one."),
        "The session you are in.",
        Limit(longest=200),
    ]
    deep: Annotated[bool, Option("Memind's second pass: check the first answer, search further.")]
    reranker: Annotated[
        "str | Reranker | None",
        Option("Reranker of the best hits: overlap, cross-encoder, a URL, none.", "NAME"),
    ]
    context: Annotated[
        Mapping[str, object] | None,
        Option('Current situation, such as {"hour": 9, "weekday": "monday", "topic": "auth"}.',
               "JSON"),
    ]  # fmt: skip
    now: Annotated[datetime | None, Option("Answer as if it were TIME.", "TIME")]
    track: Annotated[
        bool | None,
        Option(
            "Record the results as used, or not; default: the setting track, else the profile.",
            names=("--track/--no-track",),
        ),
        "Record use; default: by profile.",
    ]
    episode_k: Annotated[
        int | None,
        Option("Maximum number of verbatim episodes (level raw), besides -k; 0 for none.", "N"),
        "Maximum episodes, besides k.",
        Limit(0, 50),
    ]
    most: Mapping[str, int] | None
    filters: "Filters | None"
    boost: "Boost | None"


class _Changeable(TypedDict, total=False):
    """The fields of a memory that may change, besides its text."""

    kind: str | None
    layer: str | None
    topic: str | None
    tier: str | None
    tags: Iterable[str]
    entities: Iterable[str]
    caption: str | None
    original: str | None
    language: str | None
    speaker: str | None
    source: str
    trust: int | None
    integrity: int
    credibility: int
    classification: int
    emotion: float
    importance: float
    confidence: float
    pinned: bool
    occurred_at: Moment
    occurred_end: Moment
    valid_from: Moment
    valid_to: Moment
    metadata: Mapping[str, object]
    anchors: Iterable[str]
    force: bool


class MemoryFields(_Changeable, total=False):
    """Fields of a memory to store, besides its text; ``user`` is ``user_id`` of its metadata."""

    level: Level
    user: str | None
    session: str | None
    seq: int | None
    parent: str | None
    source_class: str
    id: str | None
    key: str | None
    derives_from: Iterable[str]


class MemoryChanges(_Changeable, total=False):
    """Fields of a memory that an update may change."""

    text: str


class ThreadFields(TypedDict, total=False):
    """The fields of a thread besides its headline and members."""

    id: str
    kind: ThreadKind
    anchor: str | None
    lifecycle: Lifecycle
    state: ThreadState
    events: tuple[ThreadEvent, ...]
    created_at: datetime | None
    updated_at: datetime | None
