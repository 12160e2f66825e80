import { finished } from "node:stream/promises";
import { stateDirectory } from "../client/discovery.ts";
import { openWebSocket } from "../client/node-socket.ts";
import { reachDaemon } from "../client/reach.ts";
import { closeTimeoutMs } from "../client/socket.ts";
import { ensureDaemon } from "./background.ts";
import { Bridge, type BridgeEnd } from "./connect/bridge.ts";
import { framings } from "./connect/framing.ts";
import { CommandError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";

/** The daemon's limit of one frame. */
const maxMessageBytes = 16 * 1024 * 1024;
/** The limit of a frame of the daemon: pi's records are not split. */
const maxFrameBytes = 128 * 1024 * 1024;
const openTimeoutMs = 10_000;
const lingerMs = 30_000;

/** Forwards JSON-RPC between stdin, stdout and the daemon. */
export async function connect({ options, output, env, signal }: Invocation<"connect">): Promise<number> {
  const stateDir = stateDirectory(options["state-dir"], env);
  if (options["no-start"] !== true) await ensureDaemon({ stateDir, env, signal });
  const bridge = new Bridge({
    framing: framings[options.framing ?? "jsonl"],
    input: process.stdin,
    output: process.stdout,
    maxMessageBytes,
    lingerMs,
    signal,
  });
  const socket = await reachDaemon({
    options: { stateDir },
    signal,
    attempt: ({ address, token }) => {
      const either = AbortSignal.any([signal, AbortSignal.timeout(openTimeoutMs)]);
      return openWebSocket({ address, token, signal: either, maxFrameBytes }, bridge);
    },
  });
  try {
    const end = await bridge.carry(socket);
    const problem = problemOf(end);
    if (problem !== undefined) output.error(problem);
    return problem === undefined ? exitCodes.done : problem.exitCode;
  } finally {
    AbortSignal.timeout(closeTimeoutMs).addEventListener("abort", () => socket.terminate(), { once: true });
    socket.close(1000);
    process.stdout.end();
    // A slow reader of stdout still gets everything received.
    await finished(process.stdout, { readable: false, signal }).catch(() => {});
  }
}

function problemOf(end: BridgeEnd): CommandError | undefined {
  switch (end.by) {
    case "input":
      if (!end.isWhole) return new CommandError("input_cut_off", "The input ended inside a message.");
      if (!end.unanswered) return undefined;
      return new CommandError(
        "unanswered",
        `The input ended, and not all answers arrived within ${lingerMs / 1_000} s.`,
        {
          exitCode: exitCodes.deadline,
        },
      );
    case "framing":
      return new CommandError("framing_broken", end.error.message);
    case "daemon": {
      const { code, reason } = end.end;
      return new CommandError(
        "connection_lost",
        `The daemon ended the connection (code ${code}${reason === "" ? "" : `, ${reason}`}).`,
      );
    }
  }
}
