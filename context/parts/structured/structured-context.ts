import type { ExtensionContext, SessionStartEvent } from "@earendil-works/pi-coding-agent";
import type { Memory } from "../../../extension/memory.ts";
import type { SessionReader } from "../../../extension/pi-types.ts";
import type { RequestPipeline } from "../../../extension/request-pipeline.ts";
import type { ContextReply } from "../../../protocol/link.ts";
import type { BuiltMessage, HelperContext } from "../../../protocol/link-context.ts";
import type * as Trim from "../../document/trim.ts";
import { Arrival } from "./arrival.ts";
import { CompactionCount } from "./compactions.ts";
import { ForcedPrompt } from "./forced-prompt.ts";
import { type HeldContext, heldContext } from "./held-context.ts";
import { instructionsSection, rootInstructions, withInstructions } from "./instructions.ts";
import { withPrefix } from "./prefix.ts";

export interface StructuredContextOptions {
  readonly memory: Memory;
  readonly fault: (where: string, thrown: unknown) => void;
}

/** What compactions have left of a context. */
interface Left {
  readonly of: HeldContext;
  readonly compactions: number;
  readonly messages: readonly BuiltMessage[];
}

/**
 * Gives each request the past that the conversation was created with: messages that are in no file, and the instructions
 * of a session file that was written from a context.
 */
export class StructuredContext {
  readonly forcedPrompt = new ForcedPrompt();
  readonly #memory: Memory;
  readonly #fault: StructuredContextOptions["fault"];
  readonly #compactions = new CompactionCount();
  /** Of the session's root entry, for the prompt. */
  #section: string | undefined;
  #left: Left | undefined;
  readonly #arrival: Arrival;
  /** Loaded when there is something that it may be needed for, long before it is. */
  #trim: typeof Trim | undefined;

  constructor({ memory, fault }: StructuredContextOptions) {
    this.#memory = memory;
    this.#fault = fault;
    this.#arrival = new Arrival({ memory, fault });
  }

  addStages(pipeline: RequestPipeline): void {
    pipeline.wait((ctx) => {
      // pi looks at its signal before it makes the request.
      if (this.#memory.isOnlyAsked) ctx.abort();
      return this.#arrival.wait(ctx.signal);
    });
    pipeline.use("context_with_system", "prefix", (messages, { sessionManager }) => {
      const held = this.#memory.context;
      return held === undefined ? undefined : withPrefix(messages, this.#messagesOf(held, sessionManager));
    });
    pipeline.use("context_with_system", "sections", (messages) => {
      const section = this.#sectionOf(this.#memory.context);
      if (section === undefined) return undefined;
      this.forcedPrompt.add(section);
      return withInstructions(messages, section);
    });
  }

  /** A session begins, or another life of the same. Only a fork goes on with the conversation of another session. */
  sessionStarted(reason: SessionStartEvent["reason"], { sessionManager }: ExtensionContext): void {
    this.#compactions.reset();
    // What was promised was for the session before.
    if (reason === "new" || reason === "resume") this.#arrival.came();
    const held = this.#memory.context;
    const sessionId = sessionManager.getSessionId();
    const isOfThis = reason === "fork" || held?.sessionId === sessionId;
    this.#memory.context = held !== undefined && isOfThis ? { ...held, sessionId } : undefined;
    if (this.#memory.context !== undefined) this.#loadTrim();
    const instructions = rootInstructions(sessionManager.getEntries());
    this.#section = instructions === undefined ? undefined : instructionsSection(instructions);
  }

  /** Takes what the daemon has sent. The same again changes nothing. */
  take(context: HelperContext, { sessionManager }: ExtensionContext): ContextReply {
    if (this.#memory.context?.hash !== context.hash) {
      this.#memory.context = heldContext(context, {
        sessionId: sessionManager.getSessionId(),
        compactionsBefore: this.#compactions.on(sessionManager),
      });
      this.#loadTrim();
    }
    this.#arrival.came();
    return { hash: context.hash, messages: context.messages.length };
  }

  /** This life of the extensions ends. */
  close(): void {
    this.#arrival.release();
  }

  #sectionOf(held: HeldContext | undefined): string | undefined {
    return held?.instructions === undefined ? this.#section : instructionsSection(held.instructions);
  }

  #messagesOf(held: HeldContext, session: SessionReader): readonly BuiltMessage[] {
    const compactions = Math.max(0, this.#compactions.on(session) - held.compactionsBefore);
    if (this.#left?.of !== held || this.#left.compactions !== compactions) {
      this.#left = { of: held, compactions, messages: this.#leftOf(held, compactions) };
    }
    return this.#left.messages;
  }

  #leftOf(held: HeldContext, compactions: number): readonly BuiltMessage[] {
    const { messages, afterCompaction, budget } = held;
    if (compactions === 0 || afterCompaction === "keep") return messages;
    if (afterCompaction === "drop") return [];
    return this.#trim?.trimmed(messages, budget, compactions) ?? messages;
  }

  #loadTrim(): void {
    import("../../document/trim.ts").then(
      (loaded) => {
        this.#trim = loaded;
        this.#left = undefined;
      },
      (thrown: unknown) => this.#fault("context", thrown),
    );
  }
}
