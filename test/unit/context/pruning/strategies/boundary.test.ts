import type { SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { addPendingEdits, PendingEdits } from "../../../../../context/parts/recall/pending-edits.ts";
import { recordData, recordedIn } from "../../../../../context/parts/recall/record.ts";
import { RecallRegistry } from "../../../../../context/parts/recall/registry.ts";
import type { PruningServices } from "../../../../../context/pruning/pruning-services.ts";
import { Announcements } from "../../../../../context/pruning/strategies/announcements.ts";
import { batchOf, replacementsOf } from "../../../../../context/pruning/strategies/batch.ts";
import { type Call, callsOf } from "../../../../../context/pruning/strategies/calls.ts";
import { decayed } from "../../../../../context/pruning/strategies/decay.ts";
import { planned } from "../../../../../context/pruning/strategies/plan.ts";
import { search } from "../../../../../context/pruning/strategies/search.ts";
import { addStrategies } from "../../../../../context/pruning/strategies/strategies.ts";
import { BoundaryWriter } from "../../../../../extension/boundary.ts";
import type { AgentMessage, SessionEntry } from "../../../../../extension/pi-types.ts";
import { resolvePruning } from "../../../../../protocol/pruning/resolve.ts";
import { partial, unchecked } from "../../../../helpers/partial.ts";
import { fakeContext, fakeHost } from "../../fake-host.ts";
import { Branch } from "../branch.ts";
import { contextOf, long, read, type Step } from "./scene.ts";

type RequestNeed = Parameters<PruningServices["entries"]["need"]>[0];

const tokensOf = (message: AgentMessage): number => JSON.stringify(message).length;

/** Batches of these calls, where freeing is worth `worth` times the rewritten tokens. */
function batch(steps: readonly Step[], { worth = 1, isForced = false, changesFrom = 1_000 } = {}) {
  const context = contextOf(steps);
  const config = resolvePruning({ enabled: true });
  const removals = planned({ context, config, cwd: "/project", tokensOf, isOut: () => false });
  const asked: number[] = [];
  const cacheRule = {
    decide: ({ freedTokens, suffixTokens }: { freedTokens: number; suffixTokens: number }) => {
      asked.push(suffixTokens);
      const act = freedTokens * worth >= suffixTokens;
      const forecast = { missedTokens: suffixTokens, missedUsd: suffixTokens, requests: 0, savedUsd: 0 };
      return { act, why: act ? "saves" : "too_dear", forecast };
    },
  };
  const choice = { removals, context, tokensOf, isHidden: () => false, changesFrom, isForced, isAboveMax: false };
  const made = batchOf({ cacheRule: unchecked(cacheRule) }, choice, fakeContext());
  return { ids: made?.priced.map(({ removal }) => removal.target.entryId), cost: made?.cost, asked };
}

const two = [read("a", long("a")), read("a", long("a")), read("b", long("b")), read("b", long("b"))];

test("a batch that is too expensive is reduced to its newer half, or dropped if that is too expensive too", () => {
  const apart = [...two.slice(0, 2), read("c", long("c").repeat(3)), ...two.slice(2)];
  expect(batch(apart, { worth: 4 }).ids).toEqual(["t1", "t4"]);
  expect(batch(apart, { worth: 1.5 }).ids).toEqual(["t4"]);
  expect(batch(apart, { worth: 0 }).ids).toBeUndefined();
});

test("nothing is rewritten for a change after the place where the next request differs anyway", () => {
  const atBlock = batch(two, { worth: 0.0001, changesFrom: 1 });
  expect(atBlock.ids).toEqual(["t1", "t3"]);
  expect(atBlock.cost).toMatchObject({ tokens: 0, usd: 0 });
});

test("the user's requests are carried out at any cost, and the cost is recorded", () => {
  const forced = batch(two, { worth: 0, isForced: true });
  expect(forced.ids).toEqual(["t1", "t3"]);
  expect(forced.cost?.tokens).toBeGreaterThan(1_000);
});

test("contributors of edits are asked in turn, see earlier edits, and each entry is edited once", async () => {
  const entries = ["e1", "e2"].map((id, at) => ({
    type: "message",
    id,
    parentId: at === 0 ? null : "e1",
    timestamp: "",
    message: { role: "toolResult", toolCallId: id, toolName: "read", content: [], isError: false, timestamp: 0 },
  })) as unknown as SessionEntry[];
  const ctx = fakeContext(entries);
  const writer = new BoundaryWriter((_where, thrown) => {
    throw thrown;
  });
  const edit = (targetId: string, text: string): SessionBoundaryDraft => ({
    type: "context_edit",
    targetId,
    replacement: { content: text },
  });
  const seen: Record<string, readonly string[]> = {};
  const want = (name: string, ...drafts: readonly SessionBoundaryDraft[]) => {
    return ({ edited }: { readonly edited?: ReadonlySet<string> }) => {
      seen[name] = [...(edited ?? [])];
      return { drafts };
    };
  };
  writer.contribute("decay", want("decay", edit("e1", "decay")), { edits: "decay" });
  writer.contribute("masking", want("masking", edit("e2", "masking")), { edits: "masking" });
  writer.contribute("strategies", want("strategies", edit("e1", "strategies")), { edits: "deduplication" });
  const state = { entries: [], continue: false, context: { contextEntries: [] } };
  const answer = await writer.write({ hook: "turn_end", state: unchecked(state), ctx });
  expect(seen).toEqual({ strategies: [], masking: ["e1"], decay: ["e1", "e2"] });
  expect(answer?.entries).toEqual([edit("e1", "strategies"), edit("e2", "masking")]);
});

/** A session whose file contains this edit. */
function holding(content: unknown, targetId = "t1", data: object = {}) {
  const base = contextOf([read("a", "text")]).map(({ sourceEntry }) => sourceEntry);
  const held = {
    type: "custom",
    id: "held",
    customType: "pi-rpcd.edits",
    data: { v: 1, edits: [{ targetId, content }], ...data },
  };
  const entries = [...base, held].map((entry, at, all) => ({ ...entry, parentId: all[at - 1]?.id ?? null }));
  return fakeContext(unchecked(entries));
}

function pendingOn(content: unknown, targetId?: string, data?: object) {
  const edits = new PendingEdits({ entries: partial({}), isUnanswered: () => false });
  return edits.on(holding(content, targetId, data)).size;
}

test("a pending edit is accepted only in our own form, because others can write session files too", () => {
  const call = { type: "toolCall", id: "c1", name: "read", arguments: { path: "[path: pruned]" } };
  expect(pendingOn([{ type: "text", text: "[read a]" }])).toBe(1);
  expect(pendingOn([call], "a1")).toBe(1);
  for (const content of ["text", null, [], [{ type: "text" }], [{ type: "toolCall" }], [1]]) {
    expect(pendingOn(content), JSON.stringify(content)).toBe(0);
  }
  for (const content of [
    [],
    [{ ...call, id: "c2" }],
    [{ ...call, name: "bash" }],
    [{ ...call, arguments: "x" }],
    [call, call],
  ]) {
    expect(pendingOn(content, "a1"), JSON.stringify(content)).toBe(0);
  }
  expect(pendingOn([{ type: "text", text: "x" }], "u1")).toBe(0);
  expect(pendingOn([{ type: "text", text: "x" }], "none")).toBe(0);
  expect(pendingOn([{ type: "text", text: "x" }], "t1", { v: 2 })).toBe(0);
  expect(pendingOn([{ type: "text", text: "x" }], "t1", { edits: "all" })).toBe(0);
});

test("an edited message is still attributed to its entry, even if others have its time and its call", () => {
  const content = [{ type: "text", text: "[read a]" }];
  const ctx = holding(content);
  const result = { role: "toolResult", toolCallId: "c1", content: [], timestamp: 2 } as unknown as AgentMessage;
  const known = new Map<AgentMessage, string>([[result, "t1"]]);
  const entries = {
    entryOf: (message: AgentMessage) => known.get(message),
    copied: (copy: AgentMessage, original: AgentMessage) => void known.set(copy, known.get(original) ?? ""),
  };
  const [made] =
    new PendingEdits({ entries: unchecked(entries), isUnanswered: () => false }).applied([result], ctx) ?? [];
  expect(made).toEqual({ ...result, content });
  expect(known.get(made as AgentMessage)).toBe("t1");
});

/** The strategies in manual mode. */
function strategiesOf(members: Parameters<typeof partial<PruningServices>>[0]) {
  const host = partial<PruningServices>(members);
  const pending = new PendingEdits(host);
  const services = { ...host, pending };
  addPendingEdits(host, host, pending);
  return addStrategies(services, services, {
    told: new Announcements(services),
    find: (order, scene, ctx) => search(services, order, scene, ctx),
    isManual: () => true,
  });
}

test("while pruning is off, or recall is unavailable, swept outputs are shown complete, and pi gets no edit", async () => {
  const content = [{ type: "text", text: "[read a]" }];
  const ctx = holding(content);
  const result = { role: "toolResult", toolCallId: "c1", content: [], timestamp: 2 } as unknown as AgentMessage;
  const host = fakeHost(ctx);
  const needs: RequestNeed[] = [];
  let [off, missing]: (string | undefined)[] = [];
  strategiesOf({
    ...host,
    off: () => off,
    pruning: () => resolvePruning({ enabled: true, manualMode: { automaticStrategies: false } }),
    recall: partial({ need: () => undefined, addSource: () => undefined, missing: () => missing }),
    entries: {
      need: (isNeeded: RequestNeed) => void needs.push(isNeeded),
      entryOf: (message: AgentMessage) => (message === result ? "t1" : undefined),
      copied: () => undefined,
    },
    blocks: { on: () => ({ active: [] }) },
    cacheRule: { changed: () => undefined },
  });
  const state = { entries: [], continue: false, context: { contextEntries: [] } };
  const done = async () => ({
    shown: host.pipeline.run("context_with_system", [result], ctx),
    drafts: (await host.boundary.write({ hook: "turn_end", state: unchecked(state), ctx }))?.entries ?? [],
    isMapped: needs.some((isNeeded) => isNeeded([result], ctx)),
  });
  const nothing = { shown: [result], drafts: [], isMapped: false };
  const edit = { type: "context_edit", targetId: "t1", replacement: { content } };
  const all = { shown: [{ ...result, content }], drafts: [edit], isMapped: true };
  expect(await done()).toEqual(all);
  off = "Pruning is off for this session.";
  expect(await done()).toEqual(nothing);
  off = undefined;
  missing = "The tool recall is not active.";
  expect(await done()).toEqual(nothing);
  missing = undefined;
  expect(await done()).toEqual(all);
  expect(host.faults).toEqual([]);
});

test("an output removed for a call with an impossible tool name can be recalled", () => {
  const registry = new RecallRegistry();
  const ctx = fakeContext();
  for (const name of ["", "x".repeat(300)]) {
    const steps = [{ ...read("a", long("a")), tool: name }];
    const [call] = callsOf(contextOf(steps), () => false).all;
    const target = call?.result;
    if (call === undefined || target === undefined) throw new Error("There is a call.");
    const removal = { kind: "output", strategy: "sweep", target, call } as const;
    const [made] = replacementsOf(partial({ recall: { registry } }), partial({ priced: [{ removal, freed: 9 }] }), ctx);
    const data = recordData("sweep", made === undefined ? [] : [made.record]);
    expect(recordedIn(unchecked({ type: "custom", customType: "pi-rpcd.recall", data }))?.records).toHaveLength(1);
  }
});

test("the expensive protection check is made only for outputs that are large enough to remove", () => {
  const calls = callsOf(contextOf([read("a", "short"), read("b", long("b"))], 9), () => false);
  const asked: unknown[] = [];
  const isWanted = ({ block }: Call): boolean => asked.push(block.arguments) > 0;
  const rules = { enabled: true, turns: 5, minTokens: 1_000, head: 100, tail: 100 };
  expect(decayed(calls, rules, tokensOf, isWanted)).toHaveLength(1);
  expect(asked).toEqual([{ path: "b" }]);
});

test("a pending sweep is proposed again if pi did not accept it, and otherwise only once", async () => {
  const branch = new Branch();
  branch.user("Go on.");
  const [, resultId] = branch.call("read", { path: "a" }, long("a"));
  branch.isIdle = false;
  const ctx = branch.context;
  const host = fakeHost(ctx);
  const sweeper = strategiesOf({
    ...host,
    off: () => undefined,
    usage: () => undefined,
    pruning: () => resolvePruning({ enabled: true, manualMode: { automaticStrategies: false } }),
    estimator: { message: (message: AgentMessage) => JSON.stringify(message).length },
    recall: {
      need: () => undefined,
      addSource: () => undefined,
      missing: () => undefined,
      registry: new RecallRegistry(),
    },
    entries: { need: () => undefined },
    blocks: { on: () => ({ active: [] }) },
    cacheRule: { changed: () => undefined, decide: () => ({ act: true, forecast: {} }) },
  });
  expect(sweeper.sweep(1, true, ctx)).toMatchObject({ state: "waiting" });
  const proposed = async () => {
    const contextEntries = branch.messages.map(({ entryId, message }) => ({
      sourceEntry: ctx.sessionManager.getEntry(entryId),
      messages: [message],
    }));
    const state = { entries: [], continue: false, context: { contextEntries } };
    return (await host.boundary.write({ hook: "turn_end", state: unchecked(state), ctx }))?.entries ?? [];
  };
  const first = await proposed();
  expect(first).toMatchObject([{ customType: "pi-rpcd.recall" }, { type: "context_edit", targetId: resultId }]);
  // Another extension's draft was invalid, so pi accepted none.
  const second = await proposed();
  expect(second).toMatchObject([{ customType: "pi-rpcd.recall" }, { type: "context_edit", targetId: resultId }]);
  for (const draft of second) branch.add({ ...draft });
  expect(await proposed()).toEqual([]);
  expect(host.faults).toEqual([]);
});
