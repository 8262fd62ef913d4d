"""Word lists by which a plain statement of fact is told from everything else."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Whoever says one of these does not say that something is so: guesses, plans, hearsay.
UNSURE = _words("""
if unless would could should might maybe perhaps probably possibly suppose supposed supposedly
assume assuming whether imagine ideally hopefully wish think thinks thought guess guesses believe
believes seem seems seemed apparently allegedly reportedly likely unlikely unclear unsure rumour
will won't shall planned planning want wants wanted hope hopes hoping intend intends
propose proposes proposed proposal suggest suggests suggested consider considers considering
considered discuss discussed discussing decide whenever tomorrow soon eventually someday must ought
todo going says say said claim claims claimed told heard hears according asks asked wonder wonders
wondering reported mentioned mentions when where why how what who whose can can't cannot
couldn't wouldn't shouldn't try tries tried trying let's let please otherwise pretend example
reverted rolled
""")
# More than one value, or one of several.
SEVERAL = _words("""
also too both either neither nor another additionally besides respectively various several some few
many most usually sometimes often normally typically mostly occasionally partly e.g. such among
including include includes plus except alternatively sorts kinds depending depends varies vary
almost nearly hardly
""")
# It was so, or is only for a while: nothing to be corrected later.
PAST = _words("""
formerly previously once originally ago until till former yesterday used earlier back
temporarily tonight meanwhile today briefly momentarily
""")
# What ends a value, where the rest gives a reason or a time, and where it tells more.
REASONS = _words("because since due as after before thanks despite so per instead rather starting")
GOES_ON = _words("but which who while where whereas although though with without via using by")
NEW_NOW = _words("now finally again nowadays meanwhile henceforth")
ADVERBS = NEW_NOW | _words("""
currently still already always actually officially permanently just presently only simply directly
successfully silently recently simply fully completely generally
""")
ABOUT = _words("about around roughly approximately circa ca ~ exactly precisely up")
# A subject that begins with or holds one of these is not one known thing.
VAGUE = _words("""
a an this that these those it he she they there here you your his her their its each every all
any no none nobody nothing one everyone everything everybody someone something somebody
and or with without to from by as about than then not in on at into over under between other
others else old former previous original last next first second third same different which who
more less much rest part the our best worst better biggest latter
i'm we're it's that's there's he's she's they're
is are was were be been am do does did has have had like i we me us my mine
""")
DETERMINERS = _words("the our")
NEWER = _words("new current latest updated present")
# Labels that may stand before a statement, and those that say it corrects something.
LABELS = _words("""
note fact info fyi reminder update correction decision remember config setting settings memo ps btw
""")
OPENERS = _words(
    "actually fyi btw now currently nowadays please note remember that today so ok okay"
)
CORRECTING = _words("update correction actually now nowadays")
SINCE = _words("since as from starting effective after with")
SINCE_WHEN = _words("""
monday tuesday wednesday thursday friday saturday sunday january february march april may june july
august september october november december today now week month year quarter sprint spring summer
autumn winter
""")

PLACES = _words("in at on inside within")
# "in progress", "on fire": no places.
NO_PLACES = _words("""
fire hold progress use review risk trouble vacation holiday call charge sale place track work leave
time favour favor doubt danger order general particular production beta alpha development testing
maintenance sync line touch need love peace pain war shape fact theory practice effect force action
question stock transit flight motion demand duty strike air top board standby schedule budget
fault least most first last best worst all once home lunch break hand vogue limbo flux conflict
agreement bed touch turn deep principle part parallel sequence addition total meeting mood condition
next state left right bottom side middle way road go class school bounds
""")
# Plain words for places where something is kept; other plain words after "in" are no places.
PLACE_NOUNS = _words("""
vault room folder bucket repo repository drawer shelf office building floor cabinet safe garage
basement attic namespace cluster region zone directory database schema file host server rack
notebook wiki calendar channel box account kitchen hall cellar shed warehouse archive wallet
cupboard desk locker closet registry monorepo workspace project space
""")
# In which language, form or time zone something is, not where.
MANNERS = _words("""
english german french spanish italian dutch portuguese polish russian chinese japanese korean
json yaml toml xml csv markdown html css sql pdf ascii utf-8 utc cet gmt pst est parquet protobuf
python go rust java kotlin typescript javascript ruby scala elixir php swift c++ c# haskell perl
react vue svelte angular django flask rails parallel memory batches bulk webp png jpeg avro base64
""")
WHOSE = _words("your its his her their my for")
NO_VALUES = _words("""
me it them him her us you this that there here same unknown unclear tbd none nothing something
anything everything someone anyone everyone to not being been done unchanged different a an one
well very ahead behind quite more less so really pretty rather as extremely fully mostly much
""")
# Plain words that describe rather than name.
ADJECTIVES = _words("""
wrong right broken slow fast near far important fine good bad great high low big small large long
short new old open closed full empty late early ready done correct incorrect true false clear safe
unsafe easy hard difficult simple complex stable unstable flaky available unavailable missing
present active inactive enough free busy hot cold warm cheap expensive critical urgent optional
mandatory possible impossible tight loose weak strong useful useless awful amazing terrible perfect
better worse best worst bigger smaller higher lower faster slower up down off on out over gone
responsible impressive beautiful ugly nice cool happy sad tired sick dead alive public private
sound solid robust sane twice thrice badly obsolete deprecated
outdated stale unique secret confusing boring annoying tricky healthy
""")
# What can be one plain word: "the default branch is main".
PLAIN_VALUED = _words("""
branch language colour color format editor shell theme day name tool framework database library
provider region environment mode level status role title job profession hobby food drink dish
drink fruit animal season sport genre cuisine protocol encoding layout unit currency plan tier
engine backend storage strategy policy convention codename nickname username handle channel team
department vendor supplier timezone zone dialect compiler linter formatter runner driver algorithm
model schedule frequency cadence
""")
# What is said of these is an opinion or a wish, or says nothing of the thing meant.
ABSTRACT = _words("""
goal plan problem reason question answer idea point issue result thing fact solution option aim
trick advantage difference catch conclusion challenge hope wish dream trouble cause fix
suggestion proposal alternative choice lesson truth rule rest bottleneck culprit hurdle
""")
ROLES_OF = _words("""
owner lead leader manager maintainer contact ceo cto cfo coo head boss teacher doctor dentist vet
lawyer accountant captain chair president director editor author administrator admin reviewer
responsible sponsor chef nanny landlord tutor coach mentor
""")
DATED = _words(
    "deadline due launch expiry expiration birthday anniversary wedding cutoff freeze eta"
)

MOVES = _words("moved relocated transferred shifted")
TURNS = _words("""
changed raised increased lowered reduced set bumped cut shortened extended doubled halved updated
upgraded downgraded adjusted grew fell dropped rose decreased corrected reset
""")
SWITCHES = _words("switched migrated converted")
RENAMES = _words("renamed rebranded")
REPLACES = _words("replaced superseded")
CHANGES = MOVES | TURNS | SWITCHES | RENAMES | REPLACES
KEPT_AT = _words("stored kept located hosted saved held housed found deployed based placed parked")
LIVES = _words("lives live sits sit resides reside stays stay lies")
RUNS = _words("runs run")
SET_TO = _words("set limited capped fixed configured")
NAMED = _words("called named")
TIMED = _words("scheduled due booked")
TIME_VERBS = {
    **dict.fromkeys(("starts", "start", "begins", "begin", "happens", "happen"), "time"),
    **dict.fromkeys(("ends", "end", "finishes"), "end"),
    **dict.fromkeys(("closes", "close"), "closing time"),
    **dict.fromkeys(("opens", "open"), "opening time"),
    **dict.fromkeys(("expires", "expire"), "expiry"),
}
MEASURED = {
    **dict.fromkeys(("costs", "cost"), "price"),
    **dict.fromkeys(("takes", "take", "lasts", "last"), "duration"),
    **dict.fromkeys(("weighs", "weigh"), "weight"),
}
# Who is something for a thing: "Ana leads billing" is about billing.
OFFICES = {
    **dict.fromkeys(("owns", "own"), "owner"),
    **dict.fromkeys(("leads", "lead", "heads", "head"), "lead"),
    **dict.fromkeys(("maintains", "maintain"), "maintainer"),
    **dict.fromkeys(("manages", "manage"), "manager"),
}
MANAGING = _words("manages manage")
TEAMS = _words("team teams department group squad crew office division")
PASSIVE_OFFICES = {
    "owned": "owner",
    "led": "lead",
    "headed": "lead",
    "maintained": "maintainer",
}
# Verbs whose objects may be many; their negation is what matters.
MANY = {
    **dict.fromkeys(("use", "uses", "using"), "uses"),
    **dict.fromkeys(("support", "supports", "supporting"), "supports"),
    **dict.fromkeys(("need", "needs", "needing"), "needs"),
    **dict.fromkeys(("target", "targets", "targeting"), "targets"),
    **dict.fromkeys(("require", "requires", "requiring"), "requires"),
    **dict.fromkeys(("accept", "accepts", "accepting"), "accepts"),
    **dict.fromkeys(("like", "likes"), "likes"),
    **dict.fromkeys(("prefer", "prefers"), "prefers"),
    **dict.fromkeys(("eat", "eats", "eating"), "eats"),
    **dict.fromkeys(("drink", "drinks", "drinking"), "drinks"),
    **dict.fromkeys(("speak", "speaks"), "speaks"),
}
KEEPING = _words("store keep host save")  # "we store sessions in Redis"
EMPLOYED = _words("works work working")
# What is done again and again: "releases are cut on Tuesdays", "we cut releases on Tuesdays".
ACTS = {
    **dict.fromkeys(("cut", "cuts"), "cut"),
    **dict.fromkeys(("run", "runs", "executed"), "run"),
    **dict.fromkeys(("ship", "ships", "shipped"), "ship"),
    **dict.fromkeys(("deploy", "deploys", "deployed"), "deploy"),
    **dict.fromkeys(("release", "releases", "released"), "release"),
    **dict.fromkeys(("publish", "publishes", "published"), "publish"),
    **dict.fromkeys(("take", "takes", "taken"), "take"),
    **dict.fromkeys(("make", "makes", "made"), "make"),
    **dict.fromkeys(("send", "sends", "sent"), "send"),
    **dict.fromkeys(("hold", "holds", "held"), "hold"),
    **dict.fromkeys(("keep", "keeps", "kept"), "keep"),
    **dict.fromkeys(("store", "stores", "stored"), "store"),
    **dict.fromkeys(("retain", "retains", "retained"), "retain"),
    **dict.fromkeys(("delete", "deletes", "deleted"), "delete"),
    **dict.fromkeys(("purge", "purges", "purged"), "purge"),
    **dict.fromkeys(("cache", "caches", "cached"), "cache"),
    **dict.fromkeys(("rotate", "rotates", "rotated"), "rotate"),
    **dict.fromkeys(("review", "reviews", "reviewed"), "review"),
    **dict.fromkeys(("merge", "merges", "merged"), "merge"),
    **dict.fromkeys(("refresh", "refreshes", "refreshed"), "refresh"),
    **dict.fromkeys(("rebuild", "rebuilds", "rebuilt"), "rebuild"),
    **dict.fromkeys(("generate", "generates", "generated"), "generate"),
    **dict.fromkeys(("renew", "renews", "renewed"), "renew"),
    **dict.fromkeys(("sync", "syncs", "synced"), "sync"),
    **dict.fromkeys(("meet", "meets"), "meet"),
    **dict.fromkeys(("charge", "charges", "charged"), "charge"),
    **dict.fromkeys(("pay", "pays", "paid"), "pay"),
    **dict.fromkeys(("bill", "bills", "billed"), "bill"),
}
# "We shipped on Tuesdays" is past, "are shipped on Tuesdays" is not.
DOING = frozenset(word for word, act in ACTS.items() if word == act or word.endswith("s"))
ACTS["valid"] = "valid"  # for 24 hours
GOING = _words("go goes")
PERIODS = _words("""
day days night nights week weeks weekday month months quarter quarters year years hour hours minute
minutes second seconds sprint sprints weekend morning evening afternoon h min s
""")
# Verbs in front of a number of things: "the API returns 100 items per page".
COUNTING = {
    **dict.fromkeys(("returns", "return"), "returns"),
    **dict.fromkeys(("allows", "allow"), "allows"),
    **dict.fromkeys(("holds", "hold"), "holds"),
    **dict.fromkeys(("keeps", "keep"), "keeps"),
    **dict.fromkeys(("stores", "store"), "stores"),
    **dict.fromkeys(("retains", "retain"), "retains"),
    **dict.fromkeys(("serves", "serve"), "serves"),
    **dict.fromkeys(("sends", "send"), "sends"),
    **dict.fromkeys(("handles", "handle"), "handles"),
    **dict.fromkeys(("contains", "contain"), "contains"),
    **dict.fromkeys(("fits", "fit"), "fits"),
    **dict.fromkeys(("shows", "show"), "shows"),
    **dict.fromkeys(("lists", "list"), "lists"),
    **dict.fromkeys(("caches", "cache"), "caches"),
    **dict.fromkeys(("retries", "retry"), "retries"),
    **dict.fromkeys(("has", "have"), "has"),
}
# Numbers that are no counts: "returns 404 errors" and "500 errors" are both so.
NO_COUNTS = _words("error errors status code codes response responses http ok")
# Verbs that lead somewhere, with the prepositions they lead by.
LEADING = {
    **dict.fromkeys(("points", "point"), ("point", ("to", "at"))),
    **dict.fromkeys(("listens", "listen"), ("listen", ("on",))),
    **dict.fromkeys(("connects", "connect"), ("connect", ("to",))),
    **dict.fromkeys(("deploys", "deploy"), ("deploy", ("to", "from"))),
    **dict.fromkeys(("redirects", "redirect"), ("redirect", ("to",))),
    **dict.fromkeys(("resolves", "resolve"), ("resolve", ("to",))),
    **dict.fromkeys(("reports", "report"), ("report", ("to",))),
    **dict.fromkeys(("logs", "log"), ("log", ("to",))),
    **dict.fromkeys(("writes", "write"), ("write", ("to",))),
    **dict.fromkeys(("publishes", "publish"), ("publish", ("to",))),
    **dict.fromkeys(("merges", "merge"), ("merge", ("into", "to"))),
    **dict.fromkeys(("branches", "branch"), ("branch", ("off", "from"))),
    **dict.fromkeys(("goes", "go"), ("go", ("to", "into"))),
}
# How something is made: "is built with Vite", "is written in Go".
MADE = _words("""
built written tested managed packaged formatted linted compiled bundled generated styled deployed
provisioned monitored tracked documented rendered implemented hosted signed installed sent
handled processed pushed uploaded published exported forwarded synced
""")
MADE_BY = _words("with in using via through by from to into")
# Roles that one person has at a time, if something is added to them.
ROLES = ROLES_OF | _words("engineer developer designer architect scientist analyst officer master")
# States that follow one another, and those that exclude each other.
UNDONE = _words("""
pending open unfinished incomplete queued blocked unresolved unmerged ongoing underway in-progress
paused outstanding
""")
DONE = _words("""
done finished complete completed closed resolved merged shipped released deployed live cancelled
canceled abandoned
""")
TOGGLES = tuple(
    _words(pair)
    for pair in (
        "enabled disabled", "active inactive", "public private", "required optional",
        "mandatory optional", "allowed forbidden", "locked unlocked", "online offline", "on off",
    )
)  # fmt: skip
STATUSES = UNDONE.union(DONE, *TOGGLES)
# Such things come and go, each another one: the bug, the ticket, the weather.
PASSING = _words("""
bug error ticket issue invoice endpoint temperature weather score task order request incident alert
exception commit build meeting call appointment flight train answer result problem question idea
example page line file function customer author reviewer
""")
# The next one is another one, though it is called the same.
TROUBLES = _words("bug error issue problem exception incident crash leak regression failure outage")
# Of these it is not known which one is pending or done, unless a number says so.
UNNAMED = PASSING | _words("""
deployment deploy pipeline job run release branch pr prs mr patch change review test tests door shop
window store fix feature account user office
""")
# What runs something, rather than being it: "the server was upgraded to Ubuntu 24.04".
RUNNERS = _words("""
server servers machine host cluster laptop vm box image container node backend frontend app service
project site website repo
""")
_CLOCK = """
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
fridays saturdays sundays january february march april june july august september october november
december noon midnight o'clock weekdays weekends daily weekly monthly yearly quarterly nightly
hourly half quarter morning mornings evening evenings afternoon afternoons am pm utc
"""
TIMES = _words(_CLOCK)
RECURRING = _words("""
mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends daily weekly
monthly yearly quarterly nightly hourly every mornings evenings afternoons
""")
NUMBERS = _words("""
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred
thousand million billion dozen half
""")
UNITS = {
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "s"),
    **dict.fromkeys(("minute", "minutes", "mins"), "min"),
    **dict.fromkeys(("hour", "hours", "hrs"), "h"),
    **dict.fromkeys(("day",), "days"),
    **dict.fromkeys(("milliseconds", "millisecond"), "ms"),
    **dict.fromkeys(("euro", "euros", "eur"), "€"),
    **dict.fromkeys(("dollar", "dollars", "usd"), "$"),
    **dict.fromkeys(("percent",), "%"),
}
