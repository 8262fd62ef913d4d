"""Says by rules what kind of memory a text is, where nobody said so."""

from __future__ import annotations

from recollect.model import Level

_SEARCHED = 1_000  # characters: the kind shows in the first sentences

# The first rule that fits decides: a decision may mention a preference, not the other way round.
_OPENING = {
    "caveat": "never / do not / don't / careful / beware / caution / warning / avoid / watch out",
    "task": "todo / remember to / remind me / we need to / i need to / need to / please",
    "goal": "goal / goals / our goal / objective / our aim",
    "decision": "decision / decided / agreed / chose",
    "learning": "lesson / learned / turns out / root cause / til",
    "directive": """always / from now on / make sure / whenever / you must / you should / when asked
        / answer in / reply in""",
    "playbook": "how to / steps to / steps for / procedure / runbook / playbook / checklist",
    "resolution": "fixed / resolved / solved / solution / the fix / workaround",
}
_ANYWHERE = {
    "decision": """we decided / we have decided / we chose / i decided / they decided
        / team decided / team chose / settled on / opted for / agreed to / agreed on / agreed that
        / decided to / decided on / decided against / was decided / going with
        / decision is / decision was""",
    "caveat": """must not / must never / should never / be careful / do not ever / watch out
        / careful with / pitfall / gotcha / breaks if / will break""",
    "preference": """prefer / prefers / preferred / likes / i like / we like / loves / i love
        / hates / i hate / dislikes / enjoys / favourite / favorite
        / would rather / i'd rather / fond of""",
    "task": "has to be done / have to be done / deadline / due on / due by / follow up / todo",
    "goal": "goal is / goal for / goals are / want to / aim to / plan to / plans to / hope to",
    "resolution": """fixed by / fixed it by / resolved by / solved by / the fix was / the fix is
        / solution was / solution is / workaround was / workaround is / went away after""",
    "directive": "must always / should always / from now on / always use / always ask / always run",
    "playbook": "runbook / playbook / step by step / in these steps / the steps are",
    "profile": """my name is / i am a / i am an / i'm a / i'm an / i work as / works as a
        / works as an / i live in / i was born / was born in / years old / grew up in / married to
        / my birthday / my wife / my husband / my job""",
    "learning": """learned / learnt / lesson / turns out / turned out / root cause / realised
        / realized / discovered / found out / found that / the cause was / the culprit was""",
    "event": """yesterday / last week / last month / last night / last year / ago / this morning
        / today / happened / crashed / failed / deployed / released / met / went / visited / moved
        / launched / broke / joined / signed / was added / was removed / were added / doubled""",
    "behavior": """usually / tends to / tend to / in the habit / habit of / every morning
        / every evening / most mornings / most days""",
    "tool": "the tool / this tool / tool call / the cli / the command / command line",
    "fact": """is / are / was / were / has / have / use / uses / run / runs / lives / works / need
        / needs / means / contains / supports / stores / requires / returns / writes / takes / costs
        / asked / leaves / signs / drops / raises / sends / reads / pins""",
}


def _phrases(rules: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (kind, f" {' '.join(phrase.split())} ")
        for kind, phrases in rules.items()
        for phrase in phrases.split("/")
    ]


_OPENING_PHRASES = _phrases(_OPENING)
# By the first word of each phrase, so that a text is only searched for what it may hold.
_BY_WORD: dict[str, list[tuple[int, str, str]]] = {}
for _place, (_kind, _phrase) in enumerate(_phrases(_ANYWHERE)):
    _BY_WORD.setdefault(_phrase.split()[0], []).append((_place, _kind, _phrase))


def kind_of(folded: str, level: Level) -> str:
    """A kind by the words of a folded text; ``note`` where no rule fits."""
    if level != "item":
        return "episode" if level == "raw" else "insight"
    if folded.endswith("?"):
        return "question"
    padded = f" {folded[:_SEARCHED].replace('’', chr(39))} "
    for kind, phrase in _OPENING_PHRASES:
        if padded.startswith(phrase):
            return kind
    fitting = [
        (place, kind)
        for word in _BY_WORD.keys() & padded.split()
        for place, kind, phrase in _BY_WORD[word]
        if phrase in padded
    ]
    return min(fitting)[1] if fitting else "note"
