import { describe, expect, it } from "vitest";
import type { ContextItem, ContextNode } from "../../../context/document/document.ts";
import { type ExportOptions, exportContext } from "../../../context/document/export.ts";
import { projectItems } from "../../../context/document/projection.ts";
import { contextForStructured } from "../../../context/document/select.ts";
import { CARRIER_TYPE } from "../../../protocol/link.ts";
import { call, PiSession, text, thinking } from "../../helpers/pi-session.ts";

describe("the whole tree of a session", () => {
  it("has all branches as nodes, and the leaf", () => {
    const { document } = exportContext(branched().entries, { view: "full" });

    expect(document.items).toBeUndefined();
    expect(document.leafId).toBe("e4");
    expect(shape(document.nodes)).toEqual(["e1 < null user", "e2 < e1 assistant", "e3 < e1 assistant", "e4 < e3 user"]);
    expect(exportContext(branched().entries, { view: "full", leafId: "e2" }).document.leafId).toBe("e2");
  });

  it("has a node for each entry that the model does not see, with all of its fields", () => {
    const session = new PiSession();
    session.append("model_change", { provider: "scripted", modelId: "echo" });
    const user = session.user("hello");
    session.append("label", { targetId: user, label: "start" });
    session.append("custom", { customType: "mine", data: { n: [1] } });
    session.append("of_the_future", { anything: true });
    session.message("of_the_future", { content: "x" });
    session.edit(user, "hi");

    const nodes = full(session);
    expect(nodes.map(({ eventType, meta }) => [eventType, meta?.["native"]])).toEqual([
      ["pi.entry:model_change", { type: "model_change", provider: "scripted", modelId: "echo" }],
      [undefined, undefined],
      ["pi.entry:label", { type: "label", targetId: user, label: "start" }],
      ["pi.entry:custom", { type: "custom", customType: "mine", data: { n: [1] } }],
      ["pi.entry:of_the_future", { type: "of_the_future", anything: true }],
      ["pi.entry:message", { type: "message", message: { role: "of_the_future", timestamp: 6_000, content: "x" } }],
      ["pi.entry:context_edit", { type: "context_edit", targetId: user, replacement: { content: "hi" } }],
    ]);
  });

  it("has the fields of pi's messages that the format lacks, and the content before its edits", () => {
    const session = new PiSession();
    session.user("one");
    const answer = session.assistant([text("half")], { stopReason: "error", errorMessage: "500", responseId: "r-1" });
    session.edit(answer, null);

    expect(full(session)[1]).toMatchObject({
      content: [text("half")],
      stopReason: "error",
      meta: { native: { type: "message", errorMessage: "500", responseId: "r-1" } },
    });
  });

  it("attaches entries after an omitted one to its predecessor", () => {
    const session = new PiSession();
    session.system("prompt");
    session.user("one");
    session.append("custom_message", { customType: CARRIER_TYPE, content: "go", display: false });
    const answer = session.assistant([text("1")]);
    session.append("custom_message", { customType: CARRIER_TYPE, content: "go", display: false });

    const { document, diagnostics } = exportContext(session.entries, { view: "full" });
    expect(shape(document.nodes)).toEqual(["e2 < null user", "e4 < e2 assistant"]);
    expect(document.leafId).toBe(answer);
    expect(diagnostics.notes).toEqual({ carrier: 2, system: 1 });
    expect(shape(full(session, { includeSystem: true }))[0]).toBe("e1 < null system");
  });

  it("equals the model's view at each of its leaves", () => {
    for (const session of [branched(), eventful()]) {
      const { nodes = [] } = exportContext(session.entries, { view: "full", includeReasoning: true }).document;
      const byId = new Map(nodes.map((node) => [node.id, node]));
      for (const { id } of nodes) {
        const path: ContextNode[] = [];
        for (let node = byId.get(id); node !== undefined; node = byId.get(node.parentId ?? "")) path.unshift(node);
        const items = path.map(({ id: nodeId, parentId: _, ...item }) => ({ ...item, nodeId }));

        const projected = exportContext(session.entries, { leafId: id, includeReasoning: true }).document.items;
        expect(projectItems(items as readonly ContextItem[])).toEqual(projected);
      }
    }
  });
});

it("gives no call of pi's the result that it has on another branch, unlike a tree of another program", () => {
  const session = new PiSession();
  session.user("one");
  const calls = session.assistant([call("c1"), call("c2")]);
  session.result("c1", "1");
  session.result("c2", "2");
  session.branch(calls);
  session.assistant([text("Never mind.")]);

  const { document } = exportContext(session.entries, { view: "full" });
  expect(contextForStructured(document).map(({ role }) => role)).toEqual(["user", "assistant", "assistant"]);
  const nodes = document.nodes?.map(({ meta: _, ...node }) => node);
  expect(contextForStructured({ ...document, nodes }).map(({ role }) => role)).toEqual([
    ...["user", "assistant", "toolResult", "toolResult", "assistant"],
  ]);
});

function branched(): PiSession {
  const session = new PiSession();
  const first = session.user("one");
  session.assistant([text("left")]);
  session.branch(first);
  session.assistant([text("right")]);
  session.user("two");
  return session;
}

/** A session with everything that the projection has a rule for. */
function eventful(): PiSession {
  const session = new PiSession();
  session.system("prompt");
  const first = session.user("one");
  session.assistant([thinking("hm", "s"), text("1"), call("c1"), call("c2")]);
  const result = session.result("c1", "long");
  session.result("c2", "2");
  session.edit(result, "short");
  session.assistant([call("c3")], { stopReason: "error" });
  const failed = session.assistant([text("fail")], { stopReason: "aborted" });
  session.edit(failed, null);
  const label = session.append("label", { targetId: first, label: "x" });
  session.user("two");
  session.compaction("sum one", label);
  session.assistant([call("c4")]);
  session.user("three");
  const system = session.system("more");
  session.user("four");
  session.compaction("sum two", system);
  const fork = session.user("five");
  session.message("bashExecution", { command: "ls", output: "a", exitCode: 0, excludeFromContext: true });
  session.append("branch_summary", { fromId: first, summary: "tried" });
  session.branch(fork);
  session.compaction("sum three", undefined);
  session.user("six");
  session.edit(first, null);
  return session;
}

function full(session: PiSession, options: ExportOptions = {}): readonly ContextNode[] {
  return exportContext(session.entries, { ...options, view: "full" }).document.nodes ?? [];
}

function shape(nodes: readonly ContextNode[] | undefined): readonly string[] {
  return (nodes ?? []).map(({ id, parentId, role }) => `${id} < ${parentId} ${role}`);
}
