import type { TSchema } from "typebox";
import { commands } from "../../cli/commands.ts";
import { exitCodeMeanings } from "../../cli/exit-codes.ts";
import { usageOf } from "../../cli/help.ts";
import type { CommandName } from "../../cli/invocation.ts";
import { deliveryStates } from "../../protocol/delivery-progress.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { notifications } from "../../protocol/notifications.ts";
import { defaultOptimisation } from "../../protocol/optimisation/config.ts";
import { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { defaultPruning } from "../../protocol/pruning/config.ts";
import { PruningOptions } from "../../protocol/pruning/options.ts";
import { TypeText } from "../../protocol/type-text.ts";
import { type SettingName, settings } from "../../server/configuration/settings.ts";

// The parts of documents that are generated from the code. Each is between two markers; a document without them is
// an error. The reference of the protocol has everything else.

/** PROTOCOL.md with its generated tables. */
export function withGeneratedParts(document: string): string {
  return filled(document, { deliveryStates: deliveryStateTable, errors: errorTable, numberedNotifications });
}

function deliveryStateTable(): string {
  return table(
    ["state", "means", "next"],
    Object.entries(deliveryStates).map(([state, { means, next, note }]) => [
      `\`${state}\``,
      means,
      next.length === 0 ? "the end" : [next.map((name) => `\`${name}\``).join(", "), note].filter(Boolean).join("; "),
    ]),
  );
}

/** The errors of each HTTP status. Their meanings are in the reference. */
function errorTable(): string {
  const groups = new Map<string, string[]>();
  for (const [name, { code, httpStatus, retryable }] of Object.entries(errorCatalogue)) {
    const key = `${httpStatus} ${retryable ? "yes" : "no"}`;
    groups.set(key, [...(groups.get(key) ?? []), `\`${name}\` ${code}`]);
  }
  const rows = [...groups].sort(([a], [b]) => a.localeCompare(b));
  const cells = rows.map(([key, errors]) => [...key.split(" "), errors.join(", ")]);
  return table(["HTTP", "retry", "errors, with their codes"], cells);
}

/** The notifications that share the `seq` of their session. */
function numberedNotifications(): string {
  const numbered = Object.entries(notifications).filter(([name, { params }]) => {
    const { properties } = params as { readonly properties: object };
    // Events of the feed have the feed's own numbers.
    return "seq" in properties && name !== "daemon/event";
  });
  return numbered.map(([name]) => `\`${name}\``).join(" · ");
}

const text = new TypeText({}, { isOutline: true });

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

/** docs/cli.md with its tables of commands and exit codes. */
export function withCommandReference(document: string): string {
  return filled(document, { commands: commandTables });
}

function commandTables(): string {
  const rows = (Object.keys(commands) as CommandName[]).map((name) => {
    const usage = usageOf(name)
      .replace(/^pi-rpcd /, "")
      .replace(" [OPTIONS]", "");
    return [`\`${usage}\``, commands[name].summary];
  });
  const exits = table(["exit code", "meaning"], Object.entries(exitCodeMeanings));
  return `${table(["command", "does"], rows)}\n\n${exits}`;
}

/** The document with its parts as `parts` renders them. Throws if the markers of one are missing. */
function filled(document: string, parts: Readonly<Record<string, () => string>>): string {
  let result = document;
  for (const [name, render] of Object.entries(parts)) {
    const [begin, end] = [`<!-- generated: ${name} -->`, `<!-- end: ${name} -->`];
    const from = result.indexOf(begin);
    const to = result.indexOf(end);
    if (from === -1 || to < from) throw new Error(`the document lacks the markers ${begin} and ${end}`);
    result = `${result.slice(0, from)}${begin}\n\n${render()}\n\n${result.slice(to)}`;
  }
  return result;
}

/** The document without its generated parts. */
export function withoutGeneratedParts(document: string): string {
  return document.replaceAll(/<!-- generated: (\w+) -->.*?<!-- end: \1 -->/gs, "");
}

/** A table in Markdown. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ").trim();
}
