import type { TSchema } from "typebox";
import { defaultOptimisation } from "../../protocol/optimisation/config.ts";
import { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { defaultPruning } from "../../protocol/pruning/config.ts";
import { PruningOptions } from "../../protocol/pruning/options.ts";
import { TypeText } from "../../protocol/type-text.ts";
import { type SettingName, settings } from "../../server/configuration/settings.ts";
import { filled, table } from "./generated-parts.ts";

const text = new TypeText({}, { isOutline: true });

// The parts of CONFIGURATION.md that are generated from the settings, the options of the optimisation, and those of
// pruning.

/** CONFIGURATION.md with its generated tables. */
export function withSettings(document: string): string {
  return filled(document, { settings: settingsTable, optimisation: optimisationTable, pruning: pruningTable });
}

type Shape = TSchema & {
  readonly type?: string;
  readonly description?: string;
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
};

function optimisationTable(): string {
  const parts = Object.entries(OptimisationOptions.properties as Readonly<Record<string, Shape>>);
  const rows = parts.flatMap(([part, { properties }]) =>
    Object.entries(properties ?? {}).flatMap(([name, schema]) => {
      if (name === "enabled") return [];
      const defaults = defaultOptimisation[part as keyof typeof defaultOptimisation];
      const value = (defaults as Readonly<Record<string, unknown>>)[name];
      const { description = "" } = schema;
      return [[`\`${part}.${name}\``, `\`${text.type(schema)}\``, `\`${JSON.stringify(value)}\``, description]];
    }),
  );
  return table(["option", "type", "default", "what it is"], rows);
}

function pruningTable(): string {
  return table(["key", "type", "default", "what it is"], pruningRows(PruningOptions as Shape, defaultPruning, ""));
}

/** Nested keys, with dots in between. */
function pruningRows({ properties = {} }: Shape, defaults: object, before: string): string[][] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const value = (defaults as Readonly<Record<string, unknown>>)[name];
    if (schema.properties !== undefined) return pruningRows(schema, value as object, `${before}${name}.`);
    return [
      [`\`${before}${name}\``, `\`${text.type(schema)}\``, `\`${JSON.stringify(value)}\``, schema.description ?? ""],
    ];
  });
}

function settingsTable(): string {
  return table(
    ["setting", "type", "default", "variable", "option of start", "what it is"],
    (Object.keys(settings) as SettingName[]).map((name) => {
      const { schema, default: value, defaultInWords, env, flag } = settings[name] as (typeof settings)["pi"];
      const { description = "" } = schema as { readonly description?: string };
      return [
        `\`${name}\``,
        `\`${text.type(schema)}\``,
        defaultInWords ?? `\`${JSON.stringify(value)}\``,
        env === undefined ? "" : `\`${env}\``,
        flag === undefined ? "" : `\`--${flag}\``,
        description,
      ];
    }),
  );
}
