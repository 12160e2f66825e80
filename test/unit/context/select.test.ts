import { expect, test } from "vitest";
import { contextForStructured } from "../../../context/document/select.ts";
import { answer, call, calling, chain, list, outline, type Raw, refusal, result, tree, user } from "./documents.ts";

const reviewed = tree(
  [
    { id: "n0", parentId: null, role: "system", content: "You review patches.", timestamp: 1 },
    { id: "n1", parentId: "n0", role: "user", content: [{ type: "text", text: "What is 2+2?" }], timestamp: 2 },
    {
      id: "n2",
      parentId: "n1",
      role: "toolCall",
      toolCallId: "c1",
      toolName: "bash",
      arguments: { command: "expr 2 + 2" },
      timestamp: 3,
    },
    {
      id: "n3",
      parentId: "n2",
      role: "toolResult",
      toolCallId: "c1",
      toolName: "bash",
      content: "4",
      isError: false,
      timestamp: 4,
    },
    {
      id: "n4",
      parentId: "n1",
      role: "assistant",
      content: "The answer is 4.",
      model: { api: "anthropic-messages", provider: "anthropic", id: "m" },
      stopReason: "stop",
      timestamp: 5,
    },
    {
      id: "n5",
      parentId: "n4",
      role: "event",
      eventType: "git.push",
      content: "pushed 3 commits",
      meta: { ref: "main" },
      timestamp: 6,
    },
  ],
  { source: { kind: "tree", id: "run-17", exportedAt: 1_795_187_000_000 }, leafId: "n5" },
);

test("the tree of the format's example gives system, user, the call, its result, the answer and the event", () => {
  const text = (words: string) => [{ type: "text", text: words }];
  expect(contextForStructured(reviewed, "n5")).toEqual([
    { role: "system", nodeId: "n0", content: text("You review patches."), timestamp: 1 },
    { role: "user", nodeId: "n1", content: text("What is 2+2?"), timestamp: 2 },
    {
      role: "assistant",
      nodeId: "n2",
      content: [],
      toolCalls: [{ id: "c1", name: "bash", arguments: { command: "expr 2 + 2" } }],
      timestamp: 3,
    },
    {
      role: "toolResult",
      nodeId: "n3",
      toolCallId: "c1",
      toolName: "bash",
      content: text("4"),
      isError: false,
      timestamp: 4,
    },
    {
      role: "assistant",
      nodeId: "n4",
      content: text("The answer is 4."),
      model: { api: "anthropic-messages", provider: "anthropic", id: "m" },
      stopReason: "stop",
      timestamp: 5,
    },
    {
      role: "event",
      nodeId: "n5",
      content: text("pushed 3 commits"),
      eventType: "git.push",
      meta: { ref: "main" },
      timestamp: 6,
    },
  ]);
  expect(contextForStructured(reviewed)).toEqual(contextForStructured(reviewed, "n5"));
});

test("parallel calls of two turns form one assistant each, and a call after a result opens the next", () => {
  const nodes = [
    { id: "u1", parentId: null, ...user, timestamp: 1 },
    { id: "a", parentId: "u1", ...call("a"), timestamp: 2 },
    { id: "b", parentId: "u1", ...call("b"), timestamp: 3 },
    { id: "ra", parentId: "a", ...result("a"), timestamp: 5 },
    { id: "rb", parentId: "b", ...result("b"), timestamp: 4 },
    { id: "c", parentId: "rb", ...call("c"), timestamp: 6 },
    { id: "rc", parentId: "c", ...result("c"), timestamp: 7 },
    { id: "a1", parentId: "u1", ...answer, timestamp: 8 },
    { id: "u2", parentId: "a1", ...user, timestamp: 9 },
    { id: "d", parentId: "u2", ...call("d"), timestamp: 10 },
    { id: "e", parentId: "d", ...call("e"), timestamp: 10 },
    { id: "rd", parentId: "e", ...result("d"), timestamp: 10 },
    { id: "re", parentId: "rd", ...result("e"), timestamp: 10 },
    { id: "a2", parentId: "u2", ...answer, timestamp: 10 },
  ];
  const golden = [
    "user:Hello",
    "assistant(a,b)",
    "toolResult(b)",
    "toolResult(a)",
    "assistant(c)",
    "toolResult(c)",
    "assistant:Hi",
    "user:Hello",
    "assistant(d,e)",
    "toolResult(d)",
    "toolResult(e)",
    "assistant:Hi",
  ];
  expect(outline(contextForStructured(tree(nodes), "a2"))).toEqual(golden);
});

test("tools on the path and off it come in the order of their times", () => {
  const nodes = [
    { id: "u", parentId: null, ...user, timestamp: 1 },
    { id: "a", parentId: "u", ...call("a"), timestamp: 2 },
    { id: "b", parentId: "u", ...call("b"), timestamp: 3 },
    { id: "ra", parentId: "a", ...result("a"), timestamp: 4 },
    { id: "rb", parentId: "b", ...result("b"), timestamp: 5 },
    { id: "z", parentId: "ra", ...answer, timestamp: 6 },
  ];
  expect(outline(contextForStructured(tree(nodes), "z"))).toEqual([
    "user:Hello",
    "assistant(a,b)",
    "toolResult(a)",
    "toolResult(b)",
    "assistant:Hi",
  ]);
});

const regenerated = [
  { id: "u", parentId: null, ...user, timestamp: 1 },
  { id: "c1", parentId: "u", ...call("c1"), timestamp: 2 },
  { id: "r1", parentId: "c1", ...result("c1"), timestamp: 3 },
  { id: "a1", parentId: "u", role: "assistant", content: "first", timestamp: 4 },
  { id: "c2", parentId: "u", ...call("c2"), timestamp: 5 },
  { id: "r2", parentId: "c2", ...result("c2"), timestamp: 6 },
  { id: "a2", parentId: "u", role: "assistant", content: "second", timestamp: 7 },
];

test.each([
  ["different times", regenerated],
  ["equal times, so that the position decides", regenerated.map((node) => ({ ...node, timestamp: 1 }))],
  ["answers below their tools", regenerated.map((node) => ({ ...node, ...below(node.id) }))],
])("an answer that was given again has its own calls only: %s", (_, nodes) => {
  const ids = (leaf: string) => outline(contextForStructured(tree(nodes), leaf));
  expect(ids("a1")).toEqual(["user:Hello", "assistant(c1)", "toolResult(c1)", "assistant:first"]);
  expect(ids("a2")).toEqual(["user:Hello", "assistant(c2)", "toolResult(c2)", "assistant:second"]);
});

test("the position of a tool without a time determines its answer, and none is lost", () => {
  const { timestamp: _, ...call1 } = { id: "c1", parentId: "u", ...call("c1"), timestamp: 0 };
  const { timestamp: __, ...call2 } = { id: "c2", parentId: "u", ...call("c2"), timestamp: 0 };
  const untimed = (name: string) => ({ id: `r${name}`, parentId: `c${name}`, ...result(`c${name}`) });
  const head = [{ id: "u", parentId: null, ...user, timestamp: 10 }, call1, untimed("1")];
  const first = { id: "a1", parentId: "u", role: "assistant", content: "first", timestamp: 20 };
  const second = { id: "a2", parentId: "u", role: "assistant", content: "second", timestamp: 30 };
  const ids = (nodes: readonly Raw[], leaf: string) => outline(contextForStructured(tree(nodes), leaf)).slice(1, -1);
  for (const nodes of [
    [...head, first, call2, untimed("2"), second],
    [...head, first, second, call2, untimed("2")],
  ]) {
    expect(ids(nodes, "a1")).toEqual(["assistant(c1)", "toolResult(c1)"]);
    expect(ids(nodes, "a2")).toEqual(["assistant(c2)", "toolResult(c2)"]);
  }
  const none = [...head, first, call2, untimed("2"), second].map(({ timestamp: _time, ...node }: Raw) => node);
  expect(ids(none, "a2")).toEqual(["assistant(c2)", "toolResult(c2)"]);
});

function below(id: string): { readonly parentId?: string } {
  return id === "a1" ? { parentId: "r1" } : id === "a2" ? { parentId: "r2" } : {};
}

test("results of calls in a message are found off the path and at its end", () => {
  const nodes = [
    { id: "u", parentId: null, ...user, timestamp: 1 },
    { id: "a", parentId: "u", ...calling(["x", "y"]), timestamp: 2 },
    { id: "rx", parentId: "a", ...result("x"), timestamp: 3 },
    { id: "ry", parentId: "a", ...result("y"), timestamp: 4 },
    { id: "z", parentId: "a", ...answer, timestamp: 5 },
  ];
  const turn = ["user:Hello", "assistant(x,y)", "toolResult(x)", "toolResult(y)", "assistant:Hi"];
  expect(outline(contextForStructured(tree(nodes), "z"))).toEqual(turn);
  expect(outline(contextForStructured(tree(nodes), "a"))).toEqual(turn.slice(0, 4));
});

test("a path that ends in a call includes the call's result, and no call after it", () => {
  const nodes = chain(user, call("a"), result("a"), call("b"), result("b"), answer);
  expect(outline(contextForStructured(nodes, "n1"))).toEqual(["user:Hello", "assistant(a)", "toolResult(a)"]);
  expect(outline(contextForStructured(nodes, "n2"))).toEqual(["user:Hello", "assistant(a)", "toolResult(a)"]);
});

test.each([
  ["its id", { toolCallId: "b" }, "u"],
  ["its parent", {}, "nb"],
  ["the tool's name", { toolName: "read" }, "u"],
])("a result is paired by %s", (_, fields, parentId) => {
  const nodes = [
    { id: "u", parentId: null, ...user, timestamp: 1 },
    { id: "na", parentId: "u", ...call("a"), timestamp: 2 },
    { id: "nb", parentId: "u", ...call("b", { toolName: "read" }), timestamp: 3 },
    { id: "nc", parentId: "u", ...call("c"), timestamp: 4 },
    { id: "r", parentId, role: "toolResult", content: "ok", timestamp: 5, ...fields },
    { id: "z", parentId: "u", ...answer, timestamp: 6 },
  ];
  expect(outline(contextForStructured(tree(nodes), "z"))[2]).toBe("toolResult(b)");
});

test("a tool name without an id refers to the nearest call without a result", () => {
  const nameless = { role: "toolResult", toolName: "bash", content: "ok" };
  const document = list(
    [user, calling(["a", "b"]), nameless, nameless, answer].map((item, timestamp) => ({ timestamp, ...item })),
  );
  expect(outline(contextForStructured(document)).slice(2, 4)).toEqual(["toolResult(b)", "toolResult(a)"]);
});

test("both spellings of each field and role give equal items", () => {
  const plain = chain(user, call("a"), result("a", "4"), answer);
  const nodes = (role: string, name: string, given: string, output: string) =>
    chain(
      user,
      {
        role: role === "toolResult" ? "toolCall" : "tool_call",
        toolCallId: "a",
        [name]: "bash",
        [given]: { command: "ls" },
      },
      { role, toolCallId: "a", [name]: "bash", [output]: "4" },
      answer,
    );
  const expected = contextForStructured(plain);
  for (const role of ["toolResult", "tool_result", "tool"]) {
    for (const name of ["toolName", "name"]) {
      for (const given of ["arguments", "toolParams", "params", "input"]) {
        for (const output of ["content", "result", "output"]) {
          expect(contextForStructured(nodes(role, name, given, output)), `${role} ${given} ${output}`).toEqual(
            expected,
          );
        }
      }
    }
  }
});

test("a complete result in addition to shortened content stays complete", () => {
  const whole = "x".repeat(50 * 1024);
  const document = chain(user, call("a"), { ...result("a", "xx…"), result: whole }, answer);
  expect(contextForStructured(document)[2]?.content).toEqual([{ type: "text", text: whole }]);
});

test("unknown fields are kept under meta, including those of calls", () => {
  const document = chain(
    { ...user, label: "x", meta: { label: "y", ref: 1 } },
    { ...call("a"), content: "$ ls" },
    result("a"),
    { ...answer, input: 5, nodeId: "other" },
  );
  const items = contextForStructured(document);
  expect(items.map(({ meta }) => meta)).toEqual([
    { label: "y", ref: 1 },
    { content: [{ type: "text", text: "$ ls" }] },
    undefined,
    { input: 5, nodeId: "other" },
  ]);
});

test("until: a user's node is excluded, any other is included, and the option overrides both", () => {
  const document = chain(user, answer, { role: "user", content: "And?" });
  const texts = (nodeId: string, until?: "before" | "through") =>
    outline(contextForStructured(document, nodeId, { until }));
  expect(texts("n2")).toEqual(["user:Hello", "assistant:Hi"]);
  expect(texts("n2", "through")).toEqual(["user:Hello", "assistant:Hi", "user:And?"]);
  expect(texts("n1")).toEqual(["user:Hello", "assistant:Hi"]);
  expect(texts("n1", "before")).toEqual(["user:Hello"]);
  expect(refusal(() => contextForStructured(document, "n0"))).toMatchObject({
    kind: "context_invalid",
    data: { code: "nothing_selected" },
  });
});

test("from a list of items all are taken, or those up to a node", () => {
  const document = list(
    [user, answer, user].map((item, index) => ({ ...item, nodeId: `i${index}`, timestamp: index })),
  );
  expect(contextForStructured(document)).toHaveLength(3);
  expect(contextForStructured(document, "i1")).toHaveLength(2);
  expect(contextForStructured(document, "i2")).toHaveLength(2);
});

test("no node is taken twice in three turns", () => {
  const turn = (index: number) => [
    { id: `u${index}`, parentId: index === 0 ? null : `a${index - 1}`, ...user, timestamp: 10 * index },
    { id: `c${index}`, parentId: `u${index}`, ...call(`c${index}`), timestamp: 10 * index + 1 },
    { id: `r${index}`, parentId: `c${index}`, ...result(`c${index}`), timestamp: 10 * index + 2 },
    { id: `a${index}`, parentId: `u${index}`, ...answer, timestamp: 10 * index + 3 },
  ];
  const ids = contextForStructured(tree([0, 1, 2].flatMap(turn)), "a2").map(({ nodeId }) => nodeId);
  expect(ids).toEqual([0, 1, 2].flatMap((index) => [`u${index}`, `c${index}`, `r${index}`, `a${index}`]));
});

test("a chain of 100,000 nodes does not overflow the stack", () => {
  const nodes = Array.from({ length: 100_000 }, (_, index) => ({ ...(index % 2 === 0 ? user : answer) }));
  expect(contextForStructured(chain(...nodes), "n99999")).toHaveLength(100_000);
  const calls = Array.from({ length: 99_999 }, (_, index) =>
    index % 2 === 0 ? call(`c${index}`) : result(`c${index - 1}`),
  );
  expect(contextForStructured(chain(user, ...calls), "n99999")).toHaveLength(100_000);
});

test("a call that is both in the message and a node is one call", () => {
  const document = chain(user, calling(["a", "b"]), call("a"), result("a"), call("b"), result("b"), answer);
  expect(outline(contextForStructured(document)).slice(1)).toEqual([
    "assistant(a,b)",
    "toolResult(a)",
    "toolResult(b)",
    "assistant:Hi",
  ]);
  // Another call with the same id stays separate.
  const again = chain(user, calling(["a"]), result("a"), call("a"), result("a"));
  expect(outline(contextForStructured(again))).toHaveLength(5);
});

test("parallel calls that were nodes keep all their fields", () => {
  const own = { usage: { input: 1 }, details: { x: 1 } };
  const [, message] = contextForStructured(chain(user, call("a", own), call("b", own), result("a"), result("b")));
  expect(message).toMatchObject({ ...own, meta: { calls: [{ id: "b", ...own }] } });
});

test("messages in the format of chat completions keep their calls", () => {
  const inner = { name: "bash", arguments: '{"command":"ls"}' };
  const document = list([
    { ...user, timestamp: 1 },
    { role: "assistant", content: null, tool_calls: [{ id: "a", type: "function", function: inner }], timestamp: 2 },
    { role: "tool", tool_call_id: "a", content: "ok", timestamp: 3 },
  ]);
  expect(outline(contextForStructured(document))).toEqual(["user:Hello", "assistant(a)", "toolResult(a)"]);
  expect(contextForStructured(document)[1]?.toolCalls).toEqual([
    { id: "a", name: "bash", arguments: { command: "ls" } },
  ]);
  const broken = list([user, { role: "assistant", tool_calls: [{ id: "a", function: { ...inner, arguments: "{" } }] }]);
  expect(refusal(() => contextForStructured(broken)).data).toMatchObject({ code: "bad_arguments" });
});
