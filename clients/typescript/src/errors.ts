/** What a server answers instead of a result: a class for each kind of problem. */

/** The request failed; `message` says why and `remedy`, where there is one, what to do. */
export class BethinkError extends Error {
  /** The problem's name in the answer, such as `not_found`. */
  readonly kind: string;
  /** The HTTP status; 0 where no answer came. */
  readonly status: number;
  /** What to do about it; may be empty. */
  readonly remedy: string;
  /** After how many seconds the server wants to be asked again. */
  readonly retryAfter: number | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.kind = details.kind ?? "unknown";
    this.status = details.status ?? 0;
    this.remedy = details.remedy ?? "";
    this.retryAfter = details.retryAfter;
  }
}

export interface ErrorDetails {
  kind?: string;
  status?: number;
  remedy?: string;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/** No answer came: no server, no network, or the time was up. */
export class Unreachable extends BethinkError {}

/** The input breaks a rule; nothing was stored or searched. */
export class Refused extends BethinkError {}
/** Over a stated limit. */
export class TooLarge extends Refused {}
/** A character that no store can keep. */
export class BadText extends Refused {}
/** A pasted log rather than a memory; `force` stores it anyway. */
export class LooksPasted extends Refused {}
/** The key was used before for other content. */
export class Conflict extends Refused {}
/** There is no such profile, or it cannot be used. */
export class BadProfile extends Refused {}
/** The request cannot be read. */
export class Malformed extends Refused {}

/** No such memory, thread, profile or route. */
export class NotFound extends BethinkError {}

/** The token is missing or not valid for this space. */
export class Unauthorized extends BethinkError {}
/** The token's scope is insufficient, or the page's origin is not allowed. */
export class Forbidden extends BethinkError {}

/** Too many requests; `retryAfter` says when to try again. */
export class RateLimited extends BethinkError {}
/** The store is busy, or too many requests run at once. */
export class Busy extends BethinkError {}
/** The request or its answer took too long. */
export class TooSlow extends BethinkError {}

/** The server cannot do it: its store, its models or its settings. */
export class ServerError extends BethinkError {}

type ErrorClass = new (message: string, details?: ErrorDetails) => BethinkError;

const CLASSES: Record<string, ErrorClass> = {
  refused: Refused,
  too_large: TooLarge,
  bad_text: BadText,
  looks_pasted: LooksPasted,
  conflict: Conflict,
  some_refused: Refused,
  bad_profile: BadProfile,
  malformed: Malformed,
  wrong_media: Malformed,
  wrong_method: Malformed,
  not_found: NotFound,
  no_token: Unauthorized,
  bad_token: Unauthorized,
  forbidden: Forbidden,
  wrong_origin: Forbidden,
  wrong_host: Forbidden,
  too_often: RateLimited,
  busy: Busy,
  store_busy: Busy,
  too_slow: TooSlow,
  no_tokens: ServerError,
  bad_setting: ServerError,
  untrusted_space: ServerError,
  bad_plugin: ServerError,
  missing_extra: ServerError,
  model_error: ServerError,
  store_error: ServerError,
  store_damaged: ServerError,
  schema_too_new: ServerError,
  bug: ServerError,
};

/** The problem in an entry of an answer that refuses each memory by itself. */
export interface Problem {
  kind: string;
  message: string;
  remedy: string;
}

/** The error of the class that belongs to a problem's kind. */
export function errorOf(problem: Problem, details: ErrorDetails = {}): BethinkError {
  const status = details.status ?? 0;
  const fallback = status === 429 ? RateLimited : status === 503 ? Busy : status >= 500 ? ServerError : BethinkError;
  const kind = Object.hasOwn(CLASSES, problem.kind) ? CLASSES[problem.kind]! : fallback;
  return new kind(problem.message, { ...details, kind: problem.kind, remedy: problem.remedy });
}

/** The error that an answer with a bad status tells. */
export async function errorOfResponse(response: Response): Promise<BethinkError> {
  const details: ErrorDetails = { status: response.status, retryAfter: secondsToWait(response) };
  const text = await response.text().catch(() => "");
  const told = parse(text)?.error;
  if (told && typeof told.kind === "string" && typeof told.message === "string") {
    return errorOf({ kind: told.kind, message: told.message, remedy: told.remedy ?? "" }, details);
  }
  // Not the server's own words: a proxy's page, or something else at this address.
  return errorOf({ kind: "unknown", message: `the server answered with status ${response.status}`, remedy: "" }, details);
}

function parse(text: string): { error?: Partial<Problem> } | undefined {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

function secondsToWait(response: Response): number | undefined {
  const told = response.headers.get("retry-after");
  if (told === null) return undefined;
  const seconds = /^\d+$/.test(told.trim()) ? Number(told) : (Date.parse(told) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}
