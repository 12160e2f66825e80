import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";

/** Whether a process runs. A zombie, which nobody has waited for yet, does not. */
export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  return !isZombie(pid);
}

/**
 * Whether a process of this machine has files open in a directory; undefined where the system does not tell. A daemon in
 * a container that shares the directory has a process id which is another program's here.
 */
export function hasOpenFilesIn(pid: number, directory: string): boolean | undefined {
  if (process.platform !== "linux") return undefined;
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

function isZombie(pid: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name, in parentheses, may hold anything; the state follows it.
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) === "Z";
  } catch {
    return false;
  }
}
