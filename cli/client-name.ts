import { execFileSync } from "node:child_process";
import { readlinkSync } from "node:fs";

/** The name of this command for the users of other clients: with its terminal, if it has one, as `pi-rpcd on pts/3`. */
export function clientName(): string {
  const [stream] = [process.stdin, process.stdout, process.stderr].filter(({ isTTY }) => isTTY === true);
  const terminal = stream === undefined ? undefined : terminalOf(stream.fd);
  return terminal === undefined ? "pi-rpcd" : `pi-rpcd on ${terminal}`;
}

function terminalOf(fd: number): string | undefined {
  try {
    const path =
      process.platform === "linux"
        ? readlinkSync(`/proc/self/fd/${fd}`)
        : execFileSync("tty", { stdio: [fd, "pipe", "ignore"], encoding: "utf8", timeout: 1_000 });
    return /^\/dev\/([\w/.-]{1,40})\s*$/.exec(path)?.[1];
  } catch {
    return undefined;
  }
}
