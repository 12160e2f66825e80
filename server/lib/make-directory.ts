import { dirname } from "node:path";

// An import evaluates every export, also the lazy ones, and every command of the command line pays for it.
const { mkdirSync, rmdirSync, statSync } = process.getBuiltinModule("node:fs");

/**
 * Creates a directory and the missing ones above it. Returns the topmost created one; undefined if the directory
 * existed. Node's own `recursive` option never returns below /proc, whose parents exist and accept no directory.
 */
export function makeDirectory(path: string, mode: number): string | undefined {
  if (isDirectory(path)) return undefined;
  const above = makeDirectory(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have created it.
    if (!isDirectory(path)) throw error;
    return above;
  }
  return above ?? path;
}

/** Removes a directory and the ones above it, up to the topmost that {@link makeDirectory} created, while they are empty. */
export function removeDirectory(path: string, topmost: string | undefined): void {
  if (topmost === undefined) return;
  try {
    for (let folder = path; folder.length >= topmost.length; folder = dirname(folder)) rmdirSync(folder);
  } catch {
    // Another process uses it.
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
