import type { ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import { isRecord } from "../../protocol/objects.ts";
import { absolutePath, type ToolPlace } from "./paths.ts";
import { firstLine, oneLine } from "./text.ts";

/** A tool call of the model. Its arguments are unchecked: they can be any JSON value. */
export interface CalledTool {
  readonly name: string;
  readonly args: unknown;
}

/** What a client shows of a tool call before it has a result. */
export interface ToolDescription {
  readonly title: string;
  readonly kind: ToolKind;
  readonly locations: ToolCallLocation[];
}

type Args = Readonly<Record<string, unknown>>;

interface Row {
  readonly kind: ToolKind;
  readonly title: (args: Args) => string;
  /** Argument that has the path of the tool's file or folder. */
  readonly path?: string;
  /** The line in the file, as the model gave it. */
  readonly line?: string;
}

const maxTitleChars = 200;
const maxLine = 0xffff_ffff;

const command: Row = { kind: "execute", title: ({ command }) => firstLine(wordOf(command), maxTitleChars) };

/** pi's own tools. */
const rows: ReadonlyMap<string, Row> = new Map<string, Row>([
  ["read", { kind: "read", title: ({ path }) => `Read ${wordOf(path)}`, path: "path", line: "offset" }],
  ["edit", { kind: "edit", title: ({ path }) => `Edit ${wordOf(path)}`, path: "path" }],
  ["write", { kind: "edit", title: ({ path }) => `Write ${wordOf(path)}`, path: "path" }],
  ["bash", command],
  ["powershell", command],
  ["grep", { kind: "search", title: (args) => searchTitle("grep", args), path: "path" }],
  ["find", { kind: "search", title: (args) => searchTitle("find", args), path: "path" }],
  ["ls", { kind: "search", title: ({ path }) => `ls ${wordOf(path)}`, path: "path" }],
]);

export function describeTool({ name, args }: CalledTool, place: ToolPlace): ToolDescription {
  const given = isRecord(args) ? args : {};
  const row = rows.get(name);
  const kind = row?.kind ?? (isFetch(name) ? "fetch" : "other");
  const title = row === undefined ? otherTitle(name, given) : row.title(given);
  const path = row?.path === undefined ? undefined : absolutePath(given[row.path], place);
  const locations = path === undefined ? [] : [locationOf(path, row?.line === undefined ? undefined : given[row.line])];
  return { title: oneLine(title, maxTitleChars) || oneLine(name, maxTitleChars) || "tool", kind, locations };
}

export function locationOf(path: string, line: unknown): ToolCallLocation {
  const isLine = Number.isInteger(line) && (line as number) >= 1 && (line as number) <= maxLine;
  return isLine ? { path, line: line as number } : { path };
}

/** Whether it runs a command in a shell, so that its output can be shown in a terminal. */
export function isShell(name: string): boolean {
  return rows.get(name) === command;
}

export function isOwnTool(name: string): boolean {
  return rows.has(name);
}

function searchTitle(name: string, { pattern, path }: Args): string {
  const where = wordOf(path);
  return `${name} ${wordOf(pattern)}${where === "" ? "" : ` in ${where}`}`;
}

function otherTitle(name: string, args: Args): string {
  const first = Object.values(args).find((value) => typeof value === "string" && value !== "");
  return first === undefined ? name : `${oneLine(name, maxTitleChars)}: ${oneLine(wordOf(first), maxTitleChars)}`;
}

/** Whether one of the words of its name is `fetch`, such as in `mcp__web__fetch_page` and `webFetch`. */
function isFetch(name: string): boolean {
  const words = name.slice(0, maxTitleChars).split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/);
  return words.some((word) => word.toLowerCase() === "fetch");
}

function wordOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
