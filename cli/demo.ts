import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import {
  type Client,
  connect,
  type Delivery,
  type DeliveryHandle,
  isAgentSettled,
  isTextDelta,
  isToolExecutionEnd,
  isToolExecutionStart,
  type SessionHandle,
  type SettledRun,
} from "../client/index.ts";
import { createAgentDir } from "../provider/agent-dir.ts";
import type { LogEntry } from "../provider/log.ts";
import { answer, call, delay, delayed, type Part, type Reply } from "../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../provider/server.ts";
import { Cleanup } from "./cleanup.ts";
import { checkReceipt } from "./demo/checks.ts";
import { type DemoDaemon, survivorsOf } from "./demo/daemon.ts";
import { DemoPrinter } from "./demo/demo-printer.ts";
import { scriptedEnvironment, startTemporaryDaemon } from "./demo/temporary-daemon.ts";
import { createWorkspace, type Workspace } from "./demo/workspace.ts";
import { CommandError, InterruptedError, reportOf } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { inSeconds } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { lastLines } from "./log-file.ts";
import { waitOutcome } from "./receipt.ts";
import { toolLine } from "./run-printer.ts";
import { shorten } from "./text.ts";

type Demo = Invocation<"demo">;

const timeoutMs = 60_000;
/** Long enough to show that `delivered` waits for the provider. */
const acceptsAfterMs = 300;
const wordDelayMs = 25;
const question = "Run the slow check, and tell me how it went.";
const slowTool = "sleep 2 && echo '42 of 42 checks passed'";

/**
 * Runs the main scenario on real pi: a push into a running agent, with its receipt compared with the provider's log.
 */
export async function demo(invocation: Demo): Promise<number> {
  const { options, output, signal } = invocation;
  const printer = new DemoPrinter(output);
  const workspace = createWorkspace("pi-rpcd-demo-");
  const cleanup = new Cleanup();
  if (options.keep !== true) {
    // Also when this process is ended early.
    process.once("exit", workspace.remove);
    cleanup.add(() => {
      workspace.remove();
      process.removeListener("exit", workspace.remove);
    });
  }
  try {
    const pids = await play({ invocation, printer, workspace, cleanup });
    await cleanup.run();
    const left = survivorsOf(pids);
    if (left !== undefined) throw new CommandError("left_behind", `${left} still runs after the shutdown.`);
    const kept = options.keep === true ? `; kept: ${workspace.root}` : ", no process and no file was left";
    printer.end(`${output.paint("green", "All checks passed.")} ${inSeconds(printer.elapsedMs)}${kept}.`, {
      ok: true,
      ...(options.keep === true && { kept: workspace.root }),
    });
    return exitCodes.done;
  } catch (error) {
    printer.endOfText();
    const log = lastLines(workspace.logFile, 8).map((line) => shorten(line, 400));
    await cleanup.run().catch(() => {});
    if (error instanceof InterruptedError || signal.aborted) throw signal.reason;
    throw failure(error, { log, printer, invocation, workspace });
  }
}

interface DemoContext {
  readonly invocation: Demo;
  readonly printer: DemoPrinter;
  readonly workspace: Workspace;
  readonly cleanup: Cleanup;
}

/** Resolves with the processes that must be gone after the shutdown. */
async function play(stage: DemoContext): Promise<readonly (number | undefined)[]> {
  const { invocation, printer, workspace, cleanup } = stage;
  printer.title("pi-rpcd demo", ": real pi, a scripted model on loopback, no key, no network");
  const broken = new AbortController();
  const late = setTimeout(
    () => broken.abort(new Error(`The demo did not end within ${timeoutMs / 1_000} s.`)),
    timeoutMs,
  );
  cleanup.add(() => clearTimeout(late));
  const signal = AbortSignal.any([invocation.signal, broken.signal]);

  const build = `318-${randomBytes(3).toString("hex")}`;
  const text = `The background job has finished: build ${build} is green.`;
  const provider = await startProvider({ script: [firstReply], otherwise: secondReply });
  cleanup.add(() => provider.close());
  const daemon = await startDaemon(stage, { provider, signal });
  void daemon.process.exited.then(() => broken.abort(new Error("The daemon ended during the demo.")));

  const client = await connect({ stateDir: workspace.stateDir, signal });
  cleanup.add(() => client.close());
  const session = await createSession(client, stage, signal);
  const pids = [daemon.process.pid, session.info?.pid];
  const { delivery, run } = await pushIntoRun(session, { printer, text, broken, signal });

  printer.gap();
  const evidence = { delivery, text, requests: provider.requests, acceptsAfterMs, answer: run.text, expected: build };
  const checks = checkReceipt(evidence);
  for (const check of checks) printer.check(check);
  const failed = checks.filter(({ holds }) => !holds).map(({ name, found }) => `the check "${name}" failed (${found})`);
  if (failed.length > 0) throw new CommandError("check_failed", failed.join("; "));
  await session.close({ signal });
  return pids;
}

interface DaemonSetup {
  readonly provider: ScriptedProvider;
  readonly signal: AbortSignal;
}

async function startDaemon(
  { invocation, printer, workspace, cleanup }: DemoContext,
  setup: DaemonSetup,
): Promise<DemoDaemon> {
  const { provider, signal } = setup;
  const agentDir = await createAgentDir({ provider, parentDir: workspace.root });
  const { pi } = invocation.options;
  const daemon = await startTemporaryDaemon({
    workspace,
    pi: pi === undefined ? undefined : resolve(pi),
    env: scriptedEnvironment(invocation.env, agentDir),
    cleanup,
    signal,
  });
  const { pid, socketPath } = await daemon.process.listening;
  printer.happened("provider", `${provider.url}, in this process`, { url: provider.url });
  printer.happened("daemon", `process ${pid}, socket ${socketPath}`, { pid, socketPath });
  return daemon;
}

async function createSession(
  client: Client,
  { printer, workspace }: DemoContext,
  signal: AbortSignal,
): Promise<SessionHandle> {
  const { pi } = await client.info({ signal });
  const session = await client.createSession({ cwd: workspace.cwd }, { signal });
  const { pid, model } = session.info ?? {};
  const modelName = `${model?.provider}/${model?.id}`;
  const facts = { sessionId: session.id, pid, model, pi };
  printer.happened("session", `pi ${pi.version} (${pi.source}) as process ${pid}, model ${modelName}`, facts);
  return session;
}

interface PushSetup {
  readonly printer: DemoPrinter;
  readonly text: string;
  /** Ends the output with the error. */
  readonly broken: AbortController;
  readonly signal: AbortSignal;
}

async function pushIntoRun(
  session: SessionHandle,
  { printer, text, broken, signal }: PushSetup,
): Promise<{ readonly delivery: Delivery; readonly run: SettledRun }> {
  const fail = (error: unknown): void => broken.abort(error);
  const events = session.events({ signal });
  await events.ready;
  printer.happened("prompt", question, { text: question });
  const run = session.runUntilSettled(question, { signal });
  run.catch(fail);
  let receipt: Promise<Delivery> | undefined;
  for await (const { event } of events) {
    if (isTextDelta(event)) printer.said(event.assistantMessageEvent.delta);
    else if (event.type === "message_end") printer.endOfText();
    else if (isToolExecutionStart(event)) {
      printer.happened("tool", `${toolLine(event.toolName, event.args)} has started`, { phase: "started" });
      if (receipt !== undefined) continue;
      const push = session.push({ customType: "background-result", content: text }, { signal });
      printer.happened("push", `"${text}", while the tool runs`, { deliveryId: push.id, text });
      receipt = follow(push, printer, signal);
      receipt.catch(fail);
    } else if (isToolExecutionEnd(event)) {
      printer.happened("tool", `[${event.toolName}] ${event.isError ? "has failed" : "has ended"}`, { phase: "ended" });
    } else if (isAgentSettled(event)) break;
  }
  const settled = await run;
  if (receipt === undefined) {
    throw new CommandError("no_tool_call", `pi ran no tool: ${settled.errorMessage ?? `it said "${settled.text}"`}`);
  }
  return { delivery: await receipt, run: settled };
}

async function follow(push: DeliveryHandle, printer: DemoPrinter, signal: AbortSignal): Promise<Delivery> {
  for await (const delivery of push.updates({ signal })) {
    printer.receipt(delivery);
    if (waitOutcome(delivery, "answered") !== "open") break;
  }
  return push.get({ signal });
}

function firstReply(): Reply {
  return answer(...spoken("I start the check now."), call("bash", { command: slowTool }));
}

/** The model's answer to the tool's result. It names the build only if its request has the push. */
function secondReply(request: LogEntry): Reply {
  const texts = request.messages.flatMap((message) => message.texts).join("\n");
  const build = /build (\S+) is green/.exec(texts)?.[1];
  const news = build === undefined ? "I have no other news." : `Meanwhile I was told that build ${build} is green.`;
  return delayed(delay(acceptsAfterMs), answer(...spoken(`The check went well: 42 of 42. ${news}`)));
}

function spoken(text: string): readonly Part[] {
  const pieces = text.split(/(?<=\s)/).map((word): Part => ({ kind: "text", text: word }));
  return pieces.flatMap((piece) => [piece, delay(wordDelayMs)]);
}

interface Failing {
  readonly log: readonly string[];
  readonly printer: DemoPrinter;
  readonly invocation: Demo;
  readonly workspace: Workspace;
}

/** The error and what to do, in one paragraph. */
function failure(error: unknown, { log, printer, invocation: { options, output }, workspace }: Failing): CommandError {
  const { name, message } = reportOf(error);
  const end = /[.!?)]$/.test(message) ? "" : ".";
  const next =
    options.keep === true
      ? `Everything is kept in ${workspace.root}: the daemon's log in state/daemon.log, and pi's session files.`
      : "Run it again with --keep to keep the daemon's log and pi's session file, or with --json to print the facts of each step.";
  if (!output.json && log.length > 0) {
    for (const line of ["", "The daemon's log ends with:", ...log.map((one) => `  ${one}`), ""]) output.aside(line);
  }
  return new CommandError(name, `The demo failed after ${inSeconds(printer.elapsedMs)}: ${message}${end} ${next}`, {
    data: { log },
    cause: error,
  });
}
