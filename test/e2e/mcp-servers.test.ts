import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, test, vi } from "vitest";
import { type Client, connect } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hold } from "../../provider/reply.ts";
import { capabilitiesOf } from "../../server/pi/capabilities.ts";
import { parseVersion } from "../../server/pi/version.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { filesWith } from "../helpers/files.ts";
import { startKillableStage } from "../helpers/killable-stage.ts";
import { patience } from "../helpers/patience.ts";
import { piUnderTest } from "../helpers/pi-versions.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

const { mcpServers: isSupported } = capabilitiesOf(parseVersion(piUnderTest().version) ?? [0, 0, 0]);
const program = join(import.meta.dirname, "..", "fixtures", "mcp-server.mjs");
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
/** pi would run the one as a command, and replace the other by a variable. */
const newSecret = (): string => `!planted-${randomBytes(12).toString("hex")} $HOME $$ \${HOME}`;

type Place = Pick<Stage, "client" | "cwd" | "root" | "provider">;

function digestServer(secret: string, name = "own-tools") {
  const args = [program, "--of", "test"];
  return { name, command: process.execPath, args, env: { PLANTED: secret }, exposure: "direct" as const };
}

async function create({ client, cwd }: Place, mcpServers: ReturnType<typeof digestServer>[]) {
  return await client.call("session/create", { cwd, model: "scripted/model-1", mcpServers });
}

const get = (client: Client, sessionId: string) => client.call("session/get", { sessionId });

interface Message {
  readonly role: string;
}

/** What the server's tool answers the model. */
async function digestIn({ client, provider }: Place, sessionId: string): Promise<string> {
  await client.session(sessionId).promptAndWait("go");
  const { messages = [] } = (provider.requests.at(-1)?.body ?? {}) as { readonly messages?: readonly Message[] };
  return JSON.stringify(messages.findLast(({ role }) => role === "tool"));
}

const digests = (times: number) =>
  Array.from({ length: times }, () => [
    answer(call("mcp__own_tools__digest", { variable: "PLANTED" })),
    answer("done"),
  ]).flat();

const refusing = () =>
  test("a pi that takes no MCP servers is named in the error, and nothing is created", async () => {
    await using stage = await startStage();
    const { client, cwd } = stage;
    expect((await client.info()).pi.capabilities.mcpServers).toBe(false);
    const refusal = { kind: "unsupported_by_pi", data: { option: "mcpServers" } };
    await expect(create(stage, [digestServer("x")])).rejects.toMatchObject(refusal);
    expect((await client.call("session/list", {})).sessions).toEqual([]);

    // An empty list asks for nothing, and a session that is open stays as it is.
    const { sessionId } = await client.call("session/create", { cwd, model: "scripted/model-1", mcpServers: [] });
    await fallAsleep(client, sessionId);
    for (const _state of ["hibernated", "idle"]) {
      const opened = client.call("session/open", { sessionId, mcpServers: [digestServer("x")] });
      await expect(opened).rejects.toMatchObject(refusal);
      const { output } = await client.call("session/bash", { sessionId, command: "printf here" });
      expect(output).toBe("here");
      expect((await get(client, sessionId)).mcpServers).toBeUndefined();
    }
  });

const connecting = () =>
  describe("MCP servers of a client", () => {
    test("the model calls a tool of a client's server, whose secret is in no file, answer or log", async () => {
      const secret = newSecret();
      const lines: string[] = [];
      const log = pino({ level: "trace" }, { write: (line) => void lines.push(line) });
      await using stage = await startStage({ log, provider: { script: digests(3) } });
      const { client } = stage;
      expect((await client.info()).pi.capabilities.mcpServers).toBe(true);
      const info = await create(stage, [digestServer(secret)]);
      expect(info.mcpServers).toEqual(["own-tools"]);
      expect(await digestIn(stage, info.sessionId)).toContain(`${sha256(secret)} --of test`);

      // Later pis get them too.
      await client.call("session/reload", { sessionId: info.sessionId });
      expect(await digestIn(stage, info.sessionId)).toContain(sha256(secret));

      await fallAsleep(client, info.sessionId);
      expect(await get(client, info.sessionId)).toMatchObject({ state: "hibernated", mcpServers: ["own-tools"] });
      expect(await digestIn(stage, info.sessionId)).toContain(sha256(secret));

      const { events } = await client.call("session/events", { sessionId: info.sessionId, limit: 1_000 });
      const own = secret.slice(1, 33);
      const answers = JSON.stringify([info, await client.call("session/list", {}), events]);
      expect(answers).not.toContain(own);
      expect(filesWith(stage.root, own)).toEqual([]);
      await client.close();
      await stage.daemon.stop();
      expect(filesWith(stage.root, own)).toEqual([]);
      expect(lines.filter((line) => line.includes(own))).toEqual([]);
    });

    test("a server over HTTP gets the client's headers as they are", async () => {
      const heard: IncomingHttpHeaders[] = [];
      const server = createServer((request, response) => {
        heard.push(request.headers);
        response.writeHead(404).end();
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      await using stage = await startStage();
      try {
        const { port } = server.address() as AddressInfo;
        const headers = { "X-Key": "!a $HOME", Authorization: "Bearer $$x" };
        const mcpServers = [{ name: "far", url: `http://127.0.0.1:${port}/mcp`, headers }];
        await stage.client.call("session/create", { cwd: stage.cwd, model: "scripted/model-1", mcpServers });
        await vi.waitFor(() => expect(heard).not.toEqual([]), patience);
        expect(heard[0]).toMatchObject({ "x-key": "!a $HOME", authorization: "Bearer $$x" });
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });

    test("session/open replaces the servers of an idle session, and is session_busy while others follow it or it works", async () => {
      const gate = new Gate();
      await using stage = await startStage({
        provider: { script: [answer(hold(gate), "held"), ...digests(2)] },
      });
      const { client, stateDir } = stage;
      const { sessionId, pid } = await create(stage, [digestServer("first")]);
      const open = (...mcpServers: ReturnType<typeof digestServer>[]) =>
        client.call("session/open", { sessionId, mcpServers });
      const busy = (reason: string) => ({ kind: "session_busy", data: { reason, options: ["mcpServers"] } });
      const running = client.session(sessionId).runUntilSettled("go");
      await vi.waitFor(async () => expect((await get(client, sessionId)).state).toBe("running"), patience);
      await expect(open(digestServer("second"))).rejects.toMatchObject(busy("running"));
      // The same ones need no other pi, in any order of fields.
      const { name, ...rest } = digestServer("first");
      expect(await open({ ...rest, name })).toMatchObject({ pid, state: "running" });
      gate.open();
      await running;

      await using second = await connect({ stateDir });
      await second.call("session/subscribe", { sessionId });
      await expect(open(digestServer("second"))).rejects.toMatchObject(busy("shared"));
      expect(await client.call("session/open", { sessionId })).toMatchObject({ pid, mcpServers: ["own-tools"] });
      await second.call("session/unsubscribe", { sessionId });
      await second.call("session/acquireControl", { sessionId, policy: "exclusive" });
      await expect(open(digestServer("second"))).rejects.toMatchObject({ kind: "not_controller" });
      await second.call("session/acquireControl", { sessionId, policy: "shared" });

      const opened = await open(digestServer("second"), digestServer("x", "another"));
      expect(opened).toMatchObject({ generation: 2, mcpServers: ["another", "own-tools"] });
      expect(opened.pid).not.toBe(pid);
      expect(await digestIn(stage, sessionId)).toContain(sha256("second"));

      // A session that pi makes of this one keeps its pi, which loads its extensions again and forgets the servers.
      const { session } = await client.call("session/clone", { sessionId });
      expect(session.mcpServers).toEqual(opened.mcpServers);
      expect(await digestIn(stage, session.sessionId)).toContain(sha256("second"));
      const none = await client.call("session/open", { sessionId: session.sessionId, mcpServers: [] });
      expect(none).not.toHaveProperty("mcpServers");
      expect(none.pid).not.toBe(session.pid);
    });

    test("a pi does not go on to a session that is opened with other servers", async () => {
      await using stage = await startStage({ provider: { script: [answer("kept"), answer("kept")] } });
      const { client } = stage;
      const from = await create(stage, [digestServer("one")]);
      const to = await create(stage, []);
      await client.session(to.sessionId).promptAndWait("go");
      const open = async (mcpServers?: ReturnType<typeof digestServer>[]) => {
        await fallAsleep(client, to.sessionId);
        const given = mcpServers === undefined ? {} : { mcpServers };
        return await client.call("session/open", { sessionId: to.sessionId, from: from.sessionId, ...given });
      };
      // It has servers of its own: none.
      expect((await open()).pid).not.toBe(from.pid);
      expect((await open([])).pid).not.toBe(from.pid);
      expect(await open([digestServer("two")])).toMatchObject({ mcpServers: ["own-tools"] });
      expect(await get(client, from.sessionId)).toMatchObject({ pid: from.pid, mcpServers: ["own-tools"] });
      const opened = await open([digestServer("one")]);
      expect(opened).toMatchObject({ pid: from.pid, mcpServers: ["own-tools"] });

      // A session that was closed is opened without the former ones.
      const { sessionId } = to;
      for (const given of [{ mcpServers: [digestServer("x", "new")] }, {}]) {
        await client.call("session/close", { sessionId });
        const { mcpServers = [] } = await client.call("session/open", { sessionId, ...given });
        expect(mcpServers).toEqual((given.mcpServers ?? []).map(({ name }) => name));
      }
    });

    test("a session with servers gets no warm pi, and no other session gets its pi", async () => {
      await using stage = await startStage({
        env: () => ({ PI_RPCD_WARM_CHILDREN: "1" }),
        provider: { script: digests(1) },
      });
      const { client } = stage;
      for (let i = 0; i < 2; i += 1) await create(stage, []);
      await vi.waitFor(async () => expect((await client.info()).warmChildren).toBe(1), patience);
      const { sessionId } = await create(stage, [digestServer("mine")]);
      expect((await client.info()).warmChildren).toBe(1);
      expect(await digestIn(stage, sessionId)).toContain(sha256("mine"));
    });

    test("a pi that survives its daemon keeps its servers, and the next pi has none until session/open gives them", async () => {
      const secret = newSecret();
      const own = secret.slice(1, 33);
      await using stage = await startKillableStage({ provider: { script: digests(4) } });
      const { sessionId, pid } = await create(stage, [digestServer(secret)]);
      expect(await digestIn(stage, sessionId)).toContain(sha256(secret));
      await stage.restart(() => expect(filesWith(stage.root, own)).toEqual([]));
      const restored = await get(stage.client, sessionId);
      expect(restored).toMatchObject({ pid, restoredAt: expect.any(Number) });
      expect(restored).not.toHaveProperty("mcpServers");
      expect(await digestIn(stage, sessionId)).toContain(sha256(secret));
      // This daemon does not know what it has.
      const { pid: next } = await stage.client.call("session/open", { sessionId, mcpServers: [] });
      expect(next).not.toBe(pid);
      expect(await digestIn(stage, sessionId)).toContain("not found");
      expect(await stage.client.call("session/open", { sessionId, mcpServers: [] })).toMatchObject({ pid: next });
      const opened = await stage.client.call("session/open", { sessionId, mcpServers: [digestServer(secret)] });
      expect(opened.mcpServers).toEqual(["own-tools"]);
      expect(await digestIn(stage, sessionId)).toContain(sha256(secret));
      expect(filesWith(stage.root, own)).toEqual([]);
    });

    test("a session that is left without a message ends with the programs of its servers", async () => {
      await using stage = await startStage();
      const { client, cwd, stateDir } = stage;
      const mark = `--mark-${randomBytes(8).toString("hex")}`;
      const mcpServers = [{ ...digestServer("x"), args: [program, mark] }];
      await using front = await connect({ stateDir });
      const params = { cwd, model: "scripted/model-1", mcpServers, whenLeft: "close" } as const;
      const { sessionId } = await front.call("session/create", params);
      await front.call("session/subscribe", { sessionId });
      await vi.waitFor(() => expect(processesNaming(mark)).toHaveLength(1), patience);
      await front.call("session/unsubscribe", { sessionId });
      await vi.waitFor(async () => expect((await client.call("session/list", {})).sessions).toEqual([]), patience);
      expect(processesNaming(mark)).toEqual([]);
    });

    test("an MCP server that pi cannot connect, and a pi without MCP, fail nothing", async () => {
      await using stage = await startStage({ provider: { script: [answer("one"), answer("two"), answer("one")] } });
      const { client, cwd } = stage;
      const heard = async (params: object, wanted: string) => {
        const given = { cwd, model: "scripted/model-1", mcpServers: [digestServer("x")], ...params };
        const { sessionId } = await client.call("session/create", given);
        expect(await client.session(sessionId).promptAndWait("go")).toMatch(/^(one|two)$/);
        await vi.waitFor(async () => {
          const { events } = await client.call("session/events", { sessionId, limit: 1_000 });
          expect(JSON.stringify(events)).toContain(wanted);
        }, patience);
      };
      await heard({ mcpServers: [{ name: "gone", command: join(stage.root, "nothing") }] }, "gone: failed");
      await heard({ noExtensions: true }, "no loaded extension connects MCP servers");
      const extension = join(stage.root, "own.ts");
      writeFileSync(extension, 'export default (pi) => pi.registerMcpServer("own-tools", { command: "nothing" });');
      await heard({ extensions: [extension] }, "pi refuses the MCP server own-tools: MCP server");
    });
  });

if (isSupported === true) connecting();
else refusing();

/** The processes that have a text in their command line. */
function processesNaming(text: string): string[] {
  return readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`).includes(text);
    } catch {
      return false;
    }
  });
}

test("MCP servers need admin, over any transport, and are bounded", async () => {
  await using stage = await startStage();
  const { client, cwd } = stage;
  const { url, token, socketPath } = stage.daemon.file;
  const named = await client.call("token/create", { name: "ci", capabilities: ["observe", "prompt", "bash"] });
  await using limited = await connect({ socketPath, token: named.token });
  const { sessionId } = await create(stage, []);
  for (const refused of [
    limited.call("session/create", { cwd, mcpServers: [digestServer("x")] }),
    limited.call("session/open", { sessionId, mcpServers: [] }),
  ])
    await expect(refused).rejects.toMatchObject({ kind: "forbidden", data: { needs: "admin" } });

  await using tcp = await connect({ url, token });
  const own = { name: "a", command: "b" };
  const secret = newSecret();
  for (const mcpServers of [
    Array.from({ length: 33 }, (_, i) => ({ ...own, name: `a${i}` })),
    [{ ...own, args: Array.from({ length: 5 }, () => "x".repeat(30_000)) }],
    [own, { ...own, command: "c" }],
    [
      { ...own, name: "a-b" },
      { ...own, name: "a_b" },
    ],
    [{ ...own, env: { "A=": secret } }],
    [{ ...own, env: { A: `${secret}\0` } }],
    [{ name: "a", url: "http://[", headers: { A: secret } }],
    [{ name: "a", url: "file:///etc/passwd" }],
    [{ name: "a", url: "http://h", headers: { A: `${secret}\r\nB: c` } }],
    [{ name: "a", url: "http://h", headers: { "A b": secret } }],
    [{ ...own, url: "http://h" }],
    [{ name: "a b", command: "c" }],
    [{ name: "a" }],
  ]) {
    const refused = await tcp.call("session/create", { cwd, mcpServers } as never).catch((error: unknown) => error);
    expect(refused).toMatchObject({ kind: "invalid_params" });
    expect(JSON.stringify(refused)).not.toContain(secret.slice(1, 33));
  }
});
