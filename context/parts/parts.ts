import type { Places } from "../../extension/engine-port.ts";
import { optimisation } from "./optimisation/optimisation.ts";

/** What changes a session's context: loaded only where a configuration has some of it. */
export function contextParts(places: Places): void {
  optimisation(places);
}
