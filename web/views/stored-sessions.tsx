import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Visible } from "../text/visible.tsx";
import { BackButton } from "./back-button.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { openSession } from "./moves.ts";
import { Age } from "./widgets/time.tsx";

/** pi's own sessions, that the daemon does not have yet. */
export function StoredSessionsList(): JSX.Element {
  const { app, looks } = usePage();
  const { sessions } = useWorkspace();
  const { stored } = sessions;
  const problem = useSignal("");
  const opening = useSignal<string | undefined>(undefined);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    title.current?.focus();
    void stored.more();
  }, []);
  const open = async (file: string): Promise<void> => {
    opening.value = file;
    const outcome = await sessions.openStored(file);
    opening.value = undefined;
    if (outcome.kind === "done") openSession(app, looks, outcome.value);
    else problem.value = outcome.words;
  };
  const state = stored.state.value;
  return (
    <div class="sheet-page">
      <header class="sheet-head">
        <BackButton />
        <h1 ref={title} tabIndex={-1}>
          Open one of pi's sessions
        </h1>
      </header>
      <p class="quiet">These are files of pi that this daemon does not serve yet. Opening one starts its pi.</p>
      {problem.value !== "" && (
        <p class="is-bad" role="alert">
          {problem.value}
        </p>
      )}
      {state.kind === "refused" && <p class="is-bad">{state.words}</p>}
      {state.kind === "loading" && <p class="quiet">Reading pi's files…</p>}
      {state.kind === "loaded" && stored.sessions.value.length === 0 && (
        <p class="quiet">There are none. Sessions that you have with pi alone appear here.</p>
      )}
      <ul class="list-of-stored">
        {stored.sessions.value.map(({ file, name, firstMessage, cwd, updatedAt }) => (
          <li key={file}>
            <button type="button" disabled={opening.value !== undefined} onClick={() => void open(file)}>
              <strong class="cut">
                <bdi>{name ?? firstMessage ?? "without a message"}</bdi>
              </strong>
              <span class="quiet">{opening.value === file ? "Opening…" : <Age at={updatedAt} />}</span>
              <span class="mono quiet cut">
                <Visible text={cwd} />
              </span>
            </button>
          </li>
        ))}
      </ul>
      {state.kind === "loaded" && stored.hasMore.value && (
        <button type="button" class="button" onClick={() => void stored.more()}>
          Show more
        </button>
      )}
    </div>
  );
}
