import type { Call } from "./call.ts";

/** One effect that several callers wait for. It is cancelled when the last of them has gone. */
export class SharedCall {
  readonly paramsHash: string;
  readonly result: Promise<unknown>;
  readonly #controller = new AbortController();
  #callers = 0;

  constructor(paramsHash: string, { peer, by, grant, isLocal }: Call, make: (call: Call) => Promise<unknown>) {
    this.paramsHash = paramsHash;
    const { signal } = this.#controller;
    this.result = make({
      ...(peer === undefined ? {} : { peer }),
      ...(by === undefined ? {} : { by }),
      ...(grant === undefined ? {} : { grant }),
      ...(isLocal === undefined ? {} : { isLocal }),
      signal,
    });
    this.result.catch(() => {});
  }

  /** Whether all its callers have gone: it ends as cancelled, or has had its effect all the same. */
  get isAbandoned(): boolean {
    return this.#controller.signal.aborted;
  }

  join({ signal }: Call): Promise<unknown> {
    this.#callers += 1;
    const leave = (): void => {
      this.#callers -= 1;
      if (this.#callers === 0) this.#controller.abort(signal.reason);
    };
    if (signal.aborted) leave();
    else {
      signal.addEventListener("abort", leave, { once: true });
      const stay = (): void => signal.removeEventListener("abort", leave);
      this.result.then(stay, stay);
    }
    return this.result;
  }
}
