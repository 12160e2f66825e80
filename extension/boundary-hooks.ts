import type { BoundaryHook } from "./boundary.ts";

interface Hook {
  readonly isNeeded: () => boolean;
  /** Registers the handler; returns what removes it. */
  readonly register: () => () => void;
}

/**
 * Registers the handlers of boundaries only while they are needed. At a boundary that has a handler, whatever that answers,
 * pi builds the messages of extensions again as new objects; the context is then another one to the part of pi that keeps
 * the provider's cache warm, and it stops. pi looks for handlers when the boundary comes, and `pi.on` returns what removes
 * one.
 */
export class BoundaryHooks {
  readonly #hooks: readonly Hook[];
  readonly #registered = new Map<Hook, () => void>();

  constructor(hooks: Readonly<Record<BoundaryHook, Hook>>) {
    this.#hooks = Object.values(hooks);
  }

  /** To be called when something may have come to be needed, and in each turn, since most needs end within one. */
  update(): void {
    for (const hook of this.#hooks) {
      const remove = this.#registered.get(hook);
      const isNeeded = hook.isNeeded();
      if (isNeeded && remove === undefined) this.#registered.set(hook, hook.register());
      if (isNeeded || remove === undefined) continue;
      this.#registered.delete(hook);
      remove();
    }
  }
}
