"""Data of the demo year: team, services, facts, decisions, plans and incidents.

Months are counted from the first day of the year; 0.5 is the middle of the first
month.
"""

from __future__ import annotations

from typing import NamedTuple


class Person(NamedTuple):
    """A member of the team; ``leaves`` is None for those who stayed."""

    name: str
    work: str
    joins: float = 0.0
    leaves: float | None = None


class FactHistory(NamedTuple):
    """A fact that was corrected: month and text of each version, oldest first."""

    key: str
    topic: str
    told: tuple[tuple[float, str], ...]


class Incident(NamedTuple):
    """An incident: symptom, open question, blocker, cause, fix and lesson."""

    ticket: str
    month: float
    service: str
    seen: str
    doubt: str
    blocker: str
    cause: str
    fix: str
    lesson: str


class PlanOutcome(NamedTuple):
    """An intention, and its later outcome."""

    key: str
    month: float
    intention: str
    after: float
    outcome: str


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
    FactHistory("deploy-key", "ops", (
        (0.2, "The deploy key is in vault A"),
        (4.1, "The deploy key moved to vault C"),
        (8.6, "The deploy key moved to vault F"),
    )),
    FactHistory("gateway-limit", "gateway", (
        (0.3, "The rate limit of the gateway is 60 requests per second"),
        (3.2, "The rate limit of the gateway was raised to 120 requests per second"),
        (7.7, "The rate limit of the gateway was raised to 200 requests per second"),
    )),
    FactHistory("hold", "booking", (
        (0.4, "The seat hold lasts 20 minutes"),
        (5.5, "The seat hold lasts 12 minutes now"),
    )),
    FactHistory("backup", "ops", (
        (0.5, "The nightly backup runs at 02:30 UTC"),
        (6.1, "The nightly backup moved to 04:10 UTC"),
    )),
    FactHistory("renamed", "services", (
        (2.8, "The seat-map service is called deckplan"),
        (9.1, "The seat-map service is now called saloon"),
    )),
    FactHistory("price-owner", "team", (
        (0.3, "Tilde owns the price-engine"),
        (7.1, "The owner of the price-engine is now Joonas"),
    )),
    FactHistory("provider", "payments", (
        (0.2, "The payment provider is Quaymint"),
        (5.9, "The payment provider changed from Quaymint to Tollbridge"),
    )),
    FactHistory("staging", "ops", (
        (0.6, "The staging host is pier-2"),
        (4.9, "The staging host is pier-9 now"),
    )),
    FactHistory("retention", "ops", (
        (0.8, "The log retention is 30 days"),
        (3.9, "The log retention was raised to 90 days"),
        (10.2, "The log retention was lowered to 45 days"),
    )),
    FactHistory("standup", "team", (
        (0.1, "The standup is at 09:15"),
        (6.4, "The standup moved to 09:45"),
    )),
    FactHistory("app-version", "mobile", (
        (1.1, "The minimum app version is 3.2"),
        (8.0, "The minimum app version is now 4.0"),
    )),
    FactHistory("feed-cache", "timetable", (
        (0.9, "The cache lifetime of the timetable is 300 seconds"),
        (2.9, "The cache lifetime of the timetable was cut to 60 seconds"),
    )),
    FactHistory("database", "ops", (
        (0.2, "The main database is PostgreSQL 15"),
        (9.8, "The main database is now PostgreSQL 17"),
    )),
    FactHistory("room", "team", (
        (0.7, "The team room is Kelp"),
        (7.9, "The team room is now Anemone"),
    )),
    FactHistory("ledger-region", "payments", (
        (1.4, "The region of the ledger is eu-north"),
        (10.6, "The region of the ledger is now eu-west"),
    )),
    FactHistory("support-phone", "support", (
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
    PlanOutcome("offline", 1.0, "Plan: boarding passes work offline before the summer.", 4.6,
         "The offline boarding pass shipped in all harbours; the plan of the spring is done."),
    PlanOutcome("voice", 2.2, "Plan: announce delays by voice at the piers.", 6.0,
         "The plan to announce delays by voice was dropped: neighbours complained in the trial."),
    PlanOutcome("bikes", 3.1, "Plan: sell places for bicycles with the ticket.", 7.4,
         "Bicycle places went live on nine routes, as planned in the spring."),
    PlanOutcome("rota", 4.0, "Plan: an on-call rota of six people instead of three.", 5.8,
         "The on-call rota of six people began; nobody is on duty twice a month any more."),
    PlanOutcome("ledger", 6.3, "Plan: close the books of the ledger every night instead of weekly.", 9.4,
         "The ledger closes its books every night since the autumn, as planned."),
    PlanOutcome("maps", 8.1, "Plan: buy maps of the piers from the port authority.", 10.4,
         "The plan to buy maps of the piers failed: the port authority has none either."),
)  # fmt: skip

INCIDENTS = (
    Incident(
        "FW-104", 0.7, "booking-api", "every third booking ended in an error from 07:40 on",
        "do the two workers share one connection pool?", "the heap dump that only Oskar can take",
        "a pool of ten connections shared by two workers",
        "each worker has a pool of its own", "count connections per process, not per host",
    ),
    Incident(
        "FW-131", 1.3, "notify-worker", "delay notices for Hvaler came an hour late",
        "is the queue asleep?", "the log of the text message provider",
        "a clock on the worker that ran an hour behind",
        "the host takes its time from two servers", "alarm when a host's clock is off by a second",
    ),
    Incident(
        "FW-158", 1.8, "pier-board", "the screens in Ostervik stayed black after a storm",
        "did the cable or the player fail?", "a ladder for the mast at the pier",
        "water in the plug of the player", "plugs are sealed and the players stand inside",
        "have one spare player in every harbour",
    ),
    Incident(
        "FW-177", 2.3, "price-engine", "families were charged for four adults",
        "who reads the ages first?", "the fare table of the operator",
        "ages that were compared as text, so that 9 was above 12",
        "ages are numbers from the form to the receipt", "never sort numbers as text",
    ),
    Incident(
        "FW-203", 2.9, "timetable", "sailings of the next day vanished at midnight",
        "is it the time zone?", "a copy of yesterday's feed",
        "a feed that ends its day at 23:00 UTC", "days are cut in the harbour's own time zone",
        "store the zone with every sailing",
    ),
    Incident(
        "FW-219", 3.5, "gangway-app", "the app lost its passes after an update",
        "why are old passes signed twice?", "a phone that still has the old version",
        "a key in the store of the phone that was renamed without a migration",
        "the old key is read once and moved", "test every update from the three versions before",
    ),
    Incident(
        "FW-240", 4.2, "ledger", "the two books differed by 1,204 euro",
        "which of the two is right?", "the export of the bank",
        "refunds that were counted on the day they were asked for, not paid",
        "both books use the day of payment", "compare the books every night",
    ),
    Incident(
        "FW-262", 4.8, "booking-api", "seats stayed held long after people had left",
        "does the timer survive a restart?", "a way to see held seats",
        "hold timers that were kept in memory and lost with a restart",
        "holds expire by a time in the database", "nothing that matters lives in memory alone",
    ),
    Incident(
        "FW-281", 5.4, "notify-worker", "2,300 people got the same delay notice twice",
        "was the message acknowledged?", "the trace of one message",
        "an acknowledgement sent after the mail instead of before the retry",
        "a notice carries a key and is sent once", "every message has an idempotency key",
    ),
    Incident(
        "FW-299", 6.0, "seat-map", "wheelchair places were sold as ordinary seats",
        "who draws the deck plans?", "the plan of the new ship",
        "a layer of the drawing that was hidden when it was exported",
        "the export refuses drawings with hidden layers", "check drawings by machine before use",
    ),
    Incident(
        "FW-318", 6.5, "price-engine", "the winter fare was shown in June",
        "which season does a midnight sailing belong to?", "an answer of the operator",
        "a season that was chosen by the hour of the server",
        "the season goes by the harbour's calendar", "no business rule asks the server's clock",
    ),
    Incident(
        "FW-337", 7.0, "gangway-app", "scanning a pass took nine seconds in the sun",
        "is it the camera or the screen?", "a reader like the one on the piers",
        "a screen that dims itself while a code is shown",
        "brightness goes up as long as a code is shown", "try things outside, at noon",
    ),
    Incident(
        "FW-352", 7.6, "ledger", "closing the books took eleven hours",
        "which query is it?", "a copy of the database to measure on",
        "an index that did not cover the day of payment",
        "an index over day and harbour; closing takes four minutes", "measure on a full copy",
    ),
    Incident(
        "FW-371", 8.2, "timetable", "three harbours had no departures on a Sunday",
        "did the feed change its format?", "the contact at the operator",
        "a feed that began to send weekdays in lower case",
        "names of days are compared without their case", "reject a feed that loses half its rows",
    ),
    Incident(
        "FW-390", 8.9, "booking-api", "payments failed for cards from two banks",
        "is it the new payment provider?", "a test card of either bank",
        "a certificate of Tollbridge that our hosts did not trust",
        "the hosts take certificates from the system's store", "watch certificates expire",
    ),
    Incident(
        "FW-411", 9.6, "pier-board", "screens showed the departures of another harbour",
        "are the addresses of the players unique?", "a list of the players",
        "two players that were set up from one disk image",
        "a player makes its own identity on first start", "identity is made, never copied",
    ),
    Incident(
        "FW-428", 10.3, "notify-worker", "no notice was sent during the gale",
        "why did the queue refuse messages?", "access to the queue's host",
        "a disk that was full of old traces", "traces are removed after a week",
        "alarm at 80 % of every disk",
    ),
    Incident(
        "FW-446", 11.1, "seat-map", "the plan of a ship was mirrored",
        "which side is port?", "the yard that built the ship",
        "a drawing seen from below", "every plan names its bow", "ask somebody who sails",
    ),
)  # fmt: skip
