// Numbers, times and names as people read them.
const DAY_FORM: Intl.DateTimeFormatOptions = { day: "numeric", month: "short", year: "numeric" };
const MOMENT_FORM: Intl.DateTimeFormatOptions = { ...DAY_FORM, hour: "2-digit", minute: "2-digit" };
let dayFormat = new Intl.DateTimeFormat("en-GB", DAY_FORM);
let momentFormat = new Intl.DateTimeFormat("en-GB", MOMENT_FORM);

/** Write dates as a host asks for; what the browser does not know is left as it is. */
export function setCustoms(locale: string | undefined, timeZone: string | undefined): void {
  try {
    dayFormat = new Intl.DateTimeFormat(locale ?? "en-GB", { ...DAY_FORM, timeZone });
    momentFormat = new Intl.DateTimeFormat(locale ?? "en-GB", { ...MOMENT_FORM, timeZone });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
}

const COUNT = new Intl.NumberFormat("en-GB");

export function count(value: number): string {
  return COUNT.format(value);
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function percent(value: number | null): string {
  if (value === null) return "–";
  const share = value * 100;
  return share > 0 && share < 1 ? "< 1%" : `${Math.round(share)}%`;
}

export function score(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined) return "–";
  const text = value.toFixed(digits);
  return text === `-${(0).toFixed(digits)}` ? (0).toFixed(digits) : text.replace("-", "−");
}

export function signed(value: number, digits = 3): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}

export function milliseconds(value: number): string {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2)} ms`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let left = value / 1024;
  let unit = 0;
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${left >= 100 ? left.toFixed(0) : left.toFixed(1)} ${units[unit]}`;
}

function formatted(format: Intl.DateTimeFormat, value: string | null | undefined): string {
  const at = new Date(value ?? "");
  return Number.isNaN(at.getTime()) ? value || "–" : format.format(at);
}

export function day(value: string | null | undefined): string {
  return formatted(dayFormat, value);
}

export function moment(value: string | null | undefined): string {
  return formatted(momentFormat, value);
}

/** How long ago, in the largest fitting unit. */
export function ago(value: string, now = Date.now()): string {
  const seconds = (now - new Date(value).getTime()) / 1000;
  const ahead = seconds < 0;
  const size = Math.abs(seconds);
  const units: [number, string][] = [
    [31_557_600, "year"],
    [2_629_800, "month"],
    [86_400, "day"],
    [3600, "hour"],
    [60, "minute"],
  ];
  for (const [length, name] of units) {
    if (size >= length) {
      const times = plural(Math.floor(size / length), name);
      return ahead ? `in ${times}` : `${times} ago`;
    }
  }
  return ahead ? "in a moment" : "just now";
}

const TRUST = ["unknown source", "tool or web", "agent or user", "the owner"];

export function trustWords(level: number): string {
  return TRUST[level] ?? `level ${level}`;
}

const CLASSES = ["public", "internal", "confidential", "secret"];

export function classWords(level: number): string {
  return CLASSES[level] ?? `class ${level}`;
}

const STATUS: Record<string, [string, string]> = {
  found: ["Found", "Stored on this subject."],
  unsure: ["May be related", "Perhaps on this subject, perhaps not."],
  nothing_matched: ["Nothing returned", "There are memories, but none is returned."],
  nothing_stored: ["Nothing stored", "There is no memory that could be searched."],
};

/** The tier of an answer: its name, and what it means. */
export function statusWords(status: string): [string, string] {
  return STATUS[status] ?? [status, ""];
}
