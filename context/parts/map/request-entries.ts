import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { EntryMap } from "./entry-map.ts";

type IsNeeded = (messages: readonly AgentMessage[], ctx: ExtensionContext) => boolean;

/** Maps the messages of the current request to entries. */
export interface RequestEntries {
  /** Enables the lookup for requests for which `isNeeded` returns true; it costs one more projection by pi. */
  need(isNeeded: IsNeeded): void;
  /** `undefined`: a message of another extension, or unknown. */
  entryOf(message: AgentMessage): string | undefined;
  /** Call when a stage replaces `original` by `copy`, which has the same entry even with another role and time. */
  copied(copy: AgentMessage, original: AgentMessage): void;
  /** Whether the list is exactly the session's own messages. */
  isWhole(messages: readonly AgentMessage[]): boolean;
  /** Call when a stage creates a message; it has no entry, even with the role and time of another. */
  made(message: AgentMessage): void;
  /** Whether the messages of this request cannot be matched; then none has an entry. */
  isAmbiguous(): boolean;
}

/** Calls `ambiguous` for a request whose messages cannot be distinguished, and `clear` for the next unambiguous one. */
export function createRequestEntries(
  { pipeline }: Pick<HostPort, "pipeline">,
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
