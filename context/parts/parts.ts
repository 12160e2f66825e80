import type { HostPort } from "../../extension/engine-port.ts";
import { optimisation } from "./optimisation/optimisation.ts";

/** Registers the parts that change a session's context. Loaded only if a configuration enables one. */
export function contextParts(host: HostPort): void {
  optimisation(host);
}
