"""Sentences that differ in one word, which says whether a value is a secret.

"the door code of the annex is 4471" hides one, "the room number of the annex is 4471" does not. Both kinds
take their values from the same source, so that a value alone tells nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

SECRET = """password|pw|passphrase|pass phrase|passcode|PIN|pin|pin code|door code|alarm code|gate code|entry code
    |access code|lock code|safe code|keypad code|lockbox code|wifi password|wi-fi pw|login password|admin password
    |root password|sudo password|API key|api token|access token|secret key|signing secret|webhook secret|auth token
    |recovery code|backup code|security code|combination|unlock code|unlock pattern digits|voicemail PIN|card PIN
    |SIM PIN|PUK|master password|disk passphrase|vault password|encryption passphrase|one-time code|2FA code
    |login code|garage code|locker code|padlock combination|bike lock combination|safe combination|credentials
    |bearer token|deploy token|client secret|shared secret|pre-shared key|BIOS password|license key|duress word
    |guest password|key safe code|intercom code|confirmation code by text"""
PLAIN = """port|version|timeout|limit|branch|user name|username|login name|account name|room|room number|floor
    |bus line|price|budget|size|order number|ticket|region|model|colour|dish|extension|postcode|zip code
    |area code|country code|dialling code|error code|exit code|status code|product code|budget code|cost centre
    |dress code|QR code|bar code|source code|code name|code owner|code review|code style|colour code|HS code
    |booking reference|customer number|seat|gate|locker number|key length|key size|primary key|foreign key
    |cache key|partition key|sort key|project key|public key id|key person|keynote|house key holder|token limit
    |token count|token price|password length|minimum password length|password manager|password policy|passport office
    |PIN length|GPIO pin|pin of the sensor|key signature|hotkey|network name|SSID|wifi name|wifi channel|host name
    |hostname|server name|database|database name|framework|language|default value|retry count|batch size
    |replica count|build|build number|commit|release|pull request|milestone|deadline year|start year|phone number
    |mobile|fax|invoice|case number|flight|train|platform|coach|parking space|apartment|box number|shelf
    |serial of the pump|part number|paint|wallpaper|bread flour type|tyre pressure|meter reading|mileage|weight
    |calories|step count|dose|nickname|handle|gamer tag|team name|band|song|book|film|plant|cat|dog|horse|boat
    |project|repository|package|bucket|topic|queue|table|column|feature flag|metric|dashboard|job|service|container
    |image|node|cluster|zone|instance type|licence plate|licence|secret santa partner|secret ingredient|alarm time
    |alarm vendor|safe manufacturer|lock brand|login page|login provider|vault name|key cabinet"""
THINGS = """billing API|annex|office|flat|guest house|shop|router|printer|NAS|back door|front gate|garage|shed|club
    |school|clinic|warehouse|staging server|production database|build machine|CI runner|kiosk|tablet|laptop|phone
    |camera|alarm panel|boat|van|holiday cottage|allotment|gym|library|laundry room|lab|server room|web shop
    |payment service|search cluster|mail relay|backup drive|registrar|bank app|streaming account|newsletter
    |staging|prod|the till|portal|dashboard|safe|locker|bike|suitcase|piano room|parish hall|kindergarten"""
FRAMES = """the {a} of the {t} is {v}|the {a} for the {t} is {v}|{t} {a}: {v}|{a} for {t} = {v}|{t}: {a} {v}
    |the {t} has {v} as its {a}|{v} is the {a} of the {t}|we use {v} as {a} of the {t}|set the {a} to {v}
    |the {t}'s {a} changed to {v}|new {a} of the {t} since Monday: {v}|{a}: {v}|my {a} is {v}|{a} {v}
    |remember: {t} {a} is now {v}, not {u}|the {a} is {v} for the {t} and {u} for the {s}|{a} = "{v}"
    |for the {t} the {a} is {v}, ask {n} if it fails|{n} says the {a} of the {t} is {v}|User's {t} {a} is {v}.
    |{n}: btw the {a} is {v} again|i set the {a} for the {t} to {v} yesterday|{v} ({a}, {t})"""
TELLING = """log in to the {t} as {n} with {v}|{n} / {v} gets you into the {t}|type {v} at the {t}|the {t} opens with {v}
    |{v} opens the {t}|unlock the {t} with {v}|press {v} and then hash to get into the {t}
    |sign in to the {t}: {n}, then {v}|to get into the {t} use {n} and {v}|on the keypad of the {t}: {v}
    |the lock on the {t} is set to {v}|turn the dials to {v}|the monitoring centre wants the word {v}
    |{n} gets into the {t} with {v}|the {t} asks who you are, {n} and {v}|{t} login {n}:{v}|{t} - {n} - {v}, do not share
    |locked out of the {t}? {v} works|the {t} lets you in with {v}|enter {v} when the {t} asks|tap {v} on the {t}"""
USUAL = """log in to the {t} as {v} with the card|{n} works on {v}|take bus {v} to the {t}|the {t} opens at {v}
    |{v} is painted on the {t}|we replaced the {t} with {v}|press the bell {v} and wait at the {t}
    |sign in to the {t} and open {v}|to get into the {t} ask {n} in {v}|the {t} is {v} cm wide|the {t} is a {v}
    |{n} moved from {v} to the {t}|the {t} runs on {v}|the {t} listens on {v}|{n}'s handle is {v}|we use {v}
    |we use {v} for the {t}|we no longer use {v}|branch {v} fixes the {t}|the network is called {v}|I play as {v}
    |our boat is called {v}|follow {v} and you see the {t}|{v} is down again, the {t} with it|{t} - {n} - {v} euros
    |the {t} cost {v}|{n} has {v} open tickets about the {t}|type {v} was built in {u}|we meet at {v}, then the {t}
    |it answers on {v} locally|{v} failed in CI, see the {t}|chapter {v} is about the {t}|the {t} moved to {v}
    |Did you hear of {v}? {n} loves it|{n} ordered {v} for the {t}|{n} calls the {t} "{v}"|ADR-{v}: we go with {u}
    |call {n} at {v}|the {t} closes at {v} sharp|reading of the meter in the {t}: {v}|lunch today: {v}
    |we chose {v} because of the {t}|{n} and {v} share the {t}|{v} replaces {u} in the {t}|dial {v} for the {t}"""
# What is said of a secret without telling it; {v} names something else.
ABOUT = """the {a} of the {t} is in {v}|the {a} for the {t} is kept in {v}, entry {u}|{n} has the {a} of the {t}
    |the {a} of the {t} expires on {d}|the {a} needs {d} characters|{a} attempts: {d}|secret {v} holds the {a}
    |the variable {v} has the {a}|{a} failed for user {v}|{a} authentication failed for user "{v}"|ask {n} for the {a}
    |change the {a} every {d} days|the {a} was rotated on {d} May|the {a} of the {t} is {z}|the {a} is {z}|{a} {z}
    |{a}: {z}|my {a} is {z}|{n} says the {a} of the {t} is {z}|enter your {a} to {z}|the {a} pad of the {t} is {z}
    |"{v}" is the vault entry with the {a}|we use {v} to store the {a} of the {t}|the {a} manager is {v}
    |kubectl get secret {v} -n {u}|the {a} is read from {v}|the {a} is hashed with {v}|the {a} screen of {v} is {z}
    |if the {a} is {z}, call {n} on {v}|the {a} of the {t} is on the card in {v}|{a} provider: {v}|no {a} for {v}
    |the {a} field takes {d} letters|which {a} opens {v}?|{n} changed the {a} of {v}|{a} reset mail comes from {v}
    |the {t} asks for a {a} since version {v}|{v} forgot the {a} again|the {a} is the usual one, {n} knows it"""
STATES = """wrong|expired|missing|broken|too short|needed|required|not set|changed|rotated|in the safe|in the vault
    |on the fridge|weak|gone|secret|the same as before|still valid|out of date|optional|empty|continue|proceed
    |unlock it|with {n}|at reception|unknown|hidden|injected at runtime|locked|invalid|correct|revoked|stored
    |on a sticker|under the mat|in the password manager|a joke|reset|longer now|case sensitive|patience
    |unreadable|stuck|never shown|forgotten"""
# Of other languages: words that hide, words that do not, and how both are said.
FOREIGN = (
    ("Passwort|Kennwort|PIN|Türcode|Zugangscode|WLAN-Passwort|Alarmcode|Geheimzahl|Zahlenschloss|Losungswort|Tresorcode",
     ("Port|Version|Zimmer|Telefon|Durchwahl|Postleitzahl|Benutzername|Fehlercode|Kundennummer|Zählerstand|Hausnummer"
     "|Netzname|Projekt|Modell|Preis|Linie|Gleis|Farbe|Kassenwart|Steuernummer|Artikel|Frist|Vorwahl|Datenbank"),
     "{a}: {v}|{a} im Büro: {v}|die {a} ist {v}|das {a} lautet {v}|unser {a} ist jetzt {v}|{a} {v}|{v} ist der {a}"),
    ("mot de passe|code de la porte|digicode|code PIN|mdp|code du portail|code de l'alarme|combinaison|phrase secrète",
     ("port|version|chambre|téléphone|poste|code postal|identifiant|code d'erreur|numéro de client|relevé du compteur"
     "|nom du réseau|projet|modèle|prix|ligne|quai|couleur|trésorier|table|étage|taille|référence|base de données"),
     "{a} : {v}|{a} du bureau : {v}|le {a} est {v}|notre {a} est maintenant {v}|le {a}, c'est {v}|{v} est le {a}"),
    ("contraseña|clave|código de la puerta|PIN|clave del wifi|código de la alarma|combinación|código del portal",
     ("puerto|versión|habitación|teléfono|extensión|código postal|usuario|código de error|número de cliente|contador"
     "|nombre de la red|proyecto|modelo|precio|línea|andén|color|tesorero|talla|planta|pedido|base de datos"),
     "{a}: {v}|{a} de la oficina: {v}|la {a} es {v}|el {a} es {v}|nuestro {a} ahora es {v}|{v} es el {a}"),
    ("password|codice del cancello|PIN|parola d'ordine|codice dell'allarme|chiave di accesso|combinazione",
     ("porta|versione|camera|telefono|interno|CAP|nome utente|codice di errore|numero cliente|contatore|nome della rete"
     "|progetto|modello|prezzo|linea|binario|colore|taglia|piano|ordine|database"),
     "{a}: {v}|{a} dell'ufficio: {v}|la {a} è {v}|il {a} è {v}|il nostro {a} adesso è {v}|{v} è il {a}"),
    ("wachtwoord|pincode|deurcode|wifiwachtwoord|alarmcode|cijferslot|kluiscode",
     ("poort|versie|kamer|telefoon|toestel|postcode|gebruikersnaam|foutcode|klantnummer|meterstand|netwerknaam|project"
     "|model|prijs|lijn|spoor|kleur|maat|verdieping|bestelling|database"),
     "{a}: {v}|{a} van kantoor: {v}|het {a} is {v}|de {a} is {v}|ons {a} is nu {v}|{v} is de {a}"),
    ("senha|código da porta|PIN|palavra-passe|código do alarme|senha do wifi|combinação do cofre",
     ("porta|versão|quarto|telefone|ramal|código postal|usuário|código de erro|número de cliente|leitura do contador"
     "|nome da rede|projeto|modelo|preço|linha|cor|tamanho|andar|pedido|banco de dados"),
     "{a}: {v}|{a} do escritório: {v}|a {a} é {v}|o {a} é {v}|o nosso {a} agora é {v}|{v} é o {a}"),
    ("hasło|PIN|kod do drzwi|kod do bramy|hasło do wifi|kod alarmu|szyfr do kłódki|kod do sejfu",
     ("port|wersja|pokój|telefon|wewnętrzny|kod pocztowy|użytkownik|kod błędu|numer klienta|stan licznika|nazwa sieci"
     "|projekt|model|cena|linia|peron|kolor|rozmiar|piętro|zamówienie|baza danych"),
     "{a}: {v}|{a} w biurze: {v}|{a} to {v}|nasz {a} to teraz {v}|{v} to {a}"),
    ("пароль|код двери|пин-код|код домофона|пароль от вайфая|код сигнализации|кодовое слово|код от сейфа",
     ("порт|версия|комната|телефон|добавочный|индекс|логин|код ошибки|номер клиента|показания счётчика|имя сети|проект"
     "|модель|цена|автобус|путь|цвет|размер|этаж|заказ|база данных"),
     "{a}: {v}|{a} в офисе: {v}|{a} — {v}|наш {a} теперь {v}|{v} — это {a}"),
    ("パスワード|暗証番号|PIN|ドアの暗証番号|Wi-Fiのパスワード|認証コード|金庫の番号|合言葉",
     ("ポート|バージョン|部屋番号|電話番号|内線|郵便番号|ユーザー名|エラーコード|会員番号|検針値|ネットワーク名|プロジェクト"
     "|型番|値段|路線|色|サイズ|階|注文番号|データベース"),
     "{a}: {v}|{a}は{v}です|{a}は{v}に変わりました|新しい{a}は{v}|事務所の{a}は{v}"),
    ("密码|门禁密码|支付密码|验证码|wifi密码|开机密码|保险柜密码|口令|密碼|門口密碼",
     "端口|版本|房间号|电话|分机|邮编|用户名|错误码|客户编号|电表读数|网络名称|项目|型号|价格|公交|颜色|尺码|楼层|订单号|数据库",
     "{a}: {v}|{a}是{v}|{a}：{v}|{a}改成{v}了|办公室的{a}是{v}|新的{a}是{v}"),
)  # fmt: skip
FOREIGN_STATES = """falsch|abgelaufen|fehlt|gesperrt|geändert|im Tresor|bei Ingrid|nicht gesetzt|zu kurz|richtig
    |ungültig|leer|vergessen;faux|expiré|manquant|changé|dans le coffre|chez Paul|incorrect|oublié|trop court|bloqué
    ;incorrecta|caducada|correcta|en la caja|cambiada|bloqueada|no válida|olvidada|de Marta|vacía
    ;sbagliata|scaduta|corretta|in cassaforte|cambiata|bloccata|da Gina|vuota|dimenticata
    ;verlopen|fout|gewijzigd|in de kluis|bij Joost|te kort|vergeten|ongeldig|leeg
    ;errada|expirada|correta|no cofre|alterada|bloqueada|com a Ana|vazia|esquecida
    ;błędne|wygasło|w sejfie|zmienione|zablokowany|u Ewy|puste|zapomniane|nieważny
    ;неверный|истёк|в сейфе|изменён|у Ольги|заблокирован|пустой|забыт|прежний
    ;忘れました|期限切れ|金庫の中|変更済み|未設定|間違い|同じ;错误|过期了|在保险柜里|改过了|忘了|没设置|不对|还是老的"""
NAMES = [
    "Priya",
    "timo",
    "anna",
    "kim",
    "Marek",
    "ops",
    "admin",
    "svc_report",
    "Grace",
    "Ola",
    "maria",
    "deploy",
    "Ben",
    "editor",
    "Mei",
    "guest",
    "Yusuf",
]
OPENINGS = (
    "",
    "",
    "",
    "Note: ",
    "note to self: ",
    "fyi ",
    "Reminder, ",
    "- ",
    "ok so ",
    "hey, ",
    "For later: ",
)
ENDS = (
    "",
    "",
    "",
    ".",
    ".",
    "!",
    ", please keep it",
    " (updated)",
    " since last week",
    "; ask me if it fails",
)


def parts(written: str) -> list[str]:
    return [part.strip() for part in written.split("|")]


def frames(
    draw: random.Random, value: Callable[[], str], count: int, secret: bool
) -> Iterator[str]:
    """Sentences of one kind; the values of secret ones in double brackets."""
    words, ways = parts(SECRET if secret else PLAIN), parts(TELLING if secret else USUAL)
    things, both, choose = parts(THINGS), parts(FRAMES), draw.choice
    states = [parts(some) for some in FOREIGN_STATES.split(";")]
    for _ in range(count):
        chance, kind = draw.random(), draw.random()
        about = not secret and kind < 0.4
        if chance < 0.2:
            at = draw.randrange(len(FOREIGN))
            hiding, plain, said = FOREIGN[at]
            frame, word = (
                choose(said.split("|")),
                choose((hiding if secret or about else plain).split("|")),
            )
            told = choose(states[at]) if about else value()
        else:
            frame, word, told = choose(both if chance < 0.7 else ways), choose(words), value()
            if about:
                frame, word = choose(parts(ABOUT)), choose(parts(SECRET))
                frame = frame.replace("{z}", choose(parts(STATES)))
        u, v = (f"⟦{one}⟧" if secret else one for one in (value(), told))
        text = frame.format(
            a=word,
            t=choose(things),
            s=choose(things),
            v=v,
            u=u,
            n=choose(NAMES),
            d=draw.randint(1, 90),
        )
        text = text.replace("the the ", "the ")
        text = choose(OPENINGS) + text + choose(ENDS) if chance >= 0.2 else text
        yield text[0].upper() + text[1:] if draw.random() < 0.4 else text


def values(
    made: Callable[[], str], others: Sequence[str], draw: random.Random
) -> Callable[[], str]:
    """Draw numbers, made words and others."""

    def value() -> str:
        chance = draw.random()
        if chance < 0.36:
            digits = draw.choice((2, 3, 4, 4, 4, 5, 6, 6, 8))
            number = "".join(draw.choices("0123456789", k=digits))
            return "-".join(number) if chance < 0.02 else number
        if chance < 0.6:
            return made()
        return draw.choice(others)

    return value
