import { expect, test } from "vitest";
import { withSoundMarks } from "../../../../../context/parts/cache/marks.ts";
import { countMarks, viewOf } from "../../../../../context/parts/cache/payload.ts";
import { withSortedTools } from "../../../../../context/parts/cache/sort-tools.ts";
import { anthropic, google, openai, payloads, responses, warming } from "./payloads.ts";

const nothingPasses = (): boolean => false;

function namesOf(payload: unknown): unknown[] {
  return (viewOf(payload)?.tools ?? []).map((tool) => {
    const { name, function: inner } = tool as { name?: string; function?: { name: string } };
    return name ?? inner?.name;
  });
}

function marksOf(payload: unknown): number {
  const { system, tools, messages } = payload as Record<string, unknown[]>;
  return countMarks(system ?? []) + countMarks(tools ?? []) + countMarks(messages ?? []);
}

test.for(Object.keys(payloads) as (keyof typeof payloads)[])(
  "tools registered in any order give %s the same bytes",
  (api) => {
    const given = payloads[api]();
    const before = JSON.stringify(given);
    const sorted = withSortedTools(given);
    expect(namesOf(sorted)).toEqual(["bash", "edit", "read"]);
    expect(JSON.stringify(given)).toBe(before);
    expect(withSortedTools(sorted)).toBe(sorted);
    const view = viewOf(given);
    for (const order of [
      [2, 0, 1],
      [1, 2, 0],
      [2, 1, 0],
    ]) {
      const tools = order.map((at) => view?.tools[at]);
      expect(JSON.stringify(withSortedTools(withTools(given, remarked(tools))))).toBe(JSON.stringify(sorted));
    }
  },
);

/** The mark on the last tool, as pi sets it. */
function remarked(tools: readonly unknown[]): unknown[] {
  const mark = tools
    .map((tool) => (tool as { cache_control?: object }).cache_control)
    .find((found) => found !== undefined);
  if (mark === undefined) return [...tools];
  return tools.map((tool, at) => {
    const { cache_control: _mark, ...rest } = tool as { cache_control?: object };
    return at === tools.length - 1 ? { ...rest, cache_control: mark } : rest;
  });
}

function withTools(payload: object, tools: readonly unknown[]): unknown {
  const { config } = payload as { config?: object };
  if (config !== undefined) return { ...payload, config: { ...config, tools: [{ functionDeclarations: tools }] } };
  return { ...payload, tools };
}

test.for([false, true])("the mark of the tools is on the new last one, OAuth: %s", (isOAuth) => {
  const sorted = withSortedTools(anthropic({ isOAuth })) as ReturnType<typeof anthropic>;
  expect(sorted.tools.map((tool) => "cache_control" in tool)).toEqual([false, false, true]);
  expect(marksOf(sorted)).toBe(isOAuth ? 4 : 3);
});

test("tools that the service shows later stay after the others, in their order of arrival", () => {
  const later = ["zulu", "alpha"].map((name) => ({ name, description: "", input_schema: {}, defer_loading: true }));
  const given = { ...anthropic(), tools: [...anthropic().tools, ...later] };
  const sorted = withSortedTools(given);
  expect(namesOf(sorted)).toEqual(["bash", "edit", "read", "zulu", "alpha"]);
  expect((sorted as typeof given).tools.map((tool) => "cache_control" in tool)).toEqual([
    false,
    false,
    true,
    false,
    false,
  ]);
});

test.for([
  ["nothing", undefined],
  ["a text", "payload"],
  ["no tools", { messages: [] }],
  ["tools without names", { messages: [], tools: [{ type: "web_search" }, { name: "a" }] }],
  ["tools in their order", { messages: [], tools: [{ name: "a" }, { name: "b" }] }],
] as const)("%s is left as it is", ([, payload]) => {
  expect(withSortedTools(payload)).toBe(payload);
  expect(withSoundMarks(payload, nothingPasses)).toBe(payload);
});

test.for([openai, responses, google])("a payload without marks gets none: $name", (make) => {
  const payload = make();
  expect(withSoundMarks(payload, () => true)).toBe(payload);
});

test.for([false, true])(
  "three and four marks that stay are left alone, in a warming request too, OAuth: %s",
  (isOAuth) => {
    const payload = anthropic({ isOAuth });
    expect(withSoundMarks(payload, nothingPasses)).toBe(payload);
    const warm = warming(payload);
    expect(withSoundMarks(warm, nothingPasses)).toBe(warm);
  },
);

test.for([false, true])("a mark is never on content that the next request lacks, OAuth: %s", (isOAuth) => {
  const payload = anthropic({ isOAuth, last: "Compress the context soon." });
  const before = JSON.stringify(payload);
  const isPassing = (message: unknown): boolean => JSON.stringify(message).includes("Compress the context soon.");
  for (const given of [payload, warming(payload)]) {
    const sound = withSoundMarks(given, isPassing) as typeof payload;
    expect(sound.messages.map((message) => countMarks(message.content))).toEqual([0, 0, 1, 0]);
    expect(marksOf(sound)).toBe(isOAuth ? 4 : 3);
    expect(sound.messages.map(({ role }) => role)).toEqual(payload.messages.map(({ role }) => role));
  }
  expect(JSON.stringify(payload)).toBe(before);
});

test("if an extension adds marks, at most four are sent: the last ones stay", () => {
  const given = anthropic({ isOAuth: true });
  const mark = { type: "ephemeral" };
  const messages = given.messages.map((message) => ({
    ...message,
    content: message.content.map((block) => ({ ...block, cache_control: mark })),
  }));
  const sound = withSoundMarks({ ...given, messages }, nothingPasses) as typeof given;
  expect(marksOf(sound)).toBe(4);
  expect(sound.messages.map((message) => countMarks(message.content))).toEqual([0, 0, 0, 1]);
  const system = Array.from({ length: 6 }, (_, at) => ({ type: "text", text: `Part ${at}.`, cache_control: mark }));
  const crowded = withSoundMarks({ ...given, system, messages }, nothingPasses) as typeof given;
  expect(marksOf(crowded)).toBe(4);
  expect(countMarks(crowded.tools)).toBe(1);
  expect(crowded.messages.map((message) => countMarks(message.content))).toEqual([0, 0, 0, 1]);
  expect(crowded.system.at(-1)).toHaveProperty("cache_control");
});
