import { type HttpCallOptions, httpCall } from "../client/http-client.ts";
import { ProtocolViolationError } from "../client/local-errors.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";

/**
 * How the command line has the daemon's answers checked before it uses them. A newer daemon may add to them; in tests they
 * have nothing that is not in the schemas.
 */
export function resultChecks(env: NodeJS.ProcessEnv = process.env): true | "known" {
  return env["PI_RPCD_VALIDATE"] === "1" ? true : "known";
}

/** One call over HTTP. Throws `protocol_violation` for an answer that is not what the protocol says. */
export async function callDaemon<M extends MethodName>(
  method: M,
  params: Params<M>,
  options: HttpCallOptions,
): Promise<Result<M>> {
  const result = await httpCall(method, params, options);
  // Not needed where no daemon answers.
  const { createValidator } = await import("../protocol/validation.ts");
  const findings = createValidator({ ignoreUnknown: resultChecks() === "known" }).result(method, result);
  if (findings.length > 0) throw new ProtocolViolationError(`result of ${method}`, findings);
  return result;
}
