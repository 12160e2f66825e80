import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionNotification } from "@agentclientprotocol/sdk";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";

type Check = (value: unknown) => readonly string[];

type Version = "v1" | "v2";

const checks = new Map<string, Check>();
const schemas = new Map<Version, Ajv2020>();

/** The findings of a value against a definition of a schema of ACP, such as `SessionNotification`. */
export function acpFindings(definition: string, value: unknown, version: Version = "v1"): readonly string[] {
  const key = `${version} ${definition}`;
  const known = checks.get(key) ?? compiled(definition, version);
  checks.set(key, known);
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

function compiled(definition: string, version: Version): Check {
  let ajv = schemas.get(version);
  if (ajv === undefined) {
    ajv = new Ajv2020({ strict: false, validateFormats: false, discriminator: false });
    const file = join(import.meta.dirname, "../../acp/schema", `${version}.json`);
    ajv.addSchema(JSON.parse(readFileSync(file, "utf8")) as object, "acp");
    schemas.set(version, ajv);
  }
  const validate = ajv.compile({ $ref: `acp#/$defs/${definition}` });
  return (value) =>
    validate(value) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}
