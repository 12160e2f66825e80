import type { TSchema } from "typebox";
import { deliveryStates } from "../../protocol/delivery-progress.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { fixedRoutes } from "../../protocol/fixed-routes.ts";
import { type MethodRow, type MethodTable, routeOf } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import { namedObjects as objects, namedTypes as others } from "../../protocol/named-schemas.ts";
import { type NotificationRow, notifications } from "../../protocol/notifications.ts";
import { type PiCommandRoute, piCommands } from "../../protocol/pi-commands.ts";
import { SchemaText, table } from "../../protocol/schema-text.ts";
import { filled } from "./generated-parts.ts";
import { protocolLimits } from "./protocol-limits.ts";

// The parts of PROTOCOL.md that derive from the code. Each stands between two markers.

const text = new SchemaText({ ...others, ...objects });

const parts: Readonly<Record<string, (table: MethodTable) => string>> = {
  limits: () =>
    table(
      ["limit", "value", "what it bounds, and what happens then"],
      protocolLimits.map(({ name, value, meaning }) => [`\`${name}\``, value, meaning]),
    ),
  methods: (rows) =>
    Object.entries(rows)
      .map(([name, row]) => method(name, row))
      .join("\n\n"),
  routes: (rows) =>
    table(
      ["request", "does", "method"],
      [
        ...fixedRoutes.map(({ verb, path, summary }) => [`\`${verb} ${path}\``, summary, ""]),
        ...Object.entries(rows).flatMap(([name, row]) => {
          const path = pathText(row);
          return path === undefined
            ? []
            : [[`\`${path}\``, row.summary, `[${name}](#${name.replace(/[/.]/, "").toLowerCase()})`]];
        }),
      ],
    ),
  commands: () =>
    table(
      ["pi's command", "method", "by `session/command`"],
      Object.entries<PiCommandRoute>(piCommands).map(([name, { method: does, asItIs, setting }]) => [
        `\`${name}\``,
        does === undefined ? "none yet" : `[${does}](#${does.replace("/", "").toLowerCase()})`,
        asItIs ? (setting === undefined ? "yes" : "with `confirmShared`") : "no",
      ]),
    ),
  notifications: () =>
    Object.entries<NotificationRow>(notifications)
      .map(([name, row]) => section(name, [row.summary, params(row.params), `Since: ${row.since}.`]))
      .join("\n\n"),
  types: () => [...Object.entries(others).map(alias), ...Object.entries(objects).map(object)].join("\n\n"),
  deliveryStates: () =>
    table(
      ["state", "means", "next"],
      Object.entries(deliveryStates).map(([state, { means, next, note }]) => [
        `\`${state}\``,
        means,
        next.length === 0 ? "the end" : [next.map((name) => `\`${name}\``).join(", "), note].filter(Boolean).join("; "),
      ]),
    ),
  errors: () =>
    table(
      ["name", "code", "HTTP", "retry", "meaning"],
      Object.entries(errorCatalogue).map(([name, { code, httpStatus, retryable, meaning }]) => [
        `\`${name}\``,
        String(code),
        String(httpStatus),
        retryable ? "yes" : "no",
        meaning,
      ]),
    ),
};

/** PROTOCOL.md with every generated part as the code says it. Throws if a part's markers are missing. */
export function withGeneratedParts(document: string, rows: MethodTable = methods): string {
  return filled(
    document,
    Object.fromEntries(Object.entries(parts).map(([name, render]) => [name, () => render(rows)])),
  );
}

function method(name: string, row: MethodRow): string {
  const { summary, params: taken, result, scope, asleep, capability, since, errors } = row;
  const withoutPi = asleep === undefined ? "" : `Without a pi: ${asleep}. `;
  const named = errors.length === 0 ? "none of its own" : errors.map((error) => `\`${error}\``).join(", ");
  return section(name, [
    summary,
    params(taken),
    resultText(result),
    `Errors: ${named}. Scope: ${scope}. ${withoutPi}Capability: ${capability}. Since: ${since}. ${httpText(row)}`,
  ]);
}

function httpText(row: MethodRow): string {
  const path = pathText(row);
  if (path === undefined) return `HTTP: none (${"none" in row.http ? row.http.none : ""}).`;
  return `HTTP: \`${path}\`${routeOf(row)?.stream === true ? ", as [server-sent events](#server-sent-events)" : ""}.`;
}

function pathText(row: MethodRow): string | undefined {
  const route = routeOf(row);
  if (route === undefined) return undefined;
  return `${route.verb} ${route.path}${route.ifQuery === undefined ? "" : `?${route.ifQuery}=…`}`;
}

function params(schema: TSchema): string {
  const said = text.type(schema);
  if (said.startsWith("[")) return `Params: ${said}.`;
  const fields = text.fields(schema);
  return fields === undefined ? "Params: none." : `Params:\n\n${fields}`;
}

function resultText(schema: TSchema): string {
  const said = text.type(schema);
  const fields = said.startsWith("[") ? undefined : text.fields(schema);
  return fields === undefined ? `Result: ${said}.` : `Result:\n\n${fields}`;
}

function alias([name, schema]: readonly [string, TSchema]): string {
  const { description } = schema as { readonly description?: string };
  const said = new SchemaText(objects).type(schema);
  return section(name, [
    `${said.charAt(0).toUpperCase()}${said.slice(1)}.${description === undefined ? "" : ` ${description}`}`,
  ]);
}

function object([name, schema]: readonly [string, TSchema]): string {
  const { description } = schema as { readonly description?: string };
  return section(name, [...(description === undefined ? [] : [description]), text.fields(schema) ?? ""]);
}

function section(heading: string, paragraphs: readonly string[]): string {
  return [`### ${heading}`, ...paragraphs].join("\n\n");
}
