import { createValidator } from "../protocol/validation.ts";
import { AcpError } from "./acp-error.ts";
import schemas from "./schema/incoming.json" with { type: "json" };

/** The schemas of a client's requests and notifications, by their methods. */
export const requestSchemas: Readonly<Record<string, object>> = schemas.requests;
/** The schemas of a client's answers, by the methods of our requests. */
export const answerSchemas: Readonly<Record<string, object>> = schemas.answers;

const validator = createValidator();

/** Throws {@link AcpError} for params that the protocol does not allow. */
export function checkParams(method: string, params: unknown): void {
  const finding = findingIn(requestSchemas[method], params ?? {});
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
