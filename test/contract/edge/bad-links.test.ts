import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { type Client, connect } from "../../../client/index.ts";
import { CuttingProxy, type Weather } from "../../helpers/cutting-proxy.ts";
import { DaemonProcess } from "../../helpers/daemon-process.ts";
import { patience } from "../../helpers/patience.ts";

interface Scene extends AsyncDisposable {
  readonly proxy: CuttingProxy;
  /** Connected to the daemon's own socket. */
  readonly direct: Client;
  readonly daemon: DaemonProcess;
  /** Has the session's child write this many records. */
  stream(records: number): Promise<void>;
  /** Resolves when the client on the proxy has received all numbers, each once. */
  heardAll(): Promise<void>;
}

/** A client behind a proxy that reads the events of one session, and reconnects. */
async function startScene(limits: { readonly pingIntervalMs?: number } = {}): Promise<Scene> {
  const stack = new AsyncDisposableStack();
  const daemon = stack.use(await DaemonProcess.start(limits));
  const { socketPath, token } = daemon.file;
  const proxy = stack.use(await CuttingProxy.start(join(daemon.cwd, "proxy"), socketPath));
  const direct = stack.adopt(await connect({ socketPath, token }), async (client) => void (await client.close()));
  const { id } = await direct.createSession({ cwd: daemon.cwd });
  const reconnect = { firstDelayMs: 1, maxDelayMs: 20 };
  const client = await connect({ socketPath: proxy.socketPath, token, reconnect });
  stack.adopt(client, async (open) => void (await open.close()));
  // The events that a client receives over the daemon's own socket, and over the proxy.
  const [all, heard] = [numbers(direct, id), numbers(client, id)];
  await Promise.all([all.ready, heard.ready]);
  let streamed = 0;
  return {
    proxy,
    direct,
    daemon,
    stream: async (records) => {
      await direct.session(id).command({ type: "stream", records, bytes: 200, every: 5 });
      streamed += records;
    },
    heardAll: async () => {
      await vi.waitUntil(() => heard.seen.length >= streamed && all.seen.length >= streamed, patience);
      expect(all.seen).toHaveLength(streamed);
      expect(heard.seen).toEqual(all.seen);
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([all.end(), heard.end()]);
      await stack.disposeAsync();
    },
  };
}

/** The numbers of the events that a child streams, as a client receives them. */
function numbers(client: Client, id: string) {
  const events = client.session(id).events({ after: 0 });
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { seq, event } of events) {
      if (event.type === "message_update" || event.type === "tool_execution_end") seen.push(seq);
    }
  })();
  const end = async (): Promise<void> => {
    await events.return();
    await reading;
  };
  return { seen, ready: events.ready, end };
}

const weathers: readonly (readonly [string, Weather])[] = [
  ["is slow to answer", { latencyMs: 20 }],
  ["passes on a few bytes at a time", { pieceBytes: 40 }],
];

test.each(weathers)("a client misses nothing on a link that %s", async (_what, weather) => {
  await using scene = await startScene();
  scene.proxy.weather = weather;
  await scene.stream(40);
  await scene.heardAll();
});

test("a client misses nothing on a link that breaks after a few bytes, wherever it breaks", async () => {
  await using scene = await startScene();
  for (let i = 1; i <= 5; i += 1) {
    scene.proxy.weather = { pieceBytes: 1, latencyMs: i };
    await scene.stream(200);
    scene.proxy.reset();
    scene.proxy.weather = undefined;
    await scene.stream(10);
    await scene.heardAll();
  }
});

test("a client that reconnects repeatedly misses nothing, and leaves nothing in the daemon", async () => {
  await using scene = await startScene();
  const held = async (): Promise<number> => {
    const { heapUsed, external } = await scene.daemon.memory();
    return heapUsed + external;
  };
  const flap = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i += 1) {
      await vi.waitUntil(async () => (await scene.direct.info()).connections === 2, patience);
      await scene.stream(10);
      scene.proxy.reset();
    }
    await scene.heardAll();
  };
  await flap(10);
  const before = await held();
  await flap(60);
  expect((await held()) - before).toBeLessThan(4 * 1024 * 1024);
});

test("a silent peer is disconnected, and continues without loss after it reconnects", async () => {
  await using scene = await startScene({ pingIntervalMs: 100 });
  const connections = async (): Promise<number> => (await scene.direct.info()).connections;
  expect(await connections()).toBe(2);
  scene.proxy.isSilent = true;
  await scene.stream(100);
  await vi.waitUntil(async () => (await connections()) === 1, patience);
  await scene.stream(100);
  scene.proxy.isSilent = false;
  await scene.heardAll();
});
