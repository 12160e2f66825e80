import { describe, expect, it, vi } from "vitest";
import { ACP_PATH } from "../../../protocol/wire.ts";
import type { Call, Peer } from "../../../server/rpc/call.ts";
import {
  authorization,
  type EdgeTestOptions,
  openWebSocket,
  startEdge,
  type TestEdge,
  type TestWebSocket,
} from "../../helpers/edge.ts";
import { patience } from "../../helpers/patience.ts";

const mib = 1024 * 1024;
const sessionId = "01920000-0000-7000-8000-000000000001";
const cwd = "/tmp";
const attaching = { sessionId, cwd, mcpServers: [] };

/** A daemon with one session, in so far as an editor needs it. */
class FakeSession {
  readonly followed: { readonly after?: number; readonly epoch?: string; readonly catchUp?: boolean }[] = [];
  unsubscribed = 0;
  entries: readonly object[] = [];
  #peer: Peer | undefined;
  #seq = 0;

  get handlers(): NonNullable<EdgeTestOptions["handlers"]> {
    return {
      "daemon/info": () => ({ pi: { version: "1", capabilities: {} } }),
      "session/open": () => ({ sessionId, cwd }),
      "session/get": () => ({ sessionId, cwd, cursor: this.#seq }),
      // One entry a page.
      "transcript/page": (params) => {
        const { before } = params as { readonly before?: string };
        const at = before === undefined ? this.entries.length - 1 : Number(before);
        const place = before === undefined ? { cursor: this.#seq, epoch: "e" } : {};
        const more = at > 0 ? { before: String(at - 1) } : {};
        return { entries: this.entries.slice(at, at + 1), leafId: String(this.entries.length), ...place, ...more };
      },
      "session/getState": () => ({}),
      "session/getStats": () => ({ cost: 0, userMessages: 1 }),
      "session/getCommands": () => ({ commands: [] }),
      "session/getThinkingLevels": () => ({ levels: ["off"] }),
      "model/list": () => ({ models: [{ provider: "p", id: "m" }] }),
      "dialog/list": () => ({ dialogs: [] }),
      "session/prompt": (_params, { signal }: Call) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
      "session/subscribe": (params, call: Call) => {
        const place = params as FakeSession["followed"][number];
        this.followed.push(place);
        this.#peer = undefined;
        call.whenAnswered?.(() => {
          this.#peer = call.peer;
        });
        return { cursor: this.#seq, epoch: "e" };
      },
      "session/unsubscribe": () => {
        this.unsubscribed += 1;
        return { wasSubscribed: true };
      },
    };
  }

  /** Whether what it tells is heard. */
  get isHeard(): boolean {
    return this.#peer !== undefined;
  }

  tell(event: object, isDelta = false): void {
    this.#seq += 1;
    const seq = this.#seq;
    const params = { sessionId, seq, at: 0, generation: 1, event };
    const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "session/event", params }));
    this.#peer?.send({ bytes, sessionId, seq, isDelta });
  }

  /** Begins an answer. */
  begin(): void {
    this.tell({ type: "message_start", message: { role: "assistant", content: [], timestamp: 1 } });
    this.tell({ type: "message_update", assistantMessageEvent: { type: "text_start", contentIndex: 0 } }, true);
  }

  say(delta: string): void {
    const assistantMessageEvent = { type: "text_delta", contentIndex: 0, delta };
    this.tell({ type: "message_update", assistantMessageEvent }, true);
  }
}

async function editorOf(edge: TestEdge): Promise<TestWebSocket> {
  const editor = await openWebSocket(edge, "tcp", authorization, ACP_PATH);
  await editor.call("initialize", { protocolVersion: 1, clientCapabilities: {} });
  return editor;
}

/** The editor follows the session. */
async function attached(edge: TestEdge, session: FakeSession): Promise<TestWebSocket> {
  const editor = await editorOf(edge);
  await editor.call("session/resume", attaching);
  // Before the answer, to know the place, and from there on.
  await vi.waitUntil(() => session.followed.length === 2 && session.isHeard, patience);
  return editor;
}

/** Limits of which only those under test are reached. */
const patient = { slowReaderDeadlineMs: 600_000, pingIntervalMs: 600_000, closeTimeoutMs: 600_000 };

/** Lets the daemon write what it can. */
const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

describe("an editor that does not read", () => {
  it("holds up 50 MiB of deltas in the log, and goes on by its place when it reads again", async () => {
    const session = new FakeSession();
    await using edge = await startEdge({ handlers: session.handlers, limits: patient });
    await using editor = await attached(edge, session);
    session.begin();
    editor.raw.pause();
    for (let i = 0; i < 800; i += 1) {
      session.say("x".repeat(64 * 1024));
      await turns();
    }
    expect(session.followed).toHaveLength(2);
    editor.raw.resume();
    await vi.waitUntil(() => session.followed.length === 3, patience);
    const { after = 0, epoch } = session.followed[2] ?? {};
    expect(epoch).toBe("e");
    expect(after).toBeGreaterThan(100);
    expect(after).toBeLessThan(400);
  });

  it("is closed with 1013 for its updates when the budget of all connections is full", async () => {
    const session = new FakeSession();
    const limits = { ...patient, closeTimeoutMs: 1, maxBufferedBytesAllConnections: 4 * mib };
    await using edge = await startEdge({ handlers: session.handlers, limits });
    await using editor = await attached(edge, session);
    session.begin();
    editor.raw.pause();
    const isClosed = (): boolean => edge.logged.some((line) => line.includes("maxBufferedBytesAllConnections"));
    for (let i = 0; i < 200 && !isClosed(); i += 1) {
      session.say("x".repeat(64 * 1024));
      await turns();
    }
    expect(isClosed()).toBe(true);
    editor.raw.resume();
    await editor.closed;
  });

  it("is closed with 1013 for the answers that wait for it", async () => {
    const session = new FakeSession();
    const big = () => ({ sessions: ["x".repeat(mib)] });
    const handlers = { ...session.handlers, "session/list": big };
    const limits = { ...patient, maxBufferedBytes: 4 * mib };
    await using edge = await startEdge({ handlers, limits });
    await using editor = await editorOf(edge);
    editor.raw.pause();
    for (let id = 2; id < 30; id += 1) editor.send({ jsonrpc: "2.0", id, method: "_pi-rpcd/session/list", params: {} });
    await vi.waitUntil(() => edge.logged.some((line) => line.includes('"maxBufferedBytes"')), patience);
    editor.raw.resume();
    expect((await editor.closed).code).toBe(1013);
  });

  it("is closed with 1013 when it takes nothing in time", async () => {
    const session = new FakeSession();
    await using edge = await startEdge({
      handlers: session.handlers,
      limits: { ...patient, slowReaderDeadlineMs: 100 },
    });
    await using editor = await attached(edge, session);
    session.begin();
    editor.raw.pause();
    for (let i = 0; i < 100; i += 1) {
      session.say("x".repeat(64 * 1024));
      await turns();
    }
    await vi.waitUntil(() => edge.logged.some((line) => line.includes("slowReaderDeadlineMs")), patience);
    editor.raw.resume();
    expect((await editor.closed).code).toBe(1013);
  });

  it("is closed for the history that it does not take, which counts as well", async () => {
    const session = new FakeSession();
    const content = [{ type: "text", text: "x".repeat(mib) }];
    session.entries = Array.from({ length: 12 }, (_, i) => ({
      type: "message",
      id: String(i + 1),
      parentId: i === 0 ? null : String(i),
      message: { role: "user", content, timestamp: i },
    }));
    const limits = { ...patient, maxBufferedBytesAllConnections: 8 * mib };
    await using edge = await startEdge({ handlers: session.handlers, limits });
    await using editor = await editorOf(edge);
    editor.raw.pause();
    editor.send({ jsonrpc: "2.0", id: 2, method: "session/load", params: attaching });
    await vi.waitUntil(() => edge.logged.some((line) => line.includes("AllConnections")), patience);
    editor.raw.resume();
    expect((await editor.closed).code).toBe(1013);
  });
});

describe("an editor's messages", () => {
  it("count until they are answered", async () => {
    const session = new FakeSession();
    await using edge = await startEdge({
      handlers: session.handlers,
      limits: { ...patient, maxInboundBytes: 2 * mib, maxInboundBytesPerToken: 2 * mib },
    });
    await using editor = await attached(edge, session);
    const prompt = [{ type: "text", text: "x".repeat(mib) }];
    for (let id = 2; id < 5; id += 1)
      editor.send({ jsonrpc: "2.0", id, method: "session/prompt", params: { sessionId, prompt } });
    expect(await editor.closed).toMatchObject({ code: 1013 });
    await vi.waitUntil(() => edge.edge.load.quotas.inboundBytes.taken === 0, patience);
  });

  it("are answered when a result has no JSON", async () => {
    const circle: { own?: object } = {};
    circle.own = circle;
    await using edge = await startEdge({ handlers: { ...new FakeSession().handlers, "session/list": () => circle } });
    await using editor = await editorOf(edge);
    const answer = await editor.call("_pi-rpcd/session/list", {}, 2);
    expect(answer).toMatchObject({ id: 2, error: { code: -32_603 } });
  });
});

describe("a connection that ends", () => {
  it("calls nothing more, so that the run of its prompt goes on", async () => {
    const session = new FakeSession();
    const abort = vi.fn(() => ({ aborted: true }));
    const [prompted, cancelled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const handlers: EdgeTestOptions["handlers"] = {
      ...session.handlers,
      "session/abort": abort,
      "session/prompt": (_params, { signal }) => {
        prompted.resolve();
        signal.addEventListener("abort", () => cancelled.resolve());
        return new Promise(() => {});
      },
    };
    await using edge = await startEdge({ handlers });
    await using editor = await attached(edge, session);
    const prompt = [{ type: "text", text: "Go." }];
    editor.send({ jsonrpc: "2.0", id: 2, method: "session/prompt", params: { sessionId, prompt } });
    await prompted.promise;
    editor.raw.terminate();
    await cancelled.promise;
    await turns();
    expect(abort).not.toHaveBeenCalled();
    expect(session.unsubscribed).toBe(0);
  });
});
