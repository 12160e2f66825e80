import { pino } from "pino";
import { describe, expect, it, vi } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import { createValidator } from "../../../protocol/validation.ts";
import {
  type Conversation,
  createDispatcher,
  type DispatcherLimits,
  defaultDispatcherLimits,
} from "../../../server/rpc/dispatcher.ts";
import { deliveryId, type EdgeTestOptions, fakeCore } from "../../helpers/edge.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

const sessionId = "01920000-0000-7000-8000-000000000002";

interface Options {
  readonly handlers?: EdgeTestOptions["handlers"];
  readonly limits?: Partial<DispatcherLimits>;
  readonly onViolation?: (violation: Error) => void;
}

function start({ handlers, limits, onViolation }: Options = {}) {
  const logged: string[] = [];
  const log = pino({ level: "trace" }, { write: (line) => logged.push(line) });
  const core = fakeCore(handlers);
  const dispatcher = createDispatcher({
    handlers: core.handlers,
    validator: createValidator(),
    onViolation,
    log,
    limits,
  });
  return { dispatcher, conversation: dispatcher.converse(undefined, undefined), logged, nextWait: core.nextWait };
}

async function say(conversation: Conversation, value: unknown): Promise<Unchecked> {
  const text = typeof value === "string" || Buffer.isBuffer(value) ? value : JSON.stringify(value);
  return await conversation.receive(Buffer.from(text));
}

const request = (id: unknown, method: string, params?: unknown) => ({ jsonrpc: "2.0", id, method, params });
const waitCall = (id: unknown) => request(id, "delivery/wait", { deliveryId });
const cancel = (id: unknown) => ({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id } });

describe("a handler that fails", () => {
  it("forwards the code, the message and the data of a wire error", async () => {
    const failing = () => {
      throw new WireError("conflict", "It was another one.", { idempotencyKey: "k" });
    };
    const { conversation, logged } = start({ handlers: { "session/list": failing } });
    expect((await say(conversation, request(1, "session/list"))).error).toEqual({
      code: -32031,
      message: "It was another one.",
      data: { name: "conflict", retryable: false, idempotencyKey: "k" },
    });
    expect(logged).toEqual([]);
  });

  it.each([
    new Error("secret words"),
    new TypeError("secret words"),
    "secret words",
    { code: -32700, message: "secret words" },
    null,
    undefined,
  ])("tells nobody the text of what it threw, and logs it: %o", async (thrown) => {
    const { promise, reject } = Promise.withResolvers<never>();
    reject(thrown);
    const { conversation, logged } = start({ handlers: { "session/list": () => promise } });
    const answer = await say(conversation, request(1, "session/list"));
    expect(answer).toMatchObject({ id: 1, error: { code: -32603, data: { name: "internal_error" } } });
    expect(JSON.stringify(answer)).not.toMatch(/secret|dispatcher\.test/);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain('"method":"session/list"');
    if (thrown instanceof Error) expect(logged[0]).toContain("secret words");
  });

  it("is logged too if the call was a notification", async () => {
    const { conversation, logged } = start({ handlers: { "session/list": () => Promise.reject(new Error("boom")) } });
    expect(await say(conversation, { jsonrpc: "2.0", method: "session/list" })).toBeUndefined();
    expect(logged.join("")).toContain("boom");
  });

  it("never answers a notification whose params are invalid", async () => {
    const { conversation } = start();
    expect(await say(conversation, { jsonrpc: "2.0", method: "session/list", params: { no: 1 } })).toBeUndefined();
  });
});

describe("params", () => {
  it("are validated before the handler sees them, and each finding names its path", async () => {
    const handler = vi.fn();
    const { conversation } = start({ handlers: { "session/get": handler } });
    const { error } = await say(conversation, request(1, "session/get", { extra: 1 }));
    expect(error.code).toBe(-32602);
    expect(error.data.findings).toEqual(
      expect.arrayContaining([
        { path: "/sessionId", message: "is required" },
        { path: "/extra", message: "is not a known parameter" },
      ]),
    );
    expect(handler).not.toHaveBeenCalled();
  });

  it("with a key of a megabyte get a short answer", async () => {
    const { conversation } = start();
    const answer = await say(conversation, request(1, "session/list", { ["k".repeat(1_000_000)]: 1 }));
    expect(answer.error.code).toBe(-32602);
    expect(JSON.stringify(answer).length).toBeLessThan(2_000);
  });

  it("are an empty object if there are none", async () => {
    const { conversation } = start({ handlers: { "session/list": (params) => ({ sessions: [params] }) } });
    expect((await say(conversation, request(1, "session/list"))).result).toEqual({ sessions: [{}] });
  });
});

describe("results", () => {
  it("and errors are validated on request; an invalid result is an internal error too", async () => {
    const options = { handlers: { "session/list": () => ({ sessions: "none" }) } };
    const unchecked = start(options);
    expect((await say(unchecked.conversation, request(1, "session/list"))).result).toEqual({ sessions: "none" });
    const violations: string[] = [];
    const onViolation = ({ message }: Error) => violations.push(message);
    const { conversation, logged } = start({ ...options, onViolation });
    expect((await say(conversation, request(1, "session/list"))).error.code).toBe(-32603);
    expect(logged.join("")).toContain("/sessions");
    expect(violations).toEqual([expect.stringContaining("The result of session/list")]);
    const unlisted = () => {
      throw new WireError("phase_not_open", "There is none.");
    };
    const other = start({ handlers: { "session/list": unlisted }, onViolation });
    expect((await say(other.conversation, request(1, "session/list"))).error.data.name).toBe("phase_not_open");
    expect(violations.slice(1)).toEqual(["session/list does not list its error phase_not_open: There is none."]);
  });

  it("that are validated may hold undefined, which JSON omits", async () => {
    const { conversation } = start({
      handlers: { "session/list": () => ({ sessions: [], more: undefined }) },
      onViolation: (violation) => expect.unreachable(violation.message),
    });
    expect((await say(conversation, request(1, "session/list"))).error).toBeUndefined();
  });

  it("are null if a handler returns nothing", async () => {
    const { conversation } = start({ handlers: { "session/list": () => undefined } });
    expect(await say(conversation, request(1, "session/list"))).toEqual({ jsonrpc: "2.0", id: 1, result: null });
  });
});

describe("ids", () => {
  it.each(["9007199254740993", "-9007199254740993", "1e400", "-1e400", "1e300"])(
    "that would be returned as another number are refused: %s",
    async (id) => {
      const { conversation } = start();
      const answer = await say(conversation, `{"jsonrpc":"2.0","id":${id},"method":"session/list"}`);
      expect(answer).toMatchObject({ id: null, error: { code: -32600 } });
    },
  );
});

describe("calls in progress", () => {
  it("run concurrently: a fast one overtakes a slow one", async () => {
    const { conversation, nextWait } = start();
    const wait = nextWait();
    const slow = say(conversation, waitCall("slow"));
    await wait;
    expect((await say(conversation, request("fast", "session/list"))).id).toBe("fast");
    conversation.end();
    expect((await slow).error.data.name).toBe("cancelled");
  });

  it("are cancelled by their id, which answers them with cancelled", async () => {
    const { conversation, nextWait } = start();
    const wait = nextWait();
    const answer = say(conversation, waitCall(7));
    const { signal } = await wait;
    expect(await say(conversation, cancel("7"))).toBeUndefined();
    expect(await say(conversation, cancel(8))).toBeUndefined();
    expect(signal.aborted).toBe(false);
    expect(await say(conversation, cancel(7))).toBeUndefined();
    expect(signal.aborted).toBe(true);
    expect(await answer).toMatchObject({
      id: 7,
      error: { code: -32034, data: { name: "cancelled", retryable: true } },
    });
  });

  it.each([undefined, null, 7, "7", [], [7], {}, { id: {} }, { id: undefined }])(
    "are not cancelled by params of another shape: %o",
    async (params) => {
      const { conversation, nextWait } = start();
      const wait = nextWait();
      const answer = say(conversation, waitCall(7));
      const { signal } = await wait;
      await say(conversation, { jsonrpc: "2.0", method: "$/cancelRequest", params });
      expect(signal.aborted).toBe(false);
      conversation.end();
      await answer;
    },
  );

  it("are not cancelled by another conversation", async () => {
    const { dispatcher, conversation, nextWait } = start();
    const wait = nextWait();
    const answer = say(conversation, waitCall(7));
    const { signal } = await wait;
    await say(dispatcher.converse(undefined, undefined), cancel(7));
    expect(signal.aborted).toBe(false);
    conversation.end();
    await answer;
  });

  it("under the same id twice: the first is cancelled, the second continues", async () => {
    const { conversation, nextWait } = start();
    const first = nextWait();
    const answers = [say(conversation, waitCall(7))];
    const { signal } = await first;
    const second = nextWait();
    answers.push(say(conversation, waitCall(7)));
    const other = await second;
    await say(conversation, cancel(7));
    expect([signal.aborted, other.signal.aborted]).toEqual([true, false]);
    conversation.end();
    for (const answer of await Promise.all(answers)) expect(answer.error.data.name).toBe("cancelled");
  });

  it("answer with their result if they finished before they were cancelled", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const { conversation } = start({ handlers: { "session/list": () => promise } });
    const answer = say(conversation, request(1, "session/list"));
    await say(conversation, cancel(1));
    resolve({ sessions: [] });
    expect((await answer).result).toEqual({ sessions: [] });
  });

  it("answer with cancelled when Node's own functions were aborted by their signal", async () => {
    const { promise: called, resolve } = Promise.withResolvers<void>();
    const handlers = {
      "session/list": async (_params: unknown, { signal }: { signal: AbortSignal }) => {
        const { promise, reject } = Promise.withResolvers<never>();
        signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
        resolve();
        return await promise;
      },
    };
    const { conversation, logged } = start({ handlers });
    const answer = say(conversation, request(1, "session/list"));
    await called;
    conversation.end();
    expect((await answer).error.data.name).toBe("cancelled");
    expect(logged).toEqual([]);
  });

  it("are bounded in number: one more is overloaded, a notification more is dropped", async () => {
    const handler = vi.fn(() => ({ sessions: [] }));
    const { conversation, nextWait } = start({
      limits: { maxCallsInFlight: 1 },
      handlers: { "session/list": handler },
    });
    const wait = nextWait();
    const waiting = say(conversation, waitCall(1));
    await wait;
    const { error } = await say(conversation, request(2, "session/list"));
    expect(error).toMatchObject({ code: -32040, data: { name: "overloaded", retryable: true, retryAfterMs: 1_000 } });
    expect(await say(conversation, { jsonrpc: "2.0", method: "session/list" })).toBeUndefined();
    expect(handler).not.toHaveBeenCalled();
    await say(conversation, cancel(1));
    await waiting;
    expect((await say(conversation, request(3, "session/list"))).result).toEqual({ sessions: [] });
  });

  it("are bounded in bytes, except a single one", async () => {
    const { conversation, nextWait } = start({ limits: { maxBytesInFlight: 150 } });
    const long = request(1, "session/list", { cwd: "x".repeat(1_000) });
    expect((await say(conversation, long)).result).toBeDefined();
    const wait = nextWait();
    const waiting = say(conversation, waitCall(2));
    await wait;
    expect((await say(conversation, request(3, "session/list"))).error.data.name).toBe("overloaded");
    expect((await say(conversation, [request(4, "session/list"), 5])).map(code)).toEqual([-32040, -32600]);
    await say(conversation, cancel(2));
    await waiting;
    expect((await say(conversation, request(6, "session/list"))).result).toBeDefined();
  });
});

describe("a batch", () => {
  it("holds as many requests as the limit allows, and no more", async () => {
    const { conversation } = start();
    const batch = (length: number) => Array.from({ length }, (_, id) => request(id, "session/list"));
    const { maxBatchLength } = defaultDispatcherLimits;
    expect(await say(conversation, batch(maxBatchLength))).toHaveLength(maxBatchLength);
    const { id, error } = await say(conversation, batch(maxBatchLength + 1));
    expect(id).toBeNull();
    expect(error).toMatchObject({ code: -32600, data: { name: "invalid_request", maxBatchLength } });
  });
});

describe("the parts of a text", () => {
  it("are commas, colons and opening brackets outside strings: accepted up to the limit, refused above", async () => {
    const { conversation } = start({ limits: { maxJsonParts: 9 } });
    const asked = (cwd: string) => `{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"cwd":${cwd}}}`;
    expect((await say(conversation, asked('"{[,:"'))).error.data).toMatchObject({ maxJsonParts: 9 });
    const { conversation: roomy } = start({ limits: { maxJsonParts: 10 } });
    expect((await say(roomy, asked('"{[,:"'))).result).toEqual({ sessions: [] });
    const { id, error } = await say(roomy, asked("[]"));
    expect([id, error.data]).toEqual([null, { name: "invalid_request", retryable: false, maxJsonParts: 10 }]);
  });

  it("are refused if one object has more keys than the limit, and accepted if many objects have fewer", async () => {
    const { conversation } = start({ limits: { maxObjectKeys: 5 } });
    const asked = (given: string) => `{"jsonrpc":"2.0","id":1,"method":"session/list","params":{${given}}}`;
    const seven = asked(`"k":[${'{"a":{"b":1,"c":1},"d":"::","e":1,"f":1,"g":1},'.repeat(3)}0]`);
    expect((await say(conversation, seven)).error.data.findings).toHaveLength(1);
    const { id, error } = await say(conversation, asked('"k":[{"a":{"b":1},"d":1,"e":1,"f":1,"g":1,"h":1}]'));
    expect([id, error.data]).toEqual([null, { name: "invalid_request", retryable: false, maxObjectKeys: 5 }]);
  });

  it("are refused before they are parsed: a million keys cost no more than their bytes", async () => {
    const { conversation } = start();
    const keys = Array.from({ length: 1_000_000 }, (_, at) => `"k${at}":0`).join();
    const { error } = await say(conversation, `{"jsonrpc":"2.0","id":1,"method":"session/list","params":{${keys}}}`);
    expect(error).toMatchObject({ code: -32600, data: { maxObjectKeys: defaultDispatcherLimits.maxObjectKeys } });
    const values = `"k":[${"0,".repeat(1_000_000)}0]`;
    const { error: other } = await say(
      conversation,
      `{"jsonrpc":"2.0","id":1,"method":"session/list","params":{${values}}}`,
    );
    expect(other).toMatchObject({ code: -32600, data: { maxJsonParts: defaultDispatcherLimits.maxJsonParts } });
  });
});

describe("nesting", () => {
  const { maxNestingDepth } = defaultDispatcherLimits;
  /** The request, its params and the command are three levels. */
  const nested = (depth: number, [open, close]: readonly [string, string]) =>
    `{"jsonrpc":"2.0","id":1,"method":"session/command","params":{"sessionId":"${sessionId}","command":{"type":"x","a":` +
    `${open.repeat(depth - 3)}1${close.repeat(depth - 3)}}}}`;

  it.each([
    ["[", "]"],
    ['{"a":', "}"],
  ] as const)("of %s is taken up to the limit and refused beyond", async (...brackets) => {
    const { conversation } = start();
    expect((await say(conversation, nested(maxNestingDepth, brackets))).error).toBeUndefined();
    const { id, error } = await say(conversation, nested(maxNestingDepth + 1, brackets));
    expect(id).toBeNull();
    expect(error).toMatchObject({ code: -32600, data: { maxDepth: maxNestingDepth } });
  });

  it.each(["[[[[", '\\"[[[[', '\\\\\\"{{{{', "\\\\"])("is not counted inside strings: %s", async (text) => {
    const { conversation } = start({ limits: { maxNestingDepth: 3 } });
    const asked = `{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"cwd":"${text}"}}`;
    expect((await say(conversation, asked)).result).toEqual({ sessions: [] });
  });

  it("is counted after a string that ends with a backslash", async () => {
    const { conversation } = start({ limits: { maxNestingDepth: 3 } });
    expect((await say(conversation, '{"a":"\\\\","b":[[[1]]]}')).error.data.maxDepth).toBe(3);
  });

  it("may fall below zero: the text is then invalid JSON", async () => {
    const { conversation } = start({ limits: { maxNestingDepth: 3 } });
    expect((await say(conversation, "]]]]]][[[[[[")).error.code).toBe(-32700);
  });
});

describe("keys that reach a prototype", () => {
  it.each([
    '{"__proto__":{"isAdmin":true}}',
    '{"a":{"__proto__":1}}',
    '{"a":[{"\\u005f_proto__":{}}]}',
    '{"constructor":{"prototype":{"isAdmin":true}}}',
  ])("never reach a handler: %s", async (command) => {
    const handler = vi.fn();
    const { conversation } = start({ handlers: { "session/command": handler } });
    const asked = `{"jsonrpc":"2.0","id":1,"method":"session/command","params":{"sessionId":"${sessionId}","command":{"type":"x","a":${command}}}}`;
    expect(await say(conversation, asked)).toMatchObject({ id: null, error: { code: -32600 } });
    expect(handler).not.toHaveBeenCalled();
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it("are refused at every place of the request", async () => {
    const { conversation } = start();
    for (const text of ['{"__proto__":null}', '[{"jsonrpc":"2.0","method":"session/list","__proto__":{"id":1}}]'])
      expect((await say(conversation, text)).error.code).toBe(-32600);
  });

  it("may be named in a value", async () => {
    const { conversation } = start();
    expect((await say(conversation, request(1, "session/list", { cwd: '"__proto__":' }))).result).toBeDefined();
  });

  it("are only those two: a constructor without a prototype is a key like others", async () => {
    const { conversation } = start();
    const command = { type: "x", constructor: null, prototype: 1 };
    const asked = request(1, "session/command", { sessionId, command });
    expect((await say(conversation, asked)).result).toEqual({ data: command });
  });
});

describe("bytes", () => {
  it.each([
    ["an invalid byte", [0xff]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["an overlong form", [0xc0, 0xaf]],
    ["a cut sequence", [0xe2, 0x82]],
  ])("that are no UTF-8 are no JSON: %s", async (_title, bytes) => {
    const { conversation } = start();
    const text = Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":"'), Buffer.from(bytes), Buffer.from('"}')]);
    expect(await say(conversation, text)).toMatchObject({ id: null, error: { code: -32700 } });
  });
});

function code(answer: { readonly error?: { readonly code: number } }): number | undefined {
  return answer.error?.code;
}
