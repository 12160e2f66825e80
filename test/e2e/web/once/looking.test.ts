import { randomBytes } from "node:crypto";
import { crc32, deflateSync } from "node:zlib";
import { signal } from "@preact/signals";
import { expect, test } from "vitest";
import { answer, call } from "../../../../provider/reply.ts";
import type { LongText, Picture } from "../../../../web/state/items.ts";
import { PageWorkspace } from "../../../../web/state/workspace.ts";
import { fallAsleep } from "../../../helpers/asleep.ts";
import { patience } from "../../../helpers/patience.ts";
import { shareStage } from "../../../helpers/shared-stage.ts";
import { itemsOf, loaded, open, TurnPage } from "../pages.ts";

const shared = shareStage();

async function wholeOf(text: LongText): Promise<string> {
  while (text.missing.value > 0) expect(await text.more()).toMatchObject({ kind: "done" });
  return text.text.value;
}

test("looking at a sleeping session starts no pi", async () => {
  await using stage = await shared.use({ script: ["An answer."] });
  const session = await stage.freshSession();
  await session.promptAndWait("Tell me");
  await fallAsleep(stage.client, session.id);
  const before = await session.get();
  const workspace = new PageWorkspace({ daemon: stage.client, page: new TurnPage(), isConnected: signal(true) });
  await workspace.start();
  expect(workspace.sessions.find(session.id)?.group).toBe("asleep");
  workspace.select(session.id);
  const shown = workspace.selected.value;
  if (shown === undefined) throw new Error("No session is shown.");
  await expect.poll(() => shown.conversation.state.value, patience).toEqual({ kind: "ready" });
  expect(shown.conversation.groups.value[0]?.rows.value).toHaveLength(2);
  await expect.poll(() => shown.choices.commands.value.kind, patience).not.toBe("asking");
  await workspace.sessions.stored.more();
  workspace.select(undefined);
  const after = await session.get();
  expect([after.generation, after.state]).toEqual([before.generation, "hibernated"]);
});

test("reaches all of long texts, arguments and images after a reload", async () => {
  const content = Array.from({ length: 20_000 }, (_, index) => `line ${index} \u00e9\u{1f600}\n`).join("");
  await using stage = await shared.use({ script: [answer(call("write", { path: "long.txt", content })), "Done."] });
  const session = await stage.freshSession();
  const png = noisePng(200);
  const prompt = `Write this: ${content}`;
  await session.promptAndWait(prompt, {
    images: [{ type: "image", data: png.toString("base64"), mimeType: "image/png" }],
  });
  const page = await loaded(open(stage.client, session.id));
  const [user, tool] = itemsOf(page);
  if (user?.kind !== "user" || tool?.kind !== "tool" || tool.diff === undefined) throw new Error("Rows are missing.");
  expect(user.text.missing.value).toBeGreaterThan(0);
  expect(await wholeOf(user.text)).toBe(prompt);
  expect(await wholeOf(tool.diff)).toBe(content.replace(/^(?=line)/gm, "+"));
  expect(await wholeOf(tool.args)).toContain(JSON.stringify(content));
  const [picture] = user.pictures;
  const release = picture?.show();
  await expect.poll(() => picture?.state.value.kind, patience).toBe("shown");
  expect(await bytesOf(picture)).toEqual(png);
  release?.();
  page.close();
});

/** A square image that cannot be compressed: larger than what a page has of a value. */
function noisePng(pixels: number): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.from([0, 0, 0, pixels, 0, 0, 0, pixels, 8, 2, 0, 0, 0]);
  const rows = Array.from({ length: pixels }, () => Buffer.concat([Buffer.from([0]), randomBytes(pixels * 3)]));
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  const data = deflateSync(Buffer.concat(rows));
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

async function bytesOf(picture: Picture | undefined): Promise<Buffer> {
  const state = picture?.state.value;
  if (state?.kind !== "shown") throw new Error("The picture is not shown.");
  return Buffer.from(await (await fetch(state.url)).arrayBuffer());
}
