import { WireError } from "../../protocol/errors.ts";
import type { BuiltMessage } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";

// Fields that pi needs in each message. pi does not validate them and fails later.

type Check = (value: unknown) => boolean;

const isString: Check = (value) => typeof value === "string";
const isName: Check = (value) => typeof value === "string" && value !== "";
const isNumber: Check = (value) => typeof value === "number" && Number.isFinite(value);
const isFlag: Check = (value) => typeof value === "boolean";
const isAnything: Check = () => true;

/** Check of an optional field. */
function maybe(check: Check): Check {
  return (value) => value === undefined || check(value);
}

function each(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

/** Check of an object with these fields; others are allowed. */
function record(fields: Readonly<Record<string, Check>>): Check {
  const named = Object.entries(fields);
  return (value) => isRecord(value) && named.every(([name, check]) => check(value[name]));
}

const text = record({ text: isName });
const image = record({ data: isName, mimeType: isName });
const isPart: Check = (value) => {
  const type = isRecord(value) ? value["type"] : undefined;
  return type === "text" ? text(value) : type === "image" && image(value);
};

const blocks: Readonly<Record<string, Check>> = {
  text: record({ text: isString, textSignature: maybe(isString) }),
  thinking: record({ thinking: isString, thinkingSignature: maybe(isString), redacted: maybe(isFlag) }),
  toolCall: record({ id: isName, name: isName, arguments: isRecord }),
};
const isBlock: Check = (value) => {
  const type = isRecord(value) ? value["type"] : undefined;
  return typeof type === "string" && Object.hasOwn(blocks, type) && blocks[type]?.(value) === true;
};

const isUsage = record({
  ...{ input: isZero, output: isZero, cacheRead: isZero, cacheWrite: isZero, totalTokens: isZero },
  cost: record({ input: isZero, output: isZero, cacheRead: isZero, cacheWrite: isZero, total: isZero }),
});

function isZero(value: unknown): boolean {
  return value === 0;
}

type Fields = Readonly<Record<string, Check>>;

const fieldsOf: { readonly [Role in BuiltMessage["role"]]: Fields } = {
  user: { content: each(isPart) },
  assistant: {
    content: each(isBlock),
    api: isName,
    provider: isName,
    model: isName,
    usage: isUsage,
    stopReason: (value) => value === "stop" || value === "toolUse",
  },
  toolResult: { toolCallId: isName, toolName: isName, content: each(isPart), details: isAnything, isError: isFlag },
  custom: {
    customType: isString,
    content: (value) => isString(value) || each(isPart)(value),
    display: isFlag,
    details: isAnything,
  },
  compactionSummary: { summary: isName, tokensBefore: isNumber },
  branchSummary: { summary: isName, fromId: isString },
  bashExecution: {
    ...{ command: isString, output: isString, exitCode: maybe(isNumber), cancelled: isFlag, truncated: isFlag },
    ...{ fullOutputPath: maybe(isString), excludeFromContext: maybe(isFlag) },
  },
};

/** Returns the first invalid or unknown field of a message; `undefined` if the message is valid. */
export function messageFault(message: unknown): string | undefined {
  if (!isRecord(message)) return "message";
  const { role } = message;
  if (typeof role !== "string" || !Object.hasOwn(fieldsOf, role)) return "role";
  const fields = fieldsOf[role as BuiltMessage["role"]];
  const wrong = Object.keys(fields).find((name) => fields[name]?.(message[name]) !== true);
  if (wrong !== undefined) return wrong;
  if (!isNumber(message["timestamp"])) return "timestamp";
  return Object.keys(message).find((name) => name !== "role" && name !== "timestamp" && !Object.hasOwn(fields, name));
}

/** Throws `internal_error` for an invalid message, which must not reach pi. */
export function requireSound(messages: readonly BuiltMessage[]): void {
  for (const [index, message] of messages.entries()) {
    const fault = messageFault(message);
    if (fault === undefined) continue;
    throw new WireError("internal_error", `Message ${index + 1} of the context is not sound: ${fault}.`);
  }
}
