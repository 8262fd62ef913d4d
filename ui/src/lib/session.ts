// Who is looking, and what they may do. Buttons that would be refused are not shown.
import { computed, signal } from "@preact/signals";
import { ApiError, base, call, keepPageKey, whenSignedOut, type Answer } from "./api";

export type Session = Answer<"GET /v1/session">;

export const session = signal<Session | null>(null);
export const sessionError = signal<ApiError | null>(null);
export const signedIn = computed(() => session.value !== null && session.value.scope !== "anyone");

/** Whether the caller may do an operation of the policy table. */
export function may(operation: string): boolean {
  return session.value?.may.includes(operation) ?? false;
}

export async function loadSession(): Promise<void> {
  try {
    try {
      session.value = await call("GET /v1/session", {});
    } catch (error) {
      // A space that one may not see answers as one that is not there.
      if (!(base && error instanceof ApiError && error.status)) throw error;
      session.value = { ...(await call("GET /v1/session", {}, undefined, "")), scope: "anyone", may: [], space: null };
    }
    sessionError.value = null;
  } catch (error) {
    if (error instanceof ApiError) sessionError.value = error;
    else throw error;
  }
}

export async function signIn(how: { ticket: string } | { token: string }): Promise<void> {
  const { page_key: key } = await call("POST /v1/session", how, undefined, "");
  keepPageKey(key);
  await loadSession();
}

export async function signOut(): Promise<void> {
  await call("DELETE /v1/session", {}, undefined, "");
  keepPageKey("");
  await loadSession();
}

whenSignedOut(() => {
  if (signedIn.value) void loadSession();
});
