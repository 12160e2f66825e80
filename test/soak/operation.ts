import type { Actor } from "./actor.ts";

/** One thing that happens to a session. Returns whether it did happen; if not, it is drawn again. */
export interface Operation {
  readonly kind: string;
  readonly run: (actor: Actor) => Promise<boolean>;
}
