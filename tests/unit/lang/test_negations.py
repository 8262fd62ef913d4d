"""A denial is another statement, in every language with a word list."""

from __future__ import annotations

from bethink import Memory
from bethink.lang.words import negations
from rows import each_row

# A statement, the words that make it a denial (what they replace, and by what), a question.
STATEMENTS = {
    "en": (
        ("The nightly backup of the billing database in the Frankfurt region is encrypted before it"
        " is copied to the second site"),
        ("is encrypted", "is not encrypted"),
        "nightly backup of the billing database",
    ),
    "en contracted": (
        ("The nightly backup of the billing database in the Frankfurt region does get encrypted"
        " before it is copied to the second site"),
        ("does get", "doesn't get"),
        "nightly backup of the billing database",
    ),
    "de": (
        ("Das nächtliche Backup der Datenbank für Rechnungen in der Region Frankfurt wird vor dem"
        " Kopieren auf den zweiten Standort immer verschlüsselt"),
        ("immer verschlüsselt", "niemals verschlüsselt"),
        "nächtliches Backup der Datenbank für Rechnungen",
    ),
    "es": (
        ("La copia nocturna de la base de facturas en la región de Frankfurt se cifra antes de"
        " enviarla al segundo centro de datos principal"),
        ("se cifra", "no se cifra"),
        "copia nocturna de la base de facturas",
    ),
    "fr": (
        ("La sauvegarde nocturne de la base de factures dans la région de Francfort est chiffrée"
        " avant la copie vers le second site"),
        ("est chiffrée", "est jamais chiffrée"),
        "sauvegarde nocturne de la base de factures",
    ),
    "it": (
        ("Il backup notturno della base dati fatture nella regione di Francoforte viene cifrato"
        " prima della copia sul secondo sito"),
        ("viene cifrato", "non viene cifrato"),
        "backup notturno della base dati fatture",
    ),
    "nl": (
        ("De nachtelijke backup van de facturatie database in de regio Frankfurt wordt voor het"
        " kopieren naar de tweede locatie versleuteld"),
        ("versleuteld", "niet versleuteld"),
        "nachtelijke backup van de facturatie database",
    ),
    "pt": (
        ("O backup noturno da base de faturas na regiao de Frankfurt e cifrado antes da copia para"
        " o segundo local principal"),
        ("e cifrado", "não e cifrado"),
        "backup noturno da base de faturas",
    ),
    "pl": (
        ("Nocna kopia zapasowa bazy faktur w regionie Frankfurt jest szyfrowana przed skopiowaniem"
        " do drugiej lokalizacji"),
        ("jest szyfrowana", "nie jest szyfrowana"),
        "nocna kopia zapasowa bazy faktur",
    ),
    "ru": (
        ("Ночная копия базы счетов в регионе Франкфурт шифруется перед отправкой на вторую площадку"
        " компании в Берлине"),
        ("шифруется", "не шифруется"),
        "ночная копия базы счетов",
    ),
    "zh": (
        "法兰克福地区的账单数据库每天夜里的备份在复制到第二个数据中心之前会由备份服务器自动加密并且检查完整性",
        ("会由", "不会由"),
        "账单数据库的备份",
    ),
    "ja": (
        "フランクフルト地域の請求データベースの夜間バックアップは第二拠点に複製する前に必ず自動的に暗号化される",
        ("暗号化される", "暗号化されない"),
        "請求データベースの夜間バックアップ",
    ),
}  # fmt: skip


@each_row("language", STATEMENTS)
def test_a_denial_is_found_beside_the_statement(language):
    """A recall does not collapse a denial into the statement it denies."""
    said, change, question = STATEMENTS[language]
    with Memory.open(":memory:") as memory:
        ids = {memory.remember(text).id for text in (said, said.replace(*change))}

        found = memory.recall(question)

    assert len(ids) == 2
    assert {hit.item.id for hit in found.hits} == ids


@each_row("language", STATEMENTS)
def test_a_denial_is_stored_and_reported_as_similar(language):
    """A write keeps a denial and names the memory that it resembles; neither is dropped."""
    said, change, _ = STATEMENTS[language]
    with Memory.open(":memory:") as memory:
        first = memory.remember(said)
        second = memory.remember(said.replace(*change))

        kept = {item.id for item in memory.browse()}

    assert second.status == "stored"
    assert {first.id, second.id} <= kept
    assert [one.id for one in second.collisions] in ([], [first.id])


@each_row("word", ["not", "don't", "haven’t", "niet", "não", "kein", "没有"])
def test_negations_of_all_languages_are_known(word):
    """Contractions and signs within unspaced text count as well."""
    assert negations().deny(word)


@each_row("word", ["note", "nothing-box", "notte", "nichte", "有"])
def test_words_that_only_look_like_negations_are_not(word):
    assert not negations().deny(word)
