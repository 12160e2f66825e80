import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { within } from "./deadline.ts";
import type { Resources, Setting } from "./figure.ts";
import { RawClient } from "./raw-client.ts";

/** Starts a program of `bench/fixtures` that serves WebSocket at the path which is its first argument, and connects. */
export async function startBareServer(
  name: string,
  { directory }: Setting,
  resources: Resources,
  ...args: readonly string[]
): Promise<RawClient> {
  const program = join(import.meta.dirname, "..", "fixtures", `${name}.mjs`);
  const socketPath = join(directory, name);
  const child = spawn(process.execPath, [program, socketPath, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  resources.add(child, async ({ stdin }) => {
    const gone = once(child, "exit");
    stdin.end();
    await gone;
  });
  await within(20, `the start of ${name}`, once(child.stdout, "data"));
  return await RawClient.open({ socketPath, token: "none" }, "unix", resources);
}
