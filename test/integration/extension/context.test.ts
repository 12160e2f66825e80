import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import type { PreparedContext } from "../../../context/document/built.ts";
import type { ContextItem, ContextTarget } from "../../../context/document/document.ts";
import { finishContext } from "../../../context/document/finish.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import type { HelperContext } from "../../../protocol/link-context.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();
const ephemeral = { isEphemeral: true, after: ["session-commands", "own-compaction"] };

const target: ContextTarget = {
  api: "openai-completions",
  provider: "scripted",
  id: "model-1",
  contextWindow: 200_000,
  takesImages: false,
};

const text = (content: string): ContextItem["content"] => [{ type: "text", text: content }];
const items: readonly ContextItem[] = [
  { role: "system", content: text("Answer in rhymes."), timestamp: 1 },
  { role: "user", content: text("What is in the file?"), timestamp: 2 },
  {
    role: "assistant",
    content: text("I look."),
    toolCalls: [{ id: "c1", name: "look_up", arguments: { name: "file" } }],
    timestamp: 3,
  },
  { role: "toolResult", content: text("A poem."), toolCallId: "c1", toolName: "look_up", timestamp: 4 },
  { role: "assistant", content: text("A poem is in it."), timestamp: 5 },
  { role: "event", eventType: "git.push", content: text("3 commits"), meta: { ref: "main" }, timestamp: 6 },
];
/** The part of it that is in a request, without the instructions. */
const past = [
  ["user", "What is in the file?"],
  ["assistant", "I look."],
  ["tool", "A poem."],
  ["assistant", "A poem is in it."],
  ["user", "Event: git.push\n3 commits"],
];

function prepared(given: readonly ContextItem[] = items): PreparedContext {
  const repairs = { listed: [], counts: {} };
  return finishContext({ items: given, nodes: given.length, repairs }, { budget: null }, target);
}

function frame(given: readonly ContextItem[] = items, fields: Partial<HelperContext> = {}): Record<string, unknown> {
  const { hash, messages, instructions } = prepared(given);
  const context: HelperContext = {
    hash,
    messages,
    ...(instructions === undefined ? {} : { instructions }),
    budget: null,
    afterCompaction: "trim",
    ...fields,
  };
  return { kind: "context", context };
}

/** The conversation of a request: roles and texts. */
function conversation(request: LogEntry | undefined): (readonly [string, string])[] {
  return (request?.messages ?? [])
    .filter(({ role }) => role !== "system")
    .map(({ role, texts, toolResults }) => [role, [...texts, ...toolResults.map((result) => result.text)].join("\n")]);
}

function prompts(request: LogEntry | undefined): readonly string[] {
  return (request?.messages ?? []).filter(({ role }) => role === "system").map(({ texts }) => texts.join("\n"));
}

const section = "<prior_instructions>\nAnswer in rhymes.\n</prior_instructions>";

function sha256(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}

async function prompt(pi: Pi, message: string, nth: number): Promise<void> {
  await pi.rpc({ type: "prompt", message });
  await pi.settled(nth);
}

test("a process context is identical in every request, through runs of all kinds, reloads and a fork", async () => {
  await using lent = await shared.use(ephemeral);
  const { pi, provider } = lent;
  const { path, reply } = await pi.sendFile(frame());
  expect(reply).toEqual({ hash: prepared().hash, messages: 5 });
  expect(existsSync(path)).toBe(false);
  await pi.hold(push("d1", "Something has happened."));
  await pi.settled(1);
  expect(conversation(provider.requests[0])).toEqual([...past, ["user", "Something has happened."]]);
  provider.add(answer(call("bash", { command: "true" })));
  await prompt(pi, "Go on.", 2);
  await pi.hold(push("d2", "More has happened."));
  await pi.settled(3);
  await pi.rpc({ type: "prompt", message: "/test-reload" });
  await pi.rpc({ type: "prompt", message: "/test-reload" });
  await pi.send(frame());
  await prompt(pi, "And then?", 4);
  const requests = [...provider.requests];
  expect(requests).toHaveLength(5);
  for (const [index, request] of requests.slice(1).entries()) {
    const before = requests[index]?.body["messages"] as readonly unknown[];
    const common = (request.body["messages"] as readonly unknown[]).slice(0, before.length);
    expect(sha256(common)).toBe(sha256(before));
  }
  for (const request of requests) {
    expect(conversation(request).slice(0, past.length)).toEqual(past);
    expect(request.countText("What is in the file?")).toBe(1);
    expect(prompts(request)).toHaveLength(1);
    expect(request.countText("prior_instructions>")).toBe(2);
    expect(prompts(request)[0]?.endsWith(section)).toBe(true);
  }
  const { data } = await pi.rpc({ type: "get_fork_messages" });
  const second = (data as { messages: { entryId: string }[] }).messages.at(-1);
  await pi.rpc({ type: "fork", entryId: second?.entryId });
  await prompt(pi, "In a fork.", 5);
  expect(conversation(provider.requests.at(-1)).slice(0, past.length)).toEqual(past);
  expect(provider.requests.at(-1)?.countText("What is in the file?")).toBe(1);
  await pi.rpc({ type: "new_session" });
  await prompt(pi, "Anew.", 6);
  expect(conversation(provider.requests.at(-1))).toEqual([["user", "Anew."]]);
  expect(prompts(provider.requests.at(-1))[0]).not.toContain("prior_instructions");
  expect(pi.frames("fault")).toEqual([]);
});

test("a past that contains the marks and the words of pushes does not affect receipts", async () => {
  await using lent = await shared.use(ephemeral);
  const { pi, provider } = lent;
  const { messages } = prepared();
  const marked = {
    role: "custom",
    customType: "test",
    content: "Hello.",
    display: true,
    details: { "pi-rpcd": { deliveryId: "d1" }, own: 1 },
    timestamp: 7,
  } as const;
  await pi.send(frame(items, { messages: [...messages, marked, { ...marked, content: "Other words." }] }));
  await prompt(pi, "Go on.", 1);
  expect(provider.requests[0]?.countText("Hello.")).toBe(1);
  expect(pi.frames("prepared")).toEqual([]);
  expect(pi.frames("inserted")).toEqual([]);
  await pi.hold(push("d1", "Hello."));
  await pi.settled(2);
  expect(provider.requests[1]?.countText("Hello.")).toBe(2);
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
});

/** Spans of a question and an answer of some hundred tokens. */
const longStory: readonly ContextItem[] = Array.from({ length: 12 }, (_, n): ContextItem[] => [
  { role: "user", content: text(`Question ${n}. ${"Why is that so? ".repeat(40)}`), timestamp: 10 * n },
  {
    role: "assistant",
    content: [],
    toolCalls: [{ id: `c${n}`, name: "look_up", arguments: {} }],
    timestamp: 10 * n + 1,
  },
  {
    role: "toolResult",
    content: text("Words. ".repeat(60)),
    toolCallId: `c${n}`,
    toolName: "look_up",
    timestamp: 10 * n + 2,
  },
  { role: "assistant", content: text(`Answer ${n}.`), timestamp: 10 * n + 3 },
]).flat();
const question = /^Question (\d+)\./;
const compacting = {
  ...ephemeral,
  settings: { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 } },
};

/** The questions of the past in a request. */
function questions(request: LogEntry | undefined): number[] {
  return conversation(request)
    .flatMap(([, words]) => question.exec(words)?.[1] ?? [])
    .map(Number);
}

test.for(["trim", "keep", "drop"] as const)(
  "the policy %s applies after a compaction by pi and one by an extension",
  async (afterCompaction) => {
    await using lent = await shared.use(compacting);
    const { pi, provider } = lent;
    const { tokens } = prepared(longStory);
    await pi.send(frame(longStory, { afterCompaction, budget: tokens.structured }));
    await prompt(pi, "A long story. ".repeat(100), 1);
    await prompt(pi, "Another one. ".repeat(100), 2);
    expect(questions(provider.requests[1])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    await pi.rpc({ type: "compact" });
    await prompt(pi, "And now compact yourself.", 3);
    const once = provider.requests.at(-1);
    await prompt(pi, "And then?", 4);
    const twice = provider.requests.at(-1);
    expect(twice?.hasText("A summary of its own.")).toBe(true);
    expect(prompts(twice)).toEqual(prompts(once));
    for (const [request, share] of [
      [once, 2],
      [twice, 4],
    ] as const) {
      expect(request?.violations).toEqual([]);
      const left = questions(request);
      if (afterCompaction === "keep") expect(left).toHaveLength(12);
      else if (afterCompaction === "drop") expect(left).toEqual([]);
      else {
        expect(left.at(-1)).toBe(11);
        expect(left.length).toBeLessThanOrEqual(12 / share);
        expect(left.length).toBeGreaterThanOrEqual(12 / share - 2);
        const notice = conversation(request)[0]?.[1];
        expect(notice).toMatch(`Event: context.trimmed\n${4 * (12 - left.length)} earlier messages`);
      }
    }
    expect(pi.frames("fault")).toEqual([]);
  },
);

/** The entries of a session file that give pi the same. */
function entriesOf(context: PreparedContext): readonly object[] {
  return [...sessionEntries(context, { id: randomUUID(), timestamp: 1_000, cwd: "/" })].slice(1);
}

const flagged = (supports: boolean): { readonly id: string; readonly compat: object } => ({
  id: "model-1",
  compat: { supportsMidConvoSystemMessages: supports, supportsDeveloperRole: false },
});

test.for([
  ["scripted", "no system messages between others", false],
  ["scripted", "system messages between others", true],
  ["scripted-anthropic", "system messages between others", true],
] as const)(
  "%s, with %s: a session file written from a context leads to the same requests as the context over the link, the prompt first",
  async ([api, , supports]) => {
    const models = [flagged(supports)];
    const requests: LogEntry[] = [];
    for (const options of [{ isEphemeral: true }, { entries: entriesOf(prepared()) }]) {
      await using lent = await shared.use({ ...options, api, models });
      const { pi, provider } = lent;
      if ("isEphemeral" in options) await pi.send(frame());
      provider.add(answer(call("bash", { command: "true" })));
      await prompt(pi, "Go on.", 1);
      await pi.hold(push("d1", "Something has happened."));
      await pi.settled(2);
      expect(pi.receiptsOf("d1").at(-1)).toBe("answered");
      expect(pi.frames("fault")).toEqual([]);
      requests.push(...provider.requests);
    }
    const [first, second] = [requests.slice(0, 3), requests.slice(3)];
    expect(second.map(conversation)).toEqual(first.map(conversation));
    for (const request of requests) {
      expect(request.messages[0]?.role).toBe("system");
      expect(prompts(request)).toHaveLength(1);
      expect(prompts(request)[0]?.endsWith(section)).toBe(true);
      expect(prompts(request)[0]).toBe(prompts(request.n <= (first.at(-1)?.n ?? 0) ? first[0] : second[0])[0]);
      expect(request.toolNames).toEqual(requests[0]?.toolNames);
      expect(request.toolNames).toContain("bash");
    }
  },
);

test.for([
  ["before", { before: ["forced-prompt"] }],
  ["after", { after: ["forced-prompt"] }],
] as const)(
  "a prompt forced by an extension loaded %s the helper keeps the instructions, once",
  async ([, options]) => {
    await using lent = await shared.use({ isEphemeral: true, ...options });
    const { pi, provider } = lent;
    await pi.send(frame());
    await pi.hold(push("d1", "Something has happened."));
    await pi.settled(1);
    provider.add(answer(call("bash", { command: "true" })));
    await prompt(pi, "Go on.", 2);
    await pi.hold(push("d2", "More has happened."));
    await pi.settled(3);
    await prompt(pi, "And then?", 4);
    expect(provider.requests).toHaveLength(5);
    for (const request of provider.requests) expect(request.countText(section, { roles: ["system"] })).toBe(1);
    expect(provider.requests.map((request) => request.hasText("Speak like a pirate."))).toContain(true);
    expect(pi.frames("fault")).toEqual([]);
  },
);

test("instructions of a session file are in the prompt again in the next pi, in a reloaded one and in a fork", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, entries: entriesOf(prepared()), after: ["session-commands"] });
  await prompt(pi, "Go on.", 1);
  await pi.restart();
  await pi.hold(push("d1", "Something has happened."));
  await pi.settled(1);
  await pi.rpc({ type: "prompt", message: "/test-reload" });
  await prompt(pi, "And then?", 2);
  const { data } = await pi.rpc({ type: "get_fork_messages" });
  const last = (data as { messages: { entryId: string }[] }).messages.at(-1);
  await pi.rpc({ type: "fork", entryId: last?.entryId });
  await prompt(pi, "In a fork.", 3);
  expect(provider.requests).toHaveLength(4);
  for (const request of provider.requests) {
    expect(request.countText(section)).toBe(1);
    expect(prompts(request)).toHaveLength(1);
    expect(conversation(request).slice(0, past.length)).toEqual(past);
  }
  await pi.rpc({ type: "new_session" });
  await prompt(pi, "Anew.", 4);
  expect(provider.requests.at(-1)?.hasText("prior_instructions")).toBe(false);
});

test("a run that an extension starts at the session's start waits for the promised context", async () => {
  await using provider = await startProvider();
  const after = ["runs-at-once"];
  await using pi = await startPi({ provider, isEphemeral: true, after, contextWithinMs: 3_600_000 });
  await pi.event("agent_start");
  expect(await pi.send({ kind: "ping" })).toEqual({ running: true, held: [] });
  expect(provider.requests).toEqual([]);
  await pi.send(frame());
  await pi.settled(1);
  expect(provider.requests.map(conversation)).toEqual([[...past, ["user", "I am the first."]]]);
  expect(pi.frames("fault")).toEqual([]);
});
