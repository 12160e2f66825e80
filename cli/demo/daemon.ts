import { DaemonProcess, type DaemonProcessOptions } from "../daemon-process.ts";
import { runs } from "../process-facts.ts";

/** pi takes at most 15 s to end. */
const patienceMs = 20_000;

/** A daemon that does not outlive this process, even if this process is ended early. */
export class DemoDaemon {
  readonly process: DaemonProcess;
  readonly #onExit = (): void => this.process.kill("SIGKILL");

  constructor(options: Omit<DaemonProcessOptions, "stderr">) {
    this.process = new DaemonProcess({ ...options, stderr: "ignore" });
    process.once("exit", this.#onExit);
  }

  /** Resolves when it has ended; kills it after a while. */
  async end(): Promise<void> {
    this.process.kill("SIGTERM");
    const lateness = setTimeout(() => this.process.kill("SIGKILL"), patienceMs);
    await this.process.exited;
    clearTimeout(lateness);
    process.removeListener("exit", this.#onExit);
  }
}

/** Names the given processes that still run; undefined if none does. */
export function survivorsOf(pids: readonly (number | undefined)[]): string | undefined {
  const left = pids.filter((pid) => pid !== undefined && runs(pid));
  return left.length === 0 ? undefined : `process ${left.join(" and ")}`;
}
