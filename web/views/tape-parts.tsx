import type { JSX } from "preact";
import { heightOf, type TokenKind, type Tokens, tokenKinds } from "../state/tape.ts";
import { wholeCount } from "./widgets/figures.tsx";

export const kindWords: Readonly<Record<TokenKind, string>> = {
  cacheRead: "cache read",
  cacheWrite: "cache written",
  input: "uncached",
  output: "answer",
};

/** The fills of all charts, once in the page. Patterns tell them apart without their colours. */
export function Patterns(): JSX.Element {
  const stripes = { width: 5, height: 5, patternUnits: "userSpaceOnUse" } as const;
  return (
    <svg class="patterns" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="fill-cacheWrite" {...stripes} patternTransform="rotate(45)">
          <rect width="5" height="5" class="fill-cacheWrite" />
          <rect width="1.2" height="5" class="fill-back" />
        </pattern>
        <pattern id="fill-input" width="4" height="4" patternUnits="userSpaceOnUse">
          <rect width="4" height="4" class="fill-input" />
          <rect width="4" height="1" class="fill-back" />
        </pattern>
        <pattern id="fill-failed" {...stripes} patternTransform="rotate(-45)">
          <rect width="2" height="5" class="fill-failed" />
        </pattern>
        <pattern id="fill-tools" {...stripes}>
          <rect width="3" height="5" class="fill-cacheWrite" />
        </pattern>
      </defs>
    </svg>
  );
}

const fills: Readonly<Record<TokenKind, object>> = {
  cacheRead: { class: "fill-cacheRead" },
  cacheWrite: { fill: "url(#fill-cacheWrite)" },
  input: { fill: "url(#fill-input)" },
  output: { class: "fill-output" },
};

/** The parts of a bar one after the other, each at least a pixel, with a gap between them. */
export function partsOf(
  tokens: Tokens,
  length: number,
  most: number,
): readonly { readonly kind: TokenKind; readonly from: number; readonly length: number }[] {
  const present = tokenKinds.filter((kind) => tokens[kind] > 0);
  const whole = Math.max(present.length, most === 0 ? 0 : (heightOf(tokens) / most) * length);
  const all = heightOf(tokens);
  let from = 0;
  return present.map((kind, index) => {
    const isLast = index === present.length - 1;
    const part = isLast ? whole - from : Math.max(1, (tokens[kind] / all) * whole);
    const start = from;
    from += part;
    // A gap of a pixel, where there is room for it.
    return { kind, from: start, length: Math.max(1, part > 3 && !isLast ? part - 1 : part) };
  });
}

export function fillOf(kind: TokenKind): object {
  return fills[kind];
}

/** What one request has read and written, as a bar from left to right. */
export function TokensBar({ tokens, most }: { readonly tokens: Tokens; readonly most: number }): JSX.Element {
  const words = tokenKinds
    .filter((kind) => tokens[kind] > 0)
    .map((kind) => `${wholeCount(tokens[kind])} ${kindWords[kind]}`)
    .join(", ");
  return (
    <svg class="line-chart tokens-bar" viewBox="0 0 150 12" preserveAspectRatio="none" role="img" aria-label={words}>
      <title>{words}</title>
      {partsOf(tokens, 150, most).map(({ kind, from, length }) => (
        <rect key={kind} x={from} y="0" width={length} height="12" {...fillOf(kind)} />
      ))}
    </svg>
  );
}

interface ShareProps {
  /** From 0 to 1. */
  readonly share: number;
  /** A mark on the way. */
  readonly markAt?: number;
  readonly tone?: "accent" | "warn" | "bad";
}

/** A bar for a share. The number beside it says the same in words. */
export function ShareBar({ share, markAt, tone = "accent" }: ShareProps): JSX.Element {
  const percent = (part: number): string => `${Math.min(100, Math.max(0, part * 100))}%`;
  return (
    <svg class="share" height="10" aria-hidden="true">
      <rect x="0" y="0" width="100%" height="10" rx="2" class="fill-sunken" />
      <rect x="0" y="0" width={percent(share)} height="10" rx="2" class={`fill-${tone}`} />
      {markAt !== undefined && <rect x={percent(markAt)} y="0" width="2" height="10" class="fill-text" />}
    </svg>
  );
}

export type LegendSign = TokenKind | "failed" | "lost" | "push" | "pause" | "waiting" | "whole" | "tools";

const signWords: Readonly<Record<LegendSign, string>> = {
  ...kindWords,
  failed: "failed",
  lost: "cache lost",
  push: "carries a push",
  pause: "pause, cut out",
  waiting: "until the answer",
  whole: "request and answer",
  tools: "its tools",
};

export function Legend({ signs }: { readonly signs: readonly LegendSign[] }): JSX.Element {
  return (
    <ul class="legend" aria-label="Legend">
      {signs.map((sign) => (
        <li key={sign}>
          <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
            <Sign sign={sign} />
          </svg>
          {signWords[sign]}
        </li>
      ))}
    </ul>
  );
}

function Sign({ sign }: { readonly sign: LegendSign }): JSX.Element {
  const whole = { x: 1, y: 1, width: 10, height: 10 } as const;
  switch (sign) {
    case "failed":
      return <rect {...whole} class="line-failed" fill="url(#fill-failed)" />;
    case "lost":
      return <path d={lostPath(6, 3)} class="fill-failed" />;
    case "push":
      return <circle cx="6" cy="6" r="3.5" class="fill-accent" />;
    case "pause":
      return <path d="M0 10.5h12" class="line-pause" />;
    case "waiting":
      return <rect x="1.5" y="1.5" width="9" height="9" class="line-waiting" />;
    case "whole":
      return <rect {...whole} class="fill-whole" />;
    case "tools":
      return <rect {...whole} fill="url(#fill-tools)" />;
    default:
      return <rect {...whole} {...fills[sign]} />;
  }
}

/** A triangle that points down, with its middle at `x`. */
export function lostPath(x: number, y: number): string {
  return `M${x - 4} ${y}h8l-4 6z`;
}
