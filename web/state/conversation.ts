import type { ReadonlySignal } from "@preact/signals";
import type { RowGroup } from "./items.ts";
import type { Outcome } from "./outcome.ts";

/** `changes`: tools that change files. `mine`: messages of users. */
export type Filter = "all" | "changes" | "mine";

export type ConversationState =
  | { readonly kind: "loading" }
  | { readonly kind: "ready" }
  | { readonly kind: "refused"; readonly words: string };

/** What was said in one session: its history, loaded backwards, and what happens now. */
export interface ConversationView {
  readonly state: ReadonlySignal<ConversationState>;
  /** Oldest first, as the filter says. */
  readonly groups: ReadonlySignal<readonly RowGroup[]>;
  readonly filter: ReadonlySignal<Filter>;
  setFilter(filter: Filter): void;
  /** Whether there is more before the first row. */
  readonly hasOlder: ReadonlySignal<boolean>;
  readonly isLoadingOlder: ReadonlySignal<boolean>;
  /** Loads the page before the first row. */
  older(): Promise<Outcome>;
  /** How many rows came at the end since the page was opened: for "3 new". */
  readonly arrived: ReadonlySignal<number>;
  /** Whether live text was left out that has not come yet. */
  readonly isIncomplete: ReadonlySignal<boolean>;
  /** For a polite announcement: "answer complete, 3 tools". Empty at first. */
  readonly announcement: ReadonlySignal<string>;
  /** Loads everything again, after `refused`. */
  reload(): Promise<Outcome>;
}
