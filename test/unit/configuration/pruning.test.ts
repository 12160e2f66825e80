import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { inWords } from "../../../protocol/configuration/mistakes.ts";
import { checkedParts } from "../../../protocol/configuration/part-options.ts";
import { MAX_CONFIGURATION_BYTES } from "../../../protocol/configuration/whole.ts";
import { defaultOptimisation } from "../../../protocol/optimisation/config.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { defaultPruning } from "../../../protocol/pruning/config.ts";
import { blocksLimit, limitTokens, pruningLimits } from "../../../protocol/pruning/limits.ts";
import { PruningOptions } from "../../../protocol/pruning/options.ts";
import { promptFiles } from "../../../protocol/pruning/prompts.ts";
import { mergePruning, resolvePruning } from "../../../protocol/pruning/resolve.ts";
import { pruningMistakes } from "../../../protocol/pruning/words.ts";
import { createValidator } from "../../../protocol/validation.ts";
import { mistakesOfLayers } from "../../../server/configuration/part-files.ts";
import { unusablePrompts } from "../../../server/configuration/prompts-directory.ts";

const validator = createValidator();
const wordsOf = (value: unknown): string[] => pruningMistakes(value).map(inWords);
const ambiguous = 'is ambiguous; write 0.8, "80%" or at least 1000 tokens.';

describe("mistakes of pruning's configuration are named by its keys", () => {
  test.each<[value: unknown, words: string]>([
    [{ maxContext: 80 }, `pruning.maxContext: 80 ${ambiguous}`],
    [{ minContext: 12.5 }, 'pruning.minContext: 12.5 is ambiguous; write 0.125, "12.5%" or at least 1000 tokens.'],
    [{ maxContext: 999 }, `pruning.maxContext: 999 ${ambiguous}`],
    [{ maxContext: 1_000.5 }, "pruning.maxContext: 1000.5 is not a whole number of tokens."],
    [{ maxContext: -1 }, "pruning.maxContext: -1 is below 0."],
    [{ maxContext: 1e9 }, "pruning.maxContext: 1000000000 is above 100000000."],
    [
      { maxContext: "80" },
      'pruning.maxContext: "80" is not a limit; write "auto", 0.8, "80%" or at least 1000 tokens.',
    ],
    [
      { maxContext: null },
      'pruning.maxContext: null is not a limit; write "auto", 0.8, "80%" or at least 1000 tokens.',
    ],
    [
      { blocks: { maxTokens: "auto" } },
      'pruning.blocks.maxTokens: "auto" is not a limit; write 0.8, "80%" or at least 1000 tokens.',
    ],
    [{ models: { "a/b": { maxContext: 80 } } }, `pruning.models["a/b"].maxContext: 80 ${ambiguous}`],
    [{ models: { a: {} } }, 'pruning.models.a: "a" is not a model as provider/id.'],
    [{ maxContex: 0.8 }, "pruning.maxContex: unknown key; the nearest is maxContext."],
    [{ compress: { minSaving: 0.2 } }, "pruning.compress.minSaving: unknown key; the nearest is minSavings."],
    [{ minSavings: 0.2 }, "pruning.minSavings: unknown key here; the nearest is compress.minSavings."],
    [{ compress: { minSavings: 1 } }, "pruning.compress.minSavings: 1 is above 0.9."],
    [
      { compress: { permission: "never" } },
      'pruning.compress.permission: "never" is not one of "allow", "ask", "deny".',
    ],
    [{ nudgeFrequency: 0 }, "pruning.nudgeFrequency: 0 is below 1."],
    [{ protectRecentTurns: 51 }, "pruning.protectRecentTurns: 51 is above 50."],
    [{ protectedFilePatterns: [""] }, 'pruning.protectedFilePatterns[0]: "" is not a glob.'],
    [{ prompts: { dir: "prompts" } }, 'pruning.prompts.dir: "prompts" is not an absolute path.'],
    [null, "pruning: null is not an object."],
  ])("%j", (value, words) => {
    expect(validator.schema(PruningOptions, value)).not.toEqual([]);
    expect(wordsOf(value)).toEqual([words]);
  });

  test("and the defaults and the three forms of a limit are accepted", () => {
    for (const value of [defaultPruning, { maxContext: 1, minContext: 0 }, { maxContext: 1_000 }]) {
      expect(wordsOf(value)).toEqual([]);
    }
    expect(wordsOf({ maxContext: "100%", minContext: "7.125%", blocks: { maxTokens: 2_000 } })).toEqual([]);
  });
});

const mistakesOf = (pruning: PruningOptions, optimisation = {}): string[] =>
  checkedParts([{ optimisation, pruning: { enabled: true, ...pruning } }]).mistakes.map(inWords);

describe("limits are compared with each other and with the compaction threshold", () => {
  const compaction = { enabled: true, thresholdPercent: 0.85 };
  test.each<[pruning: PruningOptions, optimisation: object, words: string[]]>([
    [
      { maxContext: 0.5, minContext: "50%" },
      {},
      ['pruning.minContext: "50%" is not below pruning.maxContext, which is 0.5.'],
    ],
    [
      { maxContext: 9_000, minContext: 9_000 },
      {},
      ["pruning.minContext: 9000 is not below pruning.maxContext, which is 9000."],
    ],
    [{ maxContext: 0.5, minContext: 200_000 }, {}, []],
    [
      { maxContext: 0.5, models: { "a/b": { minContext: 0.6 } } },
      {},
      ['pruning.models["a/b"].minContext: 0.6 is not below pruning.maxContext, which is 0.5.'],
    ],
    [{ maxContext: 0.5, models: { "a/b": { minContext: 0.6, enabled: false } } }, {}, []],
    [
      { maxContext: 0.85 },
      { compaction },
      ["pruning.maxContext: 0.85 is not below optimisation.compaction.thresholdPercent, which is 0.85."],
    ],
    [{ maxContext: 0.85 }, { compaction: { ...compaction, enabled: false } }, []],
    [
      { maxContext: 200_000 },
      { compaction: { ...compaction, maxContextTokens: 150_000 } },
      ["pruning.maxContext: 200000 is not below optimisation.compaction.maxContextTokens, which is 150000."],
    ],
    [
      { maxContext: 0.8 },
      { compaction: { ...compaction, models: { "a/b": { thresholdPercent: 0.7 } } } },
      ['pruning.maxContext: 0.8 is not below optimisation.compaction.models["a/b"].thresholdPercent, which is 0.7.'],
    ],
    [
      { maxContext: 0.8, models: { "a/b": { maxContext: 0.6 } } },
      { compaction: { ...compaction, models: { "a/b": { thresholdPercent: 0.7 } } } },
      [],
    ],
    [{ blocks: { maxTokens: 0.6 } }, {}, ["pruning.blocks.maxTokens: 0.6 is above half the window."]],
    [{ blocks: { maxTokens: "50.1%" } }, {}, ['pruning.blocks.maxTokens: "50.1%" is above half the window.']],
    [{ enabled: false, maxContext: 0.2, minContext: 0.3 }, {}, []],
  ])("%j with %j", (pruning, optimisation, words) => {
    expect(mistakesOf(pruning, optimisation)).toEqual(words);
  });

  test("also across layers, and a configuration that has grown too large is refused", () => {
    const { mistakes } = checkedParts([
      { pruning: { enabled: true, minContext: 0.5 } },
      { pruning: { maxContext: 0.4 } },
    ]);
    expect(mistakes.map(inWords)).toEqual(["pruning.minContext: 0.5 is not below pruning.maxContext, which is 0.4."]);
    const long = Array.from({ length: 256 }, (_, at) => `${at}`.padEnd(500, "x"));
    expect(mistakesOf({ protectedFilePatterns: long, compress: { protectedTools: long } })).toEqual([
      expect.stringMatching(
        new RegExp(`^pruning: its \\d+ bytes of JSON exceed the limit of ${MAX_CONFIGURATION_BYTES}\\.$`),
      ),
    ]);
  });
});

describe("layers", () => {
  test("later ones win, objects merge, lists and values are replaced", () => {
    const below: PruningOptions = { compress: { permission: "ask", protectedTools: ["a", "b"] }, maxContext: 0.7 };
    const above: PruningOptions = { compress: { protectedTools: ["c"] }, models: { "a/b": { enabled: false } } };
    expect(mergePruning(below, undefined, above, { models: { "c/d": { maxContext: 0.5 } } })).toEqual({
      compress: { permission: "ask", protectedTools: ["c"] },
      maxContext: 0.7,
      models: { "a/b": { enabled: false }, "c/d": { maxContext: 0.5 } },
    });
  });

  test("every key has a default, and only enabled turns pruning on", () => {
    expect(resolvePruning({})).toEqual(defaultPruning);
    const resolved = resolvePruning({ strategies: { sizeDecay: { turns: 3 } } });
    expect(resolved).toEqual({
      ...defaultPruning,
      strategies: {
        ...defaultPruning.strategies,
        sizeDecay: { ...defaultPruning.strategies.sizeDecay, turns: 3 },
      },
    });
    expect(resolved.enabled).toBe(false);
    expect(resolvePruning({ enabled: true }).enabled).toBe(true);
  });
});

describe("limits in tokens", () => {
  const model = { provider: "a", id: "b", contextWindow: 200_000 };
  const limitsOf = (pruning: PruningOptions, compaction = {}) => {
    const { compaction: resolved } = resolveOptimisation({ compaction });
    const limits = pruningLimits(resolvePruning(pruning), resolved, model);
    return [limits?.max, limits?.min];
  };

  test("are shares of the window, percentages of it, or tokens", () => {
    expect([0, 0.5, 1, "50%", "12.5%", 1_000, 300_000].map((limit) => limitTokens(limit, 200_000))).toEqual([
      0, 100_000, 200_000, 100_000, 25_000, 1_000, 300_000,
    ]);
  });

  test.each<[pruning: PruningOptions, compaction: object, limits: number[]]>([
    [{}, {}, [160_000, 80_000]],
    [{ maxContext: 0.5 }, {}, [100_000, 70_000]],
    [{ maxContext: 0.1 }, {}, [20_000, 0]],
    [{ maxContext: 50_000, minContext: 0.9 }, {}, [50_000, 49_999]],
    [{ maxContext: 300_000 }, {}, [200_000, 80_000]],
    [{ models: { "a/b": { maxContext: "60%", minContext: 10_000 } } }, {}, [120_000, 10_000]],
    [{ models: { "a/c": { maxContext: "60%" } } }, {}, [160_000, 80_000]],
    [{}, { enabled: true, thresholdPercent: 0.85 }, [150_000, 80_000]],
    [{}, { enabled: true, thresholdPercent: 0.85, maxContextTokens: 100_000 }, [85_714, 57_143]],
    [{}, { enabled: true }, [85_714, 57_143]],
    [{ maxContext: 160_000 }, { enabled: true, maxContextTokens: 100_000 }, [99_999, 57_143]],
    [{}, { enabled: false, thresholdPercent: 0.6 }, [160_000, 80_000]],
  ])("of %j with compaction %j", (pruning, compaction, limits) => {
    expect(limitsOf(pruning, compaction)).toEqual(limits);
  });

  test("are absent if the model's window is unknown, and blocks have at least 1,000 and at most half of it", () => {
    const { compaction } = defaultOptimisation;
    expect(pruningLimits(defaultPruning, compaction, { ...model, contextWindow: 0 })).toBeUndefined();
    expect(pruningLimits(defaultPruning, compaction, { ...model, contextWindow: Number.NaN })).toBeUndefined();
    const blocksOf = (maxTokens: number | string) => blocksLimit(resolvePruning({ blocks: { maxTokens } }), 200_000);
    expect([0.15, "2%", 0.001, 150_000].map(blocksOf)).toEqual([30_000, 4_000, 1_000, 100_000]);
  });
});

describe("a directory of texts", () => {
  const within = (check: (dir: string, write: (name: string, text: string | Uint8Array) => void) => void): void => {
    const dir = realpathSync(mkdtempSync(join(tmpdir(), "prompts-")));
    try {
      check(dir, (name, text) => writeFileSync(join(dir, name), text));
    } finally {
      rmSync(dir, { recursive: true });
    }
  };

  test("may lack any of them, and other files in it are ignored", () => {
    within((dir, write) => {
      expect(unusablePrompts(dir)).toEqual([]);
      write("README.md", "{{anything}}");
      for (const file of Object.values(promptFiles)) write(file, "Words.");
      write("limit-soft.md", "At {{usage}} of {{max}}:\n{{blocks}}\n{{candidates}}");
      expect(unusablePrompts(dir)).toEqual([]);
    });
  });

  test("is refused by file and line for an unknown variable, for binary content, and if it is not a directory", () => {
    within((dir, write) => {
      write("turn.md", "One.\n{{usages}} is full.");
      write("system.md", "{{usage}}");
      write("manual.md", new Uint8Array([0xff, 0xfe]));
      write("compress.md", "x".repeat(64 * 1024));
      mkdirSync(join(dir, "iteration.md"));
      const told = unusablePrompts(dir).map((words) => words.replace(dir, ""));
      expect(told).toEqual([
        '"/system.md", line 1: {{usage}} is allowed only in reminders',
        '"/manual.md" is not UTF-8',
        '"/compress.md" is longer than 32768 bytes',
        '"/turn.md", line 2: {{usages}} is not a variable; the variables are {{usage}}, {{max}}, {{blocks}}, {{candidates}}',
        '"/iteration.md" is not a file',
      ]);
      expect(unusablePrompts(join(dir, "turn.md"))).toEqual([expect.stringMatching(/is not a directory$/)]);
      expect(unusablePrompts(join(dir, "none"))).toEqual([expect.stringMatching(/does not exist$/)]);
      const pruning = { prompts: { dir } };
      const places = mistakesOfLayers({ profiles: { mine: { pruning } } }).map(({ place }) => place.join("."));
      expect(new Set(places)).toEqual(new Set(["profiles.mine.pruning.prompts.dir"]));
    });
  });
});
