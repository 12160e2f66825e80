import { SchemaText, table } from "../../protocol/schema-text.ts";
import { type SettingName, settings } from "../../server/configuration/settings.ts";
import { filled } from "./generated-parts.ts";

// The part of CONFIGURATION.md that derives from the table of settings.

/** CONFIGURATION.md with its table as the code says it. */
export function withSettings(document: string): string {
  return filled(document, { settings: settingsTable });
}

function settingsTable(): string {
  const text = new SchemaText({});
  return table(
    ["setting", "type", "default", "variable", "option of start", "what it is"],
    (Object.keys(settings) as SettingName[]).map((name) => {
      const { schema, default: value, defaultInWords, env, flag } = settings[name] as (typeof settings)["pi"];
      const { description = "" } = schema as { readonly description?: string };
      return [
        `\`${name}\``,
        name === "profiles" || name === "optimisation" ? "object" : text.type(schema),
        defaultInWords ?? `\`${JSON.stringify(value)}\``,
        env === undefined ? "" : `\`${env}\``,
        flag === undefined ? "" : `\`--${flag}\``,
        description,
      ];
    }),
  );
}
