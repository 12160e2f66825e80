import { Ajv } from "ajv";
import standaloneModule from "ajv/dist/standalone/index.js";
import { answerSchemas, requestSchemas } from "../../acp/schema/incoming.ts";
import { answerSchemas as acpAnswersOfTwo, requestSchemas as acpRequestsOfTwo } from "../../acp/schema/incoming-v2.ts";
import { type BuiltFiles, builtNames, schemaKey } from "../../protocol/built-validation.ts";
import { costMethods } from "../../protocol/cost-methods.ts";
import { quickFile, quickMethods } from "../../protocol/known-result.ts";
import { CarryReply, EntriesReply, HoldReply, ReleaseReply } from "../../protocol/link-inward.ts";
import { outwardFrames } from "../../protocol/link-outward.ts";
import type { MethodTable } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import { notifications } from "../../protocol/notifications.ts";
import { notices } from "../../protocol/optimisation/notices.ts";
import { pruningMethods } from "../../protocol/pruning-methods.ts";
import { ajvOptions, type Checks, checkedSchema } from "../../protocol/validator.ts";
import { commandSchema } from "../../server/children/client-command.ts";
import { ProjectFile } from "../../server/configuration/project-file.ts";
import { ConfigurationFile, settings } from "../../server/configuration/settings.ts";

type BuiltName = (typeof builtNames)[number];

/** The schemas that the programs check values against, in groups that are used together, and how. */
interface BuiltChecks extends Checks {
  readonly groups: Readonly<Record<string, readonly object[]>>;
}

const rows = Object.values(methods as MethodTable);
/** What the extension inside pi answers (`server/context/part-calls.ts`): any other extension can forge it. */
const { "cost/report": _fromFile, ...orders } = costMethods;
const { "pruning/configure": _fromDaemon, ...pruning } = pruningMethods;
const answered = [
  methods["cache/report"],
  methods["optimisation/inspect"],
  methods["session/navigate"],
  methods["session/setLabel"],
  ...Object.values(orders),
  ...Object.values(pruning),
].map(({ result }) => result);
const given = {
  methods: [
    ...rows.map(({ params }) => params),
    ...rows.flatMap(({ pi }) => (pi === undefined ? [] : (commandSchema(pi.command) ?? []))),
    ...Object.values(notices),
  ],
  configuration: [...Object.values(settings).map(({ schema }) => schema), ConfigurationFile, ProjectFile],
  acp: [requestSchemas, answerSchemas].flatMap((schemas) => Object.values(schemas)),
  "acp-v2": [acpRequestsOfTwo, acpAnswersOfTwo].flatMap((schemas) => Object.values(schemas)),
};
const sent = {
  sent: [...rows.map(({ result }) => result), ...Object.values(notifications).map(({ params }) => params)],
};
const frames = { link: [...Object.values(outwardFrames), CarryReply, EntriesReply, HoldReply, ReleaseReply] };
const strict = { allErrors: false, ignoreUnknown: false, removeUnknown: false };

export const builtChecks: Readonly<Record<BuiltName, BuiltChecks>> = {
  first: { ...strict, groups: { ...given, answered } },
  all: { ...strict, allErrors: true, groups: given },
  known: { ...strict, ignoreUnknown: true, groups: sent },
  frames: { ...strict, removeUnknown: true, groups: frames },
};

/** How long the schemas of a module are together as JSON, at most; a longer schema has a module of its own. */
const moduleChars = 5_000;

/** CommonJS modules by their names, which export validators by the keys of their schemas; and where each is. */
export function validatorModules(): { readonly modules: ReadonlyMap<string, string>; readonly files: BuiltFiles } {
  const quick = new Map(quickMethods.map((method) => [method, methods[method].result]));
  const modules = new Map([[quickFile, moduleOf(quick, builtChecks.known)]]);
  const files = Object.fromEntries(
    builtNames.map((name) => {
      const fileOf: Record<string, string> = {};
      for (const [file, schemas] of Object.entries(modulesOf(name))) {
        modules.set(file, moduleOf(schemas, builtChecks[name]));
        for (const key of schemas.keys()) fileOf[key] = file;
      }
      return [name, fileOf];
    }),
  ) as unknown as BuiltFiles;
  return { modules, files };
}

/** The schemas of each module, by its name. */
function modulesOf(name: BuiltName): Readonly<Record<string, ReadonlyMap<string, object>>> {
  const { groups } = builtChecks[name];
  const texts = new Map<string, string>();
  const found: Record<string, Map<string, object>> = {};
  for (const [group, schemas] of Object.entries(groups)) {
    let count = 0;
    let room = 0;
    for (const schema of schemas) {
      const key = schemaKey(schema);
      const text = JSON.stringify(schema);
      const former = texts.get(key);
      if (former === text) continue;
      if (former !== undefined) throw new Error(`Two schemas have the key ${key}.`);
      texts.set(key, text);
      // The definitions that the schemas of a protocol share are the same in each.
      const { length } = JSON.stringify({ ...schema, $defs: undefined });
      if (length > room) {
        count += 1;
        room = moduleChars;
      }
      room -= length;
      const file = `${name}-${group}-${count}`;
      found[file] = (found[file] ?? new Map<string, object>()).set(key, schema);
    }
  }
  return found;
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
