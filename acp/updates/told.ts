import { createHash } from "node:crypto";
import type { CalledTool } from "./tools.ts";
import type { UsageTally } from "./usage.ts";

/** What a replay has told. Live updates leave it out, and go on from it. */
export interface Told {
  /** {@link messageIdOf} of pi's messages. */
  readonly messages: ReadonlySet<string>;
  /**
   * Extensions' messages: their content, and the clock times of their entries. An entry is later than its message, by an
   * unknown time, so that the times alone do not tell which message it is.
   */
  readonly customs: readonly { readonly key: string; readonly atMs: number }[];
  /** pi's ids of the tool calls that have ended. */
  readonly endedTools: ReadonlySet<string>;
  /** By pi's id: the tool calls of the last answer without a result. */
  readonly openTools: ReadonlyMap<string, ToldTool>;
  /** Clock times at which compactions had ended. */
  readonly compactions: readonly number[];
  readonly ids: ToolCallIds;
  readonly usage: UsageTally;
  readonly title: string | undefined;
  /** The clock time of the last entry that was known; NaN if there is none. */
  readonly lastAtMs: number;
}

export interface ToldTool extends CalledTool {
  readonly toolCallId: string;
  /** {@link messageIdOf} of the answer that calls it. */
  readonly answerId: string;
  /** No run was known to be on. It can have been, if the daemon had not heard of it or it began meanwhile. */
  readonly hasFailed: boolean;
}

/** The key of an extension's message in {@link Told}: what it says, or a hash of it. */
export function customKey({ customType, content }: Readonly<Record<string, unknown>>): string {
  const text = JSON.stringify([customType, content ?? []]);
  return text.length <= 100 ? text : createHash("sha256").update(text).digest("base64");
}

/** Ids of tool calls, unique in the session: some providers count from the beginning in each answer. */
export class ToolCallIds {
  readonly #counts = new Map<string, number>();

  next(piId: string): string {
    const count = (this.#counts.get(piId) ?? 0) + 1;
    this.#counts.set(piId, count);
    return count === 1 ? piId : `${piId}#${count}`;
  }
}
