import { createValidator } from "../protocol/validation.ts";
import { AcpError } from "./acp-error.ts";
import { answerSchemas, requestSchemas } from "./schema/incoming.ts";

const validator = createValidator();

/** Throws {@link AcpError} for params that the protocol does not allow. */
export function checkParams(method: string, params: unknown): void {
  const schema = Object.hasOwn(requestSchemas, method) ? requestSchemas[method] : undefined;
  const finding = findingIn(schema, params ?? {});
  if (finding !== undefined) throw new AcpError("invalidParams", `The params of ${method} are invalid: ${finding}`);
}

/** Whether a client's answer is one that the protocol allows. */
export function isValidAnswer(method: string, answer: unknown): boolean {
  return findingIn(answerSchemas[method], answer) === undefined;
}

function findingIn(schema: object | undefined, value: unknown): string | undefined {
  if (schema === undefined) return undefined;
  const [finding] = validator.schema(schema, value);
  return finding === undefined ? undefined : `${finding.path} ${finding.message}`.trim();
}
