import { expect, test } from "vitest";
import { wholeText } from "../../../web/state/long-texts.ts";
import { settled } from "./fake-daemon.ts";
import { answer, call, entry, Scene, text, toolResult, user } from "./scenario.ts";

/** A daemon that has the values of entries, and gives them in pieces of ten bytes. */
function serve(scene: Scene, values: Readonly<Record<string, string>>): void {
  scene.daemon.on("transcript/entry", ({ entryId, path = "", offset = 0 }) => {
    const value = values[`${entryId}${path}`] ?? "";
    const end = Math.min(value.length, offset + 10);
    return { text: value.slice(offset, end), bytes: value.length, ...(end < value.length && { next: end }) };
  });
}

const cut = (entryId: string, path: string, whole: string, shown: number): object => ({
  entryId,
  path,
  bytes: whole.length,
  shown,
  place: "somewhere",
});

test("reads the rest of a long output in pieces", async () => {
  const output = "0123456789abcdefghijklmno";
  const scene = new Scene();
  scene.history(
    [
      entry("e1", answer(1, [call("c1", "bash", { command: "cat" })])),
      entry("e2", toolResult("c1", output.slice(0, 4), 2)),
    ],
    { cuts: [cut("e2", "/message/content/0/text", output, 4)] },
  );
  serve(scene, { "e2/message/content/0/text": output });
  await scene.open();
  const [tool] = scene.items;
  if (tool?.kind !== "tool" || tool.output === undefined) throw new Error("There is no output.");
  const { output: long } = tool;
  expect(long.text.value).toBe("0123");
  expect(long.missing.value).toBe(21);
  await long.more();
  expect(long.text.value).toBe("0123456789abcd");
  expect(scene.daemon.calls.at(-1)?.params).toMatchObject({ entryId: "e2", offset: 4, place: "somewhere" });
  await long.more();
  await long.more();
  expect(long.text.value).toBe(output);
  expect(long.missing.value).toBe(0);
  expect(await long.more()).toMatchObject({ kind: "done" });
  expect(scene.daemon.calls.filter(({ method }) => method === "transcript/entry")).toHaveLength(3);
});

test("says why a piece cannot be read, and reads it at another press", async () => {
  const scene = new Scene();
  scene.history([entry("e1", user("01", 1))], { cuts: [cut("e1", "/message/content", "0123", 2)] });
  await scene.open();
  const [item] = scene.items;
  if (item?.kind !== "user") throw new Error("There is no message.");
  expect(await item.text.more()).toMatchObject({ kind: "refused" });
  serve(scene, { "e1/message/content": "0123" });
  await item.text.more();
  expect(item.text.text.value).toBe("0123");
});

test("adds the rest of a long answer to its Markdown", async () => {
  const whole = "# Title\n\nSome words\n";
  const scene = new Scene();
  scene.history([entry("e1", answer(1, [text(whole.slice(0, 5))]))], {
    cuts: [cut("e1", "/message/content/0/text", whole, 5)],
  });
  serve(scene, { "e1/message/content/0/text": whole });
  await scene.open();
  const [item] = scene.items;
  if (item?.kind !== "text") throw new Error("There is no text.");
  await item.text.more();
  await item.text.more();
  const [after] = scene.items;
  if (after?.kind !== "text") throw new Error("There is no text.");
  expect(after.blocks.flatMap(({ nodes }) => nodes.map(({ kind }) => kind))).toEqual(["heading", "paragraph"]);
});

test("reaches all of a tool's long arguments: as JSON, and what it writes as added lines", async () => {
  const content = "one\ntwo\nthree\n";
  const json = JSON.stringify({ path: "a.ts", content });
  const scene = new Scene();
  scene.history([entry("e1", answer(1, [call("c1", "write", { path: "a.ts", content: "one\nt" })]))], {
    cuts: [cut("e1", "/message/content/0/arguments/content", content, 5)],
  });
  serve(scene, { "e1/message/content/0/arguments/content": content, "e1/message/content/0/arguments": json });
  await scene.open();
  const [tool] = scene.items;
  if (tool?.kind !== "tool" || tool.diff === undefined) throw new Error("There is no diff.");
  expect(tool.diff.text.value).toBe("+one\n+t");
  while (tool.diff.missing.value > 0) await tool.diff.more();
  expect(tool.diff.text.value).toBe("+one\n+two\n+three\n");
  while (tool.args.missing.value > 0) await tool.args.more();
  expect(tool.args.text.value).toContain(json);
});

test("shows an entry that a page has left out, in pieces", async () => {
  const scene = new Scene();
  const json = JSON.stringify(entry("e1", user("x".repeat(20), 1)));
  scene.history([{ type: "message", id: "e1", parentId: null }], { cuts: [cut("e1", "", json, 0)] });
  serve(scene, { e1: json });
  await scene.open();
  const [item] = scene.items;
  if (item?.kind !== "note" || item.detail === undefined) throw new Error("There is no note.");
  expect(item.words).toContain("too long");
  while (item.detail.missing.value > 0) await item.detail.more();
  expect(item.detail.text.value).toBe(json);
});

test("shows a text of ten million characters by parts, and never half a pair", async () => {
  const long = wholeText(`a${"\u{1f600}".repeat(5_000_000)}`);
  expect(long.text.value.length).toBeLessThanOrEqual(65_536);
  expect(long.missing.value).toBeGreaterThan(9_000_000);
  await long.more();
  expect(long.text.value.length).toBeGreaterThan(65_536);
  expect(long.text.value).not.toMatch(/\p{Cs}/u);
});

test("fetches an image that a page has cut, as a whole, while it is shown", async () => {
  const png = btoa(`\x89PNG\r\n\x1a\n${"\0".repeat(60)}`);
  const image = { type: "image", data: "", mimeType: "image/svg+xml" };
  const scene = new Scene();
  scene.history([entry("e1", { role: "user", content: [text("See"), image], timestamp: 1 })], {
    cuts: [cut("e1", "/message/content/1/data", png, 0)],
  });
  serve(scene, { "e1/message/content/1/data": png });
  await scene.open();
  const [item] = scene.items;
  const picture = item?.kind === "user" ? item.pictures[0] : undefined;
  if (picture === undefined) throw new Error("There is no picture.");
  expect(picture.state.value).toEqual({ kind: "away" });
  const [first, second] = [picture.show(), picture.show()];
  expect(picture.state.value).toEqual({ kind: "loading" });
  while (picture.state.value.kind === "loading") await settled();
  const { value } = picture.state;
  if (value.kind !== "shown") throw new Error(JSON.stringify(value));
  const blob = await (await fetch(value.url)).blob();
  expect(blob.type).toBe("image/png");
  expect(blob.size).toBe(68);
  first();
  first();
  expect(picture.state.value).toEqual(value);
  second();
  expect(picture.state.value).toEqual({ kind: "away" });
  await expect(fetch(value.url)).rejects.toThrow();
});

test.each([
  ["<svg onload=alert(1)>", "This is not a PNG, JPEG, GIF or WebP image."],
  ["GIF89", "This is not a PNG, JPEG, GIF or WebP image."],
])("does not show %j as an image", async (data, words) => {
  const scene = new Scene();
  await scene.open();
  scene.end({ role: "user", content: [{ type: "image", data: btoa(data), mimeType: "image/png" }], timestamp: 1 });
  const [item] = scene.items;
  const picture = item?.kind === "user" ? item.pictures[0] : undefined;
  const release = picture?.show();
  while (picture?.state.value.kind === "loading") await settled();
  expect(picture?.state.value).toEqual({ kind: "refused", words });
  release?.();
});

test("does not fetch an image that is too large", async () => {
  const scene = new Scene();
  const image = { type: "image", data: "", mimeType: "image/png" };
  scene.history([entry("e1", { role: "user", content: [image], timestamp: 1 })], {
    cuts: [{ ...cut("e1", "/message/content/0/data", "", 0), bytes: 40_000_000 }],
  });
  await scene.open();
  const [item] = scene.items;
  const picture = item?.kind === "user" ? item.pictures[0] : undefined;
  picture?.show();
  while (picture?.state.value.kind === "loading") await settled();
  expect(picture?.state.value).toMatchObject({ kind: "refused" });
  expect(scene.daemon.methods).not.toContain("transcript/entry");
});
