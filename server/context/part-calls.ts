import type { Logger } from "pino";
import type { By } from "../../protocol/client-identity.ts";
import { type ErrorName, errorCatalogue, WireError } from "../../protocol/errors.ts";
import type { OutwardFrame } from "../../protocol/link-outward.ts";
import { PART_REPORT } from "../../protocol/log-methods.ts";
import { type MethodName, methods, type Params, type Result } from "../../protocol/methods.ts";
import { compilerOf } from "../../protocol/validation.ts";
import { once } from "../../protocol/validator.ts";
import { attributionOf } from "../core/attribution.ts";
import type { SessionCore } from "../core/session-core.ts";
import { unlessAborted } from "../lib/deadline.ts";
import type { Journal } from "../log/journal.ts";
import type { Child } from "../pi/child.ts";
import { PartsConfiguring, type PartsConfiguringOptions } from "./parts-configuring.ts";
import { PolicyTools, type PolicyToolsOptions } from "./policy-tools.ts";

export interface PartCallsOptions extends PartsConfiguringOptions, Pick<PolicyToolsOptions, "startTimeoutMs"> {
  /** The client whose call currently changes the session. */
  readonly by: () => By | undefined;
  readonly journal: Journal;
  readonly log: Logger;
}

/** A move within the session's tree that has its turn. */
interface Navigation {
  /** Undefined: pi has not been asked yet. */
  child: Child | undefined;
  isAborted: boolean;
}

type Notice = Extract<OutwardFrame, { kind: "notice" }>;
type Debug = Extract<OutwardFrame, { kind: "debug" }>;
type Fault = Extract<OutwardFrame, { kind: "fault" }>;

/** Calls to the parts inside a session's pi, and their reports. */
export class PartCalls {
  readonly #core: SessionCore;
  readonly #options: PartCallsOptions;
  readonly configuring: PartsConfiguring;
  readonly tools: PolicyTools;
  /** Failed parts that were reported: each once while the session is in this daemon. */
  readonly #told = new Set<string>();
  #reloading: "once" | "again" | undefined;
  #navigation: Navigation | undefined;

  constructor(core: SessionCore, options: PartCallsOptions) {
    this.#core = core;
    this.#options = options;
    this.tools = new PolicyTools(core, options);
    this.configuring = new PartsConfiguring(core, { ...options, tools: this.tools });
  }

  /** A child has come from another session: sends it this session's configuration. */
  took(child: Child): void {
    this.configuring.took(child).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, "cannot configure a pi that came from another session");
    });
  }

  /**
   * Returns a part's answer, checked against the method's result. A part refuses with an error of the catalogue.
   * Throws errors of starting pi, `unsupported_by_pi` if the part is off, `link_failed`.
   */
  async ask<M extends MethodName>(about: M, params: unknown, signal: AbortSignal): Promise<Result<M>> {
    const answer = async (): Promise<Result<M>> => {
      const child = await this.#core.awake("reading");
      signal.throwIfAborted();
      return await this.askChild(child, about, params);
    };
    return await unlessAborted(answer(), signal);
  }

  /** As {@link ask}, for this pi; does not count as use. */
  async askChild<M extends MethodName>(child: Child, about: M, params: unknown): Promise<Result<M>> {
    const data = await child.link.send<unknown>({ kind: "ask", about, params });
    const refusal = refusalIn(data);
    if (refusal !== undefined) throw refusal;
    // Other code in the same pi can have written it.
    if (validatorOf(methods[about].result)(data)) return data as Result<M>;
    throw new WireError("link_failed", `The helper extension's answer to "${about}" is invalid.`);
  }

  /** Sends a part's notification to the subscribers. */
  noticed({ name, data }: Notice): void {
    const isOfCaller = name === "session/navigated" || name === "session/labelled";
    this.#options.journal.say(name, isOfCaller ? { ...attributionOf(this.#options.by()), ...data } : data);
  }

  /** Sets or removes a label. Throws what {@link ask} throws, and `foreign_write`: it writes to the session's file. */
  async setLabel(params: Params<"session/setLabel">, signal: AbortSignal): Promise<Result<"session/setLabel">> {
    const set = async (): Promise<Result<"session/setLabel">> => {
      const child = await this.#core.awake();
      signal.throwIfAborted();
      return await this.askChild(child, "session/setLabel", params);
    };
    return await unlessAborted(set(), signal);
  }

  /**
   * Moves within the session's tree. Nothing else is written to pi meanwhile. Throws `session_busy`, and the errors
   * of asking.
   */
  async navigate(params: Params<"session/navigate">, signal: AbortSignal): Promise<Result<"session/navigate">> {
    const moved = this.#core.scope.run(async () => {
      const navigation: Navigation = { child: undefined, isAborted: false };
      this.#navigation = navigation;
      try {
        const child = await this.#core.awake();
        if (this.#core.state.kind === "running")
          throw new WireError("session_busy", "A run is active. Wait for it, or abort it.");
        navigation.child = child;
        // The move continues if its caller goes away: pi has begun it, and nothing else is written to pi until it
        // ends.
        return await this.askChild(child, "session/navigate", { ...params, isAborted: navigation.isAborted });
      } finally {
        this.#navigation = undefined;
      }
    }, signal);
    return await unlessAborted(moved, signal);
  }

  /** Aborts the summary of an abandoned branch, because an abort would otherwise wait for it. */
  abortNavigation(): void {
    if (this.#navigation === undefined) return;
    this.#navigation.isAborted = true;
    this.#navigation.child?.send({ type: "abort" }).catch(() => {});
  }

  /** Logs a part's report, because its configuration asks for it. */
  said({ part, facts }: Debug): void {
    this.#options.log.info({ part, facts }, PART_REPORT);
  }

  /**
   * The user of a session's pi asks to reload its configuration. That user sees the errors. Requests during a reload
   * are merged.
   */
  reload(): void {
    const isDone = this.#reloading === undefined;
    this.#reloading = isDone ? "once" : "again";
    if (isDone) void this.#reload();
  }

  async #reload(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.configuring.prune({}, true, AbortSignal.timeout(reloadMs));
    } catch (error) {
      log.warn({ err: error }, "cannot reload the configuration of a session");
      const { state } = this.#core;
      const text = error instanceof Error ? error.message.slice(0, 2_000).toWellFormed() : "It cannot be read.";
      if (state.kind === "idle" || state.kind === "running")
        state.child.link.send({ kind: "notify", text }).catch(() => {});
    }
    const isWantedAgain = this.#reloading === "again";
    this.#reloading = isWantedAgain ? "once" : undefined;
    if (isWantedAgain) await this.#reload();
  }

  /** A part threw and was skipped. The subscribers are told once. */
  failed({ where, error, part }: Fault): void {
    const { log, journal } = this.#options;
    log.error({ where, fault: error }, "a part of the helper failed");
    const reason = `It failed in ${where}: ${error}`.slice(0, 1_024).toWellFormed();
    if (part === undefined || part === "" || part.length > 64 || this.#told.has(`${part} ${where}`)) return;
    if (this.#told.size >= maxTold) return;
    this.#told.add(`${part} ${where}`);
    journal.say("optimisation/degraded", { part, reason });
  }
}

const maxTold = 256;
const reloadMs = 30_000;
/** Only whether an answer is valid is asked: the build has no validators of answers that list all findings. */
const validatorOf = once(compilerOf({ allErrors: false, ignoreUnknown: false, removeUnknown: false }));

function refusalIn(data: unknown): WireError | undefined {
  if (typeof data !== "object" || data === null || !("refused" in data) || !("message" in data)) return undefined;
  const { refused, message } = data;
  const details = "data" in data && typeof data.data === "object" && data.data !== null ? data.data : {};
  if (typeof refused !== "string" || typeof message !== "string") return undefined;
  if (!Object.hasOwn(errorCatalogue, refused))
    return new WireError("link_failed", "A part refused with an unknown error.");
  return new WireError(refused as ErrorName, message.slice(0, 2_000), details as Readonly<Record<string, unknown>>);
}
