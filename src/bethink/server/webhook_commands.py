"""The command `webhook`."""

from __future__ import annotations

import click

from bethink.access.webhooks import JournalReader, Webhook, WebhookStore
from bethink.cli.app import App
from bethink.cli.options import group, option
from bethink.cli.output import Piece, bold, columns, dim, format_time, green, print_table, yellow

_URL = "https://hooks.example.org/memory"
# The kinds of lines that the journal has.
_CHANGES = """stored, revised, ended, restored, erased, status, imported, linked, unlinked, merged,
split, thread, thread dropped, threads imported, file edits noted, files forgotten, exported,
read by model, ran, run_undone, maintenance, maintained, making, undone, place, journal,
journal restored, synced"""
KINDS = click.Choice(_CHANGES.replace("\n", " ").split(", "))


@group(
    "webhook",
    examples=[
        f"bethink webhook add deploys {_URL}",
        "bethink webhook add notes http://127.0.0.1:9000/ --private --kind stored",
        "bethink webhook list",
        "bethink webhook rotate deploys",
        "bethink webhook remove deploys",
    ],
)
def webhook(app: App) -> int:
    """Notify other programs of changes.

    Add, list, rotate and remove webhooks.

    bethink serve posts the kind and the id of every change in this space, never a text, to
    the addresses that were added here: signed as Standard Webhooks has it, in order, at least
    once, for three days where an address does not answer. What the server's
    max_classification hides is not sent.
    """
    return list_hooks(app)


@webhook.subcommand("add", examples=[f"bethink webhook add deploys {_URL}"])
@click.argument("name")
@click.argument("url")
@option("--kind kinds NAME", "Only such changes, for example stored.", KINDS, multiple=True)
@option("--private", "Allow http, and addresses that are not on the public Internet.")
def add(app: App, /, name: str, url: str, *, kinds: tuple[str, ...], private: bool) -> None:
    """Add a webhook and print its secret once.

    It gets the changes from now on.
    """
    reader = JournalReader()
    with app.open() as memory:
        reader.go_to_end(memory.below(memory.settings.max_classification).store)
        place = (memory.store.space, reader.cursor)
    _print_secret(app, WebhookStore().add(name, url, *place, kinds=kinds, private=private))


@webhook.subcommand("rotate", examples=["bethink webhook rotate deploys"])
@click.argument("name")
def rotate(app: App, name: str) -> None:
    """Give a webhook a new secret and print it once.

    For a day both secrets sign. A webhook that was given up is tried again.
    """
    _print_secret(app, WebhookStore().rotate(name))


def _print_secret(app: App, hook: Webhook) -> None:
    app.report({"secret": hook.secret, **hook.to_json()}, hook.secret)
    app.note(green(f"{hook.name}: {hook.url}"), dim("; the secret is not shown again"))


@webhook.subcommand("list", examples=["bethink webhook list"])
def list_hooks(app: App) -> int:
    """List the webhooks of every space, and how sending goes."""
    found = WebhookStore().all()
    heads, rows = columns("name", "space", "state", "kinds", "*url"), [_row(one) for one in found]
    documents, show = [one.to_json() for one in found], lambda: print_table(app.out, heads, rows)
    none = "there are no webhooks; add one with: bethink webhook add NAME URL"
    return app.listing(documents, show, none)


def _row(hook: Webhook) -> tuple[Piece, ...]:
    state = yellow("given up") if hook.given_up else green("in order")
    if hook.next_at is not None and not hook.given_up:
        state = yellow(f"{hook.failures} failed, next {format_time(hook.next_at)}")
    return bold(hook.name), hook.space, state, ", ".join(hook.kinds) or "all", dim(hook.url)


@webhook.subcommand("remove", examples=["bethink webhook remove deploys"])
@click.argument("name")
def remove(app: App, name: str) -> None:
    """Remove a webhook at once.

    Running servers notice.
    """
    WebhookStore().remove(name)
    app.report({"removed": name}, green("removed"), " ", bold(name))
