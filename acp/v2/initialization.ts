import { isRecord } from "../../protocol/objects.ts";
import { AcpError } from "../acp-error.ts";
import { type ClientAbilities, fieldOf } from "../client-abilities.ts";
import { checkParams } from "../incoming.ts";
import type { Params } from "../rpc-peer.ts";

export interface Negotiation {
  /** Whether clients can have version 2. */
  readonly hasVersion2: boolean;
  /** The version of an earlier `initialize`. */
  readonly former: 1 | 2 | undefined;
}

/** The version for a client that sends `initialize` with these params. Throws {@link AcpError} if there is none. */
export function versionFor(params: Params, { hasVersion2, former }: Negotiation): 1 | 2 {
  const { protocolVersion } = params;
  const requested = Number(protocolVersion);
  if (!hasVersion2) return 1;
  if (requested < 1) {
    const supported = { requested, supported: [1, 2] };
    throw new AcpError("unsupportedVersion", "The agent has no version that is so old.", supported);
  }
  const version = requested === 1 ? 1 : 2;
  if (former !== undefined && former !== version)
    throw new AcpError("invalidRequest", `The connection has version ${former} already.`);
  // What a later version has instead of a field of this one is left out.
  if (requested === 2) checkParams("initialize", params, 2);
  return version;
}

/** A client of version 2 can show notices, compactions and terminals without saying so. */
export function abilitiesOfTwo({ capabilities }: Params): ClientAbilities {
  return {
    forms: isRecord(fieldOf(fieldOf(capabilities, "elicitation"), "form")),
    notices: true,
    compaction: true,
    terminals: true,
    terminalLogin: isRecord(fieldOf(fieldOf(capabilities, "auth"), "terminal")),
  };
}

/** `takesServers`: whether this pi takes MCP servers of clients. */
export function capabilitiesOfTwo(takesServers: boolean): object {
  const mcp = takesServers ? { mcp: { stdio: {}, http: {} } } : {};
  return { session: { prompt: { image: {}, embeddedContext: {} }, ...mcp, delete: {} } };
}
