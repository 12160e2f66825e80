import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import type { LongText } from "../../state/items.ts";
import { Visible } from "../../text/visible.tsx";

/** A longer text begins folded. */
const foldedChars = 4_000;
const foldedLines = 40;

interface PlainTextProps {
  readonly text: LongText;
  /** Whether characters that one cannot see are shown by their names. */
  readonly namesHidden?: boolean;
}

/** A text as it was written. A long one is folded to its beginning. */
export function PlainText({ text, namesHidden = false }: PlainTextProps): JSX.Element {
  const isWhole = useSignal(false);
  const shown = (part: string): ComponentChildren => (namesHidden ? <Visible text={part} /> : part);
  const all = text.text.value;
  const beginning = all.slice(0, foldedChars).split("\n", foldedLines).join("\n");
  if (isWhole.value || beginning.length === all.length) {
    return (
      <>
        <div class="plain-text">{shown(all)}</div>
        <More text={text} />
      </>
    );
  }
  return (
    <>
      <div class="plain-text">{shown(beginning)}…</div>
      <button
        type="button"
        class="link whole"
        onClick={() => {
          isWhole.value = true;
        }}
      >
        Show the whole text
      </button>
    </>
  );
}

/** Loads the next piece of a text that is not here as a whole. */
export function More({ text }: { readonly text: LongText }): JSX.Element | null {
  const problem = useSignal("");
  const missing = text.missing.value;
  if (missing === 0) return null;
  const load = async (): Promise<void> => {
    const outcome = await text.more();
    problem.value = outcome.kind === "refused" ? outcome.words : "";
  };
  return (
    <p class="more">
      {text.isLoading.value ? (
        "Reading more…"
      ) : (
        <button type="button" class="link" onClick={() => void load()}>
          Show more
        </button>
      )}{" "}
      <span class="quiet">{sizeWords(missing)} more</span>
      {problem.value !== "" && <span class="is-bad"> {problem.value}</span>}
    </p>
  );
}

export function sizeWords(bytes: number): string {
  if (bytes < 1_024) return `${bytes} bytes`;
  const kib = bytes / 1_024;
  return kib < 1_024 ? `${Math.round(kib)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`;
}
