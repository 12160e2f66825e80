import { type HttpCallOptions, httpCall } from "../client/http-client.ts";
import { ProtocolViolationError } from "../client/local-errors.ts";
import { isKnownResult } from "../protocol/known-result.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";

/**
 * How strictly the command line validates the daemon's results. Additions of a newer daemon are allowed, except in
 * tests.
 */
export function resultChecks(env: NodeJS.ProcessEnv = process.env): true | "known" {
  return env["PI_RPCD_VALIDATE"] === "1" ? true : "known";
}

/** Makes one call over HTTP. Throws `protocol_violation` for a result that violates the protocol. */
export async function callDaemon<M extends MethodName>(
  method: M,
  params: Params<M>,
  options: HttpCallOptions,
): Promise<Result<M>> {
  const result = await httpCall(method, params, options);
  const ignoreUnknown = resultChecks() === "known";
  if (ignoreUnknown && isKnownResult(method, result) === true) return result;
  const { createValidator } = await import("../protocol/validation.ts");
  const findings = createValidator({ ignoreUnknown }).result(method, result);
  if (findings.length > 0) throw new ProtocolViolationError(`result of ${method}`, findings);
  return result;
}
