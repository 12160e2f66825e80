import { readdirSync, readlinkSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";

/** Whether the system says which files a process has open. */
export const tellsOpenFiles: boolean = process.platform === "linux";

/**
 * Whether a process of this machine has files open in a directory; undefined where the system does not tell. A daemon in
 * a container that shares the directory has a process id which is another program's here.
 */
export function hasOpenFilesIn(pid: number, directory: string): boolean | undefined {
  if (!tellsOpenFiles) return undefined;
  const descriptors = `/proc/${pid}/fd`;
  try {
    const folder = realpathSync(directory) + sep;
    return readdirSync(descriptors).some((descriptor) => linkOf(join(descriptors, descriptor)).startsWith(folder));
  } catch {
    return false;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
