"""Pairs of statements, and what the second is to the first: tables for tests.

A line is an older statement and a newer one. Whoever finds a pair that is judged wrongly adds
it here.
"""

from __future__ import annotations

# The newer one says what is so now; the older one leaves recall.
SUPERSEDED = """
Logs are kept for two weeks | Logs are kept for three weeks
I prefer spaces over tabs | I prefer tabs now
Alice is the owner of billing | Bob is the owner of billing now
The database is PostgreSQL 15 | The database was upgraded to PostgreSQL 16
The job retries 3 times | The job retries 5 times
We run backups at 2am | We now run backups at 4am
The API timeout is 30 s | The API timeout was raised from 30 s to 45 s on Monday
We use Jira | We switched from Jira to Linear in February
The report is sent on Mondays | We now send the report on Fridays
The Python version is 3.9 | The Python version is 3.12
The Python version is 3.9 | The Python version was upgraded to 3.12
We use Node 18 for the frontend | We now use Node 20 for the frontend
From now on, the limit is 5 | The limit is 10 from now on
Deploys happen on Thursdays | Deploys now happen on Mondays
The job runs every two weeks | The job runs every four weeks
The retention is seven days | The retention is thirty days
The worker has 4 threads | The worker has 8 threads
The cluster runs Kubernetes 1.28 | The cluster was upgraded from Kubernetes 1.28 to Kubernetes 1.29
The report is sent at 9am | The report is sent at 11am
Our linter is flake8 | Our linter is now ruff
My timezone is CET | My timezone is now PST
The production database is on db1.example.com | The production database moved to db2.example.com
The maintainer of the parser is Ana | The maintainer of the parser is now Ben
The release manager is Ana | The release manager is now Ben
The launch is on May 3 | The launch was moved to May 17
We replaced Jenkins with Buildkite | We replaced Buildkite with Dagger
Releases are cut on Tuesdays | Releases are cut on Fridays
Releases are cut on Tuesdays | Releases moved to Fridays
We cut releases on Tuesdays | Releases are now cut on Fridays
The staging server runs Ubuntu 22.04 | The staging server runs Ubuntu 24.04 now
The staging server runs Ubuntu 22.04 | The staging server runs Ubuntu 24.04
The staging server runs Ubuntu 22.04 | The staging server was upgraded to Ubuntu 24.04
Alice is the on-call engineer | Bob is the on-call engineer now
The on-call engineer is Alice | Bob is now the on-call engineer
Alice is the tech lead | Bob is the new tech lead
Alice is the on-call engineer | Alice is no longer the on-call engineer
We use Jenkins for CI | We now use GitHub Actions for CI
We use Jenkins for CI | We use GitHub Actions for CI now
We use Jenkins for CI | We switched from Jenkins to GitHub Actions for CI
The project deadline is March 15 | The project deadline was moved to April 2
The project deadline is March 15 | The project deadline moved to 2027-04-02
The project deadline is March 15 | The project deadline is April 2
Backups run every night at 2am | Backups run every night at 4am
Backups run every 6 hours | Backups run every 12 hours
Backups run at 2am | Backups moved to 4am
The API returns 100 items per page | The API returns 50 items per page
The API returns 1,000 items per page | The API now returns 500 items per page
The team has 5 members | The team now has 6 members
The queue holds 500 jobs | The queue holds 2,000 jobs
Logs are kept for 30 days | Logs are kept for 90 days
We keep logs for 30 days | Logs are now kept for 90 days
The certificates are rotated every 90 days | The certificates are rotated every 30 days
The default branch is master | The default branch is main now
PRs go to develop | PRs now go to main
We branch off develop | We now branch off main
Ana maintains the parser | Ben maintains the parser now
The parser is maintained by Ana | The parser is now maintained by Ben
Alice reports to Carol | Alice now reports to Dana
We use Python 3.11 | We upgraded to Python 3.12
We use Python 3.11 | We now use Python 3.12
We use Python 3.11 | We upgraded from Python 3.11 to Python 3.12
The project requires Python 3.10 | The project now requires Python 3.11
The service listens on port 8080 | The service now listens on port 9090
The staging URL is https://staging.example.com | The staging URL is https://stage.example.com
The docs are at docs.example.com | The docs moved to wiki.example.com
The API points to https://a.example.com | The API now points to https://b.example.com
Standups are held on Mondays | Standups are now held on Wednesdays
The sprint lasts two weeks | The sprint lasts three weeks
The limit is 1,500 | The limit is now 900
The limit is 5 | The limit is 10 as of today
The limit is 5 | From today, the limit is 10
The limit is 5 | The limit is 10 from now on
Uploads are limited to 10 MB | Uploads are limited to 25 MB
We deploy to Heroku | We now deploy to Fly.io
We deploy on Fridays | We now deploy on Mondays
The frontend is built with Webpack | The frontend is now built with Vite
The backend is written in Python | The backend is now written in Go
I prefer tabs | I prefer spaces now
I prefer tabs over spaces | I prefer spaces over tabs
I prefer tabs | I prefer spaces over tabs
I prefer dark mode | I prefer light mode now
We use npm | We now use pnpm
We use npm | We use pnpm instead of npm
Alice prefers Vim for editing | Alice now prefers Emacs for editing
The migration is pending | The migration is done
The migration is in progress | The migration was completed yesterday
The migration is done | The migration is pending again
Ticket ABC-123 is open | Ticket ABC-123 is closed
The checkout flag is enabled | The checkout flag is disabled
The repo is private | The repo is public now
The wiki is in Notion | The wiki moved to Confluence
The service is called ferry | The service was renamed to heron
Backups run daily | Backups now run weekly
The support rotation is weekly | The support rotation is daily now
Deploys go out on Wednesdays | Deploys go out on Thursdays now
We release every two weeks | We now release every month
Sam is the product manager | Kim is the product manager as of today
Maria manages the QA team | Lena manages the QA team now
The token is valid for 1 hour | The token is valid for 24 hours
Sessions expire after 30 minutes | Sessions expire after 60 minutes
Emails are sent via SendGrid | Emails are now sent via Postmark
Payments are handled by Stripe | Payments are now handled by Adyen
Alice lives in Paris | Alice moved to Rome last month
The rollout is paused | The rollout is complete
The log level is info | The log level is debug now
The feature flag new-ui is enabled | The feature flag new-ui is disabled now
The staging server was upgraded to Ubuntu 24.04 | The staging server runs Ubuntu 26.04
"""

# Perhaps there are two: both stay, and each names the other.
FLAGGED = """
We use Jest for the frontend | We now use Node 20 for the frontend
We use Jest for the frontend | We now use Vite for the frontend
Standups are held on Mondays | Standups are held on Wednesdays
Our servers run Ubuntu 22.04 | Our servers run Ubuntu 24.04
Alice is the on-call engineer | Bob is the on-call engineer
Alice owns the billing module | Bob owns the billing module
We use Python 3.11 | We use Python 3.12
The CI runs Python 3.11 | The CI runs Python 3.12
The staging server runs Ubuntu 22.04 | The staging server now runs Debian 12
The service listens on port 8080 | The service listens on port 8443
Logs go to Loki | Logs go to Datadog
We deploy to Heroku | We deploy to Render
We deploy on Fridays | We deploy on Mondays
The frontend is built with Webpack | The frontend is built with Vite
I prefer tabs | I prefer spaces
I prefer Vim | I prefer Emacs now
We use npm | We use yarn
The migration is done | The migration is pending
The migration is pending | The migration is now blocked
Alice reports to Carol | Alice reports to Dana
Backups run daily | Backups run weekly
The cron runs every hour | The cron runs every 15 minutes
We release every two weeks | We release every month
The webhook points to https://a.example.com | The webhook points to https://b.example.com
We meet at 10:00 | We meet at 14:00
I prefer short answers | I prefer detailed answers now
The rollout is complete | The rollout is paused
"""

# Another subject, one more, the past, a condition, a plan, a question, hearsay, a quotation:
# both stay, whichever is told first, and nothing is said of them.
TRAPS = """
The limit is 10 files | The limit is now 10 during the sale
The limit is 10 for admins | The limit is now 10 during the sale
The limit is 10 for admins | The limit is 10 for guests
Sessions expire after 30 minutes | Sessions now expire after 30 logins
Grafana listens on port 3000 | Prometheus now listens on port 9090
The app uses Redis 6 | The app now uses Postgres 16
The v1 API returns 100 items per page | The v2 API now returns 50 items per page
Ana's laptop runs Ubuntu 22.04 | Ben's laptop now runs Ubuntu 24.04
We switched from Jira to Linear | Support switched from Linear to Zendesk
The staging limit is 5 | The limit is now 10
Logs are kept for 3 reasons | Logs are now kept for 5 reasons
Alice is the owner of billing | Bob is not the owner of billing
We keep logs for 30 days | We keep logs for 90 days in production now
The API returns one item per page | The API returns the first item per page now
The limit is 5 | After midnight the limit is 10
The limit is 5 | From 5 users on, the limit is 10
The limit is 5 | From 6pm the limit is 10
The endpoint returns 200 OK | The endpoint returns 404 OK now
The feature is enabled | The feature is disabled
The office is open | The office is closed
We run tests on Linux | We now run tests on Windows
Billing uses Stripe | We now use PostgreSQL 16 for billing
The docs are at docs.example.com | The API docs moved to wiki.example.com
The Python version is 3.9 | The minimum Python version is now 3.12
The price is 12.50 euros | The price is now 3.12 dollars
The deploy script takes 3 arguments | The deploy script takes 5 minutes now
The service runs in Kubernetes | The service now runs every night
Alice is the owner of billing | Bob is the owner of search now
The error rate is 5% | The error rate is 30 ms now
The README is in English | The README moved to docs
The API key is in vault A | The API key rotation moved to Mondays
Tests run on every push | Tests run nightly
Tests run nightly | Tests on Windows now run weekly
The job runs every night | The job runs every night on staging now
We keep backups for 30 days | We keep logs for 90 days now
I work from home on Fridays | I work from home on Mondays
The parser is maintained by Ana | The lexer is now maintained by Ben
We meet on Mondays | We meet with design on Fridays now
The worker has 4 threads | The worker has 8 connections
The default branch is main | The default branch of the fork is develop
The default branch is main | In the fork the default branch is now develop
We use Redis for caching | We used Memcached for caching
We use Redis for caching | Maybe we now use Memcached for caching
We use Redis for caching | We are going to use Memcached for caching now
We use Redis for caching | We no longer use Redis for sessions
We use Redis for caching | Other teams now use Memcached for caching
The staging server runs Ubuntu 22.04 | The production server runs Ubuntu 24.04 now
The staging database port is 5432 | The production database port is 5433 now
The staging server runs Ubuntu 22.04 | The staging server now runs nginx
The staging server runs Postgres 15 | The staging server runs Redis 7
Alice likes tea | Alice likes coffee
Alice likes tea | Alice likes coffee now
Alice prefers tea | Bob prefers coffee now
Alice prefers Vim for editing | Bob now prefers Emacs for editing
The frontend uses Jest for tests | The backend now uses pytest for tests
The frontend uses Jest for tests | The backend switched from Jest to Vitest for tests
We use pytest for unit tests | We use Playwright for end-to-end tests
We use pytest for unit tests | We now use Playwright for end-to-end tests
We use Redis | We now use Kafka
We use Redis | We use Redis 7 in staging now
We use MySQL | We switched from MySQL to PostgreSQL in staging
We use MySQL | We switched from MySQL to PostgreSQL on staging
We use spaces | We use tabs instead of spaces in Makefiles
I prefer tabs | I prefer spaces in Python
I prefer coffee in the morning | I prefer tea over coffee
I prefer tea | I prefer window seats
The limit is 5 | The limit was raised from 5 to 10 in staging
The limit is 5 | The limit was 10
The limit is 5 | The limit used to be 10
The limit is 5 | Is the limit 10 now?
The limit is 5 | If the limit is 10 now, uploads fail
The limit is 5 | The limit would now be 10
The limit is 5 | Bob says the limit is now 10
The limit is 5 | "The limit is now 10"
The limit is 5 | > The limit is now 10
The limit is 5 | As a guest, the limit is 10
The limit is 5 | With the new plan, the limit is 10
The limit is 5 | From the office, the limit is 10
The limit is 5 | After login, the limit is 10
The limit is 5 | The limit is 10 for admins now
The limit is 5 | The limit is now 10 starting next month
The limit is 5 | The limit is 10 as of January 2030
The limit is 5 MB | The limit is 10 files
The timeout is 30 seconds | The timeout is now 3 retries
With caching, the timeout is 5 s | The timeout is now 60 s
Backups of the wiki run at 2am | Backups run at 4am
Backups run at 4am | Backups of the wiki now run at 2am
Backups run every night at 2am | Backups run every Sunday
Backups run every night at 2am | Backups are tested every night at 4am
Backups run every night at 2am | Backups ran every night at 4am
Backups are kept for 30 days | Backups are deleted after 90 days
Releases are cut on Tuesdays | Releases are now published on Fridays
Releases are cut on Tuesdays | Releases were cut on Fridays
Releases are cut on Tuesdays | Hotfix releases are cut on Fridays
Releases are cut on Tuesdays | Releases are cut on Tuesdays and Fridays
Releases are cut on Tuesdays | The release is cut on Friday
We cut releases on Tuesdays | We cut the release on Friday
We deploy on Fridays | We shipped on Mondays
We deploy on Fridays | We now meet on Mondays
We deploy to Heroku | We deploy to Heroku and Render now
Alice runs on Tuesdays | Bob runs on Fridays now
Alice is the on-call engineer | Bob is the backup on-call engineer now
Alice is the on-call engineer | Bob is an on-call engineer now
Alice is the on-call engineer | Bob was the on-call engineer
Alice is the frontend engineer | Bob is the new frontend engineer
Alice is the reviewer | Bob is the reviewer
Alice owns the billing module | Bob owns the search module now
The API returns 100 items per page | The API returns 50 items per second
The API returns 100 items per page | The admin API now returns 50 items per page
The API returns 404 errors | The API returns 500 errors now
The API returns 100 items per page | The API returned 50 items per page
The API returns 100 items per page | The API returns 50 items per page for guests now
The server has 16 GB of RAM | The server has 500 GB of disk
Ana has two phones | Ana has three cats now
The team has 5 members | The board now has 6 members
The project deadline is March 15 | The design deadline moved to April 2
The project deadline is March 15 | The project deadline might move to April 2
The meeting is on Friday | The meeting moved to 10:00
The migration is pending | The billing migration is done
The migration is pending | The migration is done in staging
The migration is pending | The migration was pending
The migration is pending | The migration is almost done
The migration is done | The migration is merged
The build is pending | The build is done
The PR is open | The PR is merged
The repo is private | The wiki is public now
The checkout flag is enabled | The checkout flag is disabled in production
The cache is enabled | The cache is disabled for tests now
The service listens on port 8080 | The service listens on localhost
Alice reports to Carol | Bob now reports to Dana
PRs go to develop | Hotfixes now go to main
Ben goes to Berlin | Ben now goes to Hamburg
We use feature flags for rollouts | We now use LaunchDarkly for rollouts
The backend is written in Python | The backend is tested in CI now
The frontend is built with Vite | The frontend is built by Ana now
We use Python 3.11 | We now use Postgres 16
We upgraded to Python 3.12 | We use Python 3.12 for scripts
The database is PostgreSQL | The database is now 40 GB
Ana's phone number is 555-0142 | Ben's phone number is now 555-0199
Emails are sent via SendGrid | Emails are sent at 9am now
The worker runs every hour | The worker runs in eu-west-1 now
The parser is written in Rust | The parser is now written in two passes
The docs are built with Sphinx | The docs are now built with love
The docs are built with Sphinx | The docs are built in CI now
The API is tested with Postman | The API is now tested with real customers
Alice is the team lead | Bob is the deputy team lead now
Alice is the team lead | Alice is the product owner now
The lead of search is Ana | The lead of billing is now Ben
Logs go to Loki | Error logs now go to Sentry
Logs go to Loki | Logs go to Loki and S3 now
The cluster has 5 nodes | The cluster has 2 masters now
The cluster has 5 nodes | The cluster had 7 nodes
The page shows 10 results | The page shows 20 results on mobile now
The page shows 10 results | The page shows up to 20 results
The cache keeps 500 entries | The cache keeps 500 MB now
The token is valid for 1 hour | The refresh token is valid for 24 hours now
The token is valid for 1 hour | The token is valid for admins now
Sessions expire after 30 minutes | Admin sessions now expire after 60 minutes
Sessions expire after 30 minutes | Sessions expire at midnight now
Logs are kept for 30 days | Logs are kept for 30 days in staging now
Logs are kept for 30 days | Logs are kept for audits now
Logs are kept for 30 days | Logs are kept in S3 now
Reports are sent every Monday | Reports are reviewed every Tuesday now
We deploy on Fridays | We no longer deploy on Mondays
We deploy to staging on Fridays | We now deploy to production on Mondays
I review PRs on Mondays | Ana now reviews PRs on Fridays
We review PRs on Mondays | We now review designs on Fridays
We use Postgres for billing | Search now uses Elasticsearch for billing
We use Jest for the frontend | We now use Go for the backend
I prefer tabs | My colleague prefers spaces now
I prefer tabs | Ana prefers spaces over tabs
I prefer tabs over spaces | I prefer tea over coffee
I use npm | We now use pnpm
We use npm | The docs site now uses pnpm
We use npm | We now use pnpm for the docs site
We use npm | We tried pnpm instead of npm
We use npm | We could use pnpm instead of npm
We use npm | Use pnpm instead of npm
The migration is pending | The migrations are done
The migration is pending | The migration plan is done
The migration is pending | Part of the migration is done
The migration is pending | The migration is not done
The migration is pending | The migration is done, says Bob
The migration is pending | The migration is half done
The flag is enabled | The flag was disabled
The flag is enabled | The flag is disabled by default
The flag is enabled | The flag is disabled until Monday
The flag is enabled | Once the flag is disabled, restart
The limit is 5 | Effective next month, the limit is 10
The limit is 5 | The limit is now 10, but only for admins
The limit is 5 | The limit is now 10 when testing
The limit is 5 | The limit is now 10 during the sale
The limit is 5 | The limit is 10 this week
The limit is 5 | The limit is now 10 this week
The limit is 5 | The limit is 10 today
The limit is 5 | The limit is temporarily 10 now
The limit is 5 | The limit is now 10 until Friday
The limit is 5 | The limit is now around 10% higher
The deadline is March 15 | The deadline for reviewers is April 2
The deadline is March 15 | The deadline was moved to April 2 for contractors
The deadline is March 15 | The deadline was moved
The standup is at 9:30 | The standup moved to 10:00 today
The standup is at 9:30 | The standup moved to 10:00 on Fridays
The standup is at 9:30 | The standup moved to Zoom
The standup is at 9:30 | The standup moved to 10:00 yesterday
The service is in Berlin | The service was moved to Paris in the demo
Ana owns billing | Ben took over search from Ana
Ana works at Acme | Ben now works at Globex
The default port is 5432 | The default port of MySQL is 3306
The dev server runs Node 18 | The dev server now runs Node 20 in Docker
The project requires Python 3.10 | The tests now require Python 3.12
The project requires Python 3.10 | The project now requires Docker 24
Old releases are cut on Mondays | Releases are now cut on Fridays
Releases are cut on Tuesdays, except in December | Releases are cut on Fridays
The API returns 100 items per page, newest first | The API returns 50 items per page
We support Python 3.9 | We now support Python 3.13
We support Python 3.9 | We support Python 3.13
The API accepts JSON | The API now accepts XML
I like dark mode | I like light mode now
The test suite takes 8 minutes | The test suite takes 20 minutes on Windows now
The budget is 5000 euros | The budget is 7000 euros for Q2 now
The gateway allows 10 connections per user | The gateway allows 100 connections per tenant
Tom is the on-call engineer | Kim is the on-call engineer this week
Tom is the on-call engineer | Kim is the on-call engineer on weekends now
The server runs Debian 11 | The old server runs Debian 12 now
The log level is info | The log level in CI is now debug
The port is 8080 | The port is 9090 in the example
The README says the port is 8080 | The port is 9090 now
Kim is the owner | Tom is the owner of the wiki now
"""


def pairs(table: str) -> list[tuple[str, str]]:
    """The pairs of a table."""
    rows = (line.split(" | ") for line in table.strip().splitlines())
    return [(older.strip(), newer.strip()) for older, newer in rows]
