"""Proof that an export was written by this installation, and what an export claims."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO

from bethink.config.settings import Settings
from bethink.config.spaces import data_dir
from bethink.core.json_values import Json, JsonObjects
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused, StoreError
from bethink.store.sql.export import END
from bethink.store.sql.journal_key import Secret
from bethink.store.sqlite.files import KeyFile, make_private_folder

KEY_FILE = "installation.key"
_TRUSTED = 2  # from here on a memory counts as the word of the user or owner
_MEMORY_BYTES = 8 << 20  # of an export; more is kept in a temporary file


class ExportClaims(NamedTuple):
    """What an export says: live memories, those of trust 2 or 3, and pinned ones."""

    is_own: bool  # a signature of this installation covers all of it
    space: str = ""
    memories: int = 0
    trusted: int = 0
    pinned: int = 0


def installation_secret(settings: Settings, *, create: bool = False) -> Secret:
    """Return the secret of this installation; an empty one where there is none."""
    file = KeyFile(data_dir(settings) / KEY_FILE)
    try:
        if create:
            make_private_folder(file.path.parent)
        return file.ensure(1) if create else file.read()
    except StoreError:
        return Secret()  # a read-only folder: the export is useful without a signature


def sign_records(records: Iterator[Json], settings: Settings) -> Iterator[Json]:
    """Yield an export with the name of this installation first and its signature last.

    A copy below a ceiling is not signed: it is no back-up.
    """
    secret, signed = Secret(), hashlib.sha256()
    for number, record in enumerate(records):
        added: Json = {}
        if number == 0 and "max_classification" not in record:
            secret = installation_secret(settings, create=True)
            added = {"origin": secret.id} if secret.value else {}
        signed.update(_canonical(record | added))
        if secret.value and record["type"] == END:
            added = {"signature": secret.mac(signed.digest())}
        yield record | added


@contextmanager
def open_export(
    records: JsonObjects, settings: Settings
) -> Iterator[tuple[Iterator[Json], ExportClaims, set[str]]]:
    """Read an export to its end, then yield its records again, what it claims, and all ids."""
    with SpooledTemporaryFile(max_size=_MEMORY_BYTES) as spool:
        ids: set[str] = set()
        claims = _survey(records, spool, installation_secret(settings), ids)
        spool.seek(0)
        yield map(json.loads, spool), claims, ids


def _survey(
    records: Iterable[object], spool: IO[bytes], secret: Secret, ids: set[str]
) -> ExportClaims:
    """Copy records into the spool; return what they claim and whether the signature is right.

    The ids of all memories, live or not, are added to ``ids``.
    """
    claims, origin, signature, signed = ExportClaims(is_own=False), None, b"", hashlib.sha256()
    for number, record in enumerate(records, 1):
        fields = record if isinstance(record, Mapping) else {}  # the import refuses others
        if number == 1:
            origin = fields.get("origin")
            claims = claims._replace(space=str(fields.get("space", "")))
        is_end = fields.get("type") == END
        signature = str(fields.get("signature")).encode(errors="replace") if is_end else b""
        try:
            # In the order of its keys: the hash of a memory covers its fields as they are.
            spool.write(json.dumps(record, default=dict).encode() + b"\n")
            covered = {key: fields[key] for key in fields if key != "signature"}
            signed.update(_canonical(covered if is_end else fields))
        except (TypeError, ValueError, RecursionError) as error:
            raise Refused(f"line {number}: this is not JSON; nothing was imported") from error
        if fields.get("type") == "item":
            ids.add(str(fields.get("id")))
        if fields.get("type") == "item" and fields.get("live_to") is None:
            trust = fields.get("trust")
            claims = claims._replace(
                memories=claims.memories + 1,
                trusted=claims.trusted + (isinstance(trust, int) and trust >= _TRUSTED),
                pinned=claims.pinned + (fields.get("pinned") is True),
            )
    if not secret.value or origin != secret.id:
        return claims
    expected = secret.mac(signed.digest()).encode()
    return claims._replace(is_own=hmac.compare_digest(signature, expected))


def _canonical(record: object) -> bytes:
    """Return a record's bytes, fields in their order: content hashes cover that of metadata."""
    return json.dumps(record, separators=(",", ":"), default=dict).encode()
