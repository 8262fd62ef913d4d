/** Client of Bethink, a memory for AI agents. */

export * from "./client.js";
export {
  BadProfile,
  BadText,
  BethinkError,
  Busy,
  Conflict,
  Forbidden,
  LooksPasted,
  Malformed,
  NotFound,
  type Problem,
  RateLimited,
  Refused,
  ServerError,
  TooLarge,
  TooSlow,
  Unauthorized,
  Unreachable,
} from "./errors.js";
export type { Change, WatchOptions } from "./events.js";
export type { components, paths } from "./schema.js";
export type { Answer, Arguments, CallOptions, ClientOptions, Route, Schema } from "./transport.js";
