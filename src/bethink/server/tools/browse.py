"""Handlers of the browsing tools and of insights, consolidate and undo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bethink.api.browse import merge_timeline
from bethink.core.json_values import Json, iso
from bethink.errors import NotFound, Refused
from bethink.render.wire import entity_json, insight_json, thread_json
from bethink.retrieval.provenance import InsightNode, InsightPoint
from bethink.server.tools.answers import (
    NOTICE,
    Quote,
    count_fitting,
    fence_quotes,
    get_visible,
    memory_json,
    newest_page,
    older_hint,
    one_line,
    quote_item,
    text_cost,
    truncate,
)
from bethink.server.tools.tool import Call, Reply

if TYPE_CHECKING:
    from bethink.maintain.runner import Report
    from bethink.model import Item, Member, Thread


_ENTITY_FIELDS = ("id", "kind", "name", "aliases", "mentions", "pace", "last_seen_at")
_DEFAULT_LIMITS = {"entities": 30, "revisions": 10, "threads": 20, "members": 20}


def list_entities(call: Call) -> Reply:
    """Handle `list_entities`: the people, projects and things that memories mention."""
    wanted = call.given("prefix", "kind", "min_memories", "offset")
    most = call.told.get("limit", _DEFAULT_LIMITS["entities"])
    listed = call.memory.entities(limit=most + 1, **wanted)
    found = [entity_json(entity) for entity in listed[:most]]
    content = {
        "notice": NOTICE,
        "entities": [{name: one[name] for name in _ENTITY_FIELDS} for one in found],
        "more": len(listed) > most,
    }
    lines = [f"{one['id']}: {one['mentions']} memories, {one['pace']}" for one in found]
    if not lines:
        return Reply("No entity is known.", content)
    text = fence_quotes(
        [Quote(f"{len(lines)} entities", "\n".join(lines))], "entities", max_chars=None
    )
    return Reply(text + _more_hint(call, len(found), more=len(listed) > most), content)


def _more_hint(call: Call, shown: int, *, more: bool) -> str:
    return f"\nThere are more: offset {call.told.get('offset', 0) + shown}." if more else ""


def history(call: Call) -> Reply:
    """Handle `history`: the revisions of a memory that the caller may see."""
    ceiling = call.memory.settings.max_classification
    found = call.memory.history(get_visible(call.memory, call.told["id"]).id)
    visible = [one for one in found if one.classification <= ceiling]
    revisions, left_out = newest_page(
        call,
        visible,
        lambda wanted: [one.text for one in wanted],
        default_limit=_DEFAULT_LIMITS["revisions"],
    )
    quotes = [Quote(f"revision {one.rev} | {iso(one.live_from)}", one.text) for one in revisions]
    told = [
        {"rev": one.rev, "text": one.text, "from": iso(one.live_from),
         "to": iso(one.live_to)}
        for one in revisions
    ]  # fmt: skip
    text = fence_quotes(quotes, "revisions") or "There are no older revisions."
    return Reply(
        text + older_hint(call, len(revisions), left_out),
        {"notice": NOTICE, "revisions": told, "left_out": left_out},
    )


def timeline(call: Call) -> Reply:
    """Handle `timeline`: a memory between those before and after it."""
    middle = get_visible(call.memory, call.told["id"])
    found = merge_timeline(middle, call.memory.timeline(middle.id, **call.given("window")))
    items = _fit_around(call, middle, found)
    left_out = len(found) - len(items)
    quotes = [quote_item(item, *(["this one"] if item.id == middle.id else [])) for item in items]
    content = {
        "notice": NOTICE,
        "memories": [memory_json(item) for item in items],
        "left_out": left_out,
    }
    more = f"\n{left_out} further away left out: ask around the first or the last of these."
    return Reply(fence_quotes(quotes) + (more if left_out else ""), content)


def _fit_around(call: Call, middle: Item, items: Sequence[Item]) -> Sequence[Item]:
    """Return the items that fit, from the middle outwards."""
    at = next(place for place, item in enumerate(items) if item.id == middle.id)
    places = sorted(range(len(items)), key=lambda place: abs(place - at))
    count = count_fitting(call, (text_cost(call, items[place].text) for place in places))
    return [items[place] for place in sorted(places[:count])]


def threads(call: Call) -> Reply:
    """Handle `threads`: the long-running topics, or one of them with its memories."""
    if "id" in call.told:
        return _thread_reply(call, call.told["id"])
    offset, most = call.told.get("offset", 0), call.told.get("limit", _DEFAULT_LIMITS["threads"])
    listed = call.memory.threads(limit=most + 1, offset=offset)
    found, more = listed[:most], len(listed) > most
    quotes = [
        Quote(
            f"{one.id} | {one.lifecycle}, {one.state} | {len(one.members)} memories", one.headline
        )
        for one in found
    ]
    text = fence_quotes(quotes, "threads") or "No thread is known; consolidation finds them."
    told = [_thread_json(one, one.members[-_DEFAULT_LIMITS["members"] :]) for one in found]
    content = {"notice": NOTICE, "threads": told, "more": more, "left_out": 0}
    return Reply(text + _more_hint(call, len(found), more=more), content)


def _thread_reply(call: Call, thread_id: str) -> Reply:
    memory, items = call.memory, dict[str, "Item"]()
    try:
        thread = memory.thread(thread_id)
    except NotFound as error:
        raise NotFound(error.message, remedy="threads without an id lists them") from error

    def texts(wanted: Sequence[Member]) -> list[str]:
        ids = tuple(one.item for one in wanted)
        if ids:
            found = memory.browse(limit=len(ids), ids=ids, include_superseded=True)
            items.update({item.id: item for item in found})
        return [items[one].text if one in items else "" for one in ids]

    members, left_out = newest_page(
        call, thread.members, texts, default_limit=_DEFAULT_LIMITS["members"]
    )
    quotes = [Quote(f"{thread.id} | {thread.lifecycle}, {thread.state}", thread.headline)]
    quotes += [quote_item(items[one.item]) for one in members if one.item in items]
    content = {
        "notice": NOTICE,
        "threads": [_thread_json(thread, members, items)],
        "more": False,
        "left_out": left_out,
    }
    return Reply(fence_quotes(quotes, "thread") + older_hint(call, len(members), left_out), content)


def _thread_json(
    thread: Thread, members: Sequence[Member], items: dict[str, Item] | None = None
) -> Json:
    """Return a thread as JSON with these members and its last events."""
    last = thread.events[-max(len(members), 1) :]
    shown = thread._replace(members=tuple(members), events=last)
    return thread_json(shown, items or {}) | {"memories": len(thread.members)}


_SOURCE_SNIPPET_CHARS = 200  # characters of a memory that bears an insight out, for a model


def insights(call: Call) -> Reply:
    """Handle `insights`: the insight tree, from the top down as far as it fits."""
    tree = call.memory.insights()
    if "id" in call.told:
        wanted = get_visible(call.memory, call.told["id"]).id
        tree = [one for one in _breadth_first(tree) if one.insight.id == wanted][:1]
        if not tree:
            raise NotFound(f"{wanted} is no insight", remedy="insights without an id lists them")
    offset = call.told.get("offset", 0)
    tree = _skip_branches(tree, offset)
    told = tree if call.whole else [_with_snippets(one) for one in tree]
    nodes = list(_breadth_first(told))
    count = count_fitting(call, (text_cost(call, *_branch_texts(one)) for one in nodes))
    kept = _take_branches(told, count)
    left_out = len(nodes) - count
    text = fence_quotes(list(_branch_quotes(kept)), "insights") or "There are no insights yet."
    if left_out:
        text += f"\n{left_out} further down left out, which offset {offset + count} gets."
    content = {
        "notice": NOTICE,
        "insights": [insight_json(one) for one in kept],
        "left_out": left_out,
    }
    return Reply(text, content)


def _breadth_first(tree: Sequence[InsightNode]) -> Iterator[InsightNode]:
    """Yield every branch in breadth-first order."""
    while tree:
        yield from tree
        tree = [below for one in tree for below in one.below]


def _skip_branches(level: Sequence[InsightNode], count: int) -> list[InsightNode]:
    """Return the tree without its first ``count`` branches in breadth-first order."""
    below = [under for one in level[:count] for under in one.below]
    rest = max(0, count - len(level))
    return _skip_branches(below, rest) if rest and below else [*level[count:], *below]


def _take_branches(level: Sequence[InsightNode], count: int) -> list[InsightNode]:
    """Return the first ``count`` branches in breadth-first order, as a tree."""
    here = level[:count]
    if not here:
        return []
    below = _take_branches([under for one in here for under in one.below], count - len(here))
    made, at = [], 0
    for one in here:
        made.append(one._replace(below=tuple(below[at : at + len(one.below)])))
        at += len(one.below)
    return made


def _branch_texts(branch: InsightNode) -> Iterator[str]:
    yield branch.insight.text
    for point in branch.points:
        yield point.text
        yield from (source.text for source in point.sources)


def _with_snippets(branch: InsightNode) -> InsightNode:
    """Return the branch with its source memories cut to snippets."""
    points = tuple(
        InsightPoint(
            point.text,
            tuple(
                one._replace(text=truncate(one.text, _SOURCE_SNIPPET_CHARS))
                for one in point.sources
            ),
        )
        for point in branch.points
    )
    return branch._replace(points=points, below=tuple(map(_with_snippets, branch.below)))


def _branch_quotes(tree: Sequence[InsightNode], depth: int = 0) -> Iterator[Quote]:
    for branch in tree:
        item = branch.insight
        stale = " | stale" if branch.stale else ""
        yield Quote(f"{item.id} | {item.kind} at depth {depth}{stale}", item.text)
        yield from _branch_quotes(branch.below, depth + 1)


_JOBS = ("duplicates", "consolidate")
_RUN_PREFIX = "run-"


def consolidate(call: Call) -> Reply:
    """Handle `consolidate`: preview the merges or, with the preview's token, do them."""
    token, limits = call.told.get("token"), call.given("share")
    if token is None:
        report = call.memory.maintain(*_JOBS, preview=True, **limits)
        steps = [(step.job.name, step.proposal) for step in report.plan.steps]
        told = f"Nothing was changed; token: {report.plan.token}" if steps else "Nothing to do."
    else:
        report = call.memory.maintain(*_JOBS, token=token, progress=call.progress, **limits)
        steps = [(done.job, done.proposal) for done in report.done]
        told = f"done; undo with {report.run} takes it back" if report.run else "Nothing to do."
    proposals: list[Json] = [
        {
            "job": job,
            "why": proposal.why,
            "leaves": list(proposal.leaving),
            "text": proposal.text,
        }
        for job, proposal in steps
    ]
    count = count_fitting(
        call, (text_cost(call, one["why"], one["text"] or "") for one in proposals)
    )
    if count < len(proposals):
        told += f"\n{len(proposals) - count} of {len(proposals)} proposals are not shown."
    shown = proposals[:count]
    quotes = [Quote(f"{one['job']} | {' '.join(one['leaves'])}", one["why"]) for one in shown]
    content = _consolidate_content(report, shown, preview=token is None)
    content["left_out"] = len(proposals) - count
    return Reply(f"{told}\n{fence_quotes(quotes, 'proposals')}".strip(), content)


def _consolidate_content(report: Report, proposals: list[Json], *, preview: bool) -> Json:
    return {
        "done": not preview and bool(proposals),
        "token": report.plan.token if preview and proposals else None,
        "run": report.run,
        "notice": NOTICE,
        "proposals": proposals,
        "left": [one_line(f"{left.job}: {left.why} {left.hindrance}") for left in report.left],
    }


def undo(call: Call) -> Reply:
    """Handle `undo`: take back the last change, or a whole run."""
    item_id, preview = call.told.get("id"), call.told.get("preview", False)
    if item_id is not None and item_id.startswith(_RUN_PREFIX):
        would = call.memory.undo_run(item_id, preview=True)
        _refuse_revoked(call, [one for one, _ in would.judged])
        run = would if preview else call.memory.undo_run(item_id)
        doing = f"bring {len(run.restored)} back, take {len(run.ended)} away"
        return _undo_reply(
            run.run, doing, restored=run.restored, taken_back=run.ended, preview=preview
        )
    if item_id is not None:
        item_id = get_visible(call.memory, item_id).id
    done = call.memory.undo(item_id, preview=True)
    if done.change.kind == "status":
        _refuse_revoked(call, [done.item])
    if not preview:
        done = call.memory.undo(item_id)
    return _undo_reply(done.item, done.doing, preview=preview)


def _refuse_revoked(call: Call, ids: list[str]) -> None:
    """Refuse to restore revoked memories: no agent may undo a revocation."""
    for item in call.memory.store.get(ids).values():
        if item.status == "quarantined":
            raise Refused(
                f"{item.id} was revoked; only a command lets it back",
                remedy="ask the user, who can run: bethink undo",
            )


def _undo_reply(
    item_id: str,
    doing: str,
    *,
    preview: bool,
    restored: tuple[str, ...] = (),
    taken_back: tuple[str, ...] = (),
) -> Reply:
    content = {
        "done": not preview,
        "id": item_id,
        "doing": doing,
        "restored": list(restored),
        "taken_back": list(taken_back),
    }
    return Reply(f"{'would' if preview else 'did'} {doing}: {item_id}", content)
