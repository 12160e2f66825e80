import type { ShownRequest } from "./request-facts.ts";

/** Tokens of a bar, from its bottom to its top. */
export interface Tokens {
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly input: number;
  readonly output: number;
}

export const tokenKinds = ["cacheRead", "cacheWrite", "input", "output"] as const;
export type TokenKind = (typeof tokenKinds)[number];

/** One request, or several that share a bar. */
export interface Bar {
  readonly requests: readonly [ShownRequest, ...ShownRequest[]];
  /** Of several requests, their mean. Undefined: none has reported any. */
  readonly tokens: Tokens | undefined;
  readonly isFailed: boolean;
  readonly isUnderWay: boolean;
  readonly hasLostCache: boolean;
  readonly carriesPush: boolean;
  /** The pause before it, in milliseconds, which has no length of its own. */
  readonly pauseMs: number | undefined;
}

/** With more requests, ten share a bar. */
const maxSingle = 200;
const perBar = 10;

/** `maxBars`: how many have a place. */
export function barsOf(requests: readonly ShownRequest[], maxBars = maxSingle): readonly Bar[] {
  const size = requests.length <= Math.min(maxBars, maxSingle) ? 1 : perBar;
  const bars: Bar[] = [];
  for (let at = 0; at < requests.length; at += size) {
    const [first, ...others] = requests.slice(at, at + size);
    if (first !== undefined) bars.push(barOf([first, ...others]));
  }
  return bars;
}

function barOf(requests: Bar["requests"]): Bar {
  return {
    requests,
    tokens: meanOf(requests),
    isFailed: requests.some(({ outcome }) => outcome === "failed" || outcome === "stopped"),
    isUnderWay: requests.some(({ outcome }) => outcome === "sending" || outcome === "answering"),
    hasLostCache: requests.some(({ lost }) => lost !== undefined),
    carriesPush: requests.some(({ deliveryIds }) => deliveryIds.length > 0),
    pauseMs: requests[0].pauseMs,
  };
}

/** The tokens of a request as it is drawn. A provider may report negative numbers, which have no height. */
export function tokensOf({ usage }: Pick<ShownRequest, "usage">): Tokens | undefined {
  if (usage === undefined) return undefined;
  const { cacheRead, cacheWrite, input, output } = usage;
  const drawn = (tokens: number): number => Math.max(0, tokens);
  return { cacheRead: drawn(cacheRead), cacheWrite: drawn(cacheWrite), input: drawn(input), output: drawn(output) };
}

function meanOf(requests: readonly ShownRequest[]): Tokens | undefined {
  const known = requests.flatMap((request) => tokensOf(request) ?? []);
  if (known.length === 0) return undefined;
  const mean = (kind: TokenKind): number => known.reduce((sum, tokens) => sum + tokens[kind], 0) / known.length;
  return {
    cacheRead: mean("cacheRead"),
    cacheWrite: mean("cacheWrite"),
    input: mean("input"),
    output: mean("output"),
  };
}

export function heightOf(tokens: Tokens | undefined): number {
  return tokens === undefined ? 0 : tokenKinds.reduce((sum, kind) => sum + tokens[kind], 0);
}

/** A stretch of time on an axis without long pauses, in milliseconds from its beginning. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** The place of each request in time, with every long pause cut to this length. */
export function onClock(requests: readonly ShownRequest[], pauseMs: number): readonly (Stretch | undefined)[] {
  let cut = 0;
  let origin: number | undefined;
  let end = 0;
  return requests.map(({ startedAt, endedAt, toolsMs = 0, pauseMs: pause = 0 }) => {
    const start = startedAt ?? endedAt;
    if (start === undefined) return undefined;
    origin ??= start;
    if (pause > pauseMs) cut += pause - pauseMs;
    const from = Math.max(end, start - origin - cut);
    const to = Math.max(from, (endedAt ?? start) - origin - cut + toolsMs);
    end = Math.max(0, to - toolsMs);
    return { from, to };
  });
}
