import { closeSync, openSync, writeSync } from "node:fs";

/** A part of a corpus that a child emits at once. */
export interface Burst {
  readonly start: number;
  readonly end: number;
  readonly records: number;
}

/** Records in a file, as a child would write them. */
export interface Corpus {
  readonly file: string;
  readonly bursts: readonly Burst[];
  readonly records: number;
  readonly bytes: number;
}

/** Far below the limit from which deltas are merged: two bursts may wait for a reader. */
const burstBytes = 1024 * 1024;

/** Writes records to a file; each is one line of JSON. */
export function writeCorpus(file: string, records: Iterable<string>): Corpus {
  const descriptor = openSync(file, "wx");
  const bursts: Burst[] = [];
  let start = 0;
  let lines: Buffer[] = [];
  let size = 0;
  const flush = (): void => {
    if (size === 0) return;
    writeSync(descriptor, Buffer.concat(lines));
    bursts.push({ start, end: start + size, records: lines.length });
    start += size;
    lines = [];
    size = 0;
  };
  for (const record of records) {
    const line = Buffer.from(`${record}\n`);
    lines.push(line);
    size += line.length;
    if (size >= burstBytes) flush();
  }
  flush();
  closeSync(descriptor);
  return { file, bursts, records: bursts.reduce((sum, burst) => sum + burst.records, 0), bytes: start };
}

/** Deltas as pi streams them: some 344 bytes each. */
export function* deltas(count: number): Generator<string> {
  for (let i = 0; i < count; i += 1) {
    yield JSON.stringify({
      type: "message_update",
      usage: {
        input: 1_200 + i,
        output: i % 4_096,
        cacheRead: 0,
        cacheWrite: 0,
        cost: { input: 0.0012, output: 0.0031, total: 0.0043 },
      },
      assistantMessageEvent: {
        type: "text_delta",
        contentIndex: 0,
        delta: `${words.slice(i % 9, (i % 9) + 2 + (i % 3)).join(" ")} — `,
        partial: {
          role: "assistant",
          api: "openai-completions",
          provider: "bench",
          model: "model-1",
          timestamp: 1_700_000_000_000 + i,
        },
      },
    });
  }
}

/** Runs of an agent: deltas and occasionally a tool, a message, an end, with 5 to 60 KB of text each. */
export function* mixed(runs: number): Generator<string> {
  for (let run = 0; run < runs; run += 1) {
    yield '{"type":"agent_start"}';
    for (let part = 0; part < 4; part += 1) {
      yield* deltas(75);
      const text = prose(5_000 + (((run * 4 + part) * 7_919) % 55_000));
      const content = [{ type: "text", text }];
      if (part < 2)
        yield JSON.stringify({
          type: "tool_execution_end",
          toolCallId: `t${run}`,
          toolName: "read",
          result: { content },
          isError: false,
        });
      else
        yield JSON.stringify({
          type: part === 2 ? "message_end" : "turn_end",
          message: { role: "assistant", content, timestamp: 1_700_000_000_000 + run },
        });
    }
    yield JSON.stringify({
      type: "agent_end",
      messages: [{ role: "assistant", content: [{ type: "text", text: prose(20_000) }] }],
    });
    yield '{"type":"agent_settled","aborted":false}';
  }
}

/** The result of a tool with this many bytes of text. */
export function largeRecord(bytes: number): string {
  return JSON.stringify({
    type: "tool_execution_end",
    toolCallId: "t",
    toolName: "read",
    result: { content: [{ type: "text", text: prose(bytes) }] },
  });
}

const words =
  "the session wrote a “quoted” line to src/main.ts and then ran größere tests again without any error".split(" ");
const line = `${words.join(" ")}\n`;
const lineBytes = Buffer.byteLength(line);

/** Text that is mostly ASCII, with line ends to escape and some longer characters. */
function prose(bytes: number): string {
  return line.repeat(Math.max(1, Math.round(bytes / lineBytes)));
}
