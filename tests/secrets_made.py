"""Makes secrets of many kinds, ordinary lines that only look like some, and ways to write them."""

from __future__ import annotations

import base64
import hashlib
import json
import string
import uuid
from collections.abc import Callable
from random import Random

ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "_-"
BASE64 = ALNUM + "+/"


def draw(rng: Random, letters: str, length: int) -> str:
    return "".join(rng.choice(letters) for _ in range(length))


def _jwt(rng: Random) -> str:
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = base64.urlsafe_b64encode(
        json.dumps({"sub": rng.randrange(10**9), "admin": True}).encode()
    )
    return ".".join((head.decode().rstrip("="), body.decode().rstrip("="), draw(rng, URLSAFE, 43)))


def _pem(rng: Random) -> str:
    kind = rng.choice(["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
    lines = "\n".join(draw(rng, BASE64, 64) for _ in range(rng.randrange(4, 20)))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


def _password(rng: Random) -> str:
    while True:
        made = draw(rng, ALNUM + "!#%^*+=?", rng.randrange(10, 24))
        if any(c.isdigit() for c in made) and any(c.isalpha() for c in made):
            return made


def _stripe(rng: Random) -> str:
    return f"{rng.choice(['sk', 'rk'])}_{rng.choice(['live', 'test'])}_{draw(rng, ALNUM, 24)}"


# Tokens that are known by themselves, wherever they stand.
TOKENS: dict[str, Callable[[Random], str]] = {
    "aws access key": lambda r: (
        r.choice(["AKIA", "ASIA"]) + draw(r, string.ascii_uppercase + "234567", 16)
    ),
    "github classic": lambda r: f"{r.choice(['ghp', 'gho', 'ghs'])}_{draw(r, ALNUM, 36)}",
    "github fine-grained": lambda r: f"github_pat_{draw(r, ALNUM, 22)}_{draw(r, ALNUM, 59)}",
    "gitlab": lambda r: f"glpat-{draw(r, URLSAFE, 20)}",
    "slack": lambda r: (
        f"xoxb-{draw(r, string.digits, 12)}-{draw(r, string.digits, 12)}-{draw(r, ALNUM, 24)}"
    ),
    "anthropic": lambda r: f"sk-ant-api03-{draw(r, URLSAFE, 93)}AA",
    "openai": lambda r: f"sk-{draw(r, ALNUM, 48)}",
    "openai project": lambda r: f"sk-proj-{draw(r, ALNUM, 74)}",
    "google api key": lambda r: f"AIza{draw(r, URLSAFE, 35)}",
    "stripe": _stripe,
    "npm": lambda r: f"npm_{draw(r, ALNUM, 36)}",
    "pypi": lambda r: f"pypi-AgEIcHlwaS5vcmc{draw(r, URLSAFE, 80)}",
    "jwt": _jwt,
    "private key": _pem,
    "telegram": lambda r: f"{draw(r, '123456789', 10)}:AA{draw(r, URLSAFE, 33)}",
    "sendgrid": lambda r: f"SG.{draw(r, URLSAFE, 22)}.{draw(r, URLSAFE, 43)}",
    "hugging face": lambda r: f"hf_{draw(r, string.ascii_letters, 34)}",
    "twilio": lambda r: f"SK{draw(r, HEX, 32)}",
    "slack webhook": lambda r: (
        f"https://hooks.slack.com/services/T{draw(r, LOWER.upper(), 8)}/B{draw(r, LOWER.upper(), 8)}/{draw(r, ALNUM, 24)}"
    ),
    "digitalocean": lambda r: f"dop_v1_{draw(r, HEX, 64)}",
    "shopify": lambda r: f"shpat_{draw(r, HEX, 32)}",
}
# Secrets that only the words before them give away, and those words.
NAMED: dict[str, tuple[Callable[[Random], str], tuple[str, ...]]] = {
    "password": (_password, ("password", "DB_PASSWORD", "passwd", "admin_password", "PGPASSWORD")),
    "api key": (
        lambda r: draw(r, ALNUM, 32),
        ("api_key", "API_KEY", "apiKey", "x-api-key", "apikey"),
    ),
    "hex key": (lambda r: draw(r, HEX, 32), ("api_key", "secret_key", "SECRET_KEY", "auth_token")),
    "client secret": (
        lambda r: draw(r, URLSAFE, 40),
        ("client_secret", "CLIENT_SECRET", "clientSecret"),
    ),
    "aws secret": (
        lambda r: draw(r, BASE64, 40),
        ("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key"),
    ),
    "azure account key": (lambda r: draw(r, BASE64, 86) + "==", ("AccountKey", "account_key")),
    "discord": (
        lambda r: f"M{draw(r, ALNUM, 23)}.{draw(r, URLSAFE, 6)}.{draw(r, URLSAFE, 27)}",
        ("DISCORD_TOKEN", "bot_token", "token"),
    ),
    "uuid key": (
        lambda r: str(uuid.UUID(int=r.getrandbits(128))),
        ("HEROKU_API_KEY", "api_key", "auth_token"),
    ),
}
WRAPPED: dict[str, Callable[[Random], tuple[str, str]]] = {}


def wrapped(name: str) -> Callable[[Callable[[Random], tuple[str, str]]], None]:
    return lambda make: WRAPPED.__setitem__(name, make)


@wrapped("database url")
def _database_url(rng: Random) -> tuple[str, str]:
    password = draw(rng, ALNUM + "!*%", 12)
    scheme = rng.choice(["postgres", "postgresql+asyncpg", "mysql", "mongodb+srv", "redis", "amqp"])
    return password, f"{scheme}://app:{password}@db.internal:5432/prod"


@wrapped("url credentials")
def _url(rng: Random) -> tuple[str, str]:
    password = draw(rng, ALNUM, 10)
    return password, f"https://deploy:{password}@git.company.org/repo.git"


@wrapped("bearer header")
def _bearer(rng: Random) -> tuple[str, str]:
    token = draw(rng, URLSAFE, 40)
    return token, f"Authorization: Bearer {token}"


@wrapped("basic header")
def _basic(rng: Random) -> tuple[str, str]:
    token = base64.b64encode(f"{draw(rng, LOWER, 6)}:{draw(rng, ALNUM, 14)}".encode()).decode()
    return token, f"Authorization: Basic {token}"


@wrapped("connection string")
def _connection(rng: Random) -> tuple[str, str]:
    password = _password(rng)
    return password, f"Server=db1;Database=crm;User Id=sa;Password={password};Encrypt=true"


@wrapped("private block")
def _private(rng: Random) -> tuple[str, str]:
    inside = f"my account number is {draw(rng, string.digits, 10)}"
    return inside, f"Notes <private>{inside}</private> end"


def in_prose(token: str, rng: Random) -> str:
    return rng.choice(
        [
            "For the staging box we use {} until Friday.",
            "The deploy job fails without {}, ask Priya.",
            "{} is what the exporter authenticates with",
            "Rotate `{}` next week (it leaked).",
        ]
    ).replace("{}", token)


def in_code(token: str, rng: Random) -> str:
    return rng.choice(
        ['client = Client("{}")', "const k = '{}';", "auth({}, retries=3)", "run --with {}"]
    ).replace("{}", token)


def in_json(token: str, rng: Random) -> str:
    return json.dumps({"service": "billing", "value": token, "retries": rng.randrange(5)})


def in_env(token: str, rng: Random) -> str:
    return (
        f"export {rng.choice(['CREDENTIAL', 'SERVICE_AUTH', 'DEPLOY'])}={token}\nexport PORT=8080"
    )


FORMS = (in_prose, in_code, in_json, in_env)


def named_forms(name: str, secret: str, rng: Random) -> str:
    return rng.choice(
        [
            f"{name}={secret}",
            f"export {name}={secret}",
            f'{name} = "{secret}"',
            f"{name}: '{secret}'",
            json.dumps({"host": "db1", name: secret}),
            f"In the config we set {name}: {secret} and restart the worker.",
            f"Set `{name}={secret}` before the import.",
        ]
    )


def benign_line(rng: Random) -> str:
    """A line that holds no secret, though some of it looks drawn by a machine."""
    seed = rng.randbytes(16)
    return rng.choice(_BENIGN)(rng, seed)


def _sha(name: str, seed: bytes) -> str:
    return hashlib.new(name, seed).hexdigest()


_BENIGN: tuple[Callable[[Random, bytes], str], ...] = (
    lambda r, s: f"Fixed in commit {_sha('sha1', s)} on main",
    lambda r, s: f"commit {_sha('sha1', s)[:12]} breaks the token parser",
    lambda r, s: f"The image digest is sha256:{_sha('sha256', s)}",
    lambda r, s: f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(s).digest()).decode()}"',
    lambda r, s: (
        f"requests=={r.randrange(9)}.{r.randrange(40)}.0 --hash=sha256:{_sha('sha256', s)}"
    ),
    lambda r, s: f"Request id {uuid.UUID(int=r.getrandbits(128))} timed out after 30 s",
    lambda r, s: f"The thumbnail is data:image/png;base64,{base64.b64encode(s * 4).decode()}",
    lambda r, s: f"md5 of the dump: {_sha('md5', s)}",
    lambda r, s: f'ETag: "{_sha("md5", s)}"',
    lambda r, s: "Set api_key=YOUR_API_KEY in the .env file before you start",
    lambda r, s: 'password = "changeme"  # replaced on install',
    lambda r, s: "DB_PASSWORD=${DB_PASSWORD:-postgres} is read by compose",
    lambda r, s: "token = os.environ['GITHUB_TOKEN'] and secret = settings.SECRET_KEY",
    lambda r, s: "postgres://user:password@localhost:5432/db is the documented form",
    lambda r, s: f"The token bucket refills at {r.randrange(1000)} requests per second",
    lambda r, s: f"max_tokens={r.randrange(4096)} and temperature=0.2 for summaries",
    lambda r, s: "JWT tokens are cached for five minutes in the gateway",
    lambda r, s: "Passwords must be at least 12 characters and are hashed with argon2id",
    lambda r, s: "The secret is to keep the batch small; the key is the primary key",
    lambda r, s: "api_key: str = Field(..., description='key of the caller')",
    lambda r, s: "Authorization: Bearer <token> is required on every call",
    lambda r, s: "We rotate AKIAIOSFODNN7EXAMPLE style keys every quarter",
    lambda r, s: "Use basic authentication for the internal admin page",
    lambda r, s: f"secret_name: billing-db-{r.choice(['prod', 'staging'])} in kubernetes",
    lambda r, s: f"password_hash: {_sha('sha256', s)}",
    lambda r, s: f"The release v{r.randrange(9)}.{r.randrange(20)}.{r.randrange(9)} drops py37",
    lambda r, s: f"See https://docs.company.org/auth?section=tokens&v={r.randrange(9)} for details",
    lambda r, s: f"Standup moved from 10:00 to 10:{r.randrange(10, 59)} on Mondays",
    lambda r, s: f"src/billing/token_store.py line {r.randrange(400)} raises KeyError",
    lambda r, s: f"The cache key is user:{r.randrange(10**6)}:profile:v2",
    lambda r, s: "private_key_path=/etc/ssl/private/server.pem on the edge nodes",
    lambda r, s: f"Order {draw(r, string.ascii_uppercase, 3)}-{r.randrange(10**6)} was refunded",
    lambda r, s: "git@github.com:company/infra.git is the remote of the tools",
    lambda r, s: "A key like sk-... or ghp_... never goes into a ticket",
    lambda r, s: f"token_count={r.randrange(10**6)} after dedup, tokens_per_s={r.randrange(999)}",
    lambda r, s: "Keys begin with -----BEGIN PRIVATE KEY----- and are kept in the vault",
    lambda r, s: f"uuid5 namespace {uuid.UUID(int=r.getrandbits(128))} is used for entity ids",
    lambda r, s: f'cache-control: max-age={r.randrange(10**5)}, etag W/"{_sha("sha1", s)[:20]}"',
    lambda r, s: (
        f"The build used go.sum h1:{base64.b64encode(hashlib.sha256(s).digest()).decode()}"
    ),
    lambda r, s: (
        f"session token expires after {r.randrange(60)} minutes, refresh token after 30 days"
    ),
    lambda r, s: "Maria's access token policy: one token per service, never shared",
)
