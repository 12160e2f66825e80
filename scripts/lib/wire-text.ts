import { deliveryStates } from "../../protocol/delivery-progress.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { fixedRoutes } from "../../protocol/fixed-routes.ts";
import { errorsOf } from "../../protocol/method-errors.ts";
import { type HttpRoute, type MethodRow, type MethodTable, routesOf } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import { namedObjects, namedTypes } from "../../protocol/named-schemas.ts";
import { type NotificationRow, notifications } from "../../protocol/notifications.ts";
import { optionDefaults } from "../../protocol/option-defaults.ts";
import { type PiCommandRoute, piCommands } from "../../protocol/pi-commands.ts";
import { TypeText } from "../../protocol/type-text.ts";
import * as wire from "../../protocol/wire.ts";
import { protocolLimits } from "../../server/edge/protocol-limits.ts";

// The wire as one text without prose: protocol/wire.txt. It is sorted, so that moving a declaration in the code does
// not change it.

const head = `# The wire of pi-rpcd: every method, notification, type, error, path and limit, without prose.
# Written by \`npm run schema\` from the tables in protocol/; do not edit. A difference here is a change of the protocol.
#
# method(params) -> result | capability; facts | HTTP | errors besides those of every method
# field?: may be absent    = value: default    T[1..8]: array with its bounds    {[name]: T}: object with any names
# string 1..64 /pattern/    int 0..10    json: any JSON    {a: T, ...}: further fields are allowed`;

/** The content of protocol/wire.txt. */
export function wireText(table: MethodTable = methods): string {
  const named = { ...namedTypes, ...namedObjects };
  const text = new TypeText(named, { isSorted: true });
  const rows = Object.entries(table);
  const all = rows.map(([, row]) => new Set<string>(errorsOf(row)));
  const ofEvery = Object.keys(errorCatalogue).filter((name) => all.every((errors) => errors.has(name)));
  return [
    head,
    section(
      "constants",
      Object.entries(wire).map(([name, value]) => `${name} = ${JSON.stringify(value)}`),
    ),
    section("methods", [...rows.map(([name, row]) => methodLine(name, row, text, ofEvery))]),
    section("errors of every method", ofEvery),
    section(
      "notifications",
      Object.entries<NotificationRow>(notifications).map(
        ([name, { params, since }]) => `${name}${inParentheses(text.type(params))} | since ${since}`,
      ),
    ),
    section(
      "types",
      Object.entries(named).map(([name, schema]) => `${name} = ${text.body(schema)}`),
    ),
    section(
      "defaults of options",
      optionDefaults().map(([path, value]) => `${path} = ${value}`),
    ),
    section(
      "errors",
      Object.entries(errorCatalogue).map(
        ([name, { code, httpStatus, retryable }]) => `${name} ${code} ${httpStatus}${retryable ? " retryable" : ""}`,
      ),
    ),
    section(
      "delivery states",
      Object.entries(deliveryStates).map(([state, { next }]) =>
        next.length === 0 ? `${state}: the end` : `${state} -> ${next.toSorted().join(" ")}`,
      ),
    ),
    section(
      "HTTP paths of no method",
      fixedRoutes.map(
        ({ verb, path, answers, isOpen }) => `${path} ${verb} -> ${answers}${isOpen === true ? "; no token" : ""}`,
      ),
    ),
    section("commands of pi", Object.entries<PiCommandRoute>(piCommands).map(commandLine)),
    section(
      "limits",
      protocolLimits.map(({ name, value }) => `${name} = ${value}`),
    ),
    "",
  ].join("\n");
}

function section(title: string, lines: readonly string[]): string {
  return ["", `## ${title}`, ...lines.toSorted()].join("\n");
}

function methodLine(name: string, row: MethodRow, text: TypeText, ofEvery: readonly string[]): string {
  const { params, result, scope, asleep, capability, isLocal: local, reads, needs = [], since, http } = row;
  const facts = [
    `${capability}${local === true ? " on the Unix socket" : ""}`,
    ...needs
      .map(
        ({ param, value, capability: needed, isLocal }) =>
          `${param}${value === undefined ? "" : `=${value}`} needs ${needed}${isLocal === true ? " on the Unix socket" : ""}`,
      )
      .toSorted(),
    ...(reads === true ? ["reads"] : []),
    ...(scope === "none" ? [] : [`queue of the ${scope}`]),
    ...(asleep === undefined ? [] : [`without pi: ${asleep}`]),
    `since ${since}`,
  ];
  const paths = "none" in http ? ["no HTTP"] : routesOf(row).map(routeText);
  const errors = errorsOf(row).filter((error) => !ofEvery.includes(error));
  return [
    `${name}${inParentheses(text.type(params))} -> ${text.type(result)}`,
    facts.join("; "),
    paths.join(", "),
    ...(errors.length === 0 ? [] : [errors.toSorted().join(" ")]),
  ].join(" | ");
}

function routeText({ verb, path, ifQuery, stream, isFormer }: HttpRoute & { readonly isFormer: boolean }): string {
  const query = ifQuery === undefined ? "" : `?${ifQuery}`;
  return `${verb} ${path}${query}${stream === true ? " as events" : ""}${isFormer ? " (former)" : ""}`;
}

function commandLine([name, { method, asItIs, setting }]: readonly [string, PiCommandRoute]): string {
  const byCommand = asItIs ? (setting === undefined ? "yes" : "with confirmShared") : "no";
  return `${name} -> ${method}; session/command: ${byCommand}`;
}

function inParentheses(type: string): string {
  return type.startsWith("{") ? `(${type.slice(1, -1)})` : `(${type})`;
}
