import { describe, expect, test } from "vitest";
import { createEstimator } from "../../../context/parts/estimator/estimator.ts";
import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";
import { defaultOptimisation, type OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import { assistant, tokenTrace } from "../../helpers/token-traces.ts";
import { fakeContext, fakeHost, fakeStatus } from "./fake-host.ts";

const prose = "The committee met on Thursday and decided to postpone the construction of the library. ".repeat(40);

function user(text: string): AgentMessage {
  return { role: "user", content: [{ type: "text", text }], timestamp: 1 };
}

interface Fixture {
  readonly knobs?: Partial<OptimisationConfig["estimator"]>;
  readonly entries?: readonly SessionEntry[];
  readonly tokenizer?: URL;
}

function room({ knobs = {}, entries = [], tokenizer }: Fixture = {}) {
  const ctx = fakeContext(entries);
  const host = fakeHost(ctx);
  const status = fakeStatus();
  const estimator = createEstimator(host, {
    config: () => ({ ...defaultOptimisation.estimator, ...knobs }),
    status,
    ...(tokenizer === undefined ? {} : { tokenizer }),
  });
  return {
    ctx,
    host,
    estimator,
    degraded: status.reasons,
    figure: (name: string) => status.report(ctx)?.figures[name],
    /** Makes a request of these messages, answered in this way by the service. */
    answered: (messages: readonly AgentMessage[], response: AgentMessage, tools: readonly unknown[] = []) => {
      host.pipeline.run("context_with_system", messages, ctx);
      host.pipeline.run("before_provider_request", { tools }, ctx);
      host.pipeline.run("message_end", response, ctx);
    },
  };
}

const said = (input: number, stopReason = "stop") =>
  ({ ...assistant([], 1, { input, output: 5 }), stopReason }) as AgentMessage;

describe("an estimate of a request", () => {
  test("is the last reported count, corrected by the changes since", () => {
    const { estimator, answered, ctx } = room();
    const messages = [user(prose), user("And then?")];
    answered(messages, said(50_000));
    expect(estimator.request(messages, ctx)).toBe(50_000);
    const more = user(prose.toUpperCase());
    expect(estimator.request([...messages, more], ctx)).toBe(50_000 + estimator.message(more));
    expect(estimator.request(messages.slice(1), ctx)).toBe(50_000 - estimator.message(messages[0] as AgentMessage) + 1);
  });

  test("recognises messages by their content, because pi copies them for each request", () => {
    const { estimator, answered, ctx } = room();
    const messages = [user(prose), user(prose), user("And then?")];
    answered(messages, said(9_000));
    expect(estimator.request(structuredClone(messages), ctx)).toBe(9_000);
    const fewer = estimator.request(structuredClone(messages.slice(1)), ctx);
    expect(9_000 - fewer).toBeGreaterThanOrEqual(estimator.message(user(prose)) - 1);
  });

  test("includes the prompt and the tools of the last request, if the messages lack them", () => {
    const { estimator, answered, ctx } = room();
    const system = { role: "system", content: prose, timestamp: 0 } as AgentMessage;
    answered([system, user("Hi")], said(7_000));
    expect(estimator.request([user("Hi")], ctx)).toBe(7_000);
  });

  test("is not based on another model's count", () => {
    const { estimator, answered, ctx } = room();
    answered([user("Hi")], said(60_000));
    (ctx as { model: unknown }).model = { provider: "other", id: "model" };
    expect(estimator.request([user("Hi")], ctx)).toBeLessThan(1_000);
  });
});

describe("factors are learnt", () => {
  const turns = tokenTrace("prose", 1, 8);

  /** The service counts this multiple of a fourth of the characters. */
  function taught(times: number, response: (input: number) => AgentMessage, tools?: () => readonly unknown[]) {
    const it = room();
    const messages: AgentMessage[] = [];
    for (const added of turns) {
      messages.push(...added);
      it.answered(messages, response(Math.round((JSON.stringify(messages).length / 4) * times)), tools?.());
    }
    return it;
  }

  test("from the services' reports, for each class, between a half and two", () => {
    expect(taught(1.5, said).figure("factor.prose")).toBeGreaterThan(1.3);
    expect(taught(1, said).figure("factor.prose")).toBeLessThan(1.2);
    expect(taught(4, said).figure("factor.prose")).toBe(2);
    expect(taught(0.2, said).figure("factor.prose")).toBe(0.5);
  });

  test("at most from as many responses as the window has", () => {
    const { figure } = taught(1.5, said);
    expect(figure("learntFrom")).toBe(7);
    const it = room({ knobs: { window: 3 } });
    const messages: AgentMessage[] = [];
    for (const added of turns) {
      messages.push(...added);
      it.answered(messages, said(JSON.stringify(messages).length));
    }
    expect(it.figure("learntFrom")).toBe(3);
  });

  test.each([
    ["aborted", () => said(100_000, "aborted")],
    ["failed", () => said(100_000, "error")],
    ["without any usage", () => said(0)],
    ["without a sound usage", () => ({ ...said(1), usage: { input: "many" } }) as unknown as AgentMessage],
    ["of another model than was asked", () => ({ ...said(100_000), model: "other" }) as AgentMessage],
  ])("not from responses that are %s", (_, response) => {
    const { figure, answered, estimator, ctx } = room();
    const messages = [user("Hi")];
    answered(messages, said(1_000));
    const longer = [...messages, user(prose)];
    answered(longer, response());
    expect(figure("learntFrom")).toBe(0);
    expect(estimator.request(messages, ctx)).toBe(1_000);
  });

  test("not from requests that only keep the cache warm", () => {
    const { host, figure, ctx, estimator, answered } = room();
    answered([user("Hi")], said(1_000));
    host.pipeline.run("before_provider_request", { tools: [], max_tokens: 1 }, ctx);
    host.pipeline.run("message_end", said(90_000), ctx);
    expect(figure("learntFrom")).toBe(0);
    expect(estimator.request([user("Hi")], ctx)).toBe(1_000);
  });

  test("not if the tools have changed, or if no text could explain the report", () => {
    let calls = 0;
    expect(taught(1, said, () => [{ name: `tool${"x".repeat(calls++)}` }]).figure("learntFrom")).toBe(0);
    const { figure, answered } = room();
    answered([user("Hi")], said(1_000));
    answered([user("Hi"), user(prose)], said(900_000));
    answered([user("Hi"), user(prose), user(prose)], said(10));
    expect(figure("learntFrom")).toBe(0);
  });

  test("from the branch when a session is resumed, so that a new pi counts like the previous one", () => {
    const entries: SessionEntry[] = [];
    const add = (message: AgentMessage): void => {
      entries.push({
        type: "message",
        id: `e${entries.length}`,
        parentId: entries.at(-1)?.id ?? null,
        message,
      } as SessionEntry);
    };
    let input = 0;
    for (const added of turns.slice(1)) {
      for (const message of added) {
        input += JSON.stringify(message).length * 0.35;
        add(
          message.role === "assistant"
            ? ({ ...message, usage: { input: Math.round(input), output: 9 } } as AgentMessage)
            : message,
        );
      }
    }
    const { figure, estimator } = room({ entries });
    expect(estimator.text(prose)).toBeGreaterThan(prose.length * 0.25);
    expect(figure("learntFrom")).toBeGreaterThan(3);
  });
});

describe("an estimate of the branch's content", () => {
  const first = { type: "message", id: "u1", parentId: null, message: user(prose) } as SessionEntry;
  const answer = {
    type: "message",
    id: "a1",
    parentId: "u1",
    message: { ...assistant([{ type: "text", text: "Yes." }], 1, { input: 4_000, cacheRead: 6_000, output: 20 }) },
  } as SessionEntry;
  const next = { type: "message", id: "u2", parentId: "a1", message: user(prose) } as SessionEntry;

  test("starts from the last report", () => {
    const { estimator, ctx } = room({ entries: [first, answer, next] });
    expect(estimator.context(ctx)).toBe(10_020 + estimator.message(user(prose)));
  });

  test("follows edits of entries before the report", () => {
    const edit = {
      type: "context_edit",
      id: "x1",
      parentId: "u2",
      targetId: "u1",
      replacement: { content: [{ type: "text", text: "(gone)" }] },
    } as SessionEntry;
    const { estimator, ctx } = room({ entries: [first, answer, next, edit] });
    const expected = 10_020 + estimator.message(user("(gone)"));
    expect(Math.abs(estimator.context(ctx) - expected)).toBeLessThanOrEqual(2);
  });

  test("counts everything if the context was compacted since", () => {
    const compaction = {
      type: "compaction",
      id: "c1",
      parentId: "a1",
      summary: "They met.",
      firstKeptEntryId: "u2",
    } as SessionEntry;
    const { estimator, ctx } = room({ entries: [next, compaction] });
    const tokens = estimator.context(ctx);
    expect(tokens).toBeGreaterThan(estimator.message(user(prose)));
    expect(tokens).toBeLessThan(estimator.message(user(prose)) + 100);
  });
});

test("hostile values in place of texts are not counted, and break nothing", () => {
  const { estimator, ctx, host, answered } = room();
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const hostile = [
    { role: "user", content: null },
    { role: "user", content: [null, 7, { type: "text", text: { length: 9 } }, { type: "toolCall", arguments: cycle }] },
    { role: "system", content: 1, sections: { a: null, b: 3 }, toolsAdded: [1n] },
    { role: "assistant", content: [{ type: "thinking", thinking: 1 }], usage: null },
    { role: "unheard-of" },
  ] as unknown as AgentMessage[];
  answered(hostile, { ...said(1), usage: { input: Number.NaN } } as unknown as AgentMessage);
  expect(estimator.request(hostile, ctx)).toBeLessThan(200);
  expect(host.faults).toEqual([]);
});

describe("counts are quick", () => {
  const texts = Array.from({ length: 200 }, (_, at) => `${at} ${prose.repeat(3)}`);

  test("and quicker if the content was counted before", () => {
    const { estimator } = room();
    const counted = (): number => {
      const began = performance.now();
      for (const text of texts) estimator.message(user(text));
      return (performance.now() - began) / texts.length;
    };
    const first = counted();
    const again = Math.min(counted(), counted(), counted());
    expect(again).toBeLessThan(first);
    expect(again).toBeLessThan(1);
  });

  test("and take only a few passes over uncounted text", () => {
    const { estimator } = room();
    const took = (length: number): number => {
      const all = Array.from({ length: 5 }, (_, at) => {
        const text = `${at}${prose.repeat(Math.ceil(length / prose.length))}`;
        const began = performance.now();
        estimator.text(text);
        return performance.now() - began;
      });
      return Math.min(...all);
    };
    took(100_000);
    expect(took(100_000)).toBeLessThan(30);
  });
});

describe("with a tokenizer", () => {
  const knobs = { tokenizer: "bpe" } as const;
  const entries = [{ type: "message", id: "u1", parentId: null, message: user(prose) }] as SessionEntry[];

  test("content near a threshold is counted by it, and nothing else loads it", async () => {
    const { estimator, ctx, host, degraded } = room({ knobs, entries });
    const before = estimator.context(ctx);
    estimator.near(() => before * 2);
    expect(estimator.refined(ctx)).toBeUndefined();
    estimator.near(() => before);
    await estimator.refined(ctx);
    const { countTokens } = await import("gpt-tokenizer/encoding/o200k_base");
    expect(estimator.text(prose)).toBe(countTokens(prose));
    expect(degraded).toEqual([]);
    host.emit("session_shutdown", { reason: "quit" });
  });

  test("that cannot be loaded characters are counted, and the failure is reported", async () => {
    const { estimator, ctx, degraded } = room({ knobs, entries, tokenizer: new URL("file:///nowhere/module.js") });
    estimator.near(() => 1);
    const before = estimator.text(prose);
    await estimator.refined(ctx);
    await estimator.refined(ctx);
    expect(estimator.text(prose)).toBe(before);
    expect(degraded).toEqual([expect.stringContaining("so characters are")]);
  });

  test("none is loaded if characters are configured", () => {
    const { estimator, ctx } = room({ entries });
    estimator.near(() => 1);
    expect(estimator.refined(ctx)).toBeUndefined();
  });
});
