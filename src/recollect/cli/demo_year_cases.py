"""What broke at Ferrywell in a year, and what was found out: twenty-odd tickets."""

from __future__ import annotations

from recollect.cli.demo_year_words import Incident

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
