"""A third set: secrets as people tell them and as tools write them, and lines near them.

``{p}`` is a drawn password, ``{m}`` one made by a person, ``{x}`` hex digits, ``{a}``
and ``{b}`` base64, ``{t}`` a one-time-code seed, ``{s}`` and ``{S}`` a seed phrase of 12 and 24 words,
``{d}`` six digits, ``{c}`` a card's number, ``{j}`` a JSON Web Token, ``{k}`` key lines.
"""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Callable, Mapping
from random import Random

from secrets_more import AN, HEX, card, some

# Of the BIP-39 list, which has 2,048: short, plain, no function words among them.
_SEED_TEXT = """
abandon ability absent acid actor adapt afraid album alley amateur anchor ancient angry antique
apology arctic armor artefact aspect atom auction august avocado bacon badge balcony bamboo
banner basket beauty because become before begin behave below bench between beyond bicycle
biology blanket blossom bonus borrow bottom bounce bracket brave bronze bubble budget burden
cabin cactus camera cannon canvas captain carbon casino castle catalog caution ceiling celery
cement census cereal chaos cherry chimney choice chunk circle citizen claim clay clever client
cliff clog cloth cluster coconut comfort concert copper coral cotton couple cradle cream cricket
crouch cruise cushion damage danger daring dawn debris decade deer degree depart desert despair
device diamond diesel dinner dolphin donkey dragon drama drift eager eagle easily echo ecology
effort either elbow elephant embark empower enact engine enough entire envelope erosion essay
evolve exact exile expose fabric faculty faint family fatigue fiber fiction filter flame flavor
flower focus fossil fragile frozen furnace gadget galaxy garlic gauge genius giraffe glimpse
gorilla gravity guitar habit hammer hazard hedgehog hockey hybrid icon illness inherit inside
"""
SEED_WORDS = _SEED_TEXT.split()
Makers = Mapping[str, Callable[[Random], str]]
_NOUNS = ("Sommer", "Falcon", "Bonjour", "Tiger", "Dragon", "Welcome", "Napoli", "Verano", "Otter")


def _person_made(rng: Random) -> str:
    sign = rng.choice("!$&*_+")
    return rng.choice((
        f"{rng.choice(_NOUNS)}{rng.randrange(1960, 2030)}{sign}",
        f"{rng.choice(_NOUNS).replace('o', '0').replace('e', '3')}{sign}{rng.randrange(10, 99)}",
        f"{sign}{rng.choice(_NOUNS)}{rng.choice(_NOUNS)}{rng.randrange(100, 999)}",
    ))  # fmt: skip


def _drawn(rng: Random) -> str:
    letters = some(rng, AN, rng.randrange(7, 14))
    return f"{rng.choice(string.ascii_letters)}{rng.randrange(10)}{letters}{rng.choice('!+x')}7"


def _web_token(rng: Random) -> str:
    parts = ({"alg": "HS256"}, {"sub": some(rng, AN, 8), "iat": rng.randrange(10**9)})
    coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return ".".join((*coded, some(rng, AN + "-_", 43)))


MADE = {
    "p": _drawn,
    "m": _person_made,
    "x": lambda rng: some(rng, HEX, rng.choice((32, 40, 64))),
    "a": lambda rng: some(rng, AN + "+/", 40),
    "b": lambda rng: some(rng, AN + "+/", 43) + "=",
    "t": lambda rng: some(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", rng.choice((16, 32))),
    "s": lambda rng: " ".join(rng.sample(SEED_WORDS, 12)),
    "S": lambda rng: " ".join(rng.sample(SEED_WORDS, 24)),
    "d": lambda rng: some(rng, string.digits, 6),
    "c": card,
    "j": _web_token,
    "k": lambda rng: "\n".join(some(rng, AN + "+/", 64) for _ in range(4)),
}


def told(form: str, rng: Random) -> tuple[list[str], str]:
    """The secrets of a form and the text that holds them."""
    return fill(form, MADE, rng)


def fill(form: str, made: Makers, rng: Random) -> tuple[list[str], str]:
    """The secrets drawn for the marks of a form, and the text with them."""
    secrets, text = [], form
    for name, make in made.items():
        while f"{{{name}}}" in text:
            secrets.append(make(rng))
            text = text.replace(f"{{{name}}}", secrets[-1], 1)
    return secrets, text


TOLD = r"""
le mot de passe est {m}
Le mot de passe du wifi est {p}
Le mot de passe de la base est maintenant {p}.
Son mot de passe c'est {m}
mot de passe = {p}
Mon mot de passe : {m}
Le nouveau mot de passe du serveur est « {p} »
das Passwort lautet {m}
Das Passwort für den Server lautet {p}.
Das neue Kennwort heißt {m}
Kennwort ist jetzt {p}
Das WLAN-Passwort ist {m}
das Passwort vom Router war {p}
Passwort wurde auf {p} geändert
la contraseña es {m}
La contraseña del router es {p}
La nueva contraseña de la base es {p}.
mi contraseña es: {m}
contraseña = {p}
La contraseña era {m} hasta ayer
la password è {m}
La password del server è {p}
la parola d'ordine è {m}
password: {m} (non dirlo a nessuno)
a senha é {m}
A senha do servidor é {p}.
minha senha: {m}
a palavra-passe é {p}
het wachtwoord is {m}
wachtwoord van de NAS: {p}
lösenordet är {m}
hasło to {p}
parola este {m}
şifre: {p}
пароль от сервера {p}
密码是{p}
login with user kim and password {p}
log in as kim with password {m}
use kim and the password {p} to log in
user: kim, password: {p}
username kim password {p}
kim's password is {m}
sign in with kim@example.org and {p} as the password
The admin password was {m}
The password was changed from {m} to {p}
password changed from {p} to {m} today
We rotated the db password from {p} to {p}
The old password was {m}, the new one is {p}
set the root password to {p}
I reset his password to {m}
smtp pass: {p}
SMTP_PASS={p}
smtp_pass: '{p}'
ftp pass {p}
db pass is {p}
DB_PASS="{p}"
wifi key: {p}
WPA2 key is {p}
Wi-Fi: Guests, pass: {m}
kubectl create secret generic db --from-literal=pw={p}
kubectl create secret generic db --from-literal=password={p} --from-literal=user=app
kubectl create secret docker-registry reg --docker-username=ci --docker-password={p}
htpasswd -b /etc/nginx/.htpasswd kim {p}
htpasswd -bc file admin {p}
echo '{p}' | sudo -S apt update
echo "kim:{p}" | chpasswd
echo {p} | docker login -u ci --password-stdin
net use Z: \\files\share {p} /user:kim
net user kim {p} /add
ldapsearch -x -D cn=admin,dc=x -w {p} -b dc=x
mongosh -u root -p {p} --authenticationDatabase admin
mongodump --username root --password {p}
psql "host=db user=app password={p} dbname=shop"
PGPASSWORD={p} psql -h db -U app
MYSQL_PWD={p} mysqldump shop
mysqladmin -u root password {p}
sqlplus scott/{p}@orcl
rabbitmqctl change_password guest {p}
rabbitmqctl add_user app {p}
ALTER USER app WITH PASSWORD '{p}';
CREATE USER 'app'@'%' IDENTIFIED BY '{p}';
ALTER ROLE app PASSWORD '{p}'
wget --user=kim --password={p} https://files.internal/a.zip
wget --http-password={p} https://files.internal/a.zip
curl -u kim:{p} https://api.internal
curl --user "kim:{p}" https://api.internal
curl -H "X-Api-Key: {x}" https://api.internal
curl -H 'Cookie: sessionid={x}' https://app.internal
Set-Cookie: session={b}; HttpOnly
Cookie: PHPSESSID={x}; theme=dark
aws configure set aws_secret_access_key {a}
az login --service-principal -u app -p {p} --tenant t
vault login {p}
gpg --batch --passphrase {p} -d file.gpg
openssl enc -aes-256-cbc -k {p} -in a -out b
zip -P {p} backup.zip notes.txt
7z x backup.7z -p{p}
unzip -P {p} backup.zip
ansible-playbook site.yml -e "db_password={p}"
ansible_become_pass: {p}
ansible_ssh_pass={p}
terraform apply -var="db_password={p}"
helm install x --set auth.password={p}
docker run -e POSTGRES_PASSWORD={p} postgres
docker run -e MYSQL_ROOT_PASSWORD={p} mysql
sshpass -p '{p}' ssh root@host
plink -pw {p} root@host
xfreerdp /u:kim /p:{p} /v:host
cryptsetup: the LUKS passphrase is {m}
git clone https://kim:{p}@git.internal/a.git
git remote set-url origin https://oauth2:{p}@gitlab.internal/a.git
postgresql://app:{p}@db:5432/shop
mongodb://root:{p}@mongo:27017/?authSource=admin
amqp://guest:{p}@rabbit:5672/
redis://default:{p}@cache:6379
ftp://kim:{p}@ftp.internal/
sftp://kim:{p}@host/path
jdbc:mysql://db/shop?user=app&password={p}
Server=db;Database=shop;User Id=app;Password={p};
Data Source=db;User ID=sa;Pwd={p}
mssql+pyodbc://sa:{p}@db/shop
machine git.internal login kim password {p}
//registry.npmjs.org/:_authToken={x}
_auth = {b}
[default]\naws_secret_access_key = {a}
spring.mail.password={p}
<password>{p}</password>
<property name="password" value="{p}"/>
password: !vault {p}
"password": "{p}"
'secretKey' => '{b}'
SECRET_KEY = '{b}'
JWT_SECRET={b}
DJANGO_SECRET_KEY="{b}"
client_secret: {b}
clientSecret={p}{p}
api_key: {x}
apikey {x}
x-api-key: {x}
access token {b}
Authorization: Bearer {j}
the token is {j}
id_token={j}
refresh_token={b}
-----BEGIN PRIVATE KEY-----\n{k}\n-----END PRIVATE KEY-----
-----BEGIN EC PRIVATE KEY-----\n{k}\n-----END EC PRIVATE KEY-----
-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{k}\n-----END PGP PRIVATE KEY BLOCK-----
-----BEGIN ENCRYPTED PRIVATE KEY-----\n{k}\n-----END ENCRYPTED PRIVATE KEY-----
PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{b}
[Interface]\nPrivateKey = {b}
PresharedKey = {b}
otpauth://totp/Git:kim?secret={t}&issuer=Git
The TOTP secret is {t}
2FA seed: {t}
authenticator key {t}
MFA secret for aws: {t}
My seed phrase is {s}
seed phrase: {s}
Recovery phrase: {S}
The mnemonic of the wallet is {s}
wallet mnemonic: {S}
Meine Seed-Phrase lautet {s}
la phrase de récupération est {s}
la frase semilla es {s}
The card is {c}, valid until 04/27
Kreditkarte {c}
CVV is 482, card {c}
my PIN is {d}
Der PIN-Code lautet {d}
le code PIN est {d}
el PIN es {d}
the door code is {d}
The alarm code: {d}
The safe combination is {d}
""".strip().splitlines()

_NEAR = r"""
The password policy asks for 16 characters and {n} digits
Password rotation happens every {n} days for all service accounts
le mot de passe est obligatoire pour ouvrir le coffre
Le mot de passe est stocké dans le coffre de l'équipe
mot de passe oublié depuis hier
Le mot de passe est trop court, il faut {n} caractères
Le mot de passe de la base est géré par Vault
das Passwort lautet bei allen gleich, das ist ein Problem
Das Passwort ist abgelaufen
Das Passwort ist im Tresor von Bitwarden
Das Kennwort muss {n} Zeichen lang sein
Das Passwort wurde gestern von Ines geändert
Passwort vergessen, bitte zurücksetzen
Das neue Passwort wird per Post geschickt
la contraseña es demasiado corta
La contraseña es la misma en todas partes
La contraseña del router está en la caja fuerte
la contraseña se cambia cada {n} días
la password è scaduta ieri
La password è nel gestore, sezione {n}
la parola chiave di oggi è pazienza
Le parole sono importanti per lui
a senha é guardada no cofre
A senha é trocada a cada {n} dias
het wachtwoord is verlopen
lösenordet är gammalt
hasło to tajemnica zespołu
пароль от сервера хранится у Ивана
密码是保密的
パスワードは金庫にあります
login with user kim and password from the vault
log in as kim with password manager open
username kim, password from {n}Password
user and password are checked by the gateway
username and password fields have {n} characters at most
the password and the user name are case sensitive
The password was changed from weekly to monthly rotation
The password length was changed from {n} to 16
password hashing was changed from bcrypt to argon2id
password hashing moved from PBKDF2-SHA256 to scrypt
The password reset ticket is ABC-{n}{n}
Password reset is tracked in JIRA-1{n}
password hash column is varchar(128)
password field of form v2.{n} is broken
The password manager is 1Password
The password manager is Bitwarden{n}
The password prompt of OAuth2 logins is gone
Password-less login is planned for 2025Q{n}
The password screen in build 2024.{n}.1 flickers
password validator accepts RFC{n}{n}26 secrets
pass the salt, please
the tests pass: {n} of {n}
all tests pass now on Python3.1{n}
smtp pass rate: 99.{n} percent
first pass: clean up, second pass: rename
pass 2 of the compiler took {n} seconds
boarding pass is in the mail
pw is the abbreviation for password
the ski pass is 4{n} euros
a pass is needed for the bus 1{n}A
wifi key is under the router
The WPA2 key is printed on the back
wifi code: ask at the reception
kubectl create configmap app --from-literal=mode=production
kubectl create secret generic db --from-file=./password.txt
kubectl create configmap app --from-literal=log.level=debug
kubectl get secret db -o yaml
htpasswd -c /etc/nginx/.htpasswd kim
htpasswd is part of apache2-utils
echo "done" | tee log.txt
echo hello | sudo tee /etc/motd
echo $PASSWORD | docker login -u ci --password-stdin
net user lists all accounts
net user kim /delete
net use lists the shares
ldapsearch -x -b dc=example,dc=org
mongosh --port 27017 --host db
mongodump -o backup-2024-0{n}-01
mysqladmin -u root status
sqlplus /nolog
sqlplus is slow on host db{n}
rabbitmqctl list_users
ALTER USER app SET search_path = shop
CREATE USER app IDENTIFIED EXTERNALLY
wget https://files.internal/a.zip
curl -u kim https://api.internal
Cookie: theme=dark; lang=en
Set-Cookie: lang=de; Path=/
cookies are set by the session middleware
The session cookie lives for {n} hours
zip -r backup-2024.zip notes
unzip -l backup.zip
7z x backup-2024-0{n}.7z -oout
zip -P needs a password as its argument
ansible_user: deploy
ansible_become: true
ansible-playbook site.yml -e "env=prod{n}"
terraform apply -var="region=eu-west-{n}"
helm install x --set replicas={n}
docker run -e POSTGRES_USER=app postgres:1{n}
git clone https://git.internal/team/a.git
git clone git@git.internal:team/a.git
postgresql://db:5432/shop
redis://cache:6379/0
jdbc:mysql://db/shop?user=app
Server=db;Database=shop;Integrated Security=true;
machine git.internal login kim
<password>********</password>
<password>${DB_PASSWORD}</password>
<property name="password" value="${db.password}"/>
<property name="username" value="kim{n}"/>
"password": null
"password": "{{ vault_db_password }}"
password = os.environ["DB_PASSWORD"]
password = getpass.getpass("Password: ")
password: !vault |
password: str = Field(min_length={n})
password_hash = bcrypt.hashpw(raw, salt)
if password == stored_password:
secret_name = "db-credentials"
SECRET_KEY = env("SECRET_KEY")
client_secret: see the vault
api_key: str | None = None
api_key rotation is every 9{n} days
api key management moved to team{n}
the access token expires after {n} hours
token count: 1{n}48576
refresh tokens are kept in the table oauth_tokens
id_token is validated with RS256
-----BEGIN PUBLIC KEY----- is the first line of a public key
-----BEGIN PRIVATE KEY----- is what the linter looks for
PuTTY-User-Key-File-3 is the new format
PrivateKey must be kept out of the repository
PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=
otpauth://totp/ links are shown as QR codes
The TOTP window is 3{n} seconds
2FA is required since MARCH
MFA for AWS is enforced by policy IAMUSERCHANGEMFA
authenticator apps are allowed, SMS is not
HOTP and TOTP are described in RFC4226 and RFC6238
The seed phrase must be written on paper, never stored in a file or in a photo of it
seed phrases have twelve or twenty four words from a list that everyone knows by now
The recovery phrase is what you need when you have lost the phone and also the card
mnemonic devices help when learning the order of the planets by heart in school
the mnemonic for the planets is my very educated mother just served us nine pizzas
random seed: {n}2
the phrase of the day was used by everyone in the meeting and then never again
this phrase in the contract means that either side may leave with a month of notice
cette phrase du contrat veut dire que chacun peut partir avec un mois de préavis
esta frase del contrato quiere decir que cada parte puede salir con un mes de aviso
shopping: apples pears milk bread eggs butter flour sugar rice pasta salt pepper
The card is blue, valid until 04/2{n}
Kreditkarte liegt im Tresor
card 4111 is the test prefix
order 4112 3456 7890 1235 was shipped
IBAN DE89 3704 0044 0532 0130 00 is on every invoice
The rent goes to NL91ABNA0417164300
Konto GB29 NWBK 6016 1331 9268 19 bei der Bank
pin the dependency to 1.{n}.0
The pinned message is from 2024
PIN pads are ordered for {n} shops
le code postal est 7500{n}
el código postal es 2800{n}
The area code is 30{n}1
the door is next to room 21{n}
door code review with Lund at 1400
The alarm code path is never reached in release 2024
the exit code is 137
error code: 5004{n}
The status code was 404
The combination of both flags is tested in 2024
dress code is smart casual
country code: 0049
the safe word of the play is pineapple
safe mode is on since 2023
gate 2{n} closes at 1830
vault login is done with the browser
openssl enc -aes-256-cbc -in a -out b
openssl version is 3.{n}.1
plink is part of PuTTY
gpg --batch -d file.gpg
ssh -p 222{n} root@host
cp -p a1b2.txt dir/
the secret santa list has {n} names
The secret of good bread is time
tokens per second: 4{n}.7
key: value pairs only
keyboard layout is de-latin{n}
The key is under the mat
license key format is XXXXX-XXXXX-XXXXX
primary key is (tenant_id, item_id)
foreign key user_id references users(id{n})
the auth flow of login{n} was rewritten
Authorization: Bearer $TOKEN
Authorization header is required since v{n}
Basic authentication is off in prod{n}
X-Api-Key: {{api_key}}
bearer of bad news was Lund, on 2024-0{n}-12
user/pass is asked twice in version 1.{n}
as the password manager of choice we use pass
Kim uses Keepass2 as the password manager
it serves as the password of last resort
we said goodbye with password cracking demos at DEFCON3{n}
She passed her exam with {n}8 points
The passage from 2024 is quoted twice
Passengers of flight LH45{n}1 wait at gate B2{n}
compass readings were off by {n} degrees
bypass valve V1{n}B is closed
passive voice is fine in report R2D{n}
The token ring network of 199{n} is in the museum
Secretariat opens at 0{n}00 on Mondays
the secret ballot had 12{n} votes
keys: two for the door, one for locker 1{n}
Keynote at 1{n}:30 in hall H{n}
monkey patching in module m2x{n} was removed
The keypad of model KX-T7{n}30 is worn
user story US12{n} is done
user kim{n} left the team
users with role admin{n} see the page
login latency p9{n} is 120 ms
the login of host web0{n} is slow
Account A4{n}711 is closed
credit of 4{n} euros was paid back
Credential stuffing rose in 202{n}
credentials are read from ~/.aws/credentials
key file is /etc/ssl/private/site{n}.pem
certificate serial 0{n}:ab:cd:ef:01:23
fingerprint SHA256:abcdefghijklmnopqrstuvwxyz0123456789ABCDEF{n}
md5 of the file is d41d8cd98f00b204e9800998ecf8427{n}
uuid 550e8400-e29b-41d4-a716-44665544000{n}
version 1.2.{n}-rc1+build.5
commit 3f2a9c{n} broke the build
Room code is 4B, floor {n}
postcode SW1A {n}AA
serial number C02XG{n}JHJG5H
The phone number is +49 170 123456{n}
Passport number is in the safe
Passwörter werden nie im Klartext gespeichert
Les mots de passe sont hachés avec argon2id
las contraseñas caducan cada {n}0 días
le parole chiave del corso sono {n}
as senhas ficam no cofre{n}
cookie banner v{n} is live
cookies and cream is the best flavour
session 12{n} was about tokens
sessions are kept for {n} days
the session id is logged as a hash
authors of chapter {n} are Ines and Lund
echo chamber effects were measured in 202{n}
echo test | md5sum
The ansible role v{n} was split
"""


def near(rng: Random) -> list[str]:
    """Lines that hold no secret, each twice with other digits."""
    lines = [line for line in _NEAR.strip().splitlines() for _ in range(2)]
    return [DIGIT.sub(lambda _: str(rng.randrange(1, 10)), line) for line in lines]


DIGIT = re.compile(r"\{n\}")


def _named(rng: Random) -> str:
    """A password that looks like a numbered name."""
    sign = rng.choice(("_", "-", ""))
    return f"{rng.choice(_NOUNS)}{sign}{rng.randrange(10, 99)}"


_GIVEN_MAKERS = {
    **MADE,
    "g": _named,
    "o": lambda rng: str(rng.randrange(2100, 10_000)),
    "e": lambda rng: some(rng, string.digits, 8),
    "h": lambda rng: "-".join(f"{rng.randrange(10, 60)}" for _ in range(3)),
    "r": lambda rng: (
        f"{rng.randrange(10)}{some(rng, HEX, 4)}-{rng.randrange(10)}{some(rng, HEX, 4)}"
    ),
    "B": lambda rng: some(rng, AN, 48),
}


def given(form: str, rng: Random) -> tuple[list[str], str]:
    """The secrets of a form and the text that holds them."""
    return fill(form, _GIVEN_MAKERS, rng)


# What the words around it give away, not its looks: names with a number, codes, tokens of any vendor.
GIVEN = r"""
La contraseña es {g}
La contraseña de Netflix es {g}
mi clave del wifi es {g}
le mot de passe Netflix est {g}
le mdp de la box c'est {g}
mot de passe ordinateur : {g}
das Kennwort meiner Mutter lautet {g}
Das Admin-Kennwort haben wir auf {g} gesetzt
das wlan heißt FritzBox und das passwort ist {g}
la password di casa è {g}
a senha do email é {g}
het wachtwoord van Netflix is {g}
hasło do wifi: {g}
lösenordet till wifi är {g}
my Netflix password is {g}
Kim's laptop password: {g}
password for the NAS = {g}
my password is the same as always: {g}
I always use {g} as my password
you can get in with kim and {g} as password
hey the wifi pass is {g} :)
master password {g}
machine ftp.acme.org login kim password {g}
requirepass {g}
password {g}
define('DB_PASSWORD', '{g}');
System.setProperty("javax.net.ssl.keyStorePassword", "{g}");
smtp.login('bot@acme.org', '{g}')
auth = ("kim", "{g}")
<Setting Name="SmtpPwd">{g}</Setting>
<wsse:Password Type="PasswordText">{g}</wsse:Password>
user default on >{g} ~* +@all
username kim secret {g}
option wpakey '{g}'
nmcli con modify Home wifi-sec.psk {g}
radius-server key {g}
crypto isakmp key {g} address 0.0.0.0
snmp-server community {g} RO
restic -r x init --password-command "echo {g}"
ansible-vault encrypt_string '{g}' --name db_password
useradd -p {g} kim
my github recovery codes: {r} {r}
the recovery code of the Okta account is {r}
Der Wiederherstellungscode lautet {r}
code de secours : {r}
código de recuperación: {r}
codice di recupero {r}
2FA backup codes\n{e}\n{e}
backup codes 1) {e} 2) {e}
the safe opens with {h}
padlock combo is {h}
Tresor: {h}
la combinación de la caja fuerte: {h}
Der Code für den Safe lautet {h}
the alarm is disarmed with {o}
la alarma se desactiva con {o}
Das Zahlenschloss am Rad geht mit {o} auf
tablet unlocks with {o}
garage keypad: {o}
disarm code {o}
bike lock {o}
Code am Tor: {o}
Die Alarmanlage hat den Code {o}
lockbox on the railing, code {o}
the intercom code is C{o}
il codice dell'allarme è {o}
o código do alarme é {o}
de code van het alarm is {o}
kluiscode {d}
mon code de carte bleue est {o}
il pin del bancomat è {o}
mon code pin c'est {o}
voicemail pin {o}
one-time code {d} for the bank
TAN {d} für die Überweisung
{d} is your Google verification code.
seed words are {s}
the 12 words of the ledger: {s}
the deepgram key is {x}
DD_API_KEY {x}
wandb login {x}
APP_KEY=base64:{b}
export SERVICE_BEARER_TOKEN_BILLING={B}
vck_{B} is what the gateway takes
new vendor key zz_{B}
""".strip().splitlines()
# Lines with the same words and numbers, of which none opens anything.
OPENS_NOTHING = r"""
The password field takes 12-character strings
The password is 16chars at least
password is base64-encoded before it is sent
The password is stored in 1Password-Families
The password rules changed: minimum is 14chars now
The password service moved: the new host is auth-node7
Password reset flow: see ticket PROJ-1234
the password page and the login page are on web01prod
Passwords expire after 90days in group staff2
password history: 24 entries, table pw_hist2
The password manager we use is KeePassXC2
password tests run on python3.12 only
password login is off, use key id_ed25519
The zip code of the office is 10115
the area code for the building is 0301
postal code of the new gym: 80331
error code at the gate was 5004
the source code of the alarm module has 4500 lines
door code review is tomorrow at 1430
The building permit code says 2021
code owners of the vault module: team 1204
gate B22 opens at 1830
The museum door opens with a crowd of 2000
The safe opens with a key from 1987
the new office opens with 120 desks
the locker room is number 1204
alarm rings at 0630
alarm: 0630 on weekdays
the garage has room for 1200 bikes
the vault holds 12000 documents
pin 12 of the header drives the relay
the pin to 3.11 is gone since May
recovery key ceremony is on 2026-05-12
backup key rotation happens every 90 days
backup code lives in repo infra/backup2
recovery code path is tested in test_recover2.py
backup codes are printed on page 12
emergency code 112 is known to all
the 2FA code has six digits
one-time codes last 30 seconds
security code review by team 4512-B
verification code is sent within 5 minutes
my login streak is 1204 days
Login failed for user kim at 10:22:33
login latency: p99 is 1200ms
Login page: version v2.3.1
login service: auth-v2
sign in with Google and SAML2
log in with kim and wait 30s
credentials: see vault path kv/app2
creds: ask Ines, room 2b14
user kim on host web01prod
username: kim2024
user story: US-1234
users: alice2, bob3 and carol4
wifi: 802.11ax on both floors
wifi: channel 11, band 5GHz
wifi is Casa2024, ask for the rest
The guest wifi is called FritzBox7590
the key is under the mat since 2019
key 3af9 is missing in the map
the S3 key is uploads/2026/05/12/report-final-v2.pdf
cache key is user:42:profile:v3
primary key is order_2024_items_v2_final_table
public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk3Zk9w2mXq0dYt7vB5nH1sLr8uJ6cP4eR9aQyW
gpg key 3AA5C34371567BD2B1F0C6D0A7E9F8B7C6D5E4F3 signed the tag
idempotency key 550e8400-e29b-41d4-a716-446655440000
commit 3f2a9c1d4e5b6a7c8d9e0f1a2b3c4d5e6f7a8b9c broke the token tests
integrity sha512-K8mZ2pQ9vX4tL7wR1nB6cD3fG5hJ0kS8uY2aE4iO6qT9xV1zM3rP5bN7lW0sC2dF4gH6jK8yU1oI3eA5tQ7w==
docker image sha256:9b2c1f0e8d7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c
payment intent pi_3MtwBwLkdIwHu7ix28a3tqPa failed
request req_011CSHoEeqs5C35K2UUqR7Fy timed out
stripe customer cus_NffrFeUfNV2Hib is on plan pro
youtube id dQw4w9WgXcQ is in the deck
https://docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit
pod billing-api-7d4b9c6f5d-x2x9k restarts
node ip-10-0-12-34.eu-west-1.compute.internal is full
Screenshot-2026-05-12-at-10-22-33-of-the-billing-page.png
pytorch_model-00001-of-00002-sharded-weights-bf16.safetensors
release-candidate-2026-05-12-build-1234-linux-x86-64-musl
test_redaction_finds_tokens_of_vendor_2_in_yaml_and_json_files
SetCurrentProcessExplicitAppUserModelID2 is a Windows call
fastcgi_pass php:9000;
proxy_pass http://app:8080;
auth("admin", "domain") is called twice
login("kim", "guest") fails
setPassword("password_2") is the test
fields = ["username", "password", "email_2"]
render("password", "password_hint2")
form.field("token", "csrf_token_2")
<input type="password" name="pass2">
<label for="password">Step 2 of 3</label>
machine learning login form password field
snmp community meeting 2024 is in Berlin
radius of the key area is 12km
the 12 words of wisdom were read aloud by my old teacher in school on monday
seed words for the crawler are in seeds2.txt
La contraseña es de 8 a 16 caracteres
la clave está en el capítulo 12b
le mot de passe fait 12 caractères
le code de la route change en 2025
le code du projet est sur la branche v2
Das Passwort hat 16 Zeichen
Das Passwort wurde am 12.05.2026 geändert
Das Kennwort läuft nach 90Tagen ab
Der Code für die Tür steht in door2.py
Die Tür geht mit 2000 Watt auf
il codice della app è in src2/main.py
la password scade tra 90giorni
o código do projeto está na pasta v2src
het wachtwoord verloopt na 90dagen
de code van de app staat in map src2
4200 is the port of the code server
2024 is the year of the code freeze
1204 is my room
Kim told me her password, then left at 1830
the password? ask Ines2
TAN lists are gone since 2019
OTP is 30 seconds long
the otp window is 3000 ms
CVV is never stored
order code 4711-12 was shipped
tracking code is 1Z999AA10123456784
promo code SUMMER25 ends today
discount code at the gym is FIT2024
Order code for the office chairs is 448291
The secret is Vault2 based
The code for the door sensor is 1200 lines
The code for the alarm service is 4000 lines long
code to the office tool: 3000 lines
The gate code path is 1200 ms slower
the alarm is set to 0700 on weekdays
docker run -p 5432:5432 -e POSTGRES_DB=app2 postgres:16
GPIO pin 18 is the button
docker run -d --name mongo -p 27017:27017 mongo:7
docker run --name mysql -p3306:3306 mysql:8
docker run --name login-service -p 8080:8080 login:2
podman run -u node -p 8080:80/tcp web:2
docker run -u 1000 -p 53:53/udp dns
mvn -U install -P java17
rsync -a nas:photos2024 /mnt/backup
The vault login documentation is in the wiki
WPA2 PSK configuration is in the router's manual
WPA-PSK (pre-shared key) is what the old printer needs
IPsec key establishment takes two seconds
The radius server needs a key configuration
The .net user settings configuration lives in app.config
Net user growth acceleration slowed in Q2
The page /password documentation is outdated
snmp community contributions are welcome
Run it with --no-password authentication in CI
Login latency: 1200ms on mobile
Login timeout: 30000ms
Login host: web01prod
Wifi network: FritzBox7590
WLAN name: FRITZBox7590AX
creds: see kv/app2/prod
The auth code is 4500 lines
The login code is 1200 lines of PHP
The sms code service is 4500 lines
The 2FA code is 1200 lines of Go
Security code: 1200 lines
The project code for the garage is 4711
nixpkgs pin: 2405 until the kernel bug is fixed
The version pin: 20240501 is in flake.lock
The chip pin: 1024 in the table means not connected
La clave primaria es id_pedido_2026
The deploy key fingerprint is SHA256:2cX0v5s1S1Zb8Q0n0o7q8q3Jw0yq5v2b9n4m6k8p0rE
The private key file is /etc/ssl/private/web01-2026.pem
secret: arn:aws:secretsmanager:eu-west-1:123456789012:secret:billing-AbCdEf
service key: billing-worker-eu-west-1-prod
secret: billing-db-prod-2
""".strip().splitlines()
