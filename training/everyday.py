"""Short notes and questions as people keep and ask them, written by rule.

The documents of a software archive hold few of them. The sentences are only read by the
teacher, so it does no harm that they are true of nobody.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

COUNT = 70_000

WORDS = {
    "name": """Alice Bruno Carla Dmitri Elena Farid Greta Hiro Ines Jonas Keiko Lars Mina Nadia
Oscar Priya Quentin Rosa Stefan Tara Umar Vera Wei Ximena Yusuf Zoe Marta Luca Hannah Tom Emily
Ahmed Julia Peter Sofia Ivan Chloe Raj Linda Marcus""",
    "relative": """mother|father|sister|brother|son|daughter|wife|husband|grandmother|uncle|cousin
|neighbour|best friend|boss|landlord|teacher|roommate|niece|nephew|colleague|partner|aunt""",
    "city": """Lisbon Oslo Toronto Nairobi Kyoto Dublin Vienna Austin Seville Prague Lima Hamburg
Leeds Turin Melbourne Boston Ghent Malmö Krakow Denver""",
    "country": """Portugal|Norway|Japan|Kenya|Canada|Peru|Italy|Greece|Iceland|Vietnam|Ireland
|Morocco|New Zealand|Scotland""",
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "month": """January February March April May June July August September October November
December""",
    "food": """peanuts|shellfish|gluten|lactose|mushrooms|coriander|strawberries|eggs|soy|cheese
|spicy food|coffee|red wine|fish|tomatoes|sesame""",
    "dish": """lasagne|ramen|paella|pancakes|lentil soup|apple pie|fried rice|tacos|risotto
|chocolate cake|sourdough bread|curry""",
    "pet": "dog|cat|rabbit|parrot|hamster|tortoise|pony|goldfish",
    "petname": "Biscuit Luna Pixel Mango Shadow Pepper Waffles Ziggy Olive Rusty",
    "hobby": """cycling|climbing|playing chess|painting|gardening|swimming|baking|photography
|learning the violin|hiking|knitting|birdwatching|running|pottery|sailing|learning Spanish
|woodworking|yoga|playing football|reading crime novels""",
    "job": """nurse|architect|lawyer|electrician|software engineer|teacher|chef|accountant
|journalist|bus driver|pharmacist|designer|plumber|translator|dentist|police officer|biologist""",
    "illness": """migraine|asthma|a broken wrist|diabetes|high blood pressure|a sore back|hay fever
|a torn knee ligament|insomnia|an ear infection|anaemia|arthritis""",
    "medicine": """ibuprofen|insulin|antibiotics|an inhaler|vitamin D|iron tablets|blood thinners
|antihistamines|eye drops|painkillers""",
    "thing": """bicycle|washing machine|laptop|phone|car|camera|printer|fridge|boiler|piano|tent
|router|oven|suitcase|lawn mower|headphones|sofa|dishwasher|spare key|passport|drill""",
    "place": """kitchen drawer|garage|attic|basement|blue box under the bed|office safe|hall cupboard
|glove compartment|top shelf|garden shed|filing cabinet|neighbour's house""",
    "colour": "red blue green yellow black white grey purple orange brown",
    "number": "2 3 4 5 6 7 8 9 10 12 15 18 20 24 30 40 45 60 75 90 120 250 500",
    "money": """$12|$45|$80|$120|$350|$1,200|€15|€60|€240|€900|£25|£400|$2.5 million|$15,000""",
    "hour": "7 am|8:30|9 o'clock|10:15|noon|2 pm|3:30|5 pm|18:00|19:45|midnight",
    "year": "1987 1994 2003 2008 2012 2015 2018 2019 2020 2021 2022 2023 2024 2025 2026",
    "service": """billing service|search index|login page|payment gateway|mobile app|data warehouse
|message queue|image resizer|notification worker|API gateway|checkout|admin panel|cache
|user directory|report generator|build server|staging cluster|backup job|load balancer""",
    "tool": """PostgreSQL|Redis|Kafka|Terraform|Kubernetes|Grafana|Jenkins|Docker|React|Django|Rust
|Go|TypeScript|GraphQL|RabbitMQ|Elasticsearch|Nginx|MongoDB|GitHub Actions|Python|S3|Ansible
|Prometheus|Sentry|MySQL|Java|gRPC|Spark|Airflow|SQLite""",
    "failure": """runs out of memory|times out|returns a 500 error|loses messages|shows a blank page
|drops connections|fills the disk|retries forever|rejects valid tokens|duplicates orders
|crashes at start-up|is slow on Mondays|deadlocks under load|shows the wrong currency
|sends emails twice|rounds prices wrongly""",
    "cause": """a missing index|an expired certificate|a race condition|a full disk|a wrong time zone
|a memory leak|a bad migration|an outdated library|a typo in the configuration|a network partition
|a retry storm|a stale cache|a lost environment variable|too many open files""",
    "practice": """code reviews|feature flags|trunk-based development|pair programming|daily stand-ups
|weekly releases|blue-green deployment|on-call rotation|design documents|load tests
|post-mortems|canary releases|nightly backups|two-factor login""",
    "team": "platform|payments|mobile|data|support|security|design|sales|finance|hiring|legal",
    "company": """Northwind|Acme|Globex|Initech|Umbrella Foods|Blue Harbour|Larkspur|Fenwick Media
|Orchid Bank|Pinecrest School""",
    "complaint": """the parcel arrived damaged|the invoice shows the wrong address|the refund is late
|the app logs her out|the password reset mail never arrives|the subscription was charged twice
|the discount code is rejected|the export is empty|the order was cancelled by mistake
|the printer jams|the delivery went to the wrong house|the screen flickers""",
    "remedy": """send a replacement|give a full refund|reset the account by hand|ask for the order number
|escalate to the second line|offer a voucher|clear the cookies|update the firmware|call the customer
|reissue the invoice|extend the trial|restart the router|apologise in writing""",
    "film": """documentaries|horror films|science fiction|romantic comedies|musicals|old westerns
|detective series|cooking shows|nature programmes""",
    "event": """wedding|birthday party|dentist appointment|school play|job interview|parents' evening
|concert|book club|driving test|marathon|house move|team offsite|board meeting|product launch
|graduation|holiday|performance review|quarterly planning|eye test|flight""",
    "subject": """budget|roadmap|new office|hiring plan|pricing page|data retention policy|logo
|holiday calendar|travel policy|release notes|security audit|onboarding guide|API contract
|customer survey|contract renewal|style guide""",
}  # fmt: skip

# A note and questions for it; {x} is one word of a list, the same in both.
TOPICS = [
    ("My {relative} {name} is allergic to {food}.|{name} ({relative}) can't eat {food}.|No {food} for {name}, it makes them ill.",
     "what should I not cook for my {relative}?|which foods does {name} have to avoid?|does anyone in the family have an allergy?|can I serve {food} to {name}?"),
    ("{name} works as a {job} in {city}.|My {relative} became a {job} in {year}.|{name} left the job as a {job} and moved to {city}.",
     "what does {name} do for a living?|where does {name} work?|what is my {relative}'s profession?|who earns money as a {job}?|who do I know in {city}?"),
    ("{name} moved to {city} in {month} {year}.|We lived in {city} until {year}.|My {relative} now lives in {country}.",
     "where does {name} live now?|which town is {name}'s home?|when did {name} relocate?|how long have they been living there?"),
    ("The {pet}'s name is {petname}.|Our {pet} {petname} is {number} years old.|{petname} the {pet} sees the vet in {month}.",
     "what is our pet called?|how old is the animal?|when is the check-up for {petname}?|which pets do we have?"),
    ("{name} loves {hobby}.|I started {hobby} in {year}.|{name} gave up {hobby} because of {illness}.|Every {day} evening {name} goes {hobby}.",
     "what does {name} do in their free time?|which hobby did I take up?|what would be a good present for {name}?|how does {name} spend the {day}?|why did {name} stop?"),
    ("{name} has {illness} and takes {medicine}.|The doctor prescribed {medicine} for {illness}.|{number} mg of {medicine} every morning.",
     "what medication is {name} on?|what health problem does {name} have?|how is the {illness} treated?|what dose should be taken?"),
    ("The {thing} is in the {place}.|I put the {thing} into the {place}.|The manual of the {thing} lies in the {place}.",
     "where did I put the {thing}?|where is the {thing} kept?|what is stored in the {place}?|I can't find the {thing}"),
    ("The {thing} broke in {month}; the repair cost {money}.|We bought a {colour} {thing} for {money}.|The warranty of the {thing} ends in {month} {year}.",
     "how much did we pay for the {thing}?|until when is the {thing} covered?|what colour is the {thing}?|what was expensive to fix?"),
    ("{name}'s {event} is on {day} at {hour}.|The {event} was moved from {day} to {month} {number}.|{event} with {name}: {day}, {hour}, {city}.",
     "when is the {event}?|what time do I have to be there?|what is planned for {day}?|has the date of the {event} changed?|what appointments do I have with {name}?"),
    ("{name} likes {film} and hates {food}.|We always eat {dish} on {day}s.|{name}'s favourite dish is {dish}.|{name} prefers {colour} to every other colour.",
     "what should we watch with {name}?|what does {name} like to eat?|what is for dinner on {day}?|which colour does {name} like best?"),
    ("We decided to use {tool} for the {service}.|The {service} moved from {tool} to another system in {month}.|{name} wants to replace {tool} in the {service}.|We dropped {tool}: too much maintenance.",
     "what technology does the {service} run on?|why did we choose {tool}?|what did we stop using?|which database do we use?|what is the {service} built with?"),
    ("The {service} {failure} because of {cause}.|Fixed: the {service} {failure}. It was {cause}.|When the {service} {failure}, check for {cause} first.|Outage on {day}: {cause} in the {service}.",
     "why was the {service} broken?|what to do when the {service} {failure}?|what was the root cause of the outage?|has this happened before?|how do I debug the {service}?"),
    ("The {team} team does {practice} since {year}.|{practice} is mandatory for the {team} team.|No {practice} on {day}s, {name} said.|{name} is in charge of {practice}.",
     "how does the {team} team work?|who is responsible for {practice}?|what rules do we have about {practice}?|are we allowed to do this on {day}?"),
    ("{name} from the {team} team owns the {service}.|Ask {name} for access to the {service}.|{name} is on call until {day}.|{name} reviews everything that touches the {service}.",
     "whom do I ask about the {service}?|who can give me permission?|who should review my change?|who is reachable at night this week?"),
    ("The timeout of the {service} is {number} seconds.|The {service} keeps data for {number} days.|At most {number} requests per second reach the {service}.|The {service} costs {money} a month.|The {service} listens on port 80{number}.",
     "how long before the {service} gives up?|for how long do we store data?|what is the rate limit?|how expensive is the {service}?|which port does it use?"),
    ("Customer {company}: {complaint}.|{name} at {company} says {complaint}.|If {complaint}, {remedy}.|For {company} we always {remedy}.",
     "what is the problem at {company}?|what do we do if {complaint}?|which client is unhappy?|how do we make up for it?|what did {name} complain about?"),
    ("{company} pays {money} a year until {month} {year}.|{company} has {number} seats.|Contact at {company}: {name}, {job} in {city}.|{company} cancelled in {month}.",
     "how much is the contract with {company} worth?|when does the agreement end?|who is our contact person?|how many licences do they have?|which customer left us?"),
    ("The {team} team agreed on the {subject} on {day}.|{name} writes the {subject} by {day}.|The {subject} is late because {name} is ill.|New {subject}: no more than {number} pages.",
     "who is working on the {subject}?|what is the state of the {subject}?|what did we settle in the meeting?|when is the {subject} due?|what is holding things up?"),
    ("Trip to {country} in {month}: {number} nights in {city}, {money}.|We fly to {city} on {day} at {hour}.|{name} booked the hotel in {city} for {money}.|I have never been to {country}.",
     "where are we going on vacation?|when does the plane leave?|how much is the accommodation?|which countries have I visited?|what are the travel plans for {month}?"),
    ("Rent is {money}, due on the {number}th.|The wifi password is on the {place}.|The {thing} is insured with {company}.|{name} owes me {money}.|I save {money} every month for a {thing}.",
     "what do we pay for the flat?|how do guests get online?|who borrowed money?|what am I putting money aside for?|which insurer covers it?"),
    ("I think we should not touch the {service} before {month}.|Remember: never restart the {service} during office hours.|Always run the tests before deploying the {service}.|The old {service} was switched off in {year}.",
     "may I restart the {service} now?|is it fine to change the {service} this week?|what must be done before a deployment?|does the old {service} still exist?"),
]  # fmt: skip

_LISTS = {
    name: [word.strip() for word in (text.split("|") if "|" in text else text.split())]
    for name, text in WORDS.items()
}
_OPENINGS = (
    "",
    "",
    "",
    "",
    "Note: ",
    "FYI, ",
    "By the way, ",
    "Today: ",
    "Update: ",
    "I heard that ",
)
_POLITE = (
    "",
    "",
    "",
    "",
    "can you tell me ",
    "do you remember ",
    "remind me: ",
    "I forgot, ",
    "hey, ",
)


def pairs() -> Iterator[tuple[str, str]]:
    """Questions with notes that may answer them, always the same ones."""
    draw = random.Random(1)
    for _ in range(COUNT):
        notes, questions = draw.choice(TOPICS)
        words = {name: draw.choice(some) for name, some in _LISTS.items()}
        note = draw.choice(_OPENINGS) + draw.choice(notes.split("|"))
        question = draw.choice(_POLITE) + draw.choice(questions.split("|"))
        if draw.random() < 0.25:
            more = {name: draw.choice(some) for name, some in _LISTS.items()}
            note += " " + _fill(draw.choice(draw.choice(TOPICS)[0].split("|")), more)
        if draw.random() < 0.12:
            question = " ".join(re.findall(r"\{\w+\}|\w{4,}", question)[-3:])
        yield _fill(question, words), _fill(note, words)


def _fill(template: str, words: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: words[found[1]], template)
