import { createHash } from "node:crypto";
import { deliveryStates } from "../../protocol/delivery-progress.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { exampleOf } from "../../protocol/examples.ts";
import { fixedRoutes } from "../../protocol/fixed-routes.ts";
import { errorsOf } from "../../protocol/method-errors.ts";
import { type MethodRow, type MethodTable, routeOf } from "../../protocol/method-row.ts";
import { isMethodName, methods } from "../../protocol/methods.ts";
import { namedObjects, namedTypes } from "../../protocol/named-schemas.ts";
import { type NotificationRow, notifications } from "../../protocol/notifications.ts";
import { optionDefaults } from "../../protocol/option-defaults.ts";
import { type PiCommandRoute, piCommands } from "../../protocol/pi-commands.ts";
import { type Field, TypeText } from "../../protocol/type-text.ts";
import { PROTOCOL_VERSION } from "../../protocol/wire.ts";
import { protocolLimits } from "./protocol-limits.ts";

const named = { ...namedTypes, ...namedObjects };
/** Characters of Unicode's private area enclose the name of a type, until {@link typeHtml} makes a link of it. */
const marked = (type: string): string => `\uE000${type}\uE001`;
const text = new TypeText(named, { name: marked, isOutline: true });
const whole = new TypeText(named, { name: marked });

const style = `
:root { --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --code: #f3f4f6; --page: #fff; --link: #0550ae; }
@media (prefers-color-scheme: dark) {
  :root { --text: #d7dce2; --soft: #8d96a0; --line: #343b44; --code: #1d2228; --page: #111418; --link: #79b8ff; }
}
:root { color-scheme: light dark; }
html { scroll-padding-top: 1rem; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; color: var(--text); background: var(--page);
  display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; box-sizing: border-box; padding: 1rem;
  border-right: 1px solid var(--line); font-size: 0.875rem; }
nav ul { list-style: none; margin: 0 0 0.75rem; padding: 0 0 0 0.5rem; } nav strong a { color: var(--text); }
main { padding: 1rem 2rem 4rem; max-width: 68rem; }
code, pre { font: 0.875em/1.45 ui-monospace, monospace; background: var(--code); border-radius: 3px; }
code { padding: 0.1em 0.25em; overflow-wrap: anywhere; } pre { padding: 0.75rem; overflow: auto; }
table { border-collapse: collapse; width: 100%; margin: 0.25rem 0 1rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.3rem 0.75rem 0.3rem 0; text-align: left; vertical-align: top; }
th, h4, .facts { color: var(--soft); } th, .facts { font-size: 0.875rem; }
td:first-child, td:nth-child(3) > code:only-child { white-space: nowrap; } td code { background: none; padding: 0; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); } h3 { margin: 2.5rem 0 0.5rem; }
h4 { margin: 1rem 0 0; font-size: 0.9rem; } h3 a { color: inherit; } summary { cursor: pointer; color: var(--link); }
:target { background: var(--code); }
@media (max-width: 60rem) {
  body { display: block; } main { padding: 1rem; } td:first-child, td:nth-child(3) > code:only-child { white-space: normal; }
  nav { position: static; height: auto; border: 0; columns: 2; }
}
`;

/** Allows only the page's own style. */
const policy = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; base-uri 'none'; form-action 'none'`;

/** The headers with which the daemon serves the page. */
export const referenceHeaders = {
  "content-security-policy": `${policy}; frame-ancestors 'none'`,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
} as const;

/**
 * The reference of the protocol as one HTML page, from the tables: every method, notification, type, error and limit, with every
 * nested field. It has no script, loads nothing, and holds nothing of this daemon but the version.
 */
export function referencePage(version: string, rows: MethodTable = methods): string {
  const entries = Object.entries(rows);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<title>pi-rpcd ${escaped(version)}: reference</title><style>${style}</style></head><body>
${navigation(entries.map(([method]) => method))}
<main>
<h1>pi-rpcd ${escaped(version)}: reference</h1>
${paragraph(`Version ${PROTOCOL_VERSION} of the protocol. Each method is called by JSON-RPC 2.0 over a WebSocket or \`POST /v1/rpc\`, and most by a path over HTTP. Every call needs the token of \`daemon.json\`. PROTOCOL.md explains how to connect, what is guaranteed, and how the parts work together; \`GET /openapi.json\` and \`GET /openrpc.json\` have this reference for programs.`)}
${notation}
<h2 id="methods">Methods</h2>
${entries.map(([method, row]) => methodSection(method, row)).join("\n")}
<h2 id="notifications">Notifications</h2>
${Object.entries<NotificationRow>(notifications)
  .map(([notification, row]) => notificationSection(notification, row))
  .join("\n")}
<h2 id="types">Types</h2>
${Object.entries(named)
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(([type, schema]) => typeSection(type, schema))
  .join("\n")}
<h2 id="option-defaults">Defaults of options</h2>
${paragraph("The value of each option of `optimisation` and `pruning` when neither the call nor a configuration has one.")}
${table(
  ["option", "default"],
  optionDefaults().map(([path, value]) => [code(path), code(value)]),
)}
<h2 id="errors">Errors</h2>
${paragraph("An error has `name` and `retryable` in `error.data`. Over HTTP it is `application/problem+json` with its status.")}
${table(
  ["name", "code", "HTTP", "retryable", "meaning"],
  Object.entries(errorCatalogue).map(([error, { code, httpStatus, retryable, meaning }]) => [
    target(`error-${error}`, error),
    String(code),
    String(httpStatus),
    retryable ? "yes" : "no",
    inline(meaning),
  ]),
)}
<h2 id="delivery-states">States of a delivery</h2>
${table(
  ["state", "meaning", "next"],
  Object.entries(deliveryStates).map(([state, { means, next, note = "" }]) => [
    code(state),
    inline(means),
    next.length === 0 ? "none: the delivery ends here" : `${next.map(code).join(", ")} ${inline(note)}`,
  ]),
)}
<h2 id="pi-commands">Commands of pi</h2>
${paragraph("The method for each command of pi's RPC, and whether `session/command` takes the command as it is.")}
${table(
  ["command", "method", "by session/command"],
  Object.entries<PiCommandRoute>(piCommands).map(([command, { method, asItIs, setting }]) => [
    code(command),
    method === undefined ? "none" : link(anchor(method), method),
    asItIs ? (setting === undefined ? "yes" : inline("with `confirmShared`")) : "no",
  ]),
)}
<h2 id="paths">HTTP paths that are not methods</h2>
${table(
  ["request", "answer", "meaning"],
  fixedRoutes.map(({ verb, path, answers, summary }) => [code(`${verb} ${path}`), code(answers), inline(summary)]),
)}
<h2 id="limits">Limits</h2>
${paragraph("The limits of a daemon with the default configuration, and what happens when one is reached.")}
${table(
  ["limit", "value", "meaning"],
  protocolLimits.map(({ name: limit, value, meaning }) => [
    target(`limit-${limit}`, limit),
    escaped(value),
    inline(meaning),
  ]),
)}
</main></body></html>
`;
}

const notation = `<h2 id="notation">Notation of types</h2>
${table(
  ["notation", "meaning"],
  [
    ["name?", "The field may be absent."],
    [
      "a.b, a[].b, a.*.b",
      "The field `b` of the object `a`, of each item of the array `a`, of each value of the object `a`.",
    ],
    [
      "string 1..64 /pattern/",
      "A string of 1 to 64 characters that matches the pattern. Each of the parts can be missing.",
    ],
    ["int 0.., number ..1", "An integer from 0 on; a number up to 1."],
    ["T[1..8]", "An array of 1 to 8 items of the type `T`."],
    ["{[name]: T}", "An object with any names, whose values have the type `T`."],
    ["json", "Any JSON."],
    [
      "…",
      "The object can have further fields. Ignore fields that you do not know, also in other objects of results and notifications.",
    ],
  ].map(([sign = "", meaning = ""]) => [code(sign), inline(meaning)]),
)}`;

function navigation(names: readonly string[]): string {
  const list = (links: readonly string[]): string => `<ul>${links.map((one) => `<li>${one}</li>`).join("")}</ul>`;
  const nouns = [...Map.groupBy(names, (method) => method.split(/[/.]/)[0] ?? "")].map(([, group]) =>
    list(group.map((method) => link(anchor(method), method))),
  );
  const others = [
    ["notifications", "Notifications"],
    ["types", "Types"],
    ["option-defaults", "Defaults of options"],
    ["errors", "Errors"],
    ["delivery-states", "States of a delivery"],
    ["pi-commands", "Commands of pi"],
    ["paths", "HTTP paths"],
    ["limits", "Limits"],
  ].map(([id = "", title = ""]) => `<strong>${link(id, title)}</strong><br>`);
  return `<nav><strong>${link("notation", "Notation")}</strong><br><strong>${link("methods", "Methods")}</strong>
${nouns.join("\n")}${others.join("\n")}</nav>`;
}

function methodSection(method: string, row: MethodRow): string {
  const { summary, params, result, capability, isLocal: local, needs = [], since, scope, asleep } = row;
  const facts = [
    routeHtml(row),
    capability === "any" ? "every token may call it" : `needs ${code(capability)}`,
    ...(local === true ? ["only on the Unix socket"] : []),
    ...needs.map(
      ({ param, value, capability: needed, isLocal }) =>
        `${code(value === undefined ? param : `${param}: ${value}`)} needs ${code(needed)}${isLocal === true ? " on the Unix socket" : ""}`,
    ),
    ...(scope === "session" ? ["calls for one session wait for each other"] : []),
    ...(asleep === undefined ? [] : [inline(withoutPi[asleep])]),
    `since ${escaped(since)}`,
  ];
  return `${heading(method)}${paragraph(summary)}<p class="facts">${facts.join(" · ")}</p>
${typeAndFields("Params", params)}
${typeAndFields("Result", result)}
<h4>Errors</h4><p>${errorsOf(row)
    .map((error) => link(`error-${error}`, error))
    .join(", ")}</p>
${example(method)}`;
}

const withoutPi: Readonly<Record<NonNullable<MethodRow["asleep"]>, string>> = {
  file: "without a pi the answer comes from the session's file; `session_asleep` if the file does not tell",
  cached: "without a pi the answer is pi's last one; `session_asleep` if there is none",
  wake: "a pi is started if the session has none",
};

function routeHtml(row: MethodRow): string {
  const route = routeOf(row);
  if (route === undefined) return `not over HTTP: ${inline("none" in row.http ? row.http.none : "")}`;
  const query = route.ifQuery === undefined ? "" : `?${route.ifQuery}=…`;
  return `${code(`${route.verb} ${route.path}${query}`)}${route.stream === true ? " (server-sent events)" : ""}`;
}

function example(method: string): string {
  if (!isMethodName(method)) return "";
  const { params, result } = exampleOf(method);
  const frames = [
    { jsonrpc: "2.0", id: 1, method, params },
    { jsonrpc: "2.0", id: 1, result },
  ].map((frame) => JSON.stringify(frame, null, 2));
  return `<details><summary>Example</summary><pre>${escaped(frames.join("\n\n"))}</pre></details>`;
}

function notificationSection(notification: string, { summary, params, since }: NotificationRow): string {
  return `${heading(notification)}${paragraph(summary)}<p class="facts">since ${escaped(since)}</p>
${typeAndFields("Params", params)}`;
}

function typeSection(type: string, schema: object): string {
  const { description = "" } = schema as { readonly description?: string };
  const isObject = "properties" in schema;
  return `${heading(type, typeAnchor(type))}${paragraph(description)}${isObject ? "" : `<p>${typeHtml(whole.body(schema))}</p>`}${fieldTable(schema)}`;
}

function typeAndFields(title: string, schema: object): string {
  const fields = text.nameOf(schema) === undefined ? fieldTable(schema) : "";
  const { properties } = schema as { readonly properties?: object };
  const isEmpty = properties !== undefined && Object.keys(properties).length === 0;
  const type = isEmpty ? "none" : fields === "" || properties === undefined ? typeHtml(text.type(schema)) : "";
  return `<h4>${title}</h4>${type === "" ? "" : `<p>${type}</p>`}${fields}`;
}

/** Returns an empty text for a type without fields. */
function fieldTable(schema: object): string {
  const fields = text.fields(schema);
  return fields.length === 0 ? "" : table(["field", "type", "default", "meaning"], fields.map(fieldCells));
}

function fieldCells({ path, type, isOptional, default: value, description }: Field): readonly string[] {
  return [
    code(`${path}${isOptional ? "?" : ""}`),
    typeHtml(type),
    value === undefined ? "" : code(value),
    inline(description),
  ];
}

function heading(title: string, id = anchor(title)): string {
  return `<h3 id="${id}">${link(id, title)}</h3>`;
}

function target(id: string, label: string): string {
  return `<code id="${escaped(id)}">${escaped(label)}</code>`;
}

function link(id: string, label: string): string {
  return `<a href="#${escaped(id)}">${escaped(label)}</a>`;
}

function paragraph(words: string): string {
  return words === "" ? "" : `<p>${inline(words)}</p>`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join("")}</tr>`;
  return `<table>${line("th", head)}${rows.map((row) => line("td", row)).join("\n")}</table>`;
}

function typeHtml(type: string): string {
  const links = escaped(type).replaceAll(/\uE000(\w+)\uE001/g, (_all, one: string) => link(typeAnchor(one), one));
  return `<code>${links}</code>`;
}

/** Renders the only Markdown that descriptions use: code. */
function inline(markdown: string): string {
  return markdown
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith("`") && part.length > 1 ? code(part.slice(1, -1)) : escaped(part)))
    .join("");
}

function code(words: string): string {
  return `<code>${escaped(words)}</code>`;
}

function anchor(title: string): string {
  return title.replaceAll(/[^\w]/g, "").toLowerCase();
}

/** Has a prefix, because a type may have the name of a method without its slash. */
function typeAnchor(type: string): string {
  return `type-${anchor(type)}`;
}

function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
