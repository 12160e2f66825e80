import { setTimeout as delay } from "node:timers/promises";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { CarryReply, HeldPush, HoldReply, PingReply, ReleaseReply } from "../protocol/link-inward.ts";
import { accept, pushOf } from "./api/message.ts";
import { BoundaryHooks, BoundaryWriter } from "./boundary.ts";
import { findUnanswered, whyLeftOut } from "./delivery/branch.ts";
import { HandOver } from "./delivery/hand-over.ts";
import { InsertedPushes } from "./delivery/inserted.ts";
import { Observer } from "./delivery/observer.ts";
import { RetryTimer } from "./delivery/retry-timer.ts";
import { DeliveryTracker } from "./delivery/tracker.ts";
import {
  type Engine,
  type EngineListener,
  type EngineQuestion,
  engineChannel,
  findEngine,
  type HostPort,
} from "./engine-port.ts";
import { FormerTexts } from "./former-texts.ts";
import type { OutwardBody } from "./link/outbound.ts";
import { claimMemory, releaseMemory } from "./memory.ts";
import { PartRegistry } from "./part-registry.ts";
import { PendingList } from "./pending/list.ts";
import { messageOf } from "./pi-types.ts";
import { tellExtensions } from "./provider/bus-events.ts";
import { QueueWindow } from "./queue-window.ts";
import { type Fault, RequestPipeline } from "./request-pipeline.ts";
import { RunWatch } from "./run-watch.ts";
import { type LoadPart, SessionContextLoader } from "./session-context.ts";
import { withoutCarriers } from "./stages/carrier.ts";
import { withHead } from "./stages/head.ts";

/** Limit of open deliveries in a session. */
const maxOpen = 1_000;
/** A client reads the file of an edit when it gets the tool's start; in a third of all cases it was too late without a wait. */
const editsWaitMs = 25;
const editingTools: ReadonlySet<string> = new Set(["edit", "write"]);
const maxShownFaults = 20;

/** Returns the existing engine, or starts one on this extension's hooks. `loadContext` loads the part for contexts. */
export function findOrStartEngine(pi: ExtensionAPI, loadContext: LoadPart): Engine {
  const found = findEngine(pi);
  if (found !== undefined) return found;
  const engine = startEngine(pi, loadContext);
  // pi removes the subscriptions when the extension ends or fails to load.
  pi.events.on(engineChannel, (question) => {
    (question as EngineQuestion).engine ??= engine;
  });
  return engine;
}

function startEngine(pi: ExtensionAPI, loadContext: LoadPart): Engine {
  const memory = claimMemory(pi);
  const listeners = new Set<EngineListener>();
  const tracker = new DeliveryTracker(memory.tracked, (where, thrown) => fault(where, thrown));
  const send = (frame: OutwardBody): void => {
    tracker.apply(frame);
    for (const listener of listeners) listener.send(frame);
  };
  const shown = new Set<string>();
  const fault: Fault = (where, thrown, part): void => {
    for (const listener of listeners) listener.fault(where, thrown, part);
    if (listeners.size > 0 || shown.has(where) || shown.size >= maxShownFaults) return;
    // Without a daemon, notify the user once for each part.
    shown.add(where);
    try {
      current?.ui.notify(`pi-rpcd: ${where} failed: ${messageOf(thrown)}`, "warning");
    } catch {
      // The session has just been replaced.
    }
  };
  const pipeline = new RequestPipeline(fault);
  const inserted = new InsertedPushes(memory.inserted);
  const boundary = new BoundaryWriter(fault, (entryId) => inserted.carries(entryId));
  const run = new RunWatch(memory);
  let current: ExtensionContext | undefined;
  const timer = new RetryTimer(() => current && handOver.retry(current), fault);
  const handOver = new HandOver({ pi, memory, run, inserted, send, fault, wait: () => timer.ask() });
  const observer = new Observer({ memory, inserted, send, tell: tellExtensions(pi) });
  const queueWindow = new QueueWindow();
  const formerTexts = new FormerTexts(send);
  const pending = new PendingList({ send, context: () => current });
  /** Pushes received before the session has started. */
  const early: HeldPush[] = [];
  let isClosed = false;

  const take = (pushes: readonly HeldPush[], ctx: ExtensionContext, when?: "now" | "later"): HoldReply => {
    for (const push of pushes) tracker.held(push);
    const reply = handOver.hold(pushes, ctx, when);
    hooks.update();
    // No frame reports a push that was already on the branch.
    if (reply.inserted.length > 0) tracker.inserted(reply.inserted);
    return reply;
  };
  /** For the daemon. An extension's delivery is not a client's push, even with the same id. */
  const hold: Engine["hold"] = (pushes, ctx, when) => {
    const isTaken = ({ deliveryId }: HeldPush): boolean => tracker.get(deliveryId)?.fingerprint !== undefined;
    const refused = pushes
      .filter(isTaken)
      .map(({ deliveryId }) => ({ deliveryId, why: "An extension already uses this id." }));
    const reply = take(refused.length === 0 ? pushes : pushes.filter((push) => !isTaken(push)), ctx, when);
    return refused.length === 0 ? reply : { ...reply, refused };
  };
  const release = (deliveryIds: readonly string[], ctx: ExtensionContext): ReleaseReply => {
    const reply = handOver.release(deliveryIds, ctx);
    if (reply.released.length > 0) tracker.cancelled(reply.released);
    return reply;
  };
  const push: Engine["push"] = (given, fingerprint) => {
    if (isClosed) return "closed";
    const known = tracker.get(given.deliveryId);
    if (known !== undefined) return known.fingerprint === fingerprint ? "known" : "reused";
    if (tracker.open >= maxOpen) return "full";
    tracker.held(given, fingerprint);
    if (current === undefined) {
      early.push(given);
      return "taken";
    }
    try {
      // The current run, or one that a prompt is about to start, takes the push at its boundaries.
      take([given], current, "later");
      handOver.retry(current);
    } catch (thrown) {
      fault("push", thrown);
      timer.ask();
    }
    return "taken";
  };
  const cancel = (deliveryId: string): void => {
    if (isClosed) return;
    if (current !== undefined) {
      release([deliveryId], current);
      return;
    }
    const at = early.findIndex((one) => one.deliveryId === deliveryId);
    if (at >= 0) early.splice(at, 1);
    tracker.cancelled([deliveryId]);
  };

  // pi checks its signal before it makes the request.
  pipeline.wait((ctx) => {
    if (memory.isOnlyAsked) ctx.abort();
    return undefined;
  });
  const partRegistry = new PartRegistry({ pi, fault });
  const host: HostPort = {
    pi,
    memory,
    pipeline,
    boundary,
    fault,
    context: () => current,
    answer: (about, answerer) => partRegistry.answer(about, answerer),
    onSession: (begun, part) => partRegistry.onSession(begun, part, current),
    on: (part, event, handler) => partRegistry.on(part, event, handler),
    notify: (name, data) => send({ kind: "notice", name, data } as OutwardBody),
    debug: (part, facts) => send({ kind: "debug", part, facts }),
    deliver: (message, options) => {
      const { push: given, fingerprint } = pushOf(message, options);
      accept(push(given, fingerprint), given.deliveryId);
    },
    reload: () => send({ kind: "reload" }),
    isUnanswered: (entryId) => inserted.carries(entryId),
    isWaitedFor: () => handOver.isWaiting || run.isPrompting() || pending.size > 0,
  };
  const sessionContext = new SessionContextLoader(host, loadContext);

  const engine: Engine = {
    memory,
    get context() {
      return current;
    },
    listen: (listener) => void listeners.add(listener),
    frameReceived: () => run.frameReceived(),
    add: (part) => {
      part(host);
      hooks.update();
    },
    report: fault,
    push,
    cancel,
    progress: (deliveryId) => tracker.progress(deliveryId),
    follow: (deliveryId, watcher) => tracker.watch(deliveryId, watcher),
    pending,
    hold,
    release,
    beforePrompt: (ctx): HoldReply => handOver.beforePrompt(ctx),
    carry: (ctx, deliveryId): CarryReply => {
      const entryId = deliveryId === undefined ? undefined : inserted.get(deliveryId)?.entryId;
      const isOffBranch = entryId !== undefined && whyLeftOut(ctx.sessionManager, entryId) === "off_branch";
      return isOffBranch ? { started: false, isOffBranch } : handOver.carry(ctx);
    },
    drained: () => queueWindow.closed,
    setContext: (context, ctx) => sessionContext.take(context, (about, params) => partRegistry.ask(about, params, ctx)),
    loadContext: () => sessionContext.processStarted(),
    watch: (frame) => observer.requests.watch(frame),
    configure: (parts, isForNext) => {
      memory.parts = parts ?? undefined;
      return isForNext ? undefined : Promise.all([...listeners].flatMap((listener) => listener.configured() ?? []));
    },
    ask: (about, params, ctx) => partRegistry.ask(about, params, ctx),
    ping: (ctx): PingReply => ({ running: run.isRunning(ctx), held: handOver.held() }),
  };

  pipeline.use("context_with_system", "head", (messages, ctx) => withHead(messages, () => ctx.getSystemPrompt()));
  pipeline.use("context_with_system", "carrier", withoutCarriers);
  pipeline.use("context_with_system", "offer", (messages, ctx) => {
    queueWindow.close();
    handOver.look(ctx, "draft");
    observer.offer(messages, ctx);
  });
  pipeline.use("before_provider_request", "presence", (payload) => observer.payload(payload));
  pipeline.use("after_provider_response", "verdict", (event) => observer.headers(event));
  pipeline.use("message_start", "verdict", (message, ctx) => observer.messageStart(message, ctx));
  pipeline.use("message_update", "verdict", (event) => observer.messageUpdate(event));
  pipeline.use("message_end", "verdict", (message, ctx) => {
    queueWindow.messageEnded(message);
    if (message.role === "assistant") run.answered(message.stopReason, ctx);
    hooks.update();
    observer.messageEnd(message, ctx);
  });
  pipeline.use("cache_warming_decision", "verdict", (event) => observer.warming(event));
  boundary.contribute("pushes", (at) => handOver.atBoundary(at), {
    isLast: true,
    mayPropose: () => handOver.held().length > 0,
  });
  pipeline.install(pi);

  /** Reports errors of a handler: pi would only log an exception, and would terminate at a rejection. */
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

  pi.on("tool_call", async (event, { cwd }) => {
    const { toolName } = event;
    await formerTexts.called(event, cwd, memory.watch.formerText === true);
    if (memory.watch.holdEdits && editingTools.has(toolName)) await delay(editsWaitMs);
  });
  pi.on("tool_execution_end", ({ toolCallId }) => formerTexts.ended(toolCallId));
  pi.on(
    "session_start",
    guarded("session_start", (event, ctx) => {
      current = ctx;
      for (const listener of listeners) listener.bind(ctx);
      const sessionId = ctx.sessionManager.getSessionId();
      if (memory.sessionId !== undefined && memory.sessionId !== sessionId) {
        observer.sessionReplaced(ctx.sessionManager);
        handOver.forget();
        run.sessionReplaced();
        tracker.sessionLeft("session_replaced");
      }
      memory.sessionId = sessionId;
      for (const entry of findUnanswered(ctx.sessionManager)) {
        inserted.add(entry);
        tracker.foundInTranscript(entry);
      }
      partRegistry.sessionStarted(ctx, event.reason);
      for (const listener of listeners) listener.sessionStarted(event, ctx);
      if (early.length > 0) take(early.splice(0), ctx, "later");
      hooks.update();
      if (handOver.held().length > 0) timer.ask();
      return sessionContext.sessionStarted(ctx);
    }),
  );
  pi.on(
    "input",
    guarded("input", (_event, ctx) => {
      // Pushes that wait for a prompt go before it. The daemon handles its own pushes when it prompts.
      const isWaitedFor = handOver.held().some((id) => tracker.get(id)?.fingerprint !== undefined);
      run.prompted();
      if (isWaitedFor) handOver.beforePrompt(ctx);
    }),
  );
  pi.on(
    "agent_start",
    guarded("agent_start", (_event, ctx) => {
      queueWindow.open();
      run.started(ctx);
    }),
  );
  pi.on(
    "agent_end",
    guarded("agent_end", () => queueWindow.close()),
  );
  const hooks = new BoundaryHooks({
    turn_end: {
      isNeeded: () => boundary.isNeeded,
      register: () =>
        pi.on(
          "turn_end",
          guarded("turn_end", (event, ctx) => boundary.write({ hook: "turn_end", state: event, ctx })),
        ),
    },
    agent_before_settle: {
      isNeeded: () => boundary.isNeeded || run.needsSettleHook,
      register: () =>
        pi.on(
          "agent_before_settle",
          guarded("agent_before_settle", (event, ctx) => {
            run.beforeSettle(ctx);
            return boundary.write({ hook: "agent_before_settle", state: event, ctx });
          }),
        ),
    },
  });
  pi.on(
    "agent_settled",
    guarded("agent_settled", (event, ctx) => {
      queueWindow.close();
      formerTexts.settled();
      const end = run.settled(event);
      observer.over({ aborted: end === "aborted", error: "The run ended without an answer." });
      handOver.settled(end, ctx);
      hooks.update();
    }),
  );
  const compacted = (): void => {
    run.compacted();
    hooks.update();
    timer.hasten();
  };
  pi.on(
    "session_tree",
    guarded("session_tree", (_event, ctx) => observer.moved(ctx)),
  );
  pi.on(
    "session_compact",
    guarded("session_compact", (_event, ctx) => {
      compacted();
      observer.compacted(ctx);
    }),
  );
  pi.on(
    "session_compact_failed",
    guarded("session_compact_failed", () => compacted()),
  );
  pi.on(
    "session_shutdown",
    guarded("session_shutdown", ({ reason }) => {
      timer.stop();
      queueWindow.close();
      pending.clear();
      isClosed = true;
      if (reason === "quit") tracker.sessionLeft("session_closed");
      releaseMemory(memory, reason === "quit");
    }),
  );
  return engine;
}
