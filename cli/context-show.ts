import { WireError } from "../protocol/errors.ts";
import type { Result } from "../protocol/methods.ts";
import { count, percent, usd } from "../protocol/number-text.ts";
import type { ContextDaemon } from "./context-daemon.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Output, Style } from "./output.ts";
import { partsSaved, pruned, pruningStats } from "./savings.ts";
import { chooseSession } from "./session-argument.ts";
import { oneLine, table } from "./text.ts";

type Inspected = Result<"optimisation/inspect">;
type CacheReport = Result<"cache/report">;
type Pruned = Result<"pruning/inspect">;

/**
 * Shows the content of a session's context window, its blocks, what was removed, and what broke the provider's cache.
 */
export async function showContext(daemon: ContextDaemon, word: string, output: Output): Promise<number> {
  const { sessions } = await daemon.call("session/list", {});
  const sessionId = chooseSession(sessions, word);
  const found = await daemon.call("optimisation/inspect", { sessionId });
  const cache = await cacheOf(daemon, sessionId, found);
  const blocks = await prunedOf(daemon, sessionId);
  const stats =
    blocks === undefined ? undefined : await pruningStats((method, params) => daemon.call(method, params), sessionId);
  if (output.json) {
    const pruning = { pruning: blocks ?? null, pruningStats: stats ?? null };
    output.document({ sessionId, ...found, cache: cache ?? null, ...pruning });
    return exitCodes.done;
  }
  for (const line of showLines({ found, cache, blocks, stats }, output)) output.print(line);
  return exitCodes.done;
}

/** The part is off, so there is no report. */
async function cacheOf(
  daemon: ContextDaemon,
  sessionId: string,
  { parts }: Inspected,
): Promise<CacheReport | undefined> {
  if (parts["cache"]?.enabled !== true) return undefined;
  try {
    return await daemon.call("cache/report", { sessionId });
  } catch (error) {
    if (error instanceof WireError && error.kind === "unsupported_by_pi") return undefined;
    throw error;
  }
}

/** Pruning is off, so there are no blocks. */
async function prunedOf(daemon: ContextDaemon, sessionId: string): Promise<Pruned | undefined> {
  try {
    return await daemon.call("pruning/inspect", { sessionId });
  } catch (error) {
    if (error instanceof WireError && absent.has(error.kind)) return undefined;
    throw error;
  }
}

/** A daemon older than this program does not know the method. */
const absent: ReadonlySet<string> = new Set(["pruning_disabled", "unsupported_by_pi", "method_not_found"]);

/** What is known of a session's context. */
export interface Shown {
  readonly found: Inspected;
  readonly cache?: CacheReport | undefined;
  readonly blocks?: Pruned | undefined;
  readonly stats?: Result<"pruning/stats"> | undefined;
}

type Painter = Pick<Output, "paint" | "columns">;

/**
 * The same for a person: a bar for each kind of content if the terminal is wide enough, then a paragraph for each
 * question.
 */
export function showLines({ found, cache, blocks, stats }: Shown, painter: Painter): readonly string[] {
  return [
    ...windowLines(found.window, painter),
    "",
    ...partLines(found, painter),
    "",
    ...maskedLines(found, painter),
    "",
    ...(blocks === undefined
      ? []
      : [...blockLines(blocks, painter), ...(stats === undefined ? [] : [pruned(stats)]), ""]),
    ...cacheLines(cache, painter),
  ];
}

const colours: Readonly<Record<string, Style>> = {
  system: "magenta",
  tools: "magenta",
  user: "green",
  assistant: "cyan",
  toolResults: "yellow",
  bash: "yellow",
};

function windowLines({ tokens, used, byKind }: Inspected["window"], painter: Painter): readonly string[] {
  const size = tokens === null ? `${count(used)} tokens` : `${count(used)} of ${count(tokens)} tokens`;
  const share = tokens === null ? "" : ` (${percent(used / tokens)})`;
  const kinds = Object.entries(byKind)
    .filter(([, part]) => part > 0)
    .sort(([, a], [, b]) => b - a);
  const greatest = kinds[0]?.[1] ?? 1;
  const all = kinds.reduce((sum, [, part]) => sum + part, 0);
  const rows = table(
    kinds.map(([kind, part]) => ["", oneLine(kind), count(part).padStart(9), percent(part / all).padStart(5), ""]),
  );
  const room = barRoom(painter.columns, Math.max(0, ...rows.map((row) => row.length)));
  const lines = rows.map((row, at) => {
    const [kind = "", part = 0] = kinds[at] ?? [];
    const bar =
      room === 0 ? "" : `  ${painter.paint(colours[kind] ?? "dim", "█".repeat(barLength(part, greatest, room)))}`;
    return row + bar;
  });
  return [painter.paint("bold", `The next request has about ${size}${share}:`), ...lines];
}

/** The width of the bars: 0 in a pipe or if they would be too short. */
function barRoom(columns: number | undefined, taken: number): number {
  const room = Math.min(48, (columns ?? 0) - taken - 2);
  return room < 8 ? 0 : room;
}

function barLength(size: number, greatest: number, room: number): number {
  return Math.max(1, Math.round((size / greatest) * room));
}

function partLines({ parts }: Inspected, painter: Painter): readonly string[] {
  const on = Object.entries(parts).filter(([, { enabled }]) => enabled);
  if (on.length === 0) {
    return [
      "No part of the optimisation is on. `pi-rpcd new --profile lean` creates a session with those that save tokens.",
    ];
  }
  const rows = on.map(([name, { state, savedTokens, savedUsd, spentTokens, spentUsd, reason }]) => [
    ...["", oneLine(name), state],
    `saved ${count(savedTokens)} tokens${withUsd(savedUsd)}`,
    `${spentTokens > 0 || spentUsd > 0 ? `spent ${count(spentTokens)} tokens${withUsd(spentUsd)}` : ""}${reason === undefined ? "" : `  ${oneLine(reason)}`}`,
  ]);
  return [
    painter.paint("bold", "Active parts, and an estimate of the tokens that they saved in later requests:"),
    ...table(rows),
    ...partsSaved(parts),
  ];
}

const shownMasked = 10;

function maskedLines({ window: { masked }, parts }: Inspected, painter: Painter): readonly string[] {
  if (masked.length === 0) {
    const isOn = parts["masking"]?.enabled === true || parts["toolResults"]?.enabled === true;
    return [
      isOn
        ? "Nothing was masked or truncated yet."
        : "Nothing is masked or truncated, because the parts masking and toolResults are off.",
    ];
  }
  const tokens = masked.reduce((sum, one) => sum + one.tokens, 0);
  const rows = masked
    .slice(-shownMasked)
    .map((one) => ["", one.recallId, one.tool, count(one.tokens).padStart(9), one.part].map(oneLineOr));
  const head = `Masked or truncated: ${masked.length} ${masked.length === 1 ? "result" : "results"}, about ${count(tokens)} tokens. The newest:`;
  return [painter.paint("bold", head), ...table(rows, painter.columns)];
}

/** The leading spaces of a right-aligned number are kept. */
function oneLineOr(text: string): string {
  return /^ *[\d,]+$/.test(text) ? text : oneLine(text);
}

function cacheLines(report: CacheReport | undefined, painter: Painter): readonly string[] {
  if (report === undefined) {
    return ["The provider's cache is not analysed, because the part cache is off."];
  }
  const { requests, hitRate, causes, volatile } = report;
  if (hitRate === null) return ["The provider has not reported reads from its cache yet."];
  const head = `The provider read ${percent(hitRate)} of all input from its cache, in ${count(requests)} ${requests === 1 ? "request" : "requests"}.`;
  const broken = Object.entries(causes).sort(
    ([, a], [, b]) => b.missedUsd - a.missedUsd || b.missedTokens - a.missedTokens,
  );
  const rows = broken.map(([cause, { count: times, missedTokens, missedUsd }]) => [
    ...["", oneLine(cause), `${count(times)} x`.padStart(6), `${count(missedTokens)} tokens`.padStart(16)],
    missedUsd > 0 ? usd(missedUsd) : "",
  ]);
  return [
    painter.paint("bold", rows.length === 0 ? `${head} Nothing broke it.` : `${head} It was broken by:`),
    ...table(rows, painter.columns),
    ...volatile.map((section) => oneLine(`The text of ${section} varies from request to request.`)),
  ];
}

/** The amount after a comma, if there is one. */
function withUsd(amount: number): string {
  return amount > 0 ? `, ${usd(amount)}` : "";
}

const shownBlocks = 10;

/** The blocks in a session's context, for a person, newest last. Blocks inside other blocks are not shown. */
function blockLines({ blocks, mode, off }: Pruned, painter: Pick<Output, "paint" | "columns">): readonly string[] {
  const why = off === undefined ? [] : [oneLine(`Pruning is inactive now: ${off}`)];
  const who = mode === "manual" ? " The model only compresses when the user asks or the limit is reached." : "";
  const current = blocks.filter(({ state }) => state === "active" || state === "inactive");
  if (current.length === 0) return [`Pruning is on; there are no blocks.${who}`, ...why];
  const rows = current.slice(-shownBlocks).map((block) => {
    const { id, startId, endId, tokensBefore, tokensAfter, state, isShortened, topic } = block;
    const range = startId === undefined || endId === undefined ? "" : `${startId}–${endId}`;
    const size = `${count(tokensBefore).padStart(9)} → ${count(tokensAfter)}`;
    const how = state === "inactive" ? "opened" : isShortened ? "shortened" : "";
    return ["", id, range, size, oneLine(topic), how];
  });
  const taken = blocks.length - current.length;
  const others = taken === 0 ? "" : `, and ${taken} inside other blocks or a compaction`;
  const head = `Blocks: ${current.length}${others}.${who} The newest, with tokens before and after:`;
  return [painter.paint("bold", head), ...table(rows, painter.columns), ...why];
}
