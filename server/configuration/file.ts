import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import type { Validator } from "../../protocol/validation.ts";
import { StartError } from "../lib/start-error.ts";
import { Jsonc, JsoncError } from "./jsonc.ts";
import { configurationsIn, mistakesOfFile, mistakesOfLayers } from "./part-files.ts";
import { ConfigurationFile, type SettingName, settings } from "./settings.ts";

/** A larger file is not a configuration file. */
const maxBytes = 4 * 1024 * 1024;

/** The content of a configuration file. */
export interface FoundFile {
  readonly path: string;
  /** Each has been checked against its schema. */
  readonly values: ReadonlyMap<SettingName, { readonly value: unknown; readonly line: number }>;
}

export interface FileChoice {
  /** Must exist. Default: the file at its usual path, if it exists. */
  readonly file: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** `$XDG_CONFIG_HOME/pi-rpcd/config.json`, else `~/.config/pi-rpcd/config.json`. */
export function usualPath(env: NodeJS.ProcessEnv): string {
  const home = env["XDG_CONFIG_HOME"];
  // The XDG specification says to ignore a relative path.
  const configHome = home !== undefined && isAbsolute(home) ? home : join(env["HOME"] || homedir(), ".config");
  return join(configHome, "pi-rpcd", "config.json");
}

/**
 * Reads the configuration file: JSON with comments. Undefined if no file was named and the usual one is missing.
 * Throws a {@link StartError} `config_invalid` that names each mistake.
 */
export function readFile({ file, env }: FileChoice, validator: Validator): FoundFile | undefined {
  const path = file === undefined ? usualPath(env) : resolve(file);
  const text = textOf(path, file !== undefined);
  if (text === undefined) return undefined;
  const jsonc = parsed(path, text);
  const places = mistakesOfFile(jsonc.value, ConfigurationFile, validator, configurationsIn, mistakesOfLayers).map(
    ({ place, words }) => `line ${jsonc.lineOf(place)}: ${words}`,
  );
  if (places.length > 0) throw invalid(path, `has mistakes: ${places.join("; ")}`);
  const found = (Object.keys(settings) as SettingName[]).flatMap((name) => {
    const value = jsonc.at(name.split("."));
    return value === undefined ? [] : [[name, value] as const];
  });
  return { path, values: new Map(found) };
}

function parsed(path: string, text: string): Jsonc {
  try {
    return Jsonc.parse(text);
  } catch (cause) {
    if (cause instanceof JsoncError) throw invalid(path, cause.message, cause);
    throw cause;
  }
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
