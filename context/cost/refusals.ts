import type { CostFold } from "./fold.ts";
import { MAX_OPEN_PHASES } from "./marks.ts";
import type { Phase } from "./phase.ts";

/** An order that a session's phases do not allow, in words for people. */
export interface PhaseRefusal {
  readonly refused: "phase_not_open" | "invalid_params";
  readonly message: string;
}

/** The phase that an order ends: the innermost open one of the label, or of all. */
export function phaseToEnd({ openPhases }: Pick<CostFold, "openPhases">, label?: string): Phase | PhaseRefusal {
  const phase = label === undefined ? openPhases.at(-1) : openPhases.findLast((open) => open.label === label);
  if (phase !== undefined) return phase;
  const message = label === undefined ? "No phase is open." : `No phase "${label}" is open.`;
  return { refused: "phase_not_open", message };
}

/** Why no further phase may begin. */
export function phaseTooMany({ openPhases }: Pick<CostFold, "openPhases">): PhaseRefusal | undefined {
  if (openPhases.length < MAX_OPEN_PHASES) return undefined;
  return { refused: "invalid_params", message: `${MAX_OPEN_PHASES} phases are open; end one first.` };
}
