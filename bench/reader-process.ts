import { createInterface } from "node:readline";
import type { DaemonFile } from "../protocol/daemon-file.ts";
import { ResourceStack } from "../server/lib/resource-stack.ts";
import { DirectChild } from "./lib/direct-child.ts";
import { EventCount, isMerged } from "./lib/event-count.ts";
import { RawClient } from "./lib/raw-client.ts";

/** The task of a process of readers, as JSON in its first argument. */
export type ReaderTask =
  | {
      readonly kind: "clients";
      readonly daemon: Pick<DaemonFile, "socketPath" | "token">;
      /** Each client subscribes to all of them. */
      readonly sessions: readonly string[];
      readonly clients: number;
      /** Default: true. */
      readonly reads?: boolean;
      /** Parses each event and checks its number. Default: only merged ones. */
      readonly checks?: boolean;
    }
  | { readonly kind: "direct"; readonly program: string; readonly children: number; readonly command: object };

/** The answer to each line, sent once this many records have arrived since the start, or at the next line. */
export interface ReaderAnswer {
  /** All that arrived, alone or merged, or that a gap left out. */
  readonly records: number;
  /** Processor time of this process since its start. */
  readonly cpuUs: number;
  readonly merged: number;
  readonly lost: number;
  readonly misordered: number;
}

const resources = new ResourceStack();
const task = JSON.parse(process.argv[2] ?? "") as ReaderTask;
const counts: EventCount[] = [];
let records = 0;
let wanted: number | undefined;

const answer = (): void => {
  wanted = undefined;
  const { user, system } = process.cpuUsage();
  const sum = (field: "merged" | "lost" | "misordered"): number =>
    counts.reduce((total, count) => total + count[field], 0);
  const told: ReaderAnswer = {
    ...{ records, cpuUs: user + system },
    ...{ merged: sum("merged"), lost: sum("lost"), misordered: sum("misordered") },
  };
  process.stdout.write(`${JSON.stringify(told)}\n`);
};
const arrived = (more: number): void => {
  records += more;
  if (wanted !== undefined && records >= wanted) answer();
};

if (task.kind === "clients") {
  for (let i = 0; i < task.clients; i += 1) {
    const client = await RawClient.open(task.daemon, "unix", resources);
    const count = new EventCount();
    counts.push(count);
    const counted = (act: (count: EventCount) => void): void => {
      const before = count.accounted;
      act(count);
      arrived(count.accounted - before);
    };
    client.onEvent = (frame) => {
      if (task.checks === true || isMerged(frame)) counted((one) => one.event(paramsOf(frame)));
      else arrived(1);
    };
    client.onRecord = () => arrived(1);
    client.onGap = (frame) => counted((one) => one.gap(paramsOf(frame)));
    for (const sessionId of task.sessions) await client.request("session/subscribe", { sessionId });
    if (task.reads === false) client.pause();
  }
} else {
  for (let i = 0; i < task.children; i += 1) {
    const child = DirectChild.start({ file: task.program, args: [] }, resources);
    child.onRecord = () => arrived(1);
    await child.request({ type: "get_state" });
    // Its end may come before the answer.
    child.request(task.command as { type: string }).catch(() => {});
  }
}

function paramsOf(frame: Buffer) {
  return JSON.parse(frame.toString("utf8")).params;
}

process.stdout.write("ready\n");
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const wasAsked = wanted !== undefined;
  wanted = Number(line);
  if (wasAsked || records >= wanted) answer();
});
lines.on("close", () => void resources.release().then(() => process.exit(0)));
