import { PassThrough } from "node:stream";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { largeRecordBytes } from "../../../server/frames/large-record.ts";
import { nextTurn } from "../../../server/lib/slices.ts";
import { Intake } from "../../../server/pi/intake.ts";
import { patience } from "../../helpers/patience.ts";

interface Taken {
  readonly stdout: PassThrough;
  readonly intake: Intake;
  /** The first byte and the length of each record, in order. */
  readonly records: string[];
  readonly ended: Promise<void>;
}

function intakeOf(room: (bytes?: number) => Promise<void> | undefined = () => undefined): Taken {
  const stdout = new PassThrough();
  const records: string[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const note = (first: Buffer | undefined, bytes: number): void =>
    void records.push(`${first?.toString("latin1", 0, 1)}${bytes}`);
  const intake = new Intake({
    stdout,
    maxRecordBytes: 4 * largeRecordBytes,
    onRecord: (record) => note(record, record.length),
    onLarge: async (parts, bytes) => {
      await nextTurn();
      note(parts[0], bytes);
    },
    onOversize: (head, bytes) => note(head, bytes),
    room,
    onEnd: (rest) => {
      if (rest !== undefined) note(rest, rest.length);
      resolve();
    },
  });
  return { stdout, intake, records, ended };
}

const sizes = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 400 }) },
  fc.constantFrom(largeRecordBytes - 1, largeRecordBytes, largeRecordBytes + 70_000, 4 * largeRecordBytes + 1),
);

describe("Intake", () => {
  test("handles all records in their order, large or small, wherever the bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(sizes, { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1, maxLength: 6 }),
        async (lengths, cuts) => {
          const texts = lengths.map((length, i) => String.fromCharCode(97 + (i % 26)).repeat(length));
          const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(""));
          const { stdout, records, ended } = intakeOf(() => (cuts.length % 2 === 0 ? undefined : nextTurn()));
          for (let at = 0, i = 0; at < bytes.length; i += 1) {
            const end = at + (cuts[i % cuts.length] ?? 1);
            stdout.write(bytes.subarray(at, end));
            at = end;
          }
          stdout.end();
          await ended;
          expect(records).toEqual(texts.map((text) => `${text[0]}${text.length}`));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("reads nothing while a record waits, also if something resumes the stream, and shows signs of life", async () => {
    const gate = Promise.withResolvers<void>();
    const { stdout, intake, records, ended } = intakeOf(() => gate.promise);
    stdout.write("a\n");
    await vi.waitFor(() => expect(records).toEqual(["a1"]), patience);
    expect(stdout.isPaused()).toBe(true);
    // As Node does at the end of a process.
    stdout.resume();
    stdout.write("b\n");
    await vi.waitFor(() => expect(stdout.isPaused()).toBe(true), patience);
    expect(records).toEqual(["a1"]);
    expect(intake.heard).not.toBe(intake.heard);
    stdout.end("c\n");
    gate.resolve();
    await ended;
    expect(records).toEqual(["a1", "b1", "c1"]);
    await intake.idle();
    expect(intake.heard).toBe(intake.heard);
  });

  test("has room for each record before it is handled, also for those that waited", async () => {
    let granted = 1;
    const counts: number[] = [];
    const { stdout, records, ended } = intakeOf(() => {
      counts.push(granted - records.length);
      return nextTurn().then(() => {
        granted = records.length + 1;
      });
    });
    stdout.end("a\nb\nc\nd\n");
    await ended;
    // Each record used the room that was granted before it.
    expect([records, counts.slice(0, 4)]).toEqual([
      ["a1", "b1", "c1", "d1"],
      [0, 1, 0, 0],
    ]);
  });

  test("handles a large record only when there is room for its size", async () => {
    const gate = Promise.withResolvers<void>();
    const { stdout, records, ended } = intakeOf((bytes) => (bytes === largeRecordBytes ? gate.promise : undefined));
    stdout.write("a\n");
    stdout.write("x".repeat(largeRecordBytes / 2));
    stdout.end(`${"x".repeat(largeRecordBytes / 2)}\nb\n`);
    await vi.waitFor(() => expect(stdout.isPaused()).toBe(true), patience);
    await nextTurn();
    expect(records).toEqual(["a1"]);
    gate.resolve();
    await ended;
    expect(records).toEqual(["a1", `x${largeRecordBytes}`, "b1"]);
  });

  test("is idle only after the records in slices and those after them", async () => {
    const { stdout, intake, records } = intakeOf();
    stdout.write("x".repeat(largeRecordBytes / 2));
    stdout.write(`${"x".repeat(largeRecordBytes / 2)}\nb\n`);
    await vi.waitFor(() => expect(stdout.isPaused()).toBe(true), patience);
    await intake.idle();
    expect(records).toEqual([`x${largeRecordBytes}`, "b1"]);
  });
});
