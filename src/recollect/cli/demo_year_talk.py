"""The everyday noise of a year: chat, small observations, edits, questions without an answer."""

from __future__ import annotations

# What two people say to each other, turn by turn; {a} and {b} are their names.
TALKS = (
    (
        "Did you see the fog over {harbour} this morning?",
        "Yes, the {time} sailing waited for twenty minutes.",
        "I will look whether the notice went out.",
        "It did, {n} people got it. Coffee?",
    ),
    (
        "Can you review my branch for {service}? It is {n} lines.",
        "After lunch. Is it the one with the {thing}?",
        "That one. Nothing urgent.",
        "Looks good, two remarks about names.",
        "Thanks, I will take both.",
    ),
    (
        "The build of {service} is red again.",
        "The same test as on {day}?",
        "No, this time it is the {thing}.",
        "I have run it {n} times and it passes here.",
        "Then let us leave it and look tomorrow.",
    ),
    (
        "Who brings cake on {day}?",
        "I do, with {fruit}.",
        "Lovely. We are {n} this time.",
    ),
    (
        "A passenger from {harbour} wrote that the {thing} is confusing.",
        "What did they try to do?",
        "Change the date of a ticket on a phone.",
        "That is three clicks too many, I agree.",
        "I have put it on the list for {day}.",
        "Good. I answer them in the meantime.",
    ),
    (
        "How was your weekend?",
        "We sailed to {harbour}, wind force {n}.",
        "Brave. We stayed in and made jam of {fruit}.",
    ),
    (
        "The meeting about the {thing} is moved to {day}.",
        "Same room?",
        "Same room, {time}.",
        "I will be ten minutes late.",
    ),
    (
        "I am looking at the numbers of {service} for {harbour}.",
        "Anything odd?",
        "A little more traffic on {day}, around {time}.",
        "That is the market. It is so every month.",
        "Right, I had forgotten.",
    ),
    (
        "Is somebody else in the office on {day}?",
        "Me, until {time}.",
        "Then I bring the cable for the {thing}.",
    ),
    (
        "The demo for {harbour} went well.",
        "Did the {thing} hold?",
        "It did, {n} people watched and nobody noticed the rain.",
        "Great. Write down what they asked.",
    ),
)

# Small things somebody or something noted about a service: (layer, words).
OBSERVATIONS = (
    ("context", "{service} answered {n} requests in the hour before {time}"),
    ("context", "{harbour} had {n} passengers more than last {day}"),
    ("context", "{person} looked after {service} on {day}, nothing to report"),
    ("context", "A visitor from {harbour} asked {person} about {service}"),
    ("implementation", "{service} uses the {thing} in module {module} line {n}"),
    ("implementation", "{module} of {service} has {n} tests since {day}"),
    ("implementation", "The {thing} of {service} is read from {module}"),
    ("implementation", "{person} moved the {thing} of {service} into {module}"),
    ("emotion", "{person} was glad about the quiet {day} with {service}"),
    ("emotion", "{person} was tired after the {thing} of {service}"),
)

NOTES = (
    "{person} paired with {other} on {service} for the {thing}",
    "Reviewed {n} lines of {service} with {other}",
    "{person} answered {n} mails from {harbour}",
    "{person} wrote the minutes of the talk about the {thing}",
    "Sorted {n} old tickets of {service}",
    "{harbour} sent a photo of the {thing} at the pier",
    "{person} tried the {thing} on a slow phone, {n} seconds",
    "Small release of {service}, {n} changes, nobody noticed",
    "{person} showed {other} how {module} works",
    "Cleaned up the {thing} in {module}",
)

QUESTIONS = (
    "Should the {thing} of {service} get a separate page?",
    "Why does {harbour} print twice as many tickets on {day}?",
    "Could {module} be shared between {service} and {second}?",
    "Who wants to try the {thing} in {harbour}?",
)

INTENTS = (
    "name the {thing} better",
    "make the {thing} faster by a cache",
    "test the {thing} with {n} passengers",
    "fix a typing error in the {thing}",
    "log less in the {thing}",
    "prepare the {thing} for {harbour}",
)

HARBOURS = (
    "Skarholm", "Ostervik", "Hvaler", "Lindesund", "Brattnes", "Kirkeby", "Tangvall",
    "Fiskaa", "Solvaer", "Granvik", "Marstein", "Eikoy",
)  # fmt: skip
THINGS = (
    "receipt form", "seat legend", "delay banner", "fare table", "login page", "printer queue",
    "status light", "search box", "voucher field", "language menu", "calendar", "weather panel",
    "queue monitor", "export button", "group discount", "luggage rule",
)  # fmt: skip
MODULES = (
    "fares.py", "holds.py", "boards.ts", "Pass.kt", "feeds.py", "notices.py", "refunds.py",
    "decks.ts", "queue.py", "labels.ts", "Scan.kt", "books.py",
)  # fmt: skip
FRUITS = ("plums", "apples", "cloudberries", "rhubarb", "cherries", "blueberries")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
