import type { ExtensionAPI, ExtensionContext, SessionStartEvent } from "@earendil-works/pi-coding-agent";
import { type AskHandler, AskRefused, type PartEvent, type PartEventOf, type PartResultOf } from "./engine-port.ts";
import type { Fault } from "./request-pipeline.ts";

type SessionListener = (ctx: ExtensionContext, reason: SessionStartEvent["reason"]) => void;

export interface PartRegistryOptions {
  readonly pi: ExtensionAPI;
  readonly fault: Fault;
}

/**
 * Registers the handlers of parts for the daemon's questions and pi's events. Errors of a part affect neither other
 * parts nor pi.
 */
export class PartRegistry {
  readonly #options: PartRegistryOptions;
  readonly #answerers = new Map<string, AskHandler>();
  readonly #begun: { readonly part: string; readonly begun: SessionListener }[] = [];
  #reason: SessionStartEvent["reason"] = "startup";

  constructor(options: PartRegistryOptions) {
    this.#options = options;
  }

  answer(about: string, answerer: AskHandler): void {
    this.#answerers.set(about, answerer);
  }

  /** Returns the part's answer or refusal, possibly as a promise. Other errors of the part are thrown. */
  ask(about: string, params: unknown, ctx: ExtensionContext): unknown {
    const answerer = this.#answerers.get(about);
    if (answerer === undefined) return { refused: "unsupported_by_pi", message: `No part answers "${about}".` };
    const refusal = (thrown: unknown): unknown => {
      if (thrown instanceof AskRefused) return thrown.refusal;
      throw thrown;
    };
    try {
      const answer = answerer(params, ctx);
      return answer instanceof Promise ? answer.catch(refusal) : answer;
    } catch (thrown) {
      return refusal(thrown);
    }
  }

  onSession(begun: SessionListener, part: string, current: ExtensionContext | undefined): void {
    this.#begun.push({ part, begun });
    if (current !== undefined) this.#begin(part, begun, current);
  }

  sessionStarted(ctx: ExtensionContext, reason: SessionStartEvent["reason"]): void {
    this.#reason = reason;
    for (const { part, begun } of this.#begun) this.#begin(part, begun, ctx);
  }

  on<E extends PartEvent>(
    part: string,
    event: E,
    handler: (event: PartEventOf<E>, ctx: ExtensionContext) => PartResultOf<E> | Promise<PartResultOf<E>>,
  ): void {
    const { pi, fault } = this.#options;
    const failed = (thrown: unknown): undefined => {
      fault(`${event}/${part}`, thrown, part);
      return undefined;
    };
    const guarded = (given: PartEventOf<E>, ctx: ExtensionContext) => {
      try {
        const result = handler(given, ctx);
        return result instanceof Promise ? result.catch(failed) : result;
      } catch (thrown) {
        return failed(thrown);
      }
    };
    // Each name has its own overload.
    (pi.on as (name: string, handler: unknown) => void)(event, guarded);
  }

  #begin(part: string, begun: SessionListener, ctx: ExtensionContext): void {
    try {
      begun(ctx, this.#reason);
    } catch (thrown) {
      this.#options.fault(`session_start/${part}`, thrown, part);
    }
  }
}
