import { execFile } from "node:child_process";

/** What systemd sets for a service, and what is nobody else's business. */
const own = /^(?:NOTIFY_SOCKET|WATCHDOG_(?:USEC|PID)|LISTEN_(?:PID|FDS|FDNAMES)|INVOCATION_ID|JOURNAL_STREAM)$/;
const timeoutMs = 10_000;

/** An environment as the daemon's children are to have it: they would speak to systemd in its name. */
export function withoutService(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !own.test(name)));
}

/** Tells systemd how the service is: by `systemd-notify`, since Node has no datagram sockets of this kind. */
export class ServiceNotifier {
  readonly #env: NodeJS.ProcessEnv;
  readonly #isAsked: boolean;
  readonly #onFailure: (error: Error) => void;
  #beat: NodeJS.Timeout | undefined;

  constructor(env: NodeJS.ProcessEnv, onFailure: (error: Error) => void) {
    this.#env = env;
    this.#isAsked = (env["NOTIFY_SOCKET"] ?? "") !== "";
    this.#onFailure = onFailure;
  }

  /** The service is there; from now on it says that it lives, twice as often as systemd wants to hear it. */
  ready(): void {
    this.#tell("--ready", `--pid=${process.pid}`);
    const microseconds = Number(this.#env["WATCHDOG_USEC"]);
    if (!this.#isAsked || !Number.isFinite(microseconds) || microseconds <= 0) return;
    // The event loop that serves clients is the one that beats.
    this.#beat = setInterval(() => this.#tell("WATCHDOG=1"), Math.max(100, microseconds / 2_000)).unref();
  }

  stopping(): void {
    clearInterval(this.#beat);
    this.#tell("STOPPING=1");
  }

  #tell(...words: readonly string[]): void {
    if (!this.#isAsked) return;
    execFile("systemd-notify", words, { env: this.#env, timeout: timeoutMs }, (error) => {
      if (error !== null) this.#onFailure(error);
    });
  }
}
