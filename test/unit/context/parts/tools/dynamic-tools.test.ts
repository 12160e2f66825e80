import { describe, expect, test } from "vitest";
import { executedTool } from "../../../../../context/parts/tool-results/tool-results.ts";
import type { TakenTools } from "../../../../../context/parts/tools/dynamic-tools.ts";
import { resolveOptimisation } from "../../../../../protocol/optimisation/resolve.ts";
import { FakeSession, numbered } from "./fake-session.ts";

const three = ["search_tools", "describe_tools", "execute_tool"];
const usual = ["read", "bash", ...three];

describe.each([
  ["a pi that can hide declarations", true],
  ["a pi that cannot", false],
] as const)("on %s", (_name, isNew) => {
  test("all but the kept tools are replaced by three", () => {
    const session = new FakeSession({ isNew }).start();
    expect(session.declared).toEqual(usual);
    expect(session.report().figures).toMatchObject({ hiddenTools: 30, tools: isNew ? "hiding" : "taking" });
    expect(session.report().savedTokens).toBeGreaterThan(0);
    expect(session.degraded).toEqual([]);
  });

  test.each([
    ["switched off", { enabled: false }],
    ["in mode off", { mode: "off" }],
    ["with a higher minimum than there are tools", { minTools: 33 }],
  ] as const)("%s, nothing is registered and nothing changes", (_case, config) => {
    const session = new FakeSession({ isNew, config }).start();
    expect(session.names).toEqual(["read", "bash", ...numbered(30)]);
    expect(session.declared).toEqual(["read", "bash", ...numbered(30)]);
    expect(session.sets).toBe(0);
    expect(session.appended).toEqual([]);
  });

  test("tools in `keep` stay declared, and so do our own tools", () => {
    const ours = ["recall", "get_skill_detail", "compress"];
    const session = new FakeSession({ isNew, tools: [...numbered(30), ...ours], config: { keep: ["tool_3"] } }).start();
    expect(session.declared).toEqual(["tool_3", ...ours, ...three]);
  });

  test("later tools are not declared, and are found", async () => {
    const session = new FakeSession({ isNew }).start();
    session.register({ name: "zebra" });
    session.tell("tool_execution_end");
    expect(session.declared).toEqual(usual);
    expect(await session.call("search_tools", { query: "zebra" })).toContain("- zebra(text?): ");
    session.tell("agent_settled");
    expect(session.declared).toEqual(usual);
  });

  test("extensions that register their tools at the start of a session are counted", () => {
    const session = new FakeSession({ isNew, tools: numbered(5) });
    session.tell("session");
    expect(session.declared).toHaveLength(7);
    for (const name of numbered(30).slice(5)) session.register({ name });
    session.tell("before_agent_start");
    expect(session.declared).toEqual(usual);
  });

  test("a later life of the session has the three, even with fewer tools than before", () => {
    const { appended } = new FakeSession({ isNew }).start();
    expect(appended).toHaveLength(1);
    const later = new FakeSession({ isNew, tools: numbered(4), entries: appended }).start();
    expect(later.declared).toEqual(usual);
    expect(later.appended).toHaveLength(1);
  });

  test.each([
    null,
    7,
    { v: 2, on: true, taken: ["read"] },
    { v: 1, on: "yes" },
    { v: 1, on: true, taken: [7, {}, "x".repeat(999)] },
  ])("an entry that anybody may have written does no harm: %j", (data) => {
    const session = new FakeSession({ isNew, entries: [{ customType: "pi-rpcd.tools", data }] }).start();
    expect(session.declared).toEqual(expect.arrayContaining(usual));
    expect(session.degraded).toEqual([]);
  });

  test("when it is switched off, all tools are declared again and the three are removed", () => {
    const session = new FakeSession({ isNew }).start();
    session.config = { enabled: false };
    session.tell("before_agent_start");
    expect([...session.declared].sort()).toEqual(["read", "bash", ...numbered(30)].sort());
    session.tell("agent_start");
    session.config = { enabled: true };
    session.tell("before_agent_start");
    expect([...session.declared].sort()).toEqual([...usual].sort());
  });

  test.each(three)("another extension's %s is left alone, and no tool is hidden", (name) => {
    const session = new FakeSession({ isNew, tools: [...numbered(30), name] }).start();
    expect(session.declared).toEqual(["read", "bash", ...numbered(30), name]);
    expect(session.degraded).toContain(`Another extension has a tool named ${name}.`);
  });

  test.each(three)("if the session excludes %s, no tool is hidden", (name) => {
    const session = new FakeSession({ isNew, excluded: [name] }).start();
    expect(session.declared).toEqual(["read", "bash", ...numbered(30)]);
    expect(session.degraded).toEqual([`The session's tools leave ${name} out.`]);
  });

  test("a missing file of synonyms is reported, and the tools are found without it", async () => {
    const session = new FakeSession({ isNew, config: { synonyms: "no-such.json" } }).start();
    expect(session.degraded[0]).toMatch(/^dynamicTools\.synonyms was not read\. /);
    expect(await session.call("search_tools", { query: "what tool 7 does" })).toContain("- tool_7(text?): ");
  });

  test("a query without a match returns the existing tools, and huge queries are cut", async () => {
    const session = new FakeSession({ isNew }).start();
    const nothing = await session.call("search_tools", { query: "xylophone" });
    expect(nothing).toBe(
      "No tool fits. Try other words: there are 30 tools that are not declared, among them tool (30).",
    );
    expect(await session.call("search_tools", { query: "tool ".repeat(1_000_000), limit: 1e9 })).toContain(
      "20 of 30 tools",
    );
    expect(await session.call("search_tools", { query: "tool", limit: Number.NaN })).toContain("8 of 30 tools");
  });

  test("at most eight are described at a time, and an unknown one gets three similar names", async () => {
    const session = new FakeSession({ isNew }).start();
    const text = await session.call("describe_tools", { ids: numbered(9) });
    expect(text.match(/^## /gm)).toHaveLength(8);
    expect(text).toContain("Only 8 are described at a time.");
    const unknown = await session.call("describe_tools", { ids: ["tool_99"] });
    expect(unknown).toMatch(/^There is no tool "tool_99"\. The nearest are tool_\d+, tool_\d+, tool_\d+\./);
  });

  test("the three cannot run each other, nor compress, and params are bounded and validated", async () => {
    const session = new FakeSession({ isNew }).start();
    for (const name of [...three, "compress"]) {
      const refused = await session.call("execute_tool", { id: name, params: {} });
      expect(refused).toBe(`! execute_tool does not run ${name}: call it by its name.`);
    }
    const huge = { text: "x".repeat(300_000) };
    expect(await session.call("execute_tool", { id: "tool_1", params: huge })).toContain("at most 262144 are taken");
    const wrong = await session.call("execute_tool", { id: "tool_1", params: { text: {} } });
    expect(wrong).toContain("params/text must be string (#/properties/text/type)");
  });
});

test("a tool's result is passed on, and its failure is an error", async () => {
  const session = new FakeSession().start();
  expect(await session.call("execute_tool", { id: "tool_1", params: { text: "a" } })).toBe("ran tool_1");
  const failed = () => ({ isError: true, content: [{ type: "text" as const, text: "No shell here." }] });
  expect(await session.call("execute_tool", { id: "bash", params: {} }, failed)).toBe("! No shell here.");
});

test("the model's arguments given as text are parsed", () => {
  const session = new FakeSession().start();
  const prepare = session.definition("execute_tool").prepareArguments as (args: unknown) => unknown;
  expect(prepare({ id: "x", params: '{"a":1}' })).toEqual({ id: "x", params: { a: 1 } });
  expect(prepare({ id: "x", params: "{" })).toEqual({ id: "x", params: "{" });
  expect(prepare({ id: "x", params: null })).toEqual({ id: "x", params: {} });
  expect(prepare(undefined)).toBeUndefined();
});

test("if tools are only deferred, pi's own search is activated, once", () => {
  const tools = [
    ...numbered(30).map((name) => ({ name, exposure: "deferred" as const })),
    { name: "tool_search", exposure: "model-only" as const },
  ];
  const session = new FakeSession({ tools });
  session.setActive(["read", "bash"]);
  session.start().start();
  expect(session.declared).toEqual(["read", "bash", "tool_search"]);
  expect(session.sets).toBe(2);
  expect(session.report().figures).toMatchObject({ tools: "native", hiddenTools: 0 });
});

test.each([
  ["mode three is asked for", { mode: "three" }, []],
  ["one of them is direct", {}, ["direct_one"]],
] as const)("the three are used where %s", (_case, config, more) => {
  const deferred = numbered(30).map((name) => ({ name, exposure: "deferred" as const }));
  const session = new FakeSession({
    tools: [...deferred, { name: "tool_search", exposure: "model-only" }, ...more],
    config,
  });
  session.start();
  expect(session.declared).toEqual(["read", "bash", "tool_search", ...three]);
});

test("a deferred tool that is activated is declared, and one that was switched off is not found", async () => {
  const session = new FakeSession({
    tools: [...numbered(30), { name: "deferred_one", exposure: "deferred", active: true }],
  }).start();
  expect(session.declared).toEqual(["read", "bash", "deferred_one", ...three]);
  session.setActive(session.active.filter((name) => name !== "tool_7"));
  expect(await session.call("execute_tool", { id: "tool_7", params: {} })).toContain('! There is no tool "tool_7".');
});

test("if an extension sets other active tools they are declared, because the model could not reach them otherwise", () => {
  const session = new FakeSession().start();
  session.setActive(["read", "tool_1", "execute_tool"]);
  expect(session.declared).toEqual(["read", "tool_1", "execute_tool"]);
});

describe("on a pi that cannot run one tool on behalf of another", () => {
  const activated = async (session: FakeSession, id: string): Promise<string> =>
    await session.call("execute_tool", { id, params: {} });

  test("a tool is activated on request, together with those that were described, once in a run", async () => {
    const session = new FakeSession({ isNew: false }).start();
    const before = session.sets;
    await session.call("describe_tools", { ids: ["tool_1", "tool_2"] });
    expect(await activated(session, "tool_3")).toContain("call it by its name, with these params");
    expect(session.declared).toEqual([...usual, "tool_1", "tool_2", "tool_3"]);
    // The request with the change was not sent yet.
    expect(await activated(session, "tool_4")).toContain("from now on");
    session.tell("turn_start");
    expect(await activated(session, "tool_5")).toContain(
      "! tool_5 was not run. The declared tools change at most once",
    );
    expect(session.sets - before).toBe(2);
    session.tell("agent_settled");
    expect(session.declared).toEqual([...usual, "tool_1", "tool_2", "tool_3", "tool_4", "tool_5"]);
    // That change belonged to the next run.
    expect(await activated(session, "tool_6")).toContain("! tool_6 was not run.");
  });

  test("a declared tool must be called by its name: a guard of `bash` does not see execute_tool", async () => {
    const session = new FakeSession({ isNew: false }).start();
    expect(await activated(session, "bash")).toBe("! bash is declared to you: call it by its name.");
  });

  test("without activation, which is the default, nothing is hidden, and the part says why", () => {
    const session = new FakeSession({ isNew: false, config: { allowActivation: false } }).start();
    expect(session.declared).toHaveLength(32);
    expect(session.degraded).toEqual(["This pi cannot run one tool for another, so all tools stay declared."]);
    expect(resolveOptimisation({ dynamicTools: { enabled: true } }).dynamicTools.allowActivation).toBe(false);
  });

  test("a tool that another extension activates stays active, though it was hidden before", () => {
    const session = new FakeSession({ isNew: false }).start();
    session.setActive([...session.active, "tool_9"]);
    session.tell("tool_execution_end");
    session.register({ name: "zebra" });
    session.tell("tool_execution_end");
    expect(session.declared).toEqual([...usual, "tool_9"]);
  });

  test("if each registration activates all of the session's tools, they are hidden again", () => {
    const session = new FakeSession({ isNew: false }).start();
    session.register({ name: "zebra" });
    session.setActive([...session.active, ...numbered(30)]);
    session.tell("tool_execution_end");
    expect(session.declared).toEqual(usual);
  });

  test("tools that the model requested are declared in a later life, wherever their extension registers them", async () => {
    const session = new FakeSession({ isNew: false }).start();
    await activated(session, "tool_29");
    session.tell("agent_settled");
    const later = new FakeSession({ isNew: false, tools: numbered(29), entries: session.appended });
    later.tell("session");
    later.register({ name: "tool_29" });
    later.tell("before_agent_start");
    expect(later.declared).toEqual([...usual, "tool_29"]);
  });

  test("after a reload with the part off, hidden tools are restored", () => {
    const { appended, memory } = new FakeSession({ isNew: false }).start();
    const later = new FakeSession({ isNew: false, entries: appended, memory, config: { enabled: false } });
    later.setActive(["read", "bash"]);
    later.start();
    expect(later.declared).toEqual(["read", "bash", ...numbered(30)]);
  });

  test("with the part off, no tool is activated because a session's file names it", () => {
    const data = { v: 1, on: true, taken: ["tool_1", "tool_2"], given: [] };
    const session = new FakeSession({
      isNew: false,
      entries: [{ customType: "pi-rpcd.tools", data }],
      config: { enabled: false },
    });
    session.setActive(["read", "bash"]);
    session.start();
    expect(session.declared).toEqual(["read", "bash"]);
    expect(session.appended).toHaveLength(1);
  });

  test("while another extension restricts the active tools, no hidden tool is found, activated or restored", async () => {
    const session = new FakeSession({ isNew: false }).start();
    session.setActive(session.active.filter((name) => name !== "bash"));
    expect(await activated(session, "tool_1")).toContain('! There is no tool "tool_1".');
    session.tell("tool_execution_end");
    expect(session.degraded).toHaveLength(1);
    expect(session.memory.kept.of<TakenTools>("takenTools").value?.names.size).toBe(0);
    session.setActive([...session.active, "bash"]);
    expect(await activated(session, "tool_1")).toContain("call it by its name, with these params");
    session.setActive(["read", ...three]);
    session.config = { enabled: false };
    session.tell("before_agent_start");
    expect(session.declared).toEqual(["read"]);
  });
});

test("a result of execute_tool is cut by the policy of the tool that was run", () => {
  expect(executedTool({ toolName: "execute_tool", details: { tool: "read" } })).toBe("read");
  expect(executedTool({ toolName: "bash", details: { tool: "read" } })).toBe("bash");
  for (const details of [undefined, null, 7, {}, { tool: 7 }]) {
    expect(executedTool({ toolName: "execute_tool", details })).toBe("execute_tool");
  }
});
