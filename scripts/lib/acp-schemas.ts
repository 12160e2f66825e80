import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./command.ts";

// The schemas of what an ACP client sends, from the protocol's own schema.

type Schema = Readonly<Record<string, unknown>>;

const prefix = "#/$defs/";

/** What other implementations of the agent read over, and clients rely on. */
const optional: Readonly<Record<string, readonly string[]>> = {
  NewSessionRequest: ["mcpServers"],
  LoadSessionRequest: ["mcpServers"],
};

/** The text of `acp/schema/incoming.ts`. */
export function incomingText(): string {
  const { $defs } = JSON.parse(readFileSync(join(root, "acp", "schema", "v1.json"), "utf8")) as {
    readonly $defs: Readonly<Record<string, Schema>>;
  };
  const requests: Record<string, Schema> = {};
  const answers: Record<string, Schema> = {};
  for (const [name, schema] of Object.entries($defs)) {
    const { "x-method": method, "x-side": side } = schema;
    if (typeof method !== "string") continue;
    const isAnswer = name.endsWith("Response");
    if ((side === "agent") === isAnswer && side !== "protocol") continue;
    (isAnswer ? answers : requests)[method] = standalone(name, $defs);
  }
  return [
    "type Schemas = Readonly<Record<string, object>>;",
    "",
    "// What clients send, from v1.json. Written by `npm run schema`; do not edit.",
    "",
    "/** The schemas of a client's requests and notifications, by their methods. */",
    `export const requestSchemas: Schemas = ${JSON.stringify(requests, null, 1)};`,
    "",
    "/** The schemas of a client's answers, by the methods of our requests. */",
    `export const answerSchemas: Schemas = ${JSON.stringify(answers, null, 1)};`,
    "",
  ].join("\n");
}

/** One definition, with those that it refers to. */
function standalone(name: string, all: Readonly<Record<string, Schema>>): Schema {
  const found = new Map<string, Schema>();
  const add = (each: string): void => {
    if (found.has(each)) return;
    const { required, ...rest } = all[each] as Schema;
    const needed = (required as readonly string[] | undefined)?.filter((field) => !optional[each]?.includes(field));
    const schema = bare(needed === undefined ? rest : { ...rest, required: needed }) as Schema;
    found.set(each, schema);
    for (const text of JSON.stringify(schema).matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/g)) add(text[1] as string);
  };
  add(name);
  return { $ref: `${prefix}${name}`, $defs: Object.fromEntries(found) };
}

/** Without what does not decide whether a value is valid: ajv warns of formats that it does not know. */
function bare(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(bare);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(([key, value]) => !isDecoration(key, value));
  return Object.fromEntries(kept.map(([key, value]) => [key, bare(value)]));
}

function isDecoration(key: string, value: unknown): boolean {
  if (key.startsWith("x-") || key === "discriminator" || key === "default") return true;
  return ["description", "title", "format"].includes(key) && typeof value === "string";
}
