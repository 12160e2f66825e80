import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Kept, Memory } from "../../../extension/memory.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { CacheBroken } from "../../../protocol/optimisation/notices.ts";
import { branchUse } from "./branch-use.ts";
import { CacheLedger, type Reported } from "./cache-ledger.ts";
import type { ChangeLog } from "./change-log.ts";
import { type Difference, firstDifference } from "./difference.ts";
import { asksForOneToken, type PayloadView, viewOf } from "./payload.ts";
import { hasLikelyExpired, missCost } from "./prices.ts";
import { changedSections, type PromptText, promptText } from "./sections.ts";
import { editCause, type Since, whatCameSince } from "./since.ts";

/** A request that was made. */
interface Made {
  readonly model: string;
  readonly text: PromptText;
  readonly leafId: string | null;
  /** Shared with pi: must not be modified. */
  readonly view: PayloadView;
  readonly at: number;
}

interface Answered extends Made {
  /** Tokens that the next request can read from the cache, according to the reported usage. */
  readonly cacheable: number;
  readonly isFirst: boolean;
}

/** The first difference to the previous request, and its cause if the request shows one. */
interface Comparison {
  /** `undefined`: the previous request with additions at the end. */
  readonly cause: string | undefined;
  readonly position: string;
  readonly isLate: boolean;
}

interface Attempt extends Omit<Made, "view"> {
  readonly view: PayloadView | undefined;
  readonly comparison: Comparison | undefined;
}

/** The auditor's state of a session. */
export interface AuditMemory {
  readonly sessionId: string;
  readonly ledger: CacheLedger;
  /** Models, as `provider/id`, whose answers reported cache usage. */
  readonly caching: Set<string>;
  before: Answered | undefined;
  attempt: Attempt | undefined;
  /** The last use of the previous request's cache, by the request or by a keep-warm request. */
  usedAt: number;
  /** Sections that differed in the last comparison. */
  varied: readonly string[];
  /** After a start of pi: the last request on the branch, until the first answer. */
  resumed: { readonly model: string; readonly cachedTokens: number; readonly isLate: boolean } | undefined;
  answered: number;
}

/** The auditor's state that outlives a reload of the modules. */
export function keptAudit({ kept }: Pick<Memory, "kept">): Kept<AuditMemory> {
  return kept.of("audit");
}

export interface AuditorOptions {
  readonly audit: Kept<AuditMemory>;
  readonly changes: ChangeLog;
  readonly noiseTokens: () => number;
  readonly broken: (broken: CacheBroken) => void;
  /** A section varies from request to request. */
  readonly varies: (section: string) => void;
}

/** OpenAI and compatible services cache prompts from this size on, in steps of this size. */
const leastCached = 1_024;
const cacheStep = 128;

/**
 * Compares each request with the previous one, in the order in which services read it, and the reported cache reads with
 * the possible ones. It compares the payloads themselves without hashing, because equal strings of pi compare fast.
 */
export class Auditor {
  readonly #options: AuditorOptions;

  constructor(options: AuditorOptions) {
    this.#options = options;
  }

  /** Call when a message list is complete, before its request. */
  listed(messages: readonly AgentMessage[], ctx: ExtensionContext): void {
    const audit = this.#of(ctx);
    if (audit.answered === 0) audit.resumed = resumed(ctx);
    audit.attempt = {
      model: ctx.model === undefined ? "" : `${ctx.model.provider}/${ctx.model.id}`,
      text: promptText(messages),
      leafId: ctx.sessionManager.getLeafId(),
      at: Date.now(),
      view: undefined,
      comparison: undefined,
    };
  }

  /** Call with each payload after our own stages: the listed request, or a keep-warm request. */
  sent(payload: unknown, ctx: ExtensionContext): void {
    const audit = this.#of(ctx);
    const { attempt, before } = audit;
    const view = viewOf(payload);
    if (this.#isWarming(payload, view, audit)) {
      audit.usedAt = Date.now();
      return;
    }
    if (attempt === undefined) return;
    if (view === undefined || before === undefined) {
      audit.attempt = { ...attempt, view };
      return;
    }
    const made = { ...attempt, view };
    audit.attempt = { ...made, comparison: this.#compare(before, made, ctx) };
  }

  /**
   * Call with each complete answer. Answers without usage are ignored, because the service may not have seen the request.
   */
  answered(message: AgentMessage, ctx: ExtensionContext): void {
    if (message.role !== "assistant") return;
    const audit = this.#of(ctx);
    const { attempt, before } = audit;
    audit.attempt = undefined;
    const { usage } = message;
    const total = usage.input + usage.cacheRead + usage.cacheWrite;
    if (attempt === undefined || !(total > 0)) return;
    audit.ledger.answered(usage);
    if (usage.cacheRead + usage.cacheWrite > 0) audit.caching.add(attempt.model);
    this.#judge(attempt, before, usage, ctx);
    const { view } = attempt;
    audit.before =
      view === undefined
        ? undefined
        : { ...attempt, view, cacheable: cacheableOf(usage, view), isFirst: audit.answered === 0 };
    audit.usedAt = attempt.at;
    audit.resumed = undefined;
    audit.answered += 1;
    this.#options.changes.shown();
  }

  /** Forgets earlier requests. */
  forget(): void {
    this.#options.audit.value = undefined;
  }

  #of(ctx: ExtensionContext): AuditMemory {
    const { audit } = this.#options;
    const sessionId = ctx.sessionManager.getSessionId();
    if (audit.value?.sessionId !== sessionId) audit.value = emptyAudit(sessionId);
    return audit.value;
  }

  /** To keep a cache warm, pi repeats its last request for one token, when idle or in parallel with the next one. */
  #isWarming(payload: unknown, view: PayloadView | undefined, { attempt, before }: AuditMemory): boolean {
    if (!asksForOneToken(payload)) return false;
    if (attempt === undefined || attempt.view !== undefined) return true;
    if (before === undefined || view === undefined || before.view.messages.length !== view.messages.length)
      return false;
    return firstDifference(before.view, view) === undefined;
  }

  #compare(before: Answered, made: Made, ctx: ExtensionContext): Comparison {
    const { changes } = this.#options;
    const audit = this.#of(ctx);
    const isLate = hasLikelyExpired(made.at - audit.usedAt, ctx.model);
    if (before.model !== made.model) return { cause: "model", position: "model", isLate };
    const difference = firstDifference(withoutPassing(before.view, changes), made.view);
    if (difference?.place !== "system") audit.varied = [];
    if (difference === undefined) return { cause: undefined, position: "none", isLate };
    const since = whatCameSince(before.leafId, ctx.sessionManager);
    const sections = difference.place === "system" ? changedSections(before.text, made.text) : [];
    if (difference.place === "system" && !since.isOtherBranch && !since.isCompacted) {
      this.#lookForVolatile(sections, before.isFirst, audit);
    }
    const cause = causeOf(difference, since, sections) ?? editCause(since, changes, ctx.sessionManager);
    return { cause, position: positionOf(difference), isLate };
  }

  #lookForVolatile(sections: readonly string[], isAfterFirst: boolean, audit: AuditMemory): void {
    const names = sections.length === 0 ? ["system"] : sections;
    for (const name of names) if (isAfterFirst || audit.varied.includes(name)) this.#options.varies(name);
    audit.varied = names;
  }

  #judge(attempt: Attempt, before: Answered | undefined, usage: Reported, ctx: ExtensionContext): void {
    const audit = this.#of(ctx);
    const { model, comparison } = attempt;
    const { input, cacheRead, cacheWrite } = usage;
    const total = input + cacheRead + cacheWrite;
    const known = before === undefined ? audit.resumed?.cachedTokens : before.cacheable;
    const isCaching = audit.caching.has(model) || (before !== undefined && audit.caching.has(before.model));
    const cause = causeFor(attempt, cacheRead, audit.resumed);
    if (known === undefined || cause === undefined || !(isCaching || audit.resumed !== undefined)) return;
    const predictedTokens = Math.min(known, total);
    const missedTokens = predictedTokens - cacheRead;
    if (missedTokens <= this.#options.noiseTokens()) return;
    const broken: CacheBroken = {
      cause: shown(cause, 128),
      position: comparison?.position ?? "none",
      predictedTokens,
      readTokens: cacheRead,
      missedTokens,
      missedUsd: missCost(ctx.model?.cost, total, missedTokens),
      model: shown(model, 512),
    };
    audit.ledger.broken(broken);
    this.#options.broken(broken);
  }
}

function emptyAudit(sessionId: string): AuditMemory {
  return {
    sessionId,
    ledger: new CacheLedger(),
    caching: new Set(),
    before: undefined,
    attempt: undefined,
    usedAt: 0,
    varied: [],
    resumed: undefined,
    answered: 0,
  };
}

function resumed({ sessionManager, model }: ExtensionContext): AuditMemory["resumed"] {
  const { last, usedAt, isBroken } = branchUse(sessionManager);
  if (last === undefined || isBroken) return undefined;
  const isLate = hasLikelyExpired(Date.now() - usedAt, model);
  return { model: `${last.provider}/${last.model}`, cachedTokens: last.cachedTokens, isLate };
}

/** Why less was read than possible. If the cache had expired, no change caused the loss. */
function causeFor({ comparison, model }: Attempt, cacheRead: number, last: AuditMemory["resumed"]): string | undefined {
  if (comparison === undefined) {
    return last?.isLate === true && last.model === model && cacheRead === 0 ? "expired" : undefined;
  }
  if (comparison.isLate && cacheRead === 0 && comparison.cause !== "model") return "expired";
  return comparison.cause ?? (comparison.isLate ? "expired" : "service");
}

/** `undefined`: earlier messages were changed. */
function causeOf(difference: Difference, since: Since, sections: readonly string[]): string | undefined {
  if (since.isOtherBranch) return "branch";
  if (difference.place === "tools") return `tool_${difference.how}`;
  if (since.isCompacted) return "compaction";
  // Services keep separate caches for each thinking setting, as for each model.
  if (difference.place === "settings") return "model";
  return sections[0] === undefined ? undefined : `section:${sections[0]}`;
}

function positionOf(difference: Difference): string {
  return difference.place === "message" ? `message ${difference.index + 1}` : difference.place;
}

/** With cache marks, the reported cached tokens; without marks, the whole prompt. */
function cacheableOf({ input, cacheRead, cacheWrite }: Reported, { isMarked }: PayloadView): number {
  if (isMarked) return cacheRead + cacheWrite;
  const total = input + cacheRead + cacheWrite;
  return total < leastCached ? 0 : Math.floor(total / cacheStep) * cacheStep;
}

/** The request without passing messages. */
function withoutPassing(view: PayloadView, changes: ChangeLog): PayloadView {
  let end = view.messages.length;
  while (end > 0 && changes.isPassingMessage(view.messages[end - 1])) end -= 1;
  return end === view.messages.length ? view : { ...view, messages: view.messages.slice(0, end) };
}

function shown(text: string, maxLength: number): string {
  return text
    .replaceAll(/[\p{Cc}\u2028\u2029]/gu, " ")
    .slice(0, maxLength)
    .toWellFormed();
}
