import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../../protocol/daemon-file.ts";
import { WEBSOCKET_PATH } from "../../../protocol/wire.ts";
import { DaemonProcess } from "../../helpers/daemon-process.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

/** A connection that records its messages in order. */
class Recorder implements Disposable {
  readonly socket: WebSocket;
  readonly messages: Unchecked[] = [];
  #told: (() => void) | undefined;

  private constructor({ socketPath, token }: DaemonFile) {
    this.socket = new WebSocket(`ws+unix:${socketPath}:${WEBSOCKET_PATH}`, {
      headers: { authorization: `Bearer ${token}`, host: "localhost" },
      perMessageDeflate: false,
    });
    this.socket.on("message", (data: Buffer) => {
      const message: Unchecked = JSON.parse(data.toString("utf8"));
      this.messages.push(...(Array.isArray(message) ? message : [message]));
      this.#told?.();
    });
  }

  static async open(file: DaemonFile): Promise<Recorder> {
    const recorder = new Recorder(file);
    await once(recorder.socket, "open");
    return recorder;
  }

  send(...requests: readonly (readonly [id: string, method: string, params: object])[]): void {
    const calls = requests.map(([id, method, params]) => ({ jsonrpc: "2.0", id, method, params }));
    this.socket.send(JSON.stringify(calls.length === 1 ? calls[0] : calls));
  }

  async until(isIt: (message: Unchecked) => boolean): Promise<Unchecked> {
    for (;;) {
      const found = this.messages.find(isIt);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (this.#told = resolve));
    }
  }

  async call(id: string, method: string, params: object): Promise<Unchecked> {
    this.send([id, method, params]);
    const { result, error } = await this.answer(id);
    expect(error).toBeUndefined();
    return result;
  }

  answer(id: string): Promise<Unchecked> {
    return this.until((message) => message.id === id);
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}

const mib = 1024 * 1024;
const patient = { maxBufferedBytes: 64 * mib, slowReaderDeadlineMs: 600_000, pingIntervalMs: 600_000 };

/** A single record of this size. */
const one = (bytes: number) => ({ type: "stream", records: 1, bytes, every: 1 });
const isOne =
  (bytes: number) =>
  ({ params }: Unchecked): boolean =>
    params?.event?.result?.length === bytes;

interface Way {
  /** What the first subscription asks for in addition. */
  readonly first?: object;
  /** How it subscribes again. */
  readonly again: (slow: Recorder, params: { readonly sessionId: string; readonly after: number }) => void;
}

const subscribe = "session/subscribe";
const deltas = false;
/** A quarter of the records are no deltas. */
const command = { type: "stream", records: 2_048, bytes: 4_096, every: 4 };

const ways: readonly (readonly [string, Way])[] = [
  ["subscribes again", { again: (slow, params) => slow.send(["again", subscribe, { ...params, deltas }]) }],
  [
    "unsubscribes and subscribes again",
    {
      again: (slow, { sessionId, after }) => {
        slow.send(["off", "session/unsubscribe", { sessionId }]);
        slow.send(["again", subscribe, { sessionId, after, deltas }]);
      },
    },
  ],
  [
    "subscribes again in a batch",
    {
      again: (slow, { sessionId, after }) =>
        // The answers together are larger than what is written at a time.
        slow.send(["large", "rpc.discover", {}], ["again", subscribe, { sessionId, after, deltas }]),
    },
  ],
  [
    "subscribes again and has answers in order",
    { first: { inOrder: true }, again: (slow, params) => slow.send(["again", subscribe, { ...params, deltas }]) },
  ],
  [
    "subscribes again with a snapshot, and has answers in order",
    {
      first: { inOrder: true },
      again: (slow, { sessionId }) => slow.send(["again", subscribe, { sessionId, snapshot: true, deltas }]),
    },
  ],
];

test.each(ways)(
  "a client that does not read and %s gets after the answer all that follows its place, and nothing else",
  async (_what, { first = {}, again }) => {
    await using daemon = await DaemonProcess.start(patient);
    using other = await Recorder.open(daemon.file);
    using slow = await Recorder.open(daemon.file);
    const { sessionId, cursor } = await other.call("create", "session/create", { cwd: daemon.cwd });
    await other.call("subscribe", subscribe, { sessionId, after: cursor });
    await other.call("before", "session/command", { sessionId, command: { ...command, records: 64 } });
    await slow.call("subscribe", subscribe, { sessionId, deltas, ...first });

    slow.socket.pause();
    await other.call("waiting", "session/command", { sessionId, command });
    // The child tells more while it is asked for a snapshot.
    slow.send(["more", "session/command", { sessionId, command }]);
    again(slow, { sessionId, after: cursor });
    slow.send(["handled", "session/command", { sessionId, command: one(8) }]);
    await other.until(isOne(8));
    slow.socket.resume();
    const { result } = await slow.answer("again");
    await slow.answer("more");
    await other.call("end", "session/command", { sessionId, command: one(9) });
    await Promise.all([slow.until(isOne(9)), other.until(isOne(9))]);

    const after = result.session === undefined ? cursor : result.cursor;
    const numbersOf = ({ messages }: Recorder, from: number): number[] =>
      messages
        .slice(from)
        .filter(({ method, params }) => method !== undefined && params.event?.type !== "message_update")
        .map(({ params }) => params.seq);
    const told = numbersOf(
      slow,
      slow.messages.findIndex(({ id }) => id === "again"),
    );
    const expected = numbersOf(other, 0).filter((seq) => seq > after);
    expect(told).toEqual(expected);
  },
);

test("a client that does not read and subscribes again gets each number after the answer once, where deltas are merged or left out", async () => {
  const limits = { ...patient, mergeDeltasAboveBytes: mib, dropDeltasAboveBytes: 2 * mib };
  await using daemon = await DaemonProcess.start(limits);
  using other = await Recorder.open(daemon.file);
  using slow = await Recorder.open(daemon.file);
  const { sessionId, cursor: after } = await other.call("create", "session/create", { cwd: daemon.cwd });
  await other.call("subscribe", subscribe, { sessionId, after });
  await slow.call("subscribe", subscribe, { sessionId, after });
  slow.socket.pause();
  await other.call("waiting", "session/command", { sessionId, command });
  slow.send(["again", subscribe, { sessionId, after }]);
  slow.send(["handled", "session/command", { sessionId, command: one(8) }]);
  await other.until(isOne(8));
  await other.call("more", "session/command", { sessionId, command });
  slow.socket.resume();
  await slow.answer("again");
  await other.call("end", "session/command", { sessionId, command: one(9) });
  await Promise.all([slow.until(isOne(9)), other.until(isOne(9))]);

  const place = slow.messages.findIndex(({ id }) => id === "again");
  const holes: unknown[] = [];
  let gaps = 0;
  for (const messages of [slow.messages.slice(0, place), slow.messages.slice(place)]) {
    let next = after + 1;
    for (const { method, params } of messages) {
      if (method === undefined) continue;
      const { from, to, seq = to, firstSeq = from ?? seq } = params;
      if (firstSeq !== next) holes.push([firstSeq, next]);
      if (method === "session/gap") gaps += 1;
      next = seq + 1;
    }
  }
  expect(holes).toEqual([]);
  expect(gaps).toBeGreaterThan(0);
});
