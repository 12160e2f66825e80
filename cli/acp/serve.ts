import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Agent } from "../../acp/agent.ts";
import type { Client } from "../../client/client.ts";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import type { Params } from "../../protocol/methods.ts";
import { defined } from "../../protocol/objects.ts";
import { editorClient, maxLineBytes } from "../editor-client.ts";
import { exitCodes } from "../exit-codes.ts";
import { packageVersion } from "../version.ts";
import { clientPort } from "./client-port.ts";

export interface ServeOptions {
  /** The daemon's. Default: as for every client. */
  readonly stateDir: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** The options of new sessions. */
  readonly created: Partial<Params<"session/create">>;
  /** Whether runs end with the editor, unless somebody else follows them. */
  readonly abortsOnDetach: boolean;
  /** How long a lost daemon is looked for. Default: as for every editor. */
  readonly giveUpAfterMs?: number;
  /** Whether an editor can have version 2 of the protocol. Default: false. */
  readonly hasVersion2?: boolean;
}

/** Serves an editor on stdin and stdout until stdin ends or the daemon is gone for good. Resolves with the exit code. */
export async function serve({ stateDir, env, created, ...options }: ServeOptions): Promise<number> {
  const { abortsOnDetach, giveUpAfterMs, hasVersion2 = false } = options;
  const client = await editorClient({ stateDir, env, name: "ACP client", giveUpAfterMs });
  const { stdin, stdout } = process;
  const environment = defined(env);
  const agent = new Agent({
    port: clientPort(client),
    sink: {
      write: (text) => stdout.write(`${text}\n`),
      drained: () => new Promise((resolve) => stdout.once("drain", resolve)),
    },
    version: packageVersion(),
    hasVersion2,
    created: { ...created, environment },
    opened: { environment },
    saveExport: async (cwd, path, html) => {
      const file = resolve(cwd, path ?? `pi-session-${Date.now()}.html`);
      await writeFile(file, html);
      return file;
    },
  });
  const ended = Promise.withResolvers<number>();
  const splitter = new JsonlSplitter({
    maxRecordBytes: maxLineBytes,
    onRecord: (line) => void agent.receive(line),
    onOversize: () => void agent.receive(Buffer.alloc(0)),
  });
  // The listener of all commands would end the process before the runs are aborted.
  stdout.removeAllListeners("error");
  stdout.on("error", () => ended.resolve(exitCodes.failed));
  stdin.on("data", (chunk: Buffer) => splitter.push(chunk));
  stdin.on("end", () => ended.resolve(exitCodes.done));
  stdin.on("error", () => ended.resolve(exitCodes.done));
  for (const [name, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.removeAllListeners(name);
    process.on(name, () => ended.resolve(code));
  }
  client.onConnection((event) => {
    if (event.kind === "connected" && event.daemon === "another") agent.renew();
  });
  void client.closed.then(() => {
    agent.fail("The daemon is gone.");
    ended.resolve(exitCodes.failed);
  });
  const code = await ended.promise;
  // An editor that still writes must not keep the process alive.
  stdin.destroy();
  const sessions = agent.close();
  if (abortsOnDetach) await abortAll(client, sessions);
  await client.close();
  return code;
}

/** As pi would: the runs end with the editor, unless somebody else follows them. */
async function abortAll(client: Client, sessions: readonly string[]): Promise<void> {
  await Promise.allSettled(sessions.map((sessionId) => client.call("session/abort", { sessionId, ifAlone: true })));
}
