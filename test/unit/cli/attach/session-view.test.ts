import { describe, expect, test } from "vitest";
import { PlainCanvas } from "../../../../cli/attach/canvas.ts";
import { SessionView, type SessionViewOptions } from "../../../../cli/attach/session-view.ts";
import type { LogNotification } from "../../../../client/index.ts";
import type { PiEvent } from "../../../../client/pi-events.ts";
import { memoryOutput } from "../memory-output.ts";

const usage = { input: 1_200, output: 34, cacheRead: 800, cacheWrite: 0, cost: { total: 0.0123 } };
let seq = 0;

function told(name: LogNotification["name"], params: object, at = 1_000): LogNotification {
  seq += 1;
  return { name, params: { sessionId: "s", seq, at, ...params } } as unknown as LogNotification;
}

function event(of: PiEvent, at?: number): LogNotification {
  return told("session/event", { generation: 1, event: of }, at);
}

function delta(text: string, { type = "text_delta", contentIndex = 0 } = {}): LogNotification {
  return event({ type: "message_update", assistantMessageEvent: { type, contentIndex, delta: text } });
}

function assistant(content: unknown, more: object = {}): LogNotification {
  return event({ type: "message_end", message: { role: "assistant", content, usage, stopReason: "stop", ...more } });
}

const begin = event({ type: "message_start", message: { role: "assistant", content: [] } });

function shown(notifications: readonly LogNotification[], options: Partial<SessionViewOptions> = {}): string {
  const { output, stdout } = memoryOutput();
  const view = new SessionView({
    canvas: new PlainCanvas(output),
    thinking: true,
    asks: false,
    self: "me",
    ...options,
  });
  for (const notification of notifications) view.show(notification);
  return stdout();
}

describe("a run", () => {
  test("shows its prompt, its thinking, its text, its tools with their outcome, and its usage", () => {
    const by = { clientId: "other-client", name: "vim" };
    const text = shown([
      told("run/started", { runId: "r", promptIds: [], by }),
      event({ type: "message_end", message: { role: "user", content: "do it\nnow" } }),
      begin,
      delta("I wonder.", { type: "thinking_delta" }),
      delta("I look ", { contentIndex: 1 }),
      delta("first.", { contentIndex: 1 }),
      assistant([
        { type: "thinking", thinking: "I wonder." },
        { type: "text", text: "I look first." },
      ]),
      event({ type: "tool_execution_start", toolCallId: "t", toolName: "bash", args: { command: "ls" } }, 2_000),
      event(
        {
          ...{ type: "tool_execution_end", toolCallId: "t", toolName: "bash", isError: false },
          result: { content: [{ type: "text", text: "a\nb\nc\n" }] },
        },
        3_500,
      ),
      told("run/ended", { runId: "r", promptIds: [], outcome: "settled", startedAt: 1_000 }, 5_000),
    ]);
    expect(text.split("\n").map((line) => line.replace(/\d\d:\d\d:\d\d/, "TIME"))).toEqual([
      " ── run by vim TIME ──",
      "❯ do it",
      "  now",
      "I wonder.",
      "I look first.",
      "[bash] ls",
      " ✔ a … 3 lines (1.5 s)",
      " ── settled after 4.0 s · 1 answer · 2.0k tokens in (800 cached), 34 out · $0.0123 ──",
      "",
    ]);
  });

  test("of the user has no name, and thinking can be left out", () => {
    const mine = told("run/started", { runId: "r", promptIds: [], by: { clientId: "me", name: "pi-rpcd" } });
    expect(shown([mine])).not.toContain("pi-rpcd");
    const thinking = [
      begin,
      delta("hm", { type: "thinking_delta" }),
      assistant([{ type: "thinking", thinking: "hm" }]),
    ];
    expect(shown(thinking, { thinking: false })).toBe("");
  });

  test("that failed gives the reason, and so do a tool and a retry", () => {
    const text = shown([
      event({ type: "auto_retry_start", attempt: 1, maxAttempts: 3, delayMs: 1, errorMessage: "529 overloaded" }),
      event({ type: "tool_execution_end", toolCallId: "t", toolName: "read", isError: true, result: {} }),
      assistant([], { stopReason: "error", errorMessage: "no credit" }),
      told("run/ended", { runId: "r", promptIds: [], outcome: "failed", error: "no credit", startedAt: 0 }),
    ]);
    for (const part of ["retry 1 of 3: 529 overloaded", "✘ failed", "✘ no credit", "failed after 1.0 s"]) {
      expect(text).toContain(part);
    }
  });
});

describe("a message that did not stream", () => {
  test("is shown at its end: the missing rest, or everything if pieces are missing", () => {
    expect(shown([begin, delta("one "), assistant([{ type: "text", text: "one two" }])])).toBe("one two\n");
    expect(shown([assistant([{ type: "text", text: "whole" }])])).toBe("whole\n");
    expect(shown([begin, delta("a "), delta(" c"), assistant([{ type: "text", text: "a b c" }])])).toBe(
      "a  c\na b c\n",
    );
  });

  test("is reported as missing, unless the end of the message will show it", () => {
    const gap = { from: 1, to: 9, reason: "daemon_restart" };
    expect(shown([told("session/gap", gap)])).toBe(" … a part is missing (daemon_restart)\n");
    expect(shown([told("session/gap", { ...gap, onlyDeltas: true })])).toBe("");
  });
});

describe("actions of others", () => {
  test("are shown: questions, pushes, queued prompts, another state", () => {
    const by = { clientId: "other-client", name: "vim" };
    const delivery = { deliveryId: "build-7", customType: "ci", state: "delivered" };
    const session = { state: "crashed", exit: { code: 137, signal: null } };
    const text = shown([
      told("dialog/opened", { dialog: { dialogId: "d", method: "confirm", title: "Sure?" } }),
      told("dialog/resolved", { title: "Sure?", how: "answered", by: "client", client: by }),
      told("dialog/resolved", { title: "Mine", how: "answered", by: "client", client: { clientId: "me" } }),
      told("delivery/updated", { delivery: { ...delivery, state: "held" } }),
      told("delivery/updated", { delivery }),
      told("delivery/updated", { delivery }),
      told("prompt/updated", { prompt: { state: "queued", text: "later" }, by }),
      told("session/updated", { session }),
    ]);
    expect(text).toBe(
      [
        " ? Sure?",
        " ? Sure?: answered by vim",
        " » [ci] build-7 delivered",
        " queued by vim: later",
        " the session is crashed (code 137)",
        "",
      ].join("\n"),
    );
  });
});

test("a push that is inserted during a run is shown once, with its text", () => {
  const details = { "pi-rpcd": { deliveryId: "build-318" } };
  const push = { customType: "script", content: "Build 318 is green.", display: true, details };
  const other = { customType: "note", content: "hidden", display: false };
  expect(
    shown([
      event({ type: "entry_appended", entry: { type: "custom_message", ...push } }),
      event({ type: "entry_appended", entry: { type: "custom_message", ...other } }),
      event({ type: "entry_appended", entry: { type: "custom", customType: "state", data: {} } }),
      event({ type: "message_end", message: { role: "custom", ...push } }),
      event({ type: "message_end", message: { role: "custom", customType: "ci", content: "other" } }),
    ]),
  ).toBe("» [script] Build 318 is green.\n» [ci] other\n");
});

test("a compaction is an activity until it ends, also without a run", () => {
  const view = new SessionView({ canvas: new PlainCanvas(memoryOutput().output), thinking: true, asks: true });
  view.show(event({ type: "compaction_start", reason: "manual" }));
  view.show(told("session/updated", { session: { state: "idle" } }));
  expect([view.activity?.what, view.isCompacting, view.isRunning]).toEqual(["compacting", true, false]);
  view.show(event({ type: "compaction_end" }));
  expect([view.activity, view.isCompacting]).toEqual([undefined, false]);
});

describe("hostile text", () => {
  const evil = "a\u001b[2J\u009b31m\u0007\rb\u202ec";

  test("cannot move the cursor or reverse text at any position", () => {
    const text = shown([
      begin,
      delta(evil),
      assistant([{ type: "text", text: evil }], { errorMessage: evil }),
      event({ type: "message_end", message: { role: "user", content: evil } }),
      event({ type: "message_end", message: { role: "custom", customType: evil, content: evil } }),
      event({ type: "tool_execution_start", toolCallId: "t", toolName: evil, args: { command: evil } }),
      event({ type: "tool_execution_end", toolCallId: "t", toolName: evil, isError: false, result: { content: evil } }),
      event({ type: "extension_ui_request", id: "1", method: "notify", message: evil }),
      told("dialog/opened", { dialog: { title: evil } }),
      told("pending/updated", { pending: [{ label: evil }] }),
      told("run/ended", { runId: "r", promptIds: [], outcome: "failed", error: evil, startedAt: 0 }),
    ]);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for them
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    expect(text).toContain("a[2J31mbc");
  });

  test.each([
    { type: "tool_execution_start" },
    { type: "message_end", message: null },
    { type: "message_end", message: { role: "assistant", content: [null, 7], usage: "no" } },
    { type: "message_update", assistantMessageEvent: null },
    { type: "rpcd_entry", entry: null },
  ])("in the shape of %j ends nothing", (odd) => {
    expect(shown([event(odd), event({ type: "message_end", message: { role: "user", content: "on" } })])).toContain(
      "on",
    );
  });
});

test("the states of extensions are facts of the session until they end, and contain no control characters", () => {
  const view = new SessionView({ canvas: new PlainCanvas(memoryOutput().output), thinking: true, asks: true });
  const status = (statusKey: string, statusText?: string): void =>
    view.show(event({ type: "extension_ui_request", method: "setStatus", statusKey, statusText }));
  status("lint", "3 \u001b[31mwarnings\u0007\u202e");
  status("build", "building");
  expect(view.facts).toEqual(["3 warnings", "building"]);
  status("build");
  expect(view.facts).toEqual(["3 warnings"]);
});
