import type { ExtensionContext, SessionStartEvent } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { Kept, Memory } from "../../../extension/memory.ts";
import type { SessionReader } from "../../../extension/pi-types.ts";
import type { RequestPipeline } from "../../../extension/request-pipeline.ts";
import { CONTEXT_SUBJECT } from "../../../extension/session-context.ts";
import type { BuiltMessage, HelperContext } from "../../../protocol/link-context.ts";
import type { ContextReply } from "../../../protocol/link-inward.ts";
import type * as Trim from "../../document/trim.ts";
import { BranchFold } from "../../folds.ts";
import { Arrival } from "./arrival.ts";
import { ForcedPrompt } from "./forced-prompt.ts";
import { type HeldContext, heldContext, keptContext } from "./held-context.ts";
import { instructionsSection, rootInstructions, withInstructions, withPrefix } from "./request-messages.ts";

const part = "context";

/** Puts the context of a session before the conversation of its requests. */
export function structuredContext(
  host: Pick<HostPort, "memory" | "fault" | "pipeline" | "onSession" | "on" | "answer">,
): void {
  const structured = new StructuredContext(host);
  structured.addStages(host.pipeline);
  host.onSession((ctx, reason) => structured.sessionStarted(reason, ctx), part);
  host.on(part, "before_agent_start", (event) => structured.forcedPrompt.runStarts(event));
  host.on(part, "session_shutdown", () => structured.close());
  // The link has checked the frame.
  host.answer(CONTEXT_SUBJECT, (context, ctx) => structured.take(context as HelperContext, ctx));
}

export interface StructuredContextOptions {
  readonly memory: Pick<Memory, "kept" | "contextDueBy">;
  readonly fault: (where: string, thrown: unknown) => void;
}

/**
 * Counts the compactions on the active branch. It does not use events of pi: a compaction that an extension drafts at a
 * boundary emits none, and the session may switch branches.
 */
export function compactionCount(): BranchFold<number> {
  return new BranchFold(
    () => 0,
    (count, { type }) => (type === "compaction" ? count + 1 : count),
  );
}

/** The messages of a context that remain after compactions. */
interface Remaining {
  readonly of: HeldContext;
  readonly compactions: number;
  readonly messages: readonly BuiltMessage[];
}

/**
 * Gives each request the past of the conversation: messages that are in no file, and the instructions of a session file
 * that was written from a context.
 */
export class StructuredContext {
  readonly forcedPrompt = new ForcedPrompt();
  readonly #held: Kept<HeldContext>;
  readonly #fault: StructuredContextOptions["fault"];
  readonly #compactions = compactionCount();
  /** The section of the session's root entry. */
  #section: string | undefined;
  #remaining: Remaining | undefined;
  readonly #arrival: Arrival;
  /** Loaded as soon as a context is held, before a compaction can need it. */
  #trim: typeof Trim | undefined;

  constructor({ memory, fault }: StructuredContextOptions) {
    this.#held = keptContext(memory);
    this.#fault = fault;
    this.#arrival = new Arrival({ memory, fault });
  }

  addStages(pipeline: RequestPipeline): void {
    pipeline.wait((ctx) => this.#arrival.wait(ctx.signal));
    pipeline.use("context_with_system", "prefix", (messages, { sessionManager }) => {
      const held = this.#held.value;
      return held === undefined ? undefined : withPrefix(messages, this.#messagesOf(held, sessionManager));
    });
    pipeline.use("context_with_system", "sections", (messages) => {
      const section = this.#sectionOf(this.#held.value);
      if (section === undefined) return undefined;
      this.forcedPrompt.add(section);
      return withInstructions(messages, section);
    });
  }

  /** Call at each `session_start`. Only a fork continues the conversation of another session. */
  sessionStarted(reason: SessionStartEvent["reason"], { sessionManager }: ExtensionContext): void {
    this.#compactions.reset();
    // A context was announced for the previous session.
    if (reason === "new" || reason === "resume") this.#arrival.settle();
    const held = this.#held.value;
    const sessionId = sessionManager.getSessionId();
    const isOfThis = reason === "fork" || held?.sessionId === sessionId;
    this.#held.value = held !== undefined && isOfThis ? { ...held, sessionId } : undefined;
    if (this.#held.value !== undefined) this.#loadTrim();
    const instructions = rootInstructions(sessionManager.getEntries());
    this.#section = instructions === undefined ? undefined : instructionsSection(instructions);
  }

  /** Takes a context of the daemon. The same context again has no effect. */
  take(context: HelperContext, { sessionManager }: ExtensionContext): ContextReply {
    if (this.#held.value?.hash !== context.hash) {
      this.#held.value = heldContext(context, {
        sessionId: sessionManager.getSessionId(),
        compactionsBefore: this.#compactions.of(sessionManager),
      });
      this.#loadTrim();
    }
    this.#arrival.settle();
    return { hash: context.hash, messages: context.messages.length };
  }

  /** Call when these extension instances end. */
  close(): void {
    this.#arrival.release();
  }

  #sectionOf(held: HeldContext | undefined): string | undefined {
    return held?.instructions === undefined ? this.#section : instructionsSection(held.instructions);
  }

  #messagesOf(held: HeldContext, session: SessionReader): readonly BuiltMessage[] {
    const compactions = Math.max(0, this.#compactions.of(session) - held.compactionsBefore);
    if (this.#remaining?.of !== held || this.#remaining.compactions !== compactions) {
      this.#remaining = { of: held, compactions, messages: this.#remainingOf(held, compactions) };
    }
    return this.#remaining.messages;
  }

  #remainingOf(held: HeldContext, compactions: number): readonly BuiltMessage[] {
    const { messages, afterCompaction, budget } = held;
    if (compactions === 0 || afterCompaction === "keep") return messages;
    if (afterCompaction === "drop") return [];
    return this.#trim?.trimmed(messages, budget, compactions) ?? messages;
  }

  #loadTrim(): void {
    import("../../document/trim.ts").then(
      (loaded) => {
        this.#trim = loaded;
        this.#remaining = undefined;
      },
      (thrown: unknown) => this.#fault("context", thrown),
    );
  }
}
