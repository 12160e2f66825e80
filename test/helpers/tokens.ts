import { capabilities } from "../../protocol/capability.ts";
import { Grant } from "../../server/rpc/grant.ts";
import type { TokenSource } from "../../server/rpc/tokens.ts";

/** The permissions of the daemon's own token: everything. */
export const mainGrant = new Grant({ name: "main", capabilities });

/** One token that allows everything and never expires. */
export function soleToken(token: string): TokenSource {
  return { find: (presented) => (presented === token ? mainGrant : undefined), onEnded: () => {} };
}
