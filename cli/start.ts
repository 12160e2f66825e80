import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { stateDirectory } from "../client/discovery.ts";
import { certificateProblem } from "../protocol/daemon-file.ts";
import type { Daemon } from "../server/daemon.ts";
import { type Background, ensureDaemon } from "./background.ts";
import { lackingNote } from "./credentials.ts";
import { type DaemonState, daemonState } from "./daemon-state.ts";
import { endDaemon } from "./end-daemon.ts";
import { CommandError, reportOf } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { defaultLogFile } from "./log-file.ts";
import { readableLines } from "./log-line.ts";
import { withoutScript } from "./npm.ts";
import type { Output } from "./output.ts";
import { ServiceNotifier, withoutService } from "./service/notify.ts";
import { reportToStarter } from "./start-report.ts";
import { origins, port } from "./values.ts";
import { olderDaemon } from "./version-skew.ts";

type Start = Invocation<"start">;

const restartTimeoutMs = 60_000;

/** Starts the daemon in the background, or runs it in the foreground. */
export async function start(invocation: Start): Promise<number> {
  const { options, output, env } = invocation;
  if (options.port !== undefined) port(options.port, { option: "port", command: "start" });
  originsOf(options);
  const { noteMisspelt } = await import("./misspelt-variables.ts");
  noteMisspelt(env, output);
  return options.foreground === true ? inForeground(invocation) : inBackground(invocation);
}

function originsOf({ "allow-origins": given }: Start["options"]): readonly string[] {
  return given === undefined ? [] : origins(given, { option: "allow-origins", command: "start" });
}

/** The options for listening outside the loopback interface. */
function listenOptions(options: Start["options"]): Readonly<Record<string, string | undefined>> {
  const { listen, "tls-cert": cert, "tls-key": key, "allow-hosts": hosts } = options;
  return {
    listen,
    "tls-cert": cert === undefined ? undefined : resolve(cert),
    "tls-key": key === undefined ? undefined : resolve(key),
    "allow-hosts": hosts,
  };
}

async function inBackground({ options, output, env, signal }: Start): Promise<number> {
  const stateDir = stateDirectory(options["state-dir"], env);
  if (options.restart === true) await noteRuns({ stateDir, output, signal });
  let isRestart = false;
  if (options.restart === true || (await wantsRestart({ stateDir, output, signal }))) {
    const ended = await endDaemon(stateDir, restartTimeoutMs, signal, "restart");
    isRestart = ended.kind === "ended" && ended.by === "SIGUSR2";
  }
  const { port: asked, pi, config, "log-file": logFile, "log-level": logLevel } = options;
  const background = await ensureDaemon({
    stateDir,
    isRestart,
    port: asked,
    pi: pi === undefined ? undefined : resolve(pi),
    config: config === undefined ? undefined : resolve(config),
    logFile: logFile === undefined ? undefined : resolve(logFile),
    logLevel,
    allowOrigins: options["allow-origins"],
    more: Object.entries(listenOptions(options)).flatMap(([name, text]) =>
      text === undefined ? [] : [`--${name}=${text}`],
    ),
    env,
    signal,
  });
  const address = background.kind === "started" ? background.address : background.running.file;
  const { pid, version, url, socketPath, tlsUrl } = address;
  const log = background.kind === "started" ? background.log : defaultLogFile(stateDir);
  const started = background.kind === "started";
  const { takeExit } = await import("../server/previous-exit.ts");
  const former = started ? takeExit(stateDir, env) : undefined;
  if (output.json) {
    output.document({ started, pid, version, url, socketPath, tlsUrl, stateDir, log });
  } else {
    output.print(
      started
        ? `pi-rpcd ${version} started (process ${pid}).`
        : `pi-rpcd ${version} is already running (process ${pid}).`,
    );
    output.print(`  ${output.paint("dim", "url    ")} ${url}`);
    if (tlsUrl !== undefined) output.print(`  ${output.paint("dim", "https  ")} ${tlsUrl}`);
    output.print(`  ${output.paint("dim", "socket ")} ${socketPath}`);
    output.print(`  ${output.paint("dim", "log    ")} ${log}`);
  }
  if (former !== undefined)
    output.note("former_daemon_ended", `${new Date(former.at).toISOString()}: ${former.message}`);
  const invalid = certificateProblem(address);
  if (invalid !== undefined) output.note("certificate_invalid", invalid);
  const kept = keptOf(background, options);
  if (kept !== undefined) output.note("running_daemon_keeps_its_own", `${kept} Stop it first: pi-rpcd stop`);
  const lacking = background.kind === "started" ? undefined : lackingNote(background.running.info, env);
  if (lacking !== undefined) output.note("key_not_in_daemon", lacking);
  return exitCodes.done;
}

/** The options that have no effect because the daemon already runs with others. */
function keptOf(background: Background, { port: asked, pi }: Start["options"]): string | undefined {
  if (background.kind === "started") return undefined;
  const { file, info } = background.running;
  const kept: string[] = [];
  if (asked !== undefined && Number(asked) !== 0 && Number(asked) !== Number(new URL(file.url).port)) {
    kept.push(`listens at ${file.url}`);
  }
  if (pi !== undefined && real(pi) !== real(info.pi.path)) kept.push(`uses ${info.pi.path} (pi ${info.pi.version})`);
  return kept.length === 0 ? undefined : `The running daemon has other options: it ${kept.join(" and ")}.`;
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

function openLog<T>(open: () => T, file: string | undefined): T {
  try {
    return open();
  } catch (cause) {
    throw new CommandError("log_unusable", `The log ${file} cannot be written: ${reportOf(cause).message}`, { cause });
  }
}

async function inForeground({ options, output, env, signal }: Start): Promise<number> {
  let daemon: Daemon | undefined;
  let notifier: ServiceNotifier | undefined;
  let isRestartWanted = false;
  const restart = (): void => {
    isRestartWanted = true;
    if (daemon === undefined) return;
    notifier?.stopping();
    void daemon.restart();
  };
  // From the first moment on: without a listener it kills the process.
  process.on("SIGUSR2", restart);
  try {
    const [{ startDaemon }, { createCallLog, createLog }, { configure }, { createValidator }] = await Promise.all([
      import("../server/daemon.ts"),
      import("../server/log.ts"),
      import("../server/configuration/configuration.ts"),
      import("../protocol/validation.ts"),
    ]);
    const { pi, port: asked } = options;
    const configuration = configure(
      { file: options.config, env, options: { logLevel: options["log-level"], logFile: options["log-file"] } },
      createValidator(),
    );
    const { logLevel: level, logFile } = configuration.values;
    const log = openLog(() => createLog({ level, file: logFile, lines: readableLines(output) }), logFile);
    // Node prints the error to stderr, which is not always kept in the background.
    process.on("uncaughtExceptionMonitor", (error) => log.fatal({ err: error }, "the daemon crashed"));
    daemon = await startDaemon({
      stateDir: stateDirectory(options["state-dir"], env),
      port: asked === undefined ? undefined : Number(asked),
      pi: pi === undefined ? undefined : resolve(pi),
      config: options.config,
      ...(options["allow-origins"] !== undefined && { allowedOrigins: originsOf(options) }),
      env: withoutService(withoutScript(env)),
      settings: {
        listen: options.listen,
        tlsCert: options["tls-cert"],
        tlsKey: options["tls-key"],
        allowedHosts: options["allow-hosts"]?.split(",").map((host) => host.trim()),
      },
      log,
      calls: logFile === undefined ? undefined : createCallLog(logFile),
    });
    notifier = new ServiceNotifier(env, (error) => log.warn({ err: error }, "systemd-notify failed"));
    const running = daemon;
    const stop = (): void => {
      notifier?.stopping();
      log.info({ why: reportOf(signal.reason).message }, "ending");
      void running.stop();
    };
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const { token: _secret, protocol: _same, ...address } = daemon.file;
    const { pid, version, url, socketPath, tlsUrl } = address;
    const at = [url, ...(tlsUrl === undefined ? [] : [tlsUrl]), socketPath].join(" and ");
    if (output.json) output.document({ started: true, ...address, stateDir: daemon.stateDir, log: logFile ?? null });
    else output.print(`pi-rpcd ${version} (process ${pid}) listens at ${at}. Ctrl-C ends it.`);
    notifier.ready();
    await reportToStarter({ kind: "listening", address });
    if (isRestartWanted) restart();
    const end = await daemon.closed;
    if (end === "restarting") return exitCodes.restarting;
    if (end === "stopped") return exitCodes.done;
    const stateDir = stateDirectory(options["state-dir"], env);
    const message = `The state directory ${stateDir} was removed or replaced by another while its daemon ran; that daemon has ended.`;
    const { storeExit } = await import("../server/previous-exit.ts");
    // Its log is lost as well.
    if (logFile?.startsWith(`${stateDir}/`) === true) storeExit(stateDir, env, { at: Date.now(), message });
    throw new CommandError("state_directory_lost", message);
  } catch (error) {
    await reportToStarter({ kind: "failed", error: reportOf(error) });
    throw error;
  }
}

/** Says what a restart does to active runs. */
async function noteRuns({ stateDir, output, signal }: RestartOffer): Promise<void> {
  const found = await daemonState(stateDir, signal).catch(() => undefined);
  const running = found?.kind === "running" ? (found.info.sessions["running"] ?? 0) : 0;
  if (running === 0) return;
  const runs = running === 1 ? "1 run is active" : `${running} runs are active`;
  const then = continues(found)
    ? `The next daemon continues ${running === 1 ? "it" : "them"}. Accepted pushes are kept.`
    : "The daemon waits a few seconds, then interrupts the remaining runs. Accepted pushes are kept.";
  output.note("restarting", `${runs}. ${then}`);
}

/** Whether runs survive a restart of the daemon. */
function continues(found: DaemonState | undefined): boolean {
  return found?.kind === "running" && found.info.liveRestore?.available === true;
}

interface RestartOffer {
  readonly stateDir: string;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** Asks, on a terminal, whether to restart a daemon that is older than this command line. */
async function wantsRestart({ stateDir, output, signal }: RestartOffer): Promise<boolean> {
  const found = await daemonState(stateDir, signal).catch(() => undefined);
  const older = found?.kind === "running" ? olderDaemon(found.info) : undefined;
  if (older === undefined || found?.kind !== "running") return false;
  output.note("daemon_older", older);
  if (output.json || !output.isTerminal || process.stdin.isTTY !== true) return false;
  const running = found.info.sessions["running"] ?? 0;
  const cost =
    running === 0 || continues(found) ? "" : ` ${running} ${running === 1 ? "run" : "runs"} would be interrupted.`;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(?:es)?$/i.test((await asking.question(`Restart it now?${cost} [y/N] `, { signal })).trim());
  } finally {
    asking.close();
  }
}
