import type { OutwardFrame } from "../../protocol/link.ts";
import { type NoticeName, notices } from "../../protocol/optimisation/notices.ts";
import { createValidator, type Validator } from "../../protocol/validation.ts";
import { type Fields, isString } from "./frame-fields.ts";

type Notice = Extract<OutwardFrame, { kind: "notice" }>;

let validator: Validator | undefined;

/**
 * A part's notification, if it matches its schema. The value was parsed for this call, so no other code shares it.
 */
export function readNotice({ name, data }: Fields, at: number): Notice | undefined {
  if (!isString(name) || !Object.hasOwn(notices, name)) return undefined;
  validator ??= createValidator();
  if (validator.schema(notices[name as NoticeName], data).length > 0) return undefined;
  return { kind: "notice", at, name, data } as Notice;
}
