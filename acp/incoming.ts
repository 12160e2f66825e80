import { createValidator } from "../protocol/validation.ts";
import { AcpError } from "./acp-error.ts";
import { answerSchemas, requestSchemas } from "./schema/incoming.ts";
import { answerSchemas as answersOfTwo, requestSchemas as requestsOfTwo } from "./schema/incoming-v2.ts";

const validator = createValidator();
const requests = { 1: requestSchemas, 2: requestsOfTwo };
const answers = { 1: answerSchemas, 2: answersOfTwo };

/** Throws {@link AcpError} for params that this version of the protocol does not allow. */
export function checkParams(method: string, params: unknown, version: 1 | 2): void {
  const schemas = requests[version];
  const schema = Object.hasOwn(schemas, method) ? schemas[method] : undefined;
  const finding = findingIn(schema, params ?? {});
  if (finding !== undefined) throw new AcpError("invalidParams", `The params of ${method} are invalid: ${finding}`);
}

/** Whether a client's answer is one that this version of the protocol allows. */
export function isValidAnswer(method: string, answer: unknown, version: 1 | 2): boolean {
  return findingIn(answers[version][method], answer) === undefined;
}

function findingIn(schema: object | undefined, value: unknown): string | undefined {
  if (schema === undefined) return undefined;
  const [finding] = validator.schema(schema, value);
  return finding === undefined ? undefined : `${finding.path} ${finding.message}`.trim();
}
