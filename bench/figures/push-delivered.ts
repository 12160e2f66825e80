import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, connect, type SessionHandle } from "../../client/index.ts";
import { answer } from "../../provider/reply.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { type RealPi, realPis, scriptModel } from "../lib/real-pi.ts";
import { median, quantile } from "../lib/statistics.ts";

const rounds = 300;
const realRounds = 40;
const now = (): bigint => process.hrtime.bigint();
const milliseconds = (from: bigint, to: bigint): number => Number(to - from) / 1e6;

/** The time from a push's arrival at the model to the pushing client's knowledge of it. */
export const pushDelivered: Figure = {
  title: "From the provider's acceptance to the client's resolved `delivered`",
  repetitions: 5,
  measure: async (setting, resources) => {
    const rows = [...(await throughDaemon(setting, resources))];
    for (const pi of realPis()) rows.push(...(await withPi(pi, setting, resources)));
    return {
      rows,
      notes: [
        `${rounds} pushes for each value with a stand-in for pi, ${realRounds} with real pi, one at a time`,
        "the bare observer is an extension in the same pi that notes the time in its own handler of message_start",
      ],
    };
  },
};

async function throughDaemon(setting: Setting, resources: Resources): Promise<Row[]> {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi, env: { BENCH_PUSHES: "hold" } });
  const client = resources.add(
    await connect({ socketPath: daemon.socketPath, token: daemon.token }),
    async (open) => void (await open.close()),
  );
  const session = await client.createSession({ cwd: setting.directory });
  const p50: number[] = [];
  const p99: number[] = [];
  for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
    const samples: number[] = [];
    for (let i = 0; i < rounds; i += 1) samples.push(await oneDelivered(client, session));
    if (repetition === 0) continue;
    p50.push(median(samples));
    p99.push(quantile(samples, 0.99));
  }
  return [
    {
      name: "the child's message_start to the client's promise, p50",
      unit: "ms",
      values: p50,
      goal: { id: "P17", sense: "at most", target: 1, stretch: 0.3 },
    },
    { name: "the child's message_start to the client's promise, p99", unit: "ms", values: p99 },
  ];
}

async function oneDelivered(client: Client, session: SessionHandle): Promise<number> {
  const delivery = session.push({ customType: "bench", content: "Hello." });
  const resolved = delivery.delivered.then(now);
  await delivery.accepted;
  // The child has the push once it has answered the hand-over.
  while ((await client.call("delivery/get", { deliveryId: delivery.id })).state === "accepted");
  const { startedAt } = (await session.command({ type: "deliver" })) as { readonly startedAt: string };
  return milliseconds(BigInt(startedAt), await resolved);
}

async function withPi(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const seen = join(setting.directory, `seen-${pi.version}`);
  const extension = join(setting.directory, `bare-observer-${pi.version}.mjs`);
  writeFileSync(extension, bareObserver(seen));
  let headersAt = 0n;
  const { env } = await scriptModel(
    setting,
    resources,
    {
      otherwise: () => {
        // The response begins immediately, with the headers.
        headersAt = now();
        return answer("Yes.");
      },
    },
    { settings: { extensions: [extension] } },
  );
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client: Client = resources.add(
    await connect({ socketPath: daemon.socketPath, token: daemon.token }),
    async (open) => void (await open.close()),
  );
  const session = await client.createSession({ cwd: setting.directory });
  const figures = { bare: [] as number[], p50: [] as number[], p99: [] as number[], added: [] as number[] };
  for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
    const bare: number[] = [];
    const whole: number[] = [];
    for (let i = 0; i < realRounds; i += 1) {
      const delivery = session.push({ customType: "bench", content: "Hello." });
      const at = await delivery.delivered.then(now);
      bare.push(milliseconds(headersAt, BigInt(readFileSync(seen, "utf8"))));
      whole.push(milliseconds(headersAt, at));
      await delivery.answered;
    }
    if (repetition === 0) continue;
    figures.bare.push(median(bare));
    figures.p50.push(median(whole));
    figures.p99.push(quantile(whole, 0.99));
    figures.added.push(median(whole.map((value, i) => value - (bare[i] ?? Number.NaN))));
  }
  const name = `pi ${pi.version}: headers to`;
  return [
    { name: `${name} a bare observer inside pi, p50`, unit: "ms", values: figures.bare },
    { name: `${name} the client's promise, p50`, unit: "ms", values: figures.p50 },
    { name: `${name} the client's promise, p99`, unit: "ms", values: figures.p99 },
    { name: `pi ${pi.version}: the client's promise after the bare observer, p50`, unit: "ms", values: figures.added },
  ];
}

function bareObserver(file: string): string {
  return `import { writeFileSync } from "node:fs";
export default function (pi) {
  pi.on("message_start", ({ message }) => {
    if (message.role === "assistant") writeFileSync(${JSON.stringify(file)}, String(process.hrtime.bigint()));
  });
}
`;
}
