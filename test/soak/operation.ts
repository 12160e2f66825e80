import type { Actor } from "./actor.ts";

/** One action on a session. Returns whether it happened; if not, it is drawn again. */
export interface Operation {
  readonly kind: string;
  readonly run: (actor: Actor) => Promise<boolean>;
}
