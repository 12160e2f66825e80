import { DaemonNotRunningError, LocalError, WireError } from "../client/index.ts";
import { UsageError } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Output } from "./output.ts";

interface NamedError extends Error {
  readonly kind?: unknown;
  readonly code?: unknown;
  readonly data?: unknown;
}

/** Tells the user what went wrong, and gives the exit code for it. Errors read like help, so their message is enough. */
export function report(error: unknown, json: boolean, output: Output): number {
  const known = (error instanceof Error ? error : new Error(String(error))) as NamedError;
  const name = typeof known.kind === "string" ? known.kind : known instanceof UsageError ? "usage" : "failed";
  if (json) {
    const details = error instanceof WireError ? { code: error.code, data: error.data } : {};
    output.json({ error: { name, message: known.message, ...details } });
  } else {
    output.note(isExpected(known) ? known.message : (known.stack ?? known.message));
  }
  if (error instanceof UsageError) return exitCodes.usage;
  if (error instanceof DaemonNotRunningError) return exitCodes.noDaemon;
  return exitCodes.failed;
}

/** Whether the error is one of ours, made to be read. Others show where they come from. */
function isExpected(error: NamedError): boolean {
  return error instanceof LocalError || error instanceof UsageError || typeof error.kind === "string";
}
