"""Word lists that tell names from words that merely stand first in a sentence."""

from __future__ import annotations

# Words that open sentences, labels and headings; capitalised they are still no names.
_OPENERS = """
a about above across act actually add adds after again against ago all allow almost along already
also although always am among an and another any anyone anything apply are aren't around as ask at
avoid back backend based be because been before behind being below beneath best better between
beyond both bring build builds but by call called can can't cannot careful caveat change changed
changes check choose clean client close code come commit compare concerning config configure
consider context continue could couldn't create current currently customer customers data database
date day dear debug decide decided decision default define delete deploy deployed deployment
describe design despite did didn't disable do docs documentation does doesn't doing don't done
down drop due during each early easy edit either else enable end enough ensure error errors
especially even ever every everyone everything everybody example except expect explain export
extend fact fail failed failing feature file files final finally find first fix fixed fixes focus
follow for forget former found from frontend full further general get gets give given go goal
goals going good got great had half has hasn't have haven't having he he's hello help hence her
here here's hers hey hi high him his hold how however i i'd i'll i'm i've idea if implement import
important in include including increase indeed info input inside insight install instead
integration into is isn't issue issues it it's item its itself just keep key last later latest
learn learned learning least leave lesson less let let's like likely limit limits line list little
load local log logs long look low made main maintain major make makes making manager many maybe me
mean means meanwhile measure meeting memory merge message metrics might migrate mind mine minor
miss missing mode more most mostly mount move moved much must my myself name near need needed
needs neither never new next nice no nobody none nor not note notes nothing now number obviously
of off often oh ok okay old on once one ones only onto open option or order other others otherwise
our ours out output outside over overall own owner page part past people per perhaps place plan
please point possible prefer preference present prevent previous print prior probably problem
product production project provide pull push put question quick quickly quite rather read ready
really reason recall recent recently record reduce refactor regarding release remember remind
remove rename replace report request require required reset restart result results return returns
review right role root rotate rule rules run running runs same save say says schedule search
second section see seems select send sent sentence server service services set sets several shall
she she's ship should show shows side simple since single sir skip small so some somebody someone
something sometimes soon sorry source staging standard start started state status stay step still
stop store stored such sum summary support sure switch system table tag take task tasks team tell
term test tested testing tests than thank thanks that that's the their theirs them then there
there's therefore these they they're thing things think third this those though three through
throughout thus ticket time tip title to today todo together tomorrow tonight too tool tools
toward track try turn two type under unfortunately unless until up update updated updates upgrade
upon us use used user users uses using usually value verify version very via view visit wait walk
want wants warning was wasn't watch way we we'll we're we've week well went were weren't what
what's whatever when whenever where whereas wherever whether which while who who's whoever whole
whom whose why will wish with within without won't word work worked working works worth would
wouldn't write wrong yeah year yes yesterday yet you you'd you'll you're you've your yours mr mrs
ms dr prof sir madam
"""
_CALENDAR = """
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
monday tuesday wednesday thursday friday saturday sunday
mondays tuesdays wednesdays thursdays fridays saturdays sundays
"""
CALENDAR = frozenset(_CALENDAR.split())
OPENERS = frozenset(_OPENERS.split()) | CALENDAR
# German writes every noun with a capital; two of these words give the language away.
_GERMAN = "der die das und ist nicht ein eine den dem mit für auf von zu im wir ich sind wird"
GERMAN = frozenset(_GERMAN.split())

_GIVEN = """
aaron abdul abigail adam adrian agnes ahmed aiko akira alan albert alejandro alex alexander
alexandra alexei ali alice alicia alina amanda amara amelia amina amir amy ana anastasia anders
andre andrea andreas andrew andy angela anil anita anja ann anna anne annika anthony anton antonio
arjun arthur astrid audrey aylin barbara bart beatrice ben benjamin bernard beth bianca bill bjorn
bob boris brad brandon brenda brian bruno camila carla carlos carmen carol caroline catherine
cecilia chan chandra charles charlie charlotte chen chiara chloe chris christian christina
christine christopher claire clara claudia clemens colin connor cristina cynthia dan daniel
daniela danielle darius dave david deborah deepak denis dennis derek diana diego dieter dimitri
dmitri dominic donald donna doris dorothy douglas duncan dylan eduardo edward elena eleanor eli
elias elif elijah elisa elizabeth ella ellen emil emilia emily emma eric erik erika esther ethan
eugene eva evelyn fabian farah fatima felicia felix fernando filip fiona florian frances francesca
francis francois frank franziska fred frederick gabriel gabriela gary george georgia gerald gianni
gina giovanni giulia gloria gordon grace graham greg gregory greta guillaume gunther gustav guy
hana hannah hans haruto harry hassan heather hector heidi helen helena henrik henry herbert hideo
hiroshi holger hugo ian ibrahim igor ilona imran ines ingrid irene iris isaac isabel isabella ivan
jack jacob jacques jake james jamie jan jane janet jasmine jason javier jean jeff jeffrey jennifer
jens jeremy jerry jesse jessica jill jim jin joan joanna joao joe joel johan johanna john johnny
jon jonas jonathan jordan jorge jose josef joseph joshua juan judith judy julia julian julie julio
jun jurgen justin kai karen karim karin karl kate katherine kathleen katja katrin kavita keiko
keith kelly ken kenji kenneth kevin khalid kim klaus kristina kumar kyle lara larry lars laszlo
laura lauren lea leah lena leo leon leonard leonie leslie li liam lily lin linda lisa logan lorena
lorenzo louis louise luca lucas lucia lucy luis luisa lukas luke luna madeleine magda magnus malik
manuel marc marco marcos marcus margaret maria mariam marie marina mario marion marius mark markus
marta martha martin martina mary mateo mathias mathilde matt matteo matthew matthias maurice max
maximilian maya megan mei melanie melissa mia michael michel michelle miguel mika mike mila milan
miles miriam mohamed mohammed moira monica monika morgan mustafa nadia nancy naomi natalia natalie
natasha nathan neha neil nicholas nick nicolas nicole nigel nikhil nikita nikolai nils nina noah
noor nora norbert norman olaf oleg olga oliver olivia omar oscar osman otto pablo pamela paola
pascal patricia patrick paul paula pauline pavel pedro peggy penelope peter petra phil philip
philipp pierre piotr pooja priya rachel rafael rahul raj rajesh ralf ralph ramon raul ravi raymond
rebecca reinhard rene renata ricardo richard rita robert roberto robin rodrigo roger rohan roland
roman romy ron ronald rosa rose rowan roy ruben rudolf russell ruth ryan sabine sabrina said
sakura salma sam samantha samir samuel sandra sandy sanjay sara sarah sascha scott sean sebastian
selma serena sergei sergio shane shannon sharon shaun sheila shinji silvia simon simone sofia
sonia sophia sophie stacy stefan stefanie stella stephanie stephen steve steven stuart sue sunita
susan susanne sven sylvia takeshi tamara tanja tanya tara tariq tatiana ted teresa terry theo
theodore theresa thomas tim timo timothy tina tobias todd tom tomas tomasz toni tony tracy tyler
ulrich ursula uwe valentina valeria vanessa vera verena veronica victor victoria vijay vikram
vincent viola virginia vivian vladimir walter wang wanda wei wendy werner william wolfgang xavier
xin yan yara yasmin yi yolanda yuki yuri yusuf yves yvonne zara zoe
"""
GIVEN_NAMES = frozenset(_GIVEN.split())

TITLES = frozenset({"mr", "mrs", "ms", "dr", "prof", "professor", "sir", "madam"})
_BEFORE = (
    "met told asked colleague friend named sister brother wife husband son daughter boss mother"
)
# Labels that stand before a name, with a colon, and those that somebody's name follows.
OF_PERSONS = frozenset({"owner", "author", "assignee", "reviewer", "contact", "lead", "name"})
LABELS = OF_PERSONS | {"role", "position", "title", "team", "company", "employer", "department"}
BEFORE_PERSON = (
    frozenset(_BEFORE.split())
    | {"father", "cc", "cousin", "partner", "uncle", "aunt"}
    | {f"{label}:" for label in OF_PERSONS}
)
# What the word before a name says about it.
KIND_BEFORE = {"project": "project", "repo": "project", "repository": "project"}
KIND_BEFORE |= dict.fromkeys(("customer", "client", "company", "vendor", "team"), "other")
_AFTER = """
said says told asked thinks prefers likes wants lives works joined left wrote suggested agreed
complained mentioned loves hates believes reported insists moved plays reviewed approved owns
"""
AFTER_PERSON = frozenset(_AFTER.split())
_CLASS_ENDINGS = """
Error Exception Warning Server Client Service Exporter Importer Handler Manager Factory Builder
Parser Reader Writer Loader Store Controller Provider Adapter Worker Model View Config Settings
Test Case Queue Cache Pool Engine Runner Context Request Response Repository Middleware Listener
Session
"""
CLASS_ENDINGS = tuple(_CLASS_ENDINGS.split())
_PLAIN = "api url http https json sql xml html css todo note faq asap fyi eta ok id ui ux ci cd pr"
# Known to everyone, so nothing is gained by linking memories through them.
PLAIN_ACRONYMS = frozenset(_PLAIN.split()) | frozenset(
    {"utc", "gmt", "pdf", "csv", "cpu", "gpu", "ram", "and", "not", "the", "or", "no", "yes", "all"}
    | {"usa", "am", "pm", "vs", "etc", "warn", "info", "error", "debug", "fixme", "tbd", "wip"}
)
NO_TICKETS = frozenset(
    {
        "UTF",
        "ISO",
        "SHA",
        "MD",
        "RFC",
        "COVID",
        "HTTP",
        "GPT",
        "AES",
        "RSA",
        "RS",
        "HS",
        "ES",
        "IEEE",
    }
    | {"TLS", "SSL", "PEP", "IPV", "EC", "MP", "USB", "BASE", "FP", "INT", "UTC", "GMT", "Q", "H"}
)
DOMAINS = frozenset({"com", "org", "net", "io", "dev", "ai", "co", "app", "edu", "gov", "eu", "de"})
_ENDINGS = """
py pyi js jsx ts tsx mjs md rst txt json jsonl toml yaml yml ini cfg conf env lock rs go java kt c h
cc cpp hpp cs rb php swift scala sh bash zsh ps1 bat sql db sqlite csv tsv parquet html css scss vue
svelte xml svg png jpg jpeg gif pdf docx xlsx ipynb proto tf dockerfile gradle log zip gz tar whl
"""
FILE_ENDINGS = frozenset(_ENDINGS.split())
_FOLDERS = (
    "src lib tests test docs bin etc app apps cmd pkg packages scripts config internal var usr"
)
FOLDERS = frozenset(_FOLDERS.split()) | {"home", "opt", "tmp", "node_modules", "public", "bench"}
