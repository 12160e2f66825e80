import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SeqNumbers } from "../../../server/core/seq-numbers.ts";
import { largeRecord } from "../../../server/frames/large-record.ts";
import { Logs } from "../../../server/log/logs.ts";
import { EventTail } from "../../../server/store/event-tail.ts";
import { EventStore } from "../../../server/store/events.ts";
import type { OpenStore } from "../../../server/store/open-store.ts";
import { reserveFrom } from "../../helpers/logs.ts";
import { patience } from "../../helpers/patience.ts";
import { open } from "../../helpers/stored.ts";

let directory: string;
let store: OpenStore;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "events-"));
  store = open(directory);
});

afterEach(() => {
  store.close();
  rmSync(directory, { recursive: true });
});

const bounds = { maxSessionBytes: 1 << 20, maxTotalBytes: 1 << 22 };
/** Bytes that do not compress. */
const noise = (length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  let state = length;
  for (let i = 0; i < length; i += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = 0x20 + ((state >>> 16) % 90);
  }
  return bytes;
};
const everything = Number.MAX_SAFE_INTEGER;

describe("the logs in the store", () => {
  test("contain the written events, and report them to another daemon", async () => {
    const events = new EventStore(store.database, bounds);
    const frames = [Buffer.from('{"a":"ä\u2028"}'), Buffer.from('{"b":1}')];
    await events.put("s", 1, 9, frames);
    await events.putGap("s", { from: 10, to: 20, reason: "daemon_restart" });
    await events.put("other", 1, 1, []);
    const again = new EventStore(store.database, bounds);
    expect(again.newest("s")).toBe(20);
    expect(again.newest("unknown")).toBeUndefined();
    expect(again.read("s", 0, everything)).toEqual({
      spans: [
        { firstSeq: 1, lastSeq: 9, frames },
        { firstSeq: 10, lastSeq: 20, gap: "daemon_restart", frames: [] },
      ],
      isEnd: true,
    });
    expect(again.read("s", 9, everything).spans).toHaveLength(1);
    expect([...again.readBack("s", 20)].map(({ firstSeq }) => firstSeq)).toEqual([10, 1]);
    await again.delete("s");
    expect(again.read("s", 0, everything)).toEqual({ spans: [], isEnd: true });
    expect(new EventStore(store.database, bounds).newest("s")).toBeUndefined();
  });

  test("are read piece by piece", async () => {
    const events = new EventStore(store.database, bounds);
    for (let i = 1; i <= 4; i += 1) await events.put("s", i, i, [noise(1_000)]);
    const { spans, isEnd } = events.read("s", 0, 1_500);
    expect([spans.length, isEnd]).toEqual([2, false]);
  });

  test("have a hole where a row is damaged", async () => {
    const events = new EventStore(store.database, bounds);
    for (let i = 1; i <= 3; i += 1) await events.put("s", i, i, [Buffer.from(`{"i":${i}}`)]);
    await store.database.write(store.database.prepare("UPDATE events SET frames = x'28b52ffd00' WHERE last_seq = 2"));
    expect(events.read("s", 0, everything).spans.map(({ firstSeq }) => firstSeq)).toEqual([1, 3]);
  });

  test("stay within the limit of a session, and of all, by forgetting the oldest events", async () => {
    const events = new EventStore(store.database, { maxSessionBytes: 50_000, maxTotalBytes: 120_000 });
    for (let i = 1; i <= 20; i += 1) {
      for (const id of ["a", "b", "c", "d"]) await events.put(id, i, i, [noise(5_000)]);
      expect(events.bytes).toBeLessThanOrEqual(120_000);
    }
    for (const id of ["a", "b", "c", "d"]) {
      const { spans } = events.read(id, 0, everything);
      expect(spans.at(-1)?.lastSeq).toBe(20);
      expect(spans.flatMap(({ frames }) => frames).reduce((sum, { length }) => sum + length, 0)).toBeLessThan(70_000);
    }
    const counted = new EventStore(store.database, bounds).bytes;
    expect(events.bytes).toBe(counted);
  });

  test("forget old events, but not the last number of a log", async () => {
    const events = new EventStore(store.database, bounds);
    for (let i = 1; i <= 3; i += 1) await events.put("s", i, i, [Buffer.from("{}")]);
    await events.expire(Date.now() + 1_000);
    expect(events.read("s", 0, everything).spans.map(({ firstSeq }) => firstSeq)).toEqual([3]);
    expect(events.newest("s")).toBe(3);
  });
});

const frame = (sessionId: string, seq: number): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","method":"session/event","params":{"sessionId":"${sessionId}","seq":${seq},"x":"ä"}}`);

describe("the tail of the logs", () => {
  const tailOf = (): EventTail => new EventTail(directory, () => {}, 1 << 20);
  const recorded = new Map([
    ["s", { epoch: "e", reservedSeq: 100 }],
    ["new", { epoch: "e", reservedSeq: 100 }],
  ]);
  const tails = (): string[] => readdirSync(directory).filter((name) => name.endsWith(".tail"));

  test("stores the reports of a killed daemon, with the numbers that they cover", async () => {
    const events = new EventStore(store.database, bounds);
    await events.put("s", 1, 4, [frame("s", 4)]);
    const tail = tailOf();
    tail.append("e", 1, frame("s", 4));
    tail.append("e", 5, frame("s", 9));
    tail.append("e", 1, frame("new", 2));
    tail.append("e", 10, frame("s", 10));
    // Numbers in between were used, but could not be written.
    tail.append("e", 20, frame("s", 21));
    tail.close();
    await Logs.recover(events, directory, recorded);
    expect(events.read("s", 4, everything).spans).toEqual([
      { firstSeq: 5, lastSeq: 10, frames: [frame("s", 9), frame("s", 10)] },
      { firstSeq: 20, lastSeq: 21, frames: [frame("s", 21)] },
    ]);
    expect(events.read("new", 0, everything).spans).toEqual([{ firstSeq: 1, lastSeq: 2, frames: [frame("new", 2)] }]);
    expect(tails()).toEqual([]);
  });

  test("is read up to an incomplete line, and skips invalid ones", async () => {
    const events = new EventStore(store.database, bounds);
    const tail = tailOf();
    tail.append("e", 1, frame("s", 1));
    tail.close();
    const file = join(directory, tails()[0] ?? "");
    appendFileSync(
      file,
      `\0\0\ne 7 nonsense\ne 2 ${frame("s", 2).toString().replace('"x"', "x")}\ne 2 ${frame("s", 2).subarray(0, 60)}`,
    );
    await Logs.recover(events, directory, recorded);
    expect(events.newest("s")).toBe(1);
  });

  test("omits unreserved numbers, including stored ones, and continues below them", async () => {
    const events = new EventStore(store.database, bounds);
    await events.put("s", 1, 4, [frame("s", 4)]);
    await events.put("s", 2_000_000, 2_000_001, [frame("s", 2_000_001)]);
    const tail = tailOf();
    tail.append("e", 5, frame("s", 5));
    tail.append("e", 2_000_002, frame("s", 2_000_002));
    tail.close();
    await Logs.recover(events, directory, recorded);
    expect(events.newest("s")).toBe(5);
    expect(events.read("s", 4, everything).spans).toEqual([{ firstSeq: 5, lastSeq: 5, frames: [frame("s", 5)] }]);
  });

  test("is removed for sessions that do not exist", async () => {
    const events = new EventStore(store.database, bounds);
    const tail = tailOf();
    tail.append("e", 1, frame("never", 1));
    tail.append("e", 1, frame("s", 1));
    tail.close();
    await Logs.recover(events, directory, recorded);
    expect([events.newest("never"), events.newest("s"), tails()]).toEqual([undefined, 1, []]);
  });

  test("is removed for an earlier session with the same id", async () => {
    const events = new EventStore(store.database, bounds);
    const tail = tailOf();
    tail.append("former", 1, frame("s", 1));
    tail.append("former", 2, frame("s", 7));
    tail.append("e", 1, frame("s", 2));
    tail.append("former", 8, frame("s", 8));
    tail.close();
    await Logs.recover(events, directory, recorded);
    expect(events.read("s", 0, everything).spans).toEqual([{ firstSeq: 1, lastSeq: 2, frames: [frame("s", 2)] }]);
  });

  test("stays within its limit on disk, reports that once, and continues after events were stored", () => {
    const said: unknown[] = [];
    const one = frame("s", 1).length + 5;
    const tail = new EventTail(directory, (error) => said.push(error), 3 * one);
    const bytes = () => tails().reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
    for (let i = 0; i < 20; i += 1) tail.append("e", 1, frame("s", 1));
    expect(bytes()).toBe(3 * one);
    expect(said).toHaveLength(1);
    tail.seal()?.remove();
    tail.append("e", 1, frame("s", 1));
    expect(bytes()).toBe(one);
    tail.close();
  });

  const bodies = (): string[] => readdirSync(directory).filter((name) => name.endsWith(".body"));
  const body = Buffer.from(`{"type":"turn_end","text":"${"é".repeat(9_000)}"}`);
  /** The notification of a record. */
  const around = (seq: number): Buffer =>
    Buffer.concat([
      Buffer.from(`{"jsonrpc":"2.0","method":"session/event","params":{"sessionId":"s","seq":${seq},"event":`),
      body,
      Buffer.from("}}"),
    ]);

  test("stores the large records of a killed daemon that were written before their events", async () => {
    const events = new EventStore(store.database, bounds);
    const tail = tailOf();
    const first = tail.stage(body);
    tail.append("e", 1, frame("s", 1));
    tail.append("e", 2, around(2), await first);
    tail.append("e", 3, frame("s", 3));
    // Killed before its event was numbered.
    await tail.stage(body);
    tail.close();
    expect(bodies()).toHaveLength(2);
    await Logs.recover(events, directory, recorded);
    expect(events.read("s", 0, everything).spans).toEqual([
      { firstSeq: 1, lastSeq: 3, frames: [frame("s", 1), around(2), frame("s", 3)] },
    ]);
    expect([tails(), bodies()]).toEqual([[], []]);
  });

  test("skips an event whose large record is missing or incomplete", async () => {
    const events = new EventStore(store.database, bounds);
    const tail = tailOf();
    tail.append("e", 1, frame("s", 1));
    const [missing, torn] = [await tail.stage(body), await tail.stage(body)];
    tail.append("e", 2, around(2), missing);
    tail.append("e", 3, around(3), torn);
    tail.close();
    rmSync(missing?.file ?? "");
    truncateSync(torn?.file ?? "", 5_000);
    await Logs.recover(events, directory, recorded);
    expect(events.newest("s")).toBe(1);
  });

  test("takes no other large record for one whose number is torn", async () => {
    const events = new EventStore(store.database, bounds);
    const tail = tailOf();
    tail.append("e", 1, around(1), await tail.stage(body));
    let torn = await tail.stage(body);
    while ((torn?.number ?? 0) < 10) torn = await tail.stage(body);
    tail.append("e", 2, around(2), torn);
    tail.close();
    const file = join(directory, tails()[0] ?? "");
    truncateSync(file, readFileSync(file, "latin1").lastIndexOf('"event":1') + '"event":1'.length);
    appendFileSync(file, "\n");
    await Logs.recover(events, directory, recorded);
    expect(events.newest("s")).toBe(1);
  });

  test("removes a large record also if the file of its line cannot be opened", async () => {
    const tail = new EventTail(directory, () => {}, 3 * body.length);
    const first = await tail.stage(body);
    symlinkSync("elsewhere", join(directory, `events-${(first?.number ?? 0) + 1}.tail`));
    tail.append("e", 1, around(1), first);
    expect(bodies()).toHaveLength(1);
    tail.append("e", 2, frame("s", 2));
    tail.seal()?.remove();
    await vi.waitFor(() => expect(bodies()).toEqual([]), patience);
  });

  test("removes a large record with its event, and counts it once", async () => {
    const tail = new EventTail(directory, () => {}, 3 * body.length);
    tail.append("e", 1, around(1), await tail.stage(body));
    expect(tail.isCrowded).toBe(false);
    tail.append("e", 2, around(2), await tail.stage(body));
    expect(tail.isCrowded).toBe(true);
    expect(await tail.stage(body)).toBeUndefined();
    tail.seal()?.remove();
    expect(tail.isCrowded).toBe(false);
    await vi.waitFor(() => expect([tails(), bodies()]).toEqual([[], []]), patience);
  });

  test("is removed after events that are stored immediately, because they are large", async () => {
    const said: unknown[] = [];
    const tail = new EventTail(directory, (error) => said.push(error), 20_000);
    const limits = { maxRetainedBytes: 1 << 20, maxRetainedBytesInAll: 1 << 20, maxStoredEventBytes: 1 << 20 };
    const logs = new Logs(
      new EventStore(store.database, bounds),
      { ...limits, storeAfterMs: 1, maxUnstoredBytes: 10 },
      tail,
    );
    const log = logs.open("s", "e", new SeqNumbers(reserveFrom()));
    for (let i = 0; i < 4; i += 1) {
      log.appendEvent(Buffer.from(JSON.stringify({ text: "x".repeat(15_000) })), 1, false);
      await vi.waitFor(() => expect(tails()).toEqual([]), patience);
    }
    expect(said).toEqual([]);
    await logs.close();
  });

  test("has the bytes of a large record that was completed in place, and so do its readers in memory", async () => {
    const events = new EventStore(store.database, bounds);
    const limits = { maxRetainedBytes: 1 << 20, maxRetainedBytesInAll: 1 << 20, maxStoredEventBytes: 1 << 20 };
    const logs = new Logs(events, { ...limits, storeAfterMs: 1, maxUnstoredBytes: 1 << 20 }, tailOf());
    const log = logs.open("s", "e", new SeqNumbers(reserveFrom()));
    const space = largeRecord(body.length);
    body.copy(space);
    await log.stage(space);
    const { bytes } = log.appendEvent(space, 7, false);
    // Before anything else can change them.
    const sent = Buffer.from(bytes);
    expect(sent.subarray(-body.length - 2, -2)).toEqual(body);
    expect(JSON.parse(sent.toString("utf8"))).toMatchObject({ params: { sessionId: "s", seq: 1, generation: 7 } });
    await logs.close();
    log.appendEvent(Buffer.from("{}"), 7, false);
    expect(log.read(0, everything).items[0]).toMatchObject({ kind: "frame", frame: { bytes: sent } });
    expect(events.read("s", 0, everything).spans).toEqual([{ firstSeq: 1, lastSeq: 1, frames: [sent] }]);
    expect([bytes, space]).toEqual([sent, body]);
  });

  test("is gone when everything is stored", () => {
    const tail = tailOf();
    tail.append("e", 1, frame("s", 1));
    const sealed = tail.seal();
    tail.append("e", 2, frame("s", 2));
    expect(tails()).toHaveLength(2);
    sealed?.remove();
    tail.seal()?.remove();
    expect(tails()).toEqual([]);
    expect(tail.seal()).toBeUndefined();
  });

  test("that cannot be written is reported once, and stops nothing", () => {
    const said: unknown[] = [];
    const gone = mkdtempSync(join(directory, "gone-"));
    const tail = new EventTail(gone, (error) => said.push(error), 1 << 20);
    rmSync(gone, { recursive: true });
    for (let i = 1; i < 5; i += 1) tail.append("e", i, frame("s", i));
    expect(said).toHaveLength(1);
  });
});
