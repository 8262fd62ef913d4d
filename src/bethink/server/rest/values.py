"""Handlers of values under namespaces: LangGraph's store for programs in other languages."""

from __future__ import annotations

from typing import Any

from bethink.core.json_values import Json, iso
from bethink.integrations.exact_json import Redaction
from bethink.integrations.values import Found, Put, Search, ValueStore
from bethink.server.rest.operations import GET_VALUE, LIST_NAMESPACES, PUT_VALUE, SEARCH_VALUES
from bethink.server.tools.answers import count_fitting, text_cost
from bethink.server.tools.tool import Call, Reply, validate_arguments


def find_values(call: Call) -> Reply:
    gets = [validate_arguments(one, GET_VALUE) for one in call.arguments.get("get", ())]
    store, used = ValueStore(call.memory), call.may_track
    found = [store.get(tuple(one["namespace"]), one["key"], refresh_ttl=used) for one in gets]
    shown = [one for one in found if one is not None]
    content = {
        "get": [None if one is None else _value_json(one) for one in found],
        "search": [_search(call, one, shown) for one in call.arguments.get("search", ())],
        "namespaces": [_list(store, one) for one in call.arguments.get("namespaces", ())],
    }
    return Reply("", content)


def put_values(call: Call) -> Reply:
    redacted: list[Redaction] = []
    given = [validate_arguments(one, PUT_VALUE) for one in call.arguments["values"]]
    ValueStore(call.memory, on_redaction=redacted.append).write([_put(one) for one in given])
    removed = [{"place": one.where, "kinds": list(one.kinds)} for one in redacted]
    return Reply("", {"redacted": removed})


def _search(call: Call, given: Json, shown: list[Found]) -> Json:
    """Search, and return what fits into the answer in addition to what it has already."""
    asked = validate_arguments(given, SEARCH_VALUES)
    profile, abstain = asked.pop("profile", None), asked.pop("abstain", False)
    prefix = tuple(asked.pop("namespace"))
    store = ValueStore(call.memory, profile=profile, abstain=abstain)
    found = store.search(Search(prefix, **asked, refresh_ttl=call.may_track))
    costs = [text_cost(call, one.document.body) for one in (*shown, *found)]
    fitting = found[: max(0, count_fitting(call, costs) - len(shown))]
    shown += fitting
    return {"values": [_value_json(one) for one in fitting], "more": len(fitting) < len(found)}


def _list(store: ValueStore, given: Json) -> list[list[str]]:
    asked = validate_arguments(given, LIST_NAMESPACES)
    matches = [(name, asked[name]) for name in ("prefix", "suffix") if name in asked]
    found, first = store.list_namespaces(matches, asked.get("max_depth")), asked.get("offset", 0)
    return [list(one) for one in found[first : first + asked.get("limit", 100)]]


def _put(given: Json) -> Put:
    index: Any = given.get("texts") if given.get("indexed", True) else False
    place = tuple(given["namespace"]), given["key"]
    return Put(*place, given.get("value"), index, given.get("ttl_minutes"))


def _value_json(found: Found) -> Json:
    made = found.fields
    made |= {name: iso(made[name]) for name in ("created_at", "updated_at")}
    made |= {"namespace": [*made["namespace"]], "score": found.score, "id": found.document.item.id}
    answer = found.answer
    known = {} if answer is None else {"status": answer.status, "confidence": answer.confidence}
    return made | known
