import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, connect, type SessionHandle } from "../../client/index.ts";
import { createAgentDir, type ProviderAddress } from "../../provider/agent-dir.ts";
import { startBareServer } from "../lib/bare-server.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { syncMicroseconds } from "../lib/disk.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { type RealPi, realPis } from "../lib/real-pi.ts";
import { median, quantile, ratios } from "../lib/statistics.ts";

const rounds = 200;
const realRounds = 40;
const providerProcess = join(import.meta.dirname, "..", "provider-process.ts");
/** The key of the status by which the extension tells the bare program. */
const receiptKey = "bench-receipt";
const now = (): bigint => process.hrtime.bigint();
const milliseconds = (from: bigint, to: bigint): number => Number(to - from) / 1e6;

/** Milliseconds after the headers: until the client knew, and until pi's `message_start`, which is the evidence. */
interface Added {
  readonly total: number;
  readonly inPi: number;
}

/** The time from a push's arrival at the model to the pushing client's knowledge of it. */
export const pushDelivered: Figure = {
  title: "From the provider's acceptance to the client's resolved `delivered`",
  goals: ["P17", "Q5 p50", "Q5 p90"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const rows = [...(await throughDaemon(setting, resources))];
    for (const pi of realPis()) rows.push(...(await withPi(pi, setting, resources)));
    return {
      rows,
      notes: [
        `${rounds} pushes for each value with a stand-in for pi, ${realRounds} with real pi, one at a time`,
        "the observer in pi is an extension that notes when the provider's headers arrive; the sync is one fdatasync of the same disk",
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
    for (let i = 0; i < rounds; i += 1)
      samples.push(await within(30, "a push of the stand-in", oneDelivered(client, session)));
    if (repetition === 0) continue;
    p50.push(median(samples));
    p99.push(quantile(samples, 0.99));
  }
  return [
    {
      name: "the child's message_start to the client's promise, p50",
      unit: "ms",
      values: p50,
      goals: ["P17"],
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

/** Both sides take the time when they learn of the headers: an extension in pi, and the client's promise. */
async function withPi(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const seen = join(setting.directory, `seen-${pi.version}`);
  const extension = join(setting.directory, `bare-observer-${pi.version}.mjs`);
  writeFileSync(extension, bareObserver(seen));
  const provider = await startProviderProcess(resources);
  const agent = { provider, parentDir: setting.directory, settings: { extensions: [extension] } };
  const { env } = await createAgentDir(agent);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client: Client = resources.add(
    await connect({ socketPath: daemon.socketPath, token: daemon.token }),
    async (open) => void (await open.close()),
  );
  const session = await client.createSession({ cwd: setting.directory });
  const bare = await startBareReceipts(pi, setting, resources, env);
  const added = (at: () => Promise<bigint>) => async (): Promise<Added> => {
    const askedAt = now();
    const toldAt = await at();
    const { headersAt, startAt } = await within(30, "the times of the observer in pi", timesIn(seen, askedAt));
    return { total: milliseconds(headersAt, toldAt), inPi: milliseconds(headersAt, startAt) };
  };
  const pushed = added(async () => {
    const delivery = session.push({ customType: "bench", content: "Hello." });
    const at = await within(30, "delivered of a push", delivery.delivered.then(now));
    await within(30, "answered of a push", delivery.answered);
    return at;
  });
  const reported = added(bare);
  const figures = { p50: [] as number[], p90: [] as number[], sync: [] as number[], inPi: [] as number[] };
  const least = { p50: [] as number[], p90: [] as number[] };
  for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
    const sync = syncMicroseconds(join(setting.directory, "sync"), realRounds) / 1_000;
    const own: Added[] = [];
    const bares: Added[] = [];
    for (let i = 0; i < realRounds; i += 1) {
      own.push(await pushed());
      bares.push(await reported());
    }
    if (repetition === 0) continue;
    figures.sync.push(sync);
    figures.inPi.push(median(own.map(({ inPi }) => inPi)));
    for (const [of, all] of [
      [figures, own],
      [least, bares],
    ] as const) {
      const samples = all.map(({ total }) => total);
      of.p50.push(quantile(samples, 0.5));
      of.p90.push(quantile(samples, 0.9));
    }
  }
  const name = `pi ${pi.version}: the client's promise after the observer in pi`;
  const beyondSync = (values: readonly number[]): readonly number[] =>
    values.map((value, i) => value - (figures.sync[i] ?? Number.NaN));
  return [
    { name: `${name} and one sync, p50`, unit: "ms", values: beyondSync(figures.p50), goals: ["Q5 p50"] },
    { name: `${name} and one sync, p90`, unit: "ms", values: beyondSync(figures.p90), goals: ["Q5 p90"] },
    { name: `${name}, p50`, unit: "ms", values: figures.p50 },
    { name: `${name}, p90`, unit: "ms", values: figures.p90 },
    { name: `pi ${pi.version}: the least that reports it, p50`, unit: "ms", values: least.p50 },
    { name: `pi ${pi.version}: the least that reports it, p90`, unit: "ms", values: least.p90 },
    {
      name: `pi ${pi.version}: the daemon / the least that reports it, p50`,
      unit: "x",
      values: ratios(figures.p50, least.p50),
    },
    {
      name: `pi ${pi.version}: the daemon / the least that reports it, p90`,
      unit: "x",
      values: ratios(figures.p90, least.p90),
    },
    { name: `pi ${pi.version}: from the headers to message_start in pi, p50`, unit: "ms", values: figures.inPi },
    { name: `pi ${pi.version}: one sync, p50`, unit: "ms", values: figures.sync },
  ];
}

/** A function that prompts pi, and resolves with when its client learnt of the headers. */
async function startBareReceipts(
  pi: RealPi,
  setting: Setting,
  resources: Resources,
  env: Readonly<Record<string, string>>,
): Promise<() => Promise<bigint>> {
  const file = join(setting.directory, `receipts-${pi.version}`);
  const { client } = await startBareServer("bare-receipt", setting, resources, [file, receiptKey, pi.path], env);
  return async () => {
    const receipt = Promise.withResolvers<bigint>();
    const end = Promise.withResolvers<void>();
    client.onEvent = (frame) => {
      if (frame.includes('"receipt"')) receipt.resolve(now());
      else end.resolve();
    };
    await client.passOn({ type: "prompt", message: "Hello." });
    const at = await within(30, "a receipt of the bare program", receipt.promise);
    await within(30, "the end of pi's run", end.promise);
    return at;
  };
}

/** In a process of its own, because its work after the headers must not delay the client. */
async function startProviderProcess(resources: Resources): Promise<ProviderAddress> {
  const child = spawn(process.execPath, [...process.execArgv, providerProcess], { stdio: ["pipe", "pipe", "inherit"] });
  resources.add(child, ({ stdin }) => void stdin.end());
  const [line] = await within(20, "the start of the provider", once(createInterface({ input: child.stdout }), "line"));
  return JSON.parse(String(line)) as ProviderAddress;
}

/** The newest times in the file, once they are later than the other one. */
async function timesIn(file: string, after: bigint): Promise<{ readonly headersAt: bigint; readonly startAt: bigint }> {
  for (;;) {
    const line = existsSync(file) ? readFileSync(file, "utf8").split("\n").at(-2) : undefined;
    const [headersAt = 0n, startAt = 0n] = line?.split(" ").map(BigInt) ?? [];
    if (headersAt > after) return { headersAt, startAt };
    await sleep(1);
  }
}

/**
 * Writes the times to a file when the message has ended, so that writing delays nothing. It tells the bare program at
 * once.
 */
function bareObserver(file: string): string {
  return `import { appendFileSync } from "node:fs";
let headersAt = 0n;
let startAt = 0n;
export default function (pi) {
  pi.on("after_provider_response", (_event, { ui }) => {
    headersAt = process.hrtime.bigint();
    if (process.env.BENCH_RECEIPT !== undefined) ui.setStatus(process.env.BENCH_RECEIPT, "{}");
  });
  pi.on("message_start", ({ message }) => {
    if (message.role === "assistant") startAt = process.hrtime.bigint();
  });
  pi.on("message_end", ({ message }) => {
    if (message.role === "assistant") appendFileSync(${JSON.stringify(file)}, \`\${headersAt} \${startAt}\\n\`);
  });
}
`;
}
