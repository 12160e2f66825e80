import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startFakeStage } from "./fake-stage.ts";

/** Lines that are not records, of the kinds that parsers are known to disagree about. None may contain a LF. */
const unparsable: readonly (readonly [what: string, line: string | Buffer])[] = [
  ["nothing but a brace", "{"],
  ["a key without a value", '{"a"}'],
  ["a trailing comma", '{"type":"x",}'],
  ["two commas", '{"type":"x",,"b":1}'],
  ["single quotes", "{'type':'x'}"],
  ["an unquoted key", '{type:"x"}'],
  ["a comment", '{"type":"x"}/* c */'],
  ["two objects", '{"type":"x"}{"type":"y"}'],
  ["a tail", '{"type":"x"} x'],
  ["NaN", '{"type":"x","n":NaN}'],
  ["Infinity", '{"type":"x","n":-Infinity}'],
  ["a leading zero", '{"type":"x","n":012}'],
  ["a hexadecimal number", '{"type":"x","n":0x1}'],
  ["a number that ends with its point", '{"type":"x","n":1.}'],
  ["a plus sign", '{"type":"x","n":+1}'],
  ["a raw tab in a string", '{"type":"x\t"}'],
  ["a raw control character in a string", '{"type":"x\u0001"}'],
  ["an unknown escape", '{"type":"\\x00"}'],
  ["half a unicode escape", '{"type":"\\u00A"}'],
  ["a string without an end", '{"type":"x'],
  ["a byte order mark", '\ufeff{"type":"x"}'],
  ["NUL bytes", "\0\0\0"],
  ["a word", "null"],
  ["an array", '[{"type":"x"}]'],
  ["a number", "17"],
  ["a string", '"text"'],
  ["an object without a type", '{"a":1}'],
  ["a type that is not a string", '{"type":7}'],
  ["a CR in the middle", '{"type":"x"}\r{"type":"y"}'],
  ["brackets 5,000,000 deep", `{"type":"x","deep":${"[".repeat(5_000_000)}`],
  ["an update that is cut short", '{"type":"message_update","assistantMessageEvent":{"delta":"x"'],
  ["an update with a tail", '{"type":"message_update","a":1},"seq":1}'],
  ["bytes that are not UTF-8", Buffer.from('{"type":"x","s":"\xff\xfe"}', "latin1")],
  ["a surrogate as three bytes", Buffer.from('{"type":"x","s":"\xed\xa0\x80"}', "latin1")],
];

/** Unusual lines that are valid records. */
const odd: readonly (readonly [what: string, line: string])[] = [
  ["spaces around everything", ' { "type" : "odd_spaces" } '],
  ["a CR at its end", '{"type":"odd_cr"}\r'],
  ["line separators of Unicode", '{"type":"odd_lines","s":"\u2028\u2029\u0085"}'],
  ["a lone surrogate, escaped", '{"type":"odd_surrogate","s":"\\ud800"}'],
  ["a number beyond all", '{"type":"odd_number","n":1e400}'],
  ["the same key twice", '{"type":"x","type":"odd_twice"}'],
  ["a key named __proto__", '{"type":"odd_proto","__proto__":{"type":"agent_settled"}}'],
];

const marker = (n: number): string => JSON.stringify({ type: "marker", n });

test("each invalid line is reported once, its neighbours are forwarded, and the child is kept", async () => {
  await using stage = await startFakeStage();
  const { handle, witness } = await stage.session();
  const file = join(stage.root, "lines");
  const lines = unparsable.flatMap(([, line], n) => [Buffer.from(line), Buffer.from(marker(n))]);
  writeFileSync(file, Buffer.concat(lines.flatMap((line) => [line, Buffer.from("\n")])));
  for (let round = 1; round <= 3; round += 1) {
    await handle.runUntilSettled(`write ${file}`);
    await witness.until(
      () => witness.told.filter(({ params }) => params.event?.["type"] === "agent_settled").length === round,
    );
    const kinds: (readonly [string, unknown])[] = [];
    let waiting: unknown = "nothing";
    for (const { params } of witness.told) {
      if (params.event?.["type"] === "rpcd_diagnostic")
        waiting = waiting === "nothing" ? params.event["kind"] : "twice";
      if (params.event?.["type"] !== "marker") continue;
      kinds.push([unparsable[Number(params.event["n"])]?.[0] ?? "", waiting]);
      waiting = "nothing";
    }
    const missing = kinds.slice(-unparsable.length).filter(([, kind]) => kind === "nothing" || kind === "twice");
    expect(missing).toEqual([]);
    expect(kinds).toHaveLength(unparsable.length * round);
  }
  expect(await handle.get()).toMatchObject({ state: "idle", generation: 1 });
});

test("a record that is only unusual is forwarded as pi wrote it", async () => {
  await using stage = await startFakeStage();
  const { handle, witness } = await stage.session();
  const file = join(stage.root, "lines");
  writeFileSync(file, odd.map(([, line]) => `${line}\n`).join(""));
  await handle.runUntilSettled(`write ${file}`);
  await witness.event("odd_proto");
  const types = witness.told
    .map(({ params }) => String(params.event?.["type"]))
    .filter((type) => type.startsWith("odd_"));
  expect(types).toEqual(odd.map(([, line]) => /odd_\w+/.exec(line)?.[0]));
  expect(witness.told.some(({ params }) => params.event?.["type"] === "rpcd_diagnostic")).toBe(false);
  expect((await handle.get()).state).toBe("idle");
});

test("unexpected and repeated answers are reported and do no harm", async () => {
  await using stage = await startFakeStage();
  const { handle, witness } = await stage.session();
  const file = join(stage.root, "lines");
  const answer = (id: unknown): string =>
    `${JSON.stringify({ type: "response", command: "prompt", success: true, ...(id === undefined ? {} : { id }) })}\n`;
  writeFileSync(file, `${["nobody", "nobody", undefined, 7, {}].map(answer).join("")}${marker(0)}\n`);
  for (let round = 0; round < 3; round += 1) await handle.runUntilSettled(`write ${file}`);
  await witness.until(
    () => witness.told.filter(({ params }) => params.event?.["type"] === "agent_settled").length === 3,
  );
  const told = witness.told.filter(({ params }) => params.event?.["type"] === "rpcd_diagnostic");
  expect(told).toHaveLength(15);
  expect(await handle.get()).toMatchObject({ state: "idle", generation: 1 });
});

test("an incomplete last line of an ending child is reported with its exit", async () => {
  await using stage = await startFakeStage();
  const file = join(stage.root, "lines");
  writeFileSync(file, `${marker(1)}\n{"type":"half`);
  const { handle, witness } = await stage.session();
  for (let round = 1; round <= 3; round += 1) {
    await handle.prompt(`leave ${file}`);
    const cutOff = () => witness.told.filter(({ params }) => params.event?.["kind"] === "cut_off");
    await witness.until(() => cutOff().length === round);
    const told = cutOff().at(-1)?.params;
    expect(told?.event).toMatchObject({ bytes: 13, excerpt: '{"type":"half' });
    const session = await witness.state("crashed", told?.seq);
    expect(session).toMatchObject({ exit: { code: 7, signal: null, expected: false } });
  }
});
