import { dirname, resolve } from "node:path";
import { type ContextLimits, defaultContextLimits } from "../../protocol/context-limits.ts";
import type { Validator } from "../../protocol/validation.ts";
import { StartError } from "../lib/start-error.ts";
import { readFile, usualPath } from "./file.ts";
import { type SettingName, settings, type Values } from "./settings.ts";

/** The source of a setting's value. */
export type Origin =
  | { readonly kind: "default" }
  | { readonly kind: "file"; readonly path: string; readonly line: number }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "option"; readonly name: string };

export interface Sources {
  /** The configuration file, which must exist. Default: the file at the usual path, if it exists. */
  readonly file?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Options from a command line or a program. Undefined counts as absent. */
  readonly options?: { readonly [K in SettingName]?: unknown };
}

/** The effective configuration. */
export interface Configuration {
  readonly values: Values;
  readonly origins: Readonly<Record<SettingName, Origin>>;
  /** The path of the file, and whether the file exists. */
  readonly file: { readonly path: string; readonly exists: boolean };
}

/** Relative ones in a file are relative to it. */
const paths: ReadonlySet<SettingName> = new Set(["pi", "logFile", "tlsCert", "tlsKey"]);

const names = Object.keys(settings) as readonly SettingName[];

/**
 * Merges the configuration: defaults, then the file, then the environment, then options; later sources win. Throws a
 * {@link StartError} `config_invalid` that names the place of each mistake.
 */
export function configure({ file, env, options = {} }: Sources, validator: Validator): Configuration {
  const found = readFile({ file, env }, validator);
  const values: Partial<Record<SettingName, unknown>> = {};
  const origins: Partial<Record<SettingName, Origin>> = {};
  for (const name of names) {
    const { env: variable, flag, default: value, schema } = settings[name] as (typeof settings)["port"];
    const inFile = found?.values.get(name);
    const text = variable === undefined ? undefined : env[variable];
    const option = options[name];
    if (option !== undefined) {
      values[name] = checked(option, `--${flag ?? name}`, schema, validator);
      origins[name] = { kind: "option", name: `--${flag ?? name}` };
    } else if (variable !== undefined && text !== undefined && text !== "") {
      values[name] = checked(fromText(text, schema), variable, schema, validator);
      origins[name] = { kind: "environment", name: variable };
    } else if (found !== undefined && inFile !== undefined) {
      values[name] = paths.has(name) ? resolve(dirname(found.path), String(inFile.value)) : inFile.value;
      origins[name] = { kind: "file", path: found.path, line: inFile.line };
    } else {
      values[name] = value;
      origins[name] = { kind: "default" };
    }
  }
  return {
    values: values as Values,
    origins: origins as Record<SettingName, Origin>,
    file: { path: found?.path ?? usualPath(env), exists: found !== undefined },
  };
}

/**
 * Converts a variable's text to the type of its setting. Text that cannot be converted stays text, and the schema
 * refuses it.
 */
function fromText(text: string, schema: object): unknown {
  const { type } = schema as { readonly type?: string };
  if (type === "integer" && /^\d{1,15}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  if (type === "array") return text.split(",").map((word) => word.trim());
  return text;
}

function checked(value: unknown, place: string, schema: object, validator: Validator): unknown {
  const [finding] = validator.schema(schema, value);
  if (finding === undefined) return value;
  const where = finding.path === "" ? place : `${place} (${finding.path})`;
  throw new StartError("config_invalid", `${where} ${finding.message}, but is ${JSON.stringify(value)}.`);
}

type Given = Pick<Values, Extract<keyof Values, `context.${string}`>>;

/** The configuration of contexts. */
export function contextConfiguration(values: Given): {
  readonly readRoots: readonly string[];
  readonly ackTimeoutMs: number;
  readonly limits: ContextLimits;
} {
  return {
    readRoots: values["context.readRoots"],
    ackTimeoutMs: values["context.ackTimeoutMs"],
    limits: {
      ...defaultContextLimits,
      maxDocumentBytes: values["context.maxDocumentBytes"],
      maxNodes: values["context.maxNodes"],
      maxItems: values["context.maxItems"],
      maxBlockBytes: values["context.maxBlockBytes"],
    },
  };
}
