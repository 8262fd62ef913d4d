"""The command `helped`: whether the memories that hooks showed were useful."""

from __future__ import annotations

from collections import Counter

from bethink.agents import helped as judging
from bethink.cli.app import App
from bethink.cli.options import command, limit_option
from bethink.cli.output import bold, columns, dim, one_line, print_table
from bethink.core.json_values import Json


@command("helped", examples=["bethink helped", "bethink helped --limit 20 --json"])
@limit_option(10)
def helped(app: App, limit: int) -> int:
    """Show whether the memories that hooks showed were used.

    Each memory that a briefing, a prompt or an unasked note showed to an agent counts as
    cited (by its id), followed (a distinctive word of it was used afterwards), corrected,
    or ignored, by the transcript. With the setting ab_test half of the
    sessions get nothing, and the two halves are compared.
    """
    with app.open() as memory:
        found = judging.helped(memory)
        listed = list(found.by_item().items())
        items = memory.store.items.get([item for item, _ in listed])
    app.document(_helped_json(found, limit))
    if not found.shown:
        app.note("hooks have shown nothing yet")
    else:
        heads = columns("event", ">shown", *(f">{name}" for name in judging.VERDICTS))
        rows = [
            (name or "(unnamed)", *_counts(counts)) for name, counts in found.by_event().items()
        ]
        print_table(app.out, heads, rows)
        app.out.line("")
        heads = columns("memory", ">shown", *(f">{name}" for name in judging.VERDICTS), "*text")
        print_table(
            app.out,
            heads,
            [
                (bold(item), *_counts(counts), one_line(items[item].text, 60))
                for item, counts in listed[:limit]
            ],
        )
        for name in ("failures", "tokens"):
            app.note(dim(_comparison(found, name)))
    return 0 if found.shown else 1


def _counts(counts: Counter[str]) -> tuple[str, ...]:
    return (f"{counts.total()}", *(f"{counts[name]}" for name in judging.VERDICTS))


def _comparison(found: judging.Helped, name: str) -> str:
    sizes = " and ".join(
        f"{found.arms.get(arm, judging.Arm()).sessions} {text}"
        for arm, text in (("on", "with memory"), ("off", "without"))
    )
    difference = found.difference(name)
    if difference is None:
        return f"{name} a session: not enough to compare ({sizes} sessions; 30 of each are needed)"
    mean, low, high = difference
    return f"{name} a session, with memory less without: {mean:+.1f} ({low:+.1f} to {high:+.1f})"


def _helped_json(found: judging.Helped, limit: int) -> Json:
    return {
        "events": {name: dict(counts) for name, counts in found.by_event().items()},
        "memories": [
            {"id": item, **dict(counts)} for item, counts in list(found.by_item().items())[:limit]
        ],
        "tokens": sum(one.tokens for one in found.shown),
        "sessions": {name: arm.sessions for name, arm in found.arms.items()},
        "difference": {name: found.difference(name) for name in ("failures", "tokens")},
    }
