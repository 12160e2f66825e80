import { percent } from "../protocol/number-text.ts";
import { oneLine, shorten } from "./text.ts";

/** One line of a bar chart. */
export interface Bar {
  readonly name: string;
  readonly amount: string;
  /** From 0 to 1. */
  readonly share: number;
  readonly more: string;
}

const maxNameCharacters = 40;
const maxBarCharacters = 30;
const minBarCharacters = 8;
/** Eighths of a character, from one eighth on. */
const eighths = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** Aligns lines in columns. `width`: that of the terminal; without it there are no bars, and nothing is truncated. */
export function bars(lines: readonly Bar[], width: number | undefined): readonly string[] {
  const names = lines.map(({ name }) => shorten(printedName(name), maxNameCharacters));
  const nameWidth = Math.max(...names.map((name) => name.length));
  const amountWidth = Math.max(...lines.map(({ amount }) => amount.length));
  const texts = lines.map(({ amount, share, more }, at) => {
    const ofWhole = percent(share).padStart(5);
    return {
      start: `${(names[at] ?? "").padEnd(nameWidth)}  ${amount.padStart(amountWidth)}  ${ofWhole}`,
      share,
      more,
    };
  });
  if (width === undefined) return texts.map(({ start, more }) => `${start}  ${more}`);
  const used = Math.max(...texts.map(({ start, more }) => start.length + more.length + 4));
  // If there is no room for both, a bar is more useful than the rest.
  const hasRoom = width - used >= minBarCharacters;
  const barWidth = Math.min(
    maxBarCharacters,
    hasRoom ? width - used : width - Math.max(...texts.map(({ start }) => start.length)) - 2,
  );
  return texts.map(({ start, share, more }) => {
    if (barWidth < minBarCharacters) return shorten(`${start}  ${more}`, width);
    const drawn = barOf(share, barWidth);
    return hasRoom ? `${start}  ${drawn.padEnd(barWidth)}  ${more}` : `${start}  ${drawn}`.trimEnd();
  });
}

/** The spaces before a name show its depth. */
function printedName(name: string): string {
  const [indent = ""] = /^ */.exec(name) ?? [];
  return indent + oneLine(name);
}

function barOf(share: number, width: number): string {
  const units = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  return "█".repeat(Math.floor(units / 8)) + (units % 8 === 0 ? "" : (eighths[(units % 8) - 1] ?? ""));
}
