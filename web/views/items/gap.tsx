import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { GapItem } from "../../state/items.ts";
import { Icon } from "../widgets/icon.tsx";

/** Something is missing here. */
export function Gap({ item }: { readonly item: GapItem }): JSX.Element {
  const problem = useSignal("");
  const read = async (): Promise<void> => {
    const outcome = await item.readAgain();
    problem.value = outcome.kind === "refused" ? outcome.words : "";
  };
  return (
    <div class="note-line" data-tone="warning">
      <Icon name="gap" />
      <div class="note-text">
        {item.words}{" "}
        {item.isReading ? (
          "Reading…"
        ) : (
          <button type="button" class="link" onClick={() => void read()}>
            Read again
          </button>
        )}
        {problem.value !== "" && <> {problem.value}</>}
      </div>
    </div>
  );
}
