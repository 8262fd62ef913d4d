// The shell: who is looking, where one can go, and what to show where.
import { LocationProvider, Route, Router, useLocation } from "preact-iso";
import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import icon from "./icon.svg";
import { ApiError, base, connected } from "./lib/api";
import { conflicts, loadConflicts, loadMembers, loadWaiting, waiting } from "./lib/counts";
import { count } from "./lib/format";
import { helpOpen, startKeys } from "./lib/keys";
import { loadSession, may, session, sessionError, signedIn, signIn, signOut } from "./lib/session";
import { nextTheme, theme } from "./lib/theme";
import { link } from "./lib/url";
import { Dialog, ErrorNote, Page, Toast } from "./parts/basics";
import { VIEWS, type View } from "./views";

export function App() {
  useEffect(() => {
    void start();
  }, []);
  return (
    <LocationProvider scope={`${base}/ui`}>
      <Gate />
      <Toast />
      {!connected.value && (
        <div class="notice bad lost" role="alert">
          <strong>The connection is lost.</strong>
          <p class="muted">Trying again. What you see may be out of date.</p>
        </div>
      )}
    </LocationProvider>
  );
}

let ticketError: ApiError | null = null;

/** Use the ticket in the address, once, and take it out of the address and the history. */
async function start(): Promise<void> {
  if (location.pathname === "/login") {
    const ticket = location.hash.slice(1);
    history.replaceState(null, "", "/ui/ask");
    if (ticket) {
      try {
        await signIn({ ticket });
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        ticketError = error;
        await loadSession();
      }
      dispatchEvent(new PopStateEvent("popstate"));
      return;
    }
  }
  await loadSession();
}

function Gate() {
  if (session.value === null) {
    return (
      <main class="main">
        {sessionError.value ? <ErrorNote error={sessionError.value} /> : <p class="muted">Opening …</p>}
      </main>
    );
  }
  return signedIn.value ? <Shell /> : <Login />;
}

function Login() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<ApiError | null>(ticketError);
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    try {
      await signIn({ token: token.trim() });
      ticketError = null;
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem;
      setError(problem);
    }
  };
  const spaces = session.value!.spaces;
  // A token may be for another space of this server than the first.
  useEffect(() => {
    if (!base && spaces.length) location.replace(spaceLink(spaces[0]!));
  }, [spaces]);
  return (
    <main class="main">
      <Page title="Sign in" lead="This memory is opened with a link or a token.">
        <ErrorNote error={error} />
        {spaces.length > 0 && (
          <p class="notice">
            Here you see nothing of this name. You may open{" "}
            {spaces.map((name) => (
              <a key={name} href={spaceLink(name)}>
                {name}{" "}
              </a>
            ))}
          </p>
        )}
        <form class="card stack" onSubmit={onSubmit}>
          <p>
            Run <code>bethink ui</code> and open the link that it prints. Or paste a token of{" "}
            <code>bethink token create</code>; you see what its scope allows.
          </p>
          <label class="field">
            Token
            <input
              class="input mono"
              type="password"
              autocomplete="off"
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          </label>
          <div>
            <button class="button primary" disabled={!token.trim()}>
              Sign in
            </button>
          </div>
        </form>
      </Page>
    </main>
  );
}

/** Another space, in the same view; a memory is of one space. */
function spaceLink(name: string): string {
  const view = location.pathname.slice(`${base}/ui/`.length).split("/")[0];
  return `/spaces/${encodeURIComponent(name)}/ui/${view || "ask"}`;
}

/** The space, and the others of this server that one may look at. */
function SpaceSwitch() {
  const { space, spaces } = session.value!;
  if (spaces.length < 2) {
    return (
      <p class="space" title="The space that is shown">
        <span class="line">{space}</span>
      </p>
    );
  }
  return (
    <select
      class="input space"
      aria-label="Space"
      value={space ?? ""}
      onChange={(event) => location.assign(spaceLink(event.currentTarget.value))}
    >
      {spaces.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

function Shell() {
  const { path, url, route } = useLocation();
  const shown = VIEWS.filter(isInMenu);
  useEffect(() => {
    void loadConflicts();
    void loadWaiting();
    void loadMembers();
  }, []);
  const question = new URLSearchParams(url.split("?")[1] ?? "").get("q");
  const places = new Map(shown.map((view) => [view.key!, link(view.path, view.keepsQuestion ? { q: question } : {})]));
  useLayoutEffect(() => startKeys(places, may("remember") ? link("/memories", { do: "add" }) : "", route), [route, question]);
  // A reader of the screen hears where it is; the first page is read anyway.
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    scrollTo(0, 0);
    document.getElementById("main")?.focus({ preventScroll: true });
  }, [path]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="side">
        <a class="brand" href={link("/ask")} aria-label="Bethink">
          <img src={icon} alt="" /> <span>Bethink</span>
        </a>
        <SpaceSwitch />
        <nav class="nav" aria-label="Views">
          {shown.map((view) => {
            const target = link(view.path);
            const here = path === target || path.startsWith(`${target}/`);
            return (
              <a
                key={view.path}
                href={places.get(view.key!)}
                aria-current={here ? "page" : undefined}
              >
                <span>
                  {view.name} {view.path === "/sharing" && <Count of={conflicts.value.length} what="to settle" title="Memories that were changed in two places" />}
                  {view.path === "/inbox" && <Count of={waiting.value} what="to review" title="Memories that wait for a review" />}
                </span>{" "}
                <kbd>g {view.key}</kbd>
              </a>
            );
          })}
        </nav>
        <div class="side-foot">
          <SideFoot />
        </div>
      </header>
      <main class="main" id="main" tabIndex={-1}>
        <Guarded key={path}>
          <Router>
            {VIEWS.map((view) => (
              <Route key={view.path} path={link(view.path)} component={view.component} />
            ))}
            <Route path={`${base}/ui`} component={VIEWS[0]!.component} />
            <Route default component={Nowhere} />
          </Router>
        </Guarded>
      </main>
      <Help />
    </div>
  );
}

/** Whether a view is in the menu: it has a key, and may be opened. */
function isInMenu(view: View): boolean {
  return Boolean(view.key) && (!view.needs || may(view.needs));
}

function Count(props: { of: number; what: string; title: string }) {
  if (!props.of) return null;
  return (
    <span class="count" title={props.title}>
      {count(props.of)}
      <span class="sr"> {props.what}</span>
    </span>
  );
}

/** A view that fails says so, and leaves the rest of the page alone. */
class Guarded extends Component<{ children: ComponentChildren }, { failed: string }> {
  override state = { failed: "" };

  override componentDidCatch(error: unknown) {
    console.error(error);
    this.setState({ failed: error instanceof Error ? error.message : String(error) });
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <Page title="This view failed">
        <div class="notice bad" role="alert">
          <strong>A bug in the inspector: {this.state.failed}</strong>
          <p class="muted">The memories are not affected. Reload the page, and please report it.</p>
        </div>
      </Page>
    );
  }
}

function SideFoot() {
  const who = session.value!;
  return (
    <>
      <p class="muted who">
        {who.person && (
          <>
            <strong>{who.person}</strong>
            <br />
          </>
        )}
        {may("remember") ? `You may ${who.scope === "admin" ? "change and erase" : "change"}` : "Read only"}
      </p>
      <div class="side-buttons">
        <button type="button" class="button small" onClick={nextTheme} title="Light, dark, or as the system says">
          Theme: {theme.value}
        </button>
        <button type="button" class="button small keys" onClick={() => (helpOpen.value = true)}>
          Keys
        </button>
        {who.browser && (
          <button type="button" class="button small" onClick={() => void signOut()}>
            Sign out
          </button>
        )}
      </div>
      <p class="muted who">Version {who.version}</p>
    </>
  );
}

function Help() {
  return (
    <Dialog open={helpOpen.value} title="Keys" onClose={() => (helpOpen.value = false)}>
      <dl class="facts">
        {VIEWS.filter(isInMenu).map((view) => (
          <>
            <dt>
              <kbd>g</kbd> <kbd>{view.key}</kbd>
            </dt>
            <dd>{view.name}</dd>
          </>
        ))}
        <dt>
          <kbd>n</kbd>
        </dt>
        <dd>A new memory</dd>
        <dt>
          <kbd>Ctrl</kbd> <kbd>Enter</kbd>
        </dt>
        <dd>Save what is being written</dd>
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>To the search field</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Out of a field or a dialog</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>These keys</dd>
      </dl>
      <div>
        <button type="button" class="button" onClick={() => (helpOpen.value = false)}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function Nowhere() {
  return (
    <Page title="There is no such page">
      <p>
        <a href={link("/ask")}>To the questions</a>
      </p>
    </Page>
  );
}
