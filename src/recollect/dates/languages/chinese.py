"""Chinese words for times: read by patterns, for nothing stands between the words."""

from __future__ import annotations

import re
from functools import cache

from recollect.dates.languages.language import Put
from recollect.dates.names import MONTHS, WEEKDAYS

_FIGURES = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2}
_N = r"(?:\d{1,4}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
_UNITS = {"秒": "seconds", "秒钟": "seconds", "分钟": "minutes", "小时": "hours", "天": "days"}
_UNITS |= {"日": "days", "周": "weeks", "星期": "weeks", "礼拜": "weeks", "月": "months"}
_UNITS |= {"年": "years", "季度": "quarters"}
_UNIT = r"(?:个?半?(?:秒钟?|分钟|小时|天|周|星期|礼拜|季度|年)|个月)"
_YEARS = {"前年": "year before last", "去年": "last year", "今年": "this year"}
_YEARS |= {"明年": "next year"}
_DAYS = {"大前天": "3 days ago", "前天": "day before yesterday", "昨天": "yesterday"}
_DAYS |= {"昨日": "yesterday", "今天": "today", "今日": "today", "明天": "tomorrow"}
_DAYS |= {"明日": "tomorrow", "后天": "day after tomorrow", "昨晚": "last night"}
_DAYS |= {"今晚": "tonight", "今早": "this morning", "昨夜": "last night"}
_PARTS = {"凌晨": "night", "早上": "morning", "早晨": "morning", "上午": "morning"}
_PARTS |= {"中午": "lunchtime", "下午": "afternoon", "傍晚": "evening", "晚上": "evening"}
_STEP = {"上": "last", "这": "this", "本": "this", "下": "next"}
_THIRD = {"初": "beginning of", "中": "middle of", "底": "end of", "末": "end of"}
_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_WORDS = {"最近": "recently", "近来": "recently", "近期": "recently", "刚才": "just now"}
_WORDS |= {"圣诞节": "christmas", "元旦": "new year", "自从": "since", "自": "since"}
_WORDS |= {"从": "from", "到": "to", "至": "to", "截至": "until", "直到": "until"}
_WORDS |= {"以来": "since>", "起": "since>", "开始": "since>", "之后": "after>", "以后": "after>"}
_WORDS |= {"之前": "before>", "以前": "before>", "之间": "_", "的": "_", "和": "and", "在": "in"}

_PATTERNS = {
    "dated": rf"\d{{4}}年(?:{_N}月(?:{_N}[日号])?|第?[一二三四1-4]季度|[春夏秋冬][天季])?[初底末]?",
    "turned": rf"(?:{'|'.join(_YEARS)})的?"
    rf"(?:{_N}月(?:份|{_N}[日号])?|[春夏秋冬][天季]|年?[初底末])?",
    "clock": rf"(?:{'|'.join(_PARTS)})?{_N}点(?:半|{_N}分)?",
    "counted": rf"(?:{_N}|几|半){_UNIT}(?:以前|之前|以后|之后|前|后)",
    "stretched": rf"(?:过去|最近|近|未来|接下来)的?(?:{_N}|几){_UNIT}",
    "weekly": r"(?:上上|下下|上|这|本|下)个?(?:周|星期|礼拜)[一二三四五六日天末]?"
    r"|(?:周|星期|礼拜)[一二三四五六日天末]",
    "monthly": r"(?:上上|上|这|本|下)个?(?:月[初中底末]?|季度)|月[初底]",
    "month": rf"{_N}月(?:{_N}[日号]|份)?[初底末]?",
    "near": "|".join(_DAYS),
    "part": "|".join(_PARTS),
    "season": "[春夏秋冬][天季]",
    "word": "|".join(sorted(_WORDS, key=len, reverse=True)),
    "figure": r"\d+",
    "other": r"[^\W\d_]|[^\w\s]",
}
TELLTALE = frozenset("年月周天昨星礼晚近元圣点时钟季春夏秋冬")


@cache
def _any() -> re.Pattern[str]:
    """All patterns as one, made when the first Chinese text is read."""
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS.items()))


@cache
def _number_pattern() -> re.Pattern[str]:
    return re.compile(_N)


def put(text: str) -> list[Put]:
    """The text in English words for times; what is none is marked by ``_``."""
    out: list[Put] = []
    for match in _any().finditer(text):
        name, found = match.lastgroup or "", match[0]
        if name == "figure":
            english = found
        elif name == "other":
            english = f"_{found}" if found.isalpha() else found
        else:
            english = _READERS[name](found)
        out += [(word, match.span()) for word in english.split()]
    return out


def _number(sign: str) -> int:
    """Up to 99, in figures or in words."""
    if sign.isdecimal():
        return int(sign)
    tens, ten, ones = sign.rpartition("十")
    if not ten:
        return _FIGURES[sign]
    return 10 * _FIGURES.get(tens, 1) + _FIGURES.get(ones, 0)


def _numbers(found: str) -> list[int]:
    return [_number(sign) for sign in _number_pattern().findall(found)]


def _month(number: int) -> str:
    return MONTHS[number - 1] if 1 <= number <= 12 else "_"


def _third(found: str) -> str:
    return _THIRD.get(found[-1], "")


def _dated(found: str) -> str:
    year, rest = found[:4], found[5:]
    return _of_year(rest, year) or f"{_third(found) or 'in'} {year}"


def _of_year(rest: str, year: str) -> str:
    """A month, a day, a quarter or a season, and the year it lies in."""
    numbers = _numbers(rest)
    season = _SEASONS.get(rest[:1])
    if season:
        return f"{season} {year}"
    if "季" in rest and numbers:
        return f"{('first', 'second', 'third', 'fourth')[numbers[0] - 1]} quarter {year}"
    if len(numbers) == 2:
        return f"{numbers[1]} {_month(numbers[0])} {year}"
    if numbers:
        return f"{_third(rest) or 'in'} {_month(numbers[0])} {year}"
    return ""


def _turned(found: str) -> str:
    said = found[:2]
    rest = found[2:].lstrip("的")
    if said == "前年":
        return _YEARS[said]
    return _of_year(rest, _YEARS[said]) or f"{_third(rest) if rest else ''} {_YEARS[said]}"


def _clock(found: str) -> str:
    part, said = (found[:2], found[2:]) if found[:2] in _PARTS else ("", found)
    numbers = _numbers(said)
    late = part in ("下午", "傍晚", "晚上") or (part == "中午" and numbers[0] < 11)
    hour = numbers[0] + 12 * (late and numbers[0] < 12)
    minute = 30 if said.endswith("半") else numbers[1] if len(numbers) > 1 else None
    return f"at {hour} oclock" if minute is None else f"at {hour} oclock {minute:02}"


def _amount(found: str) -> str:
    """Three weeks, a few days, half a year."""
    unit = next(name for name in sorted(_UNITS, key=len, reverse=True) if name in found[1:])
    if found[0] == "半" or "半" in found[1:]:
        return f"half a {_UNITS[unit].removesuffix('s')}"
    numbers = _numbers(found)
    return f"{numbers[0] if numbers else 'few'} {_UNITS[unit]}"


def _counted(found: str) -> str:
    sign = found.rstrip("以之前后")
    return f"{_amount(sign)} {'ago' if found.endswith('前') else 'later'}"


def _stretched(found: str) -> str:
    ahead = found.startswith(("未来", "接下来"))
    sign = found.lstrip("过去最近未来接下的")
    return f"{'next' if ahead else 'last'} {_amount(sign)}"


def _weekly(found: str) -> str:
    if found.endswith("末"):
        return f"{_STEP.get(found[0], 'over the')} weekend"
    ahead = "week before last" if found.startswith("上上") else "week after next"
    doubled = found.startswith(("上上", "下下"))
    day = "一二三四五六日".find(found[-1].replace("天", "日"))
    if doubled:
        return ahead if day < 0 else "_"
    week = f"{_STEP[found[0]]} week" if found[0] in _STEP else ""
    return f"{week} {WEEKDAYS[day] if day >= 0 else ''}"


def _monthly(found: str) -> str:
    unit = "quarter" if found.endswith("季度") else "month"
    if found.startswith("上上"):
        return f"{unit} before last"
    third = _third(found) if unit == "month" else ""
    return f"{third} {_STEP.get(found[0], 'the')} {unit}"


def _by_month(found: str) -> str:
    numbers = _numbers(found)
    if len(numbers) == 2:
        return f"{numbers[1]} {_month(numbers[0])}"
    return f"{_third(found) or 'in'} {_month(numbers[0])}"


_READERS = {
    "dated": _dated,
    "turned": _turned,
    "clock": _clock,
    "counted": _counted,
    "stretched": _stretched,
    "weekly": _weekly,
    "monthly": _monthly,
    "month": _by_month,
    "near": _DAYS.__getitem__,
    "part": _PARTS.__getitem__,
    "season": lambda found: f"in {_SEASONS[found[0]]}",
    "word": _WORDS.__getitem__,
}
