import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry, SessionReader } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { COMPRESS_TOOL, type PruningConfig } from "../../../protocol/pruning/config.ts";
import { BranchFold } from "../../folds.ts";
import { deniedMessage, nothingToCompress } from "../compress/messages.ts";
import { WAITS_FOR_USER } from "../mode.ts";
import { PRUNING_OFF } from "../switch.ts";
import { type Nudge, type NudgeKind, nudgeIn } from "./record.ts";

/** Reminders of the branch and their effect. `requests` counts answered requests. */
export interface NudgeHistory {
  readonly requests: number;
  /** Messages of the user. */
  readonly users: number;
  /** Requests before the user's last message. */
  readonly requestsAtUser: number;
  /** Tool results after the user's last message. */
  readonly results: number;
  /** Requests before the last attempt to compress or the last compaction. */
  readonly resetAt: number | undefined;
  readonly last: { readonly kind: NudgeKind; readonly requests: number; readonly users: number } | undefined;
  /** Messages of the user when the model was last reminded of a turn. */
  readonly turnAt: number | undefined;
  /** Consecutive soft limit reminders without a following attempt. */
  readonly ignored: number;
  /** Consecutive failed attempts. */
  readonly failures: number;
  /** Requests before the failure that paused reminders. `undefined`: not paused. */
  readonly brokenAt: number | undefined;
  /** Nothing could be compressed, and the user has not written since. */
  readonly isSilenced: boolean;
}

const nothing: NudgeHistory = {
  requests: 0,
  users: 0,
  requestsAtUser: 0,
  results: 0,
  resetAt: undefined,
  last: undefined,
  turnAt: undefined,
  ignored: 0,
  failures: 0,
  brokenAt: undefined,
  isSilenced: false,
};

type Rules = PruningConfig["nudges"];
/** Counts before an entry. */
type Position = Pick<NudgeHistory, "requests" | "users">;

/** The history of a branch, with the counts at its entries. */
interface Read {
  history: NudgeHistory;
  readonly positions: Map<string, Position>;
  /** Entries with a recorded reminder. */
  readonly recorded: Set<string>;
}

/** Reads the branch incrementally. */
export class NudgeHistories {
  #rules: Rules | undefined;
  readonly #fold = new BranchFold<Read>(
    () => ({ history: nothing, positions: new Map(), recorded: new Set() }),
    (read, entry) => (this.#rules === undefined ? read : withRead(read, entry, this.#rules)),
  );
  #read: Read | undefined;

  /** `more`: reminders that are not on the branch yet. */
  on(session: SessionReader, rules: Rules, more: readonly Nudge[] = []): NudgeHistory {
    if (!isSame(rules, this.#rules)) this.#fold.reset();
    this.#rules = rules;
    this.#read = this.#fold.of(session);
    const { history, positions } = this.#read;
    return more.reduce((before, nudge) => withNudge(before, nudge, positions.get(nudge.at)), history);
  }

  /** Answered requests up to and including an entry. `undefined`: the entry is not on the branch that was read last. */
  requestsAt(entryId: string): number | undefined {
    return this.#read?.positions.get(entryId)?.requests;
  }

  /** Whether the branch records a reminder after this entry. */
  isRecorded(entryId: string): boolean {
    return this.#read?.recorded.has(entryId) === true;
  }
}

function withRead(read: Read, entry: SessionEntry, rules: Rules): Read {
  const { positions, recorded } = read;
  const nudge = nudgeIn(entry);
  read.history =
    nudge === undefined
      ? withEntry(read.history, entry, rules)
      : withNudge(read.history, nudge, positions.get(nudge.at));
  if (nudge !== undefined) recorded.add(nudge.at);
  const { requests, users } = read.history;
  positions.set(entry.id, { requests, users });
  return read;
}

function isSame(a: Rules, b: Rules | undefined): boolean {
  return a.maxFailures === b?.maxFailures && a.breakerCooldown === b.breakerCooldown;
}

function withEntry(history: NudgeHistory, entry: SessionEntry, rules: Rules): NudgeHistory {
  if (entry.type === "compaction") return { ...history, resetAt: history.requests, ignored: 0 };
  if (entry.type !== "message") return history;
  const { message } = entry;
  if (message.role === "user") return withUser(history);
  if (message.role === "assistant") return isAnswer(message.stopReason) ? withAnswer(history, rules) : history;
  const outcome = outcomeOf(entry);
  if (outcome !== undefined) return withAttempt(history, outcome, rules);
  return message.role === "toolResult" ? { ...history, results: history.results + 1 } : history;
}

function isAnswer(stopReason: unknown): boolean {
  return stopReason === "stop" || stopReason === "toolUse" || stopReason === "length";
}

function withUser(history: NudgeHistory): NudgeHistory {
  return {
    ...closed(history),
    users: history.users + 1,
    requestsAtUser: history.requests,
    results: 0,
    isSilenced: false,
  };
}

function withAnswer(history: NudgeHistory, { breakerCooldown }: Rules): NudgeHistory {
  const requests = history.requests + 1;
  const isOver = history.brokenAt !== undefined && requests - history.brokenAt >= breakerCooldown;
  return { ...(isOver ? closed(history) : history), requests };
}

/** Resumes paused reminders. */
function closed(history: NudgeHistory): NudgeHistory {
  return history.brokenAt === undefined ? history : { ...history, brokenAt: undefined, failures: 0 };
}

function withAttempt(history: NudgeHistory, outcome: Outcome, { maxFailures }: Rules): NudgeHistory {
  const isSilenced = outcome === "nothing" || (history.isSilenced && outcome !== "stored");
  const after: NudgeHistory = { ...history, resetAt: history.requests, ignored: 0, isSilenced };
  if (outcome === "stored") return { ...after, failures: 0, brokenAt: undefined };
  if (outcome === "held" || history.brokenAt !== undefined) return after;
  const failures = history.failures + 1;
  return { ...after, failures, ...(failures >= maxFailures && { brokenAt: history.requests }) };
}

/** A reminder belongs to the request after `at`, and can be recorded later. */
function withNudge(history: NudgeHistory, { kind }: Pick<Nudge, "kind">, at: Position | undefined): NudgeHistory {
  if (at === undefined) return history;
  const { last } = history;
  // The reminder was recorded twice.
  if (last !== undefined && last.requests >= at.requests) return history;
  const isHeeded = history.resetAt !== undefined && history.resetAt > at.requests;
  return {
    ...history,
    last: { kind, ...at },
    ...(kind === "turn" && { turnAt: at.users }),
    ...(!isHeeded && { ignored: ignoredWith(history.ignored, kind) }),
  };
}

function ignoredWith(ignored: number, kind: NudgeKind): number {
  if (kind === "limit-soft") return ignored + 1;
  // The usage was below the limit in between.
  return kind === "limit-strong" ? ignored : 0;
}

/**
 * The outcome of a compress call. `nothing`: failed, and nothing can be compressed. `held`: blocked, not the model's
 * fault.
 */
type Outcome = "stored" | "failed" | "nothing" | "held";

const held: ReadonlySet<string> = new Set([WAITS_FOR_USER, PRUNING_OFF, deniedMessage]);
/** Contains the number of failures. */
const paused = /^Compression is paused after [0-9]{1,9} failures; continue with the task\.$/u;
/** Searched length of a result. UTF-16 units. */
const most = 4_096;

/** `undefined`: not the result of a compress call. */
function outcomeOf(entry: SessionEntry): Outcome | undefined {
  if (entry.type !== "message" || entry.message.role !== "toolResult") return undefined;
  const { toolName, isError, content } = entry.message;
  if (toolName !== COMPRESS_TOOL) return undefined;
  if (isError !== true) return "stored";
  const text = Array.isArray(content) ? content.map(textOf).join("\n").slice(0, most) : "";
  // Compare whole lines, because a message can quote the model's arguments.
  const lines = text.split("\n");
  if (lines.some((line) => held.has(line) || paused.test(line))) return "held";
  return lines.includes(nothingToCompress) ? "nothing" : "failed";
}

function textOf(block: unknown): string {
  return isRecord(block) && typeof block["text"] === "string" ? block["text"].slice(0, most) : "";
}

/** Pauses compressions and reminders after too many consecutive failures. */
interface Breaker {
  readonly histories: NudgeHistories;
  /** The number of failures while compressions are paused. `undefined`: not paused. */
  readonly breaker: (ctx: ExtensionContext) => number | undefined;
}

export function createBreaker(pruning: () => PruningConfig): Breaker {
  const histories = new NudgeHistories();
  return {
    histories,
    breaker: ({ sessionManager }) => {
      const { brokenAt, failures } = histories.on(sessionManager, pruning().nudges);
      return brokenAt === undefined ? undefined : failures;
    },
  };
}
