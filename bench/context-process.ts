import { readFileSync } from "node:fs";
import { defaultContextLimits } from "../protocol/context-limits.ts";
import { perform } from "../server/context/work.ts";

// Performs one task with a document, like the daemon's thread, and writes its costs to stdout as JSON. Arguments: the
// task, and the document's file.

/** The task: one side of the ratio, or the other. */
export type ContextTask = "parse" | "prepare" | "inspect";

export interface ContextCost {
  readonly ms: number;
  /** Peak physical memory, minus the memory at the start. */
  readonly peakMiB: number;
  /** The result of `inspect`. */
  readonly tokens?: { readonly structured: number; readonly flattened: number };
  readonly items?: number;
  readonly nodes?: number;
}

const [task, path = ""] = process.argv.slice(2);
const bytes = readFileSync(path);
const header = { id: "bench", timestamp: 1_795_187_000_000, cwd: "/" };
const target = { api: "openai-completions", provider: "scripted", id: "model-1", takesImages: true };
const before = peakMiB();
const startedAt = performance.now();
const outcome = task === "parse" ? parse() : prepare(task === "prepare");
const ms = performance.now() - startedAt;
process.stdout.write(JSON.stringify({ ms, peakMiB: peakMiB() - before, ...outcome } satisfies ContextCost));

function parse(): Partial<ContextCost> {
  const value = JSON.parse(bytes.toString("utf8")) as { readonly nodes: readonly unknown[] };
  return { nodes: value.nodes.length };
}

function prepare(isWritten: boolean): Partial<ContextCost> {
  const { facts } = perform({
    kind: "prepare",
    source: { kind: "document", bytes },
    options: {},
    target,
    budget: null,
    limits: defaultContextLimits,
    as: isWritten ? { kind: "session", header } : { kind: "facts" },
  });
  return { tokens: facts.tokens, items: facts.counts.items, nodes: facts.counts.nodes };
}

/** `ru_maxrss` would include memory from before this program was loaded. */
function peakMiB(): number {
  const status = readFileSync("/proc/self/status", "utf8");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024;
}
