"""`boost` and `demote`: saying how relevant a memory turned out to be."""

from __future__ import annotations

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.cli.printing import bold, dim, green

_MOST = 20.0


@command("boost", examples=["recollect boost 0v3h2k9x4m7q1abc", "recollect boost 1abc --by 3"])
@click.argument("ids", metavar="ID", nargs=-1, required=True)
@click.option("--by", type=click.FloatRange(0, _MOST, min_open=True), default=1.0,
              show_default=True, metavar="N", help="How much more.")  # fmt: skip
@pass_app
def boost(app: App, /, ids: tuple[str, ...], by: float) -> None:
    """Say that a memory is relevant.

    Each time counts one, up to ten either way; profiles that weigh it in prefer what was
    boosted. The judgement is a revision, so it can be looked up and undone.
    """
    _judge(app, ids, by)


@command("demote", examples=["recollect demote 0v3h2k9x4m7q1abc"])
@click.argument("ids", metavar="ID", nargs=-1, required=True)
@click.option("--by", type=click.FloatRange(0, _MOST, min_open=True), default=1.0,
              show_default=True, metavar="N", help="How much less.")  # fmt: skip
@pass_app
def demote(app: App, /, ids: tuple[str, ...], by: float) -> None:
    """Say that a memory is not so relevant.

    The opposite of boost.
    """
    _judge(app, ids, -by)


def _judge(app: App, ids: tuple[str, ...], by: float) -> None:
    with app.open() as memory:
        items = [memory.boost(item_id, by) for item_id in ids]
    if app.json:
        from recollect.wire import item_json  # plain output does without

        told = [item_json(item) for item in items]
        app.out.json(told[0] if len(told) == 1 else told)
        return
    for item in items:
        if app.quiet:
            app.out.line(item.id)
        else:
            app.out.line(
                green("judged"), " ", bold(item.id), dim(f" relevance {item.relevance:+g}")
            )
