import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { GroupName, SessionRow, Sessions } from "../state/sessions.ts";
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
  const [groups, hold] = useHeldOrder(sessions);
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
      {groups.map(({ title, rows }) => (
        <section key={title} class="rail-group">
          <h3>
            {title} <span class="count">{rows.length}</span>
          </h3>
          <RowsOfGroup rows={rows} selectedId={selectedId} />
        </section>
      ))}
    </div>
  );
}

/** So many more rows are built when the end of a group comes near. */
const rowsAtOnce = 100;

interface RowsProps {
  readonly rows: readonly SessionRow[];
  readonly selectedId: string | undefined;
}

/** The rows of a group. Those further down are built when a person scrolls near them. */
function RowsOfGroup({ rows, selectedId }: RowsProps): JSX.Element {
  const count = useSignal(rowsAtOnce);
  const end = useRef<HTMLLIElement>(null);
  const isMore = rows.length > count.value;
  useEffect(() => {
    if (end.current === null) return;
    const near = new IntersectionObserver(
      (entries) => {
        if (entries.at(-1)?.isIntersecting === true) count.value += rowsAtOnce;
      },
      { root: end.current.closest(".rail-list"), rootMargin: "800px 0px" },
    );
    near.observe(end.current);
    return () => near.disconnect();
  }, [isMore, count.value]);
  return (
    <ul>
      {rows.slice(0, count.value).map((row) => (
        <RowOfSession key={row.sessionId} row={row} isSelected={row.sessionId === selectedId} />
      ))}
      {isMore && (
        <li ref={end} class="row-state more-rows">
          {rows.length - count.value} more
        </li>
      )}
    </ul>
  );
}

interface ShownGroup {
  readonly title: string;
  readonly rows: readonly SessionRow[];
}

/**
 * Rows keep their places while the pointer is over the list, so that none moves away under it; what they say is current.
 * New ones come below them.
 */
function useHeldOrder(sessions: Sessions): readonly [groups: readonly ShownGroup[], hold: (isHeld: boolean) => void] {
  const isHeld = useSignal(false);
  const held = useRef<readonly ShownGroup[]>([]);
  const heldFilter = useRef("");
  const filter = sessions.filter.value;
  const groups = sessions.groups.value.map(({ name, rows }) => ({ title: groupTitles[name], rows }));
  const hold = (isOver: boolean): void => {
    isHeld.value = isOver;
  };
  if (!isHeld.value || filter !== heldFilter.current) {
    held.current = groups;
    heldFilter.current = filter;
    return [groups, hold];
  }
  const known = new Set(held.current.flatMap(({ rows }) => rows.map(({ sessionId }) => sessionId)));
  const added = groups.flatMap(({ rows }) => rows.filter(({ sessionId }) => !known.has(sessionId)));
  const kept = held.current.map(({ title, rows }) => ({
    title,
    rows: rows.map((row) => sessions.find(row.sessionId) ?? row),
  }));
  return [added.length === 0 ? kept : [...kept, { title: "New", rows: added }], hold];
}
