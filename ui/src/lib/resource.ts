// Loading from the API in a component: the last answer stays visible while the next one loads.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, reconnections } from "./api";

export interface Resource<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  reload: () => void;
}

/** Load when the key changes; null loads nothing. */
export function useResource<T>(key: string | null, load: (abort: AbortSignal) => Promise<T>): Resource<T> {
  const [state, setState] = useState<{ data: T | null; error: ApiError | null; loading: boolean }>({
    data: null,
    error: null,
    loading: key !== null,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const again = reconnections.value;
  useEffect(() => {
    if (key === null) {
      setState({ data: null, error: null, loading: false });
      return;
    }
    const abort = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    latest.current(abort.signal).then(
      (data) => {
        if (!abort.signal.aborted) setState({ data, error: null, loading: false });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        setState((before) => ({ data: error.status ? null : before.data, error, loading: false }));
      },
    );
    return () => abort.abort();
  }, [key, turn, again]);
  return { ...state, reload: () => setTurn((count) => count + 1) };
}
