import { Ajv } from "ajv";
import standaloneModule from "ajv/dist/standalone/index.js";
import { answerSchemas, requestSchemas } from "../../acp/schema/incoming.ts";
import { answerSchemas as acpAnswersOfTwo, requestSchemas as acpRequestsOfTwo } from "../../acp/schema/incoming-v2.ts";
import { builtFile, builtNames, schemaKey } from "../../protocol/built-validation.ts";
import { quickFile, quickMethods } from "../../protocol/known-result.ts";
import { CarryReply, EntriesReply, HoldReply, ReleaseReply } from "../../protocol/link-inward.ts";
import { outwardFrames } from "../../protocol/link-outward.ts";
import type { MethodTable } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import { notifications } from "../../protocol/notifications.ts";
import { notices } from "../../protocol/optimisation/notices.ts";
import { ajvOptions, type Checks, checkedSchema } from "../../protocol/validator.ts";
import { commandSchema } from "../../server/children/client-command.ts";
import { ConfigurationFile, settings } from "../../server/configuration/settings.ts";

type BuiltName = (typeof builtNames)[number];

/** The schemas that the programs check values against, and how. */
interface BuiltChecks extends Checks {
  readonly schemas: readonly object[];
}

const rows = Object.values(methods as MethodTable);
const given = [
  ...rows.map(({ params }) => params),
  ...rows.flatMap(({ pi }) => (pi === undefined ? [] : (commandSchema(pi.command) ?? []))),
  ...Object.values(notices),
  ...Object.values(settings).map(({ schema }) => schema),
  ConfigurationFile,
  ...[requestSchemas, answerSchemas, acpRequestsOfTwo, acpAnswersOfTwo].flatMap((schemas) => Object.values(schemas)),
];
const sent = [...rows.map(({ result }) => result), ...Object.values(notifications).map(({ params }) => params)];
const frames = [...Object.values(outwardFrames), CarryReply, EntriesReply, HoldReply, ReleaseReply];
const strict = { allErrors: false, ignoreUnknown: false, removeUnknown: false };

export const builtChecks: Readonly<Record<BuiltName, BuiltChecks>> = {
  first: { ...strict, schemas: given },
  all: { ...strict, allErrors: true, schemas: given },
  known: { ...strict, ignoreUnknown: true, schemas: sent },
  frames: { ...strict, removeUnknown: true, schemas: frames },
};

/** The texts of CommonJS modules by {@link builtFile}. They export validators by the keys of their schemas. */
export function validatorModules(): ReadonlyMap<string, string> {
  const quick = new Map(quickMethods.map((method) => [method, methods[method].result]));
  return new Map([...builtNames.flatMap(modulesOf), [quickFile, moduleOf(quick, builtChecks.known)]]);
}

function modulesOf(name: BuiltName): readonly (readonly [file: string, text: string])[] {
  const { schemas, ...checks } = builtChecks[name];
  const texts = new Map<string, string>();
  const files = new Map<string, Map<string, object>>();
  for (const schema of schemas) {
    const key = schemaKey(schema);
    const text = JSON.stringify(schema);
    const former = texts.get(key);
    if (former !== undefined && former !== text) throw new Error(`Two schemas have the key ${key}.`);
    texts.set(key, text);
    const file = builtFile(name, key);
    files.set(file, (files.get(file) ?? new Map()).set(key, schema));
  }
  return Array.from(files, ([file, ofFile]) => [file, moduleOf(ofFile, checks)]);
}

/** A CommonJS module that exports a validator of each schema under its key. */
function moduleOf(schemas: ReadonlyMap<string, object>, checks: Checks): string {
  const ajv = new Ajv({ ...ajvOptions(checks), code: { source: true, lines: false } });
  for (const [key, schema] of schemas) ajv.addSchema(withoutDescriptions(checkedSchema(schema, checks)) as object, key);
  return standaloneModule.default(ajv, Object.fromEntries(Array.from(schemas.keys(), (key) => [key, key])));
}

/** Validators keep parts of their schemas. A `description` is a text only where it is a keyword. */
function withoutDescriptions(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutDescriptions);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(([name, value]) => name !== "description" || typeof value !== "string");
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutDescriptions(value)]));
}
