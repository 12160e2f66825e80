import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { nodeFlags } from "../../cli/daemon-process.ts";
import { within } from "./deadline.ts";
import type { Resources, Setting } from "./figure.ts";

const program = join(import.meta.dirname, "..", "fixtures", "bare-http.mjs");

/** Starts a server of `bench/fixtures/bare-http.mjs` on loopback that answers every request with this JSON. */
export async function startBareHttp(
  kind: "node" | "fastify" | "rpc",
  payload: string,
  { directory }: Setting,
  resources: Resources,
): Promise<{ readonly port: number; readonly pid: number }> {
  // A file, because the payload is longer than an argument may be.
  const file = join(mkdtempSync(join(directory, "bare-http-")), "payload.json");
  writeFileSync(file, payload);
  const child = spawn(process.execPath, [...nodeFlags, program, kind, file], { stdio: ["pipe", "pipe", "inherit"] });
  resources.add(child, async ({ stdin }) => {
    const gone = once(child, "exit");
    stdin.end();
    await gone;
  });
  if (child.pid === undefined) throw new Error("The bare server did not start.");
  const listening = once(createInterface({ input: child.stdout }), "line") as Promise<[string]>;
  const [line] = await within(20, "the start of the bare server", listening);
  return { port: Number(line), pid: child.pid };
}
