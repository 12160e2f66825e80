import { type ChildProcess, spawn } from "node:child_process";
import { extname, join } from "node:path";
import { CommandError, type ErrorReport } from "./errors.ts";
import { type DaemonAddress, startReport } from "./start-report.ts";

export interface DaemonProcessOptions {
  readonly stateDir: string;
  readonly logFile: string | undefined;
  readonly logLevel?: string | undefined;
  readonly port?: string | undefined;
  readonly pi?: string | undefined;
  readonly config?: string | undefined;
  readonly allowOrigins?: string | undefined;
  /** More options of `start`. */
  readonly more?: readonly string[] | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** The file descriptor of its stderr, in addition to the log. */
  readonly stderr: number | "ignore";
}

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The error that the daemon reported when it did not start. */
class DaemonStartError extends CommandError {
  constructor({ name, message, code, data }: ErrorReport) {
    super(name, message, { data: code === undefined ? data : { ...(data as object), code } });
  }
}

/**
 * With a small new-space the daemon, whose garbage is short-lived, uses a quarter less memory under load, and a request
 * takes 5 % longer. Node marks node:sqlite as experimental. SIGUSR1 would open Node's inspector to all users of the
 * machine.
 */
export const nodeFlags: readonly string[] = [
  "--max-semi-space-size=1",
  "--disable-warning=ExperimentalWarning",
  "--disable-sigusr1",
];

/** A daemon started by this process: the same program with `start --foreground`, in its own process session. */
export class DaemonProcess {
  /** Resolves with how it ended. */
  readonly exited: Promise<ProcessEnd>;
  /**
   * Rejects with a `DaemonStartError` if it could not start, or with `daemon_ended` if it ended without a report. Never
   * unhandled.
   */
  readonly listening: Promise<DaemonAddress>;
  readonly #child: ChildProcess;

  constructor({
    stateDir,
    logFile,
    logLevel,
    port,
    pi,
    config,
    allowOrigins,
    more,
    env,
    stderr,
  }: DaemonProcessOptions) {
    const args = ["start", "--foreground", "--state-dir", stateDir];
    if (logFile !== undefined) args.push("--log-file", logFile);
    if (logLevel !== undefined) args.push("--log-level", logLevel);
    if (port !== undefined) args.push("--port", port);
    if (pi !== undefined) args.push("--pi", pi);
    if (config !== undefined) args.push("--config", config);
    if (allowOrigins !== undefined) args.push("--allow-origins", allowOrigins);
    if (more !== undefined) args.push(...more);
    this.#child = spawn(process.execPath, [...nodeFlags, mainFile(), ...args], {
      // Its own process session: no terminal can end it, and no Ctrl-C reaches it.
      detached: true,
      cwd: "/",
      env,
      stdio: ["ignore", "ignore", stderr, "ipc"],
    });
    this.exited = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => resolve({ code, signal }));
      this.#child.once("error", () => resolve({ code: null, signal: null }));
    });
    this.listening = this.#awaitReport();
    this.listening.catch(() => {});
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Has no effect after it has ended. */
  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Lets it continue without this process. */
  release(): void {
    if (this.#child.connected) this.#child.disconnect();
    this.#child.unref();
  }

  #awaitReport(): Promise<DaemonAddress> {
    return new Promise((resolve, reject) => {
      this.#child.on("message", (message) => {
        const report = startReport(message);
        if (report?.kind === "listening") resolve(report.address);
        else if (report?.kind === "failed") reject(new DaemonStartError(report.error));
      });
      this.#child.once("error", (cause) => {
        reject(
          new CommandError("start_failed", `${process.execPath} could not be started: ${cause.message}`, { cause }),
        );
      });
      // Its last report can arrive after its exit; the channel closes after that.
      this.#child.once("close", (code: number | null, signal: string | null) => {
        const how = signal === null ? `with code ${code}` : `by ${signal}`;
        reject(new CommandError("daemon_ended", `The daemon ended ${how} before it listened.`));
      });
    });
  }
}

/** This program: TypeScript in a checkout, JavaScript in the published package. */
function mainFile(): string {
  return join(import.meta.dirname, `main${extname(import.meta.filename)}`);
}
