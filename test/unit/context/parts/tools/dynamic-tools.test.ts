import { describe, expect, test } from "vitest";
import { executedTool } from "../../../../../context/parts/tools/executed.ts";
import { FakeBench, numbered } from "./fake-bench.ts";

const three = ["search_tools", "describe_tools", "execute_tool"];
const usual = ["read", "bash", ...three];

describe.each([
  ["a pi that can hide declarations", true],
  ["a pi that cannot", false],
] as const)("on %s", (_name, isNew) => {
  test("all but the kept tools are replaced by three", () => {
    const bench = new FakeBench({ isNew }).start();
    expect(bench.declared).toEqual(usual);
    expect(bench.report().figures).toMatchObject({ hiddenTools: 30, tools: isNew ? "hiding" : "taking" });
    expect(bench.report().savedTokens).toBeGreaterThan(0);
    expect(bench.degraded).toEqual([]);
  });

  test.each([
    ["switched off", { enabled: false }],
    ["in mode off", { mode: "off" }],
    ["with more tools wanted than there are", { minTools: 33 }],
  ] as const)("%s, nothing is registered and nothing changes", (_case, config) => {
    const bench = new FakeBench({ isNew, config }).start();
    expect(bench.names).toEqual(["read", "bash", ...numbered(30)]);
    expect(bench.declared).toEqual(["read", "bash", ...numbered(30)]);
    expect(bench.sets).toBe(0);
    expect(bench.appended).toEqual([]);
  });

  test("what `keep` names stays declared, and so do the tools of ours", () => {
    const ours = ["recall", "get_skill_detail", "compress"];
    const bench = new FakeBench({ isNew, tools: [...numbered(30), ...ours], config: { keep: ["tool_3"] } }).start();
    expect(bench.declared).toEqual(["tool_3", ...ours, ...three]);
  });

  test("tools that come later are not declared, and are found", async () => {
    const bench = new FakeBench({ isNew }).start();
    bench.register({ name: "zebra" });
    bench.tell("tool_execution_end");
    expect(bench.declared).toEqual(usual);
    expect(await bench.call("search_tools", { query: "zebra" })).toContain("- zebra(text?): ");
    bench.tell("agent_settled");
    expect(bench.declared).toEqual(usual);
  });

  test("extensions that register their tools at the start of a session are counted", () => {
    const bench = new FakeBench({ isNew, tools: numbered(5) });
    bench.tell("session");
    expect(bench.declared).toHaveLength(7);
    for (const name of numbered(30).slice(5)) bench.register({ name });
    bench.tell("before_agent_start");
    expect(bench.declared).toEqual(usual);
  });

  test("a later life of the session has the three, even with fewer tools than before", () => {
    const { appended } = new FakeBench({ isNew }).start();
    expect(appended).toHaveLength(1);
    const later = new FakeBench({ isNew, tools: numbered(4), entries: appended }).start();
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
    const bench = new FakeBench({ isNew, entries: [{ customType: "pi-rpcd.tools", data }] }).start();
    expect(bench.declared).toEqual(expect.arrayContaining(usual));
    expect(bench.degraded).toEqual([]);
  });

  test("when it is switched off, all tools are declared again and the three are gone", () => {
    const bench = new FakeBench({ isNew }).start();
    bench.config = { enabled: false };
    bench.tell("before_agent_start");
    expect([...bench.declared].sort()).toEqual(["read", "bash", ...numbered(30)].sort());
    bench.tell("agent_start");
    bench.config = { enabled: true };
    bench.tell("before_agent_start");
    expect([...bench.declared].sort()).toEqual([...usual].sort());
  });

  test.each(three)("another extension's %s is left alone, and no tool is hidden", (name) => {
    const bench = new FakeBench({ isNew, tools: [...numbered(30), name] }).start();
    expect(bench.declared).toEqual(["read", "bash", ...numbered(30), name]);
    expect(bench.degraded).toContain(`Another extension has a tool named ${name}.`);
  });

  test.each(three)("where the session leaves %s out, no tool is hidden", (name) => {
    const bench = new FakeBench({ isNew, excluded: [name] }).start();
    expect(bench.declared).toEqual(["read", "bash", ...numbered(30)]);
    expect(bench.degraded).toEqual([`The session's tools leave ${name} out.`]);
  });

  test("a file of synonyms that is not there is told, and the tools are found without it", async () => {
    const bench = new FakeBench({ isNew, config: { synonyms: "no-such.json" } }).start();
    expect(bench.degraded[0]).toMatch(/^dynamicTools\.synonyms was not read\. /);
    expect(await bench.call("search_tools", { query: "what tool 7 does" })).toContain("- tool_7(text?): ");
  });

  test("nothing that fits gives what there is, and huge questions are cut", async () => {
    const bench = new FakeBench({ isNew }).start();
    const nothing = await bench.call("search_tools", { query: "xylophone" });
    expect(nothing).toBe(
      "No tool fits. Try other words: there are 30 tools that are not declared, among them tool (30).",
    );
    expect(await bench.call("search_tools", { query: "tool ".repeat(1_000_000), limit: 1e9 })).toContain(
      "20 of 30 tools",
    );
    expect(await bench.call("search_tools", { query: "tool", limit: Number.NaN })).toContain("8 of 30 tools");
  });

  test("at most eight are described at a time, and unknown ones give three that are near", async () => {
    const bench = new FakeBench({ isNew }).start();
    const text = await bench.call("describe_tools", { ids: numbered(9) });
    expect(text.match(/^## /gm)).toHaveLength(8);
    expect(text).toContain("Only 8 are described at a time.");
    const unknown = await bench.call("describe_tools", { ids: ["tool_99"] });
    expect(unknown).toMatch(/^There is no tool "tool_99"\. The nearest are tool_\d+, tool_\d+, tool_\d+\./);
  });

  test("the three do not run each other, nor compress, and params are bounded and checked", async () => {
    const bench = new FakeBench({ isNew }).start();
    for (const name of [...three, "compress"]) {
      const refused = await bench.call("execute_tool", { id: name, params: {} });
      expect(refused).toBe(`! execute_tool does not run ${name}: call it by its name.`);
    }
    const huge = { text: "x".repeat(300_000) };
    expect(await bench.call("execute_tool", { id: "tool_1", params: huge })).toContain("at most 262144 are taken");
    const wrong = await bench.call("execute_tool", { id: "tool_1", params: { text: {} } });
    expect(wrong).toContain("params/text must be string (#/properties/text/type)");
  });
});

test("what a tool gives is passed on, and what it fails with is an error", async () => {
  const bench = new FakeBench().start();
  expect(await bench.call("execute_tool", { id: "tool_1", params: { text: "a" } })).toBe("ran tool_1");
  const failed = () => ({ isError: true, content: [{ type: "text" as const, text: "No shell here." }] });
  expect(await bench.call("execute_tool", { id: "bash", params: {} }, failed)).toBe("! No shell here.");
});

test("the model's arguments as text are read as what they are", () => {
  const bench = new FakeBench().start();
  const prepare = bench.definition("execute_tool").prepareArguments as (args: unknown) => unknown;
  expect(prepare({ id: "x", params: '{"a":1}' })).toEqual({ id: "x", params: { a: 1 } });
  expect(prepare({ id: "x", params: "{" })).toEqual({ id: "x", params: "{" });
  expect(prepare({ id: "x", params: null })).toEqual({ id: "x", params: {} });
  expect(prepare(undefined)).toBeUndefined();
});

test("where tools are deferred alone, pi's own search is activated, once", () => {
  const tools = [
    ...numbered(30).map((name) => ({ name, exposure: "deferred" as const })),
    { name: "tool_search", exposure: "model-only" as const },
  ];
  const bench = new FakeBench({ tools });
  bench.setActive(["read", "bash"]);
  bench.start().start();
  expect(bench.declared).toEqual(["read", "bash", "tool_search"]);
  expect(bench.sets).toBe(2);
  expect(bench.report().figures).toMatchObject({ tools: "native", hiddenTools: 0 });
});

test.each([
  ["mode three is asked for", { mode: "three" }, []],
  ["one of them is direct", {}, ["direct_one"]],
] as const)("the three are used where %s", (_case, config, more) => {
  const deferred = numbered(30).map((name) => ({ name, exposure: "deferred" as const }));
  const bench = new FakeBench({
    tools: [...deferred, { name: "tool_search", exposure: "model-only" }, ...more],
    config,
  });
  bench.start();
  expect(bench.declared).toEqual(["read", "bash", "tool_search", ...three]);
});

test("a deferred tool that somebody activates is declared, and one that was switched off is not found", async () => {
  const bench = new FakeBench({
    tools: [...numbered(30), { name: "deferred_one", exposure: "deferred", active: true }],
  }).start();
  expect(bench.declared).toEqual(["read", "bash", "deferred_one", ...three]);
  bench.setActive(bench.active.filter((name) => name !== "tool_7"));
  expect(await bench.call("execute_tool", { id: "tool_7", params: {} })).toContain('! There is no tool "tool_7".');
});

test("an extension that sets other active tools has them declared: the model could not get at them otherwise", () => {
  const bench = new FakeBench().start();
  bench.setActive(["read", "tool_1", "execute_tool"]);
  expect(bench.declared).toEqual(["read", "tool_1", "execute_tool"]);
});

describe("on a pi that runs no tool for another", () => {
  const activated = async (bench: FakeBench, id: string): Promise<string> =>
    await bench.call("execute_tool", { id, params: {} });

  test("a tool is activated when it is asked for, with those that were described, once in a run", async () => {
    const bench = new FakeBench({ isNew: false }).start();
    const before = bench.sets;
    await bench.call("describe_tools", { ids: ["tool_1", "tool_2"] });
    expect(await activated(bench, "tool_3")).toContain("call it by its name, with these params");
    expect(bench.declared).toEqual([...usual, "tool_1", "tool_2", "tool_3"]);
    // The request with the change has not gone out yet.
    expect(await activated(bench, "tool_4")).toContain("from now on");
    bench.tell("turn_start");
    expect(await activated(bench, "tool_5")).toContain("! tool_5 was not run. The declared tools change at most once");
    expect(bench.sets - before).toBe(2);
    bench.tell("agent_settled");
    expect(bench.declared).toEqual([...usual, "tool_1", "tool_2", "tool_3", "tool_4", "tool_5"]);
    // That was the next run's change.
    expect(await activated(bench, "tool_6")).toContain("! tool_6 was not run.");
  });

  test("a declared tool is to be called by its name: who watches over `bash` sees no execute_tool", async () => {
    const bench = new FakeBench({ isNew: false }).start();
    expect(await activated(bench, "bash")).toBe("! bash is declared to you: call it by its name.");
  });

  test("without activation nothing is hidden, since nothing could be reached", () => {
    const bench = new FakeBench({ isNew: false, config: { allowActivation: false } }).start();
    expect(bench.declared).toHaveLength(32);
    expect(bench.degraded).toHaveLength(1);
  });

  test("what another extension activates stays active, though it was taken before", () => {
    const bench = new FakeBench({ isNew: false }).start();
    bench.setActive([...bench.active, "tool_9"]);
    bench.tell("tool_execution_end");
    bench.register({ name: "zebra" });
    bench.tell("tool_execution_end");
    expect(bench.declared).toEqual([...usual, "tool_9"]);
  });

  test("where each registration activates all that the session lists, they are taken again", () => {
    const bench = new FakeBench({ isNew: false }).start();
    bench.register({ name: "zebra" });
    bench.setActive([...bench.active, ...numbered(30)]);
    bench.tell("tool_execution_end");
    expect(bench.declared).toEqual(usual);
  });

  test("what the model has asked for is declared in a later life, wherever its extension registers it", async () => {
    const bench = new FakeBench({ isNew: false }).start();
    await activated(bench, "tool_29");
    bench.tell("agent_settled");
    const later = new FakeBench({ isNew: false, tools: numbered(29), entries: bench.appended });
    later.tell("session");
    later.register({ name: "tool_29" });
    later.tell("before_agent_start");
    expect(later.declared).toEqual([...usual, "tool_29"]);
  });

  test("after a reload with the part off, what was taken is given back", () => {
    const { appended, memory } = new FakeBench({ isNew: false }).start();
    const later = new FakeBench({ isNew: false, entries: appended, memory, config: { enabled: false } });
    later.setActive(["read", "bash"]);
    later.start();
    expect(later.declared).toEqual(["read", "bash", ...numbered(30)]);
  });

  test("with the part off, no tool is activated because a session's file names it", () => {
    const data = { v: 1, on: true, taken: ["tool_1", "tool_2"], given: [] };
    const bench = new FakeBench({
      isNew: false,
      entries: [{ customType: "pi-rpcd.tools", data }],
      config: { enabled: false },
    });
    bench.setActive(["read", "bash"]);
    bench.start();
    expect(bench.declared).toEqual(["read", "bash"]);
    expect(bench.appended).toHaveLength(1);
  });

  test("while somebody restricts the active tools, none that was taken is found, activated or given back", async () => {
    const bench = new FakeBench({ isNew: false }).start();
    bench.setActive(bench.active.filter((name) => name !== "bash"));
    expect(await activated(bench, "tool_1")).toContain('! There is no tool "tool_1".');
    bench.tell("tool_execution_end");
    expect(bench.degraded).toHaveLength(1);
    expect(bench.memory.takenTools?.names.size).toBe(0);
    bench.setActive([...bench.active, "bash"]);
    expect(await activated(bench, "tool_1")).toContain("call it by its name, with these params");
    bench.setActive(["read", ...three]);
    bench.config = { enabled: false };
    bench.tell("before_agent_start");
    expect(bench.declared).toEqual(["read"]);
  });
});

test("a result of execute_tool is cut by the policy of the tool that it has run", () => {
  expect(executedTool({ toolName: "execute_tool", details: { tool: "read" } })).toBe("read");
  expect(executedTool({ toolName: "bash", details: { tool: "read" } })).toBe("bash");
  for (const details of [undefined, null, 7, {}, { tool: 7 }]) {
    expect(executedTool({ toolName: "execute_tool", details })).toBe("execute_tool");
  }
});
