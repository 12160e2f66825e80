import { type ErrorName, WireError } from "../protocol/errors.ts";
import { AcpError, type acpErrorCode } from "./acp-error.ts";

/** The daemon's errors that have a code of their own here. */
const names: Readonly<Partial<Record<ErrorName, keyof typeof acpErrorCode>>> = {
  session_not_found: "resourceNotFound",
  cwd_invalid: "invalidParams",
  path_invalid: "invalidParams",
  invalid_params: "invalidParams",
  method_not_found: "methodNotFound",
};

/** The error for a client. The daemon's own name and its hint when to try again are in `data`. */
export function acpErrorOf(error: unknown): AcpError {
  if (error instanceof AcpError) return error;
  if (error instanceof WireError) return new AcpError(names[error.kind] ?? "internalError", error.message, error.data);
  return new AcpError("internalError", error instanceof Error ? error.message : String(error));
}
