import { connect, type SessionHandle } from "../../client/index.ts";
import { createAgentDir } from "../../provider/agent-dir.ts";
import { answer } from "../../provider/reply.ts";
import { startProvider } from "../../provider/server.ts";
import { Cleanup } from "../cleanup.ts";
import { scriptedEnvironment, startTemporaryDaemon, temporaryWorkspace } from "../demo/temporary-daemon.ts";
import { CommandError, reportOf } from "../errors.ts";
import { inSeconds } from "../format.ts";
import { lastLines } from "../log-file.ts";
import { oneLine, shorten } from "../text.ts";
import { bad, type Finding, good, skipped } from "./finding.ts";

export interface RoundTripOptions {
  /** An absolute path. */
  readonly pi: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** Called with the current step. */
  readonly progress: (text: string) => void;
}

const names = { extension: "extension", roundTrip: "round trip" } as const;
const spoken = "The doctor has received your prompt.";
const pushed = "The doctor has pushed this.";
const timeoutMs = 60_000;

/**
 * Starts a temporary daemon with the given pi and a provider on loopback, and checks that the helper extension loads
 * and that a prompt and a push reach the model and are answered. Needs no key and no network, and leaves nothing.
 */
export async function checkRoundTrip(options: RoundTripOptions): Promise<readonly Finding[]> {
  const cleanup = new Cleanup();
  const workspace = temporaryWorkspace("pi-rpcd-doctor-", cleanup);
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
  const startedAt = performance.now();
  const took = (): string => inSeconds(performance.now() - startedAt);
  let loaded: Finding | undefined;
  try {
    const provider = await startProvider({ otherwise: () => answer(spoken) });
    cleanup.add(() => provider.close());
    const agentDir = await createAgentDir({ provider, parentDir: workspace.root });
    const env = scriptedEnvironment(options.env, agentDir);
    options.progress("starting pi with the extension");
    await startTemporaryDaemon({ workspace, pi: options.pi, env, cleanup, signal });
    const client = await connect({ stateDir: workspace.stateDir, signal });
    cleanup.add(() => client.close());
    const session = await client.createSession({ cwd: workspace.cwd }, { signal });
    loaded = good(names.extension, `loads in pi, which was ready ${took()} after the daemon's start`);
    options.progress("asking a model on loopback");
    const received = await converse(session, signal);
    if (!provider.requests.some((request) => request.hasText(pushed))) {
      throw new CommandError("push_unseen", "the provider's log does not have the push that was reported as delivered");
    }
    await session.close({ signal });
    return [
      loaded,
      good(names.roundTrip, `prompt, answer and push (${received}) in ${took()}, without key or network`),
    ];
  } catch (error) {
    options.signal.throwIfAborted();
    const found = problem(error, workspace.logFile);
    const todo = "See the message; `pi-rpcd demo --keep` keeps the log and pi's session file for inspection.";
    if (loaded !== undefined) return [loaded, bad(names.roundTrip, found, todo)];
    const first =
      "Update pi, or choose another with --pi. If this package is new or changed, install it again: its helper extension may be broken.";
    return [bad(names.extension, found, first), skipped(names.roundTrip, "needs the extension")];
  } finally {
    await cleanup.run().catch(() => {});
  }
}

/** Sends a prompt and a push; returns the evidence of the delivery. */
async function converse(session: SessionHandle, signal: AbortSignal): Promise<string> {
  const text = await session.promptAndWait("Say something.", { signal });
  if (!text.includes(spoken)) throw new CommandError("wrong_answer", `the model's answer was "${shorten(text, 80)}"`);
  const { evidence } = await session.push({ customType: "doctor", content: pushed }, { signal }).delivered;
  return `delivered by ${evidence}`;
}

function problem(error: unknown, log: string): string {
  const { name, message, data } = reportOf(error);
  const { stderrTail } = (typeof data === "object" && data !== null ? data : {}) as { readonly stderrTail?: unknown };
  const said = typeof stderrTail === "string" && stderrTail.trim() !== "" ? ` Output of pi: ${stderrTail}` : "";
  const logged = name === "daemon_ended" ? ` The log ends with: ${lastLines(log, 3).join(" ")}` : "";
  return shorten(oneLine(`${message} (${name})${said}${logged}`), 600);
}
