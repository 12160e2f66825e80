import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import {
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";
import type { Validator } from "../../protocol/validation.ts";
import { StartError } from "../lib/start-error.ts";
import { ConfigurationFile, type SettingName, settings } from "./settings.ts";

/** A larger file is none of ours. */
const maxBytes = 4 * 1024 * 1024;

/** What a configuration file says. */
export interface FoundFile {
  readonly path: string;
  /** Each has been checked against its schema. */
  readonly values: ReadonlyMap<SettingName, { readonly value: unknown; readonly line: number }>;
}

export interface FileChoice {
  /** Must be there. Default: the file at its usual place, if there is one. */
  readonly file: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** `$XDG_CONFIG_HOME/pi-rpcd/config.json`, else `~/.config/pi-rpcd/config.json`. */
export function usualPath(env: NodeJS.ProcessEnv): string {
  const home = env["XDG_CONFIG_HOME"];
  // The specification of XDG says that a relative path is to be ignored.
  const configHome = home !== undefined && isAbsolute(home) ? home : join(env["HOME"] || homedir(), ".config");
  return join(configHome, "pi-rpcd", "config.json");
}

/**
 * Reads the configuration file: JSON with comments. Undefined where there is none and none was named. Throws a
 * {@link StartError} `config_invalid` that names each place.
 */
export function readFile({ file, env }: FileChoice, validator: Validator): FoundFile | undefined {
  const path = file === undefined ? usualPath(env) : resolve(file);
  const text = textOf(path, file !== undefined);
  if (text === undefined) return undefined;
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true, disallowComments: false });
  const [error] = errors;
  if (error !== undefined || tree === undefined) {
    const what = error === undefined ? "it is empty" : printParseErrorCode(error.error);
    throw invalid(path, `is not JSON: line ${lineAt(text, error?.offset ?? 0)}: ${what}`);
  }
  const doubled = repeatedKey(tree);
  if (doubled !== undefined) {
    throw invalid(
      path,
      `has mistakes: line ${lineAt(text, doubled.offset)}: "${String(doubled.value)}" ${doubled.why}`,
    );
  }
  const findings = validator.schema(ConfigurationFile, getNodeValue(tree));
  if (findings.length > 0) {
    const places = findings.map(({ path: place, message }) => {
      const node = nodeAt(tree, place);
      return `line ${lineAt(text, node.offset)}: ${place === "" ? "the whole" : named(place)} ${message}`;
    });
    throw invalid(path, `has mistakes: ${places.join("; ")}`);
  }
  const found = (Object.keys(settings) as SettingName[]).flatMap((name) => {
    const node = findNodeAtLocation(tree, name.split("."));
    return node === undefined ? [] : [[name, { value: getNodeValue(node), line: lineAt(text, node.offset) }] as const];
  });
  return { path, values: new Map(found) };
}

/** A key that stands twice in one object, or that names no property: one of them would be lost without a word. */
function repeatedKey(
  node: Node,
): { readonly value: unknown; readonly offset: number; readonly why: string } | undefined {
  if (node.type === "object") {
    const seen = new Set<unknown>();
    for (const { children: [key] = [] } of node.children ?? []) {
      if (key === undefined) continue;
      if (key.value === "__proto__") return { value: key.value, offset: key.offset, why: "is not a known parameter" };
      if (seen.has(key.value)) return { value: key.value, offset: key.offset, why: "is there twice" };
      seen.add(key.value);
    }
  }
  for (const child of node.children ?? []) {
    const found = repeatedKey(child);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A part of an object is called as its setting is: `context.maxNodes`. */
function named(pointer: string): string {
  const [, group = "", part = ""] = pointer.split("/");
  const name = `${group}.${part}`;
  return Object.hasOwn(settings, name) ? `${name}${pointer.slice(name.length + 1)}` : pointer;
}

/** The node that a JSON pointer names, else the last one on the way to it. */
function nodeAt(tree: Node, pointer: string): Node {
  const words = pointer
    .split("/")
    .slice(1)
    .map((word) => word.replaceAll("~1", "/").replaceAll("~0", "~"));
  for (let end = words.length; end > 0; end -= 1) {
    const path = words.slice(0, end);
    const node = findNodeAtLocation(tree, path) ?? findNodeAtLocation(tree, path.map(asIndex));
    // What a person looks for is the line of the key.
    if (node !== undefined) return node.parent?.type === "property" ? node.parent : node;
  }
  return tree;
}

function asIndex(word: string): string | number {
  return /^\d+$/.test(word) ? Number(word) : word;
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

function textOf(path: string, mustExist: boolean): string | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" && !mustExist) return undefined;
    throw invalid(path, code === "ENOENT" ? "does not exist" : `cannot be read (${code})`, cause);
  }
  if (bytes.length > maxBytes) throw invalid(path, `is longer than ${maxBytes} bytes`);
  return bytes.toString("utf8").replace(/^\ufeff/, "");
}

function invalid(path: string, why: string, cause?: unknown): StartError {
  return new StartError("config_invalid", `The configuration ${path} ${why}.`, { cause });
}
