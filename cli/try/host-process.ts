import { type ChildProcess, spawn } from "node:child_process";
import { extname, join } from "node:path";
import { CommandError, type ErrorReport } from "../errors.ts";

/** What the host has opened. */
export interface Stage {
  /** The temporary directory with all files. */
  readonly root: string;
  readonly stateDir: string;
  readonly sessionId: string;
  /** The processes that must end with the host. */
  readonly pids: readonly number[];
}

/** A message from the host to its parent process, over Node's IPC channel. */
export type HostReport =
  | { readonly kind: "open"; readonly stage: Stage }
  | { readonly kind: "failed"; readonly error: ErrorReport };

const hostFile = join(import.meta.dirname, `host${extname(import.meta.filename)}`);

/**
 * The process that runs everything except the terminal. It has its own process session, and ends when this process has
 * ended for any reason, so that nothing is left when the terminal is closed or this process is killed.
 */
export class HostProcess {
  readonly pid: number | undefined;
  /** Rejects with the host's error, or if it ended without a report. Never unhandled. */
  readonly open: Promise<Stage>;
  /** Resolves when it has ended. */
  readonly exited: Promise<void>;
  readonly #child: ChildProcess;

  constructor({ pi, env }: { readonly pi: string | undefined; readonly env: NodeJS.ProcessEnv }) {
    const args = ["--disable-warning=ExperimentalWarning", hostFile, ...(pi === undefined ? [] : [pi])];
    this.#child = spawn(process.execPath, args, { detached: true, env, stdio: ["ignore", "ignore", "ignore", "ipc"] });
    this.pid = this.#child.pid;
    this.exited = new Promise((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.once("error", () => resolve());
    });
    this.open = this.#awaitReport();
    this.open.catch(() => {});
  }

  /** Lets it end, and resolves when it has removed everything and ended. */
  async end(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.exited;
  }

  #awaitReport(): Promise<Stage> {
    const { promise, resolve, reject } = Promise.withResolvers<Stage>();
    this.#child.on("message", (report: HostReport) => {
      if (report.kind === "open") resolve(report.stage);
      else reject(new CommandError(report.error.name, report.error.message, { data: report.error.data }));
    });
    this.#child.once("error", (cause) => reject(new CommandError("start_failed", cause.message, { cause })));
    // `close` is emitted after all messages.
    this.#child.once("close", () => reject(new CommandError("host_ended", "Its process ended unexpectedly.")));
    return promise;
  }
}
