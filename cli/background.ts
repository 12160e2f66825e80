import { on } from "node:events";
import { watch } from "node:fs";
import { resolve } from "node:path";
import { DaemonProcess } from "./daemon-process.ts";
import { type DaemonState, daemonState } from "./daemon-state.ts";
import { CommandError } from "./errors.ts";
import { defaultLogFile, LogFile, lastLines } from "./log-file.ts";
import { withoutScript } from "./npm.ts";
import { isLaunchAgent } from "./service/launchd.ts";
import { wakeService } from "./service/systemd.ts";
import type { DaemonAddress } from "./start-report.ts";
import { oneLine, shorten } from "./text.ts";

export interface BackgroundOptions {
  readonly stateDir: string;
  readonly port?: string | undefined;
  /** An absolute path. */
  readonly pi?: string | undefined;
  /** An absolute path. */
  readonly config?: string | undefined;
  readonly allowOrigins?: string | undefined;
  /** More options of `start`; paths are absolute. */
  readonly more?: readonly string[] | undefined;
  /** Whether a daemon has just ended for a restart: a service manager that started it also starts the next one. */
  readonly isRestart?: boolean | undefined;
  readonly logFile?: string | undefined;
  readonly logLevel?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

export type Background =
  | { readonly kind: "started"; readonly address: DaemonAddress; readonly log: string }
  | { readonly kind: "wasRunning"; readonly running: Extract<DaemonState, { kind: "running" }> };

/** Starting includes asking pi for its version and migrating the store. */
const startTimeoutMs = 90_000;
/** Another daemon that holds the directory is about to listen or to end. */
const otherTimeoutMs = 20_000;

/**
 * Ensures that a daemon answers on the state directory. Throws the reason if it did not start, and leaves no process or
 * file.
 */
export async function ensureDaemon(options: BackgroundOptions): Promise<Background> {
  const found = await daemonState(options.stateDir, options.signal);
  if (found.kind === "running") return { kind: "wasRunning", running: found };
  // systemd starts the daemon at a connection, and would hold the socket against another daemon.
  const isFollowed = options.isRestart === true && isLaunchAgent(options.stateDir, options.env);
  if (isFollowed || (options.logFile === undefined && (await wakeService(options)))) {
    const running = await otherDaemon(options);
    if (running !== undefined) return { kind: "wasRunning", running };
  }
  try {
    return await startInBackground(options);
  } catch (error) {
    if (!(error instanceof CommandError) || error.kind !== "daemon_already_running") throw error;
    const running = await otherDaemon(options);
    if (running === undefined) throw error;
    return { kind: "wasRunning", running };
  }
}

async function startInBackground(options: BackgroundOptions): Promise<Background> {
  const { stateDir, port, pi, config, allowOrigins, more, logLevel, signal } = options;
  const log = options.logFile ?? defaultLogFile(stateDir);
  // If the log cannot be written, the daemon does not start either, and its error is better.
  const file = LogFile.open(log);
  const logFile = file === undefined && options.logFile === undefined ? undefined : log;
  const env = withAbsolutePi(withoutScript(options.env));
  const daemon = new DaemonProcess({
    stateDir,
    logFile,
    logLevel,
    port,
    pi,
    config,
    allowOrigins,
    more,
    env,
    stderr: file?.descriptor ?? "ignore",
  });
  file?.close();
  try {
    const address = await unlessStopped(daemon, signal);
    daemon.release();
    return { kind: "started", address, log };
  } catch (error) {
    daemon.kill("SIGTERM");
    await daemon.exited;
    throw failure({ error, log, file });
  }
}

/** Rejects at its deadline or at the signal's abort; the caller then ends the daemon. */
async function unlessStopped(daemon: DaemonProcess, signal: AbortSignal): Promise<DaemonAddress> {
  const deadline = AbortSignal.timeout(startTimeoutMs);
  const stop = AbortSignal.any([signal, deadline]);
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const onStop = (): void => {
    const late = new CommandError("start_timeout", `The daemon did not listen within ${startTimeoutMs / 1_000} s.`);
    reject(signal.aborted ? signal.reason : late);
  };
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) onStop();
  try {
    return await Promise.race([daemon.listening, stopped]);
  } finally {
    stop.removeEventListener("abort", onStop);
  }
}

interface Failure {
  readonly error: unknown;
  readonly log: string;
  readonly file: LogFile | undefined;
}

/** A daemon that ended without an error report may have written the reason to its log. */
function failure({ error, log, file }: Failure): unknown {
  const isSilent = error instanceof CommandError && (error.kind === "daemon_ended" || error.kind === "start_timeout");
  if (!isSilent) {
    // Another daemon may already write to this file.
    const isHeld = error instanceof CommandError && error.kind === "daemon_already_running";
    if (!isHeld) file?.remove();
    return error;
  }
  const words = shorten(oneLine(lastLines(log, 5).join("\n")), 1_000);
  const said = words === "" ? `Its log is empty: ${log}` : `Its log, ${log}, ends with: ${words}`;
  return new CommandError(error.kind, `${error.message} ${said}`, { cause: error });
}

/** Waits for the daemon that holds the directory to answer; undefined if it does not. */
async function otherDaemon({
  stateDir,
  signal,
}: BackgroundOptions): Promise<Extract<DaemonState, { kind: "running" }> | undefined> {
  const deadline = AbortSignal.timeout(otherTimeoutMs);
  // The watch starts before the first check, so that no later write is missed.
  const watcher = watch(stateDir);
  const changes = on(watcher, "change", { signal: AbortSignal.any([signal, deadline]) });
  try {
    const now = await daemonState(stateDir, signal);
    if (now.kind === "running") return now;
    for await (const _ of changes) {
      const found = await daemonState(stateDir, signal);
      if (found.kind === "running") return found;
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (!deadline.aborted) throw error;
  } finally {
    watcher.close();
  }
  return undefined;
}

/** The daemon has another working directory than this process. */
function withAbsolutePi(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const pi = env["PI_RPCD_PI"];
  return pi === undefined || pi === "" ? env : { ...env, PI_RPCD_PI: resolve(pi) };
}
