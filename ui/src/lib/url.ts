// The state of a view is in its address, so that it can be shared, reloaded and gone back to.
import { useLocation } from "preact-iso";
import { useMemo } from "preact/hooks";
import { base } from "./api";

export type Params = Record<string, string | null | undefined>;

export interface Address {
  path: string;
  get: (name: string) => string;
  all: (name: string) => string[];
  /** Change parameters; those that are empty are removed. */
  set: (changes: Params, options?: { replace?: boolean }) => void;
  search: URLSearchParams;
}

export function useAddress(): Address {
  const { url, path, route } = useLocation();
  return useMemo(() => {
    const search = new URLSearchParams(url.split("?")[1]?.split("#")[0] ?? "");
    return {
      path,
      search,
      get: (name) => search.get(name) ?? "",
      all: (name) => search.getAll(name),
      set: (changes, options) => {
        const next = new URLSearchParams(search);
        for (const [name, value] of Object.entries(changes)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        const text = next.toString();
        if (text !== search.toString()) route(path + (text && `?${text}`), options?.replace);
      },
    };
  }, [url, path, route]);
}

/** A link below /ui with parameters. */
export function link(path: string, params: Params | URLSearchParams = {}): string {
  const made = new URLSearchParams();
  const entries = params instanceof URLSearchParams ? [...params] : Object.entries(params);
  for (const [name, value] of entries) if (value) made.append(name, value);
  const text = made.toString();
  return `${base}/ui${path}${text && `?${text}`}`;
}

export function memoryLink(id: string): string {
  return link(`/memories/${encodeURIComponent(id)}`);
}
