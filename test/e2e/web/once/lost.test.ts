import { join } from "node:path";
import { signal } from "@preact/signals";
import { expect, test } from "vitest";
import { type Client, connect } from "../../../../client/index.ts";
import { PageWorkspace } from "../../../../web/state/workspace.ts";
import { CuttingProxy } from "../../../helpers/cutting-proxy.ts";
import { patience } from "../../../helpers/patience.ts";
import { type Stage, startStage } from "../../../helpers/stage.ts";
import { loaded, messagesOf, open, TurnPage } from "../pages.ts";

const extension = join(import.meta.dirname, "..", "..", "..", "fixtures", "extension", "asking.ts");
/** A safety limit: the test needs far fewer chunks. */
const maxChunks = 200;

async function throughProxy(stage: Stage): Promise<{ proxy: CuttingProxy; client: Client }> {
  const { socketPath, token } = stage.daemon.file;
  const proxy = await CuttingProxy.start(join(stage.root, "proxy.sock"), socketPath);
  const reconnect = { firstDelayMs: 1, maxDelayMs: 20 };
  return { proxy, client: await connect({ socketPath: proxy.socketPath, token, validateResults: true, reconnect }) };
}

test.each([
  { from: "daemon", share: 0.5 },
  { from: "daemon", share: 1 },
  { from: "client", share: 0 },
] as const)("shows each message once wherever the connection is cut: $from $share", async ({ from, share }) => {
  await using stage = await startStage();
  const { proxy, client } = await throughProxy(stage);
  await using _proxy = proxy;
  await using _client = client;
  const { id } = await stage.session();
  const session = client.session(id);
  const page = await loaded(open(client, id));
  let cuts = 0;
  // Each round is cut one chunk later, until a round ends before its chunk.
  for (let nth = 1; nth <= maxChunks; nth += 1) {
    proxy.cut({ from, nth, share });
    await session.promptAndWait(`Round ${nth}`);
    await expect.poll(() => messagesOf(page).filter((text) => text === `user  Round ${nth}`), patience).toHaveLength(1);
    if (!proxy.hasCut) break;
    cuts += 1;
  }
  expect(cuts).toBeGreaterThan(1);
  const fresh = await loaded(open(stage.client, session.id));
  while (fresh.hasOlder.value) await fresh.older();
  await expect.poll(() => messagesOf(page), patience).toEqual(messagesOf(fresh));
  page.close();
  fresh.close();
});

test("shows each message once after the daemon was started again", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await using client = await connect({ stateDir: stage.stateDir, validateResults: true });
  const page = await loaded(open(client, session.id));
  await session.promptAndWait("Before");
  await stage.restart();
  await stage.client.session(session.id).promptAndWait("After");
  const fresh = await loaded(open(stage.client, session.id));
  expect(messagesOf(fresh).filter((text) => text.startsWith("user"))).toEqual(["user  Before", "user  After"]);
  await expect.poll(() => messagesOf(page), patience).toEqual(messagesOf(fresh));
  page.close();
  fresh.close();
});

test("answers questions again after a lost connection, and keeps them open meanwhile", async () => {
  await using stage = await startStage({ agent: { settings: { extensions: [extension] } } });
  const { proxy, client } = await throughProxy(stage);
  await using _proxy = proxy;
  await using _client = client;
  const workspace = new PageWorkspace({ daemon: client, page: new TurnPage(), isConnected: signal(true) });
  await workspace.start();
  const { questions } = workspace;
  const session = await stage.session();
  const connected = new Promise<void>((resolve) => {
    client.onConnection(({ kind }) => kind === "connected" && resolve());
  });
  proxy.cut({ from: "daemon", nth: 1, share: 0 });
  await client.listSessions();
  await connected;
  const asked = session.prompt(`/ask ${JSON.stringify([{ method: "confirm", title: "Sure" }])}`);
  await expect.poll(() => questions.all.value.map(({ dialog }) => dialog.title), patience).toEqual(["Sure"]);
  const [question] = questions.all.value;
  const { dialogId } = question?.dialog ?? { dialogId: "" };
  await expect.poll(() => questions.answer(dialogId, { confirmed: true }), patience).toMatchObject({ kind: "done" });
  await asked;
  expect(questions.all.value[0]?.state).toEqual({ kind: "ended", words: "The question was answered by you." });
});
