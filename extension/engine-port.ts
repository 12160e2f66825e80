import type {
  AgentSettledEvent,
  AgentStartEvent,
  BeforeAgentStartEvent,
  BeforeAgentStartEventResult,
  ExtensionAPI,
  ExtensionContext,
  InputEvent,
  InputEventResult,
  ModelSelectEvent,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionCompactEvent,
  SessionCompactFailedEvent,
  SessionShutdownEvent,
  SessionStartEvent,
  SessionTreeEvent,
  ToolCallEvent,
  ToolCallEventResult,
  ToolExecutionEndEvent,
  TurnStartEvent,
  UIPromptEndEvent,
  UIPromptStartEvent,
  UserBashEvent,
} from "@earendil-works/pi-coding-agent";
import type { ErrorName } from "../protocol/errors.ts";
import type { AskRefusal, HeldPush } from "../protocol/link-inward.ts";
import type { NoticeData, NoticeName } from "../protocol/optimisation/notices.ts";
import type { DeliverOptions, DeliveryMessage, PushResult } from "./api/message.ts";
import type { BoundaryWriter } from "./boundary.ts";
import type { DeliveryProgress } from "./delivery/progress.ts";
import type { Watcher } from "./delivery/tracker.ts";
import type { FrameHandlers } from "./link/inbound.ts";
import type { OutwardBody } from "./link/outbound.ts";
import { type Memory, SHARED_VERSION } from "./memory.ts";
import type { PendingList } from "./pending/list.ts";
import type { Fault, RequestPipeline } from "./request-pipeline.ts";

/** What a part needs of the engine that hosts it. */
export interface HostPort {
  readonly pi: ExtensionAPI;
  readonly memory: Memory;
  readonly pipeline: RequestPipeline;
  readonly boundary: BoundaryWriter;
  /** pi's context, from `session_start` on. */
  readonly context: () => ExtensionContext | undefined;
  /** Handles the daemon's `ask` frames about a subject. The handler throws {@link AskRefused} to refuse. */
  answer(about: string, answerer: AskHandler): void;
  /** Calls `begun` at each `session_start`, and immediately if the session has already started. */
  onSession(begun: (ctx: ExtensionContext, reason: SessionStartEvent["reason"]) => void, part: string): void;
  /** Subscribes to an event of pi. Errors of the handler are reported and do not reach pi. */
  on: PartEvents;
  /** Notifies the session's subscribers. */
  notify<N extends NoticeName>(name: N, data: NoticeData[N]): void;
  /** Writes a line to the daemon's log: at most 8 KiB as JSON. */
  debug(part: string, facts: Readonly<Record<string, unknown>>): void;
  /** Sends a message to the model. Throws if it is invalid, or too many are open. */
  deliver(message: DeliveryMessage, options: DeliverOptions): void;
  /** Makes the daemon reload the configuration of the parts. */
  reload(): void;
  /** Whether this entry carries a push that is neither answered nor terminal: it must stay as it is. */
  isUnanswered(entryId: string): boolean;
  /** Whether a push, a carrier or an extension's background work waits for its moment. */
  isWaitedFor(): boolean;
  readonly fault: Fault;
}

/** A feature: it puts stages into the pipeline and contributors to the boundary writer. */
export type Part = (host: HostPort) => void;

export type AskHandler = (params: unknown, ctx: ExtensionContext) => unknown;

/** `pi.on` of one part. */
export type PartEvents = <E extends PartEvent>(
  part: string,
  event: E,
  handler: (event: PartEventOf<E>, ctx: ExtensionContext) => PartResultOf<E> | Promise<PartResultOf<E>>,
) => void;

interface PartEventTypes {
  input: [InputEvent, InputEventResult | undefined | void];
  tool_call: [ToolCallEvent, ToolCallEventResult | undefined | void];
  tool_execution_end: [ToolExecutionEndEvent, void];
  model_select: [ModelSelectEvent, void];
  session_tree: [SessionTreeEvent, void];
  session_compact: [SessionCompactEvent, void];
  session_compact_failed: [SessionCompactFailedEvent, void];
  session_before_compact: [SessionBeforeCompactEvent, SessionBeforeCompactResult | undefined | void];
  before_agent_start: [BeforeAgentStartEvent, BeforeAgentStartEventResult | undefined | void];
  agent_start: [AgentStartEvent, void];
  turn_start: [TurnStartEvent, void];
  agent_settled: [AgentSettledEvent, void];
  ui_prompt_start: [UIPromptStartEvent, void];
  ui_prompt_end: [UIPromptEndEvent, void];
  user_bash: [UserBashEvent, void];
  session_shutdown: [SessionShutdownEvent, void];
}
export type PartEvent = keyof PartEventTypes;
export type PartEventOf<E extends PartEvent> = PartEventTypes[E][0];
export type PartResultOf<E extends PartEvent> = PartEventTypes[E][1];

/** Refuses a request of the daemon with a name of the error catalogue. */
export class AskRefused extends Error {
  override readonly name = "AskRefused";
  readonly refusal: AskRefusal;

  constructor(refused: ErrorName, message: string, data?: Readonly<Record<string, unknown>>) {
    super(message);
    this.refusal = { refused, message, ...(data === undefined ? {} : { data }) };
  }
}

/** Receives the engine's events. Its methods must not throw. */
export interface EngineListener {
  send(frame: OutwardBody): void;
  /** A part of the engine threw. */
  fault: Fault;
  /** `session_start`, before the engine reads the session. Contexts of the previous session are now invalid. */
  bind(ctx: ExtensionContext): void;
  /** The configuration of the parts has changed. */
  configured(): Promise<void> | undefined;
  /** The engine has read the session. */
  sessionStarted(event: SessionStartEvent, ctx: ExtensionContext): void;
}

/**
 * Delivers pushes and observes the requests that carry them, in any pi. Each set of a session's extension instances has
 * one, found by {@link findEngine}; the first copy of these modules starts it. Other copies use the object too, so
 * {@link SHARED_VERSION} covers its shape.
 */
export interface Engine extends FrameHandlers {
  readonly memory: Memory;
  /** pi's context, from `session_start` on. */
  readonly context: ExtensionContext | undefined;
  listen(listener: EngineListener): void;
  /** An inward frame has arrived. */
  frameReceived(): void;
  add(part: Part): void;
  /** Reports a failure that does not affect pi. */
  readonly report: Fault;
  /** Delivers a push of an extension. */
  push(push: HeldPush, fingerprint: string): PushResult;
  /** Cancels a push unless it is in the transcript. */
  cancel(deliveryId: string): void;
  progress(deliveryId: string): DeliveryProgress | undefined;
  /**
   * Calls `watcher` at each change until the returned function is called. Returns `undefined` for an unknown delivery.
   */
  follow(deliveryId: string, watcher: Watcher): (() => void) | undefined;
  /**
   * Loads the part that keeps a context before the conversation, if this process has or expects one. `undefined`:
   * nothing to wait for.
   */
  loadContext(): Promise<void> | undefined;
  /** Pending items, displayed to people. */
  readonly pending: Pick<PendingList, "show" | "hide">;
}

export const engineChannel = `pi-rpcd.engine.${SHARED_VERSION}`;

export interface EngineQuestion {
  engine?: Engine;
}

/** Returns the engine of the current extension instances, if a copy has started one. */
export function findEngine(pi: Pick<ExtensionAPI, "events">): Engine | undefined {
  const question: EngineQuestion = {};
  pi.events.emit(engineChannel, question);
  return question.engine;
}
