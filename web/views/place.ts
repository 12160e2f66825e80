import { type ReadonlySignal, type Signal, signal } from "@preact/signals";

/** What the main column shows. */
export type Place = "session" | "new" | "stored" | "daemon";

/** What a person looks at. None of it is in the address: from there the page reads only its code. */
export interface Looks {
  readonly place: Signal<Place>;
  /** Which of both a page with one column shows. */
  readonly shows: Signal<"rail" | "main">;
  /** Whether the page has one column. */
  readonly isNarrow: ReadonlySignal<boolean>;
  /** Whether single letters are commands. For this tab only. */
  readonly letterKeys: Signal<boolean>;
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
    shows: signal("rail"),
    isNarrow,
    letterKeys: signal(true),
    showsKeys: signal(false),
  };
}
