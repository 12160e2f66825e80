import { isRecord } from "../protocol/objects.ts";
import type { Params } from "./rpc-peer.ts";
import type { ClientFeatures } from "./updates/live-updates.ts";

/** What a client can do that not every client can. */
export interface ClientAbilities extends ClientFeatures {
  /** It can ask for a text. */
  readonly forms: boolean;
  /** It starts a login in a terminal. */
  readonly terminalLogin: boolean;
}

export function abilitiesIn({ clientCapabilities = {} }: Params): ClientAbilities {
  const meta = fieldOf(clientCapabilities, "_meta");
  const session = fieldOf(clientCapabilities, "session");
  return {
    forms: isRecord(fieldOf(fieldOf(clientCapabilities, "elicitation"), "form")),
    notices: isRecord(fieldOf(session, "notices")),
    compaction: isRecord(fieldOf(session, "compaction")),
    terminals: fieldOf(meta, "terminal_output") === true,
    terminalLogin:
      fieldOf(fieldOf(clientCapabilities, "auth"), "terminal") === true || fieldOf(meta, "terminal-auth") === true,
  };
}

/** A field of a value, if it is an object. */
export function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}
