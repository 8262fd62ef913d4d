"""Secrets are taken out, and nothing else is."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from bethink import Memory
from bethink.config.settings import USER_ONLY_SETTINGS, Settings
from bethink.errors import Refused
from bethink.ingest import redaction as redacting
from bethink.ingest.redaction import SECRET_KINDS, SecretKind, redact, redact_draft, redact_json
from bethink.ingest.secret_values import entropy, is_url_password
from bethink.model import Draft
from bethink.render.wire import dumps
from rows import each_row
from secrets_kept import KEPT, SPOKEN, SPOKEN_OF, beside, kept
from secrets_listed import read_list, survives
from secrets_made import FORMS, NAMED, TOKENS, WRAPPED, benign_line, draw, in_json, named_forms
from secrets_more import RECIPES, innocent
from secrets_told import GIVEN, OPENS_NOTHING, TOLD, given, near, told

EACH = 200


def missed(secret: str, text: str) -> bool:
    """Whether the secret survived; as JSON writes it, too."""
    left = redact(text).text
    return secret in left or json.dumps(secret)[1:-1] in left


@each_row("name", TOKENS)
def test_tokens_are_found_wherever_they_stand(name):
    """In prose, code, JSON and environment files: at least 99 of 100."""
    rng = Random(name)
    misses = []
    for i in range(EACH):
        secret = TOKENS[name](rng)
        text = FORMS[i % len(FORMS)](secret, rng)
        if missed(secret, text):
            misses.append(text)

    assert len(misses) <= EACH // 100, misses[:3]


@each_row("name", NAMED)
def test_what_only_its_name_gives_away_is_found(name):
    """Passwords and keys behind a word that says what they are."""
    rng = Random(name)
    make, names = NAMED[name]
    misses = []
    for _ in range(EACH):
        secret = make(rng)
        text = named_forms(rng.choice(names), secret, rng)
        if missed(secret, text):
            misses.append(text)

    assert len(misses) <= EACH // 100, misses[:3]


@each_row("name", WRAPPED)
def test_what_stands_inside_something_else_is_found(name):
    """Addresses, headers, connection strings, private blocks."""
    rng = Random(name)
    misses = []
    for i in range(EACH):
        secret, whole = WRAPPED[name](rng)
        text = FORMS[i % len(FORMS)](whole, rng)
        if missed(secret, text):
            misses.append(text)

    assert len(misses) <= EACH // 100, misses[:3]


def test_ordinary_lines_are_left_alone():
    """Hashes, ids, digests, placeholders, sentences about tokens: at most 1 in 200."""
    rng = Random(1)
    lines = [benign_line(rng) for _ in range(4_000)]

    wrong = [line for line in lines if redact(line).kinds]

    assert len(wrong) <= len(lines) // 200, wrong[:5]


SEED = "lizard umbrella cradle motion gravity pilot sausage hidden thunder fossil magnet purse"
NUMBERED_SEED = " ".join(f"{n}. {word}" for n, word in enumerate(SEED.split(), 1))


@each_row(
    ("text", "after", "kind"),
    [
        (
            "Use ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5 for CI.",
            "Use [redacted:github-token] for CI.",
            "github-token",
        ),
        (
            "postgres://app:s3cretpw@db:5432/x",
            "postgres://app:[redacted:url-credentials]@db:5432/x",
            "url-credentials",
        ),
        ("The password is Tr0ub4dor&3.", "The password is [redacted:password].", "password"),
        ('{"password": "p@ss w0rd9X!"}', '{"password": "[redacted:password]"}', "password"),
        ("DB_PASSWORD=hunter22;PORT=1", "DB_PASSWORD=[redacted:password];PORT=1", "password"),
        ("?token=aB3dE5fG7hI9&page=2", "?token=[redacted:secret]&page=2", "secret"),
        ("a <private>x\ny</private> b", "a [redacted:private] b", "private"),
        (
            "passwörd? no: Passwort: gEh3im!99 ja",
            "passwörd? no: Passwort: [redacted:password] ja",
            "password",
        ),
        *(
            (before + value + after, f"{before}[redacted:{kind}]{after}", kind)
            for before, value, after, kind in (
                ("Le mot de passe du NAS, c'est ", "ChienDnsFL", " (ne pas partager)", "password"),
                ("Пароль от сервера — ", "VesnahYyBH", "", "password"),
                ("you get into the box as root with ", "Tr0ub4WAjf", "", "password"),
                ("cohere: ", "hvMGOf0Se8fA6w6IBU1rCmuUdyHR5mSxkLjXHq2I", "", "secret"),
                ("vultr api ", "CDTNJIZN3FVROVKTD7GXQ29DODLTTTWH0YTY", "", "secret"),
                ("the erlang cookie is ", "BGLZCOIELDHSJNFHDNOQ", "", "secret"),
                ("Cookie: JSESSIONID=", "CY0ADRDBRKUMYR936BNLPOWBF30UZIBY", "; a=b", "cookie"),
                ("https://acme.io/webhook/", "f53c756530118f57e9c44f7facfc5525", "/0", "webhook"),
                ("TOTP: ", "GXVF SM7F J4PJ 22VJ L2E5", " of the bank", "one-time-code-seed"),
                ("KUBE_BOOTSTRAP=", "1bd226.5bf43d78f6a29d0b", "", "kubernetes-token"),
                ("root pass ", "t0mat0-Soup", "", "password"),
                ("The door logs in with user svc and pass ", "Xk29!pq", "", "password"),
                ("staging basic auth is demo with ", "sp4ghetti-m0nster", "", "password"),
                ("printer web ui → admin → ", "x9Kettle!!", "", "password"),
                ("facebook ", "EA" + "jT4kQ9zLw2XvB7nR" * 3 + "c8", "", "secret"),
                ("mastercard ", "5105 1051 0510 5100", " 11/28", "card-number"),
                ("my 12 word backup: ", SEED, "", "seed-phrase"),
                ("12 words: ", NUMBERED_SEED, "", "seed-phrase"),
                ("backup codes\n", "abcd-1f2g\nk3l4-m5n6\n7o8p-q9r0", "", "recovery-code"),
            )
        ),
    ],
)
def test_the_words_around_a_secret_stay(text, after, kind):
    """Only the secret is replaced, by its kind."""
    assert redact(text) == (after, (kind,))


@each_row(
    "text",
    [
        "The token bucket refills at 30 requests per second",
        "password = getpass.getpass()",
        "if password == other: return True",
        "if pw == typed: return",
        "password: str = Field(min_length=12)",
        "token = request.headers['Authorization']",
        "api_key=YOUR_KEY",
        "secret: kubernetes/billing",
        "The secret is out: we ship on Friday",
        "Authorization: Bearer <token>",
        "basic authentication is on",
        "token: HMAC-SHA256 signed, 32 bytes",
        "password must contain at least 8 characters and 1 digit",
        'password: "must contain at least 8 characters and 1 digit"',
        "postgres://user:password@localhost/db",
        "https://example.com:8443/path@2x.png",
        "the <private> tag hides what it encloses",
        "-----BEGIN PRIVATE KEY----- opens every key file, -----END PRIVATE KEY----- closes it",
        "sk-learn-compatible-estimators-for-everyone",
        "AKIAIOSFODNN7EXAMPLE is the documented example",
        "mysql://user:<password>@host/db",
        "DOI: 10.3390/electronics9050827",
        "file id: 1aB9cD8eF7gH6iJ5kL4mN3oP2qR1sT0uV",
        "https://acme.io/hooks/deploy-production-cluster",
        "the password is in KeePassXC",
        "pasword hashng",
        "das Passwort ist Pflicht",
        "Passwort: unbekannt",
    ],
)
def test_what_only_speaks_of_secrets_stays(text):
    """Documentation, code and placeholders hold none."""
    assert redact(text) == (text, ())


def test_redacting_twice_changes_nothing_more():
    """What stands in for a secret is not one."""
    rng = Random(5)
    for i in range(300):
        make = rng.choice([*TOKENS.values()])
        once = redact(FORMS[i % 4](make(rng), rng)).text
        assert redact(once).text == once


def test_several_secrets_in_one_text():
    """Each is replaced, each kind is named once, in order."""
    rng = Random(2)
    tokens = [TOKENS["github classic"](rng), TOKENS["stripe"](rng), TOKENS["github classic"](rng)]

    found = redact(" and ".join(tokens))

    assert found.kinds == ("github-token", "stripe-key")
    assert found.text.count("[redacted:") == 3


def test_every_field_of_a_draft_is_cleaned():
    """A secret in a tag or deep in the metadata is as bad as one in the text."""
    rng = Random(3)
    secrets = [TOKENS["npm"](rng) for _ in range(13)]
    draft = Draft(
        secrets[0],
        caption=secrets[1],
        original=secrets[2],
        speaker=secrets[3],
        tags=(secrets[4], "fine"),
        entities=(secrets[5],),
        topic=secrets[6],
        kind=secrets[8],
        tier=secrets[9],
        session=secrets[10],
        language=secrets[11],
        key=secrets[12],
        metadata={
            "deep": [{"er": secrets[7]}],
            "password": "hunter22",
            "api_key": draw(rng, "abc123XY", 20),
        },
    )

    cleaned, kinds = redact_draft(draft)

    whole = repr(cleaned)
    assert not [secret for secret in secrets if secret in whole]
    assert "hunter22" not in whole
    assert cleaned.metadata["api_key"] == "[redacted:secret]"
    assert cleaned.tags[1] == "fine"
    assert kinds == ("npm-token", "password", "secret")


def test_a_field_is_cleaned_with_its_name_and_loses_nothing_else():
    """A secret in the name takes nothing off the value; what the name tells is no more than that."""
    token = TOKENS["npm"](Random(5))
    given = {token: "a value that stays as it is", "token": f"{token} of SSN 219-09-9998"}

    assert redact_json(given, personal=True) == {
        "[redacted:npm-token]": "a value that stays as it is",
        "token": "[redacted:npm-token] of SSN [redacted:personal-number]",
    }
    told = {"radius": "radius key abc123xyz", "password": 'hunter22!"'}
    assert redact_json(told) == {
        "radius": "radius key [redacted:password]", "password": '[redacted:password]"'
    }  # fmt: skip


def test_only_names_of_secrets_give_a_value_away():
    """A digest stays: the key by which an import finds its entry, an author, a key of a table."""
    digest, own = draw(Random(6), "0123456789abcdef", 32), TOKENS["npm"](Random(6))
    kept = dict.fromkeys(("key", "author", "tokenizer", "cache_key", "session"), digest)
    mark = {"key": f"mem0:{digest}", "version": "7d1f0c2a9b3e4856", "words": "51c0be7e93d2a64f"}
    taken = "[redacted:secret]"

    assert redact_json([{"imported": mark}, kept]) == [{"imported": mark}, kept]
    assert redact_json({"api_key": digest, "client_secret": digest}) == {
        "api_key": taken, "client_secret": taken
    }  # fmt: skip
    assert own not in repr(redact_json(mark | {"key": own}))


def test_a_draft_without_secrets_is_the_same_draft():
    """Nothing is rebuilt for nothing."""
    draft = Draft("The token bucket refills", metadata={"a": [1, "b"]})

    assert redact_draft(draft) == (draft, ())
    assert redact_draft(draft)[0] is draft


def test_there_are_many_kinds():
    """By name, and each can be told from an ordinary text by a word."""
    assert len({kind.name for kind in SECRET_KINDS}) >= 18
    shaped = {"discord-token", "card-number", "wallet-key", "api-key", "secret", "personal-number"}
    assert all(kind.words or kind.name in shaped for kind in SECRET_KINDS)


BIG = 100_000
SEEDS = ["a", "A1", "aA1", "(a|b)*", "((((", "  ", "://", "a:b@", "password=", "token: ", "\n", '"']
SEEDS += ["=", "eyJaaaaaaaa.", "http://aaaa:", "é", "password is ", "curl -u ", "<private>"]


# Seconds of the processor for one text. Usual are 50 ms at most; a pattern whose time grows with
# the square of the text's length takes 8 s and more.
GUARD = 5.0


def test_every_pattern_is_linear():
    """No kind takes more than moments for 100 KB of what would trap another engine."""
    repeated = cache(lambda seed: (seed * (BIG // len(seed) + 1))[:BIG].encode())
    for i, kind in enumerate(SECRET_KINDS):
        words = kind.words[:6]
        for seed in (*SEEDS, *words, *(f"{word}aB3" for word in words)):
            raw = repeated(seed)
            began = time.process_time()
            redacting._claim_matches(i, raw, [])
            assert time.process_time() - began < GUARD, (kind.name, kind.pattern, seed)


@each_row(
    "text",
    [
        "password = 'key" + "_a" * 31 + "1!'",  # each of which may begin a part of a field's name
        "DB_PASSWORD='key" + "_a" * 31 + "!'",
        "DB_PASSWORD=" + "a" * 64_000,
        "DB_PASSWORD=" + "aB" * 32_000,
    ],
)
def test_the_check_of_a_value_is_linear(text):
    """However long a value is, and however many ways a name of a field could be read in it."""
    began = time.process_time()
    redact(text)
    assert time.process_time() - began < GUARD


@each_row("sign", ".-:")
def test_a_value_of_numbers_and_signs_is_told_in_time(sign):
    value, began = f"1{sign}" * 32_000 + "!", time.process_time()
    assert is_url_password(value)
    assert time.process_time() - began < 1


def test_an_ordinary_memory_needs_no_pattern():
    """Without a keyword no pattern runs."""
    memory = (
        "The nightly export writes its files to the finance bucket and keeps them for thirty days"
    )

    assert redacting._candidate_kinds(memory) == []


@each_row(
    ("text", "is_one"),
    [
        ("password: 48151623", True),
        ("jane@acme.io:Tr!dent2210", True),
        ("Zugang: mmueller / Herbst!2025x", True),
        ("the sudo password, Obsid1an!, was on a slide", True),
        ("jdbc:oracle:thin:scott/T1ger!lilly@db:1521/x", True),
        ("hotspot key: blaubeere42", True),
        ("FERNET_KEY=CmtfyTMVSm3ihASol8UlJi5qfAe8vuhB90XFXU6fdH8=", True),
        ("AKIA29326ML64LG2TJF8 / FcrnUAcgHhJhew/tp+Fkd5b/AivqjtAqgqF1kw8j", True),
        ("BUILD_SHA256=CmtfyTMVSm3ihASol8UlJi5qfAe8vuhB90XFXU6fdH8=", False),
        ("ticket OPS#1182: password reset mails are late", False),
        ("public key ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEx4vP0yJqS8nT2bQw", False),
        ("password: 11111111", False),
        ("password=correct-horse", False),
        ("The password for the staging db is hunter2-Staging! and it works", True),
        ("the db password is tide4711!", True),
        ("Das Passwort für den Server ist Sommer2024!", True),
        ("The password store is postgres-16 behind a proxy", False),
        ("password hashing is argon2id, the column is varchar(255)", False),
        ("The password manager is Bitwarden2", False),
        ("Our password manager is 1Password, and everyone has a seat", False),
        ("The password algorithm is sha512crypt", False),
        ("The password reset ticket is OPS1234", False),
        ("The password we use there is tide4711!", True),
        ("Password (staging) is tide4711!", True),
        ("The password, by the way, is tide4711!", True),
        ("the wifi password on floor 2 is now tide4711!", True),
        ("the password was changed to x9Fk2lPq8z", True),
        ("Password has been reset to Zk4t9QmL1p", True),
        ("The password vault is KeePass2", False),
        ("The password reset page is app/v2/reset", False),
        ("The password policy is NIST800-63B", False),
        ("client_secret: abcdefghijklmnop", False),
        ("client_secret: aQzXcVbNmKjHgFdSwErT", True),
        ("api_key: 'the first key aB3dE5fG7h here'", True),
        ("api_key: 'the first of them'", False),
        ("token: 2023-05-08", False),
        ("token=0123456789012345", False),
        ("token: aes-256-gcm", False),
        ("secret=settings.billing.api_token2", False),
        ("secret_key=/run/secrets/key2", False),
        ("Authorization: Basic !!!!notbase64", False),
        ("Authorization: Basic YWJjZGVmZ2hpams=", False),
        ("These are basic pitfalls, basic ResponseOutputText and basic halfLifeDays", False),
        ("Authorization: Basic dXNlcjpw5HNz", True),  # of Latin-1
        ("The session 01HQ3K5V9Z8X7Y6W5V4T3S2R1Q was closed", False),
        ("The token bug was fixed in 3f786850e387550fdab836ed7e6dc881de23001b", False),
        ("The new token: 3f786850e387550fdab836ed7e6dc881de23001b", True),
        ("The key years were 2019 2020 2021 2022", False),
        ("The key is 7f3k 2020 2021 9x8d", True),
        ("authorization: token 8f7aB3dE5fG7hI9jK1", True),
        ("authorization: bearer 0123456789abcdef0123456789abcdef", True),
    ],
)
def test_borderline_values(text, is_one):
    """Drawn by a machine or by hand, or only looking so."""
    assert bool(redact(text).kinds) is is_one


def test_entropy_grows_with_variety():
    """One letter says nothing, sixteen different ones four bits each."""
    assert entropy("aaaa") == 0
    assert entropy("0123456789abcdef") == 4


def test_json_keeps_its_shape():
    """What was JSON before is JSON after."""
    rng = Random(9)
    for make in TOKENS.values():
        json.loads(redact(in_json(make(rng), rng)).text)


@each_row("name", RECIPES)
def test_goal_s8_every_recipe_of_the_second_set(name: str) -> None:
    """At least 99 of 100 secrets of each kind leave no byte behind."""
    rng = Random(f"second {name}")
    kept = []
    for _ in range(100):
        secret, text = RECIPES[name](rng)
        if secret in redact(text).text:
            kept.append(text)

    assert len(kept) <= 1, kept[:3]


def test_goal_s8_no_false_alarm_in_the_second_set() -> None:
    """Not one innocent line is changed."""
    rng = Random(20261116)
    changed = {line for line in (innocent(rng) for _ in range(3000)) if redact(line).kinds}

    assert changed == set()


@each_row("form", TOLD)
def test_goal_s8_every_recipe_of_the_third_set(form: str) -> None:
    """Told in seven languages, typed in a shell, written to a file: 99 of 100 leave no byte."""
    rng, kept = Random(f"third {form}"), []
    for _ in range(100):
        secrets, text = told(form.replace(r"\n", "\n"), rng)
        after = redact(text).text
        kept += [text] if any(secret in after for secret in secrets) else []

    assert len(kept) <= 1, kept[:3]


def test_goal_s8_no_false_alarm_in_the_third_set() -> None:
    """Not one of the lines near a secret is changed; a bank account's number is none."""
    lines = near(Random(20261117))

    assert len(set(lines)) >= 300
    assert {line: redact(line).text for line in lines if redact(line).kinds} == {}


@each_row("form", KEPT)
def test_goal_s8_every_recipe_of_the_fourth_set(form: str) -> None:
    """In files of many tools, in commands, chats, addresses, headers: 99 of 100 leave no byte."""
    rng, left = Random(f"fourth {form}"), []
    for _ in range(100):
        secrets, text = kept(form.replace(r"\n", "\n"), rng)
        after = redact(text).text
        left += [text] if any(secret in after for secret in secrets) else []

    assert len(left) <= 1, left[:3]


def test_goal_s8_no_false_alarm_in_the_fourth_set() -> None:
    """Names, numbers and code beside a word that speaks of passwords stay as they are."""
    lines = beside(Random(20261118))

    assert {line: redact(line).text for line in lines if redact(line).kinds} == {}


def test_goal_s8_every_recipe_of_the_fifth_set() -> None:
    """What only the words around it give away, in nine languages and many files: 99 of 100."""
    rng, left = Random("fifth"), []
    for form in GIVEN:
        for _ in range(10):
            secrets, text = given(form.replace(r"\n", "\n"), rng)
            after = redact(text).text
            left += [text] if any(secret in after for secret in secrets) else []

    assert len(left) <= len(GIVEN) * 10 // 100, left[:5]


def test_goal_s8_no_false_alarm_in_the_fifth_set() -> None:
    """The same words and numbers stay where they open nothing."""
    assert {line: redact(line).text for line in OPENS_NOTHING if redact(line).kinds} == {}


def test_goal_s8_every_sentence_of_the_sixth_set() -> None:
    """Passwords, codes and keys in chats and notes of twenty languages."""
    marked = re.compile("⟦(.*?)⟧")
    plain = {line: re.sub("[⟦⟧]", "", line).replace(r"\n", "\n") for line in SPOKEN}
    after = {line: redact(text).text for line, text in plain.items()}

    assert len(SPOKEN) >= 80
    assert [
        line for line in SPOKEN if any(one in after[line] for one in marked.findall(line))
    ] == []


def test_goal_s8_no_false_alarm_in_the_sixth_set() -> None:
    """What only sounds so stays: policies, numbers of things, codes that open nothing."""
    assert len(SPOKEN_OF) >= 120
    assert {line: redact(line).text for line in SPOKEN_OF if redact(line).kinds} == {}


def test_a_key_with_a_secret_still_recognises_a_repetition():
    """It is kept as its hash; a name of the same shape, as of a conversation, stays."""
    token, name = "glpat-" + "a1B2c3D4e5F6g7H8i9J0", "conv_" + "0f9e8d7c6b5a4d3e" * 3
    with Memory.open(":memory:", embedder="none") as memory:
        first = memory.remember("The pipeline is red", key=token)
        assert memory.remember("The pipeline is red", key=token).id == first.id
        turn = memory.remember("Hello there", session=name, key=name, id=name)
        assert memory.get(turn.id).session == turn.id == name
        for give in (
            lambda: memory.remember("Another", id=token),
            lambda: memory.put_thread("Red", [first.id], id=token),
        ):
            with pytest.raises(Refused, match="holds a secret"):
                give()


PERSONAL = {
    "Bitte an DE89 3704 0044 0532 0130 00 BIC COBADEFFXXX": "DE89 3704 0044 0532 0130 00",
    "account GB82WEST12345698765432, please": "GB82WEST12345698765432",
    "her SSN (219-09-9998) is on the form": "219-09-9998",
    "social security number: 219099998": "219099998",
    "NI number AB123456C": "AB123456C",
    "mine is AB 12 34 56 C": "AB 12 34 56 C",
    "Steuer-ID 86095742719": "86095742719",
    "Steuer-ID 86 095 742 719.": "86 095 742 719",
    "Meine Steueridentifikationsnummer lautet 860 957 427 19": "860 957 427 19",
    "Aadhaar 2345 6789 0124": "2345 6789 0124",
    "aadhaar no: 234567890124": "234567890124",
    "iban de89370400440532013000": "de89370400440532013000",
    "IBAN: DE89-3704-0044-0532-0130-00": "DE89-3704-0044-0532-0130-00",
    "IBANDE89370400440532013000": "DE89370400440532013000",
    "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000 is it": (
        "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000"
    ),
    "my social is 219099998": "219099998",
    "passport C01X00T47 12.05.2027": "C01X00T47 12.05.2027",
}
IMPERSONAL = (
    "DE89 3704 0044 0532 0130 01 is mistyped", "IBAN fields take 34 characters",
    "AWS account 234567890124", "2345 6789 0123 calls", "phone 415-555-0132", "666-12-3456",
    "order AB123456C", "86095742710 views", "card 2345 6789 0124 3456", "19 June, 123-45-67890",
    "The budget is 12 345 678 901", "v2.219-09-9998", "2026-11-17 10:22:33",
    "the passport expires 12.05.2027", "passport valid until 2027/05/12", "SIN: 5/12/2027 at 14",
    "part no. ab12 3456 7890 1234", "hash de89370400440532013001ab", "be 16 years old",
)  # fmt: skip


def test_personal_numbers_go_where_they_are_to_go():
    """By their check digits, or the parts they have; without a request none is looked for."""
    for text, number in PERSONAL.items():
        assert redact(text, personal=True).text == text.replace(
            number, "[redacted:personal-number]"
        )
        assert redact(text).text == text
    assert [text for text in IMPERSONAL if redact(text, personal=True).kinds] == []


@each_row("between", ["\n", " ", ", ", " 12.50 EUR\n", " 2026-11-17 "])
def test_every_personal_number_of_a_list_goes(between):
    """Whatever stands between them, also other numbers."""
    numbers = (
        "DE89370400440532013000", "GB82WEST12345698765432", "219-09-9998", "86095742719",
        "FR1420041010050500013M02606",
    )  # fmt: skip
    left = redact(between.join((*numbers, "")), personal=True).text
    assert left == between.join(("[redacted:personal-number]",) * 5 + ("",))


@each_row(
    ("setting", "told", "captured"),
    [("captured", True, False), ("all", False, False), ("none", True, True)],
)
def test_the_setting_says_which_texts_lose_personal_numbers(setting, told, captured):
    """Those of captured turns, unless the user wants all or none to; a project cannot say."""
    number = "DE89370400440532013000"
    settings = replace(Settings(), personal_numbers=setting)
    with Memory.open(":memory:", embedder="none", settings=settings) as memory:
        note = memory.remember(f"The club's account is {number}")
        turn = memory.remember(f"Pay to {number}", level="raw", session="s")
        assert (number in memory.get(note.id).text) is told
        assert (number in memory.get(turn.id).text) is captured
    assert "personal_numbers" in USER_ONLY_SETTINGS


@each_row("field", ["source", "topic", "speaker", "caption"])
def test_no_field_of_a_memory_keeps_a_secret(field: str) -> None:
    """Not only its text: where it came from and what it is filed under as well."""
    token = "glpat-" + "a1B2c3D4e5F6g7H8i9J0"
    with Memory.open(":memory:", embedder="none") as memory:
        stored = memory.remember("The pipeline is red", **{field: f"ci {token}"})
        tagged = memory.remember("Another note", tags=[token], metadata={"note": token})
        memory.note_edits(
            [
                {"path": "a.py", "operation": "edit", "intent": f"use {token} here now"},
                {"path": f"{token}.py", "operation": "edit", "session": token},
            ]
        )
        memory.forget(memory.remember("A third note").id, reason=f"it named {token}")
        memory.link(stored.id, "implies", tagged.id, context=f"because of {token}")
        memory.put_thread(f"About {token}", [stored.id])

        assert stored.redacted == tagged.redacted == ("gitlab-token",)
        assert token not in dumps(list(memory.export()))


def test_no_keyword_is_overlooked() -> None:
    """The tree of beginnings finds exactly the kinds that a search for each keyword does."""
    rng = Random(11)
    words = [word for kind in SECRET_KINDS for word in kind.words]
    for _ in range(500):
        parts = (rng.choice(words)[: rng.randrange(1, 12)] for _ in range(6))
        text = rng.choice(("", " ", "x")).join(parts)
        expected = {number for number, kind in enumerate(SECRET_KINDS) if _is_named(kind, text)}
        found = set(redacting._candidate_kinds(text))
        assert found - expected <= {*redacting._CARD_KINDS, *redacting._TOKEN_KINDS}
        assert expected <= found


def _is_named(kind: SecretKind, text: str) -> bool:
    """Whether a keyword of the kind occurs; that of a token in a word of 20 characters."""
    if kind.long:
        return any(word in part for part in text.split() if len(part) >= 20 for word in kind.words)
    return any(word in text.lower() for word in kind.words)


def test_a_private_key_without_its_beginning_is_one() -> None:
    """What a copy has cut off in front hides nothing of the rest."""
    lines = ["jT4kQ9zLw2XvB7nRc8" * 3, "Qm5vZ1xP" * 8, "aB3dE5fG7hI9=="]
    text = "only the tail:\n" + "\n".join(lines) + "\n-----END EC PRIVATE KEY-----"

    assert not any(line in redact(text).text for line in lines)


def test_nothing_is_found_where_nothing_is() -> None:
    """Hashes, ids, versions, numbers of things, placeholders, policies, names in code."""
    lines = Path(__file__).parents[2].joinpath("secrets_none.txt").read_text("utf-8").splitlines()

    assert len(lines) >= 300
    assert {
        line: redact(line, personal=True).text
        for line in lines
        if redact(line, personal=True).kinds
    } == {}


@each_row(
    ("name", "caught", "changed"),
    [
        ("a", 0.985, 1),
        ("b", 0.97, 1),
        ("c", 0.965, 1),
        ("d", 0.9, 1),
        ("e", 0.95, 1),
        ("f", 0.93, 1),
    ],
)
def test_lists_of_pasted_lines(name, caught, changed):
    """As people and agents paste them; at most 1 harmless line in 300 is changed."""
    lines = [line for seed in range(3) for line in read_list(name, seed)]
    held = [line for line in lines if line.secrets]
    left = [line.text for line in held if survives(line, redact(line.text, personal=True).text)]
    plain = [line.text for line in lines if not line.secrets]
    wrong = [text for text in plain if redact(text, personal=True).kinds]

    assert len(left) <= (1 - caught) * len(held), left
    assert len(wrong) <= changed * len(plain) / 300 + 1, wrong
