import type { WireError } from "../../protocol/errors.ts";
import { within } from "../lib/deadline.ts";
import { deferred } from "../lib/deferred.ts";
import type { PiEvent } from "./records.ts";
import { startupDialog } from "./start-failure.ts";

export interface StartupLimits {
  readonly startTimeoutMs: number;
  readonly maxStartupDialogMs: number;
  readonly startupDialogGraceMs: number;
}

export type Started<T> =
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "timeout"; readonly afterMs: number };

const dialogMethods: ReadonlySet<unknown> = new Set(["select", "confirm", "input", "editor"]);

/** Whether an extension opens a dialog without a timeout. */
export function isEndlessDialog({ type, method, timeout }: PiEvent): boolean {
  return type === "extension_ui_request" && dialogMethods.has(method) && !isTimeout(timeout);
}

/**
 * Dialogs of extensions while pi starts. pi reads its stdin only after its `session_start` hooks have ended, so no
 * client can answer a dialog that such a hook waits for (measured): one with a timeout is waited for, one without
 * ends the start.
 */
export class StartupDialogs {
  readonly #limits: StartupLimits;
  readonly #problem = deferred<never>();
  readonly #reads = deferred<void>();
  #timeoutMs: number;
  /** The error of the start if pi does not read its stdin. */
  #asked: WireError | undefined;

  constructor(limits: StartupLimits) {
    this.#limits = limits;
    this.#timeoutMs = limits.startTimeoutMs;
  }

  /** Examines an event during the start. */
  look(event: PiEvent): void {
    const { type, method, timeout, title } = event;
    if (type !== "extension_ui_request" || !dialogMethods.has(method)) return;
    const { startTimeoutMs, maxStartupDialogMs, startupDialogGraceMs } = this.#limits;
    if (isTimeout(timeout)) {
      this.#timeoutMs = Math.min(startTimeoutMs + maxStartupDialogMs, this.#timeoutMs + Math.max(0, timeout));
      return;
    }
    const problem = startupDialog(String(title ?? method));
    this.#asked ??= problem;
    void within(this.#reads.promise, startupDialogGraceMs).then(
      ({ kind }) => {
        if (kind === "timeout") this.#problem.reject(problem);
      },
      () => {},
    );
  }

  /** pi reads its stdin. */
  answered(): void {
    this.#asked = undefined;
    this.#reads.resolve();
  }

  /** The child has ended. A pi that only waits for an answer ends by itself, with code 0 (measured). */
  end(error: WireError): void {
    this.#problem.reject(this.#asked ?? error);
    this.#reads.reject(error);
  }

  /** Waits for the start within its time. Throws `startup_dialog`, and the errors of the start. */
  async within<T>(start: Promise<T>): Promise<Started<T>> {
    const either = Promise.race([start, this.#problem.promise]);
    const startedAt = performance.now();
    for (let leftMs = this.#timeoutMs; leftMs > 0; leftMs = startedAt + this.#timeoutMs - performance.now()) {
      const outcome = await within(either, leftMs);
      if (outcome.kind === "done") return outcome;
    }
    return { kind: "timeout", afterMs: this.#timeoutMs };
  }
}

function isTimeout(timeout: unknown): timeout is number {
  return typeof timeout === "number" && timeout !== 0;
}
