"""A small project's memory that many tests share: thirty notes and one conversation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


NOTES = [
    {
        "text": "The deploy key for production lives in vault B, rotated every quarter",
        "kind": "fact",
        "topic": "ops",
        "occurred_at": days_ago(12),
    },
    {
        "text": "We decided to use PostgreSQL for billing because of row-level security",
        "kind": "decision",
        "topic": "billing",
        "occurred_at": days_ago(40),
        "importance": 0.8,
    },
    {
        "text": "parse_config raises ConfigError when the [server] table is missing",
        "kind": "fact",
        "topic": "config",
        "occurred_at": days_ago(8),
    },
    {
        "text": "The auth-middleware drops requests without a tenant header",
        "kind": "fact",
        "topic": "auth",
        "occurred_at": days_ago(21),
    },
    {
        "text": "JWT tokens are cached for five minutes in the gateway",
        "kind": "fact",
        "topic": "auth",
        "occurred_at": days_ago(20),
    },
    {
        "text": "Never run migrations while the nightly export is active",
        "kind": "caveat",
        "layer": "caveat",
        "topic": "ops",
        "occurred_at": days_ago(60),
    },
    {
        "text": "Maria prefers short pull requests with one subject each",
        "kind": "preference",
        "topic": "team",
        "occurred_at": days_ago(33),
    },
    {
        "text": "The release train leaves on Tuesdays at ten",
        "kind": "fact",
        "topic": "release",
        "occurred_at": days_ago(15),
    },
    {
        "text": "Search latency doubled after v2.3.1; the cause was a missing index on orders",
        "kind": "event",
        "topic": "search",
        "occurred_at": days_ago(9),
        "tags": ["incident"],
    },
    {
        "text": "OrderExporter writes CSV files to the finance bucket every night",
        "kind": "fact",
        "topic": "finance",
        "occurred_at": days_ago(70),
    },
    {
        "text": "The staging cluster is torn down at weekends to save money",
        "kind": "fact",
        "topic": "ops",
        "occurred_at": days_ago(50),
    },
    {
        "text": "Tomasz is on call this week, Priya the week after",
        "kind": "fact",
        "topic": "team",
        "occurred_at": days_ago(2),
    },
    {
        "text": "Feature flags are defined in src/flags/registry.py and reviewed monthly",
        "kind": "fact",
        "topic": "flags",
        "occurred_at": days_ago(28),
    },
    {
        "text": "Der Kunde möchte die Rechnungen künftig auf Deutsch erhalten",
        "kind": "fact",
        "topic": "billing",
        "occurred_at": days_ago(5),
        "language": "de",
    },
    {
        "text": "支払いサービスは東京リージョンで動いている",
        "kind": "fact",
        "topic": "billing",
        "occurred_at": days_ago(6),
        "language": "ja",
    },
    {
        "text": "El equipo de soporte pidió un panel de métricas para el café de clientes",
        "kind": "fact",
        "topic": "support",
        "occurred_at": days_ago(7),
        "language": "es",
    },
    {
        "text": "Retry with jitter was added to the webhook sender after the March outage",
        "kind": "event",
        "topic": "webhooks",
        "occurred_at": days_ago(4),
    },
    {
        "text": "The webhook sender signs payloads with HMAC-SHA256",
        "kind": "fact",
        "topic": "webhooks",
        "occurred_at": days_ago(90),
    },
    {
        "text": "Goal for this quarter: bring checkout errors below one in a thousand",
        "kind": "goal",
        "layer": "goal",
        "topic": "checkout",
        "occurred_at": days_ago(45),
        "importance": 0.9,
    },
    {
        "text": "Checkout uses the inventory service to reserve stock for fifteen minutes",
        "kind": "fact",
        "topic": "checkout",
        "occurred_at": days_ago(44),
    },
    {
        "text": "Logs are shipped to Loki and kept for 30 days",
        "kind": "fact",
        "topic": "ops",
        "occurred_at": days_ago(31),
    },
    {
        "text": "Metrics are scraped by Prometheus every fifteen seconds",
        "kind": "fact",
        "topic": "ops",
        "occurred_at": days_ago(31),
    },
    {
        "text": "The mobile app pins the API certificate; rotate with two weeks of overlap",
        "kind": "caveat",
        "layer": "caveat",
        "topic": "mobile",
        "occurred_at": days_ago(75),
    },
    {
        "text": "Priya found that image thumbnails leak memory in the resize worker",
        "kind": "event",
        "topic": "media",
        "occurred_at": days_ago(3),
    },
    {
        "text": "Use uv for local environments; CI still uses pip",
        "kind": "preference",
        "topic": "tooling",
        "occurred_at": days_ago(18),
    },
    {
        "text": "The design review for the new onboarding flow is on 12 March 2026",
        "kind": "event",
        "topic": "onboarding",
        "occurred_at": days_ago(1),
    },
    {
        "text": "Customer Nordwind asked for single sign-on with Okta",
        "kind": "fact",
        "topic": "auth",
        "occurred_at": days_ago(11),
    },
    {
        "text": "Integration tests need Docker and take eleven minutes",
        "kind": "fact",
        "topic": "tooling",
        "occurred_at": days_ago(22),
    },
    {
        "text": "The old reporting service is read-only since January",
        "kind": "fact",
        "topic": "finance",
        "occurred_at": days_ago(35),
    },
    {
        "text": "Salary bands are discussed only with the people team",
        "kind": "fact",
        "topic": "team",
        "occurred_at": days_ago(14),
        "classification": 3,
    },
]

TALK = [
    ("Ana", "Did you get the flaky upload test sorted out?"),
    ("Ben", "Yes, it was the temp folder: two workers shared it."),
    ("Ana", "Oh, so parallel runs collided?"),
    ("Ben", "Exactly. Each worker has its own folder now."),
    ("Ana", "Great. Where should we have lunch on Friday?"),
    ("Ben", "The ramen place near the canal, they take reservations."),
    ("Ana", "Perfect, I will book a table for six."),
    ("Ben", "Tell them that Chloe is allergic to peanuts."),
]

CONVERSATION = [
    {
        "text": text,
        "level": "raw",
        "speaker": speaker,
        "session": "standup-7",
        "seq": seq,
        "source": "chat",
        "occurred_at": days_ago(10) + timedelta(minutes=seq),
    }
    for seq, (speaker, text) in enumerate(TALK)
]

QUESTIONS = [
    ("where is the production deploy key kept?", "The deploy key"),
    ("which database did we choose for billing?", "We decided to use PostgreSQL"),
    ("what happens when the server table is missing in parse_config?", "parse_config raises"),
    ("auth-middleware tenant header", "The auth-middleware"),
    ("how long are JWT tokens cached?", "JWT tokens"),
    ("who is allergic to peanuts?", "Tell them that Chloe"),
    ("why did the upload test fail sometimes?", "Yes, it was the temp folder"),
    ("when does the release train leave?", "The release train"),
    ("order exporter csv", "OrderExporter"),
    ("東京リージョン", "支払いサービス"),
    ("src/flags/registry.py", "Feature flags"),
    ("Rechnungen auf Deutsch", "Der Kunde"),
]

FOREIGN = [
    "what is the boiling point of mercury?",
    "how do I tune a violin?",
    "recipe for sourdough bread",
    "who won the 1998 world cup final?",
]
