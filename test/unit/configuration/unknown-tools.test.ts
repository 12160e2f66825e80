import { expect, test } from "vitest";
import { inWords } from "../../../protocol/configuration/mistakes.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { toolsOfPolicies, unknownTools } from "../../../server/context/policy-tools.ts";

const known = ["read", "bash", "edit", "write", "grep", "find", "ls"];
const wordsOf = (layer: OptimisationOptions, merged = layer) =>
  unknownTools(toolsOfPolicies(layer, merged), known).map(inWords);
const keepNone = { keep: "none" } as const;

test("a tool that pi does not have is named with its key, and with the most similar one", () => {
  expect(wordsOf({ toolResults: { tools: { grepp: keepNone, read: keepNone, fetch_page: keepNone } } })).toEqual([
    'optimisation.toolResults.tools.grepp: pi does not have the tool "grepp"; did you mean "grep"?',
    'optimisation.toolResults.tools.fetch_page: pi does not have the tool "fetch_page".',
  ]);
  const lists = { masking: { excludeTools: ["bash", "Bash"] }, dynamicTools: { keep: ["red"] } };
  expect(wordsOf(lists)).toEqual([
    'optimisation.masking.excludeTools[1]: pi does not have the tool "Bash"; did you mean "bash"?',
    'optimisation.dynamicTools.keep[0]: pi does not have the tool "red"; did you mean "read"?',
  ]);
});

test("patterns, our own tools, those of MCP servers and those of disabled parts are not checked", () => {
  const tools = { "*": keepNone, "gre*p": keepNone, recall: keepNone, mcp__docs__search: keepNone };
  expect(wordsOf({ toolResults: { tools } })).toEqual([]);
  const keep = ["compress", "get_skill_detail", "search_tools", "describe_tools", "execute_tool"];
  expect(wordsOf({ dynamicTools: { keep } })).toEqual([]);
  const off = { masking: { enabled: false, excludeTools: ["grepp"] } };
  expect(wordsOf(off)).toEqual([]);
  expect(wordsOf({ masking: { excludeTools: ["grepp"] } }, off)).toEqual([]);
  expect(wordsOf({ masking: { excludeTools: ["grepp"] } })).toHaveLength(1);
});

test("at most 16 are reported", () => {
  const excludeTools = Array.from({ length: 200 }, (_, at) => `none_${at}`);
  expect(wordsOf({ masking: { excludeTools } })).toHaveLength(16);
});
