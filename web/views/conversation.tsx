import { useSignal } from "@preact/signals";
import type { JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { ConversationView } from "../state/conversation.ts";
import type { RowGroup } from "../state/items.ts";
import { usePage } from "./context.ts";
import { useFollowing } from "./following.ts";
import { RowView } from "./items/row.tsx";
import { Icon } from "./widgets/icon.tsx";
import { NearView } from "./widgets/near-view.tsx";

/** Older rows are loaded when the beginning is this near, in CSS pixels. */
const loadAhead = 4_000;
/** The height of a row that was never built, about. */
const rowHeight = 44;

/** What was said, and what is said now. */
export function Conversation({ conversation }: { readonly conversation: ConversationView }): JSX.Element {
  const { looks } = usePage();
  const log = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isFollowing, toEnd } = useFollowing(log, content);
  const arrived = conversation.arrived.value;
  const seen = useRef(arrived);
  if (isFollowing.value) seen.current = arrived;
  const unseen = arrived - seen.current;
  const state = conversation.state.value;
  const groups = conversation.groups.value;
  return (
    <div class="log-frame">
      <h2 class="unseen">Conversation</h2>
      <div ref={log} class="log" role="log" aria-live="off" aria-label="Conversation" tabIndex={0}>
        <div ref={content} class="log-content" data-filter={conversation.filter.value}>
          {state.kind === "loading" && <p class="log-edge">Reading the conversation…</p>}
          {state.kind === "refused" && (
            <p class="log-edge is-bad">
              {state.words}{" "}
              <button type="button" class="link" onClick={() => void conversation.reload()}>
                Read again
              </button>
            </p>
          )}
          {state.kind === "ready" && (
            // Another filter shows other rows, between which nothing keeps its place.
            <Beginning key={conversation.filter.value} conversation={conversation} log={log} />
          )}
          {groups.map((group, index) => (
            <GroupOfRows
              key={group.id}
              group={group}
              isInView={index >= groups.length - 2 || hasDelivery(group, looks.revealed.value)}
              log={log}
              opensChanges={conversation.filter.value === "changes"}
            />
          ))}
          {conversation.isIncomplete.value && (
            <p class="log-edge">Some live text was left out. The end of the message brings it.</p>
          )}
        </div>
      </div>
      {!isFollowing.value && (
        <button type="button" class="button small log-new" onClick={toEnd}>
          <Icon name="down" />
          {unseen > 0 ? `${unseen} new` : "To the end"}
        </button>
      )}
    </div>
  );
}

interface GroupProps {
  readonly group: RowGroup;
  readonly log: RefObject<HTMLElement | null>;
  readonly opensChanges: boolean;
  /** Whether the view begins at it: it is built at first. */
  readonly isInView: boolean;
}

/** Some rows of a conversation. */
function GroupOfRows({ group, log, opensChanges, isInView }: GroupProps): JSX.Element {
  return (
    <NearView box={() => log.current} height={rowHeight * group.rows.peek().length} id={group.id} isBuilt={isInView}>
      {() => group.rows.value.map((row) => <RowView key={row.id} row={row} opensChanges={opensChanges} />)}
    </NearView>
  );
}

/** Whether a group has the card of a push. */
function hasDelivery({ rows }: RowGroup, deliveryId: string | undefined): boolean {
  if (deliveryId === undefined) return false;
  return rows.peek().some(({ item }) => {
    const { value } = item;
    return value.kind === "push" && value.deliveryId === deliveryId;
  });
}

interface BeginningProps {
  readonly conversation: ConversationView;
  readonly log: RefObject<HTMLDivElement | null>;
}

/** The place before the first row: loads what is before it when it comes near. */
function Beginning({ conversation, log }: BeginningProps): JSX.Element | null {
  const edge = useRef<HTMLDivElement>(null);
  const problem = useSignal("");
  const older = async (): Promise<void> => {
    const outcome = await conversation.older();
    problem.value = outcome.kind === "refused" ? outcome.words : "";
  };
  const hasOlder = conversation.hasOlder.value;
  const first = conversation.groups.value[0]?.id;
  useKeptPlace(log, first);
  useEffect(() => {
    if (edge.current === null || !hasOlder) return;
    const near = new IntersectionObserver(
      (entries) => {
        if (entries.at(-1)?.isIntersecting === true && !conversation.isLoadingOlder.value && problem.value === "")
          void older();
      },
      { root: log.current, rootMargin: `${loadAhead}px 0px` },
    );
    near.observe(edge.current);
    return () => near.disconnect();
  }, [hasOlder, first, conversation.isLoadingOlder.value]);
  if (!hasOlder) {
    const isFiltered = conversation.filter.value !== "all";
    if (hasMessages(conversation)) return null;
    return (
      <div class="empty">
        <h2>{isFiltered ? "Nothing of this kind" : "Nothing was said yet"}</h2>
        <p>
          {isFiltered
            ? "The filter hides the rest of the conversation."
            : "Your first message starts pi, which answers here."}
        </p>
      </div>
    );
  }
  return (
    <div ref={edge} class="log-edge">
      {problem.value === "" ? (
        "Reading what is before…"
      ) : (
        <>
          <span class="is-bad">{problem.value}</span>{" "}
          <button type="button" class="link" onClick={() => void older()}>
            Read again
          </button>
        </>
      )}
    </div>
  );
}

/** Keeps what is in view in its place when groups come before the first. Browsers do so only where they hold on to a group. */
function useKeptPlace(log: RefObject<HTMLElement | null>, first: string | undefined): void {
  const former = useRef<string | undefined>(undefined);
  const { current: box } = log;
  const top = (): number => Number(box?.querySelector(`[data-part="${former.current}"]`)?.getBoundingClientRect().top);
  // The new groups are not in the document yet: what is before them is rendered first.
  const place = top();
  useLayoutEffect(() => {
    const moved = top() - place;
    former.current = first;
    // Not a number: there was no group, or it is gone.
    if (box && moved) box.scrollTop += moved;
  }, [first]);
}

/** Whether there is more than what pi notes of itself at its start. */
function hasMessages({ groups }: ConversationView): boolean {
  const [first, second] = groups.value;
  return second !== undefined || first?.rows.value.some(({ item }) => item.value.kind !== "note") === true;
}
