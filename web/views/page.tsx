import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { App } from "../state/app.ts";
import { Announcements } from "./announcements.tsx";
import { Bar } from "./bar.tsx";
import { Context, createPage, usePage } from "./context.ts";
import { watchKeys } from "./keyboard.ts";
import { Later, WithFigures } from "./later.tsx";
import { News } from "./news.tsx";
import { Rail } from "./rail.tsx";
import { SessionView } from "./session.tsx";
import { Welcome } from "./welcome.tsx";

/** The whole page. */
export function ConsolePage({ app }: { readonly app: App }): JSX.Element {
  const page = useMemo(() => createPage(app), [app]);
  useEffect(() => watchKeys(page.app, page.looks), [page]);
  useEffect(() => keepDroppedFilesHere(), []);
  useEffect(
    () =>
      app.title.subscribe((title) => {
        document.title = title;
      }),
    [app],
  );
  return (
    <Context.Provider value={page}>
      <Shell />
    </Context.Provider>
  );
}

function Shell(): JSX.Element {
  const { app, looks } = usePage();
  const workspace = app.workspace.value;
  if (workspace === undefined) return <Welcome />;
  const open = workspace.selected.value;
  const sheet = looks.sheet.value;
  const hasSide = looks.place.value === "session" && open !== undefined;
  return (
    <div class="page" data-side={hasSide} data-shows={looks.shows.value}>
      <button
        type="button"
        class="skip"
        onClick={() => {
          looks.shows.value = "main";
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the conversation
      </button>
      <Bar />
      <News />
      <Rail />
      <main class="main" id="main" tabIndex={-1}>
        <MainColumn />
      </main>
      {hasSide && (
        <aside class="side" aria-label="About this session">
          <WithFigures open={open} saysSo={true}>
            {({ RequestDetails, SessionFacts }, figures) => (
              <>
                {looks.tab.value === "requests" && <RequestDetails open={open} figures={figures} />}
                <SessionFacts open={open} figures={figures} />
              </>
            )}
          </WithFigures>
        </aside>
      )}
      <Announcements />
      {sheet !== undefined && (
        <Later
          show={({ KeyList, Actions, SearchSheet }) => {
            const Shown = { keys: KeyList, actions: Actions, search: SearchSheet }[sheet];
            return <Shown />;
          }}
        />
      )}
    </div>
  );
}

function MainColumn(): JSX.Element {
  const { app, looks } = usePage();
  const open = app.workspace.value?.selected.value;
  switch (looks.place.value) {
    case "new":
      return <Later show={({ NewSessionForm }) => <NewSessionForm />} />;
    case "stored":
      return <Later show={({ StoredSessionsList }) => <StoredSessionsList />} />;
    case "pushes":
      return <Later show={({ PushesView }) => <PushesView />} />;
    case "daemon":
      return <Later show={({ DaemonView }) => <DaemonView />} />;
    case "session":
      return open === undefined ? <Nothing /> : <SessionView key={open.sessionId} open={open} />;
  }
}

function Nothing(): JSX.Element {
  const { app, looks } = usePage();
  const hasSessions = (app.workspace.value?.sessions.count.value ?? 0) > 0;
  return (
    <div class="empty">
      <h1>{hasSessions ? "No session is open" : "There are no sessions yet"}</h1>
      <p>
        {hasSessions
          ? "Choose one in the list: that starts no pi."
          : "A session is a conversation with pi in one directory. It appears here wherever it started."}
      </p>
      <div class="row-of-buttons">
        <button
          type="button"
          class={hasSessions ? "button" : "button primary"}
          onClick={() => {
            looks.place.value = "new";
          }}
        >
          New session
        </button>
      </div>
    </div>
  );
}

/** A file that is dropped beside the composer would replace the page. */
function keepDroppedFilesHere(): () => void {
  const keep = (event: DragEvent): void => event.preventDefault();
  addEventListener("dragover", keep);
  addEventListener("drop", keep);
  return () => {
    removeEventListener("dragover", keep);
    removeEventListener("drop", keep);
  };
}
