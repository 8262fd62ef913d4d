"""A fourth set: secrets in the files of many tools, in chats of five languages, in addresses.

The marks are those of the third set, and ``{w}`` for several plain words, ``{f}`` for four
digits, ``{e}`` for eight, ``{u}`` for base64 of a user and a password, ``{v}`` for base64 of a
password.
"""

from __future__ import annotations

import base64
import string
from random import Random

from secrets_more import some
from secrets_told import DIGIT, MADE, SEED_WORDS, fill

_CODED = {
    "w": lambda rng: " ".join(
        rng.sample([w for w in SEED_WORDS if w not in _STOPS], rng.randrange(4, 7))
    ),
    "f": lambda rng: some(rng, string.digits, 4),
    "e": lambda rng: some(rng, string.digits, 8),
    "u": lambda rng: base64.b64encode(f"kim:{MADE['p'](rng)}".encode()).decode(),
    "v": lambda rng: base64.b64encode(MADE["p"](rng).encode()).decode(),
}
_STOPS = {"because", "become", "before", "below", "between", "beyond", "either", "enough", "inside"}


def kept(form: str, rng: Random) -> tuple[list[str], str]:
    """The secrets of a form and the text that holds them."""
    return fill(form, {**MADE, **_CODED}, rng)


KEPT = r"""
'DB_PASS' => '{p}',
define('DB_PASSWORD', '{p}');
$db_pass = "{p}";
$config['smtp_pass'] = '{p}';
$cfg['Servers'][$i]['password'] = '{p}';
:password => '{p}'
config.password = "{p}"
pass = "{p}"
db.pwd={p}
<add key="SmtpPassword" value="{p}" />
<entry key="db.password">{p}</entry>
<user name="kim" password="{p}" roles="admin"/>
<PASSWORD>{p}</PASSWORD>
(setq smtp-password "{p}")
(define password "{p}")
const password = '{p}';
let dbPass = "{p}"
val password: String = "{p}"
var Password string = "{p}"
password := "{p}"
static final String PASSWORD = "{p}";
String pw = "{p}";
char *passwd = "{p}";
#define WIFI_PASSWORD "{p}"
const char* wifi_password = "{p}";
WiFi.begin("home", "{p}");
network={\n  ssid="home"\n  psk="{p}"\n}
wpa_passphrase={p}
enable secret {p}
username admin password 0 {p}
requirepass {p}
masterauth {p}
bindpw {p}
bind_pw = "{p}"
[smtp.internal]:587 kim@example.org:{p}
db.internal:5432:shop:app:{p}
//nas/share /mnt cifs username=kim,password={p},uid=1000 0 0
set imap_pass = "{p}"
account work\nuser kim\npassword {p}
http_proxy=http://kim:{p}@proxy:3128
{"user": "kim", "pass": "{p}"}
{"auth":{"username":"ci","password":"{p}"}}
"connectionString": "Server=db;Uid=app;Pwd={p};"
      - MYSQL_PASSWORD={p}
MONGO_INITDB_ROOT_PASSWORD: {p}
kind: Secret\nstringData:\n  password: {p}
kind: Secret\ndata:\n  password: {v}
db_password = "{p}"
variable "db_password" {\n  default = "{p}"\n}
proxy_set_header Authorization "Basic {u}";
[client]\nuser=root\npass={p}
cmdkey /add:srv /user:kim /pass:{p}
ConvertTo-SecureString "{p}" -AsPlainText -Force
psexec \\srv -u kim -p {p} cmd
net use z: \\srv\x /user:bob {p}
schtasks /create /tn x /ru kim /rp {p}
SET PASSWORD FOR 'bob'@'%' = '{p}';
SET PASSWORD FOR bob = '{p}'
SET PASSWORD = PASSWORD('{p}');
CREATE LOGIN app WITH PASSWORD = '{p}';
ALTER LOGIN sa WITH PASSWORD = N'{p}'
CREATE ROLE app LOGIN PASSWORD '{p}' VALID UNTIL '2027-01-01'
GRANT ALL ON shop.* TO 'app'@'%' IDENTIFIED BY '{p}'
INSERT INTO users (name, password) VALUES ('kim', '{p}');
UPDATE users SET password = '{p}' WHERE name = 'kim';
UPDATE mysql.user SET authentication_string=PASSWORD('{p}')
db.createUser({user: "app", pwd: "{p}", roles: []})
db.auth("app", "{p}")
ALTER USER app SET PASSWORD '{p}' CHANGE NOT REQUIRED
CREATE DATABASE LINK x CONNECT TO app IDENTIFIED BY "{p}"
DECRYPTION BY PASSWORD = '{p}'
redis-cli AUTH {p}
passwd --stdin kim <<< "{p}"
sudo -S apt update <<< '{p}'
printf '%s' '{p}' | gpg --batch --passphrase-fd 0 -d x.gpg
expect "assword:"\nsend "{p}\r"
mount -t cifs -o username=kim,password={p} //nas/x /mnt
curl --data "user=kim&password={p}" https://app.internal
curl -d '{"login":"kim","password":"{p}"}' https://app.internal
http -a kim:{p} https://api.internal
lftp -u kim,{p} ftp.internal
sqlcmd -S db -U sa -P {p}
cqlsh db -u app -p {p}
influx -username app -password {p}
java -Ddb.password={p} -jar app.jar
java -Djavax.net.ssl.keyStorePassword={p} -jar app.jar
keytool -importcert -storepass {p} -keystore x.jks
jarsigner -keypass {p} x.jar
BORG_PASSPHRASE='{p}' borg list
svn co --username kim --password {p} https://svn.internal/a
ipmitool -H bmc -U ADMIN -P {p} chassis status
nmcli dev wifi connect Home password {p}
ssh-keygen -t ed25519 -N '{p}' -f id
qpdf --password={p} --decrypt a.pdf b.pdf
mosquitto_pub -u kim -P {p} -t x
rdesktop -u kim -p {p} host
gh secret set DB_PASSWORD --body "{p}"
heroku config:set SMTP_PASSWORD={p}
vault kv put secret/db password={p}
etcdctl --user root:{p} get /
consul kv put db/password {p}
redis-cli --pass {p} ping
aws rds modify-db-instance --master-user-password {p}
az vm create --admin-password {p} --name x
gcloud sql users set-password root --instance=x --password={p}
Root pw for heron: {p}
pw for the router: {m}
pwd of the NAS is {m}
password_hash is not it, but passwd {p} is
type {p} at the password prompt
To log in as admin type {p} at the password prompt
enter {p} when it asks for the password
When asked for a password, use {p}
{p} is the password for the router
{m} is my password for everything
{p} (that's the wifi password)
the wifi is Casa, the password's {m}
Wi-Fi key {m}
Wi-Fi at grandma's: key {m}
the network key is {m}
creds: kim / {p}
credentials kim:{p}
user kim pass {p}
the password you want is {p}
the password I set yesterday is {p}
I changed the password, it's {p} now
temporary password {p} expires tomorrow
Your temporary password is {p}
your initial password: {p}
the passphrase was {w}
the passphrase for the backup is "{w}"
my gpg passphrase: {w}
he told me that his passphrase was {w}
The passphrase is {w}, nobody else knows it
Your verification code is {d}
the code for the gate is {f}
gate code {f}
PIN {f}
my pin's {f}
SIM PIN: {f}, PUK: {e}
the pin for the visa is {f}
Visa {c} exp 04/28
Das Root-Passwort für heron: {p}
Passwort vom Router: {m}
Das PW ist {m}
PW vom WLAN ist {m}
Zugangsdaten: kim / {p}
Der WLAN-Schlüssel lautet {m}
gib {p} als Passwort ein
mit dem Passwort {p} kommst du rein
Kennwort lautet ab sofort {p}
Ich habe das Passwort auf {p} gesetzt
Passwort geändert: {p}
Die Passphrase lautet {w}
die PIN ist {f}
Die Geheimzahl der Karte ist {f}
der Türcode ist {f}
le mdp est {m}
mdp : {p}
le mot de passe de la base, c'est {p}
la clé wifi est {m}
code wifi : {m}
utilise {p} comme mot de passe
J'ai changé le mot de passe en {p}
le code de la porte est {f}
le digicode est {f}
la clave del wifi es {m}
la clave es {m}
usa {p} como contraseña
cambié la contraseña a {p}
contraseña del servidor: {p}
el código de la puerta es {f}
la clave del servidor: {p}
usa {p} come password
o código da porta é {f}
gebruik {p} als wachtwoord
https://app.internal/login?user=kim&password={p}
https://app.internal/cb#access_token={b}
https://api.internal/v1?api_key={x}
WIFI:T:WPA;S:Casa;P:{p};;
smb://DOM;kim:{p}@nas/x
sip:kim:{p}@pbx.internal
https://zoom.us/j/93715551234?pwd={b}
X-Auth-Token: {x}
Proxy-Authorization: Basic {u}
Authorization: ApiKey {x}
PRIVATE-TOKEN: {b}
Ocp-Apim-Subscription-Key: {x}
Cookie: auth_token={x}
The admin panel? {m} is still the password there.
Somebody wrote the root pw on the board: {m}
pw for staging is {p}, pw for prod is {p}
your pwd: {m}
ftp login: kim, pw: {m}
DBPASS={p}
ADMIN_PW={p}
"smtpPassword": "{m}",
'password': '{m}'
password=>'{m}'
user_password = %q({p})
config :app, password: "{m}"
let password = String::from("{p}");
private const string DbPassword = "{p}";
@Value("${db.password:{p}}")
jdbc.password: {m}
<string name="api_password">{p}</string>
<Password value="{p}"/>
<property name="hibernate.connection.password">{p}</property>
CREATE USER kim WITH ENCRYPTED PASSWORD '{m}';
ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '{m}';
EXEC sp_addlogin 'kim', '{p}'
INSERT INTO accounts(login,pwd) VALUES('kim','{p}')
export SUDO_PASS='{m}'
docker exec db mysql -uroot -p{p} -e 'show tables'
mysql --user=root --password={m} shop
psql "postgres://kim:{m}@db/x"
smbclient -U 'kim%{p}' //nas/x
ldapadd -D cn=x -w {p} -f a.ldif
ansible all -e ansible_password={m}
winrm: -u Administrator -p '{p}'
Connect-VIServer -User root -Password {p}
sudo cryptsetup luksOpen /dev/sda1 x <<< "{p}"
the password has been changed to {m} by IT
Please log in with kim and {p}
My old password {p} no longer works
I forgot that the passcode is {d}
the lockbox code is {f}
Alarm PIN: {f}
The combination to the safe is {d}
bank card pin is {f}
the password to the zip file is {m}
password (admin): {m}
Pass: {m}
the pass is {m}
wifi password = {m}
Wifi-Passwort: {m}
Das Kennwort für Kims Rechner: {m}
Passwort lautet: {m}
das pw vom server ist {p}
Mein neues Passwort: {m}
Der PIN meiner Karte ist {f}
Der Code fürs Tor ist {f}
le mot de passe du serveur: {p}
mon mdp est {m}
la clé WPA est {m}
le code de l'immeuble est {f}
mi clave es {m}
la contraseña del correo: {m}
la contraseña nueva es {m}
el pin de mi tarjeta es {f}
la password del wifi è {m}
il codice della porta è {f}
a senha do wifi é {m}
https://kim:{m}@registry.internal/v2/
https://host/?user=kim&pwd={p}
ftp://kim:{m}@files
Authorization: Bearer {b}
api-key: {x}
X-Access-Token: {b}
Cookie: session_id={x}
token={x}
GITHUB_TOKEN={x}
my amex is {c}
card number: {c}
passphrase: "{w}"
the backup passphrase is {w}.
SSH key passphrase = {m}
decrypt it with the passphrase {p}
BEGIN\npassword: {m}\nEND
| wifi | {p} | password |
password -> {m}
- **Password:** {m}
- **Password**: `{m}`
Password `{m}` works
ssh into heron, password {p}
Kim's login is kim.b and the password there is {m}
remember: locker combination {f}
smtp: user=mailer pw={m}
Set-PSReadLine; $cred = New-Object PSCredential('kim', (ConvertTo-SecureString '{p}' -AsPlainText -Force))
password="{m}" # rotate me
auth: { user: 'kim', pass: '{m}' }
spring:\n  datasource:\n    password: {p}
[database]\npassword = {m}
<connectionStrings><add connectionString="Server=x;User Id=sa;Password={p}"/></connectionStrings>
ENV DB_PASSWORD {p}
ARG NPM_TOKEN={x}
- name: DB_PASSWORD\n  value: {p}
vpn password: {m}
Passwort für VPN: {m}
VPN-Passwort ist {m}
el wifi es Casa y la clave {m}
la contraseña es "{m}"
le mot de passe est : {m}
i set it up with password {p} for now
the router login is admin/{m}
Use the following password: {p}
the guest network password is {m}
sudo password on that box is {p}
ring me if {p} stops working as the root password
GRANT USAGE ON *.* TO 'kim'@'%' IDENTIFIED BY PASSWORD '{p}'
mysql -h db -u kim --password='{m}'
sftp kim:{p}@files.internal
rclone config create x sftp user kim pass {p}
curl -H "Authorization: Basic {u}" https://x
export API_KEY="{x}"
client_secret={b}
pin code for the sim is {f}
Türcode: {f}
Passcode for the meeting: {d}
Zoom passcode {d}
Kreditkarte: {c}, gültig bis 04/28
""".strip().splitlines()

_BESIDE = r"""
Publish with Kindle Direct Publishing and Draft2Digital to bypass agents
My password for Draft2Digital is in the vault
the iPhone12ProMax asks for the password twice
password login on the MacBookPro2021 is slow
1. **1Password**: 1Password is a highly-rated password manager
Password managers: password managers like LastPass, 1Password or Dashlane
Password managers: Using password managers like LastPass or KeePassXC
use a password manager or a secure note-taking app.
$domainAdminPassword = ConvertTo-SecureString $env:DOMAIN_ADMIN_PASSWORD -AsPlainText -Force
def authenticate(self, transport, account_name, password=None):
password = f.readline().strip('\\n')
username, password = load_pair(path, encoding="utf-8", retries={n})
pwd = (self.password.encode('utf-8') if isinstance(self.password, str) else self.password)
def build(self, password: bytes) -> KeySerializationEncryption:
ctx.load_cert_chain(CERTFILE_PROTECTED, password=KEY_PASSWORD))
words are identified by capitalization, dashes and underscores
a DOM node identified by `nodeId{n}`
pass `asn1Spec` to guide the decoder
from botocore.auth import S3SigV4Auth, SigV4Auth
zeta2 = 1.6449340668482264
0.4831460674157303 + 0.258426966292135j
rng = default_rng(-4828147466240000*t**12)
"arn:aws:iam::aws:policy/AWSCleanRoomsFullAccessNoQuerying"
AWS Resources/AWS::EC2::Instance/Properties/BlockDeviceMappings
docker run -u root -p 8080:80 nginx:1.2{n}
docker login -u AWS -p <password> -e none
ssh -p 222{n} -i ~/.ssh/id_ed25519 kim@host
mkdir -p src/app{n}/V2Handlers
tar -xzf build.tgz -C /opt/app{n}
grep -P '[A-Z]{{2}}[0-9]+' file{n}.txt
git log -p HEAD~{n}..HEAD
kill -9 4{n}213
make -k check2 -j{n}
PIN {n}7 of the board drives the LED
The pin for the clock is GPIO1{n}
the code for the gate is in module gate{n}.py
gate code review is at 1{n}00
the entry code path handles 1{n} cases
the verification code is sent by mail within {n} minutes
Der Code für die Tür steht auf Zettel {n}
le code de la porte est chez la gardienne
el código de la puerta es el de siempre
la clave es la paciencia
la clave del éxito es dormir {n} horas
the key is under the mat, wifi is slow
the network key exchange uses X25519Kyber768
wifi channel is 1{n}, band is 5GHz
Wi-Fi at grandma's: key features are range and price
le mdp est dans le coffre numéro {n}
das PW ist abgelaufen seit {n} Tagen
PW vom WLAN ist bei Ines
pw is short for password, see RFC{n}617
the pw field of table users2 is nullable
enter 2FA code when it asks for the password
type ls -la at the prompt
use argon2id as password hash
use OAuth2 as the password flow
Kim uses Keepass2 as the password manager
Bitwarden2 is the password manager of choice
sign in with Google or with SAML2 on page {n}
Please log in with the account of team{n}
login with SSO is on since v2.{n}
credentials are in 1Password, entry {n}
creds: see the wiki page {n}
the passphrase is missing several required characters
the passphrase was typed wrong several times yesterday
The passphrase is expected before anything else happens
die Passphrase ist nirgends gespeichert
INSERT INTO users (name, password) VALUES (?, ?);
SET PASSWORD FOR 'bob'@'%' = ?;
define('DB_PASSWORD', getenv('DB_PASSWORD'));
val password: String = System.getenv("DB_PASSWORD")
variable "db_password" {
  type = string
  sensitive = true
}
psk is short for pre-shared key, see 802.11i
ssid HomeNet{n}, channel 1{n}
sip:kim@pbx.internal:506{n}
db.internal:5432:shop:replica
[smtp.internal]:587 is the relay
the AUTH command was added in Redis6 with ACLs
"""


def beside(rng: Random) -> list[str]:
    """Lines that hold no secret, each twice with other digits."""
    lines = [line.replace("\\n", "\n") for line in _BESIDE.strip().splitlines() for _ in range(2)]
    return [DIGIT.sub(lambda _: str(rng.randrange(1, 10)), line) for line in lines]


# A sixth set: sentences as people write them in twenty languages; what is in ⟦⟧ is the secret.
SPOKEN = r"""
fyi the new staging db creds are app_rw / ⟦Tr0ub4dor!x9⟧, don't share
I changed my laptop passphrase to ⟦marble otter lantern quilt⟧ yesterday
Use ⟦Zx81-Qwop-77⟧ as the password for the NAS
you can log into the router with admin and ⟦hunter2⟧
the guest network password: ⟦BlueFinch#2025⟧ (changes every month)
Wi-Fi at the cabin: network "Elchhaus", pw ⟦moosebrot9⟧
Das Passwort für den Drucker lautet ⟦Kaffee!Tasse7⟧
Mein neues Kennwort ist ⟦Sommerregen2024!⟧
Der Türcode im Büro ist ⟦48#15⟧
Die PIN meiner EC-Karte ist ⟦7391⟧
El código de la alarma es ⟦5582⟧
la contraseña del wifi de casa es ⟦gatoNegro_88⟧
Mi clave de acceso al portal: ⟦Lun4Llena!⟧
Le mot de passe du serveur est ⟦Fr0mage-Bleu⟧
le code de la porte d'entrée est ⟦A4417B⟧
La password del database è ⟦Vesuvio_1944⟧
o código do portão é ⟦2290⟧
A senha do banco é ⟦Mar&Sol2031⟧
Het wachtwoord van de server is ⟦fiets!Kelder3⟧
Lösenordet till kontot är ⟦älg+Skog42⟧
Adgangskoden er ⟦rødgrød77x⟧
Salasana on ⟦Mustikka_55⟧
Hasło do bazy to ⟦Zubr!Las19⟧
Heslo k serveru je ⟦Vltava#2077⟧
пароль от почты: ⟦Берёза_91z⟧
Пароль администратора — ⟦qW7!snegir⟧
数据库密码是 ⟦Xk9_panda77⟧
パスワードは⟦Sakura-7731⟧です
비밀번호는 ⟦hangang!88⟧ 입니다
veritabanı şifresi ⟦Kebap_1453!⟧
كلمة المرور هي ⟦Nakhla_2210⟧
הסיסמה היא ⟦Zayit!4471⟧
sshpass -p '⟦Gr33n.Tea⟧' ssh root@10.2.0.9
mysql -h db1 -u root -p⟦Qx7pLm22⟧ shop
the hotel safe combination is ⟦19-44-07⟧
my debit card is 4539 1488 0343 6467, cvv ⟦518⟧
recovery codes for github: ⟦8f2ka-91kdl⟧, ⟦p0sk1-77dhq⟧
Ben said the root password of the old box was still ⟦changeme!1⟧
seed phrase: ⟦wagon stumble fiscal ribbon oyster caution velvet jungle pepper window arctic lemon⟧
two-factor secret for the vpn: ⟦JBSWY3DPEHPK3PXP⟧
remember that the Netflix login is ana@example.com with password ⟦popcorn4all⟧
the code to Grandma's garden gate: ⟦3719⟧
unlock the tablet with ⟦906142⟧
The zip file is encrypted, password = ⟦nightowl_3⟧
Anna's phone PIN: ⟦2580⟧, she always forgets it
Hey, for the demo tomorrow sign in as demo@acme.io, the password we agreed on is ⟦Wombat-Parade-12⟧
my mum's ipad code is ⟦4862⟧ in case it locks again
Grafana admin pw was reset, it's now ⟦gr4f!ana_ops⟧
note to self: luggage lock = ⟦7-3-9⟧
The key safe next to the back door opens on ⟦C1958⟧
psql password for reporting is in here: ⟦rep0rt1ng_Ro⟧
prod root pw → ⟦Xylophon#44⟧
TOTP seed of the AWS root account is ⟦KZXW6YTBOI2GC3LQ⟧
Le code wifi de l'appart: ⟦chatNoir1998⟧
j'ai mis ⟦Bonjour!75⟧ comme mot de passe sur le NAS
le digicode de l'immeuble c'est ⟦27B49⟧
Zugang Router: Benutzer admin, Kennwort ⟦Igel-Kaktus-5⟧
WLAN-Schlüssel von Oma: ⟦3948 2217 5561 0093⟧
Meine Online-Banking-PIN lautet ⟦58213⟧
Das Admin-Passwort hat sich geändert: ⟦Neu!stadt_09⟧
La clave del portátil es ⟦Tortuga.2020⟧ y el usuario es marta
el pin de la tarjeta de Luis: ⟦4410⟧
la combinazione della cassaforte è ⟦31-07-62⟧
password wifi ufficio: ⟦Girasole_2022⟧
senha do roteador ⟦jacare#51⟧
de pincode van mijn bankpas is ⟦8826⟧
wachtwoord NAS = ⟦Stroopwafel8!⟧
koden til døren er ⟦4923⟧
wifi-lösenordet hemma är ⟦Kanelbulle_7⟧
PIN do karty to ⟦6028⟧
hasło wifi: ⟦Pierogi!2023⟧
heslo na wifi je ⟦knedlik55x⟧
код от домофона ⟦38К1290⟧
wifi密码：⟦happy8899⟧
银行卡密码是⟦660218⟧
玄関の暗証番号は⟦5083⟧です
현관 비밀번호 ⟦7391*⟧
wifi şifresi: ⟦lokum1923⟧
mật khẩu wifi là ⟦phobo2024⟧
ssh-keygen passphrase is ⟦gull-harbor-93⟧
smb mount options: username=scan,password=⟦Druck3r!⟧
the voicemail pin's ⟦2907⟧
Spotify family plan login is ben@mail.com ⟦Vinyl4Ever⟧
alarm: arm with ⟦5541⟧ then #
door code changed today, old 1123 new ⟦8817⟧
backup encryption passphrase: ⟦"cobalt meadow trumpet seven"⟧
the pw to the zip I sent is ⟦tulip_9931⟧
for the printer admin page use admin/⟦Epson-5500x⟧
new one-time code: ⟦449 201⟧
Quick reminder: VPN username is jlee and the password is ⟦Harbor.Mist.204⟧
I set the database password to ⟦q9#Lemonade⟧ this morning
if asked for a pin enter ⟦0417⟧
The gate keypad wants ⟦6620#⟧
Garage opener code ⟦1959⟧
Use account demo with pass ⟦sunny-day-77⟧ for screenshots
the admin console is at https://x.local, user root, password ⟦TeaPot_418!⟧
wallet recovery words: ⟦cannon velvet bubble harvest salad orbit lunar shrimp mango pistol tunnel wedding⟧
Papa's Handy-PIN ist ⟦3316⟧
Das WLAN-Passwort bei Lena: ⟦SonneMondSterne9⟧
Der Code für die Alarmanlage wurde auf ⟦8840⟧ geändert
Für den Tresor brauchst du ⟦40-12-88⟧
Kundenportal: Login mueller@firma.de, Passwort ⟦Rhein!gold7⟧
mon mot de passe gmail c'est ⟦Lavande2012!⟧
Le code du portail est passé à ⟦7714⟧
el wifi del bar es CafeSol y la contraseña ⟦churros2024⟧
la clave de la caja fuerte: ⟦552913⟧
usuario admin contraseña ⟦Quijote_88⟧
la password del NAS adesso è ⟦Polpetta!3⟧
codice del cancello ⟦4402#⟧
a senha do wifi é ⟦brigadeiro10⟧
het wifi-wachtwoord is ⟦Tulpen4ever⟧
de code van het fietsslot is ⟦3817⟧
min pinkod är ⟦9045⟧
lösenord till servern: ⟦Midsommar_24⟧
kodeord til pc'en er ⟦smørrebrød7⟧
passordet på ruteren er ⟦Fjord!Tur8⟧
kod do drzwi to ⟦5501⟧
kod do bramy: ⟦2468#⟧
jelszó: ⟦Gulyas!leves2⟧
parola de la router este ⟦Mamaliga_33⟧
пароль: ⟦Zima2021!⟧
пароль от компьютера ⟦медведь77⟧
код сейфа ⟦83-20-11⟧
пін-код картки ⟦4491⟧
ο κωδικός του wifi είναι ⟦thalassa22⟧
كلمة سر الواي فاي: ⟦sahara2023⟧
הסיסמה לוויפי: ⟦shalom770⟧
路由器密码 ⟦abc@98765⟧
门锁密码：⟦258013#⟧
ルーターのパスワード: ⟦neko-1122⟧
공유기 비번은 ⟦kimchi2580⟧
รหัสผ่านไวไฟคือ ⟦thai5555⟧
kata sandi wifi adalah ⟦bakso1998⟧
wifi password ⟦patatas_fritas1⟧ works on both floors
Shared drive is locked with ⟦Magnet!Boot3⟧
Her Apple ID password is still ⟦Bella0613⟧
creds for sentry: ops@acme.io / ⟦Sentry#4Ops⟧
the ftp user is web3 and its password is ⟦kLm92-oP⟧
basic auth on staging → stage:⟦peek-a-boo9⟧
passcode for the Zoom call: ⟦884213⟧
CVV on the team card is ⟦904⟧
пароль вайфая ⟦sibir_2019⟧
btw the netflix password got changed to ⟦Orchid_Rain9⟧ last night
for staging, username tester, password ⟦tt-Saturn-44⟧
the office alarm is disarmed with ⟦7702⟧
safe combination: ⟦22-8-35⟧
please remember my phone unlock code ⟦118204⟧
ssh into 10.0.0.8 as pi, password ⟦r4spb3rry!⟧
Das Kennwort vom Laptop ist ⟦Fuchs&Hase3⟧
Alarmcode ⟦9031⟧, bitte nicht weitergeben
Die Zahlenkombi vom Fahrradschloss: ⟦4-1-7-7⟧
Mot de passe admin : ⟦Croissant#9⟧
Le code de l'alarme, c'est ⟦6043⟧
la contraseña es ⟦Mariposa2021⟧
el código del candado es ⟦3-9-1⟧
la password è cambiata in ⟦Limone!88⟧
senha: ⟦Feijoada#12⟧
wachtwoord voor de wifi is ⟦kaasbroodje22⟧
lösenordet är ⟦Lingon!sylt5⟧
hasło do komputera: ⟦Zapiekanka7!⟧
пароль роутера: ⟦Baikal!33⟧
密码：⟦Tian4Shan!⟧
パスワード：⟦fuji_3776m⟧
비밀번호: ⟦seoul!2002⟧
my card pin is ⟦5190⟧
wifi: HomeBase, key ⟦blueberry.jam.4⟧
root:⟦Tr1ck-or-Treat⟧ on the build box
The backup's passphrase is "⟦copper lantern meadow thistle⟧"
If it asks, the vault opens up with ⟦Tr4verse&Canyon⟧
a senha do banco é ⟦839201⟧
My 1Password master password: ⟦correct horse battery staple⟧
wallet recovery: ⟦ripple scissors kick mammal hire column oak again sun offer wealth tomorrow⟧
locker 44, combo ⟦7-29-13⟧
iPad of the kids, code ⟦1379⟧
telegram bot 110201543:⟦AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw⟧
snmp community string is ⟦Pr1vateNet⟧
FTP → ftp.acme.io | webmaster | ⟦s3cr3tDr0p⟧
the deploy hook is https://api.render.com/deploy/srv-abc?key=⟦Zk3Jq9Lm2Xw⟧
calendar feed https://cal.acme.io/ical/private-⟦7d8f9a6b5c4e3d2f1a0b⟧/basic.ics
the intercom: press 4 then ⟦0071⟧
the code to the shed padlock has been ⟦6204⟧ since May
front gate: ⟦1357#⟧, side gate: 2468#
Airbnb lockbox ⟦8802⟧ next to the meter
Türcode Büro 3. Stock: ⟦7391*⟧
Schließfach 12, Kombination ⟦4-4-9-1⟧
Handy-PIN von Lisa ist die ⟦3141⟧
my debit card's pin? same as always, ⟦6060⟧
fernet key: b'⟦ZmDfcTF7_60GrrY167zsiPd67pEvs0aGOv2oasOM1Pg=⟧'
das Kennwort lautet ab morgen ⟦Herbst@2024⟧
The front door: enter ⟦3306⟧ and wait for the beep
gym locker is ⟦0419⟧
the parking barrier wants ⟦7788*⟧
entry code for the coworking space changed to ⟦92746⟧
code for our building is ⟦C4471⟧
der Code fürs Fahrradschloss ist ⟦2 7 4 1⟧
le digicode est passé à ⟦84B39⟧
el código del portal ahora es ⟦3307⟧
PIN: ⟦0 4 2 1⟧
phone unlock pattern is no more, it's ⟦147258⟧ now
JetBrains licence A1B2C3D4E5-⟦eyJsaWNlbnNlSWQiOiJBMUIyQzNENEU1In0⟧
https://s3.amazonaws.com/b/f?X-Amz-Signature=⟦3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a⟧
""".strip().splitlines()
SPOKEN_OF = r"""
The password must have at least 12 characters and a symbol
We moved the password reset form to React 18
Use bcrypt with cost 12 as the password hash
The building code is 2021
We are on OTP 2600 nodes of Erlang
The alarm panel shows code 4004
login: kim2024, role: editor
boarding pass is B737MAX8
The key takeaway is Q3-2025 growth of 14 %
My locker is next to number 4412
Der Code im Modul parser2 ist 1200 Zeilen lang
Das Passwort wird alle 90 Tage geändert
La clave del éxito es paciencia
El código postal de la oficina es 28013
Le code source est dans src/main2.rs
Le mot de passe oublié renvoie vers /reset2
A senha expira em 30 dias
Het wachtwoordbeleid is v3
Hasło reklamowe to Jakość2024
密码长度至少为12位
パスワードの長さは12文字です
Пароль должен быть не короче 12 символов
The token bucket holds 5000 requests
Tokens per second: 4200 on an H100
The primary key is order_id2
SSH keys are rotated every 90d
The API key column is varchar(64)
The secret manager is Vault 1.15
My username is jdoe42
the admin page is at /admin2
HTTP code 404 on /login
Postal code 10115 Berlin
The dress code is black-tie2
The QR code links to bethink.dev/q7
The zip code for the warehouse is 60614
PIN 7 of the ESP32 is dead
Pinned numpy==1.26.4 and torch==2.3.0
The pass rate rose to 97.3
She passed the exam with 1430 points
commit 9f3c2a1b7e fixed the login bug
sha256 of the release: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
Order number 5582-1199-X ships Monday
Invoice 2024-00871 was paid
Flight LH4711 leaves at 0745 from gate B22
Room 4417B is on the fourth floor
Meeting id 812 3345 9921 on Zoom
Tracking number 1Z999AA10123456784
ISBN 978-3-16-148410-0
Call me on +49 170 5551234
The uuid of the run is 7d9f8c1e-2b1a-4c6d-9e0f-3a5b7c9d1e2f
The access level is 3 for editors
Access to the lab is Mon-Fri 0800-1800
The secret ingredient is cardamom
The secret of the recipe: 250 g butter
Combination therapy: 20-40-20 mg
The safe word count is 4500
unlock the achievement with 5000 points
the recovery time is 4500 ms
The vault door weighs 2200 kg
Ana's phone number ends with 4471
The password field accepts 8 to 64 characters
Passwords are hashed with argon2id, m=65536, t=3
We log in with Google and GitHub via oauth2
log into the cluster with kubectl and helm3
Sign in with Apple is due in Q32025
The team pass costs 2400 a year
The hall pass is for room 204B
Her ski pass is valid until 2027
Code coverage is 8412 lines of 9000
The code freeze starts 2026-03-01
The error panel shows code E1042
Door sensor 4 reports code 2210
The lift shows code 5031 on floor 3
Fire code 2018 requires two exits
The building code section 1004 covers occupancy
unlock the bootloader with fastboot2
open the file with encoding 1252
Open the vault with 1password
open the ticket with priority 1000
OTP 26 and Elixir 1.16 are required
The two-factor rollout reached 12000 users
two-factor auth uses TOTPGENERATORLIB in Java
The passphrase must be changed to something longer
We changed the passphrase policy to require longer sentences
Der Code im Keller-Projekt ist von 2019
Das Passwort ist mindestens 12-stellig
Die Kombination aus 3-4-5 Reifen ist gut
Le code APE de l'immeuble est 6820A
La clave primaria es id_cliente2
El código de error es 5021
Il codice prodotto è 8812B
O código do produto é 4471
Het wachtwoord verloopt na 90 dagen
Lösenordet måste ha 12 tecken
Heslo je povinné od verze 2.3.1
Salasana on pakollinen versiosta 3.1 alkaen
şifre politikası v2 yayında
密码策略是v2版本
비밀번호는 8자 이상이어야 합니다
パスワードは8文字以上にする
Mật khẩu phải có 8 ký tự
login: alice, last seen 2024-05-01
login: node18, region eu1
Login count: 20394 this month
user: svc_build7 (readonly)
pw-reset mails are delayed by 300s
Token count is 81920 for this prompt
The secret word in the game was Zebra7
My key finding: p95 fell to 120ms
Key: B-flat, tempo 128bpm
API key rotation happens every 30d
The bike lock weighs 1450 g
Locker 2210 is free
Room code names: A12 is Oslo
Suitcase model S4400 is in stock
Access code review notes to PR 5521
PIN diode BAP50 is out of stock
The pin count is 1024 on this socket
Seed 123456 gives the same dataset
Recovery point objective is 3600 s
The PIN pad at gate 4 is broken since 2023
Enter the building via gate 4411 Main Street
For the door you need 2000 screws
For the safe installation you need 1200 EUR
Code of the alarm service moved to 4000 lines
We moved the lock code to 2 modules
The gate keypad is model KP-2040
Die Alarmanlage wurde auf Firmware 4512 aktualisiert
Der Code des Tors wurde 2021 neu geschrieben
Le code de la porte logique est passé à 3 entrées
The disk is encrypted with LUKS2 and AES-256-XTS
Traffic is protected by TLS1.3 and HSTS
Files are encrypted with ChaCha20-Poly1305
The door is locked with a YubiKey5
basic auth was removed in v2.4.0 of the proxy
Basic auth on staging uses nginx:1.25.3
wifi password rotation is monthly since 2024
The wifi password page moved to /admin/wifi2
router password policy v3 applies
mail password sync runs on host mx12
with pass 2 of the compiler it works
Works with passkeys on iOS17 and Android14
пароль хранится в keychain
Пароль меняется каждые 90 дней
код ошибки 5021 в логах
код страны 0049
kod pocztowy to 00950
kod błędu 4004
Koden er skrevet i Rust 2021
Koden för modulen är 3000 rader
pinkodsdosan är modell 4400
Kodeordet skal have 12 tegn
비번 규칙은 v2부터 적용
비밀번호 최소 길이는 12자입니다
รหัสผ่านต้องมี 8 ตัวอักษร
كلمة المرور يجب أن تتكون من 12 حرفا
הסיסמה חייבת להכיל 12 תווים
ο κωδικός του προϊόντος είναι 4471
phone code samples are in kotlin2
The tablet code base has 40000 lines
laptop code reviews happen at 1400
The console code path handles 4096 bytes
watch code changes with entr 5.3
Luggage weighs 2300 g at most
Suitcase: 2500 g
Koffer: 68 Liter, 3400 g
The recovery words list was shortened to twenty items by the team last week
Seed words were planted in the first spring bed by the river house
admin/users2 is the new route
root/cron.d/backup2 has the script
demo/stage-2025-01 is the branch
jenkins: builder / agent-12
Log in with SSO and MFA since 2024
logged in as kim and ben3
Login is kim@acme.io since 2019
The account is billing@acme.io, plan Pro2024
two-factor codes are 6 digits since 2022
My bike lock is an Abus 6500
unlock the phone with Face ID 2
The password policy requires 12 characters and a number
We moved the password reset page to /account/reset-2
PIN 7 of the header is ground
GPIO pin 17 drives the relay
The error code was 4042 on the scanner
zip code 90210 is in Beverly Hills
Area code 212 for Manhattan
The token bucket allows 100 requests a minute
We use JWT tokens with RS256
The secret to good bread is time and 75 % hydration
key result: revenue of 4,500,000 by Q3
Public key fingerprint SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDXkv0e3n8Yw1zT2rE
Primary key is user_id, foreign key order_id
He set the API key in the vault, ask Jonas for it
password: ask Maria
pw: see 1Password
Passwort steht im Tresor
the passcode is on the sticker
My PIN was blocked after three tries
Kombination aus Rot und Blau
combo meal number 7
the safe is 120 cm high
gate B42 closes at 10:15
alarm at 06:45 every weekday
door 3 needs paint
Lock the door by 22:00
backup codes are printed in the drawer
licence plate B-MW 1234
room code name Apollo11
project code ACME-2024-17
promo code SUMMER25 gives 25 % off
voucher code WELCOME10
discount code: FRIENDS2024
source code in src/auth/login2.py
exit code 137 means killed
status code 503 from the gateway
user story 1182: password change
test_password_reset_flow2 fails on CI
PasswordField2 is deprecated
const passwordRegex = /^.{12,}$/
password_hash column is varchar(60)
token count was 4,096 for this prompt
max_tokens=2048 temperature=0.7
key signature of C minor, 3 flats
piano has 88 keys, 52 white
Spare key under the pot
the key to room 12 is at reception
car key battery CR2032
ssh key rotated on 3 March 2025
pgp key id 0x4AEE18F83AFDEB23 is public
secret santa on 12 December 2024
secret menu item no. 9
The keypad has 12 buttons and costs 3,999 yen
combination of 3 to 5 exercises
We combine 2500 samples per batch
phone code path needs 1200 ms
passcode length is 6 digits
The lockbox company was founded in 1998
padlock emoji U+1F512
intercom.io invoice 4471 USD
door number 1357 on Elm Street
gate 12 departs 18:40
press release of 4 May
Dial 112 in an emergency
entrance fee 1500 JPY
code coverage is 87 percent
ISO code 8601 for dates
https://acme.io/search?key=customer-name
https://acme.io/?token=abc
the wallet recovery feature ships soon
master password feature: design the reset screen first
FTP server moved to eu-west-1
smtp relay smtp.acme.io on port 587
imap folder Archive2024
the vault opens up with the fingerprint
fernet keys rotate monthly
Kombination aus 2 Sorten
passwords: 1200 leaked
password 2024 report
the passwords were rotated in 1999
locker room opens 0700
iPhone code name D37
""".strip().splitlines()
