"""A second set of secrets and of innocent lines, written apart from the first.

Each recipe gives the secret and a text that holds it. The forms are those of notes, chats,
shell histories and settings, in several languages.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random

AN = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
WORDS = [
    "copper",
    "lantern",
    "meadow",
    "thistle",
    "harbor",
    "velvet",
    "pigeon",
    "marble",
    "saffron",
    "tundra",
    "walnut",
    "glacier",
    "ember",
    "falcon",
    "juniper",
    "cobalt",
    "orchid",
    "pebble",
    "quartz",
    "raven",
    "timber",
    "violin",
    "willow",
    "zephyr",
    "anchor",
    "bramble",
]
Recipe = Callable[[Random], tuple[str, str]]


def some(rng: Random, letters: str, length: int) -> str:
    return "".join(rng.choice(letters) for _ in range(length))


def password(rng: Random) -> str:
    made = some(rng, AN, rng.randrange(9, 18)) + rng.choice("!?#%+") + some(rng, AN, 3)
    return f"{rng.choice(string.ascii_letters)}{rng.randrange(10)}{made}"


def card(rng: Random) -> str:
    start = rng.choice(("4", "51", "55", "37", "6011"))
    length = 15 if start == "37" else 16
    digits = [int(one) for one in start + some(rng, string.digits, length - 1 - len(start))]
    doubled = [one * 2 - 9 * (one > 4) for one in digits[::-1][::2]]
    last = -(sum(doubled) + sum(digits[::-1][1::2])) % 10
    whole = "".join(map(str, (*digits, last)))
    if length == 15:
        return rng.choice((whole, f"{whole[:4]} {whole[4:10]} {whole[10:]}"))
    groups = [whole[at : at + 4] for at in range(0, 16, 4)]
    return rng.choice((whole, " ".join(groups), "-".join(groups)))


_VENDORS: dict[str, Callable[[Random], str]] = {
    "xai": lambda r: "xai-" + some(r, AN, 80),
    "supabase": lambda r: "sbp_" + some(r, HEX, 40),
    "doppler": lambda r: f"dp.{r.choice(('pt', 'st'))}." + some(r, AN, 43),
    "perplexity": lambda r: "pplx-" + some(r, AN, 48),
    "nvidia": lambda r: "nvapi-" + some(r, AN + "-_", 64),
    "pinecone": lambda r: "pcsk_" + some(r, AN, 64),
    "langsmith": lambda r: f"lsv2_pt_{some(r, HEX, 32)}_{some(r, HEX, 10)}",
    "figma": lambda r: "figd_" + some(r, AN + "-_", 40),
    "postman": lambda r: f"PMAK-{some(r, HEX, 24)}-{some(r, HEX, 34)}",
    "pulumi": lambda r: "pul-" + some(r, HEX, 40),
    "tailscale": lambda r: f"tskey-auth-{some(r, AN, 12)}-{some(r, AN, 32)}",
    "netlify": lambda r: "nfp_" + some(r, AN, 36),
    "new relic": lambda r: "NRAK-" + some(r, string.ascii_uppercase + string.digits, 27),
    "atlassian": lambda r: "ATATT3" + some(r, AN + "-_", 180),
    "alibaba": lambda r: "LTAI" + some(r, AN, 20),
    "rubygems": lambda r: "rubygems_" + some(r, HEX, 48),
    "nuget": lambda r: "oy2" + some(r, string.ascii_lowercase + string.digits, 43),
    "buildkite": lambda r: "bkua_" + some(r, HEX, 40),
    "mailgun": lambda r: "key-" + some(r, HEX, 32),
    "discord": lambda r: f"MT{some(r, AN, 22)}.{some(r, AN, 6)}.{some(r, AN, 30)}",
    "gitlab": lambda r: "glpat-" + some(r, AN, 20),
    "stripe": lambda r: "sk_live_" + some(r, AN, 99),
    "google refresh": lambda r: "1//0" + some(r, AN + "-_", 60),
}
_AROUND = (
    "Heads-up: {} went into the wrong channel, please rotate.",
    "curl -s -H 'X-Auth: {}' https://api.internal/v2/jobs",
    '{{"retries": 3, "auth": "{}"}}',
    "os.environ.setdefault('SERVICE', '{}')",
    "auth: {}\nregion: eu-west-1",
    "(siehe Ticket, der Zugang war {})",
)
_STATED = (
    "my password is {}",
    "The wifi password at the office is {}",
    "password for the staging admin: {}",
    "Passwort für das NAS ist {}",
    "le mot de passe : {}",
    "contraseña: {}",
    "пароль: {}",
    "密码：{}",
    "pwd={}",
    "export PGPASSWORD='{}'",
    "mysql -u root -p{} shop",
    "mysqldump --single-transaction -uapp -p{} shop > shop.sql",
    "sshpass -p {} ssh deploy@10.0.0.4",
    "redis-cli -h cache -a {} ping",
    "psql --password {} -h db",
    "docker login -u ci -p {} registry.internal",
    "openssl rsa -passin pass:{} -in key.pem",
    "login: alice / {}",
    "creds bob@example.org / {}",
    "smtp://mailer:{}@mail.internal:587",
    "spring.datasource.password={}",
    "<add name='x' connectionString='Server=a;Pwd={};Db=b' />",
)
_PHRASES = (
    'the passphrase is "{}"',
    "Passphrase: {}",
    "my pass phrase is {}.",
    "The backup passphrase: {}",
    "the vault's passphrase is {}",
)
_PINS = (
    "my PIN is {}",
    "The door PIN: {}",
    "card pin is now {}",
    "SIM PIN={}",
    "PIN code for the alarm is {}",
    "alarm pin was {}",
)


def vendor(name: str) -> Recipe:
    def make(rng: Random) -> tuple[str, str]:
        secret = _VENDORS[name](rng)
        return secret, rng.choice(_AROUND).format(secret)

    return make


def stated(form: str) -> Recipe:
    def make(rng: Random) -> tuple[str, str]:
        # What a command or an address would cut in two is no password there.
        secret = password(rng).replace("#", "+").replace("%", "+")
        secret = secret.replace("?", "x") if "://" in form else secret
        return secret, form.format(secret)

    return make


def phrase(rng: Random) -> tuple[str, str]:
    words = rng.sample(WORDS, rng.randrange(4, 7))
    secret = rng.choice((" ", "-")).join(words)
    return secret, rng.choice(_PHRASES).format(secret)


def pin(rng: Random) -> tuple[str, str]:
    secret = some(rng, string.digits, rng.choice((4, 4, 6)))
    return secret, rng.choice(_PINS).format(secret)


def card_text(rng: Random) -> tuple[str, str]:
    secret = card(rng)
    return secret, rng.choice(("Book it on {}", "Visa {} exp 04/27", "{}", "card={}")).format(
        secret
    )


RECIPES: dict[str, Recipe] = {
    **{name: vendor(name) for name in _VENDORS},
    **{form: stated(form) for form in _STATED},
    "pass phrase": phrase,
    "pin": pin,
    "card": card_text,
}

_INNOCENT = (
    "The password is rotated every three months by the platform team",
    "the passphrase is kept with the team lead",
    "Passphrase: see the vault, section four",
    "password reset mails are sent by the notification service",
    "The password must have at least twelve characters",
    "ssh -p 2222 deploy@build-7.internal",
    "docker run -p 8080:80 --name web nginx",
    "mysql -u root -p",
    "mysql -h db -P 3306 -u app shop",
    "cp -p settings.toml backup/settings.toml",
    "redis-cli -h cache -p 6379 ping",
    "pin the version to 2024.11 until the fix is out",
    "The version pin is 2024",
    "GPIO pin is 17, the relay pin was 4",
    "Push pins: 1200 in the drawer",
    "login page / signup page share one form",
    "user alice / role admin",
    "account 4711 / region eu-west-1",
    "Call me at +49 30 12345678 after lunch",
    "Order 4000 0012 3456 7890 1 was shipped twice",
    "ISBN 978-3-16-148410-0 is the book on the shelf",
    "The counter stood at 4503599627370497 when it overflowed",
    "snowflake 1445930492344926208 is the message",
    "epoch 1763271234567890123 in nanoseconds",
    "VAT DE123456789, order GB12 ABCD 3456",
    "GR 26 AB 1234 is the licence plate",
    "Flight LH4521 on 12 May, gate B22, seat 31C",
    "commit {sha1} fixes the parser",
    "sha256:{sha256}",
    "request id {uuid}",
    "integrity sha512-{b64}==",
    "bethink forget --sweep --token {hex12}",
    "xai-grok is slower than the small model",
    "key-value stores are fine for this",
    "cio is the abbreviation of the role",
    "figd_ is the prefix of Figma tokens",
    "sk_live_ keys belong into the vault",
    "dp.pt is not a domain of ours",
    "The doppler effect shifts the token bucket by 3 ms",
    "password: ${{DB_PASSWORD}}",
    "DB_PASSWORD=$(vault read -field=password secret/db)",
    "export API_TOKEN=your-token-here",
    "Authorization: Bearer <token>",
    "The card was declined, ask the bank",
    "room {four} is booked, code review at {four}",
    "mot de passe oublié : le lien expire",
    "la contraseña: ver el gestor",
    "密码：请看保险库",
    "user/password fields are required",
    "The secret of the sauce is butter and time",
    "token usage was 12,345 of 200,000",
    "psql --password",
    "--password-stdin is safer than an argument",
    "Login as deploy / sudo is not needed",
    "secret = _open_tokens().create(name, valid_spaces)",
    "port, secret = _read_port_file(port_file)",
    "call again with token: {{report.plan.token}}",
)


def innocent(rng: Random) -> str:
    """A line that holds no secret, though much of it is near one."""
    return rng.choice(_INNOCENT).format(
        sha1=some(rng, HEX, 40),
        sha256=some(rng, HEX, 64),
        hex12=some(rng, HEX, 12),
        uuid=f"{some(rng, HEX, 8)}-{some(rng, HEX, 4)}-4{some(rng, HEX, 3)}-a{some(rng, HEX, 3)}-{some(rng, HEX, 12)}",
        b64=some(rng, AN + "+/", 86),
        four=some(rng, string.digits, 4),
    )
