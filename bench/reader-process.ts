import { createInterface } from "node:readline";
import type { DaemonFile } from "../protocol/daemon-file.ts";
import { ResourceStack } from "../server/lib/resource-stack.ts";
import { DirectChild } from "./lib/direct-child.ts";
import { RawClient } from "./lib/raw-client.ts";

/** The task of a process of readers, as JSON in its first argument. */
export type ReaderTask =
  | {
      readonly kind: "clients";
      readonly daemon: DaemonFile;
      /** Each client subscribes to all of them. */
      readonly sessions: readonly string[];
      readonly clients: number;
      /** Default: true. */
      readonly reads?: boolean;
      /** Checks the sequence numbers. Default: only counts. */
      readonly checks?: boolean;
    }
  | { readonly kind: "direct"; readonly program: string; readonly children: number; readonly command: object };

/** The answer to each line, sent once this many records have arrived since the start. */
export interface ReaderAnswer {
  readonly records: number;
  /** Processor time of this process since its start. */
  readonly cpuUs: number;
  /** Records that are out of order, merged or missing. */
  readonly misplaced: number;
}

const resources = new ResourceStack();
const task = JSON.parse(process.argv[2] ?? "") as ReaderTask;
let records = 0;
let misplaced = 0;
let wanted: { readonly upTo: number; readonly tell: () => void } | undefined;
const count = (): void => {
  records += 1;
  if (wanted !== undefined && records >= wanted.upTo) wanted.tell();
};

if (task.kind === "clients") {
  for (let i = 0; i < task.clients; i += 1) {
    const client = await RawClient.open(task.daemon, "unix", resources);
    const newest = new Map<string, number>();
    client.onEvent = (frame) => {
      if (task.checks === true) {
        const { sessionId, seq } = JSON.parse(frame.toString("utf8")).params;
        const last = newest.get(sessionId);
        if (last !== undefined && seq !== last + 1) misplaced += 1;
        newest.set(sessionId, seq);
      }
      count();
    };
    for (const sessionId of task.sessions) await client.request("session/subscribe", { sessionId });
    if (task.reads === false) client.pause();
  }
} else {
  for (let i = 0; i < task.children; i += 1) {
    const child = DirectChild.start({ args: [task.program] }, resources);
    child.onRecord = count;
    await child.request({ type: "get_state" });
    void child.request(task.command as { type: string });
  }
}

const answer = (): void => {
  wanted = undefined;
  const { user, system } = process.cpuUsage();
  process.stdout.write(`${JSON.stringify({ records, cpuUs: user + system, misplaced } satisfies ReaderAnswer)}\n`);
};
process.stdout.write("ready\n");
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const upTo = Number(line);
  if (records >= upTo) answer();
  else wanted = { upTo, tell: answer };
});
lines.on("close", () => void resources.release().then(() => process.exit(0)));
