import { once } from "node:events";
import { get } from "node:http";
import { join } from "node:path";
import type { PiCommand } from "../../client/index.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { deltas, mixed, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { drain, type RecordSource } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const newline = 0x0a;

/** The same events of the same daemon, as server-sent events and over a WebSocket. Both readers only count. */
export const eventStreams: Figure = {
  title: "Server-sent events against a WebSocket",
  repetitions: 5,
  measure: async (setting, resources) => {
    const rows: Row[] = [];
    for (const [name, records] of [
      ["small", deltas(50_000)],
      ["mixed", mixed(80)],
    ] as const) {
      const corpus = writeCorpus(join(setting.directory, `${name}.jsonl`), records);
      const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
      const client = await RawClient.open(daemon, "unix", resources);
      const [bySocket, byStream] = [
        await client.request("session/create", { cwd: setting.directory }),
        await client.request("session/create", { cwd: setting.directory }),
      ];
      await client.request("session/subscribe", { sessionId: bySocket.sessionId });
      const socket = rawSource(client, bySocket.sessionId);
      const stream = await streamSource(client, daemon, byStream.sessionId, resources);
      const cpu: Record<"socket" | "stream", number[]> = { socket: [], stream: [] };
      const timed = (source: RecordSource, into: number[]) => async (): Promise<number> => {
        const before = cpuMicroseconds(daemon.pid) ?? Number.NaN;
        const seconds = await drain(source, corpus);
        into.push(((cpuMicroseconds(daemon.pid) ?? Number.NaN) - before) / corpus.records);
        return corpus.records / seconds;
      };
      const rates = await interleave(setting.repetitions, {
        socket: timed(socket, cpu.socket),
        stream: timed(stream, cpu.stream),
      });
      for (const values of Object.values(cpu)) values.shift();
      rows.push(
        { name: `${name}: events a second / by WebSocket`, unit: "x", values: ratios(rates.stream, rates.socket) },
        {
          name: `${name}: CPU of the daemon for an event / by WebSocket`,
          unit: "x",
          values: ratios(cpu.stream, cpu.socket),
        },
        { name: `${name}: server-sent events`, unit: "rec/s", values: rates.stream },
        { name: `${name}: CPU of the daemon for a server-sent event`, unit: "us", values: cpu.stream },
      );
    }
    return { rows, notes: [] };
  },
};

/** Counts events by the empty lines after them; no other notifications of the session occur in between. */
async function streamSource(
  client: RawClient,
  { socketPath, token }: DaemonFile,
  sessionId: string,
  resources: Resources,
): Promise<RecordSource> {
  const path = `/v1/sessions/${sessionId}/events`;
  const request = get({ socketPath, path, headers: { host: "localhost", authorization: `Bearer ${token}` } });
  resources.add(request, (open) => void open.destroy());
  const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
  let onRecord: () => void = () => {};
  let wasNewline = false;
  response.on("data", (chunk: Buffer) => {
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, at + 1)) {
      const next = chunk[at + 1];
      if (at === 0 && wasNewline) onRecord();
      if (next === newline) {
        onRecord();
        at += 1;
      }
    }
    wasNewline = chunk.at(-1) === newline && chunk.at(-2) !== newline;
  });
  await new Promise((resolve) => {
    onRecord = () => resolve(undefined);
  });
  return {
    emit: (file, { start, end }) => {
      const command: PiCommand = { type: "emit", file, start, end };
      return client.request("session/command", { sessionId, command });
    },
    listen: (tell) => {
      onRecord = tell;
    },
  };
}
