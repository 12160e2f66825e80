import type { Result } from "../../client/browser.ts";
import type { Composition } from "../../protocol/provider.ts";

export type ListedRequest = Result<"request/list">["requests"][number];
export type CostUsage = Result<"cost/report">["total"];

/** What only subscribers of the session's provider events learn of a request. */
export interface LiveRequest {
  readonly requestId: string;
  /** When it was sent. */
  readonly at: number;
  /** 1, plus one for each retry of the same request by pi. */
  readonly attempt: number;
  readonly model: string | undefined;
  readonly messageCount: number;
  readonly composition: Composition | undefined;
  readonly payloadBytes: number | undefined;
  readonly payloadSha256: string | undefined;
  readonly deliveryIds: readonly string[];
  readonly end: LiveEnd | undefined;
}

export type LiveEnd =
  /** `latencyMs`: from sending to this evidence. */
  | {
      readonly kind: "delivered";
      readonly evidence: string;
      readonly latencyMs: number;
      readonly status: number | undefined;
    }
  | {
      readonly kind: "failed";
      readonly reason: "failed" | "aborted" | "unknown";
      readonly at: number;
      readonly status: number | undefined;
      readonly error: string | undefined;
      readonly willRetry: boolean | undefined;
    };

/** A loss of the provider's cache that the session's pi has reported, with its cause. */
export interface ReportedLoss {
  readonly cause: string;
  readonly model: string;
  readonly readTokens: number;
  readonly missedTokens: number;
}

/** `sending`: the provider has not accepted it yet. `answering`: its answer comes. */
export type RequestOutcome = "sending" | "answering" | "answered" | "failed" | "stopped";

/** Durations in milliseconds; undefined is unknown. */
export interface ShownRequest {
  /** The entry that it has left; while it has none, the request's own id. */
  readonly id: string;
  /** Its place among those that are shown, from 1. */
  readonly number: number;
  readonly kind: ListedRequest["kind"];
  readonly outcome: RequestOutcome;
  readonly entryId: string | undefined;
  readonly model: string | undefined;
  readonly status: number | undefined;
  readonly evidence: string | undefined;
  readonly stopReason: string | undefined;
  readonly error: string | undefined;
  /** Undefined: the provider has reported none. */
  readonly usage: CostUsage | undefined;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** From its sending until the provider accepted it. Known live only. */
  readonly untilAnswerMs: number | undefined;
  readonly totalMs: number | undefined;
  /** From the end of an answer with tool calls to the next request. */
  readonly toolsMs: number | undefined;
  /** The pause before it, if it is long. */
  readonly pauseMs: number | undefined;
  readonly lost: LostCache | undefined;
  readonly deliveryIds: readonly string[];
  readonly live: LiveRequest | undefined;
}

/** `cause`: as reported, or undefined. */
export interface LostCache {
  readonly tokens: number;
  readonly cause: string | undefined;
}

/** Shorter pauses between requests are not shown. In milliseconds. */
const longPauseMs = 60_000;
/** A cache that lost fewer tokens than this counts as whole, as in the audit of the part `cache`. */
const noiseTokens = 1_024;

/** All requests in order: those of the session's file, then those that are under way. */
export function shownRequests(
  listed: readonly ListedRequest[],
  live: readonly LiveRequest[],
  losses: ReadonlyMap<string, string> = new Map(),
): readonly ShownRequest[] {
  const { byEntry, open } = matched(listed, live);
  const shown: ShownRequest[] = [];
  let cached: CostUsage | undefined;
  for (const [index, request] of listed.entries()) {
    const { entryId, kind, startedAt, endedAt } = request;
    const usage = reported(request);
    const before = listed[index - 1];
    const next = listed[index + 1] ?? startOf(open[0]);
    const traced = byEntry.get(entryId);
    const lost = kind === "answer" ? lostCache(usage, cached) : undefined;
    shown.push({
      id: entryId,
      number: index + 1,
      kind,
      outcome: outcomeOf(request),
      entryId,
      model: request.model,
      status: request.carried?.status ?? traced?.end?.status,
      evidence: request.carried?.evidence ?? (traced?.end?.kind === "delivered" ? traced.end.evidence : undefined),
      stopReason: request.stopReason,
      error: request.error,
      usage,
      startedAt,
      endedAt,
      untilAnswerMs: untilAnswer(request, traced),
      totalMs: between(startedAt, endedAt),
      toolsMs: request.stopReason === "toolUse" ? between(endedAt, next?.startedAt) : undefined,
      pauseMs: pauseBetween(before?.endedAt, startedAt ?? endedAt),
      lost: lost === undefined ? undefined : { tokens: lost, cause: losses.get(entryId) },
      deliveryIds: request.carried?.deliveryIds ?? traced?.deliveryIds ?? [],
      live: traced,
    });
    if (kind === "answer" && usage !== undefined) cached = usage;
  }
  return [
    ...shown,
    ...open.map((request, index) => underWay(request, shown.length + index + 1, shown.at(-1)?.endedAt)),
  ];
}

/**
 * A session makes one request at a time, so a request belongs to the first answer that was written after it was sent.
 * `open`: those without an answer yet.
 */
function matched(
  listed: readonly ListedRequest[],
  live: readonly LiveRequest[],
): { readonly byEntry: ReadonlyMap<string, LiveRequest>; readonly open: readonly LiveRequest[] } {
  const byEntry = new Map<string, LiveRequest>();
  const open: LiveRequest[] = [];
  const answers = listed.filter(({ kind }) => kind === "answer");
  let from = 0;
  for (const request of live) {
    const at = answers.findIndex(({ endedAt }, index) => index >= from && endedAt >= request.at);
    const answer = answers[at];
    if (answer === undefined) open.push(request);
    else {
      byEntry.set(answer.entryId, request);
      from = at + 1;
    }
  }
  return { byEntry, open };
}

/** pi writes zeros for a request of which nothing was reported. */
function reported({ usage }: ListedRequest): CostUsage | undefined {
  if (usage === undefined) return undefined;
  const { input, output, cacheRead, cacheWrite, cost } = usage;
  return [input, output, cacheRead, cacheWrite, cost.total].every((figure) => figure === 0) ? undefined : usage;
}

function startOf(request: LiveRequest | undefined): { readonly startedAt: number } | undefined {
  return request === undefined ? undefined : { startedAt: request.at };
}

function underWay(request: LiveRequest, number: number, endedBefore: number | undefined): ShownRequest {
  const { requestId, model, at, end, deliveryIds } = request;
  const isFailed = end?.kind === "failed";
  return {
    id: requestId,
    number,
    kind: "answer",
    outcome: isFailed ? (end.reason === "aborted" ? "stopped" : "failed") : end === undefined ? "sending" : "answering",
    entryId: undefined,
    model,
    status: end?.status,
    evidence: end?.kind === "delivered" ? end.evidence : undefined,
    stopReason: undefined,
    error: isFailed ? end.error : undefined,
    usage: undefined,
    startedAt: at,
    endedAt: isFailed ? end.at : undefined,
    untilAnswerMs: end?.kind === "delivered" ? end.latencyMs : undefined,
    totalMs: isFailed ? between(at, end.at) : undefined,
    toolsMs: undefined,
    pauseMs: pauseBetween(endedBefore, at),
    lost: undefined,
    deliveryIds,
    live: request,
  };
}

function outcomeOf({ stopReason, error }: ListedRequest): RequestOutcome {
  if (stopReason === "aborted") return "stopped";
  if (stopReason !== "error") return "answered";
  // pi 0.87.1 reports so the request of a run that was aborted.
  return error === "This operation was aborted" ? "stopped" : "failed";
}

function untilAnswer({ startedAt, endedAt }: ListedRequest, live: LiveRequest | undefined): number | undefined {
  if (live?.end?.kind !== "delivered") return undefined;
  // Evidence that came with the whole message says nothing of the answer's beginning.
  if (live.end.evidence === "message") return undefined;
  return Math.min(live.end.latencyMs + Math.max(0, live.at - (startedAt ?? live.at)), endedAt - (startedAt ?? live.at));
}

/** How many tokens less a request read from the cache than the one before had left there. Undefined: it lost none. */
function lostCache(usage: CostUsage | undefined, before: CostUsage | undefined): number | undefined {
  if (usage === undefined || before === undefined) return undefined;
  const { input, cacheRead, cacheWrite } = usage;
  const missed = Math.min(before.cacheRead + before.cacheWrite, input + cacheRead + cacheWrite) - cacheRead;
  return missed > noiseTokens ? missed : undefined;
}

function between(from: number | undefined, to: number | undefined): number | undefined {
  return from === undefined || to === undefined ? undefined : Math.max(0, to - from);
}

function pauseBetween(from: number | undefined, to: number | undefined): number | undefined {
  const ms = between(from, to);
  return ms !== undefined && ms >= longPauseMs ? ms : undefined;
}

/** The entry of the request that lost its cache in this way: the newest that fits. */
export function entryOfLoss(listed: readonly ListedRequest[], loss: ReportedLoss): string | undefined {
  return listed.findLast(({ usage, model }) => usage?.cacheRead === loss.readTokens && model === loss.model)?.entryId;
}

/** Puts the newest requests after those that are known. Undefined: there is a hole between them. */
export function withNewest(
  known: readonly ListedRequest[],
  newest: readonly ListedRequest[],
  isWhole: boolean,
): readonly ListedRequest[] | undefined {
  const [first] = newest;
  if (isWhole || first === undefined) return newest;
  const at = known.findIndex(({ entryId }) => entryId === first.entryId);
  return at < 0 ? undefined : [...known.slice(0, at), ...newest];
}

/** Sums of what the providers have reported. */
export interface Sums {
  readonly tokens: number;
  readonly usd: number;
  /** How many requests have reported nothing: the sums do not have them. */
  readonly unknown: number;
}

export function sumsOf(requests: readonly ShownRequest[]): Sums {
  let [tokens, usd, unknown] = [0, 0, 0];
  for (const { usage } of requests) {
    if (usage === undefined) unknown += 1;
    tokens += usage?.totalTokens ?? 0;
    usd += usage?.cost.total ?? 0;
  }
  return { tokens, usd, unknown };
}
