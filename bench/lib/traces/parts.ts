import { leanOptimisation } from "../../../protocol/optimisation/config.ts";
import type { TraceRun } from "./run.ts";

export type SessionSettings = Pick<TraceRun, "profile" | "optimisation" | "pruning">;

/** Each part of the profile `lean` alone, with its options there. */
export const leanParts: Readonly<Record<string, SessionSettings>> = Object.fromEntries(
  Object.entries(leanOptimisation).map(([part, options]) => [part, { optimisation: { [part]: options } }]),
);

export const lean: SessionSettings = { profile: "lean" };
