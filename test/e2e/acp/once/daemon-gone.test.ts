import { join } from "node:path";
import { expect, test } from "vitest";
import { Gate } from "../../../../provider/gate.ts";
import { answer, hold } from "../../../../provider/reply.ts";
import { startStage } from "../../../helpers/stage.ts";
import { Editor } from "../editor.ts";

const host = join(import.meta.dirname, "..", "..", "..", "fixtures", "acp-host.ts");

test("when the daemon stays away, what waits is an error, and the program ends although its editor goes on", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [answer("I thi", hold(gate), "nk.")] } });
  await using editor = new Editor({ ...stage, program: [host] });
  await editor.initialize();
  const sessionId = await editor.create(stage.cwd);
  const failed = { code: -32_603 };
  const run = editor.prompt(sessionId, "Think.").catch((error: unknown) => error);
  await editor.until(() => editor.text(sessionId) === "I thi");
  await stage.daemon.stop();
  const list = editor.call("session/list", {}).catch((error: unknown) => error);
  expect(await Promise.all([run, list])).toMatchObject([failed, failed]);
  expect(await editor.ended).toBe(1);
});
