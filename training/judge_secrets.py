"""Count the secrets that are removed before a text is stored, and the harmless texts changed.

    python training/judge_secrets.py training/data/redaction/held/*.jsonl
    python training/judge_secrets.py --harmless FILE.jsonl...
    python training/judge_secrets.py --ordinary

A line has ``text`` and ``secret``; with ``--harmless`` only ``text``, and nothing is secret.
``--ordinary`` reads the texts of ``data`` that nothing was learnt from; some do tell a secret, so
``--show`` what is changed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bethink.ingest.redaction import redact
from bethink.models.secret_model import secret_model
from secret_lines import own_texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lists", type=Path, nargs="*")
    parser.add_argument("--harmless", action="store_true")
    parser.add_argument("--ordinary", action="store_true")
    parser.add_argument("--show", action="store_true", help="print what is missed or changed")
    given = parser.parse_args()
    lists = [
        (path.name, list(map(json.loads, path.read_text().splitlines()))) for path in given.lists
    ]
    if given.ordinary:
        lists.append(("ordinary", [{"text": text} for text in own_texts(measured=True)]))
    for name, rows in lists:
        found = {"rules": 0, "with the model": 0}
        changed = dict(found)
        for row in rows:
            secret = None if given.harmless else row.get("secret")
            for way, find in (("rules", None), ("with the model", secret_model.find)):
                text = redact(row["text"], find=find).text
                wrong = text != row["text"] if secret is None else secret in text
                found[way] += secret is not None and not wrong
                changed[way] += secret is None and wrong
                if given.show and wrong and find:
                    print("   ", secret or text, "|", row["text"])
        secrets = 0 if given.harmless else sum(row.get("secret") is not None for row in rows)
        for way, count in found.items():
            print(
                f"{name}, {way}: {count} of {secrets} secrets removed,",
                f"{changed[way]} of {len(rows) - secrets} harmless texts changed",
            )


if __name__ == "__main__":
    main()
