import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { within } from "./deadline.ts";
import type { Resources, Setting } from "./figure.ts";
import { RawClient } from "./raw-client.ts";

export interface BareServer {
  readonly client: RawClient;
  readonly pid: number;
  readonly address: { readonly socketPath: string; readonly token: string };
}

/** Starts a program of `bench/fixtures` that serves WebSocket at the path which is its first argument, and connects. */
export async function startBareServer(
  name: string,
  { directory }: Setting,
  resources: Resources,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<BareServer> {
  const program = join(import.meta.dirname, "..", "fixtures", `${name}.mjs`);
  const socketPath = join(mkdtempSync(join(directory, "bare-")), "socket");
  const child = spawn(process.execPath, [program, socketPath, ...args], {
    cwd: directory,
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  resources.add(child, async ({ stdin }) => {
    const gone = once(child, "exit");
    stdin.end();
    await gone;
  });
  await within(20, `the start of ${name}`, once(child.stdout, "data"));
  const address = { socketPath, token: "none" };
  return { client: await RawClient.open(address, "unix", resources), pid: child.pid ?? -1, address };
}
