import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionNotification } from "@agentclientprotocol/sdk";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";

type Check = (value: unknown) => readonly string[];

const schemaFile = join(import.meta.dirname, "../../acp/schema/v1.json");
const checks = new Map<string, Check>();
let ajv: Ajv2020 | undefined;

/** The findings of a value against a definition of the schema of ACP, such as `SessionNotification`. */
export function acpFindings(definition: string, value: unknown): readonly string[] {
  const known = checks.get(definition) ?? compiled(definition);
  checks.set(definition, known);
  return known(value);
}

/** Fails the test unless all updates are valid. */
export function expectValidUpdates(updates: readonly SessionNotification["update"][]): void {
  for (const update of updates) {
    // What a client gets is JSON: fields that are undefined are not sent.
    const sent: unknown = JSON.parse(JSON.stringify({ sessionId: "s", update }));
    expect(acpFindings("SessionNotification", sent), JSON.stringify(update).slice(0, 500)).toEqual([]);
  }
}

function compiled(definition: string): Check {
  if (ajv === undefined) {
    ajv = new Ajv2020({ strict: false, validateFormats: false, discriminator: false });
    ajv.addSchema(JSON.parse(readFileSync(schemaFile, "utf8")) as object, "acp");
  }
  const validate = ajv.compile({ $ref: `acp#/$defs/${definition}` });
  return (value) =>
    validate(value) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}
