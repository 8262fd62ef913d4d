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
