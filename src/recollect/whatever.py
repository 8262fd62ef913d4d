"""Words that ask for whatever there was, and for which kind of it, in five languages.

"What happened last week?" and "what did we decide in May?" name a time and, beside it,
nothing that a memory would have to say: their answer is what is of that time, decisions
first where decisions are asked for. Words are listed as they are compared: in small
letters, without marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

CHINESE = "chinese"
ENGLISH = "english"
PLANS = ("task", "goal")

_ANYTHING = {
    ENGLISH: """happen happens happened happening occur occurs occurred take took taken place go
        goes going went gone do does did done doing new news newest latest thing things work works
        working worked all any anything every everything some something whatever else kind sort
        change changes changed changing update updates updated say said tell tells told talk talks
        talked speak spoke spoken discuss discussed discussion discussions mention mentioned ask
        asked remember know known keep kept record recorded note notes noted memory memories entry
        entries give gave show list look see saw find found overview summary summaries summarise
        summarize recap digest highlights activity activities progress history event events
        accomplish accomplished achieve achieved finish finished complete completed make made
        anyone anybody far worth knowing important interesting since till within past ago""",
    "german": """passiert passierte passierten geschehen geschah ereignet ereignisse los war waren
        gab gibt gemacht getan neu neue neues neuigkeiten alles alle etwas irgendwas sonst sache
        sachen ding dinge erzahl erzahle zeig zeige liste nenne gib ubersicht uberblick
        zusammenfassung zusammengefasst besprochen gesprochen gesagt geredet diskutiert erwahnt
        gefragt geandert verandert anderungen anderung gearbeitet erledigt geschafft fertig
        weisst wissen erinnerst erinnerungen erinnerung notizen notiz habe hast habt sind ist sein
        worden wurde wurden wir ich du ihr uns dir mir denn so da es dazu daruber daran gerade
        zuletzt wichtiges wichtige gegangen""",
    "spanish": """paso pasado ocurrio ocurrido sucedio sucedido hicimos hice hiciste hizo hicieron
        hecho hemos he ha han hubo habia nuevo nueva nuevos nuevas novedades todo todos toda todas
        algo cosa cosas trabajamos trabaje trabajado hablamos hablado dijimos dije dijo dicho
        discutimos mencionamos cambio cambios cambiamos cambiado resumen lista listame muestra
        muestrame dime cuentame dame sabes recuerdas recuerdos notas eventos terminamos terminado
        nosotros yo tu salio""",
    "french": """passe passes passee arrive arrives produit fait faits faite avons avez ont ai
        nouveau nouveaux nouvelle nouvelles nouveautes tout toute tous toutes quelque chose choses
        travaille parle dit discute mentionne change changes changement changements modifie resume
        liste montre donne raconte sais souviens souvenirs notes evenements termine s est y t il
        nous vous je tu quels quelles quel quelle qu tombe regle""",
    CHINESE: """发生 什么 哪些 哪个 我们 你们 我 你 有 做 过 了 事情 事 干 吗 呢 的 在 是 里
        讨论 谈 说 聊 提到 改变 变化 改 变 新 总结 概述 告诉 列出 所有 一切 都
        记得 知道 些 完成 工作 出""",
}
_BY_KIND = {
    ("decision",): {
        ENGLISH: """decide decides decided deciding decision decisions choose chose chosen choice
            choices agree agreed agreement agreements settle settled conclude concluded""",
        "german": """entschieden entscheidung entscheidungen entschied entschlossen beschlossen
            beschluss beschlusse vereinbart vereinbarung vereinbarungen festgelegt gewahlt""",
        "spanish": """decidimos decidi decidio decidieron decidido decision decisiones acordamos
            acordado acuerdo acuerdos elegimos""",
        "french": "decide decidee decidees decision decisions convenu choisi accord accords",
        CHINESE: "决定 决策 选择",
    },
    ("incident", "event", "resolution", "bug"): {
        ENGLISH: """break breaks broke broken fail fails failed failing failure failures crash
            crashes crashed incident incidents outage outages problem problems issue issues bug
            bugs error errors trouble troubles wrong""",
        "german": """kaputt kaputtgegangen schief schiefgegangen schiefgelaufen ausgefallen
            ausfall ausfalle fehler fehlgeschlagen problem probleme vorfall vorfalle storung
            storungen abgesturzt""",
        "spanish": """fallo fallos fallaron rompio rompieron roto problema problemas incidente
            incidentes error errores mal caida caidas""",
        "french": """casse panne pannes incident incidents probleme problemes erreur erreurs
            bogue bogues bug bugs plante echoue mal""",
        CHINESE: "问题 故障 事故 错误 坏 失败 崩溃",
    },
    ("resolution",): {
        ENGLISH: "fix fixes fixed solve solves solved resolve resolves resolved solution solutions",
        "german": "behoben gelost losung losungen repariert korrigiert",
        "spanish": "arreglamos arreglado solucionamos solucionado corregimos corregido resolvimos",
        "french": "corrige repare resolu resolus solution solutions",
        CHINESE: "修复 解决",
    },
    ("learning",): {
        ENGLISH: "learn learns learned learnt learning learnings lesson lessons realise realised",
        "german": "gelernt lehre lehren erkenntnis erkenntnisse",
        "spanish": "aprendimos aprendido leccion lecciones",
        "french": "appris lecon lecons",
        CHINESE: "学到 学会 教训",
    },
    PLANS: {
        ENGLISH: "plan plans planned task tasks todo todos goal goals",
        "german": "geplant plan plane aufgabe aufgaben ziel ziele vorgenommen",
        "spanish": "planeamos plan planes tarea tareas objetivo objetivos",
        "french": "prevu plan plans tache taches objectif objectifs",
        CHINESE: "计划 任务 目标",
    },
}  # fmt: skip


class Sort(NamedTuple):
    """A sort of memories that a question may ask for: their kinds, and the words for it."""

    kinds: tuple[str, ...]
    words: frozenset[str]


@cache
def sorts(language: str) -> tuple[Sort, ...]:
    """The sorts that can be asked for in a language."""
    return tuple(
        Sort(kinds, frozenset(words[language].split())) for kinds, words in _BY_KIND.items()
    )


@cache
def only_asking(language: str) -> frozenset[str]:
    """The words that say nothing of what a memory would have to hold."""
    asked_for = (word for sort in sorts(language) for word in sort.words)
    return frozenset((*_ANYTHING[language].split(), *asked_for))


def only_asks_unspaced(run: str, times: Iterable[str]) -> bool:
    """Whether a stretch of Chinese holds nothing but times and words that only ask."""
    for phrase in (*times, *sorted(only_asking(CHINESE), key=len, reverse=True)):
        run = run.replace(phrase, "")
    return not run
