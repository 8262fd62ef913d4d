"""Spanish words for times."""

from __future__ import annotations

from recollect.dates.languages.language import Language, listed

_LISTS = """
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
    listed(_LISTS),
    common="""el la los las un una de del en y o que qué es son fue fueron con por para se lo
    le nos me te mi su sus cuándo dónde quién quiénes cómo cuál cuáles cuánto cuántos no si sí
    hay era está están estaba ser hemos ha han sobre al este esta esto nuestro nuestra nuestros
    nuestras les como pero porque muy más sin entre hasta desde""",
    speaking="y o hicimos pasó decidimos hablamos",
    unsure="mayo once mes domingo a en y de este esta pasado segundo hora la q",
)
