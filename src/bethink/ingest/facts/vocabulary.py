"""Word lists for fact extraction: verbs, prepositions, roles, units, tools."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Tools and habits of which one has one at a time.
EXCLUSIVE_TOOLS = tuple(
    _words(row)
    for row in (
        "tabs spaces", "npm pnpm yarn bun", "poetry pipenv pdm uv", "jest vitest mocha jasmine",
        "webpack vite rollup parcel esbuild", "camelcase snake_case", "git mercurial subversion",
        "light-mode dark-mode", "single-quotes double-quotes", "rebasing merging squashing",
        "light-theme dark-theme",
    )
)  # fmt: skip
CODE_LIKE_NAMES = _words("s3 r2 ec2 k8s")  # names, though they look like codes
# Made with several things at once: a framework, a language, a bundler.
LAYERED_VERBS = _words("built written implemented tested compiled rendered styled")
# What one does with one tool, and what sounds like it and is a product of many parts.
SINGLE_TOOL_PURPOSES = _words("""
ci cd ci/cd tests test e2e builds deploys deployment deployments releases auth authentication
authorization login sso search email emails mail payments cache queues jobs chat calls docs
documentation control management analytics alerts errors logs metrics traces secrets sessions
storage backups uploads packages dependencies environments migrations flags diagrams reviews tickets
issues notes versions formatting state orchestration infrastructure
""")
NON_PURPOSES = _words("billing pricing onboarding landing banking booking ticketing mapping thing")
# Of what something is made one thing at a time.
EXCLUSIVE_TECHNOLOGIES = tuple(
    _words(row)
    for row in (
        """python go golang rust java kotlin scala ruby php perl elixir erlang c c++ c# swift
        haskell typescript javascript clojure zig dart objective-c coffeescript node""",
        "react vue svelte angular ember solid preact backbone jquery",
        "django flask fastapi rails spring express nestjs laravel phoenix",
        "sass less tailwind css-modules styled-components",
        "pytest unittest nose cypress playwright selenium puppeteer",
        "sphinx mkdocs docusaurus jekyll hugo", "make cmake bazel gradle maven ant meson",
    )
)  # fmt: skip


# Whoever says one of these does not say that something is so: guesses, plans, hearsay.
UNCERTAIN_WORDS = _words("""
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
SEVERAL_VALUE_WORDS = _words("""
also too both either neither nor another additionally besides respectively various several some few
many most usually sometimes often normally typically mostly occasionally partly e.g. such among
including include includes plus except alternatively sorts kinds depending depends varies vary
almost nearly hardly
""")
# It was so, or is only for a while: nothing to be corrected later.
PAST_WORDS = _words("""
formerly previously once originally ago until till former yesterday used earlier back
temporarily tonight meanwhile today briefly momentarily
""")
# What ends a value, where the rest gives a reason or a time, and where it tells more.
REASON_WORDS = _words(
    "because since due as after before thanks despite so per instead rather starting"
)
CONTINUATION_WORDS = _words(
    "but which who while where whereas although though with without via using by"
)
NEWNESS_ADVERBS = _words("now finally again nowadays meanwhile henceforth")
ADVERBS = NEWNESS_ADVERBS | _words("""
currently still already always actually officially permanently just presently only simply directly
successfully silently recently simply fully completely generally
""")
APPROXIMATORS = _words("about around roughly approximately circa ca ~ exactly precisely up")
# A subject that begins with or holds one of these is not one known thing.
VAGUE_WORDS = _words("""
a an this that these those it he she they there here you your his her their its each every all
any no none nobody nothing one everyone everything everybody someone something somebody
and or with without to from by as about than then not in on at into over under between other
others else old former previous original last next first second third same different which who
more less much rest part the our best worst better biggest latter
i'm we're it's that's there's he's she's they're
is are was were be been am do does did has have had like i we me us my mine
""")
DETERMINERS = _words("the our")
NEWNESS_ADJECTIVES = _words("new current latest updated present")
# Labels that may stand before a statement, and those that say it corrects something.
STATEMENT_LABELS = _words("""
note fact info fyi reminder update correction decision remember config setting settings memo ps btw
""")
STATEMENT_OPENERS = _words(
    "actually fyi btw now currently nowadays please note remember that today so ok okay"
)
CORRECTION_WORDS = _words("update correction actually now nowadays")
SINCE_PREPOSITIONS = _words("since as from starting effective after with")
SINCE_TIMES = _words("""
monday tuesday wednesday thursday friday saturday sunday january february march april may june july
august september october november december today now week month year quarter sprint spring summer
autumn winter
""")

PLACE_PREPOSITIONS = _words("in at on inside within")
# "in progress", "on fire": no places.
NON_PLACES = _words("""
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
MANNER_WORDS = _words("""
english german french spanish italian dutch portuguese polish russian chinese japanese korean
json yaml toml xml csv markdown html css sql pdf ascii utf-8 utc cet gmt pst est parquet protobuf
python go rust java kotlin typescript javascript ruby scala elixir php swift c++ c# haskell perl
react vue svelte angular django flask rails parallel memory batches bulk webp png jpeg avro base64
""")
POSSESSIVES = _words("your its his her their my for")
NON_VALUES = _words("""
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
PLAIN_VALUED_NOUNS = _words("""
branch language colour color format editor shell theme day name tool framework database library
provider region environment mode level status role title job profession hobby food drink dish
drink fruit animal season sport genre cuisine protocol encoding layout unit currency plan tier
engine backend storage strategy policy convention codename nickname username handle channel team
department vendor supplier timezone zone dialect compiler linter formatter runner driver algorithm
model schedule frequency cadence
""")
# What is said of these is an opinion or a wish, or says nothing of the thing meant.
ABSTRACT_NOUNS = _words("""
goal plan problem reason question answer idea point issue result thing fact solution option aim
trick advantage difference catch conclusion challenge hope wish dream trouble cause fix
suggestion proposal alternative choice lesson truth rule rest bottleneck culprit hurdle
""")
UNIQUE_ROLES = _words("""
owner lead leader manager maintainer contact ceo cto cfo coo head boss teacher doctor dentist vet
lawyer accountant captain chair president director editor author administrator admin reviewer
responsible sponsor chef nanny landlord tutor coach mentor
""")
DATED_NOUNS = _words(
    "deadline due launch expiry expiration birthday anniversary wedding cutoff freeze eta"
)

MOVE_VERBS = _words("moved relocated transferred shifted")
CHANGE_VALUE_VERBS = _words("""
changed raised increased lowered reduced set bumped cut shortened extended doubled halved updated
upgraded downgraded adjusted grew fell dropped rose decreased corrected reset
""")
SWITCH_VERBS = _words("switched migrated converted")
RENAME_VERBS = _words("renamed rebranded")
REPLACE_VERBS = _words("replaced superseded")
CHANGE_VERBS = MOVE_VERBS | CHANGE_VALUE_VERBS | SWITCH_VERBS | RENAME_VERBS | REPLACE_VERBS
LOCATION_PARTICIPLES = _words(
    "stored kept located hosted saved held housed found deployed based placed parked"
)
LOCATION_VERBS = _words("lives live sits sit resides reside stays stay lies")
RUN_VERBS = _words("runs run")
SETTING_PARTICIPLES = _words("set limited capped fixed configured")
NAMING_PARTICIPLES = _words("called named")
SCHEDULING_PARTICIPLES = _words("scheduled due booked")
TIME_VERBS = {
    **dict.fromkeys(("starts", "start", "begins", "begin", "happens", "happen"), "time"),
    **dict.fromkeys(("ends", "end", "finishes"), "end"),
    **dict.fromkeys(("closes", "close"), "closing time"),
    **dict.fromkeys(("opens", "open"), "opening time"),
    **dict.fromkeys(("expires", "expire"), "expiry"),
}
MEASURE_VERBS = {
    **dict.fromkeys(("costs", "cost"), "price"),
    **dict.fromkeys(("takes", "take", "lasts", "last"), "duration"),
    **dict.fromkeys(("weighs", "weigh"), "weight"),
}
# Who is something for a thing: "Ana leads billing" is about billing.
ROLE_VERBS = {
    **dict.fromkeys(("owns", "own"), "owner"),
    **dict.fromkeys(("leads", "lead", "heads", "head"), "lead"),
    **dict.fromkeys(("maintains", "maintain"), "maintainer"),
    **dict.fromkeys(("manages", "manage"), "manager"),
}
MANAGE_VERBS = _words("manages manage")
TEAM_NOUNS = _words("team teams department group squad crew office division")
PASSIVE_ROLE_VERBS = {
    "owned": "owner",
    "led": "lead",
    "headed": "lead",
    "maintained": "maintainer",
}
# Verbs whose objects may be many; their negation is what matters.
MULTI_VALUE_VERBS = {
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
STORE_VERBS = _words("store keep host save")  # "we store sessions in Redis"
WORK_VERBS = _words("works work working")
# What is done again and again: "releases are cut on Tuesdays", "we cut releases on Tuesdays".
ROUTINE_VERBS = {
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
PRESENT_ROUTINE_VERBS = frozenset(
    word for word, act in ROUTINE_VERBS.items() if word == act or word.endswith("s")
)
ROUTINE_VERBS["valid"] = "valid"  # for 24 hours
GO_VERBS = _words("go goes")
PERIOD_WORDS = _words("""
day days night nights week weeks weekday month months quarter quarters year years hour hours minute
minutes second seconds sprint sprints weekend morning evening afternoon h min s
""")
# Verbs in front of a number of things: "the API returns 100 items per page".
COUNT_VERBS = {
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
NON_COUNT_NOUNS = _words("error errors status code codes response responses http ok")
# Verbs that lead somewhere, with the prepositions they lead by.
TARGET_VERBS = {
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
MADE_PARTICIPLES = _words("""
built written tested managed packaged formatted linted compiled bundled generated styled deployed
provisioned monitored tracked documented rendered implemented hosted signed installed sent
handled processed pushed uploaded published exported forwarded synced
""")
MADE_PREPOSITIONS = _words("with in using via through by from to into")
# Roles that one person has at a time, if something is added to them.
ROLE_NOUNS = UNIQUE_ROLES | _words(
    "engineer developer designer architect scientist analyst officer master"
)
# States that follow one another, and those that exclude each other.
OPEN_STATUSES = _words("""
pending open unfinished incomplete queued blocked unresolved unmerged ongoing underway in-progress
paused outstanding
""")
DONE_STATUSES = _words("""
done finished complete completed closed resolved merged shipped released deployed live cancelled
canceled abandoned
""")
STATUS_TOGGLES = tuple(
    _words(pair)
    for pair in (
        "enabled disabled", "active inactive", "public private", "required optional",
        "mandatory optional", "allowed forbidden", "locked unlocked", "online offline", "on off",
    )
)  # fmt: skip
STATUS_WORDS = OPEN_STATUSES.union(DONE_STATUSES, *STATUS_TOGGLES)
# Such things come and go, each another one: the bug, the ticket, the weather.
TRANSIENT_NOUNS = _words("""
bug error ticket issue invoice endpoint temperature weather score task order request incident alert
exception commit build meeting call appointment flight train answer result problem question idea
example page line file function customer author reviewer
""")
# The next one is another one, though it is called the same.
PROBLEM_NOUNS = _words(
    "bug error issue problem exception incident crash leak regression failure outage"
)
# Of these it is not known which one is pending or done, unless a number says so.
AMBIGUOUS_STATUS_NOUNS = TRANSIENT_NOUNS | _words("""
deployment deploy pipeline job run release branch pr prs mr patch change review test tests door shop
window store fix feature account user office
""")
# What runs something, rather than being it: "the server was upgraded to Ubuntu 24.04".
RUNTIME_NOUNS = _words("""
server servers machine host cluster laptop vm box image container node backend frontend app service
project site website repo
""")
_TIME_WORD_TEXT = """
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
fridays saturdays sundays january february march april june july august september october november
december noon midnight o'clock weekdays weekends daily weekly monthly yearly quarterly nightly
hourly half quarter morning mornings evening evenings afternoon afternoons am pm utc
"""
TIME_WORDS = _words(_TIME_WORD_TEXT)
RECURRING_TIME_WORDS = _words("""
mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends daily weekly
monthly yearly quarterly nightly hourly every mornings evenings afternoons
""")
NUMBER_WORDS = _words("""
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
