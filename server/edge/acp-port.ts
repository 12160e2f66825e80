import type { Follower, Place, Port, SessionNotification } from "../../acp/port.ts";
import { WireError } from "../../protocol/errors.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import type { NotificationParams } from "../../protocol/notifications.ts";
import type { Frame } from "../frames/frame.ts";
import type { Conversation } from "../rpc/dispatcher.ts";
import { wireErrorOf } from "./refusal.ts";

export interface AcpPortOptions {
  readonly conversation: Pick<Conversation, "call">;
  readonly answersDialogs: boolean;
}

interface Following {
  readonly follower: Follower;
  /** Until then, frames belong to an earlier subscription. */
  hasBegun: boolean;
}

/** The daemon, through the calls and notifications of one connection. */
export class AcpPort implements Port {
  readonly answersDialogs: boolean;
  readonly #conversation: Pick<Conversation, "call">;
  readonly #following = new Map<string, Following>();
  #isClosed = false;

  constructor({ conversation, answersDialogs }: AcpPortOptions) {
    this.#conversation = conversation;
    this.answersDialogs = answersDialogs;
  }

  async call<M extends MethodName>(method: M, params: Params<M>, signal?: AbortSignal): Promise<Result<M>> {
    signal?.throwIfAborted();
    if (this.#isClosed) throw new WireError("cancelled", "The connection has ended.");
    const answer = await this.#conversation.call(method, params, signal);
    signal?.throwIfAborted();
    if ("error" in answer) throw wireErrorOf(answer.error);
    return answer.result as Result<M>;
  }

  follow(sessionId: string, follower: Follower, place?: Place): () => void {
    const following: Following = { follower, hasBegun: false };
    this.#following.set(sessionId, following);
    void this.#subscribe(sessionId, following, place);
    return () => {
      if (this.#isClosed || this.#following.get(sessionId) !== following) return;
      this.#following.delete(sessionId);
      void this.#conversation.call("session/unsubscribe", { sessionId });
    };
  }

  /** Hands a notification to the follower of its session. */
  receive(frame: Frame): void {
    const { sessionId, bytes, seq, firstSeq = seq, isDelta } = frame;
    const following = this.#following.get(sessionId);
    if (following?.hasBegun !== true) return;
    const { follower } = following;
    let message: { readonly method: string; readonly params: unknown };
    try {
      message = JSON.parse(bytes.toString("utf8"));
    } catch {
      // Records of pi are passed on as they are.
      follower.gap({ from: firstSeq, to: seq, onlyDeltas: isDelta });
      return;
    }
    const { method: name, params } = message;
    if (name === "session/gap") {
      const { reason, ...gap } = params as NotificationParams<"session/gap">;
      // The follower began before the first number of the other log.
      if (reason !== "log_reset") follower.gap(gap);
      return;
    }
    follower.receive({ name, params } as SessionNotification);
    if (name !== "session/updated") return;
    const { session } = params as NotificationParams<"session/updated">;
    if (session.state === "closed") this.#end(sessionId, following, { kind: "session_closed" });
  }

  /** The connection has ended, and with it all subscriptions. */
  close(): void {
    this.#isClosed = true;
    this.#following.clear();
  }

  /** Frames of the new subscription come in a later turn of the event loop than its answer. */
  async #subscribe(sessionId: string, following: Following, place: Place | undefined): Promise<void> {
    // Both need `prompt`.
    const more = this.answersDialogs ? { dialogs: true, formerText: true } : {};
    const from = place ?? { catchUp: true };
    try {
      const { cursor, epoch } = await this.call("session/subscribe", { sessionId, ...more, ...from });
      if (this.#following.get(sessionId) !== following) return;
      const isSameLog = place?.epoch === undefined || place.epoch === epoch;
      following.hasBegun = true;
      following.follower.begin({ cursor: place === undefined ? cursor : isSameLog ? place.after : 0, epoch });
    } catch (error) {
      this.#end(sessionId, following, { kind: "failed", error });
    }
  }

  #end(sessionId: string, following: Following, end: Parameters<Follower["end"]>[0]): void {
    if (this.#following.get(sessionId) !== following) return;
    this.#following.delete(sessionId);
    following.follower.end(end);
  }
}
