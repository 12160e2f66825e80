import { execFile } from "node:child_process";

/** The variables that systemd sets for a service, which no other process may use. */
const own = /^(?:NOTIFY_SOCKET|WATCHDOG_(?:USEC|PID)|LISTEN_(?:PID|FDS|FDNAMES)|INVOCATION_ID|JOURNAL_STREAM)$/;
const timeoutMs = 10_000;

/** The environment for the daemon's children, which must not notify systemd in its name. */
export function withoutService(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !own.test(name)));
}

/** Notifies systemd with `systemd-notify`, because Node has no Unix datagram sockets. */
export class ServiceNotifier {
  readonly #env: NodeJS.ProcessEnv;
  readonly #isAsked: boolean;
  readonly #onFailure: (error: Error) => void;
  #watchdog: NodeJS.Timeout | undefined;

  constructor(env: NodeJS.ProcessEnv, onFailure: (error: Error) => void) {
    this.#env = env;
    this.#isAsked = (env["NOTIFY_SOCKET"] ?? "") !== "";
    this.#onFailure = onFailure;
  }

  /** Reports that the service is ready, and starts the watchdog, twice as often as systemd requires. */
  ready(): void {
    this.#notify("--ready", `--pid=${process.pid}`);
    const microseconds = Number(this.#env["WATCHDOG_USEC"]);
    if (!this.#isAsked || !Number.isFinite(microseconds) || microseconds <= 0) return;
    // The watchdog runs on the event loop that serves clients.
    this.#watchdog = setInterval(() => this.#notify("WATCHDOG=1"), Math.max(100, microseconds / 2_000)).unref();
  }

  stopping(): void {
    clearInterval(this.#watchdog);
    this.#notify("STOPPING=1");
  }

  #notify(...words: readonly string[]): void {
    if (!this.#isAsked) return;
    execFile("systemd-notify", words, { env: this.#env, timeout: timeoutMs }, (error) => {
      if (error !== null) this.#onFailure(error);
    });
  }
}
