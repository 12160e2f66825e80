import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { type PipelineHook, RequestPipeline, stageOrder } from "../../../extension/request-pipeline.ts";

const ctx = {} as ExtensionContext;

function pipeline(): { readonly pipeline: RequestPipeline; readonly faults: string[] } {
  const faults: string[] = [];
  return {
    pipeline: new RequestPipeline((where, thrown) => faults.push(`${where}: ${(thrown as Error).message}`)),
    faults,
  };
}

test("the stages of a request run in the order of the table, in whatever order they were added", () => {
  const { pipeline: line } = pipeline();
  const seen: string[] = [];
  for (const name of [...stageOrder.context_with_system].reverse())
    line.use("context_with_system", name, () => void seen.push(name));
  line.run("context_with_system", [], ctx);
  expect(seen).toEqual([
    "head",
    "carrier",
    "blocks",
    "bash",
    "prefix",
    "sections",
    "legal",
    "tags",
    "nudge",
    "audit",
    "offer",
  ]);
});

test("each stage sees the result of the previous one", () => {
  const { pipeline: line } = pipeline();
  line.use("before_provider_request", "tools", (payload) => [...(payload as string[]), "tools"]);
  line.use("before_provider_request", "audit", () => undefined);
  line.use("before_provider_request", "presence", (payload) => [...(payload as string[]), "presence"]);
  expect(line.run("before_provider_request", ["payload"], ctx)).toEqual(["payload", "tools", "presence"]);
});

test("a stage that throws is skipped and reported", () => {
  const { pipeline: line, faults } = pipeline();
  const kept = [{ role: "user" }] as unknown as readonly AgentMessage[];
  line.use("context_with_system", "head", () => kept);
  line.use("context_with_system", "carrier", () => {
    throw new Error("broken");
  });
  expect(line.run("context_with_system", [], ctx)).toBe(kept);
  expect(faults).toEqual(["context_with_system/carrier: broken"]);
});

test("a position holds one stage", () => {
  const { pipeline: line } = pipeline();
  line.use("message_end", "learn", () => undefined);
  expect(() => line.use("message_end", "learn", () => undefined)).toThrow(/already exists/);
});

test("the pipeline registers only the hooks that have stages, and answers pi only after a change", () => {
  const { pipeline: line } = pipeline();
  const handlers = new Map<string, (event: unknown, ctx: unknown) => unknown>();
  const other = [{ role: "user" }] as unknown as AgentMessage[];
  let answer: AgentMessage[] | undefined;
  line.use("context_with_system", "head", () => answer);
  line.use("message_update", "verdict", () => undefined);
  line.install({ on: (name: string, handler: never) => handlers.set(name, handler) } as unknown as ExtensionAPI);
  expect([...handlers.keys()]).toEqual(["context_with_system", "message_update"] satisfies PipelineHook[]);
  expect(handlers.get("context_with_system")?.({ messages: [] }, ctx)).toBeUndefined();
  answer = other;
  expect(handlers.get("context_with_system")?.({ messages: [] }, ctx)).toEqual({ messages: other });
});

test("a request waits for its gates in order, and continues if one fails", async () => {
  const { pipeline: line, faults } = pipeline();
  const other = [{ role: "user", content: "Hello.", timestamp: 1 }] as const satisfies readonly AgentMessage[];
  line.use("context_with_system", "head", () => other);
  type Handler = (event: { readonly messages: readonly AgentMessage[] }, ctx: ExtensionContext) => unknown;
  const handlers = new Map<string, Handler>();
  line.install({ on: (name: string, handler: Handler) => handlers.set(name, handler) } as unknown as ExtensionAPI);
  const request = (): unknown => handlers.get("context_with_system")?.({ messages: [] }, ctx);
  line.wait(() => undefined);
  line.wait(() => {
    throw new Error("broken");
  });
  expect(request()).toEqual({ messages: other });
  expect(faults).toEqual(["context_with_system/wait: broken"]);
  const passed: string[] = [];
  const late = (name: string, gate: Promise<void>) => () => gate.finally(() => passed.push(name));
  line.wait(late("first", Promise.resolve()));
  line.wait(late("second", Promise.reject(new Error("late"))));
  line.wait(() => {
    // A gate that is added during the wait delays the request as well.
    if (!passed.includes("added")) line.wait(late("added", Promise.resolve()));
    return undefined;
  });
  const made = request();
  expect(made).toBeInstanceOf(Promise);
  expect(await made).toEqual({ messages: other });
  expect(passed).toEqual(["first", "second", "added"]);
});

test.for([
  ["a result's structured content goes with its new content, which pi would drop", { structuredContent: { kept: 1 } }],
  ["a result of a pi that knows no structured content gets none", {}],
] as const)("%s", ([, more]) => {
  const { pipeline: line } = pipeline();
  const handlers: ((event: object, ctx: ExtensionContext) => unknown)[] = [];
  line.use("tool_result", "cap", (event) => ({ ...event, content: [] }));
  line.install({
    on: (_name: string, given: (event: object) => unknown) => void handlers.push(given),
  } as unknown as ExtensionAPI);
  const event = { content: [{ type: "text", text: "long" }], details: { a: 1 }, isError: false, ...more };
  expect(handlers[0]?.(event, ctx)).toEqual({ content: [], details: { a: 1 }, isError: false, ...more });
});
