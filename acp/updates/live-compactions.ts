import { randomUUID } from "node:crypto";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { isRecord } from "../../protocol/objects.ts";
import type { CompactionEnd, CompactionUpdates } from "./compactions.ts";

/** The compactions of a session as they happen. One runs at a time. */
export class LiveCompactions {
  readonly #updates: CompactionUpdates;
  /** Clock times at which those had ended that a replay has told. */
  readonly #told: number[];
  /** How many {@link missed} has told whose end has not come. */
  #retold = 0;
  /** When the last one ended. */
  #endedAt = Number.NEGATIVE_INFINITY;
  readonly #send: (update: SessionUpdate) => void;
  /** `told`: a replay has told the one whose events come now. */
  #open: { readonly id: string } | "told" | undefined;

  constructor(updates: CompactionUpdates, told: readonly number[], send: (update: SessionUpdate) => void) {
    this.#updates = updates;
    this.#told = [...told];
    this.#send = send;
  }

  started(at: number): void {
    this.abandon();
    if (this.#told.some((endedAt) => endedAt >= at)) {
      this.#open = "told";
      return;
    }
    this.#open = this.#begin();
  }

  #begin(): { readonly id: string } {
    const id = `compaction-${randomUUID()}`;
    this.#send(this.#updates.started(id));
    return { id };
  }

  /** Returns whether it was sent: it is not if a replay has told it. */
  ended({ result, aborted, errorMessage }: Readonly<Record<string, unknown>>, at: number): boolean {
    const isRetold = this.#retold > 0 && typeof this.#open !== "object";
    if (isRetold) this.#retold -= 1;
    if (this.#open === undefined && !isRetold) this.started(at);
    const open = this.#open;
    this.#open = undefined;
    if (typeof open !== "object") return false;
    this.#endedAt = at;
    this.#send(this.#updates.ended(open.id, endOf(result, aborted === true, errorMessage)));
    return true;
  }

  /** Tells one from its entry, where events are missing. Returns whether it was sent: it is not if its end came before. */
  missed(result: object, writtenAt: number): boolean {
    if (writtenAt <= this.#endedAt) return false;
    if (typeof this.#open !== "object") this.#open = this.#begin();
    const isSent = this.ended({ result }, writtenAt);
    this.#told.push(writtenAt);
    this.#retold += 1;
    return isSent;
  }

  /** The end of the running one was lost, or never comes. */
  abandon(): void {
    const open = this.#open;
    this.#open = undefined;
    if (typeof open !== "object") return;
    this.#send(this.#updates.ended(open.id, { kind: "failed", error: "The compaction did not end." }));
  }
}

function endOf(result: unknown, isCancelled: boolean, error: unknown): CompactionEnd {
  if (isRecord(result)) {
    return { kind: "completed", summary: typeof result["summary"] === "string" ? result["summary"] : "" };
  }
  if (isCancelled) return { kind: "cancelled" };
  return { kind: "failed", error: typeof error === "string" ? error : "The compaction failed." };
}
