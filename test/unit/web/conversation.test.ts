import { expect, test } from "vitest";
import { WireError } from "../../../client/browser.ts";
import { blocksOf } from "../../../web/text/blocks.ts";
import { sessionInfo, settled } from "./fake-daemon.ts";
import { answer, call, entry, Scene, text, toolResult, user } from "./scenario.ts";

const history = [
  entry("e1", user("Fix it", 1)),
  entry(
    "e2",
    answer(2, [{ type: "thinking", thinking: "Hm." }, text("I look."), call("c1", "bash", { command: "ls" })]),
  ),
  entry("e3", toolResult("c1", "a.ts", 3)),
  entry("e4", answer(4, [text("Done.")])),
];
const shownHistory = ["user: Fix it", "thought: Hm.", "text: I look.", "tool bash ls (done): a.ts", "text: Done."];

function push(id: string) {
  return {
    type: "custom_message",
    id: `e-${id}`,
    parentId: null,
    customType: "build",
    content: "Build failed",
    display: true,
    details: { "pi-rpcd": { deliveryId: id } },
  };
}

test("shows the history of a session, and then what happens", async () => {
  const scene = new Scene(10);
  scene.history(history);
  await scene.open();
  expect(scene.shown).toEqual(shownHistory);
  expect(scene.daemon.subscriptions).toMatchObject([{ sessionId: "s1", after: 10 }]);

  scene.end(user("And now?", 5));
  scene.begin(answer(6, [], { stopReason: "pending" }));
  scene.start(0);
  scene.delta(0, "Nothing ");
  scene.delta(0, "more.");
  scene.page.draw();
  expect(scene.shown.slice(5)).toEqual(["user: And now?", "text (streaming): Nothing more."]);
  scene.end(answer(6, [text("Nothing more.")]));
  expect(scene.shown).toEqual([...shownHistory, "user: And now?", "text: Nothing more."]);
  expect(scene.conversation.arrived.value).toBe(2);
});

test("shows a running tool with the end of its output, and then its result", async () => {
  const scene = new Scene();
  await scene.open();
  const message = answer(1, [call("c1", "bash", { command: "make" })], { stopReason: "toolUse" });
  scene.begin(answer(1, []));
  scene.start(0, "toolcall", { id: "c1", toolName: "bash" });
  scene.delta(0, '{"command":', "toolcall");
  scene.page.draw();
  expect(scene.shown).toEqual(["tool bash  (writing)"]);
  scene.end(message);
  expect(scene.shown).toEqual(["tool bash make (called)"]);
  scene.event({ type: "tool_execution_start", toolCallId: "c1", toolName: "bash", args: {} });
  const partialResult = { content: [text(`${"x".repeat(20_000)} end`)] };
  scene.event({ type: "tool_execution_update", toolCallId: "c1", toolName: "bash", partialResult });
  scene.page.draw();
  expect(scene.shown[0]).toMatch(/^tool bash make \(running\): …x{16380} end$/);
  const result = { content: [text("all built")], details: {} };
  scene.event({ type: "tool_execution_end", toolCallId: "c1", toolName: "bash", result, isError: false });
  scene.end(toolResult("c1", "all built", 2));
  expect(scene.shown).toEqual(["tool bash make (done): all built"]);
});

test("shows each message once where the page was loaded during an answer", async () => {
  const scene = new Scene();
  // The log until the page is read: an answer with a tool call, its result, and the beginning of the next answer.
  const log = [
    { type: "message_start", message: answer(2, []) },
    { type: "message_end", message: history[1]?.["message"] },
    { type: "tool_execution_start", toolCallId: "c1", toolName: "bash", args: {} },
    {
      type: "tool_execution_end",
      toolCallId: "c1",
      toolName: "bash",
      result: { content: [text("a.ts")] },
      isError: false,
    },
    { type: "message_end", message: history[2]?.["message"] },
    { type: "message_start", message: answer(4, []) },
    { type: "message_update", assistantMessageEvent: { type: "text_start", contentIndex: 0 } },
    { type: "message_update", assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "Do" } },
  ];
  scene.seq = log.length;
  scene.history(history.slice(0, 3), { openAfter: 0 });
  await scene.open();
  expect(scene.daemon.subscriptions).toMatchObject([{ after: 0 }]);
  for (const [index, event] of log.entries()) scene.event(event, index + 1);
  scene.page.draw();
  expect(scene.shown).toEqual([...shownHistory.slice(0, 4), "text (streaming): Do"]);
  scene.delta(0, "ne.");
  scene.page.draw();
  expect(scene.shown).toEqual([...shownHistory.slice(0, 4), "text (streaming): Done."]);
  scene.end(answer(4, [text("Done.")]));
  expect(scene.shown).toEqual(shownHistory);
});

test("does not show the beginning of an answer that is an entry already", async () => {
  const scene = new Scene(3);
  scene.history([entry("e1", answer(2, [text("Done.")]))], { openAfter: 0 });
  await scene.open();
  scene.event({ type: "message_start", message: answer(2, []) }, 1);
  scene.event(
    { type: "message_update", assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "Do" } },
    2,
  );
  scene.page.draw();
  expect(scene.shown).toEqual(["text: Done."]);
  scene.event({ type: "message_end", message: answer(2, [text("Done.")]) }, 3);
  scene.page.draw();
  expect(scene.shown).toEqual(["text: Done."]);
});

test("shows the beginning of an answer although the page does not get the last notification before it was opened", async () => {
  const scene = new Scene(3);
  scene.history([], { openAfter: 0 });
  await scene.open();
  scene.event({ type: "message_start", message: answer(2, []) }, 1);
  scene.event({ type: "message_update", assistantMessageEvent: { type: "text_start", contentIndex: 0 } }, 1);
  scene.event(
    { type: "message_update", assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "Do" } },
    2,
  );
  scene.page.draw();
  expect(scene.shown).toEqual([]);
  scene.page.pass(1_000);
  scene.page.draw();
  expect(scene.shown).toEqual(["text (streaming): Do"]);
});

test("shows an answer as Markdown, and keeps the blocks that it has shown", async () => {
  const scene = new Scene();
  await scene.open();
  const words = `${"Some words. ".repeat(30)}\n\n`.repeat(5);
  scene.begin(answer(1, []));
  scene.start(0);
  scene.delta(0, words);
  scene.page.draw();
  const [before] = scene.items;
  scene.delta(0, "**End**");
  scene.page.draw();
  scene.end(answer(1, [text(`${words}**End**`)]));
  const [after] = scene.items;
  if (before?.kind !== "text" || after?.kind !== "text") throw new Error("There is no text.");
  expect(after.blocks).toEqual(blocksOf(`${words}**End**`));
  expect(after.blocks.length).toBeGreaterThan(3);
  for (const [index, block] of before.blocks.slice(0, -1).entries()) expect(after.blocks[index]).toBe(block);
});

test("draws many deltas once in a frame", async () => {
  const scene = new Scene();
  await scene.open();
  scene.begin(answer(1, []));
  scene.start(0);
  scene.delta(0, "a");
  scene.page.draw();
  let changes = 0;
  const [row] = scene.conversation.groups.value[0]?.rows.value ?? [];
  const stop = row?.item.subscribe(() => {
    changes += 1;
  });
  for (let count = 0; count < 1_000; count += 1) scene.delta(0, "b");
  expect(changes).toBe(1);
  expect(scene.page.draw()).toBe(1);
  expect(changes).toBe(2);
  expect(scene.shown).toEqual([`text (streaming): a${"b".repeat(1_000)}`]);
  stop?.();
});

test("takes an answer from its end where live text was left out, and says so until then", async () => {
  const scene = new Scene();
  await scene.open();
  scene.begin(answer(1, []));
  scene.start(0);
  scene.delta(0, "Hello ");
  scene.seq += 3;
  scene.daemon.gap("s1", { from: scene.seq - 2, to: scene.seq, reason: "slow_reader", onlyDeltas: true });
  scene.delta(0, "!");
  scene.page.draw();
  expect(scene.shown).toEqual(["text (incomplete): Hello "]);
  expect(scene.conversation.isIncomplete.value).toBe(true);
  scene.end(answer(1, [text("Hello world!")]));
  expect(scene.shown).toEqual(["text: Hello world!"]);
  expect(scene.conversation.isIncomplete.value).toBe(false);
  expect(scene.missed).toBe(0);
});

test("shows a gap in its place, with a way to read what is missing", async () => {
  const scene = new Scene(2);
  scene.history(history.slice(0, 1));
  await scene.open();
  scene.seq = 9;
  scene.daemon.gap("s1", { from: 3, to: 9, reason: "not_retained" });
  scene.end(user("After it", 9));
  expect(scene.shown).toEqual([
    "user: Fix it",
    "gap: Something is missing here: it is no longer kept.",
    "user: After it",
  ]);
  expect(scene.missed).toBe(1);
  scene.history([...history, entry("e5", user("After it", 9))]);
  const [, gap] = scene.items;
  if (gap?.kind !== "gap") throw new Error("There is no gap.");
  expect(await gap.readAgain()).toMatchObject({ kind: "done" });
  expect(scene.shown).toEqual([...shownHistory, "user: After it"]);
  expect(scene.daemon.subscriptions).toMatchObject([{ after: 10 }]);
});

test("reads everything again where the log is another one", async () => {
  const scene = new Scene(5);
  scene.history(history.slice(0, 1));
  await scene.open();
  scene.seq = 1;
  scene.history(history);
  scene.daemon.gap("s1", { from: 0, to: 5, reason: "log_reset" });
  await settled();
  expect(scene.shown).toEqual(shownHistory);
  scene.end(user("More", 9));
  expect(scene.shown).toEqual([...shownHistory, "user: More"]);
});

test("shows entries that pi did not report", async () => {
  const scene = new Scene();
  await scene.open();
  scene.event({ type: "rpcd_entry", entry: entry("e9", user("From before the crash", 1)) });
  expect(scene.shown).toEqual(["user: From before the crash"]);
});

test("shows no entry again that a page has or will have, if a crash makes the log tell the whole file", async () => {
  const scene = new Scene();
  scene.history(history.slice(1), { before: "p1" });
  await scene.open();
  const { shown } = scene;
  const [first, ...later] = history;
  for (const told of [{ ...first, timestamp: "2025-12-31T00:00:00.000Z" }, ...later])
    scene.event({ type: "rpcd_entry", entry: told });
  expect(scene.shown).toEqual(shown);
  scene.event({ type: "rpcd_entry", entry: { ...entry("e9", user("Not reported", 9)), timestamp: "2999-01-01" } });
  expect(scene.shown).toEqual([...shown, "user: Not reported"]);
});

test("loads older pages, whose tools get results of later pages", async () => {
  const scene = new Scene();
  scene.history(history.slice(2), { before: "p1" });
  await scene.open();
  expect(scene.shown).toEqual(["text: Done."]);
  expect(scene.conversation.hasOlder.value).toBe(true);
  const lostCall = entry("e0", answer(0, [call("c0", "bash", { command: "sleep 9" })]));
  scene.daemon.answer("transcript/page", { entries: [lostCall, ...history.slice(0, 2)], leafId: null });
  await scene.conversation.older();
  expect(scene.shown).toEqual(["tool bash sleep 9 (lost)", ...shownHistory]);
  expect(scene.conversation.hasOlder.value).toBe(false);
  expect(scene.daemon.calls.at(-1)?.params).toMatchObject({ before: "p1" });
  expect(scene.conversation.arrived.value).toBe(0);
});

test("goes on to pages that have something to show", async () => {
  const scene = new Scene();
  scene.history(history.slice(3), { before: "p3" });
  await scene.open();
  const pages = [
    { entries: [], before: "p2" },
    { entries: [{ type: "custom", id: "x", parentId: null }], before: "p1" },
  ];
  scene.daemon.on(
    "transcript/page",
    () => ({ leafId: null, ...(pages.shift() ?? { entries: history.slice(0, 3) }) }) as never,
  );
  await scene.conversation.older();
  expect(scene.shown).toEqual(shownHistory);
});

test("keeps the groups of rows while rows come before and after them", async () => {
  const scene = new Scene();
  const many = Array.from({ length: 120 }, (_, index) => entry(`e${index}`, user(`${index}`, index)));
  scene.history(many.slice(40), { before: "p" });
  await scene.open();
  const before = scene.conversation.groups.value;
  expect(before.map(({ rows }) => rows.value.length)).toEqual(Array(8).fill(10));
  scene.daemon.answer("transcript/page", { entries: many.slice(0, 40), leafId: null });
  await scene.conversation.older();
  for (let count = 0; count < 25; count += 1) scene.end(user(`new ${count}`, 1_000 + count));
  const after = scene.conversation.groups.value;
  expect(after.map(({ rows }) => rows.value.length)).toEqual([...Array(14).fill(10), 5]);
  expect(after.slice(4, 12)).toEqual(before);
  expect(scene.shown).toHaveLength(145);
});

test("with a filter groups keep their names too while rows come before and after them", async () => {
  const scene = new Scene();
  const many = Array.from({ length: 60 }, (_, n) => entry(`e${n}`, n % 4 === 0 ? user(`${n}`, n) : answer(n, [])));
  scene.history(many.slice(40), { before: "p" });
  await scene.open();
  scene.conversation.setFilter("users");
  const shown = () => scene.conversation.groups.value.map(({ id, rows }) => [id, rows.value.length]);
  const before = shown();
  scene.daemon.answer("transcript/page", { entries: many.slice(0, 40), leafId: null });
  await scene.conversation.older();
  scene.end(user("new", 1_000));
  expect(shown().length).toBeGreaterThan(before.length);
  const names = shown().map(([id]) => id);
  expect(names.slice(names.indexOf(before[0]?.[0] ?? "")).slice(0, before.length)).toEqual(before.map(([id]) => id));
  expect(names.indexOf(before[0]?.[0] ?? "")).toBeGreaterThan(0);
  expect(scene.shown).toEqual([...Array(15).keys()].map((n) => `user: ${4 * n}`).concat("user: new"));
});

test("a hidden page asks for no deltas and draws no frames, and shows the whole answer when it is seen again", async () => {
  const scene = new Scene();
  await scene.open();
  scene.begin(answer(1, []));
  scene.start(0);
  scene.delta(0, "One ");
  scene.page.draw();
  scene.page.hide(true);
  expect(scene.daemon.subscriptions).toMatchObject([{ after: 0, listener: { more: { deltas: false } } }]);
  scene.seq += 5;
  scene.end(user("While hidden", 2));
  expect(scene.page.draw()).toBe(0);
  expect(scene.shown).toContain("user: While hidden");
  expect(scene.shown.filter((each) => each.startsWith("gap"))).toEqual([]);
  scene.page.hide(false);
  expect(scene.daemon.subscriptions).toMatchObject([{ after: 0, listener: { more: { deltas: true } } }]);
  // The daemon tells again from the beginning of the answer.
  scene.event({ type: "message_start", message: answer(1, []) }, 1);
  scene.event({ type: "message_update", assistantMessageEvent: { type: "text_start", contentIndex: 0 } }, 2);
  scene.event(
    { type: "message_update", assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "One two " } },
    8,
  );
  scene.event({ type: "message_end", message: user("While hidden", 2) }, 9);
  scene.delta(0, "three.");
  scene.page.draw();
  expect(scene.shown.filter((each) => each.startsWith("text"))).toEqual(["text (streaming): One two three."]);
  expect(scene.shown.filter((each) => each.startsWith("user"))).toEqual(["user: While hidden"]);
});

test("shows what deltas are missing of a hidden page as no gap", async () => {
  const scene = new Scene();
  await scene.open();
  scene.page.hide(true);
  scene.daemon.gap("s1", { from: 1, to: 4, reason: "unreported" });
  expect(scene.shown).toEqual([]);
  scene.page.hide(false);
  scene.daemon.gap("s1", { from: 5, to: 6, reason: "unreported" });
  expect(scene.shown).toEqual(["gap: Something is missing here: it did not arrive."]);
});

test("says who wrote a message, from the list of prompts and from its event", async () => {
  const scene = new Scene();
  const by = { clientId: "other-client", name: "editor" };
  scene.daemon.answer("prompt/list", { prompts: [{ promptId: "p0", entryId: "e1", by }] });
  scene.history(history.slice(0, 1));
  await scene.open();
  scene.notify("session/event", {
    by: { clientId: "this-page" },
    event: { type: "message_end", message: user("Mine", 2) },
  });
  scene.notify("session/event", { by, event: { type: "rpcd_entry", entry: entry("e2", user("Theirs", 3)) } });
  scene.end(user("Unknown", 4));
  const who = scene.items.map((item) => (item.kind === "user" ? item.who.kind : undefined));
  expect(who).toEqual(["client", "you", "client", "unknown"]);
});

test("says who wrote a message, also if its prompt becomes known only later", async () => {
  const scene = new Scene();
  const by = { clientId: "this-page" };
  scene.history(history.slice(0, 1));
  await scene.open();
  scene.notify("prompt/updated", { prompt: { promptId: "p0", entryId: "e1", by } });
  expect(scene.items).toMatchObject([{ kind: "user", who: { kind: "you" } }]);
});

test("changes only the rows of the newest load", async () => {
  const scene = new Scene();
  scene.history(history.slice(0, 1));
  await scene.open();
  const [former] = scene.conversation.groups.value.flatMap(({ rows }) => rows.value);
  await scene.conversation.reload();
  scene.notify("prompt/updated", { prompt: { promptId: "p0", entryId: "e1", by: { clientId: "this-page" } } });
  expect(scene.items).toMatchObject([{ who: { kind: "you" } }]);
  expect(former?.item.value).toMatchObject({ who: { kind: "unknown" } });
});

test("reads the lists of prompts and pushes after the page, so that no change is missed", async () => {
  const scene = new Scene();
  const by = { clientId: "this-page" };
  scene.daemon.on("transcript/page", async () => {
    await settled();
    scene.daemon.answer("prompt/list", { prompts: [{ promptId: "p0", entryId: "e1", by }] });
    scene.daemon.answer("delivery/list", { deliveries: [{ deliveryId: "d1", state: "delivered" }] });
    return { entries: [...history.slice(0, 1), push("d1")], leafId: null, cursor: 7, epoch: "a" };
  });
  await scene.open();
  await expect
    .poll(() => scene.items)
    .toMatchObject([
      { kind: "user", who: { kind: "you" } },
      { kind: "push", state: "delivered" },
    ]);
});

test("shows pushes with their state, and hides what only starts a run", async () => {
  const scene = new Scene();
  scene.daemon.answer("delivery/list", { deliveries: [{ deliveryId: "d1", state: "answered", evidence: "headers" }] });
  scene.history([
    push("d1"),
    { type: "custom_message", id: "c", customType: "pi-rpcd.carrier", content: "x", display: false },
  ]);
  await scene.open();
  scene.end({ role: "custom", timestamp: 5, ...push("d2") });
  expect(scene.shown).toEqual(["push build (answered): Build failed", "push build (?): Build failed"]);
  scene.notify("delivery/updated", { delivery: { deliveryId: "d2", state: "delivered", history: [] } });
  expect(scene.shown.at(-1)).toBe("push build (delivered): Build failed");
});

test("shows retries, stops, failures, compactions and changes of the model as notes", async () => {
  const scene = new Scene();
  scene.history([
    { type: "model_change", id: "m0", parentId: null, provider: "scripted", modelId: "model-0" },
    { type: "thinking_level_change", id: "t0", parentId: "m0", thinkingLevel: "off" },
    { type: "compaction", id: "c", parentId: "t0", summary: "Short.", tokensBefore: 12_000 },
    { type: "model_change", id: "m1", parentId: "c", provider: "scripted", modelId: "model-1" },
  ]);
  await scene.open();
  scene.end(answer(1, [], { stopReason: "error", errorMessage: "529 Overloaded." }));
  scene.event({ type: "auto_retry_start", attempt: 1, maxAttempts: 3, delayMs: 700, errorMessage: "529 Overloaded." });
  scene.event({ type: "compaction_start", reason: "threshold" });
  scene.event({ type: "compaction_end", result: { summary: "Shorter.", tokensBefore: 900 } });
  scene.begin(answer(2, []));
  scene.start(0);
  scene.delta(0, "Half");
  scene.end(answer(2, [text("Half")], { stopReason: "aborted" }));
  scene.notify("run/ended", { runId: "r", outcome: "aborted", promptIds: [], by: { clientId: "this-page" } });
  const session = { model: { provider: "scripted", id: "model-1" }, state: "idle" };
  scene.notify("session/updated", { session });
  scene.notify("session/updated", { session: { ...session, model: { provider: "scripted", id: "model-2" } } });
  expect(scene.shown).toEqual([
    "note compaction: The context was compacted: a summary replaces its beginning. It had 12,000 tokens.",
    "note model: The model is scripted/model-1.",
    "note retry: The request was refused: 529 Overloaded. pi tries again after 0.7 s, attempt 1 of 3.",
    "note compaction: The context was compacted: a summary replaces its beginning. It had 900 tokens.",
    "text (cut): Half",
    "note abort: stopped the run.",
    "note model: The model is scripted/model-2.",
  ]);
  expect(scene.items.at(-2)).toMatchObject({ who: { kind: "you" } });
  expect(scene.conversation.announcement.value).toBe("Run stopped, 0 tools.");
});

test("ends what runs where the run was interrupted", async () => {
  const scene = new Scene();
  await scene.open();
  scene.end(answer(1, [call("c1", "bash", { command: "sleep 9" })]));
  scene.begin(answer(2, []));
  scene.start(0);
  scene.delta(0, "Half");
  scene.notify("run/ended", { runId: "r", outcome: "interrupted", promptIds: [] });
  expect(scene.shown).toEqual([
    "tool bash sleep 9 (lost)",
    "text (cut): Half",
    "note failure: The run was interrupted: pi has ended.",
  ]);
});

test("shows only changes of files, or only messages of users", async () => {
  const scene = new Scene();
  scene.history(history);
  await scene.open();
  scene.conversation.setFilter("users");
  expect(scene.shown).toEqual(["user: Fix it"]);
  scene.conversation.setFilter("changes");
  expect(scene.shown).toEqual([]);
  scene.end(answer(9, [call("c9", "write", { path: "a.ts", content: "one\ntwo\n" })]));
  expect(scene.shown).toEqual(["tool write a.ts (called)"]);
  scene.conversation.setFilter("all");
  expect(scene.shown).toHaveLength(6);
});

test("shows pi's diff of an edit, and the text of a write as added lines", async () => {
  const scene = new Scene();
  scene.history([
    entry(
      "e1",
      answer(1, [call("c1", "edit", { path: "a.ts" }), call("c2", "write", { path: "b.ts", content: "one\ntwo\n" })]),
    ),
    entry("e2", toolResult("c1", "ok", 2, { details: { diff: "  1 a\n-2 b\n+2 c\n+3 d" } })),
    entry("e3", toolResult("c2", "ok", 3)),
  ]);
  await scene.open();
  expect(scene.items).toMatchObject([
    { added: 2, removed: 1, isChange: true },
    { added: 2, removed: 0, isChange: true },
  ]);
  expect(scene.items.map((item) => (item.kind === "tool" ? item.diff?.text.value : ""))).toEqual([
    "  1 a\n-2 b\n+2 c\n+3 d",
    "+one\n+two\n",
  ]);
});

test("reads another branch when the session moves there", async () => {
  const scene = new Scene();
  scene.history(history);
  await scene.open();
  scene.history(history.slice(0, 1));
  scene.notify("session/navigated", { from: "e4", to: "e1" });
  await settled();
  expect(scene.shown).toEqual(["user: Fix it"]);
});

test("says why a conversation cannot be read, and reads it at another press", async () => {
  const scene = new Scene();
  scene.daemon.on("transcript/page", () => Promise.reject(new Error("The file is missing.")));
  await scene.open();
  expect(scene.conversation.state.value).toEqual({ kind: "refused", words: "The file is missing." });
  scene.history(history);
  await scene.conversation.reload();
  expect(scene.conversation.state.value).toEqual({ kind: "ready" });
  expect(scene.shown).toEqual(shownHistory);
});

test("a call that waits for its turn in a run is not lost where the page is loaded", async () => {
  const scene = new Scene(5);
  scene.info = sessionInfo("s1", { state: "running", runId: "r" });
  scene.history([entry("e1", answer(1, [call("c1", "bash", { command: "ls" })]))]);
  await scene.open();
  expect(scene.shown).toEqual(["tool bash ls (called)"]);
  scene.event({ type: "tool_execution_start", toolCallId: "c1", toolName: "bash", args: {} });
  expect(scene.shown).toEqual(["tool bash ls (running)"]);
});

test("shows why pi has ended and what was lost with it, with a way to send it again", async () => {
  const scene = new Scene();
  const lost = { promptId: "p", text: "Fix it", length: 6 };
  scene.info = sessionInfo("s1", {
    state: "crashed",
    exit: { at: 1, code: null, signal: "SIGKILL", expected: false, stderrTail: "Out of memory" },
    lostPrompts: [
      { ...lost, at: 1 },
      { ...lost, at: Date.parse("2027-01-01") },
    ],
  });
  scene.history(history);
  await scene.open();
  expect(scene.shown.slice(shownHistory.length)).toEqual([
    "note session: pi has ended unexpectedly (signal SIGKILL).",
    "note session: A message was lost with pi, and is not sent again by itself: “Fix it”",
  ]);
  const [crash, message] = scene.items.slice(-2);
  expect(crash).toMatchObject({ detail: { text: { value: "Out of memory" } } });
  expect(message).toMatchObject({ action: { words: "Send again" } });
});

test("reads everything again where the file was rewritten", async () => {
  const scene = new Scene();
  scene.history(history.slice(3), { before: "p" });
  await scene.open();
  let isRewritten = true;
  scene.daemon.on("transcript/page", ({ before }) => {
    if (before !== undefined && isRewritten) {
      isRewritten = false;
      throw new WireError("transcript_changed", "The file was rewritten.");
    }
    return { entries: history, leafId: null, cursor: 0, epoch: "a" };
  });
  expect(await scene.conversation.older()).toMatchObject({ kind: "done" });
  expect(scene.shown).toEqual(shownHistory);
});

test("takes anything for an entry or an event", async () => {
  const scene = new Scene();
  const odd = [null, 1, "x", [], {}, { type: "message" }, { role: "assistant" }, { role: 7, content: { a: 1 } }];
  scene.history(
    odd.flatMap((value) => [
      { type: "message", id: "o", message: value },
      { type: "compaction", summary: value },
    ]),
  );
  await scene.open();
  for (const type of [
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_end",
    "rpcd_entry",
    "compaction_end",
    "auto_retry_start",
    "extension_error",
    "extension_ui_request",
  ]) {
    for (const value of odd) {
      scene.event({
        type,
        message: value,
        entry: value,
        assistantMessageEvent: value,
        result: value,
        toolCallId: "c",
        args: value,
      });
      scene.end({
        role: "assistant",
        content: [value, { type: "toolCall", id: value, name: value, arguments: value }],
        timestamp: value,
      });
      scene.end({ role: "toolResult", toolCallId: "c", content: value });
    }
  }
  scene.page.draw();
  expect(scene.conversation.state.value).toEqual({ kind: "ready" });
});
