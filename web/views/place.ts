import { type ReadonlySignal, type Signal, signal } from "@preact/signals";

/** What the main column shows. */
export type Place = "session" | "new" | "stored" | "pushes" | "daemon";

export interface OpenedPush {
  readonly deliveryId: string;
  /** The session from whose conversation it was opened: the way back. */
  readonly from?: string | undefined;
}

/** The views of a session. */
export const tabs = ["conversation", "requests", "context", "cost", "tree"] as const;
export type Tab = (typeof tabs)[number];

/** What a person looks at. None of it is in the address: from there the page reads only its code. */
export interface Looks {
  readonly place: Signal<Place>;
  readonly tab: Signal<Tab>;
  /** Whether the bars above the conversation are folded. */
  readonly foldsTape: Signal<boolean>;
  /** Which of both a page with one column shows. */
  readonly shows: Signal<"rail" | "main">;
  /** The push whose timeline is open. */
  readonly push: Signal<OpenedPush | undefined>;
  /** Only the pushes of this session are listed. */
  readonly pushesOf: Signal<string | undefined>;
  /** The push whose card a conversation shows first. */
  readonly revealed: Signal<string | undefined>;
  /** Whether the page has one column. */
  readonly isNarrow: ReadonlySignal<boolean>;
  /** Whether single letters are commands. For this tab only. */
  readonly letterKeys: Signal<boolean>;
  /** Whether the search is shown. */
  readonly showsSearch: Signal<boolean>;
  /** Whether the list of keys is shown. */
  readonly showsKeys: Signal<boolean>;
}

export function createLooks(): Looks {
  // As in the styles.
  const narrow = matchMedia("(max-width: 699.98px)");
  const isNarrow = signal(narrow.matches);
  narrow.addEventListener("change", ({ matches }) => {
    isNarrow.value = matches;
  });
  return {
    place: signal("session"),
    tab: signal("conversation"),
    foldsTape: signal(narrow.matches),
    shows: signal("rail"),
    push: signal(undefined),
    pushesOf: signal(undefined),
    revealed: signal(undefined),
    isNarrow,
    letterKeys: signal(true),
    showsSearch: signal(false),
    showsKeys: signal(false),
  };
}
