"""Handlers of the browsing tools and of insights, consolidate and undo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bethink.api.browse import merge_timeline
from bethink.core import plural
from bethink.core.json_values import Json, iso
from bethink.errors import NotFound, Refused
from bethink.render.quoting import Quote, fence_quotes, one_line, quote_item, truncate
from bethink.render.wire import entity_json, insight_json, thread_json
from bethink.retrieval.provenance import InsightNode, InsightPoint, mark_outdated
from bethink.server.tools.answers import (
    count_fitting,
    get_visible,
    in_tool_words,
    memory_json,
    newest_page,
    older_hint,
    text_cost,
)
from bethink.server.tools.tool import Call, Reply
from bethink.server.tools.write import nothing_in_reach, tidy_limits

if TYPE_CHECKING:
    from bethink.maintain.runner import Report
    from bethink.model import Item, Member, Thread


_ENTITY_FIELDS = ("id", "kind", "name", "aliases", "mentions", "pace", "last_seen_at")
_DEFAULT_LIMITS = {"entities": 30, "revisions": 10, "threads": 20, "members": 20}


def list_entities(call: Call) -> Reply:
    filters = call.given("prefix", "kind", "min_memories", "offset")
    limit = call.arguments.get("limit", _DEFAULT_LIMITS["entities"])
    listed = call.memory.entities(limit=limit + 1, **filters)
    found = [entity_json(listed_entity) for listed_entity in listed[:limit]]
    entries = [{name: entity[name] for name in _ENTITY_FIELDS} for entity in found]
    content = {"entities": entries, "more": len(listed) > limit}
    lines = [
        f"{entity['id']}: {plural(entity['mentions'], 'memory')}, {entity['pace']}"
        for entity in found
    ]
    if not lines:
        return Reply("No entities found.", content)
    text = fence_quotes(
        [Quote(plural(len(lines), "entity"), "\n".join(lines))], "entities", max_chars=None
    )
    return Reply(text + _more_hint(call, len(found), more=len(listed) > limit), content)


def _more_hint(call: Call, shown: int, *, more: bool) -> str:
    return (
        f"\nThere are more; get them with offset {call.arguments.get('offset', 0) + shown}."
        if more
        else ""
    )


def history(call: Call) -> Reply:
    ceiling = call.memory.settings.max_classification
    found = call.memory.history(get_visible(call.memory, call.arguments["id"]).id)
    visible = [revision for revision in found if revision.classification <= ceiling]
    revisions, left_out = newest_page(
        call,
        visible,
        lambda page: [revision.text for revision in page],
        default_limit=_DEFAULT_LIMITS["revisions"],
    )
    quotes = [
        Quote(f"revision {revision.rev} | {iso(revision.live_from)}", revision.text)
        for revision in revisions
    ]
    entries = [
        {"rev": revision.rev, "text": revision.text, "from": iso(revision.live_from),
         "to": iso(revision.live_to)}
        for revision in revisions
    ]  # fmt: skip
    text = fence_quotes(quotes, "revisions") or "There are no older revisions."
    return Reply(
        text + older_hint(call, len(revisions), left_out),
        {"revisions": entries, "left_out": left_out},
    )


def timeline(call: Call) -> Reply:
    middle = get_visible(call.memory, call.arguments["id"])
    found = merge_timeline(middle, call.memory.timeline(middle.id, **call.given("window")))
    items = _fit_around(call, middle, found)
    left_out = len(found) - len(items)
    quotes = [quote_item(item, *(["this one"] if item.id == middle.id else [])) for item in items]
    content = {"memories": [memory_json(item) for item in items], "left_out": left_out}
    more = f"\n{left_out} not shown; call timeline with the first or the last id to see more."
    return Reply(fence_quotes(quotes) + (more if left_out else ""), content)


def _fit_around(call: Call, middle: Item, items: Sequence[Item]) -> Sequence[Item]:
    """Return the items that fit, from the middle outwards."""
    at = next(place for place, item in enumerate(items) if item.id == middle.id)
    places = sorted(range(len(items)), key=lambda place: abs(place - at))
    count = count_fitting(call, (text_cost(call, items[place].text) for place in places))
    return [items[place] for place in sorted(places[:count])]


def threads(call: Call) -> Reply:
    if "id" in call.arguments:
        return _thread_reply(call, call.arguments["id"])
    offset, limit = (
        call.arguments.get("offset", 0),
        call.arguments.get("limit", _DEFAULT_LIMITS["threads"]),
    )
    listed = call.memory.threads(limit=limit + 1, offset=offset)
    found, more = listed[:limit], len(listed) > limit
    quotes = [
        Quote(
            f"{thread.id} | {thread.lifecycle}, {thread.state} | "
            f"{plural(len(thread.members), 'memory')}",
            thread.headline,
        )
        for thread in found
    ]
    text = fence_quotes(quotes, "threads") or "No threads yet; bethink maintain finds them."
    entries = [
        _thread_json(thread, thread.members[-_DEFAULT_LIMITS["members"] :]) for thread in found
    ]
    content = {"threads": entries, "more": more, "left_out": 0}
    return Reply(text + _more_hint(call, len(found), more=more), content)


def _thread_reply(call: Call, thread_id: str) -> Reply:
    memory, items = call.memory, dict[str, "Item"]()
    try:
        thread = memory.thread(thread_id)
    except NotFound as error:
        raise NotFound(error.message, remedy="call threads without an id to list them") from error

    def texts(page: Sequence[Member]) -> list[str]:
        ids = tuple(member.item for member in page)
        if ids:
            found = memory.browse(limit=len(ids), ids=ids, include_superseded=True)
            items.update({item.id: item for item in mark_outdated(found, memory.store)})
        return [items[member].text if member in items else "" for member in ids]

    members, left_out = newest_page(
        call, thread.members, texts, default_limit=_DEFAULT_LIMITS["members"]
    )
    quotes = [Quote(f"{thread.id} | {thread.lifecycle}, {thread.state}", thread.headline)]
    quotes += [quote_item(items[member.item]) for member in members if member.item in items]
    entries = [_thread_json(thread, members, items)]
    content = {"threads": entries, "more": False, "left_out": left_out}
    return Reply(fence_quotes(quotes, "thread") + older_hint(call, len(members), left_out), content)


def _thread_json(
    thread: Thread, members: Sequence[Member], items: dict[str, Item] | None = None
) -> Json:
    """Return a thread as JSON with these members and its last events."""
    last = thread.events[-max(len(members), 1) :]
    shown = thread._replace(members=tuple(members), events=last)
    return thread_json(shown, items or {}) | {"memories": len(thread.members)}


_SOURCE_SNIPPET_CHARS = 200  # characters of a source memory of an insight, for a model


def insights(call: Call) -> Reply:
    tree = call.memory.insights()
    if "id" in call.arguments:
        insight_id = get_visible(call.memory, call.arguments["id"]).id
        tree = [node for node in _breadth_first(tree) if node.insight.id == insight_id][:1]
        if not tree:
            raise NotFound(
                f"{insight_id} is not an insight", remedy="call insights without an id to list them"
            )
    offset = call.arguments.get("offset", 0)
    tree = _skip_branches(tree, offset)
    shown = tree if call.for_program else [_with_snippets(node) for node in tree]
    nodes = list(_breadth_first(shown))
    count = count_fitting(call, (text_cost(call, *_branch_texts(node)) for node in nodes))
    kept = _take_branches(shown, count)
    left_out = len(nodes) - count
    text = fence_quotes(list(_branch_quotes(kept)), "insights") or "There are no insights yet."
    if left_out:
        text += f"\n{left_out} lower ones not shown; get them with offset {offset + count}."
    return Reply(text, {"insights": [insight_json(node) for node in kept], "left_out": left_out})


def _breadth_first(tree: Sequence[InsightNode]) -> Iterator[InsightNode]:
    """Yield every branch in breadth-first order."""
    while tree:
        yield from tree
        tree = [below for node in tree for below in node.below]


def _skip_branches(level: Sequence[InsightNode], count: int) -> list[InsightNode]:
    """Return the tree without its first ``count`` branches in breadth-first order."""
    below = [under for node in level[:count] for under in node.below]
    rest = max(0, count - len(level))
    return _skip_branches(below, rest) if rest and below else [*level[count:], *below]


def _take_branches(level: Sequence[InsightNode], count: int) -> list[InsightNode]:
    """Return the first ``count`` branches in breadth-first order, as a tree."""
    here = level[:count]
    if not here:
        return []
    below = _take_branches([under for node in here for under in node.below], count - len(here))
    made, at = [], 0
    for node in here:
        made.append(node._replace(below=tuple(below[at : at + len(node.below)])))
        at += len(node.below)
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
                source._replace(text=truncate(source.text, _SOURCE_SNIPPET_CHARS))
                for source in point.sources
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
_NOTHING_TO_MERGE = (
    "Nothing to consolidate: no memory repeats another, and no group of them is old and large "
    "enough."
)
_UNDO_VERBS = {
    "stored": "Forgot",
    "imported": "Forgot",
    "restored": "Forgot",
    "ended": "Restored",
    "revised": "Restored the previous revision of",
    "status": "Restored the previous status of",
    "linked": "Removed the link of",
    "unlinked": "Added the link again of",
}


def consolidate(call: Call) -> Reply:
    token, limits = call.arguments.get("token"), tidy_limits(call)
    if token is None:
        report = call.memory.maintain(*_JOBS, preview=True, **limits)
        steps = [(step.job.name, step.proposal) for step in report.plan.steps]
        summary = f"Nothing changed yet. To apply this, call again with token: {report.plan.token}"
    else:
        report = call.memory.maintain(*_JOBS, token=token, progress=call.progress, **limits)
        steps = [(done.job, done.proposal) for done in report.done]
        summary = f"Done. To revert it, call undo with id {report.run}."
    if not steps:
        summary = "Nothing was done." if report.reasons() else _NOTHING_TO_MERGE
        summary = nothing_in_reach(call, "consolidate") or summary
    proposals: list[Json] = [
        {"job": job, "why": proposal.why, "leaves": list(proposal.leaving), "text": proposal.text}
        for job, proposal in steps
    ]
    count = count_fitting(
        call, (text_cost(call, entry["why"], entry["text"] or "") for entry in proposals)
    )
    lines = [summary]
    if count < len(proposals):
        lines.append(f"{len(proposals) - count} of {len(proposals)} proposals not shown.")
    lines += [in_tool_words(one_line(reason)) for reason in report.reasons()]
    shown = proposals[:count]
    quotes = [
        Quote(f"{entry['job']} | {' '.join(entry['leaves'])}", entry["why"]) for entry in shown
    ]
    content = _consolidate_content(report, shown, preview=token is None)
    content["left_out"] = len(proposals) - count
    return Reply("\n".join([*lines, fence_quotes(quotes, "proposals")]).strip(), content)


def _consolidate_content(report: Report, proposals: list[Json], *, preview: bool) -> Json:
    return {
        "done": not preview and bool(proposals),
        "token": report.plan.token if preview and proposals else None,
        "run": report.run,
        "proposals": proposals,
        "left": [in_tool_words(one_line(reason)) for reason in report.reasons()],
    }


def undo(call: Call) -> Reply:
    item_id, preview = call.arguments.get("id"), call.arguments.get("preview", False)
    if item_id is not None and item_id.startswith(_RUN_PREFIX):
        preview_result = call.memory.undo_run(item_id, preview=True)
        _refuse_revoked(call, [judged_id for judged_id, _ in preview_result.judged])
        run = preview_result if preview else call.memory.undo_run(item_id)
        doing = f"restore {len(run.restored)}, remove {len(run.ended)}"
        counts = f"restored {len(run.restored)}, removed {len(run.ended)}"
        text = f"Would undo {run.run}: {doing}." if preview else f"Undid {run.run}: {counts}."
        return _undo_reply(
            run.run, doing, text, restored=run.restored, taken_back=run.ended, preview=preview
        )
    if item_id is not None:
        item_id = get_visible(call.memory, item_id).id
    done = call.memory.undo(item_id, preview=True)
    if done.change.kind == "status":
        _refuse_revoked(call, [done.item])
    if not preview:
        done = call.memory.undo(item_id)
    did = _UNDO_VERBS.get(done.change.kind, "Undid the last change of")
    text = f"Would {done.doing}: {done.item}" if preview else f"{did} {done.item}"
    return _undo_reply(done.item, done.doing, text, preview=preview)


def _refuse_revoked(call: Call, ids: list[str]) -> None:
    """Refuse to restore revoked memories: no agent may undo a revocation."""
    for item in call.memory.store.items.get(ids).values():
        if item.status == "quarantined":
            raise Refused(
                f"{item.id} was revoked; a tool cannot restore it",
                remedy="ask the user to run: bethink undo",
            )


def _undo_reply(
    item_id: str,
    doing: str,
    text: str,
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
    return Reply(text, content)
