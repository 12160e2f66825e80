import type { By } from "../../protocol/client-identity.ts";
import type { Delivery } from "../../protocol/delivery.ts";

/** Whose calls change a session at this moment. */
export class Attribution {
  readonly #actors: { readonly by: By | undefined }[] = [];

  /** Whose call what changes now follows from, as long as no two are at it. */
  get by(): By | undefined {
    return this.#actors.length === 1 ? this.#actors[0]?.by : undefined;
  }

  /** What changes while `work` goes on follows from this client's call. */
  async acting<T>(by: By | undefined, work: () => Promise<T>): Promise<T> {
    const actor = { by };
    this.#actors.push(actor);
    try {
      return await work();
    } finally {
      this.#actors.splice(this.#actors.indexOf(actor), 1);
    }
  }

  /** The same, for what is done at once. */
  during<T>(by: By | undefined, work: () => T): T {
    this.#actors.push({ by });
    try {
      return work();
    } finally {
      this.#actors.pop();
    }
  }
}

/** Whose call the newest change of a delivery follows from. */
export function changedBy({ history, updatedAt }: Delivery): By | undefined {
  const step = history.at(-1);
  return step?.at === updatedAt ? step.by : undefined;
}

/** The field of a notification that names the client whose call caused it. */
export function attributionOf(by: By | undefined): { readonly by?: By } {
  return by === undefined ? {} : { by };
}
