import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Delivery, DeliveryHandle, SessionHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, hold, reset, status } from "../../../provider/reply.ts";
import { shareStage } from "../../helpers/shared-stage.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

// The rest of the matrix: providers without headers or with an early start, other extensions, other sessions inside pi.

const fixtures = join(import.meta.dirname, "..", "..", "fixtures", "extension");

/** Gives pi further extensions: fixture files, or sources by name. */
function install(
  stage: Stage,
  extensions: readonly (string | { readonly name: string; readonly source: string })[],
): void {
  const folder = join(stage.agentDir.path, "extensions");
  mkdirSync(folder);
  for (const extension of extensions) {
    if (typeof extension === "string") copyFileSync(join(fixtures, `${extension}.ts`), join(folder, `${extension}.ts`));
    else writeFileSync(join(folder, `${extension.name}.ts`), extension.source);
  }
}

const navigation = {
  name: "navigation",
  source: `
export default function (pi) {
  const command = (name, handler) => pi.registerCommand(name, { description: "", handler });
  command("test-reload", async (_text, ctx) => await ctx.reload());
  command("test-new", async (_text, ctx) => void (await ctx.newSession()));
  command("test-fork", async (_text, ctx) => {
    const user = ctx.sessionManager.getBranch().find((entry) => entry.type === "message" && entry.message.role === "user");
    await ctx.fork(user.id);
  });
  command("test-tree", async (entryId, ctx) => void (await ctx.navigateTree(entryId)));
  let isHidden = true;
  command("test-show", async () => { isHidden = false; });
  const isHiding = ({ role, content }) => isHidden && role === "custom" && content === "hidden until it is shown";
  pi.on("context", ({ messages }) => ({ messages: messages.filter((message) => !isHiding(message)) }));
}
`,
};

/** The provider of the extension `eager-provider`, which answers as a test requires. */
let eager: RequestListener = (_request, response) => void response.end();
const eagerServer = createServer((request, response) => eager(request, response));
beforeAll(async () => {
  eagerServer.listen(0, "127.0.0.1");
  await once(eagerServer, "listening");
});
// Closed after the stage, whose pis have connections to it.
afterAll(async () => {
  eagerServer.closeAllConnections();
  eagerServer.close();
  await once(eagerServer, "close");
});

/** None of the extensions acts unless a text, a command or a model asks for it. */
const shared = shareStage({
  env: () => ({ EAGER_URL: `http://127.0.0.1:${(eagerServer.address() as AddressInfo).port}/` }),
  prepare: (stage) => install(stage, ["eager-provider", "edit-marked", "remove-marked", navigation]),
});

/** The record once it has ended or is parked. */
async function ended(push: DeliveryHandle): Promise<Delivery> {
  return await push.wait("answered").catch(() => push.get());
}

function outcomes({ attempts }: Delivery): readonly unknown[] {
  return attempts.map(({ outcome, evidence, payload }) => [outcome, evidence, payload]);
}

async function entries(session: SessionHandle, deliveryId: string): Promise<number> {
  const { file } = await session.get();
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines.filter((line) => line.includes('"custom_message"') && line.includes(`"${deliveryId}"`)).length;
}

/** The id of the newest entry of pi's session file. */
async function leafOf(session: SessionHandle): Promise<string> {
  const { file } = await session.get();
  const last = readFileSync(file, "utf8").trimEnd().split("\n").at(-1) ?? "{}";
  return (JSON.parse(last) as { readonly id: string }).id;
}

describe("a provider of Google's format, which reports no headers", () => {
  test.each([
    ["that answers", [], "answered", undefined, [["delivered", "content", "confirmed"]]],
    [
      "that answers 529, then 200",
      [status(529)],
      "answered",
      undefined,
      [
        ["failed", undefined, "confirmed"],
        ["delivered", "content", "confirmed"],
      ],
    ],
    [
      "that resets before headers, then answers",
      [reset()],
      "answered",
      undefined,
      [
        ["failed", undefined, "confirmed"],
        ["delivered", "content", "confirmed"],
      ],
    ],
    ["that answers 400", [status(400)], "parked", "run_failed", [["failed", undefined, "confirmed"]]],
  ] as const)("%s", async (_title, script, state, reason, attempts) => {
    await using stage = await shared.use({ script: [...script] });
    const session = await stage.session("scripted-google");
    const push = session.push({ customType: "n", content: "to Google" });
    const delivery = await ended(push);
    expect([delivery.state, delivery.reason?.code]).toEqual([state, reason]);
    expect(outcomes(delivery)).toEqual(attempts);
    expect(await entries(session, push.id)).toBe(1);
  });
});

describe("an extension's provider that says start before its request is answered", () => {
  async function pushTo(listener: RequestListener): Promise<Delivery> {
    eager = listener;
    await using stage = await shared.use();
    const session = await stage.session();
    await session.command({ type: "set_model", provider: "eager", modelId: "eager-1" });
    const delivery = await ended(session.push({ customType: "n", content: "to the eager one" }));
    expect(await entries(session, delivery.deliveryId)).toBe(1);
    await session.waitForIdle();
    await session.command({ type: "set_model", provider: "scripted", modelId: "model-1" });
    // A parked push is removed with it; other tests may have the session.
    await session.promptAndWait("go on");
    return delivery;
  }

  test("is believed only at the first content", async () => {
    const delivery = await pushTo((_request, response) => response.end("Understood."));
    expect(delivery.state).toBe("answered");
    expect(outcomes(delivery)).toEqual([["delivered", "content", "unchecked"]]);
  });

  test.each<[string, RequestListener]>([
    ["a refusal", (_request, response) => void response.writeHead(400).end()],
    ["a reset", (request) => request.socket.resetAndDestroy()],
  ])("and then gets %s, has delivered nothing", async (_title, listener) => {
    const delivery = await pushTo(listener);
    expect(delivery.state).toBe("parked");
    expect(delivery.history.map(({ state }) => state)).not.toContain("delivered");
    expect(delivery.attempts.every(({ outcome }) => outcome === "failed")).toBe(true);
  });
});

describe("another extension", () => {
  test("that takes the push out of the context has it parked with its name", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const delivery = await ended(session.push({ customType: "n", content: "HIDE ME" }));
    expect([delivery.state, delivery.reason?.code]).toEqual(["parked", "removed_by_extension"]);
    await session.waitForIdle();
    expect(stage.provider.requests.some((request) => request.hasText("HIDE ME"))).toBe(false);
    expect(await entries(session, delivery.deliveryId)).toBe(1);
  });

  test("that takes it out of some requests has it parked until a later request delivers it, once", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const push = session.push({ customType: "n", content: "hidden until it is shown" });
    const parked = async (): Promise<void> => {
      await session.waitForIdle();
      const { state, reason } = await push.get();
      expect([state, reason?.code]).toEqual(["parked", "removed_by_extension"]);
    };
    await expect.poll(async () => (await push.get()).state).toBe("parked");
    await parked();
    await push.resend();
    await expect.poll(() => stage.provider.requests.length).toBe(2);
    await parked();
    await session.prompt("/test-show");
    await session.promptAndWait("go on");
    expect((await push.get()).state).toBe("answered");
    expect(await entries(session, push.id)).toBe(1);
    expect(stage.provider.requests.map((request) => request.countText("hidden until it is shown"))).toEqual([0, 0, 1]);
  });

  test("that goes to another branch and back has it parked, and delivered once, also by another pi", async () => {
    await using stage = await shared.use();
    const session = await stage.freshSession();
    await session.promptAndWait("a first prompt");
    const before = await leafOf(session);
    stage.provider.add(status(400));
    const push = session.push({ customType: "n", content: "on one of two branches" });
    await expect.poll(async () => (await push.get()).state).toBe("parked");
    await session.waitForIdle();
    const withPush = await leafOf(session);
    await session.prompt(`/test-tree ${before}`);
    await session.promptAndWait("elsewhere");
    const state = async (): Promise<readonly unknown[]> => [(await push.get()).state, (await push.get()).reason?.code];
    expect(await state()).toEqual(["parked", "off_branch"]);
    process.kill((await session.get()).pid as number, "SIGKILL");
    await expect.poll(async () => (await session.get()).state).toBe("crashed");
    await session.promptAndWait("elsewhere still");
    expect(await state()).toEqual(["parked", "off_branch"]);
    await session.prompt(`/test-tree ${withPush}`);
    await session.promptAndWait("back");
    expect((await push.get()).state).toBe("answered");
    expect(await entries(session, push.id)).toBe(1);
    expect(stage.provider.requests.map((request) => request.countText("on one of two branches"))).toEqual([
      0, 1, 0, 0, 1,
    ]);
  });

  test("that removes it from the payload after the helper's check cannot be detected", async () => {
    // pi runs an extension given on the command line, such as the helper, before all others.
    await using stage = await shared.use();
    const session = await stage.session();
    const delivery = await ended(session.push({ customType: "n", content: "REMOVE ME" }));
    expect([delivery.state, outcomes(delivery)]).toEqual(["answered", [["delivered", "headers", "confirmed"]]]);
    expect(stage.provider.requests.some((request) => request.hasText("REMOVE ME"))).toBe(false);
  });
});

describe("a held push, when inside pi", () => {
  test("the extensions are reloaded, is still held and goes with the next prompt", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const push = session.push({ customType: "n", content: "over the reload", deliverAs: "nextTurn" });
    await expect.poll(async () => (await push.get()).state).toBe("held");
    await session.prompt("/test-reload");
    await session.promptAndWait("go on");
    expect((await push.answered).state).toBe("answered");
    expect(await entries(session, push.id)).toBe(1);
  });

  test.each(["/test-new", "/test-fork"])("%s switches to another session, stays with its own", async (command) => {
    await using stage = await shared.use();
    const session = await stage.freshSession();
    await session.promptAndWait("a first prompt");
    const before = (await session.get()).file;
    const known = (await stage.client.listSessions()).map(({ sessionId }) => sessionId);
    const push = session.push({ customType: "n", content: "for the former", deliverAs: "nextTurn" });
    await expect.poll(async () => (await push.get()).state).toBe("held");
    await session.prompt(command);
    // It continues in its own pi; the other session has its former one.
    await expect.poll(async () => (await session.get()).state).toBe("hibernated");
    // Its session exists once that pi has confirmed it.
    const others = async () =>
      (await stage.client.listSessions()).filter(({ sessionId }) => !known.includes(sessionId));
    await expect.poll(others).toHaveLength(1);
    const [other] = await others();
    const next = stage.client.session(other?.sessionId ?? "");
    await next.promptAndWait("in the new one");
    expect(await entries(next, push.id)).toBe(0);
    expect(stage.provider.requests.some((request) => request.hasText("for the former"))).toBe(false);
    await session.promptAndWait("in the old one");
    expect((await push.answered).state).toBe("answered");
    expect((await session.get()).file).toBe(before);
    expect(await entries(session, push.id)).toBe(1);
  });
});

describe("an invalid push", () => {
  test("has its named error, and the daemon continues", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    const { id: sessionId } = session;
    const refused = async (params: object): Promise<string> => {
      const call = stage.client.call("delivery/push", { sessionId, customType: "n", content: "x", ...params } as never);
      return await call.then(
        () => "accepted",
        (error: { kind: string }) => error.kind,
      );
    };
    expect(await refused({ content: "" })).toBe("invalid_params");
    expect(await refused({ content: [] })).toBe("invalid_params");
    expect(await refused({ content: [{ type: "audio", data: "AAAA" }] })).toBe("invalid_params");
    expect(await refused({ content: 7 })).toBe("invalid_params");
    expect(await refused({ content: "x".repeat(9 * 1024 * 1024) })).toBe("too_large");
    expect(await refused({ deliverAs: "tomorrow" })).toBe("invalid_params");
    expect(await refused({ customType: "pi-rpcd.carrier" })).toBe("invalid_params");
    expect(await refused({ deliveryId: "../etc" })).toBe("invalid_params");
    for (const expiresAfterMs of [0, -1, 604_800_001, 1.5])
      expect(await refused({ expiresAfterMs })).toBe("invalid_params");
    expect(await refused({ deliveryId: "same", content: "one", deliverAs: "nextTurn" })).toBe("accepted");
    expect(await refused({ deliveryId: "same", content: "one", deliverAs: "nextTurn" })).toBe("accepted");
    expect(await refused({ deliveryId: "same", content: "other", deliverAs: "nextTurn" })).toBe("conflict");
    expect(await refused({ sessionId: "01920000-0000-7000-8000-0000000000ff" })).toBe("session_not_found");

    const wait = async (params: object): Promise<string> =>
      await stage.client.call("delivery/wait", { deliveryId: "same", ...params } as never).then(
        ({ state }) => state,
        (error: { kind: string }) => error.kind,
      );
    expect(await wait({ deliveryId: "nowhere" })).toBe("delivery_not_found");
    await expect.poll(() => wait({ timeoutMs: 0 })).toBe("held");
    expect(await wait({ timeoutMs: 1 })).toBe("deadline_exceeded");
    expect(await wait({ timeoutMs: -1 })).toBe("invalid_params");
    expect(await wait({ timeoutMs: 3_600_001 })).toBe("invalid_params");

    await session.promptAndWait("all is well");
    expect((await session.delivery("same").answered).state).toBe("answered");
    await session.close();
    expect(await refused({ deliveryId: "late" })).toBe("session_not_found");
    expect(await wait({})).toBe("answered");
  });

  test("to a session whose pi has died or hibernates is delivered all the same", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    process.kill((await session.get()).pid as number, "SIGKILL");
    await expect.poll(async () => (await session.get()).state).toBe("crashed");
    expect((await session.push({ customType: "n", content: "to a dead one" }).answered).state).toBe("answered");
    await stage.restart();
    const again = stage.client.session(session.id);
    expect((await again.get()).state).toBe("hibernated");
    expect((await again.push({ customType: "n", content: "to a sleeping one" }).answered).state).toBe("answered");
  });
});

test("a push during the preflight of a user's prompt does not cost the prompt", async () => {
  const gate = new Gate();
  const slow = {
    name: "slow-preflight",
    source: `
import { existsSync, watch, writeFileSync } from "node:fs";
export default function (pi) {
  pi.on("before_agent_start", async () => {
    const { promise, resolve } = Promise.withResolvers();
    const watcher = watch("..", () => existsSync("../go") && resolve());
    writeFileSync("../go.begun", "");
    await promise;
    watcher.close();
  });
}
`,
  };
  await using stage = await startStage({ provider: { script: [delayed(hold(gate), answer("Both."))] } });
  install(stage, [slow]);
  const flag = join(stage.root, "go");
  const session = await stage.session();
  const prompted = session.runUntilSettled("the user's words");
  await expect.poll(() => existsSync(`${flag}.begun`)).toBe(true);
  const push = session.push({ customType: "n", content: "the pushed words" });
  await push.accepted;
  writeFileSync(flag, "");
  await gate.reached;
  gate.open();
  await prompted;
  await push.answered;
  const texts = stage.provider.requests.flatMap(({ messages }) => messages.flatMap((message) => message.texts));
  expect(texts).toContain("the user's words");
  expect(texts).toContain("the pushed words");
  expect(await entries(session, push.id)).toBe(1);
  expect((await session.get()).lostPrompts).toEqual([]);
});
