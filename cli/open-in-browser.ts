import { spawn } from "node:child_process";
import { once } from "node:events";

/** Whether a person at this machine could see a browser. */
export function hasDesktop(env: NodeJS.ProcessEnv): boolean {
  return process.platform === "darwin" || Boolean(env["DISPLAY"]) || Boolean(env["WAYLAND_DISPLAY"]);
}

/** Whether a program was started that opens the file. */
export async function openInBrowser(path: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  if (!hasDesktop(env)) return false;
  const opener = process.platform === "darwin" ? "open" : "xdg-open";
  const program = spawn(opener, [path], { env, detached: true, stdio: "ignore" });
  try {
    await once(program, "spawn");
  } catch {
    return false;
  }
  program.unref();
  return true;
}
