import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../../protocol/daemon-file.ts";
import { WEBSOCKET_PATH } from "../../../protocol/wire.ts";
import { DaemonProcess } from "../../helpers/daemon-process.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

const mib = 1024 * 1024;

/** A client that records which numbers of one session it received, and how. */
class Reader implements Disposable {
  readonly socket: WebSocket;
  /** The newest number that it received, or that a gap covers. */
  cursor = 0;
  /** Deltas, by their text; each of the fake pi's is `N;`. */
  text = "";
  results = 0;
  merged = 0;
  readonly gaps: { readonly from: number; readonly to: number; readonly reason: string }[] = [];
  readonly #answers = new Map<number, (answer: { readonly result?: unknown }) => void>();
  #told: (() => void) | undefined;
  #calls = 0;
  #held: Unchecked[] | undefined;

  private constructor(daemon: DaemonFile) {
    this.socket = new WebSocket(`ws+unix:${daemon.socketPath}:${WEBSOCKET_PATH}`, {
      headers: { authorization: `Bearer ${daemon.token}`, host: "localhost" },
      perMessageDeflate: false,
      maxPayload: 256 * mib,
    });
    this.socket.on("message", (data: Buffer) => this.#hear(JSON.parse(data.toString("utf8"))));
    this.socket.on("error", () => {});
  }

  static async open(daemon: DaemonFile): Promise<Reader> {
    const reader = new Reader(daemon);
    await once(reader.socket, "open");
    return reader;
  }

  async call(method: string, params: object): Promise<Unchecked> {
    const { promise, resolve } = Promise.withResolvers<{ readonly result?: unknown }>();
    this.#calls += 1;
    this.#answers.set(this.#calls, resolve);
    this.socket.send(JSON.stringify({ jsonrpc: "2.0", id: this.#calls, method, params }));
    const answer = await promise;
    if (answer.result === undefined) throw new Error(JSON.stringify(answer));
    return answer.result;
  }

  async subscribe(sessionId: string, after: number): Promise<void> {
    this.cursor = after;
    this.#held = [];
    const { gap } = await this.call("session/subscribe", { sessionId, after });
    const held = this.#held;
    this.#held = undefined;
    if (gap !== undefined) this.#hear({ method: "session/gap", params: gap });
    for (const message of held) this.#hear(message);
  }

  /** Resolves when the condition holds. */
  async until(seq: number): Promise<void> {
    while (this.cursor < seq) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#told = resolve;
      await promise;
    }
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }

  #hear(message: Unchecked): void {
    const { id, method, params, ...answer } = message;
    if (method === undefined) this.#answers.get(id)?.(answer);
    else if (this.#held !== undefined) this.#held.push(message);
    else if (method === "session/gap") this.#take({ firstSeq: params.from, seq: params.to }, params);
    else this.#take(params);
    this.#told?.();
  }

  #take(
    {
      seq,
      firstSeq = seq,
      event,
    }: { readonly seq: number; readonly firstSeq?: number; readonly event?: { readonly type: string } },
    gap?: { readonly from: number; readonly to: number; readonly reason: string },
  ): void {
    if (firstSeq !== this.cursor + 1) throw new Error(`${firstSeq} came after ${this.cursor}.`);
    this.cursor = seq;
    if (gap !== undefined) this.gaps.push(gap);
    if (firstSeq !== seq && gap === undefined) this.merged += 1;
    if (event?.type === "tool_execution_end") this.results += 1;
    if (event?.type === "message_update") {
      this.text += (event as unknown as { assistantMessageEvent: { delta: string } }).assistantMessageEvent.delta;
    }
  }
}

/** About one MiB of records; every `every`th is not a delta. */
const burst = (sessionId: string, every: number) => ({
  sessionId,
  command: { type: "stream", records: 1_024, bytes: 800, every },
});

describe("a client that does not read", () => {
  test("gets merged deltas, then gaps, then code 1013 with the cursor to continue from; other clients and the daemon's memory are unaffected", async () => {
    const limits = {
      mergeDeltasAboveBytes: mib,
      dropDeltasAboveBytes: 2 * mib,
      maxBufferedBytes: 16 * mib,
      slowReaderDeadlineMs: 600_000,
      pingIntervalMs: 600_000,
      closeTimeoutMs: 600_000,
    };
    await using daemon = await DaemonProcess.start(limits);
    using other = await Reader.open(daemon.file);
    using slow = await Reader.open(daemon.file);
    const { sessionId, cursor } = await other.call("session/create", { cwd: daemon.cwd });
    await other.subscribe(sessionId, cursor);

    // The child writes as fast as the other client reads.
    const stream = async (bursts: number, every: number): Promise<void> => {
      for (let i = 0; i < bursts; i += 1) {
        const { cursor: upTo } = other;
        await other.call("session/command", burst(sessionId, every));
        await other.until(upTo + 1_024);
      }
    };
    // The cost of streaming without a slow reader; it varies with the garbage collector.
    await stream(50, 64);
    await slow.subscribe(sessionId, other.cursor);
    const { results } = other;
    const before = await daemon.memory();
    const heldBytes = async (): Promise<number> => {
      const now = await daemon.memory();
      return now.heapUsed + now.external - before.heapUsed - before.external;
    };

    slow.socket.pause();
    await stream(100, 64);
    // The log, the slow reader's backlog, and the data in pipes and sockets.
    expect(await heldBytes()).toBeLessThan(24 * mib);
    slow.socket.resume();
    await slow.until(other.cursor);
    expect(slow.merged).toBeGreaterThan(0);
    expect(slow.gaps.map(({ reason }) => reason)).toContain("slow_reader");
    expect(slow.results).toBe(other.results - results);

    slow.socket.pause();
    await stream(24, 1);
    slow.socket.resume();
    const [code, reason] = await once(slow.socket, "close");
    expect([code, String(reason)]).toEqual([1013, `resume after ${slow.cursor}`]);
    expect(await heldBytes()).toBeLessThan(24 * mib);

    using again = await Reader.open(daemon.file);
    await again.subscribe(sessionId, slow.cursor);
    await stream(1, 64);
    await again.until(other.cursor);
    // A replay is read as it drains, so it does not count as backlog.
    expect(again.gaps.map((gap) => gap.reason)).not.toContain("slow_reader");
    expect([other.gaps, other.merged]).toEqual([[], 0]);
    // Keeping everything sent to it would add 112 MiB to the memory that is not collected yet.
    expect((await daemon.memory()).rss).toBeLessThan(before.rss + 128 * mib);
  });

  test("stays connected during a burst of 64 MiB if it reads", async () => {
    await using daemon = await DaemonProcess.start();
    using reader = await Reader.open(daemon.file);
    using writer = await Reader.open(daemon.file);
    const { sessionId, cursor } = await writer.call("session/create", { cwd: daemon.cwd });
    await reader.subscribe(sessionId, cursor);
    const command = { type: "stream", records: 64, bytes: mib, every: 1 };
    await writer.call("session/command", { sessionId, command });
    await reader.until(cursor + 64);
    expect([reader.results, reader.gaps]).toEqual([64, []]);
  });
});
