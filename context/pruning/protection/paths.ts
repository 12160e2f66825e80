import { homedir } from "node:os";
import { basename, join, relative, resolve } from "node:path";
import { isRecord } from "../../../protocol/objects.ts";

const single = ["path", "file_path", "filePath", "filepath", "file", "filename", "notebook_path"];
const several = ["paths", "files", "file_paths"];
/** Paths of one call; further paths are ignored. */
const maxPaths = 64;
const maxLength = 4_096;

/** The paths in a call's arguments, as written. */
export function pathsIn(args: unknown): string[] {
  if (!isRecord(args)) return [];
  const found: string[] = [];
  const take = (value: unknown): void => {
    if (typeof value === "string" && value !== "" && value.length <= maxLength && found.length < maxPaths)
      found.push(value);
  };
  for (const name of single) take(args[name]);
  for (const name of several) {
    const value = args[name];
    if (Array.isArray(value)) for (const one of value.slice(0, maxPaths)) take(one);
    else take(value);
  }
  return found;
}

/** The absolute path. As in pi's tools, an @ at the beginning is left out, and a ~ is the user's home. */
export function wholePath(path: string, cwd: string): string {
  const given = path.startsWith("@") ? path.slice(1) : path;
  return given === "~" || given.startsWith("~/") ? join(homedir(), given.slice(2)) : resolve(cwd, given);
}

/** The forms of a path that a glob can match: as written, relative to the session's directory, absolute, base name. */
export function formsOf(path: string, cwd: string): string[] {
  const whole = wholePath(path, cwd);
  return [...new Set([path, relative(cwd, whole), whole, basename(whole)])].filter((form) => form !== "");
}
