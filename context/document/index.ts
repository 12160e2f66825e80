/**
 * Structured contexts as pure functions, for programs that create or inspect documents without a daemon. It is the
 * daemon's own code and needs Node; browsers use the daemon.
 */

export { type ContextLimits, defaultContextLimits, hardContextLimits } from "../../protocol/context-limits.ts";
export type { BuiltMessage } from "../../protocol/link-context.ts";
export type { ContextCounts, ContextWarning, PreparedContext } from "./built.ts";
export {
  CONTEXT_FORMAT,
  CONTEXT_VERSION,
  type ContextArguments,
  type ContextCall,
  type ContextDocument,
  type ContextItem,
  type ContextNode,
  type ContextPart,
  type ContextSource,
  type ContextTarget,
  type FatalCode,
  type ModelName,
  type NoteRepair,
  type Repair,
  type RepairCode,
  repairCodes,
} from "./document.ts";
export { estimateText, estimateTokens, flattenedTokens } from "./estimate.ts";
export { type ExportDiagnostics, type ExportOptions, exportContext } from "./export.ts";
export { normalise } from "./normalise.ts";
export type { PrepareOptions } from "./options.ts";
export { prepareContext } from "./prepare.ts";
export { readDocument } from "./read-document.ts";
export { repairItems } from "./repair.ts";
export { contextForStructured, type SelectOptions } from "./select.ts";
