"""Records of an export without proof of origin: what they may claim, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold
from bethink.ingest.admission import TRUST_CEILING, fingerprint_of
from bethink.ingest.content_checks import content_flags
from bethink.ingest.redaction import redact, redact_json
from bethink.model import Draft

UNTRUSTED_KINDS = frozenset({"entity", "alias", "item", "link", "status_change"})
"""What it may bring. A journal, keys, uses or threads would speak for this installation."""

_CLASS = "import"
_FINGERPRINTED = ("level", "speaker", "session", "seq", "metadata")


class Stranger(NamedTuple):
    """An import that proves no origin: who brings it in, and the setting of personal numbers."""

    actor: str
    personal_numbers: str


def cap_record(record: Mapping[str, object], strange: Stranger) -> Json:
    """Return a record without secrets; a memory with the trust of an import, not pinned."""
    personal = strange.personal_numbers == "all" or (
        strange.personal_numbers == "captured" and record.get("level") == "raw"
    )
    clean: Json = redact_json(record, personal=personal)
    clean |= {name: redact(str(record[name]), named=True).text for name in _names_in(record)}
    if record["type"] != "item":
        return clean
    text, source = clean["text"], clean["source"].removeprefix(f"{_CLASS}:")
    clean |= {
        "source": f"{_CLASS}:{source}",
        "source_class": _CLASS,
        "writer": strange.actor,
        "trust": min(clean["trust"], TRUST_CEILING[_CLASS]),
        "pinned": False,
        "protected": clean.get("layer") == "caveat",
        "flags": list(dict.fromkeys((*clean["flags"], *content_flags(text)))),
    }
    clean.pop("content_hash", None)
    if text != record["text"]:
        draft = Draft(text, **{name: clean[name] for name in _FINGERPRINTED if name in clean})
        clean["fingerprint"] = fingerprint_of(draft, fold(text))
        clean.pop("sketch", None)  # of the words with the secret
    return clean


def _names_in(record: Mapping[str, object]) -> list[str]:
    """Return the fields that name a memory or a session: two of them must not become one."""
    if record["type"] == "entity":
        return []  # made of the entity's name, and redacted as that is
    ends = [end for end in ("src", "dst") if record.get(f"{end}_kind") == "item"]
    names = ("id", "session", "parent", "ended_by", *ends)
    return [name for name in names if isinstance(record.get(name), str)]
