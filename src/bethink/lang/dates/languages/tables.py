"""Words for times in French, German, Spanish and Chinese.

Chinese is read by patterns, since it has no spaces between words.
"""

from __future__ import annotations

import re
from functools import cache

from bethink.lang.dates.languages.language import Language, TranslatedToken, fold, parse_word_list
from bethink.lang.dates.tokens import MONTHS, WEEKDAYS

_FRENCH_WORDS = """
lundi = monday
mardi = tuesday
mercredi = wednesday
jeudi = thursday
vendredi = friday
samedi = saturday
dimanche = sunday
janvier = january
février = february
mars = march
avril = april
mai = may
juin = june
juillet = july
août = august
septembre = september
octobre = october
novembre = november
décembre = december
aujourd'hui | aujourd’hui = today
hier = yesterday
demain = tomorrow
avant-hier = day before yesterday
après-demain = day after tomorrow
ce matin = this morning
cet après-midi = this afternoon
ce soir | cette nuit = tonight
la nuit dernière = last night
matin | matinée = morning
après-midi = afternoon
soir | soirée = evening
nuit = night
dernier | dernière | derniers | dernières | passé | passée = last~
prochain | prochaine | prochains | prochaines = next~
ce | cet | cette = this
ces = the
ces derniers jours | ces derniers temps | récemment | dernièrement = recently
minute | minutes = minutes
heure | heures = hours
jour | jours | journée = day
semaine | semaines = week
week-end | weekend | week-ends = weekend
pendant le week-end | durant le week-end = over the weekend
quinzaine = fortnight
mois = month
trimestre | trimestres = quarter
an | ans | année | années = year
décennie | décennies = decade
il y a = ago<
depuis = since
à partir de | à partir du | dès = since
après = after
avant = before
jusqu'à | jusqu’à | jusqu'au | jusqu’au = until
pendant | durant = during
entre = between
et = and
de | d = of
du = from the
des = of the
à = to
au = to the
en | dans = in
le | la | les | l = the
un | une = one
deux = two
trois = three
quatre = four
cinq = five
six = six
sept = seven
huit = eight
neuf = nine
dix = ten
onze = eleven
douze = twelve
quinze = fifteen
vingt = twenty
quelques = few
plusieurs = several
environ | presque = about
début | au début de | au début du = beginning of
mi- = mid -
mi = mid
milieu | au milieu de | au milieu du = middle of
fin | à la fin de | à la fin du = end of
premier | première = first
er = st
deuxième | second | seconde = second
troisième = third
quatrième = fourth
moitié = half
printemps = spring
été = summer
a été | ont été | avait été | avons été | ai été | avez été | avoir été | ayant été = _
automne = autumn
hiver = winter
noël = christmas
réveillon = new year eve
nouvel an | jour de l'an = new year
pâques = easter
h = oclock
midi = noon
minuit = midnight
q = q
"""

FRENCH = Language(
    "french",
    parse_word_list(_FRENCH_WORDS),
    common="""le la les l un une des du de d et ou est sont que qu qui quoi quand où comment
    pourquoi nous vous je tu il elle on ils elles avons avez ont ai a dans pour avec sur par ne
    pas ce cet cette ces au aux en se sa son ses été était notre nos votre vos leur leurs mon ma
    mes y s t n c m j quel quelle quels quelles combien mais donc sans sous entre plus""",
    speaking="l d a fait dit décidé passé parlé",
    unsure="""mars mai hier an ans ce h d l a de en et fin mi six sept dix second seconde avant
    entre minute minutes passé week-end weekend q nuit er au la le les""",
)

_GERMAN_WEEKDAYS = {
    "montag": "monday", "dienstag": "tuesday", "mittwoch": "wednesday", "donnerstag": "thursday",
    "freitag": "friday", "samstag": "saturday", "sonntag": "sunday",
}  # fmt: skip
_GERMAN_MONTHS = {
    "januar": "january", "februar": "february", "märz": "march", "april": "april", "mai": "may",
    "juni": "june", "juli": "july", "august": "august", "september": "september",
    "oktober": "october", "november": "november", "dezember": "december",
}  # fmt: skip
_GERMAN_DAY_PARTS = {
    "morgen": "morning", "vormittag": "morning", "mittag": "lunchtime",
    "nachmittag": "afternoon", "abend": "evening", "nacht": "night",
}  # fmt: skip
_GERMAN_WORDS = """
jänner = january
maerz = march
sonnabend = saturday
montags | dienstags | mittwochs | donnerstags | freitags | samstags | sonntags = _
heute = today
gestern = yesterday
morgen = tomorrow
vorgestern = day before yesterday
übermorgen | uebermorgen = day after tomorrow
guten morgen | jeden morgen | guten abend | jeden abend = _
heute nacht = tonight
heute abend | heut abend = today evening
heute morgen | heute früh = today morning
gestern morgen | gestern früh = yesterday morning
morgen früh = tomorrow morning
am morgen | am vormittag = in the morning
früh = morning
letzte | letzten | letzter | letztes | letztem = last
vergangene | vergangenen | vergangener | vergangenes = last
vorige | vorigen | voriger | voriges = last
nächste | nächsten | nächster | nächstes | naechste | naechsten | kommende | kommenden = next
diese | diesen | dieser | dieses | diesem = this
vorletzte woche | vorletzter woche = week before last
vorletzten monat | vorletzter monat = month before last
vorletztes jahr = year before last
übernächste woche = week after next
minute | minuten = minutes
stunde | stunden = hours
tag | tage | tagen | tages = day
woche | wochen = week
wochenende | wochenenden = weekend
am wochenende | übers wochenende = over the weekend
monat | monate | monaten | monats = month
quartal | quartals | quartale = quarter
jahr | jahre | jahren | jahres = year
jahrzehnt | jahrzehnte | jahrzehnten = decade
vor = ago<before
vor dem | vor der | vor den = before the
vor kurzem | kürzlich | neulich | in letzter zeit | letztens | kuerzlich = recently
seit = since
ab = since
nach = after
bis = until
bis zum = until the
während = during
zwischen = between
und = and
von = from
vom = from the
bis = until
in = in
im = in
am = on
um = at
gegen = around
der | die | das | den | dem | des = the
ein | eine | einen | einem | einer | eines = one
zwei = two
drei = three
vier = four
fünf = five
sechs = six
sieben = seven
acht = eight
neun = nine
zehn = ten
elf = eleven
zwölf = twelve
ein paar | einigen | einige | wenigen = few
mehreren = several
etwa | ungefähr | rund | fast = about
anfang = beginning of
mitte = middle of
ende = end of
erste | ersten | erster | erstes = first
zweite | zweiten | zweiter | zweites = second
dritte | dritten | drittes = third
vierte | vierten | viertes = fourth
hälfte = half
vor einem halben jahr = half a year ago
frühling | frühjahr = spring
sommer = summer
herbst = autumn
winter = winter
weihnachten = christmas
heiligabend = christmas eve
silvester = new year eve
neujahr = new year
ostern = easter
kw | kalenderwoche = week
uhr = oclock
mittags = noon
mitternacht = midnight
q = q
"""
_GERMAN_COMPOUNDS = {
    f"{day}{part}": f"{name} {english}"
    for day, name in _GERMAN_WEEKDAYS.items()
    for part, english in (_GERMAN_DAY_PARTS | {"früh": "morning"}).items()
}
_GERMAN_MONTH_WEEKS = {f"{month}woche": f"week of {name}" for month, name in _GERMAN_MONTHS.items()}
_GERMAN_PLAIN_PARTS = {part: name for part, name in _GERMAN_DAY_PARTS.items() if part != "morgen"}
_GERMAN_FOLDED = {
    fold(word): english
    for lists in (
        _GERMAN_WEEKDAYS,
        _GERMAN_MONTHS,
        _GERMAN_PLAIN_PARTS,
        _GERMAN_COMPOUNDS,
        _GERMAN_MONTH_WEEKS,
    )
    for word, english in lists.items()
}

GERMAN = Language(
    "german",
    _GERMAN_FOLDED | parse_word_list(_GERMAN_WORDS),
    common="""der die das den dem des und oder ist sind war waren wir ich du er sie es ihr
    uns mir mich haben habe hat hatte hatten was wann wer wen wem wie wo warum welche welcher
    welches welchen welchem nicht kein keine keinen ein eine einen einem einer eines im in am an
    zum zur zu mit auf für von vom bei nach seit vor über aus als auch noch nur aber weil dass
    wenn wird werden wurde wurden worden gab gibt unser unsere unseren unserem unserer mein meine
    meinen dein deine sein seine ihre ihren sich man so da durch gegen ohne zwischen""",
    speaking="geschah passiert entschieden gemacht",
    unsure="mai morgen abend winter an am in so die ab um und rund fast q",
)

_SPANISH_WORDS = """
lunes = monday
martes = tuesday
miércoles = wednesday
jueves = thursday
viernes = friday
sábado = saturday
domingo = sunday
enero = january
febrero = february
marzo = march
abril = april
mayo = may
junio = june
julio = july
agosto = august
septiembre | setiembre = september
octubre = october
noviembre = november
diciembre = december
hoy = today
ayer = yesterday
mañana = tomorrow
anteayer | antier = day before yesterday
pasado mañana = day after tomorrow
anoche = last night
esta noche = tonight
esta mañana = this morning
esta tarde = this afternoon
por la mañana | en la mañana = morning
por la tarde | en la tarde = afternoon
por la noche | en la noche = night
de la mañana = am
de la tarde | de la noche = pm
pasado | pasada | pasados | pasadas | último | última | últimos | últimas = last~
próximo | próxima | próximos | próximas = next~
que viene | que vienen = next~
este | esta | estos | estas = this
minuto | minutos = minutes
hora | horas = hours
día | días = day
semana | semanas = week
fin de semana | fines de semana = weekend
durante el fin de semana = over the weekend
quincena | quincenas = fortnight
mes | meses = month
trimestre | trimestres = quarter
año | años = year
década | décadas = decade
hace = ago<
hace poco | recientemente | últimamente | estos días = recently
desde = since
a partir de | a partir del = since
después de | después del | tras = after
antes de | antes del = before
hasta = until
durante = during
entre = between
y = and
de = of
del = of the
desde el = since the
a = to
al = to the
a las | a la = at
en = in
el | la | los | las = the
un | una | uno = one
dos = two
tres = three
cuatro = four
cinco = five
seis = six
siete = seven
ocho = eight
nueve = nine
diez = ten
once = eleven
doce = twelve
quince = fifteen
veinte = twenty
unos | unas | algunos | algunas | pocos | pocas = few
varios | varias = several
un par de | un par = couple
principios de | principio de | principios del | comienzos de | inicios de = beginning of
a principios de | a comienzos de | a inicios de | a principios del = beginning of
mediados de | a mediados de = middle of
finales de | a finales de | a fines de = end of
a finales del | a fines del | al final del | finales del = end of the
primer | primera | primero = first
segundo | segunda = second
tercer | tercera = third
cuarto trimestre = fourth quarter
mitad = half
primavera = spring
verano = summer
otoño = autumn
invierno = winter
navidad | navidades = christmas
nochebuena = christmas eve
nochevieja = new year eve
año nuevo = new year
semana santa = easter
mediodía = noon
medianoche = midnight
q = q
"""

SPANISH = Language(
    "spanish",
    parse_word_list(_SPANISH_WORDS),
    common="""el la los las un una de del en y o que qué es son fue fueron con por para se lo
    le nos me te mi su sus cuándo dónde quién quiénes cómo cuál cuáles cuánto cuántos no si sí
    hay era está están estaba ser hemos ha han sobre al este esta esto nuestro nuestra nuestros
    nuestras les como pero porque muy más sin entre hasta desde""",
    speaking="y o hicimos pasó decidimos hablamos",
    unsure="mayo once mes domingo a en y de este esta pasado segundo hora la q",
)

_CHINESE_DIGITS = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2}
_CHINESE_NUMBER = (
    r"(?:\d{1,4}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
)
_CHINESE_UNITS = {
    "秒": "seconds",
    "秒钟": "seconds",
    "分钟": "minutes",
    "小时": "hours",
    "天": "days",
}
_CHINESE_UNITS |= {"日": "days", "周": "weeks", "星期": "weeks", "礼拜": "weeks", "月": "months"}
_CHINESE_UNITS |= {"年": "years", "季度": "quarters"}
_CHINESE_UNIT_PATTERN = r"(?:个?半?(?:秒钟?|分钟|小时|天|周|星期|礼拜|季度|年)|个月)"
_CHINESE_YEARS = {"前年": "year before last", "去年": "last year", "今年": "this year"}
_CHINESE_YEARS |= {"明年": "next year"}
_CHINESE_DAYS = {"大前天": "3 days ago", "前天": "day before yesterday", "昨天": "yesterday"}
_CHINESE_DAYS |= {"昨日": "yesterday", "今天": "today", "今日": "today", "明天": "tomorrow"}
_CHINESE_DAYS |= {"明日": "tomorrow", "后天": "day after tomorrow", "昨晚": "last night"}
_CHINESE_DAYS |= {"今晚": "tonight", "今早": "this morning", "昨夜": "last night"}
_CHINESE_DAY_PARTS = {"凌晨": "night", "早上": "morning", "早晨": "morning", "上午": "morning"}
_CHINESE_DAY_PARTS |= {
    "中午": "lunchtime",
    "下午": "afternoon",
    "傍晚": "evening",
    "晚上": "evening",
}
_CHINESE_DIRECTIONS = {"上": "last", "这": "this", "本": "this", "下": "next"}
_CHINESE_THIRDS = {"初": "beginning of", "中": "middle of", "底": "end of", "末": "end of"}
_CHINESE_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_CHINESE_WORDS = {"最近": "recently", "近来": "recently", "近期": "recently", "刚才": "just now"}
_CHINESE_WORDS |= {"圣诞节": "christmas", "元旦": "new year", "自从": "since", "自": "since"}
_CHINESE_WORDS |= {"从": "from", "到": "to", "至": "to", "截至": "until", "直到": "until"}
_CHINESE_WORDS |= {
    "以来": "since>",
    "起": "since>",
    "开始": "since>",
    "之后": "after>",
    "以后": "after>",
}
_CHINESE_WORDS |= {
    "之前": "before>",
    "以前": "before>",
    "之间": "_",
    "的": "_",
    "和": "and",
    "在": "in",
}

_CHINESE_PATTERNS = {
    "dated": rf"\d{{4}}年(?:{_CHINESE_NUMBER}月(?:{_CHINESE_NUMBER}[日号])?|第?[一二三四1-4]季度|[春夏秋冬][天季])?[初底末]?",
    "turned": rf"(?:{'|'.join(_CHINESE_YEARS)})的?"
    rf"(?:{_CHINESE_NUMBER}月(?:份|{_CHINESE_NUMBER}[日号])?|[春夏秋冬][天季]|年?[初底末])?",
    "clock": rf"(?:{'|'.join(_CHINESE_DAY_PARTS)})?{_CHINESE_NUMBER}点(?:半|{_CHINESE_NUMBER}分)?",
    "counted": rf"(?:{_CHINESE_NUMBER}|几|半){_CHINESE_UNIT_PATTERN}(?:以前|之前|以后|之后|前|后)",
    "stretched": rf"(?:过去|最近|近|未来|接下来)的?(?:{_CHINESE_NUMBER}|几){_CHINESE_UNIT_PATTERN}",
    "weekly": r"(?:上上|下下|上|这|本|下)个?(?:周|星期|礼拜)[一二三四五六日天末]?"
    r"|(?:周|星期|礼拜)[一二三四五六日天末]",
    "monthly": r"(?:上上|上|这|本|下)个?(?:月[初中底末]?|季度)|月[初底]",
    "month": rf"{_CHINESE_NUMBER}月(?:{_CHINESE_NUMBER}[日号]|份)?[初底末]?",
    "near": "|".join(_CHINESE_DAYS),
    "part": "|".join(_CHINESE_DAY_PARTS),
    "season": "[春夏秋冬][天季]",
    "word": "|".join(sorted(_CHINESE_WORDS, key=len, reverse=True)),
    "figure": r"\d+",
    "other": r"[^\W\d_]|[^\w\s]",
}
CHINESE_TIME_CHARS = frozenset("年月周天昨星礼晚近元圣点时钟季春夏秋冬")


@cache
def _combined_pattern() -> re.Pattern[str]:
    """All patterns as one, compiled when the first Chinese text is read."""
    return re.compile(
        "|".join(f"(?P<{name}>{pattern})" for name, pattern in _CHINESE_PATTERNS.items())
    )


@cache
def _number_pattern() -> re.Pattern[str]:
    return re.compile(_CHINESE_NUMBER)


def translate_chinese(text: str) -> list[TranslatedToken]:
    """Translate a text to English words for times; other characters are marked by ``_``."""
    out: list[TranslatedToken] = []
    for match in _combined_pattern().finditer(text):
        name, found = match.lastgroup or "", match[0]
        if name == "figure":
            english = found
        elif name == "other":
            english = f"_{found}" if found.isalpha() else found
        else:
            english = _CHINESE_TRANSLATORS[name](found)
        out += [(word, match.span()) for word in english.split()]
    return out


def _parse_number(sign: str) -> int:
    """Parse a number up to 99, in figures or in words."""
    if sign.isdecimal():
        return int(sign)
    tens, ten, ones = sign.rpartition("十")
    if not ten:
        return _CHINESE_DIGITS[sign]
    return 10 * _CHINESE_DIGITS.get(tens, 1) + _CHINESE_DIGITS.get(ones, 0)


def _parse_numbers(found: str) -> list[int]:
    return [_parse_number(sign) for sign in _number_pattern().findall(found)]


def _month_name(number: int) -> str:
    return MONTHS[number - 1] if 1 <= number <= 12 else "_"


def _third_phrase(found: str) -> str:
    return _CHINESE_THIRDS.get(found[-1], "")


def _translate_dated(found: str) -> str:
    year, rest = found[:4], found[5:]
    return _translate_within_year(rest, year) or f"{_third_phrase(found) or 'in'} {year}"


def _translate_within_year(rest: str, year: str) -> str:
    """Translate a month, a day, a quarter or a season, and its year."""
    numbers = _parse_numbers(rest)
    season = _CHINESE_SEASONS.get(rest[:1])
    if season:
        return f"{season} {year}"
    if "季" in rest and numbers:
        return f"{('first', 'second', 'third', 'fourth')[numbers[0] - 1]} quarter {year}"
    if len(numbers) == 2:
        return f"{numbers[1]} {_month_name(numbers[0])} {year}"
    if numbers:
        return f"{_third_phrase(rest) or 'in'} {_month_name(numbers[0])} {year}"
    return ""


def _translate_relative_year(found: str) -> str:
    said = found[:2]
    rest = found[2:].lstrip("的")
    if said == "前年":
        return _CHINESE_YEARS[said]
    return (
        _translate_within_year(rest, _CHINESE_YEARS[said])
        or f"{_third_phrase(rest) if rest else ''} {_CHINESE_YEARS[said]}"
    )


def _translate_clock(found: str) -> str:
    part, said = (found[:2], found[2:]) if found[:2] in _CHINESE_DAY_PARTS else ("", found)
    numbers = _parse_numbers(said)
    late = part in ("下午", "傍晚", "晚上") or (part == "中午" and numbers[0] < 11)
    hour = numbers[0] + 12 * (late and numbers[0] < 12)
    minute = 30 if said.endswith("半") else numbers[1] if len(numbers) > 1 else None
    return f"at {hour} oclock" if minute is None else f"at {hour} oclock {minute:02}"


def _translate_amount(found: str) -> str:
    """Translate an amount: three weeks, a few days, half a year."""
    unit = next(name for name in sorted(_CHINESE_UNITS, key=len, reverse=True) if name in found[1:])
    if found[0] == "半" or "半" in found[1:]:
        return f"half a {_CHINESE_UNITS[unit].removesuffix('s')}"
    numbers = _parse_numbers(found)
    return f"{numbers[0] if numbers else 'few'} {_CHINESE_UNITS[unit]}"


def _translate_counted(found: str) -> str:
    sign = found.rstrip("以之前后")
    return f"{_translate_amount(sign)} {'ago' if found.endswith('前') else 'later'}"


def _translate_stretch(found: str) -> str:
    ahead = found.startswith(("未来", "接下来"))
    sign = found.lstrip("过去最近未来接下的")
    return f"{'next' if ahead else 'last'} {_translate_amount(sign)}"


def _translate_week(found: str) -> str:
    if found.endswith("末"):
        return f"{_CHINESE_DIRECTIONS.get(found[0], 'over the')} weekend"
    ahead = "week before last" if found.startswith("上上") else "week after next"
    doubled = found.startswith(("上上", "下下"))
    day = "一二三四五六日".find(found[-1].replace("天", "日"))
    if doubled:
        return ahead if day < 0 else "_"
    week = f"{_CHINESE_DIRECTIONS[found[0]]} week" if found[0] in _CHINESE_DIRECTIONS else ""
    return f"{week} {WEEKDAYS[day] if day >= 0 else ''}"


def _translate_relative_month(found: str) -> str:
    unit = "quarter" if found.endswith("季度") else "month"
    if found.startswith("上上"):
        return f"{unit} before last"
    third = _third_phrase(found) if unit == "month" else ""
    return f"{third} {_CHINESE_DIRECTIONS.get(found[0], 'the')} {unit}"


def _translate_month(found: str) -> str:
    numbers = _parse_numbers(found)
    if len(numbers) == 2:
        return f"{numbers[1]} {_month_name(numbers[0])}"
    return f"{_third_phrase(found) or 'in'} {_month_name(numbers[0])}"


_CHINESE_TRANSLATORS = {
    "dated": _translate_dated,
    "turned": _translate_relative_year,
    "clock": _translate_clock,
    "counted": _translate_counted,
    "stretched": _translate_stretch,
    "weekly": _translate_week,
    "monthly": _translate_relative_month,
    "month": _translate_month,
    "near": _CHINESE_DAYS.__getitem__,
    "part": _CHINESE_DAY_PARTS.__getitem__,
    "season": lambda found: f"in {_CHINESE_SEASONS[found[0]]}",
    "word": _CHINESE_WORDS.__getitem__,
}
