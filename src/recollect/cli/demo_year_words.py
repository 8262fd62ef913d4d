"""What happened at Ferrywell in a year: the team, its services, what changed and what broke.

Months are counted from the first day of the year that is told; 0.5 is the middle of the first.
"""

from __future__ import annotations

from typing import NamedTuple


class Person(NamedTuple):
    """Somebody of the team; ``leaves`` is None for who stayed."""

    name: str
    work: str
    joins: float = 0.0
    leaves: float | None = None


class Chain(NamedTuple):
    """A fact that was corrected: when it was told, and in which words, oldest first."""

    key: str
    topic: str
    told: tuple[tuple[float, str], ...]


class Incident(NamedTuple):
    """Something that broke: what was seen, what held up the search, why it was, what helped."""

    ticket: str
    month: float
    service: str
    seen: str
    doubt: str
    blocker: str
    cause: str
    fix: str
    lesson: str


class Plan(NamedTuple):
    """What was meant to be done, and what became of it."""

    key: str
    month: float
    meant: str
    after: float
    became: str


TEAM = (
    Person("Nadia", "backend"),
    Person("Oskar", "operations"),
    Person("Lucía", "design"),
    Person("Bram", "mobile"),
    Person("Tilde", "data", leaves=7.2),
    Person("Kwame", "support"),
    Person("Ravi", "backend", joins=2.1),
    Person("Mireille", "testing", joins=3.4),
    Person("Joonas", "data", joins=6.6),
    Person("Saskia", "product", leaves=9.5),
    Person("Emeka", "product", joins=9.0),
)

SERVICES = (
    "booking-api", "seat-map", "price-engine", "notify-worker", "ledger",
    "gangway-app", "pier-board", "timetable",
)  # fmt: skip

PRODUCT = (
    ("product", "Ferrywell sells ferry tickets for 31 small harbours."),
    ("product", "The gangway-app shows a boarding pass that also works without a network."),
    ("product", "pier-board draws the departures on the screens at every pier."),
    ("services", "booking-api holds seats and takes payments; everything else asks it."),
    ("services", "price-engine turns a fare table and a passenger list into one price."),
    ("services", "notify-worker sends delays as text messages and mails."),
    ("services", "ledger keeps every payment twice, once for us and once for the tax office."),
    ("services", "timetable reads the operators' feeds every ten minutes."),
)

GOALS = (
    (0.1, "Goal: a ticket is bought in less than 40 seconds on a bad connection."),
    (3.0, "Goal for the summer: no harbour waits more than a minute for a delay notice."),
    (6.2, "Goal: every refund is paid within two days by the end of the year."),
)

CAVEATS = (
    (0.6, "Never replay the payment queue by hand: in an earlier year 214 people paid twice."),
    (2.5, "Careful: Skarholm has two piers with the same name, tell them apart by their number."),
    (5.1, "Do not restart timetable during the hour before midnight, the feeds change then."),
    (8.3, "The printer at Ostervik cuts off ticket texts longer than 38 characters."),
)

FACTS = (
    Chain("deploy-key", "ops", (
        (0.2, "The deploy key is in vault A"),
        (4.1, "The deploy key moved to vault C"),
        (8.6, "The deploy key moved to vault F"),
    )),
    Chain("gateway-limit", "gateway", (
        (0.3, "The rate limit of the gateway is 60 requests per second"),
        (3.2, "The rate limit of the gateway was raised to 120 requests per second"),
        (7.7, "The rate limit of the gateway was raised to 200 requests per second"),
    )),
    Chain("hold", "booking", (
        (0.4, "The seat hold lasts 20 minutes"),
        (5.5, "The seat hold lasts 12 minutes now"),
    )),
    Chain("backup", "ops", (
        (0.5, "The nightly backup runs at 02:30 UTC"),
        (6.1, "The nightly backup moved to 04:10 UTC"),
    )),
    Chain("renamed", "services", (
        (2.8, "The seat-map service is called deckplan"),
        (9.1, "The seat-map service is now called saloon"),
    )),
    Chain("price-owner", "team", (
        (0.3, "Tilde owns the price-engine"),
        (7.1, "The owner of the price-engine is now Joonas"),
    )),
    Chain("provider", "payments", (
        (0.2, "The payment provider is Quaymint"),
        (5.9, "The payment provider changed from Quaymint to Tollbridge"),
    )),
    Chain("staging", "ops", (
        (0.6, "The staging host is pier-2"),
        (4.9, "The staging host is pier-9 now"),
    )),
    Chain("retention", "ops", (
        (0.8, "The log retention is 30 days"),
        (3.9, "The log retention was raised to 90 days"),
        (10.2, "The log retention was lowered to 45 days"),
    )),
    Chain("standup", "team", (
        (0.1, "The standup is at 09:15"),
        (6.4, "The standup moved to 09:45"),
    )),
    Chain("app-version", "mobile", (
        (1.1, "The minimum app version is 3.2"),
        (8.0, "The minimum app version is now 4.0"),
    )),
    Chain("feed-cache", "timetable", (
        (0.9, "The cache lifetime of the timetable is 300 seconds"),
        (2.9, "The cache lifetime of the timetable was cut to 60 seconds"),
    )),
    Chain("database", "ops", (
        (0.2, "The main database is PostgreSQL 15"),
        (9.8, "The main database is now PostgreSQL 17"),
    )),
    Chain("room", "team", (
        (0.7, "The team room is Kelp"),
        (7.9, "The team room is now Anemone"),
    )),
    Chain("ledger-region", "payments", (
        (1.4, "The region of the ledger is eu-north"),
        (10.6, "The region of the ledger is now eu-west"),
    )),
    Chain("support-phone", "support", (
        (1.6, "The on-call phone number is 0550-1188"),
        (5.3, "The on-call phone number is now 0550-7642"),
    )),
)  # fmt: skip

DECISIONS = (
    (0.5, "queue", "We chose NATS over Kafka for delay notices because one small node is enough."),
    (
        1.2,
        "mobile",
        "We decided to write the boarding pass in Kotlin only, the web view was too slow.",
    ),
    (1.9, "payments", "Decided: refunds go back to the card they came from, never to a voucher."),
    (
        2.6,
        "design",
        "We chose the font Fira Sans for all pier screens, it is legible at 20 metres.",
    ),
    (
        3.3,
        "testing",
        "We agreed to freeze fares in tests with a fixed table from the first of May.",
    ),
    (4.4, "ops", "We decided against Kubernetes: four hosts and systemd do for 31 harbours."),
    (5.2, "booking", "We chose optimistic locking for seats after measuring 0.3 % conflicts."),
    (6.7, "data", "Decided to keep passenger counts per sailing, not per person, for privacy."),
    (7.5, "mobile", "We agreed to drop support for tablets older than six years."),
    (8.8, "support", "We decided that support may refund up to 60 euro without asking."),
    (9.9, "ops", "We chose restic for backups because restores can be rehearsed on a laptop."),
    (10.9, "product", "Decided: no dynamic prices in winter, commuters would pay for tourists."),
)

PREFERENCES = (
    (0.4, "Nadia prefers small pull requests with one subject each."),
    (0.9, "Oskar prefers to be called, not mailed, when a host is down."),
    (1.3, "Lucía prefers comments in the drawing, not in the chat."),
    (2.4, "Ravi likes his reviews before lunch."),
    (3.8, "Mireille prefers test names that are whole sentences."),
    (6.9, "Joonas prefers notebooks to dashboards."),
    (9.3, "Emeka likes numbers in the first line of a proposal."),
)

PLANS = (
    Plan("offline", 1.0, "Plan: boarding passes work offline before the summer.", 4.6,
         "The offline boarding pass shipped in all harbours; the plan of the spring is done."),
    Plan("voice", 2.2, "Plan: announce delays by voice at the piers.", 6.0,
         "The plan to announce delays by voice was dropped: neighbours complained in the trial."),
    Plan("bikes", 3.1, "Plan: sell places for bicycles with the ticket.", 7.4,
         "Bicycle places went live on nine routes, as planned in the spring."),
    Plan("rota", 4.0, "Plan: an on-call rota of six people instead of three.", 5.8,
         "The on-call rota of six people began; nobody is on duty twice a month any more."),
    Plan("ledger", 6.3, "Plan: close the books of the ledger every night instead of weekly.", 9.4,
         "The ledger closes its books every night since the autumn, as planned."),
    Plan("maps", 8.1, "Plan: buy maps of the piers from the port authority.", 10.4,
         "The plan to buy maps of the piers failed: the port authority has none either."),
)  # fmt: skip
