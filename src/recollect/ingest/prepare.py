"""Everything that can refuse a draft, in order: limits, secrets, pasted output."""

from __future__ import annotations

from datetime import datetime

from recollect.ingest.admit import admit
from recollect.ingest.injection import is_injection
from recollect.ingest.paste import refuse_pasted
from recollect.ingest.redact import redact_draft
from recollect.ingest.writing import Prepared, WriteContext
from recollect.model import Draft
from recollect.text import fingerprint, fold, unseen_flags


def prepare(draft: Draft, ctx: WriteContext) -> Prepared:
    """The draft ready to be compared and stored; raises Refused where it may not be."""
    draft, redacted = redact_draft(admit(draft, ctx.now))
    refuse_pasted(draft)
    folded = fold(draft.text)
    return Prepared(
        draft,
        id=draft.id or ctx.make_id(ctx.now),
        folded=folded,
        fingerprint=fingerprint_of(draft, folded),
        redacted=redacted,
        flags=_flags(draft),
        turn=draft.session is not None and draft.seq is None,
    )


def fingerprint_of(draft: Draft, folded: str) -> str:
    """Equal for drafts that say the same: same words, level, speaker and turn."""
    speaker = fold(draft.speaker) if draft.speaker else ""
    turn = "" if draft.session is None else f"{draft.session}\x1e{draft.seq}"
    return fingerprint(folded, draft.level, speaker, turn)


def happened_apart(one: datetime | None, other: datetime | None) -> bool:
    """Whether two memories of the same words tell of different moments."""
    return one is not None and other is not None and abs((one - other).total_seconds()) >= 1


def _flags(draft: Draft) -> tuple[str, ...]:
    flags = unseen_flags(draft.text)
    return (*flags, "injection") if is_injection(draft.text) else flags
