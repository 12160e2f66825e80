import type { Whole } from "../configuration/whole.ts";
import type { OptimisationOptions } from "./options.ts";

/** The complete configuration of a session's parts: all layers over {@link defaultOptimisation}. */
export type OptimisationConfig = Whole<OptimisationOptions>;
export type OptimisationPart = keyof OptimisationConfig;

/** Everything is off. The values apply once a part is on. This module is loaded in pi: constants and types only. */
export const defaultOptimisation: OptimisationConfig = {
  estimator: { enabled: false, tokenizer: "chars", cacheEntries: 20_000, window: 20, imageTokens: 1_200 },
  cost: { enabled: false, autoCheckpoint: "run", budgetUsd: null, onBudget: "warn", warnAt: 0.8 },
  cache: {
    enabled: false,
    audit: true,
    sortTools: true,
    warnVolatile: true,
    noiseTokens: 1_024,
    minBatchTokens: 30_000,
  },
  toolResults: {
    enabled: false,
    tools: {
      bash: { keep: "headTail", head: 500, tail: 1_000, above: 6_000 },
      powershell: { keep: "headTail", head: 500, tail: 1_000, above: 6_000 },
      grep: { keep: "head", head: 4_000, above: 6_000 },
      find: { keep: "head", head: 4_000, above: 6_000 },
      ls: { keep: "head", head: 4_000, above: 6_000 },
      read: { keep: "headTail", head: 8_000, tail: 2_000, above: 12_000 },
      "*": { keep: "headTail", head: 1_000, tail: 2_000, above: 12_000 },
    },
    errorTail: 2_000,
    spillMaxMiB: 256,
  },
  masking: {
    enabled: false,
    afterTurns: 10,
    afterUserTurns: null,
    protectTokens: 50_000,
    expectedRequests: "auto",
    errors: "keep",
    images: "mask",
    excludeTools: [],
  },
  compaction: {
    enabled: false,
    thresholdPercent: "auto",
    maxContextTokens: null,
    models: {},
    route: "auto",
    minFreeShare: 0.25,
    minTurnsBetween: 3,
    prompt: null,
  },
  contextFiles: { enabled: false, dedupe: false, minParagraphChars: 80, budgetTokens: 8_000, sections: [] },
  skills: { enabled: false, mode: "pointer", digestTokens: 200, inlineBelowTokens: 600, prefetch: [] },
  format: { enabled: false, report: true, sections: "xml" },
  dynamicTools: {
    enabled: false,
    mode: "auto",
    minTools: 20,
    keep: ["read", "bash", "edit", "write", "compress", "recall"],
    allowActivation: false,
    synonyms: null,
  },
};

/** The parts that the shipped profile `lean` turns on. */
export const leanOptimisation: OptimisationOptions = {
  cache: { enabled: true },
  masking: { enabled: true },
  toolResults: { enabled: true },
  compaction: { enabled: true },
  contextFiles: { enabled: true, dedupe: true },
  skills: { enabled: true },
};

/** Tools that our own parts add when they are on. */
export const RECALL_TOOL = "recall";
export const SKILL_TOOL = "get_skill_detail";
export const DYNAMIC_TOOLS = ["search_tools", "describe_tools", "execute_tool"] as const;
