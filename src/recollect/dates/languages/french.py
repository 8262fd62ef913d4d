"""French words for times."""

from __future__ import annotations

from recollect.dates.languages.language import Language, listed

_LISTS = """
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
    listed(_LISTS),
    common="""le la les l un une des du de d et ou est sont que qu qui quoi quand où comment
    pourquoi nous vous je tu il elle on ils elles avons avez ont ai a dans pour avec sur par ne
    pas ce cet cette ces au aux en se sa son ses été était notre nos votre vos leur leurs mon ma
    mes y s t n c m j quel quelle quels quelles combien mais donc sans sous entre plus""",
    speaking="l d a fait dit décidé passé parlé",
    unsure="""mars mai hier an ans ce h d l a de en et fin mi six sept dix second seconde avant
    entre minute minutes passé week-end weekend q nuit er au la le les""",
)
