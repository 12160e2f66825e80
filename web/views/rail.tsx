import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { GroupName, SessionGroup, SessionRow } from "../state/sessions.ts";
import { usePage, useWorkspace } from "./context.ts";
import { showPlace } from "./moves.ts";
import { RowOfSession } from "./session-row.tsx";

const groupTitles: Readonly<Record<GroupName, string>> = {
  waits: "Waits for you",
  failed: "Failed or lost something",
  runs: "Running",
  finished: "Finished, not seen yet",
  awake: "Awake",
  asleep: "Asleep",
};

/** The list of sessions. */
export function Rail(): JSX.Element {
  const { looks } = usePage();
  const { sessions } = useWorkspace();
  const state = sessions.state.value;
  // With one column the list is all that there is.
  const isMain = looks.isNarrow.value && looks.shows.value === "rail";
  return (
    <div class="rail" {...{ role: isMain ? ("main" as const) : ("navigation" as const), "aria-label": "Sessions" }}>
      {isMain && <h1 class="unseen">pi-rpcd</h1>}
      <h2 class="unseen">Sessions</h2>
      <div class="rail-tools">
        <input
          class="field"
          type="search"
          placeholder="Filter"
          aria-label="Filter sessions by name, label, directory or model"
          value={sessions.filter.value}
          onInput={({ currentTarget }) => {
            sessions.filter.value = currentTarget.value;
          }}
        />
        <button type="button" class="button" onClick={() => showPlace(looks, "new")}>
          New
        </button>
        <button
          type="button"
          class="button"
          title="Open one of pi's stored sessions"
          onClick={() => showPlace(looks, "stored")}
        >
          Open…
        </button>
      </div>
      {state.kind === "refused" && <p class="rail-empty is-bad">{state.words}</p>}
      {state.kind === "loading" && <p class="rail-empty">Loading the sessions…</p>}
      {state.kind === "loaded" && <Groups />}
    </div>
  );
}

function Groups(): JSX.Element {
  const { sessions, selected } = useWorkspace();
  const [groups, hold] = useHeldOrder(sessions.groups.value, (id) => sessions.find(id));
  const selectedId = selected.value?.sessionId;
  if (groups.length === 0) {
    return (
      <p class="rail-empty">
        {sessions.count.value === 0 ? "Sessions appear here. “New” starts one." : "No session fits the filter."}
      </p>
    );
  }
  return (
    <div class="rail-list" onPointerEnter={() => hold(true)} onPointerLeave={() => hold(false)}>
      {groups.map(({ name, rows }) => (
        <section key={name} class="rail-group">
          <h3>
            {groupTitles[name]} <span class="count">{rows.length}</span>
          </h3>
          <ul>
            {rows.map((row) => (
              <RowOfSession key={row.sessionId} row={row} isSelected={row.sessionId === selectedId} />
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

/** Rows keep their places while the pointer is over the list, so that none moves away under it; what they say is current. */
function useHeldOrder(
  current: readonly SessionGroup[],
  find: (sessionId: string) => SessionRow | undefined,
): readonly [groups: readonly SessionGroup[], hold: (isHeld: boolean) => void] {
  const isHeld = useSignal(false);
  const shown = useRef(current);
  if (isHeld.value) {
    shown.current = shown.current.map(({ name, rows }) => ({
      name,
      rows: rows.map((row) => find(row.sessionId) ?? row),
    }));
  } else {
    shown.current = current;
  }
  const hold = (held: boolean): void => {
    isHeld.value = held;
  };
  return [shown.current, hold];
}
