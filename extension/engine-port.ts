import type { ExtensionAPI, ExtensionContext, SessionStartEvent } from "@earendil-works/pi-coding-agent";
import type { HeldPush } from "../protocol/link.ts";
import type { BoundaryWriter } from "./boundary.ts";
import type { DeliveryProgress } from "./delivery/progress.ts";
import type { Watcher } from "./delivery/tracker.ts";
import type { FrameHandlers } from "./link/inbound.ts";
import type { OutwardBody } from "./link/outbound.ts";
import { type Memory, SHARED_VERSION } from "./memory.ts";
import type { PendingList } from "./pending/list.ts";
import type { RequestPipeline } from "./request-pipeline.ts";

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
