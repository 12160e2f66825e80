import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import type { Dialog } from "../../../../protocol/dialog.ts";
import type { SessionInfo } from "../../../../protocol/session.ts";
import { patience } from "../../../helpers/patience.ts";
import { errorName, Scene } from "../scene.ts";

const asking = join(import.meta.dirname, "..", "..", "..", "fixtures", "extension", "asking.ts");

test("questions of extensions are listed, shown and answered", async () => {
  await using scene = await Scene.open();
  const extensions = join(scene.env["PI_CODING_AGENT_DIR"] ?? "", "extensions");
  mkdirSync(extensions, { recursive: true });
  writeFileSync(join(extensions, "asking.ts"), `export { default } from ${JSON.stringify(asking)};\n`);
  expect(errorName((await scene.run(["new", "--dialogs", "never", "--json"])).stderr)).toBe("usage");
  const { sessionId } = await scene.json<SessionInfo>(["new", "--dialogs", "wait"]);
  expect((await scene.run(["dialogs"])).stderr).toBe("No open dialogs.\n");
  const ask = (...questions: object[]) =>
    scene.start(["prompt", sessionId, `/ask ${JSON.stringify(questions)}`, "--json"]);
  const asked = ask(
    { method: "select", title: "Which one?", options: ["the first", "the second"] },
    { method: "confirm", title: "Sure?", text: "It cannot be undone." },
    { method: "editor", title: "Words", text: "some" },
  );
  await asked.said(/"dialog|"editor"/);

  let dialogs: Dialog[] = [];
  await vi.waitFor(async () => {
    ({ dialogs } = await scene.json<{ dialogs: Dialog[] }>(["dialogs", sessionId]));
    expect(dialogs).toHaveLength(3);
  }, patience);
  const [select, confirm, editor] = dialogs.map(({ dialogId }) => dialogId) as [string, string, string];
  const table = await scene.run(["dialogs"]);
  expect(table.stdout).toMatch(/^DIALOG +SESSION +KIND +AGE +ENDS IN +TITLE\n/);
  expect(table.stdout).toContain(`${confirm}  ${sessionId.slice(-8)}  confirm`);
  expect((await scene.run(["dialog", "show", select])).stdout).toBe("select: Which one?\n  the first\n  the second\n");
  expect((await scene.run(["dialog", "show", confirm])).stdout).toBe("confirm: Sure?\nIt cannot be undone.\n");

  expect(errorName((await scene.run(["dialog", "answer", select, "--json"])).stderr)).toBe("usage");
  expect(errorName((await scene.run(["dialog", "answer", select, "a third", "--json"])).stderr)).toBe("invalid_params");
  expect((await scene.run(["dialog", "answer", select.slice(0, 8), "the", "second"])).stdout).toBe(
    `${select} is answered.\n`,
  );
  const late = await scene.run(["dialog", "answer", select, "the first"]);
  expect([late.code, late.stdout]).toEqual([4, expect.stringContaining("a client has answered it")]);
  expect(await scene.json(["dialog", "answer", confirm, "--yes"])).toMatchObject({ resolution: { how: "answered" } });
  expect(await scene.json(["dialog", "answer", editor, "--cancel"])).toMatchObject({
    resolution: { how: "cancelled" },
  });
  const { code, stdout } = await asked.ended;
  expect(code).toBe(0);
  expect(stdout).toContain(JSON.stringify(JSON.stringify(["the second", true, null])));
  expect(errorName((await scene.run(["dialog", "show", confirm, "--json"])).stderr)).toBe("dialog_not_found");
});
