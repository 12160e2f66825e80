import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PartsConfig } from "../../protocol/link.ts";
import type { HelperContext } from "../../protocol/link-context.ts";
import type {
  CarryReply,
  EntriesReply,
  HeldPush,
  HoldReply,
  InwardFrame,
  PingReply,
  ReleaseReply,
} from "../../protocol/link-inward.ts";
import { isDeliveryId } from "../delivery/marker.ts";
import type { DialogAnnouncer } from "../dialog-announcer.ts";
import { messageOf } from "../pi-types.ts";
import { FrameError, parseInwardFrame, pushError } from "./inward-frame.ts";
import { readLargeFrame } from "./large-frame.ts";
import type { Outbound } from "./outbound.ts";

/** Handlers of the inward frames. */
export interface FrameHandlers {
  hold(pushes: readonly HeldPush[], ctx: ExtensionContext, when: "now" | "later" | undefined): HoldReply;
  release(deliveryIds: readonly string[], ctx: ExtensionContext): ReleaseReply;
  beforePrompt(ctx: ExtensionContext): HoldReply;
  carry(ctx: ExtensionContext, deliveryId?: string): CarryReply;
  drained(): Promise<void> | undefined;
  setContext(context: HelperContext, ctx: ExtensionContext): Promise<unknown>;
  watch(frame: Extract<InwardFrame, { kind: "watch" }>): void;
  configure(parts: PartsConfig | null, isForNext: boolean): Promise<unknown> | undefined;
  ask(about: string, params: unknown, ctx: ExtensionContext): unknown;
  ping(ctx: ExtensionContext): PingReply;
}

/**
 * Handles the frames that the daemon sends by the command. Each gets exactly one reply before the command ends, because
 * pi reports success even if the handler throws, and answers the command only when the handler is done.
 */
export class Inbound {
  readonly #handlers: FrameHandlers;
  readonly #outbound: Outbound;
  readonly #dialogs: Pick<DialogAnnouncer, "announce">;

  constructor(handlers: FrameHandlers, outbound: Outbound, dialogs: Pick<DialogAnnouncer, "announce">) {
    this.#handlers = handlers;
    this.#outbound = outbound;
    this.#dialogs = dialogs;
  }

  /** Never throws. */
  receive(text: string, ctx: ExtensionContext): void | Promise<void> {
    let rid: string | undefined;
    try {
      let frame = parseInwardFrame(text);
      rid = frame.rid;
      if (frame.kind === "file") frame = readLargeFrame(frame);
      // pi may have switched to another session since the frame was written.
      if (frame.session !== undefined && frame.session !== ctx.sessionManager.getSessionId()) {
        throw new FrameError("This pi has switched to another session.", rid);
      }
      const data = this.#act(frame, ctx);
      if (data instanceof Promise) {
        return data.then(
          (value: unknown) => this.#reply(frame.rid, value),
          (thrown: unknown) => this.#refuse(frame.rid, thrown),
        );
      }
      this.#reply(rid, data);
    } catch (thrown) {
      this.#refuse(thrown instanceof FrameError ? (thrown.rid ?? rid) : rid, thrown);
    }
  }

  #reply(rid: string, data: unknown): void {
    this.#outbound.send({ kind: "reply", rid, ok: true, data });
  }

  #act(frame: InwardFrame, ctx: ExtensionContext): unknown {
    switch (frame.kind) {
      case "hold":
        return this.#hold(frame, ctx);
      case "release":
        return this.#handlers.release(frame.deliveryIds, ctx);
      case "beforePrompt":
        return this.#handlers.beforePrompt(ctx);
      case "carry":
        return this.#handlers.carry(ctx, frame.deliveryId);
      case "drained":
        return this.#handlers.drained()?.then(() => ({})) ?? {};
      case "context":
        return this.#handlers.setContext(frame.context, ctx);
      case "watch":
        this.#handlers.watch(frame);
        return {};
      case "entries":
        return entriesAfter(ctx.sessionManager, frame.since);
      case "dialog": {
        const { requestId, method, title, reason } = frame;
        this.#dialogs.announce({ requestId, method, title, reason });
        return {};
      }
      case "notify":
        ctx.ui.notify(frame.text, "error");
        return {};
      case "configure":
        return this.#handlers.configure(frame.parts, frame.isForNext === true)?.then(() => ({})) ?? {};
      case "ask":
        return this.#handlers.ask(frame.about, frame.params, ctx);
      case "ping":
        return this.#handlers.ping(ctx);
      case "file":
        throw new FrameError("A file frame was not read.");
    }
  }

  /** An invalid push does not affect the others. */
  #hold({ pushes, handOver }: Extract<InwardFrame, { kind: "hold" }>, ctx: ExtensionContext): HoldReply {
    const refused: { deliveryId: string; why: string }[] = [];
    const taken = pushes.filter((push) => {
      const why = pushError(push);
      if (why !== undefined && isDeliveryId(push?.deliveryId)) refused.push({ deliveryId: push.deliveryId, why });
      return why === undefined;
    });
    const reply = this.#handlers.hold(taken, ctx, handOver);
    return refused.length === 0 ? reply : { ...reply, refused: [...refused, ...(reply.refused ?? [])] };
  }

  #refuse(rid: string | undefined, thrown: unknown): void {
    if (rid === undefined) this.#outbound.fault("inbound", thrown);
    else this.#outbound.send({ kind: "reply", rid, ok: false, error: messageOf(thrown).slice(0, 1_024) });
    if (!(thrown instanceof FrameError)) this.#outbound.fault("inbound", thrown);
  }
}

/** Number of newest entries reported. */
const maxIds = 10_000;

/** Returns the ids of this pi's entries after the given one, in order, and the leaf of its branch. */
function entriesAfter(
  session: Pick<ExtensionContext["sessionManager"], "getEntries" | "getLeafId">,
  since: string | undefined,
): EntriesReply {
  const entries = session.getEntries();
  const at = since === undefined ? -1 : entries.findLastIndex(({ id }) => id === since);
  const leafId = session.getLeafId();
  return {
    ids: entries
      .slice(at + 1)
      .slice(-maxIds)
      .map(({ id }) => id),
    ...(typeof leafId === "string" ? { leafId } : {}),
  };
}
