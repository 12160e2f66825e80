import { basename, relative, resolve } from "node:path";
import { isObject } from "../../../extension/pi-types.ts";

const single = ["path", "file_path", "filePath", "filepath", "file", "filename", "notebook_path"];
const several = ["paths", "files", "file_paths"];
/** Of one call. More are not looked at. */
const maxPaths = 64;
const maxLength = 4_096;

/** The paths that a call names in its arguments, as they are written there. */
export function pathsIn(args: unknown): string[] {
  if (!isObject(args)) return [];
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

/** One path in one form, however a call writes it. */
export function wholePath(path: string, cwd: string): string {
  return resolve(cwd, path.startsWith("@") ? path.slice(1) : path);
}

/** The forms of a path by which a person's glob may mean it: as it is written, from the session's directory, whole, its name. */
export function formsOf(path: string, cwd: string): string[] {
  const whole = wholePath(path, cwd);
  return [...new Set([path, relative(cwd, whole), whole, basename(whole)])].filter((form) => form !== "");
}
