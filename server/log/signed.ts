import type { By } from "../../protocol/client-identity.ts";

/** The field of a notification that says whose call it follows from. */
export function signed(by: By | undefined): { readonly by?: By } {
  return by === undefined ? {} : { by };
}
