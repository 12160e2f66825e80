import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { nodeFlags } from "../../cli/daemon-process.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { HttpLoad } from "../lib/http-load.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const bare = join(import.meta.dirname, "..", "fixtures", "bare-http.mjs");
const requests = 10_000;

const questions = {
  "GET /v1/sessions": { head: "GET /v1/sessions HTTP/1.1", body: "" },
  "daemon/info by POST /v1/rpc": {
    head: "POST /v1/rpc HTTP/1.1",
    body: '{"jsonrpc":"2.0","id":1,"method":"daemon/info"}',
  },
} as const;

/** Requests with a token, against servers that only answer with the same payload. */
export const httpRequests: Figure = {
  title: "HTTP requests, against bare node:http and bare fastify",
  repetitions: 5,
  measure: async (setting, resources) => {
    const rows: Row[] = [];
    for (const name of Object.keys(questions) as (keyof typeof questions)[])
      rows.push(...(await measure(name, setting, resources)));
    return {
      rows,
      notes: [
        `${requests} requests for each value, over 8 connections on loopback; all servers run with the daemon's flags of Node`,
      ],
    };
  },
};

async function measure(name: keyof typeof questions, setting: Setting, resources: Resources): Promise<Row[]> {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const port = Number(new URL(daemon.url).port);
  const own = await HttpLoad.open(port, textOf(name, port, daemon.token), resources);
  const payload = await own.body();
  const node = await startBare("node", name, payload, resources);
  const fastify = await startBare("fastify", name, payload, resources);
  const rate: Record<"daemon" | "node" | "fastify", number[]> = { daemon: [], node: [], fastify: [] };
  const timed = (load: HttpLoad, pid: number, into: number[]) => async (): Promise<number> => {
    const before = cpuMicroseconds(pid) ?? Number.NaN;
    into.push(requests / (await load.run(requests)));
    return ((cpuMicroseconds(pid) ?? Number.NaN) - before) / requests;
  };
  const cpu = await interleave(setting.repetitions, {
    daemon: timed(own, daemon.pid, rate.daemon),
    node: timed(node.load, node.pid, rate.node),
    fastify: timed(fastify.load, fastify.pid, rate.fastify),
  });
  for (const values of Object.values(rate)) values.shift();
  return [
    {
      name: `${name}: CPU / bare node:http`,
      unit: "x",
      values: ratios(cpu.daemon, cpu.node),
      goal: { id: "P19", sense: "at most", target: 1.6, stretch: 1.35 },
    },
    { name: `${name}: CPU / bare fastify`, unit: "x", values: ratios(cpu.daemon, cpu.fastify) },
    {
      name: `${name}: requests a second / bare fastify`,
      unit: "x",
      values: ratios(rate.daemon, rate.fastify),
      goal: { id: "HTTP", sense: "at least", target: 0.8 },
    },
    { name: `${name}: requests a second`, unit: "1/s", values: rate.daemon },
    { name: `${name}: CPU of the daemon for a request`, unit: "us", values: cpu.daemon },
    { name: `${name}: CPU of bare node:http for a request`, unit: "us", values: cpu.node },
  ];
}

async function startBare(
  kind: "node" | "fastify",
  name: keyof typeof questions,
  payload: string,
  resources: Resources,
): Promise<{ readonly load: HttpLoad; readonly pid: number }> {
  const child: ChildProcess = spawn(process.execPath, [...nodeFlags, bare, kind, payload], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  resources.add(child, async ({ stdin }) => {
    const gone = once(child, "exit");
    stdin?.end();
    await gone;
  });
  if (child.stdout === null || child.pid === undefined) throw new Error("The bare server did not start.");
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const load = await HttpLoad.open(Number(line), textOf(name, Number(line), "none"), resources);
  return { load, pid: child.pid };
}

function textOf(name: keyof typeof questions, port: number, token: string): string {
  const { head, body } = questions[name];
  const content = body === "" ? "" : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  return `${head}\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\naccept: */*\r\n${content}\r\n${body}`;
}
