import type { Logger } from "pino";
import type { BudgetState } from "../../../context/cost/budgets.ts";
import type { CostFold } from "../../../context/cost/fold.ts";
import type { Phase } from "../../../context/cost/phase.ts";
import { type PhaseRefusal, phaseToEnd, phaseTooMany } from "../../../context/cost/refusals.ts";
import { reportOf } from "../../../context/cost/report.ts";
import { type MadeRequest, maxRequests } from "../../../context/cost/request-list.ts";
import type { costMethods } from "../../../protocol/cost-methods.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { Params, Result } from "../../../protocol/methods.ts";
import { isRecord } from "../../../protocol/objects.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { mergeOptimisation, resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { unpricedReason } from "../../../protocol/prices.ts";
import type { SessionCore } from "../../core/session-core.ts";
import type { SessionRecord } from "../../core/session-record.ts";
import { unlessAborted } from "../../lib/deadline.ts";
import type { PiEvent } from "../../pi/records.ts";
import type { PartCalls } from "../part-calls.ts";
import { EntryFold, FileFold } from "./file-fold.ts";

export interface SessionCostsOptions {
  readonly record: Pick<SessionRecord, "stored" | "hasPrices" | "model">;
  readonly parts: Pick<PartCalls, "ask" | "configuring">;
  readonly log: Logger;
}

/** Fields that a client can write into the session. */
type Order = Exclude<keyof typeof costMethods, "cost/report">;

/**
 * A session's costs, read from its file: this needs no pi, and survives a restart. The part `cost` inside its pi
 * writes to the file.
 */
export class SessionCosts {
  readonly #core: SessionCore;
  readonly #options: SessionCostsOptions;
  #file: { readonly path: string; readonly fold: FileFold<EntryFold> } | undefined;

  constructor(core: SessionCore, options: SessionCostsOptions) {
    this.#core = core;
    this.#options = options;
  }

  /**
   * Works with the part on or off, because it only reads the session. Starts no pi. Throws `session_lost`, and errors
   * of reading.
   */
  async report(signal: AbortSignal): Promise<Result<"cost/report">> {
    return reportOf(await this.#read(signal), this.#rules(), Date.now());
  }

  /**
   * The session's newest requests, oldest first, at most `limit`, and whether these are all. Starts no pi. Throws what
   * {@link report} throws.
   */
  async requests(
    limit: number,
    signal: AbortSignal,
  ): Promise<{ readonly requests: readonly MadeRequest[]; readonly isWhole: boolean }> {
    const { requests } = await this.#entries(signal);
    const { newest } = requests;
    return { requests: newest.slice(-limit), isWhole: newest.length <= limit && newest.length < maxRequests };
  }

  /**
   * Turns the part on if it is off and would accept the order, and has it write. Throws what {@link PartCalls.ask}
   * throws.
   */
  async order<M extends Order>(about: M, params: Params<M>, signal: AbortSignal): Promise<Result<M>> {
    const { parts } = this.#options;
    if (!this.#rules().enabled) {
      await this.#refuseBefore(about, params, signal);
      await parts.configuring.configure({ cost: { enabled: true } }, signal);
    }
    // If pi cannot be started, the part was not told.
    await unlessAborted(this.#core.awake("reading"), signal);
    return await parts.ask(about, params, signal).catch((error: unknown) => {
      throw wasSent(error) ? outcomeUnknown(about, error) : error;
    });
  }

  /** Refusals of the part while it is off: a refused call changes nothing. */
  async #refuseBefore(about: Order, params: Params<Order>, signal: AbortSignal): Promise<void> {
    const { label, budgetUsd } = params as { readonly label?: string; readonly budgetUsd?: number | null };
    if (about === "cost/endPhase") refuse(phaseToEnd(await this.#read(signal), label));
    if (about === "cost/startPhase") refuse(phaseTooMany(await this.#read(signal)));
    if (typeof budgetUsd !== "number") return;
    // Only its pi knows whether its model has prices.
    await unlessAborted(this.#core.awake("reading"), signal);
    if (!this.#options.record.hasPrices) throw this.#unpriced();
  }

  /**
   * Throws `price_unknown` where the session has a budget, or gets one by a new layer, and its pi reports no prices
   * for the model.
   */
  requirePrices(given?: OptimisationOptions): void {
    const { stored, hasPrices } = this.#options.record;
    if (hasPrices) return;
    const { optimisation } = stored.options;
    const budget = budgetIn(mergeOptimisation(optimisation, given));
    if (budget === null || (given !== undefined && budget === budgetIn(optimisation))) return;
    throw this.#unpriced();
  }

  #unpriced(): WireError {
    const { model } = this.#options.record;
    return new WireError("price_unknown", unpricedReason(model && `${model.provider}/${model.id}`));
  }

  /** Throws `budget_exceeded` where a spent budget stops the session. */
  async admitPrompt(): Promise<void> {
    const rules = this.#rules();
    if (!rules.enabled) return;
    const fold = await this.#read().catch((error: unknown) => {
      // pi reports the error of the session.
      this.#options.log.warn({ err: error }, "cannot read the session's costs");
    });
    const spent = fold?.budgets(rules).find(({ level, onBudget }) => level === "spent" && onBudget === "stop");
    if (spent !== undefined) throw exceeded(spent);
  }

  /** pi has written an entry: costs outside a run may reach a budget. */
  entryAppended({ entry }: PiEvent): void {
    const { state } = this.#core;
    if (!isRecord(entry) || entry["type"] !== "usage" || !this.#rules().enabled) return;
    if (state.kind !== "idle" && state.kind !== "running") return;
    state.child.link.send({ kind: "ask", about: "cost/refresh", params: {} }).catch((error: unknown) => {
      this.#options.log.debug({ err: error }, "cannot notify the part cost of an entry");
    });
  }

  #rules(): OptimisationConfig["cost"] {
    return resolveOptimisation(this.#options.record.stored.options.optimisation ?? {}).cost;
  }

  async #read(signal?: AbortSignal): Promise<CostFold> {
    return (await this.#entries(signal)).costs;
  }

  async #entries(signal?: AbortSignal): Promise<EntryFold> {
    const { file: path, ephemeral } = this.#options.record.stored;
    if (ephemeral === true) return await this.#ofMemory();
    if (this.#file?.path !== path) this.#file = { path, fold: new FileFold(path, () => new EntryFold()) };
    return await this.#file.fold.read(signal);
  }

  /** Its entries exist only in its pi. */
  async #ofMemory(): Promise<EntryFold> {
    const child = await this.#core.awake("reading");
    const { data } = await child.send({ type: "get_entries" });
    const entries = isRecord(data) && Array.isArray(data["entries"]) ? data["entries"] : [];
    const fold = new EntryFold();
    for (const entry of entries) fold.add(entry);
    return fold;
  }
}

function refuse(found: Phase | PhaseRefusal | undefined): void {
  if (found !== undefined && "refused" in found) throw new WireError(found.refused, found.message);
}

/** The session's limit in USD. null: unlimited. */
function budgetIn(optimisation: OptimisationOptions = {}): number | null {
  const { enabled, budgetUsd } = resolveOptimisation(optimisation).cost;
  return enabled ? budgetUsd : null;
}

/** An error after the part may have written. */
function wasSent(error: unknown): error is WireError {
  return error instanceof WireError && (error.kind === "child_exited" || error.kind === "link_failed");
}

function outcomeUnknown(about: Order, cause: WireError): WireError {
  const why = `${cause.message} Whether ${about} took effect is not known: cost/report says what is there.`;
  return new WireError("outcome_unknown", why, {}, { cause });
}

function exceeded({ phase, usd, spentUsd }: BudgetState): WireError {
  const of = phase === undefined ? "The session's budget" : `The budget of the phase "${phase.label}"`;
  return new WireError(
    "budget_exceeded",
    `${of} of ${usd} USD is spent (${spentUsd.toFixed(4)} USD). cost/setBudget raises or removes the session's; a phase's ends with cost/endPhase.`,
    {
      scope: phase === undefined ? "session" : "phase",
      ...(phase === undefined ? {} : { label: phase.label }),
      budgetUsd: usd,
      spentUsd,
    },
  );
}
