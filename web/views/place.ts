import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { MenuEntry } from "./widgets/menu.tsx";

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

/** What one menu or field offers. */
export interface Offer {
  /** What its actions are about, as foreign text. */
  readonly about: string;
  readonly entries: readonly MenuEntry[];
  /** It is about the page, not about what it shows. */
  readonly isOfTab?: true;
}

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
  /** What is shown over the page. */
  readonly sheet: Signal<"keys" | "actions" | "search" | undefined>;
  /** What menus and fields offer while they are shown, for the list of all actions. */
  readonly offers: Set<() => Offer>;
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
    sheet: signal(undefined),
    offers: new Set(),
  };
}
