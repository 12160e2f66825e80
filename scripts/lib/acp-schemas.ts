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

/** The text of the module with the schemas of a version: `acp/schema/incoming.ts`, or `incoming-v2.ts`. */
export function incomingText(version: "v1" | "v2"): string {
  const { $defs } = JSON.parse(readFileSync(join(root, "acp", "schema", `${version}.json`), "utf8")) as {
    readonly $defs: Readonly<Record<string, Schema>>;
  };
  const used = new Map<string, Schema>();
  const requests: string[] = [];
  const answers: string[] = [];
  for (const [name, schema] of Object.entries($defs)) {
    const { "x-method": method, "x-side": side } = schema;
    if (typeof method !== "string") continue;
    const isAnswer = name.endsWith("Response");
    if ((side === "agent") === isAnswer && side !== "protocol") continue;
    addWithReferences(name, $defs, used);
    (isAnswer ? answers : requests).push(`  "${method}": { $ref: "${prefix}${name}", $defs },`);
  }
  return [
    "type Schemas = Readonly<Record<string, object>>;",
    "",
    `// What clients send, from ${version}.json. Written by \`npm run schema\`; do not edit.`,
    "",
    `const $defs = ${JSON.stringify(Object.fromEntries(used), null, 1)};`,
    "",
    "/** The schemas of a client's requests and notifications, by their methods. */",
    "export const requestSchemas: Schemas = {",
    ...requests,
    "};",
    "",
    "/** The schemas of a client's answers, by the methods of our requests. */",
    "export const answerSchemas: Schemas = {",
    ...answers,
    "};",
    "",
  ].join("\n");
}

/** Adds a definition and those that it refers to. */
function addWithReferences(name: string, all: Readonly<Record<string, Schema>>, used: Map<string, Schema>): void {
  if (used.has(name)) return;
  const { required, ...rest } = all[name] as Schema;
  const needed = (required as readonly string[] | undefined)?.filter((field) => !optional[name]?.includes(field));
  const schema = bare(needed === undefined ? rest : { ...rest, required: needed }) as Schema;
  used.set(name, schema);
  for (const [, found = ""] of JSON.stringify(schema).matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/g))
    addWithReferences(found, all, used);
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
