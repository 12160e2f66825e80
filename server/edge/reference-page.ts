import { createHash } from "node:crypto";
import type { TSchema } from "typebox";
import { errorCatalogue } from "../../protocol/errors.ts";
import { fixedRoutes } from "../../protocol/fixed-routes.ts";
import { type MethodRow, type MethodTable, routeOf } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import { namedObjects, namedTypes } from "../../protocol/named-schemas.ts";
import { notifications } from "../../protocol/notifications.ts";
import { fieldHead, SchemaText } from "../../protocol/schema-text.ts";

const text = new SchemaText({ ...namedTypes, ...namedObjects });

const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1rem; }
th, td { border: 1px solid #8886; padding: 0.25rem 0.5rem; text-align: left; vertical-align: top; }
h2 { margin-top: 3rem; } h3 { margin-top: 2rem; } nav ul { columns: 3; }
`;

/** What goes with the page: nothing but its own style may be used, and nobody may frame it. */
export const referenceHeaders = {
  "content-security-policy": `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
} as const;

/** The reference of the protocol as one HTML page, from the method table: without a script, and without anything outside. */
export function referencePage(version: string, rows: MethodTable = methods): string {
  const entries = Object.entries(rows);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>pi-rpcd ${escaped(version)}</title><style>${style}</style></head><body>
<h1>pi-rpcd ${escaped(version)}</h1>
<p>Each method is called by JSON-RPC, and most by a path over HTTP, with the token of <code>daemon.json</code> as
<code>Authorization: Bearer</code>. PROTOCOL.md says the rest.</p>
<nav><ul>${entries.map(([name]) => `<li><a href="#${anchor(name)}">${escaped(name)}</a></li>`).join("")}</ul></nav>
<h2 id="paths">Paths</h2>
${table(
  ["request", "does"],
  [
    ...fixedRoutes.map(({ verb, path, summary }) => [`\`${verb} ${path}\``, summary]),
    ...entries.flatMap(([, row]) => (routeOf(row) === undefined ? [] : [[routeText(row), row.summary]])),
  ],
)}
<h2 id="methods">Methods</h2>
${entries.map(([name, row]) => method(name, row)).join("\n")}
<h2 id="notifications">Notifications</h2>
${Object.entries(notifications)
  .map(([name, { summary, params }]) => `${heading(name)}${paragraph(summary)}${fields("Params", params)}`)
  .join("\n")}
<h2 id="types">Types</h2>
${[...Object.entries(namedTypes), ...Object.entries(namedObjects)].map(type).join("\n")}
<h2 id="errors">Errors</h2>
${table(
  ["name", "code", "HTTP", "retry", "meaning"],
  Object.entries(errorCatalogue).map(([name, { code, httpStatus, retryable, meaning }]) => [
    `\`${name}\``,
    String(code),
    String(httpStatus),
    retryable ? "yes" : "no",
    meaning,
  ]),
)}
</body></html>
`;
}

function method(name: string, row: MethodRow): string {
  const errors = row.errors.length === 0 ? "none of its own" : row.errors.map((error) => `\`${error}\``).join(", ");
  return [
    heading(name),
    paragraph(routeText(row)),
    paragraph(row.summary),
    fields("Params", row.params),
    fields("Result", row.result),
    paragraph(`Errors: ${errors}. Capability: ${row.capability}. Since: ${row.since}.`),
  ].join("\n");
}

function routeText(row: MethodRow): string {
  const route = routeOf(row);
  if (route === undefined) return `JSON-RPC alone: ${"none" in row.http ? row.http.none : ""}.`;
  const query = route.ifQuery === undefined ? "" : `?${route.ifQuery}=…`;
  return `\`${route.verb} ${route.path}${query}\`${route.stream === true ? " (server-sent events)" : ""}`;
}

function type([name, schema]: readonly [string, TSchema]): string {
  const { description = "" } = schema as { readonly description?: string };
  const rows = text.rows(schema);
  const said = new SchemaText({}).type(schema);
  return `${heading(name)}${paragraph(description)}${rows.length === 0 ? paragraph(`Is ${said}.`) : table(fieldHead, rows)}`;
}

function fields(title: string, schema: TSchema): string {
  const said = text.type(schema);
  const rows = said.startsWith("[") ? [] : text.rows(schema);
  if (rows.length > 0) return `${paragraph(`${title}:`)}${table(fieldHead, rows)}`;
  return paragraph(`${title}: ${said === "object" ? "none" : said}.`);
}

function heading(name: string): string {
  return `<h3 id="${anchor(name)}">${escaped(name)}</h3>`;
}

function paragraph(words: string): string {
  return words === "" ? "" : `<p>${inline(words)}</p>`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${inline(cell)}</${tag}>`).join("")}</tr>`;
  return `<table>${line("th", head)}${rows.map((row) => line("td", row)).join("\n")}</table>`;
}

/** As much of Markdown as descriptions use: code, and links within the page. */
function inline(markdown: string): string {
  return markdown
    .split(/(`[^`]*`)/)
    .map((part) =>
      part.startsWith("`")
        ? `<code>${escaped(part.slice(1, -1))}</code>`
        : escaped(part).replaceAll(/\[(\w+)\]\(#(\w+)\)/g, '<a href="#$2">$1</a>'),
    )
    .join("");
}

function anchor(name: string): string {
  return name.replaceAll(/[^\w]/g, "").toLowerCase();
}

function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
