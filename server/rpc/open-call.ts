import { WireError } from "../../protocol/errors.ts";
import type { Call, Peer } from "./call.ts";

/** A call under way. Its signal is made when somebody looks at it: most handlers never do. */
export class OpenCall implements Call {
  readonly peer?: Peer;
  #controller: AbortController | undefined;
  #cancelled: WireError | undefined;

  constructor(peer: Peer | undefined) {
    if (peer !== undefined) this.peer = peer;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cancelled !== undefined) this.#controller.abort(this.#cancelled);
    }
    return this.#controller.signal;
  }

  cancel(why: string): void {
    this.#cancelled ??= new WireError("cancelled", why);
    this.#controller?.abort(this.#cancelled);
  }
}
