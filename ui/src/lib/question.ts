// A question with its filters and limits, as the address holds it.
import { call, type Answer, type Arguments } from "./api";
import { useResource, type Resource } from "./resource";
import type { Address } from "./url";

export type Inspected = Answer<"POST /v1/inspect">;
export type Hit = Inspected["hits"][number];
export type Step = Inspected["trace"]["steps"][number];

export const FILTERS = ["kind", "topic", "tag", "entity", "user", "since", "until"] as const;
export const LIMITS = ["k", "max_tokens", "min_confidence", "min_relevance"] as const;

/** What the address asks for; null where there is neither a question nor a filter. */
export function questionOf(address: Address, more: Arguments<"POST /v1/inspect"> = {}): Arguments<"POST /v1/inspect"> | null {
  const given: Record<string, unknown> = {};
  const query = address.get("q").trim();
  if (query) given.query = query;
  for (const name of FILTERS) if (address.get(name)) given[name] = address.get(name);
  if (!Object.keys(given).length) return null;
  for (const name of LIMITS) {
    const value = Number(address.get(name));
    if (address.get(name) && Number.isFinite(value)) given[name] = value;
  }
  for (const name of ["profile", "as_of", "layer", "band"]) if (address.get(name)) given[name] = address.get(name);
  if (address.get("whole") === "1") given.whole = true;
  return { ...given, ...more };
}

/** How many filters and limits differ from the default. */
export function settingsCount(address: Address): number {
  const names = [...FILTERS, ...LIMITS, "as_of", "whole"];
  return names.filter((name) => address.get(name)).length;
}

export function useInspected(asked: Arguments<"POST /v1/inspect"> | null): Resource<Inspected> {
  return useResource(asked && JSON.stringify(asked), (abort) => call("POST /v1/inspect", asked!, abort));
}
