import type { WireError } from "../../protocol/errors.ts";
import type { Call, Peer } from "./call.ts";
import type { Grant } from "./grant.ts";

const nothing: readonly (() => void)[] = [];

/** A call under way. Its signal is made when somebody looks at it: most handlers never do. */
export class OpenCall implements Call {
  readonly peer?: Peer;
  readonly grant: Grant | undefined;
  readonly isLocal: boolean;
  #controller: AbortController | undefined;
  #cancelled: WireError | undefined;
  #answered: (() => void)[] | undefined;

  constructor(peer: Peer | undefined, grant: Grant | undefined, isLocal: boolean) {
    this.grant = grant;
    this.isLocal = isLocal;
    if (peer !== undefined) this.peer = peer;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cancelled !== undefined) this.#controller.abort(this.#cancelled);
    }
    return this.#controller.signal;
  }

  whenAnswered(then: () => void): void {
    this.#answered ??= [];
    this.#answered.push(then);
  }

  /** Takes what is to be done when the answer has been given. */
  takeAnswered(): readonly (() => void)[] {
    const answered = this.#answered ?? nothing;
    this.#answered = undefined;
    return answered;
  }

  cancel(why: WireError): void {
    this.#cancelled ??= why;
    this.#controller?.abort(this.#cancelled);
  }
}
