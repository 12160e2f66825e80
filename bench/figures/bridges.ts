import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { pathOf } from "../../scripts/lib/tiers.ts";
import type { GoalId } from "../goals.ts";
import { deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { drain, type RecordSource } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, ratios } from "../lib/statistics.ts";

/** Programs that turn the stdio of one program into a WebSocket. */
const bridges = {
  websocketd: {
    path: "/",
    args: (port, program) => ["--loglevel=fatal", "--address=127.0.0.1", `--port=${port}`, ...program],
  },
  supergateway: {
    path: "/message",
    args: (port, program) => [
      ...["--stdio", program.join(" "), "--outputTransport", "ws", "--port", `${port}`, "--logLevel", "none"],
    ],
  },
  "stdio-to-ws": { path: "/", args: (port, program) => ["--quiet", "--port", `${port}`, program.join(" ")] },
} as const satisfies Readonly<
  Record<string, { readonly path: string; readonly args: (port: number, program: readonly string[]) => string[] }>
>;
type BridgeName = keyof typeof bridges;
const names = Object.keys(bridges) as readonly BridgeName[];
const goalOf = (name: BridgeName): GoalId => `P4 ${name}`;

const records = 30_000;

const loopbackOnly = join(import.meta.dirname, "..", "fixtures", "loopback-only.cjs");

export const bridgeComparison: Figure = {
  title: "Events of one session at one client, against programs that turn stdio into a WebSocket; every reader parses",
  goals: names.map(goalOf),
  repetitions: 3,
  measure: async (setting, resources) => {
    const found = names.flatMap((name) => {
      const file = pathOf(name);
      return file === undefined ? [] : [{ name, file }];
    });
    const corpus = writeCorpus(join(setting.directory, "small.jsonl"), deltas(records));
    const rate = async (source: RecordSource): Promise<number> => records / (await drain(source, corpus)).seconds;
    const rows: Row[] = [];
    if (found.length > 0) {
      const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
      const client = await RawClient.open(daemon, "unix", resources);
      const { sessionId } = await client.request("session/create", { cwd: setting.directory });
      await client.request("session/subscribe", { sessionId });
      const ours = rawSource(client, sessionId);
      for (const { name, file } of found) {
        const theirs = await bridged(name, file, resources);
        const rates = await interleave(setting.repetitions, { ours: () => rate(ours), theirs: () => rate(theirs) });
        rows.push(
          { name: `the daemon / ${name}`, unit: "x", values: ratios(rates.ours, rates.theirs), goals: [goalOf(name)] },
          { name: `the daemon, in turns with ${name}`, unit: "rec/s", values: rates.ours },
          { name, unit: "rec/s", values: rates.theirs },
        );
      }
    }
    const missing = names.filter((name) => !found.some((each) => each.name === name));
    return {
      rows,
      notes: [`${records} records for each value`],
      unmeasured: Object.fromEntries(missing.map((name) => [goalOf(name), `${name} is not on PATH`])),
    };
  },
};

async function bridged(name: BridgeName, file: string, resources: Resources): Promise<RecordSource> {
  const { path, args } = bridges[name];
  const port = await freePort();
  // Two of them listen on every address, and what they run reads any file that it is told to.
  const env = { ...process.env, NODE_OPTIONS: `--require=${JSON.stringify(loopbackOnly)}` };
  const child = spawn(file, args(port, [process.execPath, echoPi]), { env, stdio: "ignore", detached: true });
  const gone = once(child, "exit");
  await once(child, "spawn");
  resources.add(child, async ({ pid, exitCode, signalCode }) => {
    // With the programs that it has started.
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, "SIGKILL");
    await gone;
  });
  const socket = await connected(`ws://127.0.0.1:${port}${path}`);
  resources.add(socket, (open) => open.terminate());
  return {
    emit: async (corpus, { start, end }) =>
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, type: "emit", file: corpus, start, end })),
    listen: (onRecords) => {
      socket.removeAllListeners("message");
      socket.on("message", (data) => {
        const { type } = JSON.parse(data.toString());
        if (type !== "response") onRecords(1);
      });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return address.port;
}

/** Until the program listens, connections are refused. Rejects if it does not within 20 s. */
async function connected(url: string): Promise<WebSocket> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    try {
      await once(socket, "open");
      return socket;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await sleep(50);
    }
  }
}
