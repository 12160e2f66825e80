import type { CostFold } from "./fold.ts";
import { MAX_OPEN_PHASES } from "./marks.ts";
import type { Phase } from "./phase.ts";

/** Why a session's phases do not allow an action, as text for people. */
export interface PhaseRefusal {
  readonly refused: "phase_not_open" | "invalid_params";
  readonly message: string;
}

/** Returns the phase to end: the innermost open one, optionally with a label. */
export function phaseToEnd({ openPhases }: Pick<CostFold, "openPhases">, label?: string): Phase | PhaseRefusal {
  const phase = label === undefined ? openPhases.at(-1) : openPhases.findLast((open) => open.label === label);
  if (phase !== undefined) return phase;
  const message = label === undefined ? "No phase is open." : `No phase "${label}" is open.`;
  return { refused: "phase_not_open", message };
}

/** Returns why no further phase can start. */
export function phaseTooMany({ openPhases }: Pick<CostFold, "openPhases">): PhaseRefusal | undefined {
  if (openPhases.length < MAX_OPEN_PHASES) return undefined;
  return { refused: "invalid_params", message: `${MAX_OPEN_PHASES} phases are open; end one first.` };
}
