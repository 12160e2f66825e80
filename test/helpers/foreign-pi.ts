import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { piUnderTest } from "./pi-versions.ts";
import type { Stage } from "./stage.ts";

/** A pi that was not started by us: like one in a terminal, it does not know leases. */
export interface ForeignPi extends AsyncDisposable {
  /** Resolves when the answer is complete. */
  prompt(text: string): Promise<void>;
}

export async function startForeignPi(stage: Pick<Stage, "cwd" | "agentDir">, file: string): Promise<ForeignPi> {
  const { cli } = piUnderTest();
  const args = [cli, "--mode", "rpc", "--session", file, "--model", "scripted/model-1"];
  const child = spawn(process.execPath, args, {
    cwd: stage.cwd,
    env: { ...process.env, ...stage.agentDir.env },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const exited = once(child, "exit");
  const waiting = new Map<string, () => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { type, id } = JSON.parse(line) as { type: string; id?: string };
    for (const key of [type, id ?? ""]) {
      waiting.get(key)?.();
      waiting.delete(key);
    }
  });
  const said = (key: string): Promise<void> => new Promise((resolve) => waiting.set(key, resolve));
  const send = (record: object): boolean => child.stdin.write(`${JSON.stringify(record)}\n`);
  const ready = said("ready");
  send({ id: "ready", type: "get_state" });
  await ready;
  return {
    prompt: async (message) => {
      const settled = said("agent_settled");
      send({ id: "prompt", type: "prompt", message });
      await settled;
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await exited;
    },
  };
}
