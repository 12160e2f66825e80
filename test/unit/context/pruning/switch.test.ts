import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { createSwitch } from "../../../../context/pruning/switch.ts";
import { defaultPruning, type PruningConfig } from "../../../../protocol/pruning/config.ts";
import { partial } from "../../../helpers/partial.ts";
import { fakeContext, fakeHost } from "../fake-host.ts";

interface Case {
  readonly why: string;
  readonly config?: Partial<PruningConfig>;
  readonly active?: readonly string[];
  readonly conflict?: string;
  readonly forced?: string;
  readonly off: string | undefined;
}

const cases: readonly Case[] = [
  { why: "it is on and the tool is active", off: undefined },
  { why: "it is not enabled", config: { enabled: false }, off: "Pruning is off for this session." },
  {
    why: "the model is excluded",
    config: { models: { "test/model": { enabled: false } } },
    off: "Pruning is off for test/model.",
  },
  { why: "another model is excluded", config: { models: { "test/other": { enabled: false } } }, off: undefined },
  { why: "a model has limits of its own", config: { models: { "test/model": { maxContext: 0.5 } } }, off: undefined },
  { why: "the tool is not active", active: ["read"], off: "The tool compress is not active." },
  { why: "another extension has the tool", conflict: "Theirs.", off: "Theirs." },
  { why: "the whole prompt is forced", forced: "Say yes.", off: "Another extension has replaced the whole prompt." },
  { why: "an empty prompt is forced", forced: "", off: "Another extension has replaced the whole prompt." },
];

test.for(cases)(
  "if $why, pruning is off because: $off",
  ({ config, active = ["read", "compress"], conflict, forced, off }) => {
    const ctx: ExtensionContext = fakeContext();
    const host = fakeHost(ctx);
    const pi = partial<ExtensionAPI>({ getActiveTools: () => [...active] });
    const made = createSwitch({ ...host, pi }, () => ({ ...defaultPruning, enabled: true, ...config }));
    if (conflict !== undefined) made.conflict(conflict);
    const systemPromptOptions: { forceSystemPrompt?: string } = {};
    host.emit("before_agent_start", { systemPromptOptions });
    // Extensions after ours do it later.
    if (forced !== undefined) systemPromptOptions.forceSystemPrompt = forced;
    expect(made.off(ctx)).toBe(off);
    made.conflict(undefined);
    host.emit("agent_settled", {});
    if (conflict !== undefined || forced !== undefined) expect(made.off(ctx)).toBeUndefined();
  },
);
