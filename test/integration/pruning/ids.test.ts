import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call, status, thinking } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { push, startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "../optimisation/model.ts";
import { degradedOf, named, prompt } from "./visible.ts";

const tag = (id: string): string => `<dcp-message-id>${id}</dcp-message-id>`;
const idsRecords = (pi: Parameters<typeof entriesOf>[0]) =>
  entriesOf(pi).filter(({ customType }) => customType === "pi-rpcd.ids");

test("a message keeps its id across requests, a kill, a branch change, a compaction and a fork (R002-2)", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    pruning: { enabled: true },
    after: ["emitting", "shaping"],
    settings: { compaction: { enabled: false, keepRecentTokens: 10 } },
  });
  const shown = () => named(provider.requests.at(-1));
  provider.add(answer(call("emit", { text: "first output" })), answer("one"));
  await prompt(pi, "first prompt");
  provider.add(answer("two"));
  await prompt(pi, "second prompt");
  const first = { m001: "first prompt", m002: "first output" };
  expect(shown()).toEqual({ ...first, m003: "second prompt" });

  await pi.revive();
  provider.add(answer("three"));
  await prompt(pi, "third prompt");
  expect(shown()).toEqual({ ...first, m003: "second prompt", m004: "third prompt" });
  // Each shown id is written once.
  expect(idsRecords(pi)).toHaveLength(3);

  // On another branch no message gets an id that was used on the previous one.
  const turned = entriesOf(pi).find(({ message }) => message?.role === "toolResult");
  provider.add(answer("A summary of the branch."));
  await pi.rpc({ type: "prompt", message: `/shape-go ${turned?.id}` });
  provider.add(answer("four"));
  await prompt(pi, "fourth prompt");
  expect(shown()).toEqual({ ...first, m005: "fourth prompt" });

  // A compaction removes messages, but changes no id of those that stay. Summaries have none.
  provider.add(answer(call("emit", { text: "second output" })), answer("five"));
  await prompt(pi, "fifth prompt");
  provider.add(answer("A summary of it all."));
  await pi.rpc({ type: "compact" });
  provider.add(answer("six"));
  await prompt(pi, "sixth prompt");
  expect(shown()).toMatchObject({ m008: "sixth prompt" });
  expect(Object.keys(shown())).not.toContain("m001");
  expect(provider.requests.at(-1)?.hasText("A summary of it all.")).toBe(true);

  const before = shown();
  const last = entriesOf(pi).findLast(({ message }) => message?.role === "user");
  await pi.rpc({ type: "fork", entryId: last?.id });
  provider.add(answer("seven"));
  await prompt(pi, "seventh prompt");
  const { m008: _left, ...kept } = before;
  expect(Object.entries(shown()).filter(([, text]) => text !== "seventh prompt")).toEqual(Object.entries(kept));
  expect(degradedOf(pi)).toEqual([]);
});

test("commands, pushes and messages of the same millisecond have tags; messages hidden from the model have none (R002-3, R002-4)", async () => {
  await using provider = await startProvider();
  const timestamp = 1_700_000_000_000;
  const entries = ["a", "b", "c"].map((text, at) => ({
    type: "message",
    id: `0000000${at}`,
    parentId: at === 0 ? null : `0000000${at - 1}`,
    timestamp: new Date(timestamp).toISOString(),
    message: { role: "user", content: [{ type: "text", text }], timestamp },
  }));
  await using pi = await startPi({ provider, pruning: { enabled: true }, entries });
  await pi.rpc({ type: "bash", command: "echo shown; exit 3" });
  await pi.rpc({ type: "bash", command: "echo hidden", excludeFromContext: true });
  provider.add(answer("I see."));
  await pi.hold(push("d1", "ping"));
  await pi.settled();
  expect(named(provider.requests.at(-1))).toEqual({
    m001: "a",
    m002: "b",
    m003: "c",
    m004: "Ran `echo shown; exit 3`\n```\nshown\n\n```\n\nCommand exited with code 3",
    m005: "ping",
  });
  expect(provider.requests.at(-1)?.hasText("hidden")).toBe(false);
  // The push is found in the payload with its tag.
  expect(pi.receiptsOf("d1").join()).toContain("confirmed");
});

test("tags that the model repeats are removed before a file is written, and others stay (R002-6)", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, pruning: { enabled: true } });
  const model = new Model(pi, provider);
  const content = `line\n${tag("m001")}\nsecond ${tag("m777")}\n`;
  provider.add(
    answer(
      thinking("I think."),
      `As m001 says. ${tag("m001")}`,
      call("write", { path: join(pi.cwd, "written"), content }),
    ),
    answer(call("edit", { path: join(pi.cwd, "written"), edits: [{ oldText: tag("m777"), newText: tag("m002") }] })),
    answer(`Done.\n${tag("m002")}`),
  );
  await prompt(pi, "Write.");
  expect(readFileSync(join(pi.cwd, "written"), "utf8")).toBe("line\nsecond \n");
  const said = entriesOf(pi).filter(({ message }) => message?.role === "assistant");
  expect(JSON.stringify(said)).not.toContain(tag("m001"));
  expect(JSON.stringify(said)).toContain("As m001 says. ");
  const [request] = (await model.run()).slice(-1);
  expect(request?.messages.filter(({ role }) => role === "assistant").flatMap(({ texts }) => texts)).toEqual([
    "As m001 says. ",
    "Done.\n",
  ]);
});

test("with tagAssistant answers have tags between their text and their calls, and the service accepts them (R002-4)", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    api: "scripted-anthropic",
    models: [{ id: "model-1", reasoning: true }],
    pruning: { enabled: true, tagAssistant: true },
    after: ["emitting"],
  });
  provider.add(
    answer(thinking("First I think."), "Then I speak.", call("emit", { text: "out" })),
    answer(thinking("Again."), call("emit", { text: "out" })),
    status(400),
  );
  await prompt(pi, "Go on.");
  provider.add(answer("Done."));
  await prompt(pi, "And now?");
  const request = provider.requests.at(-1);
  expect(request?.violations).toEqual([]);
  const answers = (
    (request?.body["messages"] ?? []) as { role: string; content: { type: string; text?: string }[] }[]
  ).filter(({ role }) => role === "assistant");
  expect(answers.map(({ content }) => content.map(({ type, text }) => text ?? type))).toEqual([
    ["thinking", "Then I speak.", tag("m002"), "tool_use"],
    ["thinking", tag("m004"), "tool_use"],
  ]);
});
