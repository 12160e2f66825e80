import { expect, test } from "vitest";
import { addMasking } from "../../../../../context/parts/masking/masking.ts";
import type { RecallRegistry } from "../../../../../context/parts/recall/registry.ts";
import { resolveOptimisation } from "../../../../../protocol/optimisation/resolve.ts";
import { partial, unchecked } from "../../../../helpers/partial.ts";
import { fakeStatus } from "../../fake-host.ts";

type Contributor = (boundary: object) => { readonly drafts: readonly { readonly type: string }[] } | undefined;

/** The part with this many free numbers, at a boundary with three old outputs. */
function masked(numbers: number) {
  let isHindered = (): boolean => false;
  let missing: string | undefined;
  const status = fakeStatus();
  const changed: string[] = [];
  let left = numbers;
  let contributor: Contributor | undefined;
  const recall = {
    need: () => {},
    missing: () => missing,
    registry: partial<RecallRegistry>({
      ofEntry: () => [],
      reserve: () => (left-- > 0 ? numbers - left : undefined),
    }),
  };
  const boundary = {
    contribute: (_name: string, given: Contributor): void => {
      contributor = given;
    },
    isProtected: () => false,
  };
  addMasking(unchecked({ boundary, on: () => undefined }), {
    pi: { appendEntry: () => undefined },
    pending: {
      on: () => new Map(),
      rest: (_owner, given) => {
        isHindered = given as typeof isHindered;
      },
    },
    config: () => resolveOptimisation({ masking: { enabled: true, afterTurns: 1, protectTokens: 0 } }).masking,
    recall: partial(recall),
    estimator: { message: (message) => JSON.stringify(message).length },
    cacheRule: {
      isCold: () => false,
      decide: () => ({
        act: true,
        why: "saves",
        forecast: { missedTokens: 0, missedUsd: 0, requests: 0, savedUsd: 0 },
      }),
      changed: (_part, ids) => void changed.push(...ids),
    },
    status,
  });
  const messages = [
    ...["t1", "t2", "t3"].map((id) => ({ id, role: "toolResult", toolName: "read", toolCallId: id, text: "x" })),
    { id: "a1", role: "assistant", text: "" },
    { id: "a2", role: "assistant", text: "" },
  ];
  const contextEntries = messages.map(({ id, text, ...message }) => {
    const content = text === "" ? [] : [{ type: "text", text: text.repeat(1_000) }];
    const whole = { ...message, content };
    return { sourceEntry: { type: "message", id, message: whole }, messages: [whole] };
  });
  const ctx = { model: { contextWindow: 200_000 }, sessionManager: {} };
  const wish = contributor?.({ state: { context: { contextEntries } }, ctx });
  const restsWithout = (tool: string): boolean => {
    missing = `${tool} is not active.`;
    return isHindered();
  };
  return { wish, degraded: status.reasons, changed, rests: isHindered(), restsWithout };
}

test("without a free number for recall nothing is masked or written, and that is reported", () => {
  expect(masked(0)).toMatchObject({ wish: undefined, changed: [], degraded: [expect.stringContaining("no number")] });
});

test("no more outputs are masked than there are free numbers", () => {
  const { wish, changed, degraded } = masked(2);
  expect(wish?.drafts.map(({ type }) => type)).toEqual(["custom", "context_edit", "context_edit"]);
  expect(changed).toEqual(["t1", "t2"]);
  expect(degraded).toEqual([]);
});

test("edits that wait for a boundary rest while the model has no tool to recall what they hide", () => {
  const { rests, restsWithout } = masked(2);
  expect([rests, restsWithout("recall")]).toEqual([false, true]);
});
