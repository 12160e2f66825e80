import { WireError } from "../protocol/errors.ts";
import type { PromptResult } from "../protocol/prompt.ts";
import type { CallOptions, DaemonPeer } from "./daemon-peer.ts";
import { RunInterruptedError, type SettledRun } from "./local-errors.ts";

/** The answer to a prompt, with a method that waits for its run. */
export type PromptCall = Promise<PromptResult> & {
  /**
   * Resolves when the prompt's run has ended, with any outcome; survives lost connections and restarts of the daemon.
   * `signal` ends the wait, not the run. Rejects with `RunInterruptedError` if the session was closed.
   */
  settled(options?: CallOptions): Promise<SettledRun>;
};

/** How long one `prompt/wait` runs before it is repeated. */
const waitTimeoutMs = 60_000;

export function promptCall(peer: DaemonPeer, sessionId: string, taken: Promise<PromptResult>): PromptCall {
  return Object.assign(taken, {
    settled: async (options: CallOptions = {}) => settledRun(await untilSettled(peer, sessionId, await taken, options)),
  });
}

async function untilSettled(
  peer: DaemonPeer,
  sessionId: string,
  { promptId, ...taken }: PromptResult,
  options: CallOptions,
): Promise<PromptResult> {
  if (taken.disposition === "handled") return { promptId, ...taken };
  for (;;) {
    try {
      return await peer.call("prompt/wait", { promptId, timeoutMs: waitTimeoutMs }, options);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      if (error.kind === "session_closed" || error.kind === "prompt_not_found")
        throw new RunInterruptedError(sessionId);
      if (error.kind !== "deadline_exceeded") throw error;
    }
  }
}

function settledRun({ promptId, disposition, error, text = "", state, ...rest }: PromptResult): SettledRun {
  const { runId, outcome, stopReason, textTruncated } = rest;
  return {
    promptId,
    disposition,
    state: state ?? "handled",
    text,
    ...(runId !== undefined && { runId }),
    ...(outcome !== undefined && { outcome }),
    ...(textTruncated !== undefined && { textTruncated }),
    ...(stopReason !== undefined && { stopReason }),
    ...(error !== undefined && { errorMessage: error }),
  };
}
