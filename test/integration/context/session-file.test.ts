import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PreparedContext } from "../../../context/document/built.ts";
import type { ContextItem, ContextTarget } from "../../../context/document/document.ts";
import { finishContext } from "../../../context/document/finish.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import type { ScriptedName } from "../../../provider/agent-dir.ts";
import type { RequestMessage } from "../../../provider/messages.ts";
import type { Pi } from "../extension/driver.ts";
import { sharePi } from "../extension/shared-pi.ts";

// How pi reads a session file that was written from a context.

const shared = sharePi();
const models = [{ id: "model-1", input: ["text", "image"] }];

const apis: Readonly<Record<"scripted" | "scripted-responses" | "scripted-anthropic", string>> = {
  scripted: "openai-completions",
  "scripted-responses": "openai-responses",
  "scripted-anthropic": "anthropic-messages",
};
const services = Object.keys(apis) as readonly (keyof typeof apis)[];

function targetOf(provider: keyof typeof apis): ContextTarget {
  return { api: apis[provider], provider, id: "model-1", takesImages: true };
}

/** A white square of one pixel. */
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

function text(content: string): ContextItem["content"] {
  return [{ type: "text", text: content }];
}

function prepare(
  items: readonly ContextItem[],
  provider: ScriptedName,
  facts: Partial<ContextTarget> = {},
): PreparedContext {
  const target = { ...targetOf(provider as keyof typeof apis), ...facts };
  return finishContext({ items, nodes: items.length, repairs: { listed: [], counts: {} } }, {}, target);
}

let files = 0;

async function open(pi: Pi, prepared: PreparedContext): Promise<void> {
  const id = `context-${files++}`;
  const file = join(pi.directory, "sessions", `${id}.jsonl`);
  const lines = [...sessionEntries(prepared, { id, timestamp: 1_795_187_000_000, cwd: pi.cwd })];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
  await pi.replaceSession(file);
}

async function prompt(pi: Pi, message: string): Promise<void> {
  await pi.rpc({ type: "prompt", message });
  await pi.settled();
}

/** A message in a few words. */
function told({ role, texts, thinking, toolCalls, toolResults, imageCount }: RequestMessage): string {
  return [
    role,
    ...thinking.map((thought) => `(${thought})`),
    ...texts,
    ...toolCalls.map(({ id, name, arguments: args }) => `${name}#${id} ${JSON.stringify(args)}`),
    ...toolResults.map(({ callId, text: result, isError }) => `${callId}=${result}${isError ? "!" : ""}`),
    ...(imageCount > 0 ? [`images: ${imageCount}`] : []),
  ].join(" | ");
}

function conversation(messages: readonly RequestMessage[]): readonly string[] {
  return messages.filter(({ role }) => role !== "system").map(told);
}

const conversationItems: readonly ContextItem[] = [
  { role: "system", content: text("You review patches."), timestamp: 1 },
  {
    role: "user",
    content: [
      { type: "text", text: "What is in the picture, and what is 2+2?" },
      { type: "image", data: png, mimeType: "image/png" },
    ],
    timestamp: 2,
  },
  {
    role: "assistant",
    content: text("Two calls."),
    toolCalls: [
      { id: "c1", name: "bash", arguments: { command: "expr 2 + 2" } },
      { id: "c2", name: "look_closer", arguments: { zoom: 2 } },
    ],
    usage: { input: 1_000, output: 500, cost: { total: 3 } },
    timestamp: 3,
  },
  { role: "toolResult", toolCallId: "c1", toolName: "bash", content: text("4"), isError: false, timestamp: 4 },
  { role: "toolResult", toolCallId: "c2", toolName: "look_closer", content: text("No."), isError: true, timestamp: 5 },
  { role: "assistant", content: text("It is 4."), timestamp: 6 },
  { role: "event", eventType: "git.push", content: text("pushed 3 commits"), meta: { ref: "main" }, timestamp: 7 },
];

test.each(services)(
  "the model gets user, calls, results, answer, event and prompt, in that order (%s)",
  async (api) => {
    await using lent = await shared.use({ api, models });
    const { pi, provider } = lent;
    await open(pi, prepare(conversationItems, api));
    const { data } = await pi.rpc({ type: "get_session_stats" });
    expect(data).toMatchObject({ userMessages: 1, assistantMessages: 2, toolCalls: 2, toolResults: 2, cost: 0 });
    expect(data).toMatchObject({ tokens: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } });

    await prompt(pi, "Go on.");
    expect(provider.requests).toHaveLength(1);
    const results = api === "scripted-anthropic" ? ["user | c1=4 | c2=No.!"] : ["tool | c1=4", "tool | c2=No."];
    expect(conversation(provider.requests[0]?.messages ?? [])).toEqual([
      "user | What is in the picture, and what is 2+2? | images: 1",
      'assistant | Two calls. | bash#c1 {"command":"expr 2 + 2"} | look_closer#c2 {"zoom":2}',
      ...results,
      "assistant | It is 4.",
      "user | Event: git.push\npushed 3 commits",
      "user | Go on.",
    ]);
  },
);

const native: Readonly<Record<string, ContextItem>> = {
  compaction: {
    role: "event",
    eventType: "pi.compaction",
    content: text("They spoke of ducks."),
    meta: { native: { type: "compaction", tokensBefore: 900, details: { readFiles: ["a.ts"] }, fromHook: true } },
    timestamp: 1,
  },
  bash: {
    role: "event",
    eventType: "pi.bash",
    content: text("one\ntwo"),
    meta: { native: { type: "bashExecution", command: "ls", exitCode: 2, cancelled: false, truncated: false } },
    timestamp: 2,
  },
  branch: {
    role: "event",
    eventType: "pi.branchSummary",
    content: text("A way that led nowhere."),
    meta: { native: { type: "branch_summary", fromId: "0a0b0c0d" } },
    timestamp: 4,
  },
  custom: {
    role: "event",
    eventType: "pi.custom:weather",
    content: text("It rains."),
    meta: {
      native: {
        type: "custom_message",
        customType: "weather",
        display: false,
        details: { mm: 3, "pi-rpcd": { deliveryId: "of another session" } },
      },
    },
    timestamp: 5,
  },
};

/** Entries that pi adds to any session. */
const pisOwn: ReadonlySet<string> = new Set(["system", "thinking_level_change", "model_change"]);

test.each(services)("a compaction, a command, a branch and a custom message are pi's own again (%s)", async (api) => {
  await using lent = await shared.use({ api, models });
  const { pi, provider } = lent;
  const model = { ...targetOf(api) };
  const items: readonly (ContextItem | undefined)[] = [
    native["compaction"],
    native["bash"],
    { role: "assistant", content: text("Seen."), model, timestamp: 3 },
    native["branch"],
    native["custom"],
    { role: "assistant", content: text("Wet."), model, timestamp: 6 },
    // For other services it hides nothing.
    native["compaction"],
  ];
  await open(
    pi,
    prepare(
      items.filter((item) => item !== undefined),
      api,
    ),
  );
  await prompt(pi, "Go on.");
  expect(conversation(provider.requests[0]?.messages ?? [])).toEqual([
    expect.stringMatching(/^user \| The conversation history before.*<summary>\nThey spoke of ducks.\n<\/summary>$/s),
    expect.stringMatching(/^user \| Ran `ls`\n```\none\ntwo\n```\n\nCommand exited with code 2$/),
    "assistant | Seen.",
    expect.stringMatching(/^user \| The following is a summary of a branch .*A way that led nowhere./s),
    "user | It rains.",
    "assistant | Wet.",
    expect.stringMatching(/^user \| The conversation history before.*They spoke of ducks./s),
    "user | Go on.",
  ]);
  const { data } = await pi.rpc({ type: "get_entries" });
  const { entries } = data as {
    readonly entries: readonly { readonly type: string; readonly message?: { role: string } }[];
  };
  expect(entries.map(({ type, message }) => message?.role ?? type).filter((kind) => !pisOwn.has(kind))).toEqual([
    ...["custom", "compaction", "bashExecution", "assistant", "branch_summary", "custom_message", "assistant"],
    ...["compactionSummary", "user", "assistant"],
  ]);
  expect(entries.find(({ type }) => type === "custom_message")).toMatchObject({ details: { mm: 3 }, display: false });
  expect(JSON.stringify(entries)).not.toContain("of another session");
});

test("an assistant of the same model keeps its reasoning with the signature, and its own blocks", async () => {
  const api = "scripted-anthropic";
  await using lent = await shared.use({ api, models: [{ ...models[0], id: "model-1", reasoning: true }] });
  const { pi, provider } = lent;
  const model = targetOf(api);
  const calls = [{ id: "toolu_1", name: "bash", arguments: { command: "ls" } }];
  await open(
    pi,
    prepare(
      [
        { role: "user", content: text("Think."), timestamp: 1 },
        {
          role: "assistant",
          content: [{ type: "reasoning", text: "Hm.", signature: "c2lnbmVk" }],
          toolCalls: calls,
          model,
          timestamp: 2,
        },
        { role: "toolResult", toolCallId: "toolu_1", toolName: "bash", content: [], timestamp: 3 },
        {
          role: "assistant",
          content: text("not what is sent"),
          blocks: [
            { type: "thinking", thinking: "Well.", thinkingSignature: "YWxzbw==" },
            { type: "text", text: "Empty." },
          ],
          model,
          timestamp: 4,
        },
        {
          role: "assistant",
          content: [{ type: "reasoning", text: "Foreign." }, ...text("Done.")],
          blocks: [{ type: "text", text: "of another model" }],
          model: { ...model, id: "model-9" },
          timestamp: 5,
        },
      ],
      api,
    ),
  );
  await prompt(pi, "Go on.");
  expect(conversation(provider.requests[0]?.messages ?? [])).toEqual([
    "user | Think.",
    'assistant | (Hm.) | bash#toolu_1 {"command":"ls"}',
    "user | toolu_1=",
    "assistant | (Well.) | Empty.",
    "assistant | Done.",
    "user | Go on.",
  ]);
});

test("a conversation that begins with an event is valid, and another pi continues it", async () => {
  await using lent = await shared.use({ api: "scripted-anthropic", models });
  const { pi, provider } = lent;
  const event: ContextItem = { role: "event", eventType: "ci.failed\nnow", content: [], timestamp: Number.MAX_VALUE };
  await open(pi, prepare([event, { role: "assistant", content: text("Oh."), timestamp: 0.5 }], "scripted-anthropic"));
  await prompt(pi, "Go on.");
  expect(conversation(provider.requests[0]?.messages ?? [])).toEqual([
    "user | Event: ci.failed now",
    "assistant | Oh.",
    "user | Go on.",
  ]);

  await pi.restart();
  await prompt(pi, "And now?");
  expect(conversation(provider.requests[1]?.messages ?? [])).toEqual([
    ...conversation(provider.requests[0]?.messages ?? []),
    "assistant | Echo: Go on.",
    "user | And now?",
  ]);
});

test("the first prompt does not compact a context that was fitted into the model's window", async () => {
  const contextWindow = 40_000;
  await using lent = await shared.use({ models: [{ id: "model-1", contextWindow }] });
  const { pi, provider } = lent;
  const items = Array.from({ length: 200 }, (_, nth): readonly ContextItem[] => [
    { role: "user", content: text(`Question ${nth}: ${"what is this? ".repeat(20)}`), timestamp: nth },
    { role: "assistant", content: text(`Answer ${nth}: ${"{ that: [it, 17] },\n".repeat(40)}`), timestamp: nth },
  ]).flat();
  const prepared = prepare(items, "scripted", { contextWindow });
  expect(prepared.dropped.messages).toBeGreaterThan(100);
  expect(prepared.tokens.structured).toBeGreaterThan(0.9 * (prepared.budget ?? 0));
  await open(pi, prepared);
  await prompt(pi, "Go on.");
  expect(pi.log.records.filter(({ type }) => type === "compaction_start")).toEqual([]);
  expect(provider.requests).toHaveLength(1);
  const [notice, first] = conversation(provider.requests[0]?.messages ?? []);
  expect(notice).toBe(
    `user | Event: context.trimmed\n${prepared.dropped.messages} earlier messages (about ${prepared.dropped.tokens} tokens) of this conversation were left out.`,
  );
  expect(first).toMatch(/^user \| Question \d+/);
});
