"""Whom and what a text speaks of, and of which kind a text is."""

from __future__ import annotations

import time

from bethink.core.words import fold
from bethink.ingest.entity_extraction import (
    MAX_ENTITIES,
    entity_key,
    extract_mentions,
    parse_entity,
)
from bethink.ingest.record_builder import classify_kind
from bethink.model import Draft, Entity
from bethink.models.name_model import name_model
from naughty import NAUGHTY
from rows import each_row


def found(text: str, **about: object) -> list[str]:
    return [
        mention.entity.id for mention in extract_mentions(Draft(text, **about), (), name_model.find)
    ]


@each_row(
    ("text", "ids"),
    [
        ("Maria prefers short pull requests", ["person:maria"]),
        ("Yesterday Maria Lopez and Dr. Chen met", ["person:maria lopez", "person:chen"]),
        ("We told Zbigniew to wait", ["person:zbigniew"]),
        ("The plan of Xanthippe said nothing", ["person:xanthippe"]),
        ("Alice's laptop broke", ["person:alice"]),
        ("Ask @bob about #release", ["person:bob", "topic:release"]),
        ("Write to ana.b@example.com", ["person:ana.b@example.com"]),
        ("we moved to react@18.2.0 today", []),
        ("Customer Nordwind asked for a discount", ["company:nordwind"]),
        ("The project Falcon is late", ["project:falcon"]),
        ("We moved to New York on Monday", ["place:new york"]),
        ("Logs are shipped to Loki", ["tool:loki"]),
        ("NASA and the API", ["company:nasa"]),
        ("see ABC-123 and #456", ["ticket:abc-123", "ticket:#456"]),
        ("UTF-8, ISO-8601 and SHA-256", []),
        ("Docs at https://www.example.com/a?b and http://127.0.0.1:80/x", ["host:example.com"]),
        ("api.example.com answers", ["host:api.example.com"]),
        ("Flags live in src/flags/registry.py.", ["file:src/flags/registry.py"]),
        ("Edit ~/.config/app.toml or ./run.sh", ["file:~/.config/app.toml", "file:./run.sh"]),
        ("README.md and Makefile", ["file:readme.md"]),
        ("and/or, CI/CD, 24/7, client/server", []),
        ("parse_config raises ConfigError", ["identifier:parse_config", "class:configerror"]),
        ("call parse_config() twice", ["function:parse_config"]),
        ("parseConfig and os.path.join", ["identifier:parseconfig", "identifier:os.path.join"]),
        ("the option(s) of function(s)", []),
        ("__init__ and MAX_SIZE", ["identifier:__init__", "identifier:max_size"]),
        ("PostgreSQL, GitHub and iPhone", ["tool:postgresql", "tool:github", "tool:iphone"]),
        ("Python 3.11 and apsw 3.54.1", ["tool:python", "tool:apsw"]),
        ("Node.js loads index.js", ["tool:node.js", "file:index.js"]),
        ("run `make` first", ["identifier:make"]),
        ("the APIs and URLs of SLAs", ["tool:slas"]),
        (
            (
                "- 2026-11-19: Ben's running log entry 1 about the marathon in Oslo\n"
                "- 2026-11-19: Ben's running log entry 4 about the marathon in Oslo"
            ),
            ["person:ben", "place:oslo"],
        ),
        ("Decision: Use Redis for caching", ["tool:redis"]),
        ("User: Hello there", []),
        ("Never do this. Always do that.", []),
        ("I'm on call in May", []),
        ("Yes, I’m late, I’ve lost the key and BTW, We’re closed", []),
        ("Lately I've seen Kate I’m told", ["person:kate"]),
        ("We met O'Brien and D’Angelo", ["person:o'brien", "person:d’angelo"]),
        ("Der Kunde möchte die Rechnungen auf Deutsch", []),
        ("支払いサービスは東京で動く", ["place:東京"]),
        ("HOW TO BUILD A THING", []),
        ("", []),
    ],
)
def test_entities_of_a_text(text, ids):
    """By their looks and by the model of names."""
    assert found(text) == ids


def test_what_is_given_comes_first_and_speakers_count():
    """Given with or without a kind; a role is nobody."""
    assert found("hello", entities=("tool:Redis", "Some Thing"), speaker="Ana Lee") == [
        "tool:redis",
        "other:some thing",
        "person:ana lee",
    ]
    assert found("hello", speaker="assistant") == []


@each_row(
    ("text", "kind", "name"),
    [
        ("person:Ana Lee", "person", "Ana Lee"),
        ("Ana Lee", "other", "Ana Lee"),
        ("file:src/a.py", "file", "src/a.py"),
        ("http://x", "other", "http://x"),
        ("person:", "other", "person:"),
        ("Person: Ana", "person", "Ana"),
    ],
)
def test_an_entity_can_be_given_with_its_kind(text, kind, name):
    """A colon only counts after a known kind."""
    assert parse_entity(text)[:2] == (name, kind)


def test_entities_met_before_are_known_again():
    """In small letters only where no ordinary word is; never inside a word or a longer name."""
    met = [
        Entity("person:ana", "person", "Ana"),
        Entity("place:new york", "other", "New York"),
        Entity("tool:redis", "tool", "Redis", aliases=("redis-cache",)),
        Entity("identifier:uv", "identifier", "uvx"),
        Entity("person:mark", "person", "Mark"),
        Entity("other:york", "other", "York"),
    ]

    ids = [
        [m.entity.id for m in extract_mentions(Draft(text), met, name_model.find)]
        for text in (
            "ana said banana",
            "the redis box",
            "Redis and uvx",
            "a banana",
            "the redis-cache",
            "mark the date",
            "New York is loud",
            "We saw York",
        )
    ]

    assert ids == [
        ["person:ana"],
        ["tool:redis"],
        ["tool:redis", "identifier:uv"],
        [],
        ["tool:redis"],
        [],
        ["place:new york"],
        ["other:york"],
    ]


@each_row(
    ("text", "ids"),
    [
        ("Wow Jon, well done", ["person:jon"]),
        ("Woah Jon, well done", ["person:jon"]),
        ("Wow, looking good! Congrats, bye. Yeah, see you", []),
        ("We did some Yoga and Economics in Spanish at Christmas", []),
        ("Zbynek keeps the Italian recipe", ["person:zbynek"]),
        ("Starting a new thing", []),
        ("Bridgit: I am late", ["person:bridgit"]),
        ("Note: I am late", []),
        ("We read The Lord of the Rings and 'Friends'", ["project:the lord of the rings"]),
        ('We watched "Friends" and "Yes"', []),
        ("Harris & Sons sent a bill", ["company:harris & sons"]),
        ("They run a 5K in 3D", []),
        ("GOOD MORNING to the NAVY", []),
        ("Heute kommt der Bäcker mit dem Brot", []),
        ("Wiebke hat den Schlüssel von Gesa Petersen", ["person:wiebke", "person:gesa petersen"]),
        ("see store.sql.find_all", ["identifier:store.sql.find_all"]),
    ],
)
def test_a_word_that_is_ordinary_in_lower_case_is_no_name(text, ids):
    """Where its capital tells nothing; another word is one where the sentence speaks of it so."""
    jon = Entity("person:jon", "person", "Jon")

    assert [
        mention.entity.id for mention in extract_mentions(Draft(text), [jon], name_model.find)
    ] == ids


def test_there_are_at_most_twelve():
    """However many a text names."""
    text = " and ".join(f"TICK-{i}" for i in range(50))

    assert len(found(text)) == MAX_ENTITIES


@each_row("text", ["Ana Torres " * 1_000, "东京" * 2_000, f"{'Ab' * 500} 1.2.3 is out"])
def test_no_name_is_as_long_as_a_text(text):
    """A text of nothing but names is none itself: databases index names."""
    assert all(len(entity) < 200 for entity in found(text))


@each_row("text", ["Ask \u202eMaria\u202c about it", "Ask Mar\u200bia about it"])
def test_a_name_has_no_hidden_characters(text):
    """What looks like one name is one entity."""
    assert found(text) == ["person:maria"]


def test_keys_make_spellings_agree():
    """Case and spaces do not count."""
    assert entity_key(" Ana  LEE ") == entity_key("ana lee") == "ana lee"
    assert entity_key("``") == "``"


@each_row("text", [*NAUGHTY, "A " * 30_000, "a_b " * 15_000, "Ab/" * 20_000])
def test_any_text_is_read_in_time(text):
    """Linear, and never an error."""
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        return
    began = time.process_time()
    extract_mentions(Draft(text), (), name_model.find)

    assert time.process_time() - began < 20


@each_row(
    ("text", "kind"),
    [
        ("We decided to use PostgreSQL", "decision"),
        ("The team agreed to ship on Tuesdays", "decision"),
        ("We chose Redis over Memcached", "decision"),
        ("Maria prefers short pull requests", "preference"),
        ("I like green tea", "preference"),
        ("Her favourite colour is blue", "preference"),
        ("Never run migrations during the export", "caveat"),
        ("Do not restart the worker by hand", "caveat"),
        ("Careful with the vault path", "caveat"),
        ("Passwords must not be logged", "caveat"),
        ("Where is the deploy key?", "question"),
        ("TODO: renew the certificate", "task"),
        ("Remember to call Ana", "task"),
        ("Our goal is fewer incidents", "goal"),
        ("We want to drop Python 3.10", "goal"),
        ("Turns out the cache was full", "learning"),
        ("The root cause was a missing index", "learning"),
        ("Yesterday the export crashed", "event"),
        ("The release was deployed two days ago", "event"),
        ("Always answer in German", "directive"),
        ("From now on the reports must always name their source", "directive"),
        ("How to restore a backup: stop the worker, then copy the file", "playbook"),
        ("The runbook says to drain the queue first", "playbook"),
        ("The flaky upload test was fixed by a folder for each worker", "resolution"),
        ("Workaround: restart the agent once a day", "resolution"),
        ("I am a nurse and I live in Leeds", "profile"),
        ("Her uncle grew up in Porto", "profile"),
        ("Ben usually reviews before lunch", "behavior"),
        ("The command drains the queue", "tool"),
        ("The key lives in vault B", "fact"),
        ("Logs are kept for 30 days", "fact"),
        ("Blue whales, big ones", "note"),
        ("支払いサービス", "note"),
    ],
)
def test_a_kind_by_the_words(text, kind):
    """The first rule that fits decides."""
    assert classify_kind(fold(text), "item") == kind


def test_levels_have_kinds_of_their_own():
    """An episode is not judged by its words."""
    assert classify_kind("we decided", "raw") == "episode"
    assert classify_kind("we decided", "insight") == "insight"
