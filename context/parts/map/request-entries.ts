import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Places } from "../../../extension/engine-port.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { EntryMap } from "./entry-map.ts";

type IsNeeded = (messages: readonly AgentMessage[], ctx: ExtensionContext) => boolean;

/** Which entries the messages of the request come from that is being made. */
export interface RequestEntries {
  /** They are looked up for each request for which this says so: pi makes its projection once more for it. */
  need(isNeeded: IsNeeded): void;
  /** `undefined`: another extension's message, or nobody can say. */
  entryOf(message: AgentMessage): string | undefined;
  /** A stage puts `copy` in the place of `original`: it is of the same entry, whatever its role and time are. */
  copied(copy: AgentMessage, original: AgentMessage): void;
  /** Whether these are the session's own messages of this request, all of them and no others. */
  isWhole(messages: readonly AgentMessage[]): boolean;
  /** A stage has made this message: it is of no entry, whatever its role and time are. */
  made(message: AgentMessage): void;
  /** The messages of this request cannot be told from each other: none has an entry. */
  isAmbiguous(): boolean;
}

/** `ambiguous` hears of a request whose messages cannot be told from each other, `clear` of the next that is not so. */
export function createRequestEntries(
  { pipeline }: Pick<Places, "pipeline">,
  { ambiguous, clear }: { readonly ambiguous: () => void; readonly clear: () => void },
): RequestEntries {
  const needs: IsNeeded[] = [];
  const map = new EntryMap();
  pipeline.use(
    "context",
    "map",
    ({ messages }, ctx) => {
      if (!needs.some((isNeeded) => isNeeded(messages, ctx))) {
        map.forget();
        return;
      }
      const wasAmbiguous = map.isAmbiguous;
      map.take(messages, ctx.sessionManager.buildSessionProjection().entries);
      if (map.isAmbiguous) ambiguous();
      else if (wasAmbiguous) clear();
    },
    "entries",
  );
  pipeline.use("context_with_system", "head", (messages) => map.seen(messages), "entries");
  return {
    need: (isNeeded) => void needs.push(isNeeded),
    entryOf: (message) => map.entryOf(message),
    copied: (copy, original) => map.copied(copy, original),
    isWhole: (messages) => map.isWhole(messages),
    made: (message) => map.made(message),
    isAmbiguous: () => map.isAmbiguous,
  };
}
