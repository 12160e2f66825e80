import { describe, expect, test } from "vitest";
import { inWords, schemaMistakes } from "../../../protocol/configuration/mistakes.ts";
import { nearest } from "../../../protocol/configuration/nearest.ts";
import { checkedOptimisation } from "../../../protocol/configuration/part-options.ts";
import { MAX_CONFIGURATION_BYTES } from "../../../protocol/configuration/whole.ts";
import { defaultOptimisation, leanOptimisation } from "../../../protocol/optimisation/config.ts";
import type { GivenTools } from "../../../protocol/optimisation/contradictions.ts";
import { OptimisationOptions, optimisationWords } from "../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { createValidator } from "../../../protocol/validation.ts";

const wordsOf = (value: unknown): string[] =>
  schemaMistakes(OptimisationOptions, value, ["optimisation"], optimisationWords).map(inWords);
const validator = createValidator();

describe("mistakes of a configuration are named by its keys", () => {
  test.each<[value: unknown, words: string]>([
    [{ compaction: { thresholdPercent: 0.3 } }, "optimisation.compaction.thresholdPercent: 0.3 is below 0.5."],
    [{ compaction: { thresholdPercent: 1 } }, "optimisation.compaction.thresholdPercent: 1 is above 0.95."],
    [{ cost: { budgetUsd: 0 } }, "optimisation.cost.budgetUsd: 0 is not above 0."],
    [{ masking: { afterTurns: 1.5 } }, "optimisation.masking.afterTurns: 1.5 is not a whole number."],
    [{ masking: { afterUserTurns: "2" } }, 'optimisation.masking.afterUserTurns: "2" is not a whole number or null.'],
    [
      { masking: { expectedRequests: "many" } },
      'optimisation.masking.expectedRequests: "many" is not "auto" or a whole number.',
    ],
    [{ masking: { expectedRequests: 0 } }, "optimisation.masking.expectedRequests: 0 is below 1."],
    [{ masking: "on" }, 'optimisation.masking: "on" is not an object.'],
    [null, "optimisation: null is not an object."],
    [{ masking: { enabled: 1 } }, "optimisation.masking.enabled: 1 is not true or false."],
    [{ estimator: { tokenizer: "bytes" } }, 'optimisation.estimator.tokenizer: "bytes" is not one of "chars", "bpe".'],
    [
      { compaction: { tresholdPercent: 0.7 } },
      "optimisation.compaction.tresholdPercent: unknown key; the nearest is thresholdPercent.",
    ],
    [{ maskin: {} }, "optimisation.maskin: unknown key; the nearest is masking."],
    [
      { thresholdPercent: 0.7 },
      "optimisation.thresholdPercent: unknown key here; the nearest is compaction.thresholdPercent.",
    ],
    [{ masking: { excludeTools: ["a b"] } }, 'optimisation.masking.excludeTools[0]: "a b" is not a tool\'s name.'],
    [
      { compaction: { models: { gpt: {} } } },
      'optimisation.compaction.models.gpt: "gpt" is not a model as provider/id.',
    ],
    [
      { compaction: { models: { "a/b-1": { thresholdPercent: 2 } } } },
      'optimisation.compaction.models["a/b-1"].thresholdPercent: 2 is above 0.95.',
    ],
    [{ compaction: { prompt: "x.md" } }, 'optimisation.compaction.prompt: "x.md" is not an absolute path.'],
    [{ toolResults: { tools: { bash: {} } } }, "optimisation.toolResults.tools.bash.keep: the value is missing."],
    [{ skills: { prefetch: [""] } }, "optimisation.skills.prefetch[0]: the text is empty."],
    [{ contextFiles: { sections: {} } }, "optimisation.contextFiles.sections: an object is not a list."],
  ])("%j", (value, words) => {
    expect(wordsOf(value)).toEqual([words]);
    expect(validator.schema(OptimisationOptions, value)).not.toEqual([]);
  });

  test("and they are the same as the schema's, which accepts the defaults", () => {
    expect(wordsOf(defaultOptimisation)).toEqual([]);
    expect(wordsOf(leanOptimisation)).toEqual([]);
    expect(validator.schema(OptimisationOptions, defaultOptimisation)).toEqual([]);
    // Lengths are counted in characters, not in UTF-16 units.
    const label = "🙂".repeat(321);
    expect(wordsOf({ contextFiles: { sections: [{ heading: "a", label }] } })).toEqual([]);
    expect(validator.schema(OptimisationOptions, { contextFiles: { sections: [{ heading: "a", label }] } })).toEqual(
      [],
    );
  });

  test("in a hostile configuration are found at low cost and quoted only in part", () => {
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key${at}`, {}]));
    expect(wordsOf(many)).toHaveLength(32);
    expect(wordsOf({ toolResults: { tools: many } })).toEqual([
      "optimisation.toolResults.tools: 20000 entries exceed the limit of 256.",
    ]);
    const [long = ""] = wordsOf({ ["x".repeat(1_000_000)]: 1 });
    expect(long.length).toBeLessThan(300);
    expect(wordsOf({ estimator: { tokenizer: "y".repeat(1_000_000) } })[0]?.length).toBeLessThan(300);
    for (const key of ["constructor", "toString", "__proto__", "hasOwnProperty"]) {
      const value = JSON.parse(`{"masking": {"${key}": 1}}`);
      expect(wordsOf(value)[0]).toContain(`optimisation.masking.${key}: unknown key; the nearest is `);
    }
    // Keys longer than any known one are not even compared.
    const heading = `${"🙂".repeat(255)}ab`;
    expect(wordsOf({ contextFiles: { sections: [{ heading }] } })[0]).toContain("257 characters");
    const counted = "🙂".repeat(100_000);
    expect(wordsOf({ contextFiles: { sections: [{ heading: counted }] } })[0]).toBe(
      "optimisation.contextFiles.sections[0].heading: a text of 200000 units is longer than 256 characters.",
    );
    let deep: unknown = {};
    for (let level = 0; level < 100_000; level += 1) deep = { masking: deep };
    expect(wordsOf({ masking: deep })[0]).toContain("optimisation.masking.masking: unknown key");
  });

  test("the nearest word is the one with the fewest changes", () => {
    expect(nearest("afterTruns", ["afterUserTurns", "afterTurns"])).toBe("afterTurns");
    expect(nearest("THRESHOLD", ["route", "thresholdPercent"])).toBe("thresholdPercent");
    expect(nearest("x".repeat(65), ["a"])).toBeUndefined();
    expect(nearest("a", [])).toBeUndefined();
  });
});

describe("contradictory values are mistakes though each is valid", () => {
  const mistakesOf = (own: OptimisationOptions, tools: GivenTools = {}, below: OptimisationOptions = {}) =>
    checkedOptimisation([below, own], tools, own).mistakes.map(inWords);

  test.each<[own: OptimisationOptions, words: string]>([
    [
      { toolResults: { tools: { x: { keep: "head", head: 500, above: 400 } } } },
      "optimisation.toolResults.tools.x.above: 400 is below the 500 characters that are kept.",
    ],
    [
      { toolResults: { tools: { x: { keep: "headTail", head: 500 } } } },
      'optimisation.toolResults.tools.x.tail: keep is "headTail", but tail is missing.',
    ],
    [
      { toolResults: { tools: { x: { keep: "tail" } } } },
      'optimisation.toolResults.tools.x.tail: keep is "tail", but tail is missing.',
    ],
    [
      { contextFiles: { sections: [{ heading: "Rules" }] } },
      "optimisation.contextFiles.sections[0]: the condition is missing: set label or path.",
    ],
    [
      { skills: { enabled: true, mode: "off" } },
      'optimisation.skills.mode: "off" contradicts optimisation.skills.enabled, which is true.',
    ],
    [
      { compaction: { enabled: true, route: "off" } },
      'optimisation.compaction.route: "off" contradicts optimisation.compaction.enabled, which is true.',
    ],
  ])("%j", (own, words) => {
    expect(mistakesOf(own)).toEqual([words]);
  });

  test("but not if a later layer turns off an earlier layer's option, nor in a disabled part", () => {
    expect(mistakesOf({ skills: { mode: "off" } }, {}, { skills: { enabled: true } })).toEqual([]);
    const tools = { x: { keep: "tail" } } as const;
    expect(mistakesOf({ toolResults: { enabled: false, tools } })).toEqual([]);
  });

  test("tables that grow too large with the layers below are refused, and so are configurations too large for pi's start", () => {
    const models = (name: string) =>
      Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`p/${name}${at}`, { thresholdPercent: 0.5 }]));
    const layers = [{ compaction: { models: models("a") } }, { compaction: { models: models("b") } }] as const;
    expect(mistakesOf(layers[1], {}, layers[0])).toEqual([
      "optimisation.compaction.models: 400 entries exceed the limit of 256.",
    ]);
    const sections = Array.from({ length: 250 }, () => ({ heading: "a", path: "x".repeat(4_000) }));
    const [large = ""] = mistakesOf({ contextFiles: { sections } });
    expect(large).toMatch(
      new RegExp(`^optimisation: its \\d+ bytes of JSON exceed the limit of ${MAX_CONFIGURATION_BYTES}\\.$`),
    );
  });

  test.each<[tools: GivenTools, words: string[]]>([
    [{}, []],
    [{ tools: ["read"] }, ["it is not in tools"]],
    [{ tools: ["read", "gr*"] }, []],
    [{ tools: ["+codemode"] }, []],
    [{ noTools: "builtin" }, ["noTools removes it"]],
    [{ noTools: "all" }, ["noTools removes it"]],
    [{ noTools: "all", tools: ["grep"] }, []],
    [{ excludeTools: ["g*p"] }, ["excludeTools removes it"]],
  ])("a tool that is named and that a session with %j cannot have", (tools, why) => {
    for (const [own, place] of [
      [{ masking: { excludeTools: ["grep"] } }, "optimisation.masking.excludeTools[0]"],
      [{ toolResults: { tools: { grep: { keep: "none" } } } }, "optimisation.toolResults.tools.grep"],
      [{ dynamicTools: { keep: ["grep"] } }, "optimisation.dynamicTools.keep[0]"],
    ] as const) {
      expect(mistakesOf(own as OptimisationOptions, tools)).toEqual(
        why.map((words) => `${place}: the session has no tool "grep": ${words}.`),
      );
    }
    // The whole daemon's configuration also applies to other sessions.
    expect(mistakesOf({}, tools, { masking: { excludeTools: ["grep"] } })).toEqual([]);
  });

  test("content that leaves the context must be recallable", () => {
    expect(mistakesOf({ masking: { enabled: true } }, { excludeTools: ["re*"] })).toEqual([
      'optimisation.masking: needs the tool "recall", which excludeTools removes.',
    ]);
  });

  test("a pattern with many stars does not block the event loop", () => {
    const tools = { excludeTools: [`${"*a".repeat(60)}b`] };
    expect(mistakesOf({ masking: { excludeTools: ["a".repeat(128)] } }, tools)).toEqual([]);
  });

  test("a part is on when it says so, or when another of its options is given", () => {
    const on = (given: OptimisationOptions) => resolveOptimisation(given).masking.enabled;
    expect([on({}), on({ masking: {} }), on({ masking: { afterTurns: 5 } })]).toEqual([false, false, true]);
    expect(on({ masking: { afterTurns: 5, enabled: false } })).toBe(false);
    expect(Object.values(resolveOptimisation({})).some(({ enabled }) => enabled)).toBe(false);
  });
});
