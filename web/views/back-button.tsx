import type { JSX } from "preact";
import { usePage } from "./context.ts";
import { goBack } from "./moves.ts";
import { Icon } from "./widgets/icon.tsx";

/** Leads back to the list of sessions, on pages that show one thing at a time. */
export function BackButton(): JSX.Element {
  const { looks } = usePage();
  return (
    <button
      type="button"
      class="button bare square back"
      aria-label="Back to the sessions"
      onClick={() => goBack(looks)}
    >
      <Icon name="back" />
    </button>
  );
}
