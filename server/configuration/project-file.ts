import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import type { PartOptions } from "../../protocol/configuration/part-options.ts";
import { Type } from "../../protocol/json-schema.ts";
import { isRecord } from "../../protocol/objects.ts";
import { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { PruningOptions } from "../../protocol/pruning/options.ts";
import type { Validator } from "../../protocol/validation.ts";
import { Jsonc, JsoncError } from "./jsonc.ts";
import { configurationsIn, mistakesOfFile, mistakesOfLayers, pathPlaces } from "./part-files.ts";

/** The file with which a project configures its sessions. */
export const PROJECT_FILE = join(".pi", "pi-rpcd.jsonc");

/** A larger file is not a project file. */
const maxProjectFileBytes = 256 * 1024;

/** The file of a project: JSON with comments. */
export const ProjectFile = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: "For editors." })),
    optimisation: Type.Optional(OptimisationOptions),
    pruning: Type.Optional(PruningOptions),
  },
  { additionalProperties: false },
);

export interface FoundProject extends PartOptions {
  readonly file: string;
  /** Why none of it is used: file, line, key. */
  readonly problem?: string;
}

/**
 * Reads the file of a trusted project. Undefined if the project has none. A file that cannot be used is reported as a
 * problem, without an exception: a project's files must not prevent a session from starting. Relative paths in it are
 * relative to the project.
 */
export async function readProjectFile(cwd: string, validator: Validator): Promise<FoundProject | undefined> {
  const file = join(cwd, PROJECT_FILE);
  const wrong = (why: string): FoundProject => ({ file, problem: `${file} ${why}`.slice(0, 1_000).toWellFormed() });
  try {
    const text = await textOf(file);
    if (text === undefined) return undefined;
    const jsonc = Jsonc.parse(text);
    const value = withWholePaths(jsonc.value, cwd);
    const places = mistakesOfFile(value, ProjectFile, validator, configurationsIn, mistakesOfLayers);
    const [place] = places;
    if (place !== undefined) return wrong(`has mistakes: line ${jsonc.lineOf(place.place)}: ${place.words}.`);
    const { optimisation, pruning } = value as PartOptions;
    if (optimisation === undefined && pruning === undefined) return undefined;
    return {
      file,
      ...(optimisation === undefined ? {} : { optimisation }),
      ...(pruning === undefined ? {} : { pruning }),
    };
  } catch (error) {
    if (error instanceof JsoncError) return wrong(`${error.message}.`);
    const { code, message } = error as NodeJS.ErrnoException;
    return wrong(`cannot be used: ${code ?? message}.`);
  }
}

/** Undefined if it is missing. Only a regular file is read, because others could block. */
async function textOf(file: string): Promise<string | undefined> {
  const opened = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  });
  if (opened === undefined) return undefined;
  try {
    const found = await opened.stat();
    if (!found.isFile()) throw new JsoncError("is not a file");
    if (found.size > maxProjectFileBytes) throw new JsoncError(`is longer than ${maxProjectFileBytes} bytes`);
    const bytes = Buffer.alloc(maxProjectFileBytes);
    const { bytesRead } = await opened.read(bytes, 0, bytes.length, 0);
    return bytes.toString("utf8", 0, bytesRead).replace(/^\ufeff/, "");
  } finally {
    await opened.close();
  }
}

/** Values of the wrong type stay unchanged; the schema refuses them. */
function withWholePaths(value: unknown, cwd: string): unknown {
  if (!isRecord(value)) return value;
  const given = structuredClone(value);
  for (const place of pathPlaces) {
    const [root = "", part = "", knob = ""] = place;
    const options = given[root];
    const knobs = isRecord(options) ? options[part] : undefined;
    const path = isRecord(knobs) ? knobs[knob] : undefined;
    if (isRecord(knobs) && typeof path === "string" && path !== "" && !isAbsolute(path))
      knobs[knob] = resolve(cwd, path);
  }
  return given;
}
