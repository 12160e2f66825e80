import type { Whole } from "../configuration/whole.ts";
import type { PruningOptions } from "./options.ts";

/** The complete configuration of a session's pruning: all layers over {@link defaultPruning}. */
export type PruningConfig = Whole<PruningOptions>;

/** Everything is off. The values apply once pruning is on. This module is loaded in pi: constants and types only. */
export const defaultPruning: PruningConfig = {
  enabled: false,
  debug: false,
  maxContext: "auto",
  minContext: "auto",
  models: {},
  nudgeFrequency: 5,
  iterationNudgeThreshold: 15,
  nudgeDebounceTurns: 2,
  nudgeForce: "soft",
  nudges: { maxFailures: 3, backoffMax: 8, breakerCooldown: 20 },
  manualMode: { enabled: false, automaticStrategies: true, strict: false },
  compress: {
    permission: "allow",
    placeholderMode: "adaptive",
    minRangeTokens: 1_000,
    minSavings: 0.2,
    protectUserMessages: false,
    protectedTools: [],
  },
  protectedFilePatterns: [],
  protectRecentTurns: 4,
  tagAssistant: false,
  blocks: { maxTokens: 0.15 },
  strategies: {
    deduplication: { enabled: true, protectedTools: [] },
    purgeErrors: { enabled: true, turns: 4, mode: "inputs", protectedTools: [] },
    supersedeWrites: { enabled: false },
    staleReads: { enabled: false },
    sizeDecay: { enabled: false, turns: 10, minTokens: 2_000, head: 500, tail: 1_000 },
  },
  nativeCompaction: { fromBlocks: true, minPrefixShare: 0.25, guard: true },
  notification: "minimal",
  childSessions: false,
  prompts: { dir: null },
};

/** The model's tool. */
export const COMPRESS_TOOL = "compress";
