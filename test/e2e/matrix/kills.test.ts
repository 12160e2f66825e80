import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Client, connect, type Delivery, type SessionHandle } from "../../../client/index.ts";
import { createAgentDir } from "../../../provider/agent-dir.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, behind, hold, type Reply } from "../../../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { DaemonLives } from "../../helpers/daemon-lives.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";

// `kill -9` of pi, and of the daemon, while pushes stand at each point of their way: each ends in the one right state.

type Api = "scripted" | "scripted-anthropic";

/** A daemon in a process of its own, that can be killed. */
interface Killable extends AsyncDisposable {
  readonly provider: ScriptedProvider;
  readonly client: Client;
  session(api: Api): Promise<SessionHandle>;
  /** Kills the daemon, and starts another on what it has left. */
  killDaemon(): Promise<void>;
}

async function startKillable(reply: (text: string) => Reply | undefined): Promise<Killable> {
  const root = mkdtempSync(join(tmpdir(), "kills-"));
  const [cwd, stateDir] = [join(root, "cwd"), join(root, "state")];
  mkdirSync(cwd);
  const provider = await startProvider({ otherwise: (request) => reply(JSON.stringify(request.body)) ?? "Done." });
  const agentDir = await createAgentDir({ provider, parentDir: root });
  const env = { ...process.env, ...agentDir.env, PI_RPCD_PI: piUnderTest().cli };
  const faults: string[] = [];
  const source = join(import.meta.dirname, "..", "..", "..");
  const lives = new DaemonLives({ source, stateDir, env, cwd, onFault: (fault) => faults.push(fault) });
  await lives.start();
  let client = await connect({ stateDir });
  return {
    provider,
    get client() {
      return client;
    },
    session: (api) => client.createSession({ cwd, model: `${api}/model-1` }),
    killDaemon: async () => {
      await lives.end("SIGKILL");
      await client.closed;
      await lives.start();
      client = await connect({ stateDir });
    },
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await lives.end("SIGTERM");
      expect(faults).toEqual([]);
      await agentDir.dispose();
      await provider.close();
      rmSync(root, { recursive: true });
    },
  };
}

/** Where pushes stand when the blow falls, and what must come of each. */
interface Point {
  readonly name: string;
  readonly options: { readonly deliverAs?: "nextTurn"; readonly triggerTurn?: false };
  /** A run is on, whose request does not carry the push. */
  readonly inRun?: true;
  /** The provider stands still in the answer to the request that carries it. */
  readonly gated?: "before headers" | "mid-stream";
  readonly state: Delivery["state"];
  /** By itself, without any prompt. */
  readonly after: { readonly state: Delivery["state"]; readonly attempts: readonly object[] };
  readonly reason?: string;
}

const delivered = { outcome: "delivered", evidence: "headers", status: 200, payload: "confirmed" };

const points: readonly Point[] = [
  { name: "held", options: {}, inRun: true, state: "held", after: { state: "answered", attempts: [delivered] } },
  {
    name: "held for a prompt",
    options: { deliverAs: "nextTurn" },
    state: "held",
    after: { state: "held", attempts: [] },
  },
  {
    name: "inserted",
    options: { triggerTurn: false },
    state: "inserted",
    after: { state: "parked", attempts: [] },
    reason: "interrupted",
  },
  {
    name: "prepared",
    options: {},
    gated: "before headers",
    state: "prepared",
    after: { state: "parked", attempts: [{ outcome: "unknown" }] },
    reason: "interrupted",
  },
  {
    name: "delivered",
    options: {},
    gated: "mid-stream",
    state: "delivered",
    after: { state: "delivered", attempts: [delivered] },
    reason: "interrupted",
  },
];

async function entries(session: SessionHandle, deliveryId: string): Promise<number> {
  const { file } = await session.get();
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines.filter((line) => line.includes('"custom_message"') && line.includes(`"${deliveryId}"`)).length;
}

describe.each(["scripted", "scripted-anthropic"] as const)("with %s", (api) => {
  test.each(["pi", "the daemon"])("kill -9 of %s leaves no push in doubt, wherever it stands", async (victim) => {
    const gates = new Map(points.map(({ name }) => [name, new Gate()]));
    const used = new Set<string>();
    const reply = (text: string): Reply | undefined => {
      for (const { name, inRun, gated } of points) {
        const gate = gates.get(name) as Gate;
        const isMine = text.includes(`text of ${name}.`) || (inRun === true && text.includes(`prompt of ${name}.`));
        if (!isMine || used.has(name) || (gated === undefined && inRun === undefined)) continue;
        used.add(name);
        return gated === "before headers" ? behind(hold(gate), answer("Never.")) : answer("Some ", hold(gate), "more.");
      }
      return undefined;
    };
    await using stage = await startKillable(reply);
    const id = ({ name }: Point): string => name.replaceAll(" ", "-");
    const sessions = new Map<string, string>();
    for (const point of points) {
      const session = await stage.session(api);
      sessions.set(point.name, session.id);
      if (point.inRun === true) {
        await session.prompt(`The prompt of ${point.name}.`);
        await gates.get(point.name)?.reached;
      }
      const push = session.push({
        customType: "kill",
        content: `The text of ${point.name}.`,
        deliveryId: id(point),
        ...point.options,
      });
      await push.accepted;
      await expect.poll(async () => (await push.get()).state, { timeout: 20_000 }).toBe(point.state);
    }
    const sessionOf = ({ name }: Point): SessionHandle => stage.client.session(sessions.get(name) as string);

    if (victim === "pi") {
      for (const point of points) process.kill((await sessionOf(point).get()).pid as number, "SIGKILL");
    } else {
      await stage.killDaemon();
    }

    const get = (point: Point): Promise<Delivery> => stage.client.call("delivery/get", { deliveryId: id(point) });
    for (const point of points) {
      const after = { ...point.after, ...(point.reason === undefined ? {} : { reason: { code: point.reason } }) };
      await expect.poll(() => get(point), { timeout: 30_000 }).toMatchObject(after);
    }
    for (const gate of gates.values()) gate.open();

    // A later prompt carries whatever was left, exactly once; what may have been seen says so.
    for (const point of points) {
      const session = sessionOf(point);
      await expect.poll(async () => (await session.get()).state, { timeout: 20_000 }).not.toBe("running");
      await session.promptAndWait(`A later prompt after ${point.name}.`);
      const end = await get(point);
      expect([point.name, end.state]).toEqual([point.name, point.name === "delivered" ? "delivered" : "answered"]);
      expect([point.name, end.redelivered]).toEqual([point.name, point.name === "prepared" ? true : undefined]);
      expect(await entries(session, id(point))).toBe(1);
    }
    expect(stage.provider.requests.flatMap(({ violations }) => violations)).toEqual([]);
  });
});
