import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { AllPushes, type Pushes, type PushRow } from "../state/pushes.ts";
import { Visible } from "../text/visible.tsx";
import { BackButton } from "./back-button.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { showPush } from "./moves.ts";
import { PushDetails } from "./push-details.tsx";
import { pushGroupTitles, signOfPush } from "./push-state.ts";
import { Icon } from "./widgets/icon.tsx";
import { NearView } from "./widgets/near-view.tsx";
import { Age } from "./widgets/time.tsx";

const rowsInPart = 50;
/** The height of a row, about. */
const rowHeight = 40;

/** The pushes of all sessions, by state, and the timeline of one. */
export function PushesView(): JSX.Element {
  const { looks } = usePage();
  const { sessions } = useWorkspace();
  const pushes = usePushes();
  useSignalEffect(() => pushes.open(looks.push.value?.deliveryId));
  useSignalEffect(() => pushes.only(looks.pushesOf.value));
  useEffect(() => pushes.watch(), []);
  const opened = pushes.opened.value;
  const only = pushes.sessionId.value;
  const state = pushes.state.value;
  return (
    <div class="pushes" data-open={opened !== undefined}>
      <h1 class="unseen">Pushes</h1>
      <section class="push-list" aria-label="Pushes">
        <header class="push-tools">
          <BackButton />
          <span class="push-heading" aria-hidden="true">
            Pushes
          </span>
          <input
            class="field"
            type="search"
            placeholder="Filter"
            aria-label="Filter pushes by type, first words or session"
            value={pushes.filter.value}
            onInput={({ currentTarget }) => {
              pushes.filter.value = currentTarget.value;
            }}
          />
        </header>
        {only !== undefined && (
          <p class="push-only">
            <span class="cut">
              Only of <bdi>{sessions.find(only)?.title ?? only}</bdi>
            </span>
            <button
              type="button"
              class="button small"
              onClick={() => {
                looks.pushesOf.value = undefined;
              }}
            >
              Show all
            </button>
          </p>
        )}
        {state.kind === "refused" && <p class="rail-empty is-bad">{state.words}</p>}
        {state.kind === "loading" && <p class="rail-empty">Reading the pushes…</p>}
        {state.kind === "loaded" && <List />}
      </section>
      {opened !== undefined && <PushDetails key={opened.deliveryId} push={opened} />}
    </div>
  );
}

function usePushes(): Pushes {
  return useWorkspace().part(AllPushes);
}

function List(): JSX.Element {
  const pushes = usePushes();
  const list = useRef<HTMLDivElement>(null);
  const problem = useSignal("");
  const groups = pushes.groups.value;
  const selectedId = pushes.opened.value?.deliveryId;
  const more = async (): Promise<void> => {
    const outcome = await pushes.more();
    problem.value = outcome.kind === "refused" ? outcome.words : "";
  };
  if (pushes.count.value === 0) {
    return (
      <div class="empty">
        <h2>There are no pushes</h2>
        <p>
          A push is a message that a program sends into a session. It appears here when one is sent, with how it reaches
          the model.
        </p>
      </div>
    );
  }
  return (
    <div ref={list} class="push-rows">
      {groups.length === 0 && <p class="rail-empty">No push fits the filter.</p>}
      {groups.map(({ name, rows }, place) => (
        <section key={name} class="rail-group">
          <h2>
            {pushGroupTitles[name]} <span class="count">{rows.length}</span>
          </h2>
          {parts(rows).map((part, index) => (
            <NearView
              key={`${name} ${index}`}
              box={() => list.current}
              height={rowHeight * part.length}
              isBuilt={place === 0 && index === 0}
            >
              {() => (
                <ul>
                  {part.map((row) => (
                    <RowOfPush key={row.deliveryId} row={row} isSelected={row.deliveryId === selectedId} />
                  ))}
                </ul>
              )}
            </NearView>
          ))}
        </section>
      ))}
      {pushes.hasMore.value && (
        <p class="push-more">
          <button type="button" class="button" onClick={() => void more()}>
            Show older ones
          </button>
        </p>
      )}
      {pushes.isFull.value && <p class="rail-empty">Older pushes are left out: this page keeps no more.</p>}
      {problem.value !== "" && (
        <p class="rail-empty is-bad" role="alert">
          {problem.value}
        </p>
      )}
    </div>
  );
}

function parts(rows: readonly PushRow[]): readonly (readonly PushRow[])[] {
  return Array.from({ length: Math.ceil(rows.length / rowsInPart) }, (_, index) =>
    rows.slice(index * rowsInPart, (index + 1) * rowsInPart),
  );
}

function RowOfPush({ row, isSelected }: { readonly row: PushRow; readonly isSelected: boolean }): JSX.Element {
  const { looks } = usePage();
  const { sessions } = useWorkspace();
  const { deliveryId, sessionId, state, group, customType, preview, createdAt } = row;
  const { icon, tone, word } = signOfPush(state, group === "unanswered");
  const title = sessions.find(sessionId)?.title ?? "a session that is closed";
  // Unchanged rows are not built again when others change, which can be often.
  return useMemo(
    () => (
      <li class="row push-row" data-delivery-row={deliveryId} data-selected={isSelected}>
        <Icon name={icon} tone={tone} />
        <button
          type="button"
          class="row-name cut"
          aria-current={isSelected ? "true" : undefined}
          onClick={() => showPush(looks, deliveryId)}
        >
          <Visible text={customType} />
          <span class="unseen">, {word}</span>
        </button>
        <span class="push-words cut">
          <Visible text={oneLine(preview)} />
        </span>
        <span class="push-session cut">
          <bdi>{title}</bdi>
        </span>
        <span class="row-age">
          <Age at={createdAt} />
        </span>
      </li>
    ),
    [row, isSelected, title],
  );
}

function oneLine(preview: string | undefined): string {
  if (preview === undefined) return "";
  return preview === "" ? "only images" : preview.replace(/\s+/g, " ");
}
