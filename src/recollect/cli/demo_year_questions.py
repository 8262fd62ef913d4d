"""What can be asked of the year at Ferrywell, what the answer must say, and what it was once."""

from __future__ import annotations

from typing import NamedTuple


class Asked(NamedTuple):
    """A question, words of the memory that answers it, and words of those it replaced."""

    text: str
    says: str
    once: tuple[str, ...] = ()


CORRECTED = (
    Asked("where is the deploy key kept?", "vault F", ("vault A", "vault C")),
    Asked("what is the rate limit of the gateway?", "200 requests", ("60 req", "120 req")),
    Asked("how long does a seat hold last?", "12 minutes", ("20 minutes",)),
    Asked("when does the nightly backup run?", "04:10 UTC", ("02:30 UTC",)),
    Asked("what is the seat-map service called?", "saloon", ("deckplan",)),
    Asked("who is the owner of the price-engine?", "now Joonas", ("Tilde owns",)),
    Asked("which payment provider do we use?", "to Tollbridge", ("provider is Quaymint",)),
    Asked("which host is staging?", "pier-9", ("pier-2",)),
    Asked("how long is the log retention?", "45 days", ("30 days", "90 days")),
    Asked("at what time is the standup?", "09:45", ("09:15",)),
    Asked("what is the minimum app version?", "4.0", ("3.2",)),
    Asked("cache lifetime of the timetable", "60 seconds", ("300 seconds",)),
    Asked("which PostgreSQL does the main database have?", "PostgreSQL 17", ("PostgreSQL 15",)),
    Asked("in which room is the team?", "Anemone", ("Kelp",)),
    Asked("in which region is the ledger?", "eu-west", ("eu-north",)),
    Asked("what is the on-call phone number?", "0550-7642", ("0550-1188",)),
)

STEADY = (
    Asked("why did we choose NATS?", "NATS over Kafka"),
    Asked("why do we not use Kubernetes?", "systemd do for 31 harbours"),
    Asked("which locking do seats use?", "optimistic locking"),
    Asked("how much may support refund without asking?", "up to 60 euro"),
    Asked("which font is on the pier screens?", "Fira Sans"),
    Asked("why were families charged for four adults?", "ages that were compared as text"),
    Asked("what was the root cause of FW-203?", "ends its day at 23:00 UTC"),
    Asked("how was FW-281 fixed?", "carries a key and is sent once"),
    Asked("why was no notice sent during the gale?", "full of old traces"),
    Asked("what did we learn from FW-262?", "nothing that matters lives in memory alone"),
    Asked("may I replay the payment queue by hand?", "214 people paid twice"),
    Asked("what became of the plan to announce delays by voice?", "neighbours complained"),
    Asked("did we get maps of the piers?", "port authority has none"),
    Asked("how does Oskar want to be told that a host is down?", "prefers to be called"),
    Asked("when did Mireille join?", "Mireille joined"),
    Asked("what should the refunds be like by the end of the year?", "paid within two days"),
)

UNKNOWN = (
    "which orchid needs the least light?",
    "who won the chess olympiad in 1972?",
    "how do I knead sourdough?",
    "what does a veterinarian charge for a hamster?",
    "lyrics of the second verse of the anthem",
)

# What the demo shows of them.
SHOWN = (CORRECTED[0], CORRECTED[1], CORRECTED[5], STEADY[5], STEADY[11])
EARLIER = CORRECTED[0]
CASE = "ticket:fw-390"
