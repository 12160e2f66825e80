import type { By } from "../../protocol/client-identity.ts";
import type { Delivery } from "../../protocol/delivery.ts";

/** The clients whose calls currently change a session. */
export class Attribution {
  readonly #actors: { readonly by: By | undefined }[] = [];

  /** The client whose call causes the current changes; undefined if several calls are active. */
  get by(): By | undefined {
    return this.#actors.length === 1 ? this.#actors[0]?.by : undefined;
  }

  /** Attributes changes during `work` to a client. */
  async acting<T>(by: By | undefined, work: () => Promise<T>): Promise<T> {
    const actor = { by };
    this.#actors.push(actor);
    try {
      return await work();
    } finally {
      this.#actors.splice(this.#actors.indexOf(actor), 1);
    }
  }

  /** Attributes synchronous changes to a client. */
  during<T>(by: By | undefined, work: () => T): T {
    this.#actors.push({ by });
    try {
      return work();
    } finally {
      this.#actors.pop();
    }
  }
}

/** The client whose call caused the newest change of a delivery. */
export function changedBy({ history, updatedAt }: Delivery): By | undefined {
  const step = history.at(-1);
  return step?.at === updatedAt ? step.by : undefined;
}

/** The field of a notification that names the client whose call caused it. */
export function attributionOf(by: By | undefined): { readonly by?: By } {
  return by === undefined ? {} : { by };
}
