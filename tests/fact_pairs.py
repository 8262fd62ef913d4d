"""Pairs of statements, and what the second is to the first: tables for tests.

A line is an older statement and a newer one. Whoever finds a pair that is judged wrongly adds
it here: of each table a share is judged right.
"""

from __future__ import annotations

# The newer one says what is so now.
SUPERSEDED = """
The deploy key is in 1Password | The deploy key moved to Vault at secret/harbor/deploy
The deploy key is in 1Password | Moved the deploy key to Vault at secret/harbor/deploy
The deploy key is in Vault at secret/a/deploy | The deploy key moved to Vault at secret/b/deploy
The primary contact at Acme is Lee | The primary contact at Acme is now Kim
The API base URL is https://api.acme.io | API base URL changed to https://api.acme.com
The Kafka topic is orders-v1 | The Kafka topic is now orders-v2
Migration 42 is pending | Migration 42 is done
The staging cluster is in eu-west-1 | Moved the staging cluster to eu-central-1
The worker pool has 4 workers | The worker pool now has 12 workers
Deploy approvals go to Ana | Deploy approvals now go to Ben
The retro is on Fridays | The retro is now on Thursdays
The app costs 5 euros | The app now costs 7 euros
Session cookies expire after 7 days | Session cookies expire after 1 day
Our SLA is 99.5% | Our SLA is now 99.9%
The min Go version is 1.20 | The min Go version is now 1.22
The wiki is in Confluence | We moved the wiki to Notion
The feature flag dark_mode is off | The feature flag dark_mode is on
The password rotation is every 90 days | The password rotation is now every 60 days
HAR-12 is open | HAR-12 is closed
Lena leads the mobile team | Tom now leads the mobile team
The helm chart is in charts/app | The helm chart moved to deploy/helm
Prod runs Postgres 14 | Prod now runs Postgres 16
The nightly backup runs at 02:30 UTC | The nightly backup moved to 04:10 UTC
Standup is at 9:30 every day | Standup moved to 10:00
Standup is at 9:30 every day | Standup is now at 10:00
We use Postgres 15 for harbor | We upgraded harbor to Postgres 16
We use Postgres 15 for harbor | Upgraded harbor from Postgres 15 to Postgres 16
The deploy key is in 1Password | The deploy key moved to Vault
The database is Postgres 15 | We upgraded the database to Postgres 16
The main branch is called master | We renamed the main branch to trunk
The nightly job starts at 02:00 UTC | The nightly job now starts at 03:30 UTC
Feature flags are managed in LaunchDarkly | Feature flags are now managed in Unleash
Max upload size is 10 MB | Max upload size raised to 25 MB
The API rate limit is 100 requests per minute | The API rate limit is 250 requests per minute
Priya owns the payments service | Tomas now owns the payments service
The frontend lives in apps/web | The frontend was moved to packages/frontend
We target Node 18 | We target Node 22 now
The connection pool size is 20 | Correction: the connection pool size is 50
The oncall rotation starts on Mondays | The oncall rotation starts on Wednesdays now
Our S3 bucket is acme-uploads-eu | The S3 bucket is now acme-uploads-us
JWT tokens expire after 15 minutes | JWT tokens now expire after 60 minutes
Sprint length is two weeks | Sprint length is now three weeks
The design review is on Thursdays at 14:00 | The design review moved to Tuesdays at 10:00
Log level in production is info | Log level in production is now warn
The cache TTL is 300 seconds | We lowered the cache TTL to 60 seconds
We use Black for formatting | We switched from Black to Ruff for formatting
We use Poetry for packaging | We use uv instead of Poetry for packaging
The docs site is hosted on Netlify | The docs site is now hosted on Cloudflare Pages
The support email is help@acme.io | The support email is now support@acme.io
The production database is Postgres 14 | We upgraded the production database to Postgres 16
The staging URL is https://staging.acme.io | The staging URL is now https://stage.acme.dev
The release manager is Kofi | The release manager is now Lena
The minimum supported iOS version is 15 | The minimum supported iOS version is now 17
Terraform state is stored in S3 | Terraform state moved to Terraform Cloud
Our Slack channel for incidents is #incidents | The Slack channel for incidents is now #sev
Errors go to Rollbar | Errors now go to Sentry
The default timeout is 30s | Default timeout changed from 30s to 10s
The batch size is 500 | Update: the batch size is 1000
Backups are kept for 14 days | Backups are now kept for 35 days
The import job runs hourly | The import job now runs every 15 minutes
We deploy on Thursdays | We no longer deploy on Thursdays
The search service is written in Python | The search service has been rewritten in Rust
The search service is written in Python | The search service is now written in Rust
The mobile app uses Realm for storage | The mobile app now uses SQLite for storage
Invoices are sent on the 1st | Invoices are now sent on the 5th
The code freeze starts on December 20 | The code freeze starts on December 15
The code freeze is on December 20 | The code freeze was moved to December 15
The feature flag new_checkout is off | The feature flag new_checkout is now on
The v2 migration is in progress | The v2 migration is done
The demo is on Friday | The demo has been moved to Monday
The health check endpoint is /health | The health check endpoint is now /healthz
Coverage threshold is 80% | Coverage threshold is now 85%
We store sessions in Redis | We now store sessions in Postgres
Secrets are in AWS Secrets Manager | Secrets moved to HashiCorp Vault
Our test runner is Jest | Our test runner is now Vitest
I prefer rebase over merge | I now prefer merge over rebase
My editor is VS Code | My editor is now Zed
The main dashboard is in Grafana | The main dashboard moved to Datadog
Docker images are pushed to Docker Hub | Docker images are now pushed to GHCR
The TLS certificate expires on 2026-03-01 | The TLS certificate expires on 2027-03-01 now
The timeout is 30 s | Bumped the timeout to 60 s
The deploy key is in vault A | Moved the deploy key to vault B
We use Jenkins for CI | Switched from Jenkins to Buildkite for CI
We use Jenkins | Replaced Jenkins with Buildkite
The service is called ferry | Renamed the service to heron
The pool size is 20 | Increased the pool size from 20 to 50
The timeout is 30 s | The platform team raised the timeout to 60 s
The timeout is 30 s | Ben raised the timeout to 60 s
The log level in production is info | The log level in production is now warn
We store sessions in Redis | Sessions are now stored in Postgres
Sessions are stored in Redis | We now store sessions in Postgres
The beta flag is off | The beta flag is on
We host the site on Netlify | We now host the site on Vercel
Terraform state is stored in S3 | Terraform state moved to GCS
The backend is written in Python | The backend was rewritten in Go
We use Flake8 for linting | We now use Ruff for linting
We use Sentry for error tracking | We now use Rollbar for error tracking
The weekly sync is on Mondays at 10:00 | The weekly sync is now on Tuesdays at 11:00
The frontend is built with React | The frontend is now built with Vue
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

# The newer one may update the older; perhaps there are two.
FLAGGED = """
I prefer short commits | I now prefer squash merges
The frontend is built with React | The frontend is now built with Vite
The frontend is written in React | The frontend is now written in TypeScript
We use React for the dashboard | We now use TypeScript for the dashboard
We use Stripe for billing | We now use Temporal for billing
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
# the older one may well still be so.
TRAPS = """
The deploy key is in vault A | The deploy key moved to vault B at the Paris office
The deploy key is in Vault | The deploy key is in Vault at secret/harbor/deploy
The config is in Vault at secret/app | The config for staging moved to Vault at secret/stage
The runbook is in the wiki at ops/runbook | The runbook is now in the wiki at 10:00
result = fetch(1) | result = fetch(2)
client = Client(timeout=5) | client = Client(timeout=9)
items = rows[0] | items = rows[1]
Ana prefers email | Ana prefers email for invoices now
Ana lives in Berlin | Ana's parents now live in Munich
Ana lives in Berlin | Ana is in Munich now
Ana is the CTO | Ana is the CTO of Acme now
The CEO is Ana | The CEO of Acme is now Ben
Our CEO is Ana | Their CEO is now Ben
The repo is on GitHub | The mirror of the repo is now on GitLab
The repo is on GitHub | The repo's wiki moved to Notion
The office is in Berlin | The Paris office moved to Lyon
The office is in Berlin | The office party moved to Lyon
The wifi password is hunter-two | The guest wifi password is now hunter-three
The rate is 5% | The tax rate is now 7%
The VAT rate is 19% | The VAT rate for books is now 7%
The VAT rate is 19% | The VAT rate in France is now 20%
The budget is 5000 euros | The travel budget was cut to 2000 euros
The budget is 5000 euros | Marketing cut its budget to 2000 euros
The budget is 5000 euros | The client cut the budget to 2000 euros
The limit is 10 | We discussed raising the limit to 20
The limit is 10 | We agreed not to raise the limit to 20
The limit is 10 | We refused to raise the limit to 20
The limit is 10 | We almost raised the limit to 20
The limit is 10 | We never raised the limit to 20
The limit is 10 | Nobody raised the limit to 20
The limit is 10 | Somebody raised the limit to 20 and broke production
The limit is 10 | Raised the limit to 20 and rolled it back
The limit is 10 | Before the outage we raised the limit to 20
The limit is 10 | In the demo we raised the limit to 20
The limit is 10 | In v1 the limit is 20
The limit is 10 | On free plans the limit is now 20
The limit is 10 | The limit is now 20 according to the docs
The limit is 10 | The docs state that the limit is now 20
The limit is 10 | The limit is now 20 in the docs
The limit is 10 | The limit is now 20, or so it seems
The limit is 10 | The limit is now 20, pending review
The limit is 10 | The limit is now 20 in PR #12
The limit is 10 | The limit is now 20 on the feature branch
The limit is 10 | It is wrong that the limit is now 20
The limit is 10 | It is not true that the limit is now 20
The limit is 10 | The limit is not 20
The limit is 10 | The limit is no longer 20
The server is called atlas | The old server was renamed to atlas-old
The server is called atlas | The test server was renamed to heron
The service is called ferry | The service account was renamed to heron
The meeting is on Mondays | The meeting is on Mondays and Thursdays now
Deploys happen on Mondays | Deploys happen on Mondays at noon now
The retro is on Fridays | The retro is on Fridays at 15:00
The retro is on Fridays | The retro is at 15:00 now
We use Slack | We now use Slack for incidents
We use Slack | We now use Teams with clients
We use Slack | Our client switched from Slack to Teams
We use Slack | Sales switched from Slack to Teams
We use TypeScript | We switched from JavaScript to TypeScript
We use Docker | We switched from Docker to Podman on CI
We use Docker | On CI we switched from Docker to Podman
We use Docker | Locally we switched from Docker to Podman
We use Docker | I switched from Docker to Podman
I use Vim | We switched from Vim to VS Code
I use Vim | Ana switched from Vim to VS Code
I prefer tabs | In Go I prefer spaces now
I prefer dark mode | I prefer light mode at work now
I work at Acme | I work at Acme on Mondays now
I live in Berlin | I live in Berlin Mitte now
My favourite editor is Vim | My favourite editor for notes is now Obsidian
My dog is called Rex | My cat is now called Tom
Ana's laptop is a ThinkPad | Ana's work laptop is now a MacBook
The backup is on S3 | The backup of the backup is now on Glacier
The staging URL is https://a.io | The staging admin URL is now https://b.io
The API is versioned in the URL | The API is now versioned in the header for beta users
Auth is handled by Keycloak | Auth for partners is now handled by Auth0
Emails are sent via SendGrid | Marketing emails are now sent via Mailchimp
Emails are sent via SendGrid | Emails are now sent via SendGrid and SES
The queue runs on RabbitMQ | The queue now runs on two nodes
The queue runs on RabbitMQ | The delay queue now runs on Redis
The cluster is in eu-west-1 | A second cluster is now in us-east-1
The cluster is in eu-west-1 | The DR cluster moved to us-east-1
The token expires in 24 hours | The reset token expires in 1 hour now
Bob is on the platform team | Bob is on vacation now
The build runs on main | The build now runs on Linux
The job runs at 2am | The job now runs at 2am and 2pm
The deadline is Friday | The deadline for the docs is now Monday
The app costs 5 euros | The pro app now costs 15 euros
The app costs 5 euros | The app now costs 5 euros per user
The test suite has 500 tests | The test suite now has 30 failures
Migration 42 is pending | Migration 43 is done
The 2.0 release is done | The 2.1 release is pending now
HAR-12 is open | HAR-13 is closed
The feature is behind a flag | The feature is now behind the paywall
Standup is at 9:30 every day | Standup is now at 10:00 on Fridays
We use Postgres 15 for harbor | We upgraded billing to Postgres 16
We use Postgres 15 for harbor | We upgraded harbor to Postgres 16 in staging
The timeout is 30 s | The connect timeout is 5 s
The timeout is 30 s | The timeout in tests is now 1 s
The timeout is 30 s | For uploads the timeout is now 120 s
The timeout is 30 s | The timeout is now 120 s for uploads
The timeout is 30 s | The timeout is now 60 s on mobile
The timeout is 30 s | The timeout was briefly raised to 60 s
The timeout is 30 s | The timeout was raised to 60 s on Monday and reverted
The timeout is 30 s | The timeout was raised to 60 s, then reverted
The timeout is 30 s | The timeout moved to config.toml
The timeout is 30 s | The timeout is now configurable
The timeout is 30 s | We raised the timeout to 60 s in a branch
The timeout is 30 s | We raised the timeout to 60 s locally
The timeout is 30 s | PR #12 raised the timeout to 60 s
The timeout is 30 s | The customer raised the timeout to 60 s
The timeout is 30 s | The new timeout is 60 s in version 3
The deploy key is in vault A | A copy of the deploy key moved to vault B
The deploy key is in vault A | The deploy key's backup moved to vault B
The deploy key is in vault A | The old deploy key moved to vault B
The deploy key is in vault A | The deploy key for staging moved to vault B
The deploy key is in vault A | The deploy key rotation schedule moved to vault B
The deploy key is in vault A | The deploy key moved to vault B in staging
The deploy key is in vault A | The deploy key almost moved to vault B
The deploy key is in vault A | The deploy key was never moved to vault B
The deploy key is in vault A | The deploy key has not moved to vault B
The deploy key is in vault A | The deploy key hasn't been moved to vault B
The deploy key is in vault A | Nobody moved the deploy key to vault B
The deploy key is in vault A | We nearly moved the deploy key to vault B
The deploy key is in vault A | We forgot to move the deploy key to vault B
The deploy key is in vault A | We moved the deploy key to vault B by mistake
The deploy key is in vault A | We moved the deploy key to vault B and back
The deploy key is in vault A | The deploy key moved to vault B for a day
The deploy key is in vault A | The deploy key moved to vault B during the outage
The deploy key is in vault A | The deploy key moved to vault B in 2019
The deploy key is in vault A | In 2019 the deploy key moved to vault B
The deploy key is in vault A | Last year the deploy key moved to vault B
We use Postgres | We switched from Postgres to DuckDB for analytics
We use Postgres | We switched the analytics from Postgres to DuckDB
We use Postgres for orders | We now use ClickHouse for order analytics
We use Postgres for orders | We replaced Postgres with SQLite in unit tests
We use Postgres for orders | We replaced Postgres with SQLite for unit tests
We use Postgres | We replaced Postgres with SQLite in unit tests
We use Postgres | We replaced Postgres 14 with Postgres 16
We use Redis for sessions | We replaced Redis with Valkey on the dev machines
We use Redis | We replaced Redis with Valkey on the dev machines
We use Jenkins | The data team replaced Jenkins with Airflow
We use Jenkins | Acme replaced Jenkins with Buildkite
We use Jenkins | Our competitor replaced Jenkins with Buildkite
We use Jenkins | Jenkins was replaced by Buildkite at Acme
The CI runs on Ubuntu | The CI now runs on macOS for releases
The CI runs on Ubuntu | The CI now runs on every push
Ana lives in Berlin | Ana moved to Berlin's Kreuzberg district
Ana works at Acme | Ana works at Acme's Paris office now
Ana owns billing | Ben now owns billing alerts
Ana owns billing | Ben now owns billing for EU customers
Ana owns billing | Ben took over billing while Ana is away
Ana owns billing | Ben took over billing for two weeks
Ana owns billing | Ben took over billing during the holidays
Ana owns billing | Ben covers billing this week
Ana is the product manager | Ben is now the product manager for mobile
The standup is at 9:30 | The standup is at 10:00 on Fridays
The standup is at 9:30 | Friday's standup is at 10:00
The standup is at 9:30 | The standup is at 10:00 this Friday
The standup is at 9:30 | The design standup is now at 10:00
The standup is at 9:30 | The standup moved to 10:00 this week
The standup is at 9:30 | The standup moved to 10:00 for the summer
The demo is on Friday | The demo is now 30 minutes
The demo is on Friday | The demo moved to the big room
The default branch is main | The default branch of legacy-api is now develop
The default branch is main | The legacy repo's default branch is now develop
The API key is in the env file | The API key for Stripe is now in Vault
The port is 8080 | The metrics port is now 9090
The port is 8080 | The port is now 9090 in docker-compose
The port is 8080 | The port is now 9090 behind the proxy
The server has 16 GB RAM | The server now has 4 cores
The p95 latency is 200 ms | The p99 latency is now 900 ms
The p95 latency is 200 ms | The p95 latency is now 900 ms under load
The build takes 5 minutes | The build takes 12 minutes without cache now
The build takes 5 minutes | The build now takes 12 minutes on Windows
The bug is in parser.py | The bug is in lexer.py
The bug is in parser.py | The bug moved to lexer.py
The error is in auth.py | The error is now in session.py
We deploy to Fly.io | We deploy the docs to Netlify
We deploy to Fly.io | We now deploy to Netlify for previews
We deploy to Fly.io | We now deploy previews to Netlify
We deploy with Helm | We now deploy with a checklist
The tests run in Docker | The tests now run in parallel
The tests run in Docker | The tests now run in 4 minutes
The frontend is in React | The frontend is in maintenance mode now
The backend is written in Go | The backend is now written in a hexagonal style
We use React | We now use TypeScript
We use React for the dashboard | We now use React 19 for the dashboard
We use Tailwind for styling | We now use CSS modules for styling the emails
The dashboard uses React | The dashboard now uses TypeScript
The dashboard uses Postgres | The dashboard now uses Redis
The service uses Kafka | The service now uses gRPC
The service runs on Kubernetes | The service now runs on Java 21
The app runs on iOS | The app now runs on Android
The library supports Postgres | The library now supports MySQL
Tokens expire after 15 minutes | Refresh tokens now expire after 30 days
Tokens expire after 15 minutes | Tokens now expire after logout
Users have 3 retries | Users now have 5 GB
The free plan has 3 seats | The pro plan now has 10 seats
The free plan costs 0 euros | The pro plan now costs 20 euros
The price is 20 euros | The price is now 200 euros per year
The price is 20 euros per month | The price is now 200 euros per year
Alice prefers dark mode | Alice now prefers light mode in the morning
I prefer Vim | I now prefer Vim with plugins
We review PRs within a day | We review PRs within a week for contractors now
The incident is resolved | The incident is open
The release is 2.4.1 | The next release is 2.5.0
The version is 2.4.1 | The API version is now 3
The version is 2.4.1 | The version on staging is now 2.5.0
The version in production is 2.4.1 | The version in staging is now 2.5.0
The on-call is Ana | The secondary on-call is now Ben
Our region is eu-west-1 | Our backup region is now eu-central-1
Our region is eu-west-1 | Our region is now eu-central-1 for new customers
The queue is in Redis | The queue is now in trouble
The schema is in db/schema.sql | The schema is now in third normal form
Logs are in CloudWatch | Logs are now in JSON
Logs are in CloudWatch | Logs are now in UTC
The docs are in Notion | The docs are now in German
The docs are in English | The docs are now in Notion
Backups are in S3 | Backups are now in place
The config is in YAML | The config is now in /etc/app
The config is in /etc/app | The config is now in YAML
The service is at 80% coverage | The service is now at 3 replicas
The meeting is in room 4 | The meeting is in 5 minutes
Kim is at the office | Kim is at home now
The migration is done | The migration is now reverted
The flag is enabled | The flag is now documented
The flag is enabled | The flag is enabled for everyone now
The flag is on | The flag is now on by default
The deploy key is in vault A | Moved a copy of the deploy key to vault B
The deploy key is in vault A | Moved the deploy key to vault B in staging
The deploy key is in vault A | Moved the old deploy key to vault B
The deploy key is in vault A | Moved to vault B
The deploy key is in vault A | Moved the deploy key docs to vault B
The timeout is 30 s | Bumped the timeout to 60 s in staging
The timeout is 30 s | Bumped the timeout to 60 s for uploads
The timeout is 30 s | Bumped the test timeout to 60 s
The timeout is 30 s | Raised the timeout to 60 s temporarily
The timeout is 30 s | Raised the timeout to 60 s locally to debug
The timeout is 30 s | Raised the timeout to 60 s as an experiment
The timeout is 30 s | Raised the timeout to 60 s on my branch
The timeout is 30 s | Set the timeout to 60 s
The timeout is 30 s | Reset the timeout to 60 s
The timeout is 30 s | Changed the timeout to be configurable
We use Jenkins | Replaced Jenkins with Buildkite in the demo repo
We use Jenkins | Replaced Jenkins with Buildkite for the docs
We use Jest | Switched from Jest to Vitest in packages/ui
We use Jest | Switched from Jest to Vitest for the UI
We use Jest | Switched the UI package from Jest to Vitest
We use Python 3.11 | Upgraded to Python 3.12 on my laptop
We use Python 3.11 | Upgraded the data pipeline to Python 3.12
The log level in production is info | The log level in staging is now debug
The log level in production is info | The log level is now debug
The log level is info | The log level in production is now debug
The version in production is 2.4 | The version in production of the API is now 3
The port in the example is 8080 | The port is now 9090
The tests in CI run on Linux | The tests in CI now run on every push
We store sessions in Redis | We now store tokens in Postgres
We store sessions in Redis | We now store sessions in memory in tests
We store sessions in Redis | We now store guest sessions in Postgres
We store sessions in Redis | We store sessions in Redis and Postgres now
We store images in S3 | We now store images in WebP
We keep docs in Notion | We keep docs in sync now
We keep the docs in Notion | We now keep API docs in the repo
We keep backups in S3 | We keep backups for 30 days now
We host the site on Netlify | We now host the docs on Vercel
We save drafts in localStorage | We now save drafts every 10 seconds
Images are pushed to Docker Hub | Base images are now pushed to GHCR
Images are pushed to Docker Hub | Images are now pushed to GHCR on tags
Images are pushed to Docker Hub | Images are now pushed to GHCR and Docker Hub
Reports are sent to Ana | Reports are now sent to Ben on Fridays
Reports are sent to Ana | Reports are now sent via email
Reports are sent to Ana | Weekly reports are now sent to Ben
The flag is off | The flag is on in staging now
The flag is off | The flag is on for beta users
The flag is off | The flag was on
The light mode flag is off | The dark mode flag is on
The dashboard flag is on | The dashboard is off
Invoices are sent on the 1st | Reminders are now sent on the 5th
Invoices are sent on the 1st | Invoices are now paid on the 5th
The search service is written in Python | The search indexer has been rewritten in Rust
The search service is written in Python | The search service's hot path has been rewritten in Rust
The search service is written in Python | Parts of the search service have been rewritten in Rust
We target Node 18 | We now target iOS 17
We target Node 18 | The CLI now targets Node 22
We target Python 3.10 | We now target Python 3.12 for the SDK
Secrets are in AWS Secrets Manager | Test secrets moved to HashiCorp Vault
Secrets are in AWS Secrets Manager | Secrets are in scope now
Secrets are in Vault | Secrets are in rotation now
Terraform state is stored in S3 | Terraform state locks moved to DynamoDB
Terraform state is stored in S3 | The Terraform state of the sandbox moved to Terraform Cloud
Ops meets on Mondays | Ops meets with security on Thursdays now
The design review is on Thursdays at 14:00 | The security review moved to Tuesdays at 10:00
The design review is on Thursdays at 14:00 | The design review moved to Tuesdays at 10:00 this week
The API is tested with pytest | The API is now tested with Schemathesis
We use Datadog for monitoring | We now use PagerDuty for monitoring alerts
We use Slack for chat | We now use Zoom for calls
We use Auth0 for auth | We now use Postgres for auth sessions
The gateway uses Kong for routing | The gateway now uses Lua for routing plugins
The max payload is 1 MB | The max payload is now 10 MB for partners
The max payload is 1 MB | The max payload for partners is now 10 MB
The quota is 100 | The quota is now 500 for enterprise
Ana is on call | Ben is on call now
Ana's branch is feat/x | Ben's branch is now feat/y
The current sprint is 14 | The next sprint is 15
The issue is fixed | The issue is open again
The staging cluster is in eu-west-1 | The production cluster is now in us-east-1
The changelog is in CHANGELOG.md | The changelog for v1 moved to docs/old.md
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
