import { describe, expect, it } from "vitest";
import type { ContextItem } from "../../../context/document/document.ts";
import { type ExportOptions, exportContext } from "../../../context/document/export.ts";
import { CARRIER_TYPE, DELIVERY_MARK } from "../../../protocol/link.ts";
import { call, PiSession, sessionModel, text, thinking, usage } from "../../helpers/pi-session.ts";

describe("the model's view of a session", () => {
  it("is the path to the leaf as items, in order, with everything that the format has a field for", () => {
    const session = new PiSession();
    session.system("You are pi.");
    const user = session.user([text("Look"), { type: "image", data: "iVBORw0K", mimeType: "image/png" }]);
    const answer = session.assistant([text("I look."), call("c1")], { responseId: "r-1" });
    session.result("c1", "seen", { details: { lines: 1 }, usage: usage(3) });
    session.assistant([text("Done.")]);

    const { document, diagnostics } = exportContext(session.entries);

    expect(document).toMatchObject({
      format: "pi-rpcd/context",
      version: 1,
      source: { kind: "pi-session", id: "s-1" },
    });
    expect(document.nodes).toBeUndefined();
    expect(document.items).toEqual([
      {
        nodeId: user,
        role: "user",
        content: [text("Look"), { type: "image", data: "iVBORw0K", mimeType: "image/png" }],
        timestamp: 2_000,
      },
      {
        nodeId: answer,
        role: "assistant",
        content: [text("I look.")],
        toolCalls: [{ id: "c1", name: "bash", arguments: { command: "c1" } }],
        model: { api: sessionModel.api, provider: sessionModel.provider, id: sessionModel.model },
        stopReason: "toolUse",
        usage: usage(7),
        timestamp: 3_000,
      },
      {
        nodeId: "e4",
        role: "toolResult",
        toolCallId: "c1",
        toolName: "bash",
        content: [text("seen")],
        isError: false,
        details: { lines: 1 },
        usage: usage(3),
        timestamp: 4_000,
      },
      expect.objectContaining({ nodeId: "e5", role: "assistant", content: [text("Done.")] }),
    ]);
    expect(diagnostics).toEqual({ entries: 5, nodes: 4, pairs: 1, notes: { system: 1 } });
  });

  it("omits entries that the model does not see", () => {
    const session = new PiSession();
    session.append("model_change", { provider: "scripted", modelId: "echo" });
    session.append("thinking_level_change", { thinkingLevel: "high" });
    const user = session.user("hello");
    session.append("label", { targetId: user, label: "start" });
    session.append("session_info", { name: "A name" });
    session.append("usage", { kind: "cache_warm", usage: usage(5) });
    session.append("custom", { customType: "mine", data: { n: 1 } });
    session.message("bashExecution", { command: "secret", output: "x", exitCode: 0, excludeFromContext: true });
    session.append("custom_message", { customType: CARRIER_TYPE, content: "go", display: false });
    session.append("of_the_future", { anything: true });

    const { document, diagnostics } = exportContext(session.entries);

    expect(texts(document.items)).toEqual(["user hello"]);
    expect(diagnostics.notes).toEqual({ not_for_model: 8, carrier: 1 });
  });

  it("begins with the newest compaction, followed by the kept entries and the later ones", () => {
    const session = new PiSession();
    session.system("old prompt");
    session.user("one");
    session.compaction("first summary", undefined);
    const kept = session.user("two");
    session.assistant([text("2")]);
    session.compaction("second summary", kept, { details: { readFiles: ["a"] }, fromHook: true });
    session.user("three");

    const { document, diagnostics } = exportContext(session.entries);

    expect(texts(document.items)).toEqual(["event second summary", "user two", "assistant 2", "user three"]);
    expect(document.items?.[0]).toEqual({
      nodeId: "e6",
      role: "event",
      eventType: "pi.compaction",
      content: [text("second summary")],
      timestamp: Date.parse(String(session.entries[6]?.["timestamp"])),
      meta: { native: { type: "compaction", tokensBefore: 1234, details: { readFiles: ["a"] }, fromHook: true } },
    });
    expect(diagnostics.notes).toMatchObject({ compacted: 2 });
  });

  it("keeps entries from the first one with an item if the compaction names one without", () => {
    const session = new PiSession();
    session.user("one");
    const carrier = session.append("custom_message", { customType: CARRIER_TYPE, content: "go", display: false });
    session.user("two");
    session.compaction("summary", carrier);

    expect(texts(exportContext(session.entries).document.items)).toEqual(["event summary", "user two"]);
  });

  it("keeps nothing if the compaction names an entry that is not before it", () => {
    const session = new PiSession();
    session.user("one");
    session.compaction("summary", "e99");
    session.user("two");

    expect(texts(exportContext(session.entries).document.items)).toEqual(["event summary", "user two"]);
  });

  it("has the last edit of an entry on its branch, and not the entry that an edit removed", () => {
    const session = new PiSession();
    const long = session.user("a long text");
    const answer = session.assistant([text("first"), call("c1")]);
    const result = session.result("c1", "long result");
    const failed = session.assistant([text("broken")]);
    session.edit(long, "short");
    session.edit(long, [text("shorter")]);
    session.edit(answer, [text("second"), thinking("hm"), call("c1", { command: "other" })]);
    session.edit(result, "short result");
    session.edit(failed, null);

    const { items } = exportContext(session.entries, { includeReasoning: true }).document;

    expect(texts(items)).toEqual(["user shorter", "assistant second hm", "toolResult short result"]);
    expect(items?.[1]).toMatchObject({ toolCalls: [{ arguments: { command: "other" } }] });
    expect(items?.[1]?.blocks).toHaveLength(3);
  });

  it("ignores the edits of another branch", () => {
    const session = new PiSession();
    const first = session.user("one");
    session.edit(first, null);
    session.branch(first);
    session.assistant([text("1")]);

    const { document, diagnostics } = exportContext(session.entries);
    expect(texts(document.items)).toEqual(["user one", "assistant 1"]);
    expect(diagnostics.notes).toEqual({ other_branch: 1 });
  });

  it("belongs to the requested branch", () => {
    const session = new PiSession();
    const first = session.user("one");
    const left = session.assistant([text("left")]);
    session.branch(first);
    session.assistant([text("right")]);

    expect(texts(exportContext(session.entries, { leafId: left }).document.items)).toEqual([
      "user one",
      "assistant left",
    ]);
    expect(() => exportContext(session.entries, { leafId: "a1b2c3d4" })).toThrow(
      expect.objectContaining({ kind: "entry_not_found", message: 'Entry "a1b2c3d4" is not in this session.' }),
    );
  });

  it("omits failed answers, which pi does not send, and their calls' results, which no service accepts", () => {
    const session = new PiSession();
    session.user("one");
    session.assistant([text("half an ans")], { stopReason: "aborted" });
    session.assistant([call("c1")], { stopReason: "error", errorMessage: "500" });
    session.result("c1", "late");
    session.assistant([text("one indeed")], { stopReason: "length" });

    const { document, diagnostics } = exportContext(session.entries);
    expect(texts(document.items)).toEqual(["user one", "assistant one indeed"]);
    expect(diagnostics.notes).toEqual({ failed_answer: 2, orphan_result: 1 });
  });

  it("answers calls without a result as pi does", () => {
    const session = new PiSession();
    session.user("one");
    session.assistant([call("c1"), call("c2"), call("c3")]);
    session.result("c2", "two");
    session.append("label", { targetId: "e1", label: "here" });
    session.user("well?");
    session.assistant([call("c4")]);

    const { document, diagnostics } = exportContext(session.entries);
    expect(texts(document.items)).toEqual([
      "user one",
      "assistant ",
      "toolResult two",
      "toolResult No result provided",
      "toolResult No result provided",
      "user well?",
      "assistant ",
      "toolResult No result provided",
    ]);
    expect(document.items?.[3]).toMatchObject({ toolCallId: "c1", toolName: "bash", isError: true });
    expect(diagnostics.notes).toEqual({ missing_result: 3, not_for_model: 1 });
  });

  it("turns pi's entries other than messages into events that can restore them", () => {
    const session = new PiSession();
    session.user("one");
    session.message("bashExecution", {
      command: "ls",
      output: "a\nb",
      exitCode: 2,
      cancelled: false,
      truncated: true,
      fullOutputPath: "/tmp/all",
    });
    session.append("branch_summary", { fromId: "e1", summary: "went left", details: { n: 1 }, fromHook: false });
    session.append("custom_message", { customType: "ci", content: "green", display: true, details: { run: 7 } });
    session.append("custom_message", {
      customType: "push",
      content: [text("pushed")],
      display: false,
      details: { [DELIVERY_MARK]: { deliveryId: "d-1" }, kept: 1 },
    });
    session.append("custom_message", {
      customType: "pi-rpcd.event",
      content: [text("Event: git.push\npushed 3 commits")],
      display: true,
      details: { eventType: "git.push", meta: { ref: "main" } },
    });

    const { document, diagnostics } = exportContext(session.entries);
    const events = document.items?.slice(1).map(({ eventType, content, meta }) => ({ eventType, content, meta }));

    expect(events).toEqual([
      {
        eventType: "pi.bash",
        content: [text("a\nb")],
        meta: {
          native: {
            type: "bashExecution",
            command: "ls",
            exitCode: 2,
            cancelled: false,
            truncated: true,
            fullOutputPath: "/tmp/all",
          },
        },
      },
      {
        eventType: "pi.branchSummary",
        content: [text("went left")],
        meta: { native: { type: "branch_summary", fromId: "e1", details: { n: 1 }, fromHook: false } },
      },
      {
        eventType: "pi.custom:ci",
        content: [text("green")],
        meta: { native: { type: "custom_message", customType: "ci", display: true, details: { run: 7 } } },
      },
      {
        eventType: "pi.custom:push",
        content: [text("pushed")],
        meta: { native: { type: "custom_message", customType: "push", display: false, details: { kept: 1 } } },
      },
      { eventType: "git.push", content: [text("pushed 3 commits")], meta: { ref: "main" } },
    ]);
    expect(diagnostics.notes).toEqual({ delivery_mark: 1 });
  });

  it("has system messages only on request, as the resulting prompt", () => {
    const session = new PiSession();
    session.system("Base.", { tools: "Tools A", cwd: "/work" });
    session.user("one");
    session.system("More.", { tools: "Tools B", cwd: null });

    expect(texts(exportContext(session.entries).document.items)).toEqual(["user one"]);
    expect(texts(exportContext(session.entries, { includeSystem: true }).document.items)).toEqual([
      "system Base.\n\nMore.\n\nTools B",
      "user one",
    ]);
  });

  it("has the prompt of the newest compaction instead of earlier ones", () => {
    const session = new PiSession();
    session.system("Old.");
    const kept = session.user("one");
    session.compaction("summary", kept, { systemMessage: { role: "system", content: "New.", timestamp: 1 } });

    expect(texts(exportContext(session.entries, { includeSystem: true }).document.items)).toEqual([
      "system New.",
      "event summary",
      "user one",
    ]);
  });

  const native = [
    thinking("hm", "sig"),
    { ...text("I see."), textSignature: "t" },
    { ...call("c1"), thoughtSignature: "g" },
  ];

  it("keeps an assistant's native blocks if the format's fields do not cover them", () => {
    const session = new PiSession();
    session.user("one");
    session.assistant(native);
    session.result("c1", "1");
    session.assistant([call("c2"), text("behind the call")]);
    session.result("c2", "2");
    session.assistant([text("a"), text("b"), call("c3")]);

    const [, first, , second, , third] = items(session, { includeReasoning: true });
    expect(first).toMatchObject({
      content: [{ type: "reasoning", text: "hm", signature: "sig" }, text("I see.")],
      toolCalls: [{ id: "c1", name: "bash", arguments: { command: "c1" } }],
      blocks: native,
    });
    expect(second?.blocks).toEqual([call("c2"), text("behind the call")]);
    expect(third?.blocks).toBeUndefined();
  });

  it("has reasoning only on request, both in the content and in the blocks", () => {
    const session = new PiSession();
    session.user("one");
    session.assistant(native);

    const { document, diagnostics } = exportContext(session.entries);
    expect(JSON.stringify(document)).not.toContain("hm");
    expect(document.items?.[1]?.blocks).toEqual(native.slice(1));
    expect(diagnostics.notes).toMatchObject({ reasoning: 1 });
  });

  it("has a text of type and size for each image if images are not requested", () => {
    const session = new PiSession();
    session.user([{ type: "image", data: "iVBORw0K", mimeType: "image/png" }]);

    const { document, diagnostics } = exportContext(session.entries, { includeImages: false });
    expect(document.items?.[0]?.content).toEqual([text("[Image left out: image/png, 6 bytes]")]);
    expect(diagnostics.notes).toEqual({ image: 1 });
  });

  it("reads the files of pi's first versions", () => {
    const entries = [
      { type: "session", id: "old", timestamp: "2024-01-01T00:00:00Z", cwd: "/" },
      { type: "message", timestamp: "2024-01-01T00:00:01Z", message: { role: "user", content: "zero", timestamp: 1 } },
      { type: "message", timestamp: "2024-01-01T00:00:02Z", message: { role: "user", content: "one", timestamp: 2 } },
      { type: "message", message: { role: "hookMessage", customType: "h", content: "hooked", display: true } },
      { type: "compaction", summary: "sum", firstKeptEntryIndex: 2, tokensBefore: 5 },
    ];
    expect(texts(exportContext(entries).document.items)).toEqual(["event sum", "user one", "event hooked"]);
  });

  it("is empty for a session without entries", () => {
    expect(exportContext([]).document.items).toEqual([]);
    expect(exportContext([new PiSession().entries[0]]).document.items).toEqual([]);
  });
});

function items(session: PiSession, options: ExportOptions): readonly ContextItem[] {
  return exportContext(session.entries, options).document.items ?? [];
}

/** Each item in a line: its role and its texts. */
function texts(given: readonly ContextItem[] | undefined): readonly string[] {
  return (given ?? []).map(({ role, content }) => {
    return `${role} ${content.map((part) => ("text" in part ? part.text : part.type)).join(" ")}`;
  });
}
