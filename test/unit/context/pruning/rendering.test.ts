import { expect, test } from "vitest";
import { EntryMap } from "../../../../context/parts/map/entry-map.ts";
import { BlockFold } from "../../../../context/pruning/block-fold.ts";
import { BLOCK_NOTE } from "../../../../context/pruning/block-text.ts";
import { BLOCK_HEADER } from "../../../../context/pruning/record.ts";
import { Rendering } from "../../../../context/pruning/rendering.ts";
import type { AgentMessage } from "../../../../extension/pi-types.ts";
import { Branch, blockOf } from "./branch.ts";

/** A branch as it appears in a request. */
class Shown {
  readonly branch = new Branch();
  readonly unanswered = new Set<string>();
  readonly #fold = new BlockFold();
  readonly #map = new EntryMap();
  readonly #rendering = new Rendering({
    entries: {
      need: () => {},
      entryOf: (message) => this.#map.entryOf(message),
      copied: (copy, original) => this.#map.copied(copy, original),
      made: (message) => this.#map.made(message),
      isWhole: () => true,
      isAmbiguous: () => this.#map.isAmbiguous,
    },
    isUnanswered: (entryId) => this.unanswered.has(entryId),
  });

  request(budget?: number, messages = this.messages): readonly AgentMessage[] {
    const projection = this.branch.messages.map(({ entryId, message }) => ({
      sourceEntry: { id: entryId },
      messages: [message],
    }));
    this.#map.take(messages, projection);
    return this.#rendering.of(messages, this.#fold.on(this.branch.context.sessionManager), budget);
  }

  get messages(): readonly AgentMessage[] {
    return this.branch.messages.map(({ message }) => message);
  }

  entryOf(message: AgentMessage): string | undefined {
    return this.#map.entryOf(message);
  }

  blockIn(message: AgentMessage): string | undefined {
    return this.#rendering.blockIn(message);
  }

  texts(budget?: number): string[] {
    return this.request(budget).map(textOf);
  }
}

function textOf(message: AgentMessage): string {
  const { content } = message as { content: readonly { text?: string; arguments?: unknown }[] };
  return content.map((block) => block.text ?? JSON.stringify(block.arguments)).join("|");
}

function shown() {
  const made = new Shown();
  const users = Array.from({ length: 8 }, (_, at) => made.branch.user(`Message ${at}.`));
  return { made, branch: made.branch, of: (from: number, to: number) => users.slice(from, to + 1) };
}

test("a request without blocks is the unchanged list", () => {
  const { made, of, branch } = shown();
  const { messages } = made;
  expect(made.request(undefined, messages)).toBe(messages);
  branch.compress("T", blockOf("b1", of(1, 2), "A"));
  branch.operate("decompress", "b1");
  branch.go(of(7, 7)[0] as string);
  expect(made.request(undefined, messages)).toBe(messages);
});

test("a block replaces the first message that it covers, with its time, header, topic, body and tag (R002-7)", () => {
  const { made, of, branch } = shown();
  branch.compress("The parser", blockOf("b1", of(1, 3), "It was found."));
  const request = made.request();
  expect(request[1]).toEqual({
    role: "user",
    timestamp: 1_000,
    content: [
      { type: "text", text: `${BLOCK_HEADER}\n${BLOCK_NOTE}\nTopic: The parser\n\nIt was found.` },
      { type: "text", text: "<dcp-message-id>b1</dcp-message-id>" },
    ],
  });
  expect(request.map(textOf).slice(2, 4)).toEqual(["Message 4.", "Message 5."]);
});

test("a block's message belongs to no entry, though it has the role and time of one", () => {
  const { made, of, branch } = shown();
  branch.compress("T", blockOf("b1", of(1, 3), "A"));
  const [before, block] = made.request() as [AgentMessage, AgentMessage];
  expect(made.entryOf(block)).toBeUndefined();
  expect([made.blockIn(block), made.blockIn(before)]).toEqual(["b1", undefined]);
});

test("the same block is the same object in each request, and messages are never changed", () => {
  const { made, of, branch } = shown();
  branch.compress("T", blockOf("b1", of(1, 3), "A"));
  const before = structuredClone(made.messages);
  const first = made.request();
  branch.compress("U", blockOf("b2", of(5, 6), "B"));
  expect(made.request()[1]).toBe(first[1]);
  expect(made.messages.slice(0, before.length)).toEqual(before);
});

test("while no block changes, an earlier request is the beginning of a later one (R002-15)", () => {
  const { made, of, branch } = shown();
  branch.compress("T", blockOf("b1", of(1, 3), "A"), blockOf("b2", of(5, 6), "B"));
  const first = JSON.stringify(made.request());
  branch.user("More.");
  branch.call("read", { path: "a" }, "Text.");
  expect(JSON.stringify(made.request()).startsWith(first.slice(0, -1))).toBe(true);
});

test("the arguments of a call that stored blocks name them, and only the block has the text (R002-31)", () => {
  const { made, of, branch } = shown();
  const [answer] = branch.compress(
    "T",
    blockOf("b1", of(1, 2), "First words."),
    blockOf("b2", of(4, 5), "Second words."),
  );
  const request = made.request();
  const all = request.map(textOf).join("\n");
  expect(all.split("First words.")).toHaveLength(2);
  expect(all.split("Second words.")).toHaveLength(2);
  const call = request.find(({ role }) => role === "assistant") as AgentMessage;
  expect(made.entryOf(call)).toBe(answer);
  expect((call as { content: readonly unknown[] }).content[0]).toMatchObject({
    name: "compress",
    arguments: {
      topic: "T",
      ranges: [
        { startId: "m001", endId: "m002", summary: "(stored as b1)" },
        { startId: "m001", endId: "m002", summary: "(stored as b2)" },
      ],
    },
  });
  // Later changes of a block do not change its call.
  branch.operate("decompress", "b1");
  expect(made.request().find(({ role }) => role === "assistant")).toEqual(call);
});

test.each([
  ["a range that is not a list", { topic: "T", ranges: { startId: "m001", endId: "m002", summary: "Words." } }],
  ["ranges as a text", { topic: "T", ranges: '[{"startId":"m001","endId":"m002","summary":"Words."}]' }],
  ["no object", "Words."],
])("arguments of %s are trimmed too", (_what, args) => {
  const { made, of, branch } = shown();
  const details = { v: 1, topic: "T", blocks: [blockOf("b1", of(1, 2), "Kept.")] };
  branch.call("compress", args as object, "Stored.", { details });
  expect(JSON.stringify(made.request())).not.toContain("Words.");
  expect(JSON.stringify(made.request())).toContain("(stored as b1)");
});

test("a signed call, a failed call and another call with the same id stay unchanged", () => {
  const { made, of, branch } = shown();
  branch.call("compress", { topic: "Before", ranges: "same id" }, "No.", { isError: true });
  const details = { v: 1, topic: "T", blocks: [blockOf("b1", of(1, 2), "A")] };
  const call = {
    type: "toolCall",
    id: "call1",
    name: "compress",
    arguments: { topic: "signed" },
    thoughtSignature: "s",
  };
  branch.message({ role: "assistant", content: [call, { ...call, id: "other", name: "read" }] });
  branch.message({ role: "toolResult", toolCallId: "call1", toolName: "compress", content: [], details });
  const { messages } = made;
  const answers = made.request(undefined, messages).filter(({ role }) => role === "assistant");
  expect(JSON.stringify(answers)).toBe(JSON.stringify(messages.filter(({ role }) => role === "assistant")));
  expect(made.texts()).toContainEqual(expect.stringContaining("Topic: T"));
});

test("three levels are shown in one pass, and quoted placeholders are text (R002-10)", () => {
  const { made, of, branch } = shown();
  branch.compress("One", blockOf("b1", of(1, 1), "The user wrote (b9) and (b2)."));
  branch.compress("Two", blockOf("b2", of(1, 2), [{ text: "First: " }, { block: "b1" }, { text: " Then (b1)." }]));
  branch.compress("Three", blockOf("b3", of(0, 4), [{ block: "b2" }, { text: " End." }]));
  expect(made.texts()[0]).toContain("\n\nFirst: The user wrote (b9) and (b2). Then (b1). End.|");
});

test("verbatim text comes after the body, including that of inner blocks", () => {
  const { made, of, branch } = shown();
  const kept = (text: string) => ({ kept: [{ title: "[user]", text }] });
  branch.compress("One", blockOf("b1", of(1, 1), "Inner.", kept("Do this.")));
  branch.compress("Two", blockOf("b2", of(0, 2), [{ text: "Outer " }, { block: "b1" }], kept("And that.")));
  expect(made.texts()[0]).toContain(
    "\n\nOuter Inner.\n\nKept word for word:\n\n[user]\nDo this.\n\n[user]\nAnd that.|",
  );
});

test("a message that carries an unanswered push is shown though a block covers it", () => {
  const { made, of, branch } = shown();
  branch.compress("T", blockOf("b1", of(1, 3), "A"));
  made.unanswered.add(of(2, 2)[0] as string);
  expect(made.texts().slice(1, 3)).toEqual([expect.stringContaining("Topic: T"), "Message 2."]);
});

test("messages of other extensions inside a covered range stay", () => {
  const { made, of, branch } = shown();
  branch.compress("T", blockOf("b1", of(1, 3), "A"));
  const stranger = { role: "user", content: [{ type: "text", text: "Stranger." }], timestamp: 5 } as AgentMessage;
  const { messages } = made;
  const request = made.request(undefined, [...messages.slice(0, 2), stranger, ...messages.slice(2)]);
  expect(request.map(textOf).slice(1, 4)).toEqual([expect.stringContaining("Topic: T"), "Stranger.", "Message 4."]);
});

test("blocks above their limit are shown by their first lines and topics, the oldest first", () => {
  const { made, of, branch } = shown();
  const long = (word: string) => `${word} begins.\n${`${word} `.repeat(1_500)}`;
  branch.compress("One", blockOf("b1", of(0, 0), long("one")));
  branch.compress("Two", blockOf("b2", of(2, 2), long("two")));
  branch.compress("Three", blockOf("b3", of(4, 4), long("six")));
  const [first, , second, , third] = made.texts(4_500) as [string, string, string, string, string];
  expect(first).toMatch(/^\[Compressed.*\n.*\nTopic: One\n\none begins\.\none one[^\n]*…\n\[shortened; recall b1\]\|/u);
  expect(second).toContain(long("two"));
  expect(third).toContain(long("six"));
  const small = made.texts(1_000).filter((text) => text.startsWith(BLOCK_HEADER));
  expect(small[0]).not.toContain("one begins");
  expect(small[1]).toContain("recall b2]");
  expect(Buffer.byteLength(small.join("")) / 3.3).toBeLessThan(1_000);
  expect(small[2]).toMatch(/six six[^\n]*…\n\[shortened; recall b3\]/u);
  expect(made.texts(4_500)[2]).toContain(long("two"));
});

test("thirty nested compressions stay below the cap: nested summaries do not fill the context (R002-32)", () => {
  const { made, of, branch } = shown();
  const words = (at: number) => ` Level ${at}: ${"what was decided and why. ".repeat(80)}`;
  branch.compress("Topic 1", blockOf("b1", of(0, 0), words(1)));
  const covered: string[] = [...of(0, 7)];
  for (let at = 2; at <= 30; at += 1) {
    covered.push(branch.user(`Message ${at}.`));
    const body = [{ block: `b${at - 1}` }, { text: words(at) }];
    branch.compress(`Topic ${at}`, blockOf(`b${at}`, [...covered], body));
  }
  const whole = Buffer.byteLength(made.texts()[0] ?? "");
  const [capped = ""] = made.texts(2_000);
  expect(whole).toBeGreaterThan(30 * 2_000);
  expect(Buffer.byteLength(capped) / 3.3).toBeLessThan(2_000);
  expect(capped).toContain(words(30));
  expect(capped).toMatch(/recall b\d+\]/u);
});

test("no character is split where the newest block loses its end", () => {
  const { made, of, branch } = shown();
  branch.compress("T", blockOf("b1", of(0, 0), "🦊".repeat(5_000)));
  const [text = ""] = made.texts(1_000);
  expect(text).not.toContain("�");
  expect(text).toMatch(/🦊…\n\[shortened; recall b1\]\|/u);
});
