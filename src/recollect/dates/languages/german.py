"""German words for times."""

from __future__ import annotations

from recollect.dates.languages.language import Language, fold, listed

_WEEKDAYS = {
    "montag": "monday", "dienstag": "tuesday", "mittwoch": "wednesday", "donnerstag": "thursday",
    "freitag": "friday", "samstag": "saturday", "sonntag": "sunday",
}  # fmt: skip
_MONTHS = {
    "januar": "january", "februar": "february", "märz": "march", "april": "april", "mai": "may",
    "juni": "june", "juli": "july", "august": "august", "september": "september",
    "oktober": "october", "november": "november", "dezember": "december",
}  # fmt: skip
_PARTS = {
    "morgen": "morning", "vormittag": "morning", "mittag": "lunchtime",
    "nachmittag": "afternoon", "abend": "evening", "nacht": "night",
}  # fmt: skip
_LISTS = """
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
_COMPOUNDS = {
    f"{day}{part}": f"{name} {english}"
    for day, name in _WEEKDAYS.items()
    for part, english in (_PARTS | {"früh": "morning"}).items()
}
_WEEKS = {f"{month}woche": f"week of {name}" for month, name in _MONTHS.items()}
_PLAIN_PARTS = {part: name for part, name in _PARTS.items() if part != "morgen"}
_FOLDED = {
    fold(word): english
    for lists in (_WEEKDAYS, _MONTHS, _PLAIN_PARTS, _COMPOUNDS, _WEEKS)
    for word, english in lists.items()
}

GERMAN = Language(
    "german",
    _FOLDED | listed(_LISTS),
    common="""der die das den dem des und oder ist sind war waren wir ich du er sie es ihr
    uns mir mich haben habe hat hatte hatten was wann wer wen wem wie wo warum welche welcher
    welches welchen welchem nicht kein keine keinen ein eine einen einem einer eines im in am an
    zum zur zu mit auf für von vom bei nach seit vor über aus als auch noch nur aber weil dass
    wenn wird werden wurde wurden worden gab gibt unser unsere unseren unserem unserer mein meine
    meinen dein deine sein seine ihre ihren sich man so da durch gegen ohne zwischen""",
    speaking="geschah passiert entschieden gemacht",
    unsure="mai morgen abend winter an am in so die ab um und rund fast q",
)
