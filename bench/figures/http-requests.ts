import { startBareHttp } from "../lib/bare-http.ts";
import { type DaemonUnderTest, startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { streamPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { HttpLoad } from "../lib/http-load.ts";
import { createSessions } from "../lib/many-sessions.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const listed = 200;
const atOnce = 10;

const questions = {
  "GET /v1/sessions of 200": { head: "GET /v1/sessions HTTP/1.1", body: "", requests: 600 },
  "daemon/info by POST /v1/rpc": {
    head: "POST /v1/rpc HTTP/1.1",
    body: '{"jsonrpc":"2.0","id":1,"method":"daemon/info"}',
    requests: 8_000,
  },
} as const;

/** Requests with a token, against servers that only answer with the same payload. */
export const httpRequests: Figure = {
  title: "HTTP requests, against bare node:http and bare fastify with the same payload",
  goals: ["P19", "Q9 CPU", "Q9 rate"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const daemon = await startDaemonUnderTest(setting, resources, { pi: await streamPi(setting) });
    const client = await RawClient.open(daemon, "unix", resources);
    for (let i = 0; i < listed; i += atOnce) {
      // Without their children, which would only take memory.
      for (const sessionId of await createSessions(client, atOnce, setting.directory))
        await client.request("session/hibernate", { sessionId });
    }
    const rows: Row[] = [];
    for (const name of Object.keys(questions) as Question[])
      rows.push(...(await measure(name, daemon, setting, resources)));
    return {
      rows,
      notes: [
        `${Object.values(questions)
          .map(({ requests }) => requests)
          .join(
            " and ",
          )} requests for each value, over 8 connections on loopback; all servers run with the daemon's flags of Node`,
        "the least that answers: fastify with a token, json-rpc-2.0, and a result that is made for each request",
      ],
    };
  },
};

type Question = keyof typeof questions;

async function measure(
  name: Question,
  daemon: DaemonUnderTest,
  setting: Setting,
  resources: Resources,
): Promise<Row[]> {
  const { requests } = questions[name];
  const port = Number(new URL(daemon.url).port);
  const own = await HttpLoad.open(port, textOf(name, port, daemon.token), resources);
  const payload = await own.body();
  const node = await startBare("node", name, payload, setting, resources);
  const fastify = await startBare("fastify", name, payload, setting, resources);
  const rpc = await startBare("rpc", name, payload, setting, resources);
  const rate: Record<"daemon" | "node" | "fastify" | "rpc", number[]> = { daemon: [], node: [], fastify: [], rpc: [] };
  const timed = (load: HttpLoad, pid: number, into: number[]) => async (): Promise<number> => {
    const before = cpuMicroseconds(pid);
    into.push(requests / (await load.run(requests)));
    return (cpuMicroseconds(pid) - before) / requests;
  };
  const cpu = await interleave(setting.repetitions, {
    daemon: timed(own, daemon.pid, rate.daemon),
    node: timed(node.load, node.pid, rate.node),
    fastify: timed(fastify.load, fastify.pid, rate.fastify),
    rpc: timed(rpc.load, rpc.pid, rate.rpc),
  });
  for (const values of Object.values(rate)) values.shift();
  return [
    {
      name: `${name}: CPU / bare node:http`,
      unit: "x",
      values: ratios(cpu.daemon, cpu.node),
      goals: ["P19"],
    },
    {
      name: `${name}: CPU / bare fastify`,
      unit: "x",
      values: ratios(cpu.daemon, cpu.fastify),
      goals: ["Q9 CPU"],
    },
    {
      name: `${name}: requests a second / bare fastify`,
      unit: "x",
      values: ratios(rate.daemon, rate.fastify),
      goals: ["Q9 rate"],
    },
    { name: `${name}: CPU of the least that answers / bare fastify`, unit: "x", values: ratios(cpu.rpc, cpu.fastify) },
    { name: `${name}: requests a second`, unit: "1/s", values: rate.daemon },
    { name: `${name}: CPU of the daemon for a request`, unit: "us", values: cpu.daemon },
    { name: `${name}: CPU of bare fastify for a request`, unit: "us", values: cpu.fastify },
    { name: `${name}: CPU of bare node:http for a request`, unit: "us", values: cpu.node },
  ];
}

async function startBare(
  kind: "node" | "fastify" | "rpc",
  name: Question,
  payload: string,
  setting: Setting,
  resources: Resources,
): Promise<{ readonly load: HttpLoad; readonly pid: number }> {
  const { port, pid } = await startBareHttp(kind, payload, setting, resources);
  return { load: await HttpLoad.open(port, textOf(name, port, "none"), resources), pid };
}

function textOf(name: Question, port: number, token: string): string {
  const { head, body } = questions[name];
  const content = body === "" ? "" : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  return `${head}\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\naccept: */*\r\n${content}\r\n${body}`;
}
