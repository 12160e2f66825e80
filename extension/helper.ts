import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { LINK_VERSION } from "../protocol/link.ts";
import { BoundaryWriter } from "./boundary.ts";
import { findUnanswered } from "./delivery/branch.ts";
import { HandOver } from "./delivery/hand-over.ts";
import { Observer } from "./delivery/observer.ts";
import { RetryTimer } from "./delivery/retry-timer.ts";
import { StandingList } from "./delivery/standing.ts";
import { Inbound } from "./link/inbound.ts";
import { Outbound } from "./link/outbound.ts";
import type { LinkIdentity, Memory } from "./memory.ts";
import { RequestPipeline } from "./request-pipeline.ts";
import { RunWatch } from "./run-watch.ts";
import { withoutCarriers } from "./stages/carrier.ts";
import { withHead } from "./stages/head.ts";

/** A feature of the helper: it puts stages into the pipeline and contributors to the boundary writer. */
export type Part = (places: { readonly pipeline: RequestPipeline; readonly boundary: BoundaryWriter }) => void;

export interface HelperOptions {
  readonly memory: Memory;
  readonly link: LinkIdentity;
  readonly parts?: readonly Part[];
}

/** Connects one creation of the helper's modules to pi. */
export function startHelper(pi: ExtensionAPI, { memory, link, parts = [] }: HelperOptions): void {
  const outbound = new Outbound(link.statusKey);
  const fault = (where: string, thrown: unknown): void => outbound.fault(where, thrown);
  const send: Outbound["send"] = (frame) => outbound.send(frame);
  const pipeline = new RequestPipeline(fault);
  const boundary = new BoundaryWriter(fault);
  const standing = new StandingList(memory.standing);
  const run = new RunWatch(memory);
  let current: ExtensionContext | undefined;
  const timer = new RetryTimer(() => current && handOver.retry(current), fault);
  const handOver = new HandOver({ pi, memory, run, standing, send, fault, wait: () => timer.ask() });
  const observer = new Observer({ memory, standing, send });
  const inbound = new Inbound(
    {
      hold: (pushes, ctx, when) => handOver.hold(pushes, ctx, when),
      release: (deliveryIds, ctx) => handOver.release(deliveryIds, ctx),
      beforePrompt: (ctx) => handOver.beforePrompt(ctx),
      carry: (ctx) => handOver.carry(ctx),
      watch: (frame) => observer.requests.watch(frame),
      ping: (ctx) => ({ running: run.isRunning(ctx), held: handOver.held() }),
    },
    outbound,
  );

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
  for (const part of parts) part({ pipeline, boundary });
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

  pi.registerCommand(link.command, {
    description: "Used by pi-rpcd.",
    handler: async (text, ctx) => {
      run.frameCame();
      inbound.receive(text, ctx);
    },
  });
  pi.on(
    "session_start",
    guarded("session_start", ({ reason }, ctx) => {
      current = ctx;
      outbound.bind(ctx);
      const sessionId = ctx.sessionManager.getSessionId();
      const sessionFile = ctx.sessionManager.getSessionFile();
      if (memory.sessionId !== undefined && memory.sessionId !== sessionId) {
        observer.forget();
        handOver.forget();
        run.sessionReplaced();
      }
      memory.sessionId = sessionId;
      for (const entry of findUnanswered(ctx.sessionManager)) standing.add(entry);
      send({
        kind: "hello",
        link: LINK_VERSION,
        command: link.command,
        reason,
        sessionId,
        ...(sessionFile === undefined ? {} : { sessionFile }),
      });
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
    guarded("session_shutdown", () => timer.stop()),
  );
}
