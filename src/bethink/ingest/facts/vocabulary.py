"""Word lists for fact extraction: verbs, prepositions, roles, units, tools.

The words, with what each list is for, are in ``lang/data/facts.toml``.
"""

from __future__ import annotations

from bethink.lang.words import (
    MONTHS,
    RECURRING_WEEKDAYS,
    WEEKDAYS,
    load_words,
    parse_mapping,
)

_DATA: dict[str, str] = load_words("facts")


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


def _groups(name: str) -> tuple[frozenset[str], ...]:
    """Read one set of words from each line."""
    return tuple(frozenset(row.split()) for row in _DATA[name].strip().splitlines())


def _mapping(name: str) -> dict[str, str]:
    return parse_mapping(_DATA[name])


EXCLUSIVE_TOOLS = _groups("exclusive_tools")
CODE_LIKE_NAMES = _words("code_like_names")
LAYERED_VERBS = _words("layered_verbs")
SINGLE_TOOL_PURPOSES = _words("single_tool_purposes")
NON_PURPOSES = _words("non_purposes")
EXCLUSIVE_TECHNOLOGIES = _groups("exclusive_technologies")
UNCERTAIN_WORDS = _words("uncertain_words")
SEVERAL_VALUE_WORDS = _words("several_value_words")
PAST_WORDS = _words("past_words")
REASON_WORDS = _words("reason_words")
CONTINUATION_WORDS = _words("continuation_words")
NEWNESS_ADVERBS = _words("newness_adverbs")
ADVERBS = NEWNESS_ADVERBS | _words("adverbs")
APPROXIMATORS = _words("approximators")
VAGUE_WORDS = _words("vague_words")
DETERMINERS = _words("determiners")
NEWNESS_ADJECTIVES = _words("newness_adjectives")
STATEMENT_LABELS = _words("statement_labels")
STATEMENT_OPENERS = _words("statement_openers")
CORRECTION_WORDS = _words("correction_words")
SINCE_PREPOSITIONS = _words("since_prepositions")
SINCE_TIMES = _words("since_times").union(WEEKDAYS, MONTHS)
PLACE_PREPOSITIONS = _words("place_prepositions")
NON_PLACES = _words("non_places")
PLACE_NOUNS = _words("place_nouns")
MANNER_WORDS = _words("manner_words")
POSSESSIVES = _words("possessives")
NON_VALUES = _words("non_values")
ADJECTIVES = _words("adjectives")
PLAIN_VALUED_NOUNS = _words("plain_valued_nouns")
ABSTRACT_NOUNS = _words("abstract_nouns")
UNIQUE_ROLES = _words("unique_roles")
DATED_NOUNS = _words("dated_nouns")
MOVE_VERBS = _words("move_verbs")
CHANGE_VALUE_VERBS = _words("change_value_verbs")
SWITCH_VERBS = _words("switch_verbs")
RENAME_VERBS = _words("rename_verbs")
REPLACE_VERBS = _words("replace_verbs")
CHANGE_VERBS = MOVE_VERBS | CHANGE_VALUE_VERBS | SWITCH_VERBS | RENAME_VERBS | REPLACE_VERBS
LOCATION_PARTICIPLES = _words("location_participles")
LOCATION_VERBS = _words("location_verbs")
RUN_VERBS = _words("run_verbs")
SETTING_PARTICIPLES = _words("setting_participles")
NAMING_PARTICIPLES = _words("naming_participles")
SCHEDULING_PARTICIPLES = _words("scheduling_participles")
TIME_VERBS = _mapping("time_verbs")
MEASURE_VERBS = _mapping("measure_verbs")
ROLE_VERBS = _mapping("role_verbs")
MANAGE_VERBS = _words("manage_verbs")
TEAM_NOUNS = _words("team_nouns")
PASSIVE_ROLE_VERBS = _mapping("passive_role_verbs")
MULTI_VALUE_VERBS = _mapping("multi_value_verbs")
STORE_VERBS = _words("store_verbs")
WORK_VERBS = _words("work_verbs")
ROUTINE_VERBS = _mapping("routine_verbs")
# "We shipped on Tuesdays" is past, "are shipped on Tuesdays" is not.
PRESENT_ROUTINE_VERBS = frozenset(
    word for word, act in ROUTINE_VERBS.items() if word == act or word.endswith("s")
)
ROUTINE_VERBS["valid"] = "valid"  # for 24 hours
GO_VERBS = _words("go_verbs")
PERIOD_WORDS = _words("period_words")
COUNT_VERBS = _mapping("count_verbs")
NON_COUNT_NOUNS = _words("non_count_nouns")
TARGET_VERBS = {
    verb: (target.split()[0], tuple(target.split()[1:]))
    for verb, target in _mapping("target_verbs").items()
}
MADE_PARTICIPLES = _words("made_participles")
MADE_PREPOSITIONS = _words("made_prepositions")
ROLE_NOUNS = UNIQUE_ROLES | _words("role_nouns")
OPEN_STATUSES = _words("open_statuses")
DONE_STATUSES = _words("done_statuses")
STATUS_TOGGLES = _groups("status_toggles")
STATUS_WORDS = OPEN_STATUSES.union(DONE_STATUSES, *STATUS_TOGGLES)
TRANSIENT_NOUNS = _words("transient_nouns")
PROBLEM_NOUNS = _words("problem_nouns")
AMBIGUOUS_STATUS_NOUNS = TRANSIENT_NOUNS | _words("ambiguous_status_nouns")
RUNTIME_NOUNS = _words("runtime_nouns")
# Alone, "may" is a verb.
TIME_WORDS = _words("time_words").union(WEEKDAYS, RECURRING_WEEKDAYS, MONTHS) - {"may"}
RECURRING_TIME_WORDS = _words("recurring_time_words") | RECURRING_WEEKDAYS
NUMBER_WORDS = _words("number_words")
UNITS = _mapping("units")
NEGATION_WORDS = _words("negation_words")
NEGATIVE_CONTRACTIONS = {
    word: tuple(parts.split()) for word, parts in _mapping("negative_contractions").items()
}
CADENCES = _words("cadences")
RELATION_PREPOSITIONS = _words("relation_prepositions")
