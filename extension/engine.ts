import type { ExtensionAPI, ExtensionContext, SessionStartEvent } from "@earendil-works/pi-coding-agent";
import type { CarryReply, HeldPush, HoldReply, PingReply, ReleaseReply } from "../protocol/link.ts";
import { BoundaryWriter } from "./boundary.ts";
import { findUnanswered } from "./delivery/branch.ts";
import { HandOver } from "./delivery/hand-over.ts";
import { Observer } from "./delivery/observer.ts";
import { RetryTimer } from "./delivery/retry-timer.ts";
import { StandingList } from "./delivery/standing.ts";
import type { FrameHandlers } from "./link/inbound.ts";
import type { OutwardBody } from "./link/outbound.ts";
import { claimMemory, type Memory, releaseMemory, SHARED_VERSION } from "./memory.ts";
import { RequestPipeline } from "./request-pipeline.ts";
import { RunWatch } from "./run-watch.ts";
import { withoutCarriers } from "./stages/carrier.ts";
import { withHead } from "./stages/head.ts";

/** A feature: it puts stages into the pipeline and contributors to the boundary writer. */
export type Part = (places: { readonly pipeline: RequestPipeline; readonly boundary: BoundaryWriter }) => void;

/** Who hears what the engine has to tell. Nothing that it does may throw. */
export interface EngineListener {
  send(frame: OutwardBody): void;
  /** A part of the engine threw. */
  fault(where: string, thrown: unknown): void;
  /** `session_start`, before the engine looks at the session: contexts of the former session are useless now. */
  bind(ctx: ExtensionContext): void;
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
}

const channel = `pi-rpcd.engine.${SHARED_VERSION}`;

interface Question {
  engine?: Engine;
}

/** The engine in this life of the session's extensions, if some copy has started one. */
export function findEngine(pi: Pick<ExtensionAPI, "events">): Engine | undefined {
  const question: Question = {};
  pi.events.emit(channel, question);
  return question.engine;
}

/** The engine that is there already, else a new one whose hooks are this extension's. */
export function findOrStartEngine(pi: ExtensionAPI): Engine {
  const found = findEngine(pi);
  if (found !== undefined) return found;
  const engine = startEngine(pi);
  // pi ends the subscriptions of an extension with its life, and when its loading fails.
  pi.events.on(channel, (question) => {
    (question as Question).engine ??= engine;
  });
  return engine;
}

function startEngine(pi: ExtensionAPI): Engine {
  const memory = claimMemory(pi);
  const listeners = new Set<EngineListener>();
  const send = (frame: OutwardBody): void => {
    for (const listener of listeners) listener.send(frame);
  };
  const fault = (where: string, thrown: unknown): void => {
    for (const listener of listeners) listener.fault(where, thrown);
  };
  const pipeline = new RequestPipeline(fault);
  const boundary = new BoundaryWriter(fault);
  const standing = new StandingList(memory.standing);
  const run = new RunWatch(memory);
  let current: ExtensionContext | undefined;
  const timer = new RetryTimer(() => current && handOver.retry(current), fault);
  const handOver = new HandOver({ pi, memory, run, standing, send, fault, wait: () => timer.ask() });
  const observer = new Observer({ memory, standing, send });

  const engine: Engine = {
    memory,
    get context() {
      return current;
    },
    listen: (listener) => void listeners.add(listener),
    frameCame: () => run.frameCame(),
    add: (part) => part({ pipeline, boundary }),
    hold: (pushes: readonly HeldPush[], ctx, when): HoldReply => handOver.hold(pushes, ctx, when),
    release: (deliveryIds, ctx): ReleaseReply => handOver.release(deliveryIds, ctx),
    beforePrompt: (ctx): HoldReply => handOver.beforePrompt(ctx),
    carry: (ctx): CarryReply => handOver.carry(ctx),
    watch: (frame) => observer.requests.watch(frame),
    ping: (ctx): PingReply => ({ running: run.isRunning(ctx), held: handOver.held() }),
  };

  pipeline.use("context_with_system", "head", (messages, ctx) => withHead(messages, () => ctx.getSystemPrompt()));
  pipeline.use("context_with_system", "carrier", withoutCarriers);
  pipeline.use("context_with_system", "offer", (messages, ctx) => {
    handOver.look(ctx, "draft");
    observer.offer(messages, ctx);
  });
  pipeline.use("before_provider_request", "presence", (payload) => observer.payload(payload));
  pipeline.use("after_provider_response", "verdict", (event) => observer.headers(event));
  pipeline.use("message_start", "verdict", (message, ctx) => observer.messageStart(message, ctx));
  pipeline.use("message_update", "verdict", (event) => observer.messageUpdate(event));
  pipeline.use("message_end", "verdict", (message, ctx) => observer.messageEnd(message, ctx));
  pipeline.use("cache_warming_decision", "verdict", (event) => observer.warming(event));
  boundary.contribute("pushes", (at) => handOver.atBoundary(at));
  pipeline.install(pi);

  /** A handler that reports what it throws: pi would only log it, and would end at a rejection. */
  const guarded =
    <E, R>(where: string, handler: (event: E, ctx: ExtensionContext) => R) =>
    (event: E, ctx: ExtensionContext): R | undefined => {
      try {
        return handler(event, ctx);
      } catch (thrown) {
        fault(where, thrown);
        return undefined;
      }
    };

  pi.on(
    "session_start",
    guarded("session_start", (event, ctx) => {
      current = ctx;
      for (const listener of listeners) listener.bind(ctx);
      const sessionId = ctx.sessionManager.getSessionId();
      if (memory.sessionId !== undefined && memory.sessionId !== sessionId) {
        observer.forget();
        handOver.forget();
        run.sessionReplaced();
      }
      memory.sessionId = sessionId;
      for (const entry of findUnanswered(ctx.sessionManager)) standing.add(entry);
      for (const listener of listeners) listener.sessionStarted(event, ctx);
      if (handOver.held().length > 0) timer.ask();
    }),
  );
  pi.on(
    "input",
    guarded("input", () => run.prompted()),
  );
  pi.on(
    "agent_start",
    guarded("agent_start", (_event, ctx) => run.started(ctx)),
  );
  pi.on(
    "turn_end",
    guarded("turn_end", (event, ctx) => {
      run.turnEnded(event.outcome, ctx);
      return boundary.write({ hook: "turn_end", state: event, ctx });
    }),
  );
  pi.on(
    "agent_before_settle",
    guarded("agent_before_settle", (event, ctx) => {
      run.beforeSettle(event.outcome, ctx);
      return boundary.write({ hook: "agent_before_settle", state: event, ctx });
    }),
  );
  pi.on(
    "agent_settled",
    guarded("agent_settled", (event, ctx) => {
      const end = run.settled(event);
      observer.over({ aborted: end === "aborted", error: "The run ended without an answer." });
      handOver.settled(end, ctx);
    }),
  );
  pi.on(
    "session_compact",
    guarded("session_compact", (_event, ctx) => {
      observer.compacted(ctx);
      timer.hasten();
    }),
  );
  pi.on(
    "session_compact_failed",
    guarded("session_compact_failed", () => timer.hasten()),
  );
  pi.on(
    "session_shutdown",
    guarded("session_shutdown", ({ reason }) => {
      timer.stop();
      releaseMemory(memory, reason === "quit");
    }),
  );
  return engine;
}
