import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { startPi } from "../extension/driver.ts";
import { degradedOf, entriesOf, Model } from "./model.ts";

const numbers = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, at) => `${from + at}\n`).join("");

test("cut text is recalled byte for byte, after a crash, a compaction, a fork and the loss of the tool's own log", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    optimisation: { toolResults: { enabled: true } },
    after: ["emitting"],
    settings: { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 } },
  });
  const model = new Model(pi, provider);

  const [cut = ""] = await model.calls(call("bash", { command: "seq 1 30000" }));
  expect(cut).toMatch(/^1\n2\n3\n/u);
  expect(cut).toContain("[… cut: 168894 characters, 30000 lines in all; recall r001 …]\n");
  expect(cut).toContain("\n29999\n30000\n");
  expect(cut.length).toBeLessThan(500 + 1_000 + 160);
  const log = /Full output: (.*)\]/u.exec(cut)?.[1] ?? "";
  expect(readFileSync(log, "utf8")).toBe(numbers(1, 30_000));
  rmSync(log);

  const recallAll = async (): Promise<void> => {
    const pages = await model.calls(
      call("recall", { id: "r001" }),
      call("recall", { id: "[R1]", offset: 2_001, limit: 3 }),
      call("recall", { id: "r001", offset: 29_999 }),
      call("recall", { id: "r002" }),
      call("recall", { id: "b1" }),
      call("recall", { id: "r001", offset: 30_001 }),
    );
    expect(pages).toEqual([
      `${numbers(1, 2_000)}\n[r001: lines 1–2000 of 30000; offset 2001 gives more]`,
      "2001\n2002\n2003\n\n[r001: lines 2001–2003 of 30000; offset 2004 gives more]",
      "29999\n30000\n\n[r001: lines 29999–30000 of 30000]",
      "r002 is not available here.",
      "b1 is not available here.",
      "r001 has no line 30001: it has 30000.",
    ]);
  };
  await recallAll();
  await pi.revive();
  provider.add(answer("A summary."));
  await pi.rpc({ type: "compact" });
  await recallAll();

  // The forked session knows the number, and assigns the next one.
  const prompt = entriesOf(pi).findLast(({ message }) => message?.role === "user");
  await pi.rpc({ type: "fork", entryId: prompt?.id });
  await recallAll();
  const [other, more] = await model.calls(
    call("emit", { text: "ünder 𝒳\n", times: 3_000 }),
    call("recall", { id: "r002", limit: 1 }),
  );
  expect(other).toContain("recall r002 …]");
  expect(more).toMatch(/^ünder 𝒳\n/u);
});

test("cut text is recalled even if another extension replaces the results' details, and its number is assigned once", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    optimisation: { toolResults: { enabled: true } },
    after: ["emitting", "own-details"],
  });
  const model = new Model(pi, provider);
  const long = { text: "first output\n", times: 3_000 };
  const [cut, now, next] = await model.calls(
    call("emit", long),
    call("recall", { id: "r001", limit: 1 }),
    call("emit", { text: "second\n", times: 3_000 }),
  );
  expect(cut).toContain("recall r001 …]");
  expect(now).toMatch(/^first output\n/u);
  expect(next).toContain("recall r002 …]");
  const results = entriesOf(pi).filter(({ message }) => message?.role === "toolResult");
  expect(results.map(({ message }) => message?.details)).toEqual([{ theirs: 1 }, { theirs: 1 }, { theirs: 1 }]);
  const recorded = entriesOf(pi).filter(({ customType }) => customType === "pi-rpcd.recall");
  expect(recorded.map(({ data }) => data)).toMatchObject([
    { records: [{ id: "r001", tool: "emit", resultId: results[0]?.id, bytes: 39_000 }] },
    { records: [{ id: "r002", tool: "emit", resultId: results[2]?.id }] },
  ]);

  // In an aborted run, in the same turn as the cut.
  provider.add(answer(call("emit", { text: "third\n", times: 3_000 }), call("bash", { command: "sleep 100" })));
  pi.log.forget("hello");
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.event("tool_execution_end");
  await pi.rpc({ type: "abort" });
  await pi.settled();
  expect(await model.recall("r003", { limit: 1 })).toMatch(/^third\n/u);

  await pi.revive();
  expect(await model.recall("r003", { limit: 1 })).toMatch(/^third\n/u);
  const whole = long.text.repeat(1_000);
  expect(await model.recall("r001", { limit: 1_000 })).toContain(whole);
  expect((await model.calls(call("emit", { text: "fourth\n", times: 3_000 })))[0]).toContain("recall r004 …]");
});

test("results are cut once, where they are stored, and some are never cut", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    optimisation: { toolResults: { enabled: true, tools: { read: { keep: "none" } } } },
    after: ["emitting"],
  });
  const model = new Model(pi, provider);
  writeFileSync(join(pi.cwd, "long.txt"), numbers(1, 1_800));

  const long = { text: "0123456789abcde\n", times: 2_000 };
  const [, read, failed, pictured] = await model.calls(
    call("emit", { ...long, structured: true, details: { theirs: 1 } }),
    call("read", { path: "long.txt" }),
    call("bash", { command: "seq 1 30000; echo the reason; exit 3" }),
    call("emit", { ...long, image: true }),
  );
  expect(read).toContain("\n1799\n1800");
  // A failing test run keeps its last lines.
  expect(failed).toMatch(/^\[… cut: 168905 characters, 30001 lines in all; recall r002 …\]\n.*the reason\n.*code 3$/su);
  expect(failed?.length).toBeLessThan(2_000 + 161);
  expect(pictured).toContain("recall r003 …]");
  const [again] = await model.calls(call("recall", { id: "r003" }));
  expect(again).toContain(long.text.repeat(2_000));

  const results = entriesOf(pi).flatMap(({ message }) => (message?.role === "toolResult" ? [message] : []));
  expect(results[0]?.details).toMatchObject({ theirs: 1, "pi-rpcd.recall": { id: "r001", tool: "emit" } });
  const kinds = results.map(({ content }) => content.map(({ type }) => type).join());
  expect(kinds).toEqual(["text", "text", "text", "text,image", "text,image"]);
  const ended = await pi.rpc({ type: "get_entries" });
  expect(JSON.stringify(ended).length).toBeLessThan(3 * 32_000);
  expect(statSync(pi.spillDirectory).mode & 0o777).toBe(0o700);
  const files = readdirSync(pi.spillDirectory);
  expect(files).toHaveLength(2);
  for (const file of files) expect(statSync(join(pi.spillDirectory, file)).mode & 0o777).toBe(0o600);

  // Deleted texts are not available, and neither are changed ones.
  for (const file of files) rmSync(join(pi.spillDirectory, file));
  expect(await model.recall("r001")).toBe("r001 is not available here.");
  for (const file of files) writeFileSync(join(pi.spillDirectory, file), long.text.repeat(2_000).replace("0", "X"));
  expect(await model.recall("r001")).toBe("r001 is not available here.");
  rmSync(pi.spillDirectory, { recursive: true });

  // A full disk: pi's own limits apply.
  writeFileSync(pi.spillDirectory, "");
  expect(degradedOf(pi)).toEqual([]);
  const [whole] = await model.calls(call("emit", { text: "another\n", times: 4_000 }));
  expect(whole).toBe("another\n".repeat(4_000));
  expect(degradedOf(pi).join()).toMatch(/^toolResults: The original of a result could not be kept: ENOTDIR/u);
  rmSync(pi.spillDirectory);
  mkdirSync(pi.spillDirectory);
  expect((await model.calls(call("emit", { text: "another\n", times: 4_000 })))[0]).toContain("[… cut:");
});

test("a long file is cut when it is read, unless the model asked for its lines, loads a skill, or edits the file", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, optimisation: { toolResults: { enabled: true } } });
  const model = new Model(pi, provider);
  const text = `${numbers(1, 1_500).replaceAll("\n", " ünder 𝒳\n")}the end`;
  mkdirSync(join(pi.cwd, "skill"));
  for (const name of ["read", "edited", "written", "failed", "lines", "together", join("skill", "SKILL.md")])
    writeFileSync(join(pi.cwd, name), text);

  const edit = (path: string, oldText = "the end") => call("edit", { path, edits: [{ oldText, newText: "the end." }] });
  const [cut = "", again, lines, limited, skill] = await model.calls(
    call("read", { path: "read" }),
    call("read", { path: "@./read" }),
    call("read", { path: "lines", offset: 1 }),
    call("read", { path: "lines", limit: 1_600 }),
    call("read", { path: "skill/SKILL.md" }),
  );
  expect(cut).toMatch(/^1 ünder 𝒳\n2 ünder 𝒳\n.*recall r001 …\]\n.*1500 ünder 𝒳\nthe end$/su);
  expect(cut.length).toBeGreaterThan(9_900);
  expect(cut.length).toBeLessThan(8_000 + 2_000 + 161);
  expect(await model.recall("r001")).toBe(text);
  expect(again).toContain("recall r002 …]");
  expect([lines, limited, skill]).toEqual([text, text, text]);

  // pi changes the model's path, so the absolute one is the same file.
  const [, edited, , written, , failed] = await model.calls(
    edit("edited"),
    call("read", { path: join(pi.cwd, "edited") }),
    call("write", { path: join(pi.cwd, "written"), content: text }),
    call("read", { path: "./skill/../written" }),
    edit("failed", "not there"),
    call("read", { path: "failed" }),
  );
  expect([edited, written, failed]).toEqual([`${text}.`, text, text]);

  provider.add(
    answer(call("read", { path: "together" }), edit("together", "not there"), call("read", { path: "read" })),
  );
  await model.calls();
  const texts = entriesOf(pi).flatMap(({ message }) =>
    message?.role === "toolResult" ? [message.content[0]?.text ?? ""] : [],
  );
  const [together = "", , other] = texts.slice(-3);
  expect(together).toBe(text);
  expect(other).toContain("recall r003 …]");
});

test("at the limit of a session nothing more is cut, and nothing is evicted", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    optimisation: { toolResults: { enabled: true, spillMaxMiB: 0.05 } },
    after: ["emitting"],
  });
  const model = new Model(pi, provider);
  const first = `${"1".repeat(99)}\n`;
  const [cut, whole, equal] = await model.calls(
    call("emit", { text: first, times: 400 }),
    call("emit", { text: `${"2".repeat(99)}\n`, times: 400 }),
    call("emit", { text: first, times: 400 }),
  );
  expect(cut).toContain("recall r001 …]");
  expect(whole).toHaveLength(40_000);
  // The same text takes no additional space.
  expect(equal).toContain("recall r002 …]");
  expect(degradedOf(pi)).toEqual(["toolResults: The session has no room left for the originals of what would be cut."]);
  expect(await model.recall("r001", { limit: 1 })).toMatch(/^1{99}\n/u);
  // Another session in the same pi.
  await pi.replaceSession();
  expect(await model.recall("r001")).toBe("r001 is not available here.");
});

test("without the recall tool nothing is cut, and another extension's tool of that name is kept", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    optimisation: { toolResults: { enabled: true } },
    before: ["own-recall"],
    after: ["emitting"],
  });
  const model = new Model(pi, provider);
  const [whole, theirs] = await model.calls(
    call("emit", { text: "a line\n", times: 4_000 }),
    call("recall", { id: "r001" }),
  );
  expect(whole).toHaveLength(28_000);
  expect(theirs).toBe("Theirs.");
  expect(degradedOf(pi)).toEqual(["toolResults: Another extension has a tool named recall."]);
});
