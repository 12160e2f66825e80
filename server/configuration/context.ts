import { type ContextLimits, defaultContextLimits } from "../../protocol/context-limits.ts";
import type { Values } from "./settings.ts";

type Given = Pick<Values, Extract<keyof Values, `context.${string}`>>;

/** The configuration of contexts. */
export function contextConfiguration(values: Given): {
  readonly readRoots: readonly string[];
  readonly ackTimeoutMs: number;
  readonly limits: ContextLimits;
} {
  return {
    readRoots: values["context.readRoots"],
    ackTimeoutMs: values["context.ackTimeoutMs"],
    limits: {
      ...defaultContextLimits,
      maxDocumentBytes: values["context.maxDocumentBytes"],
      maxNodes: values["context.maxNodes"],
      maxItems: values["context.maxItems"],
      maxBlockBytes: values["context.maxBlockBytes"],
    },
  };
}
