"""Which sentences state a fact, and which only look as if they did."""

from __future__ import annotations

from bethink.ingest.facts import extract_fact
from rows import each_row

# subject | attribute | value | how | sentence; "user" is whom "I" stands for
FACTS = """
deploy key | location | vault a | is | The deploy key is in vault A
deploy key | location | vault b | became | the deploy key moved to vault B
deploy key | location | vault b | became | The deploy key moved from vault A to vault B.
deploy key | location | vault b | became | The deploy key is now in vault B
deploy key | location | vault b | became | The deploy key has moved to vault B
deploy key | location | vault b | became | We moved the deploy key to vault B
deploy key | location | vault b | became | Correction: the deploy key is in vault B
deploy key | location | vault b | became | Update: the deploy key was moved to vault B
deploy key | location | vault b | is | Our deploy key lives in vault B
deploy key | location | vault b | is | The deploy key is stored in vault B
deploy key | location | vault a | is not | The deploy key is not in vault A
deploy key | location | vault a | is not | The deploy key isn't in vault A
deploy key | location | vault a | ended | The deploy key is no longer in vault A
production | deploy key location | vault b | is | The deploy key for production lives in vault B
production | deploy key location | vault b | is | Production's deploy key is in vault B
ana | phone number | 555-0142 | is | Ana's phone number is 555-0142
ana | phone number | 555-0199 | became | Ana's phone number is now 555-0199
ana | phone number | 555-0199 | became | Ana's phone number changed to 555-0199
ana | phone number | 555-0199 | is | Ana's new phone number is 555-0199
ana | phone number | 555-0142 | is | The phone number of Ana is 555-0142
billing | uses | postgresql 16 | is | We use PostgreSQL 16 for billing
billing | uses | postgresql 17 | became | We now use PostgreSQL 17 for billing
billing | uses | cockroachdb | became | We switched from MySQL to CockroachDB for billing
billing | uses | postgresql | is not | We do not use PostgreSQL for billing
billing | uses | postgresql | ended | We no longer use PostgreSQL for billing
we | uses | redis | is | We use Redis
we | uses | redis | is not | We don't use Redis
we | uses | redis | ended | We no longer use Redis
we | uses | redis | ended | We stopped using Redis
we | uses | buildkite | became | We replaced Jenkins with Buildkite
we | uses | buildkite | became | Jenkins was replaced by Buildkite
we | uses | cockroachdb | became | We have switched from MySQL to CockroachDB
ledger | uses | cockroachdb | became | We migrated the ledger from MySQL to CockroachDB
billing service | uses | stripe | is | The billing service uses Stripe
api timeout | value | 30s | is | The API timeout is 30 s
api timeout | value | 30s | is | the API timeout is 30 seconds
api timeout | value | 45s | became | The API timeout was raised from 30 s to 45 s
api timeout | value | 45s | became | The API timeout has been increased to 45 seconds
api timeout | value | 10s | became | We lowered the API timeout to 10 s
api timeout | value | 10s | became | I reduced the API timeout from 30 s to 10 s
api | timeout | 30s | is | The API's timeout is 30 s
limit | value | 10 | became | The limit was raised from 5 to 10
uploads | limit | 5 mb | is | The limit for uploads is 5 MB
upload limit | value | 20 mb | became | Since March the upload limit is 20 MB
ben | employer | acme | is | Ben works at Acme
ben | employer | globex | became | Ben now works at Globex
ben | employer | acme | ended | Ben no longer works at Acme
ben | employer | acme | is not | Ben does not work at Acme
user | employer | acme | is | I work at Acme
production | location | eu-west-1 | is | production runs on eu-west-1
production | location | eu-west-1 | is | Production runs in eu-west-1
production | location | us-east-1 | became | Production moved to us-east-1
production | location | us-east-1 | became | Production was moved from eu-west-1 to us-east-1
user | favourite colour | green | is | My favourite colour is green
user | favourite colour | blue | became | My favourite colour is now blue
user | favorite food | ramen | is | My favorite food is ramen
ana | favourite editor | helix | is | Ana's favourite editor is Helix
user | location | berlin | is | I live in Berlin
user | location | lisbon | became | I moved to Lisbon
user | location | lisbon | became | I moved from Berlin to Lisbon
ben | location | berlin | is | Ben lives in Berlin
ben | location | hamburg | became | Ben moved to Hamburg
user | name | marit | is | My name is Marit
user | email | marit@example.org | is | My email is marit@example.org
base branch | value | develop | is | The base branch is develop
base branch | value | main | became | The base branch was changed from develop to main
default branch | value | main | is | The default branch is main
default port | value | 5432 | is | The default port is 5432
max_rows | value | 800 | is | MAX_ROWS is 800
statement_timeout | value | 1500ms | is | statement_timeout is 1,500 ms
statement_timeout | value | 60s | became | statement_timeout was set to 60 s
retention | value | 14days | is | The retention is 14 days
retention | value | 30days | became | We changed the retention to 30 days
vet | value | dr quist | is | The vet is Dr Quist
on-call engineer | value | laz | is | The on-call engineer is Laz
on-call engineer | value | ruben | became | The on-call engineer is now Ruben
billing module | owner | ana | is | Ana owns the billing module
billing module | owner | ana | is | The billing module is owned by Ana
billing module | owner | ben | became | Ben took over the billing module from Ana
billing module | owner | keiko | is | The billing module belongs to Keiko
billing | owner | ana | is | Ana is the owner of billing
heron team | lead | ines okafor | is | Ines Okafor leads the Heron team
heron | lead | ines | is | Ines is the lead of Heron
heron | lead | tomas | became | Tomas is now the lead of Heron
heron | lead | tomas | became | Tomas became the lead of Heron
daily stand-up | time | half past nine in small meeting room | is | The daily stand-up is at half past nine in the small meeting room
daily stand-up | time | quarter past ten | became | Since January the daily stand-up is at a quarter past ten, because Keiko brings the twins
daily stand-up | time | 10:15 | became | The daily stand-up moved to 10:15
releases | time | fridays | is | Releases are on Fridays
releases | time | mondays | became | Releases are now on Mondays
bea | piano lesson time | thursdays at four | is | Bea's piano lesson is on Thursdays at four with Mr Petrossian
piano lesson | time | tuesdays at half past five | became | After the holidays the piano lesson moved to Tuesdays at half past five
deadline | time | 3 may | is | The deadline is 3 May
deadline | time | friday | is | The deadline is on Friday
deadline | time | monday | became | The deadline moved from Friday to Monday
deadline | time | 2026-05-03 | became | The deadline was changed to 2026-05-03
shop | closing time | 18:00 | is | The shop closes at 18:00
backup | time | 3am | is | The backup starts at 3am
annual plan | price | €120 | is | The annual plan costs €120
full build | duration | 19min | is | The full build takes 19 minutes
project | name | heron | is | The project is called Heron
service | name | heron-api | became | The service was renamed to heron-api
service | name | heron-api | became | We renamed the service from ferry to heron-api
office | location | möwenweg 3 | is | Our office is at Möwenweg 3, above the chandlery
office | location | kaistrasse 14 | became | As of February, the office is at Kaistrasse 14
guest network | name | heron-guest | is | The guest network is called heron-guest
api | base url | https://api.example.com/v2 | is | The base URL of the API is https://api.example.com/v2
region | value | eu-west-1 | is | The region is eu-west-1
ana | likes | oysters | is not | Ana does not like oysters
ana | likes | oysters | is | Ana likes oysters
parser | supports | yaml | is | The parser supports YAML
parser | supports | yaml | is not | The parser does not support YAML
certificate | expiry | june | is | The certificate expires in June
releases | time | tuesdays | is | Releases are cut on Tuesdays
releases | time | tuesdays | is | We cut releases on Tuesdays
releases | time | fridays | is | Releases go out on Fridays
backups | time | every night at 2am | is | Backups run every night at 2am
backups | time | every 6h | became | Backups now run every 6 hours
wiki | backups time | 2am | is | Backups of the wiki run at 2am
we | time | fridays | is | We deploy on Fridays
logs | keep for | 30days | is | Logs are kept for 30 days
logs | keep for | 90days | became | We now keep logs for 90 days
sessions | expiry after | 30min | is | Sessions expire after 30 minutes
api | returns item per page | 100 | is | The API returns 100 items per page
api | returns up to item per page | 1000 | became | The API now returns up to 1,000 items per page
team | has member | 6 | became | The team now has 6 members
staging server | uses | ubuntu 22.04 | is | The staging server runs Ubuntu 22.04
staging server | uses | ubuntu 24.04 | became | The staging server was upgraded to Ubuntu 24.04
we | uses | python 3.12 | became | We upgraded to Python 3.12
python version | value | 3.12 | became | The Python version was upgraded to 3.12
on-call engineer | value | alice | is | Alice is the on-call engineer
on-call engineer | value | bob | became | Bob is the on-call engineer now
on-call engineer | value | alice | ended | Alice is no longer the on-call engineer
tech lead | value | bob | became | Bob is the new tech lead
parser | maintainer | ben | became | Ben maintains the parser now
prs | go to | main | became | PRs now go to main
we | deploy to | fly.io | became | We now deploy to Fly.io
frontend | built with | vite | became | The frontend is now built with Vite
frontend | uses for tests | jest | is | The frontend uses Jest for tests
ci | uses | github actions | became | We use GitHub Actions for CI now
user | prefers | spaces | became | I prefer spaces now
user | prefers | tabs | became | I prefer tabs over spaces
we | uses | pnpm | became | We use pnpm instead of npm
migration | status | pending | is | The migration is pending
migration | status | in-progress | is | The migration is in progress
migration | status | completed | became | The migration was completed yesterday
checkout flag | status | disabled | became | The checkout flag is disabled now
limit | value | 10 | became | The limit is 10 from today
alice | location | rome | became | Alice moved to Rome last month
"""

TRAPS = """
Where is the deploy key?
Is the deploy key in vault A?
If the deploy key is in vault A, rotate it
The deploy key may be in vault A
The deploy key might be in vault B
I think the deploy key is in vault A
Ana says the deploy key is in vault A
According to Ben the deploy key is in vault A
Maybe the limit is 5
The limit should be 10
The limit could be raised to 10
We plan to move the deploy key to vault B
We will move the deploy key to vault B
We want to switch from MySQL to PostgreSQL
The office moves to Kaistrasse 14 in February
Let's move the deploy key to vault B
Move the deploy key to vault B
Set the API timeout to 30 s
We also use Redis
We use Redis too
We use Redis and PostgreSQL for billing
The values are 5 and 10
The keys are in vault A, vault B and vault C
The deploy key is in vault A or vault B
Ana's phone numbers are 555-0142 and 555-0199
Ana has two phones
The deploy key was in vault A
The deploy key used to be in vault A
Until now the booking ledger lived in a single MySQL server
The deploy key was in vault A until March
Ben is in Berlin today
Ben is in Berlin
Ana is on vacation
The server is on fire
The build is broken
The API is slow
The limit is too low
The tests are flaky
The branch is stale
The deployment is in progress
The ticket is on hold
Redis is a cache
Postgres is a database with row-level security
The boiler is a Vaillant ecoTEC plus
It is in vault A
This is in vault A
That moved to vault B
They moved to Berlin
Someone moved the key
A key is in vault A
One of the keys is in vault A
Every key is in vault A
Some keys are in vault A
Each server runs on Linux
Most services run on Python 3.12
The old deploy key is in vault A
The previous limit was 5
The first meeting is at nine
The other key is in vault C
The key changed hands
The meeting moved quickly
Ben moved the meeting
Prices rose
The limit was raised
I would prefer green
My favourite colours are green and blue
What if production runs on eu-west-1
When the limit is 10 the build fails
The key is in vault A, I believe
Remember to move the deploy key to vault B
TODO: move the deploy key to vault B
Never move the deploy key to vault B
Sometimes the backup starts at 3am
Usually the deploy key is in vault A
The deploy key is probably in vault A
The fix works for me
The plan works for most teams
For example the limit is 5
The limit depends on the plan
The report said the limit is 5
We discussed moving to PostgreSQL
Ana and Ben work at Acme
He works at Acme
She lives in Berlin
There is a key in vault A
The limit is unknown
The limit is the same
The value is reached
The deadline is near
The price is high
The deadline is tight
"The deploy key is in vault A"
- The deploy key is in vault A
The meeting is about the budget
The talk was great
Alice met Bob at the conference
We went to Berlin
Yesterday Ben was in Berlin
The disk of walrus filled up
Friday's release failed
The team is happy with PostgreSQL
The second server is at Hetzner
We tried PostgreSQL for billing
The word limit is ambiguous
The team is in a meeting
The servers are in good shape
Make sure the port is 5432
The best option is Redis
The goal is 99.9% uptime
The library is well documented
The button is on the left
The feature is in the works
The ball is in your court
The bug is in the parser
The branch is ahead of main
The parcel is on its way
The keys are on the table
The head of the table is Ana's place
Our backup strategy is sound
The concert is in Lyon on Saturday
The function is called twice
The method is called by the parser
The class is named badly
The fix was moved to the next release
Sounds like fun
The hotline takes about 340 calls a week
Releases were cut on Tuesdays
We shipped on Tuesdays
Releases are cut on Tuesdays and Fridays
With caching, the timeout is 5 s
As a guest, the limit is 5
From the office, the limit is 5
From 5 users on, the limit is 10
After midnight the limit is 10
The API returns 404 errors
The API returns 404
The API returned 50 items per page
The API returns 50 items and 3 links
Ana has three cats
Alice is an on-call engineer
Alice is the engineer
Bob is the new frontend engineer
Alice was the on-call engineer
Ben goes to Berlin
Terraform manages the servers
The build is pending
The PR is merged
The migration is almost done
The migration is done in staging
The flag was disabled
The staging server runs well
Marta left, Tomek took over the billing module
Marta left so Tomek owns the billing module
Marta quit so Tomek is the owner of billing
Heads up: Ana owns billing
Team retro: Ana took over the billing module
"""


def rows(table: str) -> list[str]:
    return [line for line in table.strip().splitlines() if line.strip()]


@each_row("row", rows(FACTS))
def test_a_statement_gives_its_fact(row):
    """Subject, attribute, value and whether it is so, became so, is not so or ended."""
    subject, attribute, value, how, sentence = (part.strip() for part in row.split("|"))

    fact = extract_fact(sentence, "user")

    assert fact is not None
    assert (fact.subject, fact.attribute, fact.value, fact.how) == (subject, attribute, value, how)


@each_row("sentence", rows(TRAPS))
def test_what_is_no_plain_fact_gives_none(sentence):
    """Questions, guesses, plans, orders, hearsay, lists, the past, descriptions."""
    assert extract_fact(sentence, "user") is None
