import { WireError } from "../../../protocol/errors.ts";
import type { transcriptMethods } from "../../../protocol/transcript-methods.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function transcriptHandlers(registry: Registry): HandlersOf<typeof transcriptMethods> {
  const later = (sessionId: string): never => {
    registry.get(sessionId);
    throw new WireError("unsupported_by_pi", "This daemon does not read transcripts yet.");
  };
  return {
    "transcript/page": ({ sessionId }) => later(sessionId),
    "transcript/entry": ({ sessionId }) => later(sessionId),
  };
}
