import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { Type } from "../protocol/json-schema.ts";
import { params } from "../protocol/params.ts";
import { Profile } from "../protocol/session-options.ts";
import type { Validator } from "../protocol/validation.ts";
import { StartError } from "./lib/start-error.ts";
import { noConfiguration, type SessionConfiguration } from "./session/create-options.ts";

/** The configuration file: JSON, every part of it optional. */
const ConfigFile = params({
  profiles: Type.Optional(
    Type.Record(Type.String(), Profile, { propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" } }),
  ),
  sessionEnv: Type.Optional(Type.Array(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}[*]?$" }))),
});

/** A larger file is none of ours. */
const maxConfigBytes = 4 * 1024 * 1024;

/**
 * Reads the configuration: `option`, which must be there, else `$XDG_CONFIG_HOME/pi-rpcd/config.json` or
 * `~/.config/pi-rpcd/config.json`, if there is one. Throws a {@link StartError} `config_invalid` that names the place.
 */
export function readConfiguration(
  { option, env }: { readonly option: string | undefined; readonly env: NodeJS.ProcessEnv },
  validator: Validator,
): SessionConfiguration {
  const path = option === undefined ? defaultPath(env) : resolve(option);
  const text = textOf(path, option !== undefined);
  if (text === undefined) return noConfiguration;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalid(path, `is not JSON: ${(cause as Error).message}`, cause);
  }
  const findings = validator.schema(ConfigFile, value);
  if (findings.length > 0) {
    const list = findings.map(({ path: place, message }) => `${place === "" ? "the whole" : place} ${message}`);
    throw invalid(path, `has mistakes: ${list.join("; ")}`);
  }
  return { ...noConfiguration, ...(value as Partial<SessionConfiguration>) };
}

function defaultPath(env: NodeJS.ProcessEnv): string {
  const home = env["XDG_CONFIG_HOME"];
  // The specification of XDG says that a relative path is to be ignored.
  const configHome = home !== undefined && isAbsolute(home) ? home : join(env["HOME"] ?? homedir(), ".config");
  return join(configHome, "pi-rpcd", "config.json");
}

function textOf(path: string, mustExist: boolean): string | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" && !mustExist) return undefined;
    throw invalid(path, code === "ENOENT" ? "does not exist" : `cannot be read (${code})`, cause);
  }
  if (text.length > maxConfigBytes) throw invalid(path, `is longer than ${maxConfigBytes} bytes`);
  return text.replace(/^\ufeff/, "");
}

function invalid(path: string, why: string, cause?: unknown): StartError {
  return new StartError("config_invalid", `The configuration ${path} ${why}.`, { cause });
}
