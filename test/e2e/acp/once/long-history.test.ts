import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fallAsleep } from "../../../helpers/asleep.ts";
import { Scene } from "../scene.ts";

const hashOf = (text: unknown): string => createHash("sha256").update(String(text)).digest("hex");

test("a history that is longer than one answer of pi is loaded in its order, with its images and long texts", async () => {
  await using scene = await Scene.open();
  const session = await scene.stage.session();
  await session.promptAndWait("First.");
  const { file } = await session.get();
  let { leafId: parentId } = await session.transcript({ limit: 1 });
  await fallAsleep(scene.stage.client, session.id);
  const images: string[] = [];
  const append = (id: string, message: object): void => {
    const timestamp = new Date(1_700_000_000_000 + images.length).toISOString();
    appendFileSync(file, `${JSON.stringify({ type: "message", id, parentId, timestamp, message })}\n`);
    parentId = id;
  };
  // 69 MiB.
  for (let index = 0; index < 26; index += 1) {
    const data = Buffer.alloc(2_000_000, index + 1).toString("base64");
    images.push(hashOf(data));
    const content = [
      { type: "text", text: `Image ${index}.` },
      { type: "image", data, mimeType: "image/png" },
    ];
    append(`image-${index}`, { role: "user", content, timestamp: 1_700_000_000_000 + index });
  }
  const text = "0123456789é\n".repeat(1_600_000);
  append("long", { role: "user", content: text, timestamp: 1_700_000_001_000 });
  await session.reload();

  const editor = await scene.editor();
  await editor.call("session/load", { sessionId: session.id, cwd: scene.cwd, mcpServers: [] });
  const told = editor.of(session.id, "user_message_chunk").map(({ content }) => content as Record<string, unknown>);
  expect(told.slice(1, -1).map(({ type, data, text: words }) => (type === "image" ? hashOf(data) : words))).toEqual(
    images.flatMap((hash, index) => [`Image ${index}.`, hash]),
  );
  expect(hashOf(told.at(-1)?.["text"])).toBe(hashOf(text));
  expect(await editor.prompt(session.id, "Go on.")).toMatchObject({ stopReason: "end_turn" });
});
