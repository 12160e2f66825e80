import type { JSX } from "preact";
import type { ContextKind, ContextLimit, ContextPart } from "../state/context-facts.ts";
import { shareWords, shortCount, wholeCount } from "./widgets/figures.tsx";

export const contextWords: Readonly<Record<ContextKind, string>> = {
  system: "System prompt",
  tools: "Tools",
  context: "Conversation from elsewhere",
  summaries: "Summaries",
  blocks: "Compressed blocks",
  user: "You",
  images: "Images",
  pushes: "Pushes",
  assistant: "Answers and calls",
  thinking: "Thinking",
  toolResults: "Tool results",
  bash: "Commands of people",
  custom: "Of extensions",
};

/** Colours that differ 3:1 from the background, each with and without a pattern. */
const fills: Readonly<Record<ContextKind, readonly [colour: string, pattern: "plain" | "stripes" | "lines"]>> = {
  system: ["input", "plain"],
  tools: ["input", "stripes"],
  context: ["input", "lines"],
  summaries: ["cacheRead", "stripes"],
  blocks: ["cacheRead", "plain"],
  user: ["accent", "plain"],
  images: ["accent", "lines"],
  pushes: ["accent", "stripes"],
  assistant: ["output", "plain"],
  thinking: ["output", "stripes"],
  toolResults: ["cacheWrite", "plain"],
  bash: ["cacheWrite", "stripes"],
  custom: ["cacheWrite", "lines"],
};

function fillOf(kind: ContextKind): { readonly class: string } | { readonly fill: string } {
  const [colour, pattern] = fills[kind];
  return pattern === "plain" ? { class: `fill-${colour}` } : { fill: `url(#context-${kind})` };
}

/** The fills of {@link ContextBar}, once in the view. */
export function ContextPatterns(): JSX.Element {
  return (
    <svg class="patterns" width="0" height="0" aria-hidden="true">
      <defs>
        {Object.entries(fills).map(([kind, [colour, pattern]]) => {
          if (pattern === "plain") return null;
          const isTurned = pattern === "stripes";
          return (
            <pattern
              key={kind}
              id={`context-${kind}`}
              width="6"
              height="6"
              patternUnits="userSpaceOnUse"
              {...(isTurned ? { patternTransform: "rotate(45)" } : {})}
            >
              <rect width="6" height="6" class={`fill-${colour}`} />
              <rect width={isTurned ? 1.8 : 6} height={isTurned ? 6 : 1.8} class="fill-back" />
            </pattern>
          );
        })}
      </defs>
    </svg>
  );
}

/** What fills the window, one kind after the other with a gap between them. The table says the same. */
export function ContextBar({ parts }: { readonly parts: readonly ContextPart[] }): JSX.Element {
  const used = sumOf(parts);
  let from = 0;
  return (
    <svg class="context-bar" width="100%" height="22" aria-hidden="true">
      {parts.map(({ kind, tokens }) => {
        const start = from;
        from += tokens;
        return (
          <g key={kind}>
            <title>{`${contextWords[kind]}: ${wholeCount(tokens)} tokens`}</title>
            <rect x={percent(start / used)} width={percent(tokens / used)} height="22" {...fillOf(kind)} />
            {start > 0 && <rect x={percent(start / used)} width="2" height="22" class="fill-page" />}
          </g>
        );
      })}
    </svg>
  );
}

/** The sign of a kind in its table and legend. */
export function ContextSign({ kind }: { readonly kind: ContextKind }): JSX.Element {
  return (
    <svg class="context-sign" width="12" height="12" aria-hidden="true">
      <rect width="12" height="12" rx="1.5" {...fillOf(kind)} />
    </svg>
  );
}

interface WindowBarProps {
  readonly used: number;
  readonly tokens: number;
  readonly limits: readonly ContextLimit[];
}

/** How much of the window is used, with marks for its limits. */
export function WindowBar({ used, tokens, limits }: WindowBarProps): JSX.Element {
  return (
    <svg class="share" height="12" aria-hidden="true">
      <rect y="1" width="100%" height="10" rx="2" class="fill-sunken" />
      <rect
        y="1"
        width={percent(used / tokens)}
        height="10"
        rx="2"
        class={used > tokens ? "fill-bad" : "fill-accent"}
      />
      {limits.map(({ what, tokens: at }) => (
        <rect key={what} x={percent(at / tokens)} width="2" height="12" class="fill-text" />
      ))}
    </svg>
  );
}

/** One sentence for those who do not see the bar. */
export function contextSentence(parts: readonly ContextPart[], tokens: number | null): string {
  const used = sumOf(parts);
  const [most] = parts.toSorted((a, b) => b.tokens - a.tokens);
  const share = tokens === null ? "" : `, ${shareWords(used / tokens)} of the window`;
  const greatest =
    most === undefined
      ? ""
      : ` Most of it: ${contextWords[most.kind].toLowerCase()}, ${shareWords(most.tokens / used)}.`;
  return `The next request has about ${shortCount(used)} tokens${share}.${greatest}`;
}

function sumOf(parts: readonly ContextPart[]): number {
  return parts.reduce((sum, { tokens }) => sum + tokens, 0);
}

function percent(part: number): string {
  return `${Math.min(100, Math.max(0, part * 100))}%`;
}
