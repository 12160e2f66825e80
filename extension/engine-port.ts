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
} from "@earendil-works/pi-coding-agent";
import type { ErrorName } from "../protocol/errors.ts";
import type { AskRefusal, HeldPush } from "../protocol/link.ts";
import type { NoticeData, NoticeName } from "../protocol/optimisation/notices.ts";
import type { BoundaryWriter } from "./boundary.ts";
import type { DeliveryProgress } from "./delivery/progress.ts";
import type { Watcher } from "./delivery/tracker.ts";
import type { FrameHandlers } from "./link/inbound.ts";
import type { OutwardBody } from "./link/outbound.ts";
import { type Memory, SHARED_VERSION } from "./memory.ts";
import type { PendingList } from "./pending/list.ts";
import type { Fault, RequestPipeline } from "./request-pipeline.ts";

/** What a part is given to work with. */
export interface Places {
  readonly pi: ExtensionAPI;
  readonly memory: Memory;
  readonly pipeline: RequestPipeline;
  readonly boundary: BoundaryWriter;
  /** pi's context, from `session_start` on. */
  readonly context: () => ExtensionContext | undefined;
  /** Answers what the daemon asks about this. Throws {@link AskRefused} for what it refuses. */
  answer(about: string, answerer: Answerer): void;
  /** Calls it at each `session_start`, and at once if the session has begun. */
  onSession(begun: (ctx: ExtensionContext, reason: SessionStartEvent["reason"]) => void, part: string): void;
  /** Subscribes to an event of pi's. What the handler throws, or rejects with, is reported, and pi goes on. */
  on: PartEvents;
  /** Tells the session's subscribers. */
  notify<N extends NoticeName>(name: N, data: NoticeData[N]): void;
  /** A line for the daemon's log: at most 8 KiB as JSON. */
  debug(part: string, facts: Readonly<Record<string, unknown>>): void;
  /** Has the daemon read again what the parts go by. */
  reload(): void;
  /** Whether this entry carries a push that is neither answered nor terminal: it must stay as it is. */
  isUnanswered(entryId: string): boolean;
  readonly fault: Fault;
}

/** A feature: it puts stages into the pipeline and contributors to the boundary writer. */
export type Part = (places: Places) => void;

export type Answerer = (params: unknown, ctx: ExtensionContext) => unknown;

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
  session_shutdown: [SessionShutdownEvent, void];
}
export type PartEvent = keyof PartEventTypes;
export type PartEventOf<E extends PartEvent> = PartEventTypes[E][0];
export type PartResultOf<E extends PartEvent> = PartEventTypes[E][1];

/** A part does not do what the daemon asks. The name is one of the error catalogue. */
export class AskRefused extends Error {
  override readonly name = "AskRefused";
  readonly refusal: AskRefusal;

  constructor(refused: ErrorName, message: string, data?: Readonly<Record<string, unknown>>) {
    super(message);
    this.refusal = { refused, message, ...(data === undefined ? {} : { data }) };
  }
}

/** Who hears what the engine has to tell. Nothing that it does may throw. */
export interface EngineListener {
  send(frame: OutwardBody): void;
  /** A part of the engine threw. */
  fault: Fault;
  /** `session_start`, before the engine looks at the session: contexts of the former session are useless now. */
  bind(ctx: ExtensionContext): void;
  /** What the parts go by is another configuration. */
  configured(): Promise<void> | undefined;
  /** The engine has taken the session up. */
  sessionStarted(event: SessionStartEvent, ctx: ExtensionContext): void;
}

/**
 * Delivers pushes and observes the requests that carry them, in any pi. There is one in each life of a session's
 * extensions, found by {@link findEngine}: whichever copy of these modules comes first starts it. The object crosses
 * from one copy to another, so that its shape is under {@link SHARED_VERSION}.
 */
export interface Engine extends FrameHandlers {
  readonly memory: Memory;
  /** pi's context, from `session_start` on. */
  readonly context: ExtensionContext | undefined;
  listen(listener: EngineListener): void;
  /** An inward frame has come. */
  frameCame(): void;
  add(part: Part): void;
  /** Something failed that pi goes on without. */
  readonly report: Fault;
  /**
   * Delivers a push of an extension. `known`: the same was pushed before; `reused`: something else had this id; `full`:
   * too many are on their way; `closed`: this life of the session's extensions has ended.
   */
  push(push: HeldPush, fingerprint: string): "taken" | "known" | "reused" | "full" | "closed";
  /** Gives a push up, unless it stands in the transcript. */
  cancel(deliveryId: string): void;
  progress(deliveryId: string): DeliveryProgress | undefined;
  /** Calls `watcher` at each change until the returned function is called. `undefined`: there is no such delivery. */
  follow(deliveryId: string, watcher: Watcher): (() => void) | undefined;
  /** What is pending, for people. */
  readonly pending: Pick<PendingList, "show" | "hide">;
}

export const engineChannel = `pi-rpcd.engine.${SHARED_VERSION}`;

export interface EngineQuestion {
  engine?: Engine;
}

/** The engine in this life of the session's extensions, if some copy has started one. */
export function findEngine(pi: Pick<ExtensionAPI, "events">): Engine | undefined {
  const question: EngineQuestion = {};
  pi.events.emit(engineChannel, question);
  return question.engine;
}
