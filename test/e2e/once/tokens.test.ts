import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Client, connect, UnauthorizedError, type WireError } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, hold } from "../../../provider/reply.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { startStage } from "../../helpers/stage.ts";

const errorOf = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => "success",
    ({ kind, data }: WireError) => [kind, data?.["needs"]],
  );

test("a client with a limited token works in its own sessions, sees no others, and is disconnected when the token is revoked", async () => {
  const gate = new Gate();
  const script = [answer("one"), answer("theirs"), answer("two"), delayed(hold(gate), answer("late"))];
  await using stage = await startStage({ provider: { script } });
  const { client: admin, stateDir } = stage;
  const own = join(stage.cwd, "own");
  mkdirSync(own);
  const { token } = await admin.call("token/create", {
    name: "ci",
    capabilities: ["observe", "prompt"],
    cwds: [own],
    labels: { team: "ci" },
  });
  const reconnect = { firstDelayMs: 1 };
  const limited = await connect({ stateDir, token, reconnect, validateResults: true });
  const model = "scripted/model-1";

  const session = await limited.createSession({ cwd: own, model });
  expect(session.info).toMatchObject({ cwd: realpathSync(own), labels: { team: "ci" } });
  expect(await session.promptAndWait("hello")).toBe("one");
  const theirs = await stage.session();
  expect(await theirs.promptAndWait("secret")).toBe("theirs");
  expect(await errorOf(limited.call("session/get", { sessionId: theirs.id }))).toEqual([
    "session_not_found",
    undefined,
  ]);
  expect(await errorOf(limited.call("session/subscribe", { sessionId: theirs.id }))).toEqual([
    "session_not_found",
    undefined,
  ]);
  expect(await errorOf(limited.createSession({ cwd: stage.cwd, model }))).toEqual(["forbidden", undefined]);
  expect(await errorOf(limited.call("session/bash", { sessionId: session.id, command: "id" }))).toEqual([
    "forbidden",
    "bash",
  ]);
  await expectOnly(limited, [session.id]);

  // Sessions derived from its own belong to it.
  const { messages } = await limited.call("session/getForkMessages", { sessionId: session.id });
  const [first] = messages as readonly { readonly entryId: string }[];
  const { session: fork } = await limited.call("session/fork", {
    sessionId: session.id,
    entryId: first?.entryId ?? "",
  });
  expect(fork.labels).toEqual({ team: "ci" });
  await expectOnly(limited, [fork.sessionId, session.id]);
  await session.promptAndWait("again");

  // During a call.
  const ended = new Promise<Error | undefined>((resolve) => {
    limited.onConnection((event) => event.kind === "closed" && resolve(event.end.error));
  });
  await using told = await Notifications.of(stateDir, session.id);
  const waiting = errorOf(session.promptAndWait("wait"));
  await gate.reached;
  await admin.call("token/revoke", { name: "ci" });
  expect(await ended).toBeInstanceOf(UnauthorizedError);
  expect(await waiting).not.toBe("success");
  await expect(connect({ stateDir, token })).rejects.toBeInstanceOf(UnauthorizedError);
  // Its run belongs to the session, and continues.
  gate.open();
  await told.until(({ name, params }) => name === "run/ended" && params["outcome"] === "settled");

  // The daemon's own client gets the new token from daemon.json.
  const again = new Promise<void>((resolve) => {
    admin.onConnection(({ kind }) => kind === "connected" && resolve());
  });
  await admin.call("token/rotate", { name: "main" });
  await again;
  expect((await admin.call("session/list", {})).sessions).toHaveLength(3);
});

async function expectOnly(client: Client, sessionIds: readonly string[]): Promise<void> {
  const { sessions } = await client.call("session/list", { stored: true });
  expect(sessions.map(({ sessionId }) => sessionId)).toEqual(sessionIds);
}
