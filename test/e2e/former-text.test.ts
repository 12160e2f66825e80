import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { connect } from "../../client/index.ts";
import type { FeedListener } from "../../client/session-feed.ts";
import { answer, call } from "../../provider/reply.ts";
import { Notifications } from "../helpers/notifications.ts";
import { patience } from "../helpers/patience.ts";
import { startStage } from "../helpers/stage.ts";

const ofLong = (text: string): string => (text.length < 1_000 ? text : createHash("sha256").update(text).digest("hex"));

/** What a reader with these params of its subscription gets: the texts, and the ends of tools, in order. */
function listener(more: FeedListener["more"]) {
  const heard: unknown[] = [];
  const isBegun = Promise.withResolvers<void>();
  const own: FeedListener = {
    ...(more && { more }),
    begin: () => isBegun.resolve(),
    gap: () => {},
    receive: ({ name, params }) => {
      if (name === "session/event" && params.event.type === "tool_execution_end")
        heard.push(params.event["toolCallId"]);
    },
    formerText: ({ toolCallId, path, text }) => void heard.push({ toolCallId, path, text: text && ofLong(text) }),
    end: () => {},
  };
  return { own, heard, begun: isBegun.promise };
}

const write = (id: string, path: string) => call("write", { path, content: `by ${id}` }, id);

test("who asks for it gets the text of a file before the model's write replaces it", async () => {
  const worst = '"\\\u0001'.repeat(349_525);
  await using stage = await startStage({
    provider: {
      script: [
        // Of two calls in one message, the second replaces what the first has written.
        answer(write("a", "old.txt"), write("b", "new/one.txt"), write("c", "./old.txt")),
        answer(write("d", "worst"), write("e", "directory"), write("f", "large")),
        answer(write("g", "old.txt")),
        answer("done"),
        answer(write("h", "old.txt")),
        answer("done"),
      ],
    },
  });
  const { cwd, stateDir } = stage;
  const at = (name: string): string => join(cwd, name);
  writeFileSync(at("old.txt"), "old\r\n\u{1f600}");
  writeFileSync(at("worst"), worst);
  writeFileSync(at("large"), "x".repeat(1024 * 1024 + 1));
  mkdirSync(at("directory"));
  const session = await stage.session();
  const wanting = listener({ formerText: true });
  const leave = session.listen(wanting.own);
  await using other = await Notifications.of(stateDir, session.id);
  await wanting.begun;

  await session.promptAndWait("go");
  // The answer of a call overtakes notifications.
  const { heard } = wanting;
  await vi.waitFor(() => expect(heard.filter((one) => typeof one === "string")).toHaveLength(7), patience);
  const texts = heard.filter((one) => typeof one !== "string");
  expect(texts).toEqual([
    { toolCallId: "a", path: at("old.txt"), text: "old\r\n\u{1f600}" },
    { toolCallId: "b", path: at("new/one.txt"), text: null },
    { toolCallId: "d", path: at("worst"), text: ofLong(worst) },
    { toolCallId: "g", path: at("old.txt"), text: "by c" },
  ]);
  for (const text of texts as { readonly toolCallId: string }[])
    expect(heard.indexOf(text)).toBeLessThan(heard.indexOf(text.toolCallId));
  await other.event("tool_execution_end", ({ toolCallId }) => toolCallId === "g");
  expect(other.named("session/formerText")).toEqual([]);
  expect(readFileSync(at("new/one.txt"), "utf8")).toBe("by b");

  // Nothing is read after the last such subscription has ended.
  leave();
  heard.length = 0;
  await session.promptAndWait("again");
  expect(heard).toEqual([]);
  expect(readFileSync(at("old.txt"), "utf8")).toBe("by h");
});

test("pi writes where the reported path says, and goes on reporting after a reload", async () => {
  const home = mkdtempSync(join(tmpdir(), "home-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  await using stage = await startStage({ env: () => ({ HOME: home }) });
  const { cwd, provider } = stage;
  const session = await stage.session();
  const { own, heard, begun } = listener({ formerText: true });
  session.listen(own);
  await begun;
  const pathsAfter = async (...given: readonly string[]): Promise<string[]> => {
    heard.length = 0;
    provider.add(
      answer(...given.map((path, i) => write(`call-${provider.requests.length}-${i}`, path))),
      answer("done"),
    );
    await session.promptAndWait("go");
    const isEnd = (one: unknown): boolean => typeof one === "string";
    await vi.waitFor(() => expect(heard.filter(isEnd)).toHaveLength(given.length), patience);
    const paths = heard.flatMap((one) => (typeof one === "string" ? [] : [(one as { readonly path: string }).path]));
    for (const path of paths) expect(readFileSync(path, "utf8")).toMatch(/^by call-/);
    return paths;
  };
  const given = ["@at.txt", "two\u00a0words", `file://${cwd}/c%20d`];
  expect(await pathsAfter(...given)).toEqual(["at.txt", "two words", "c d"].map((name) => join(cwd, name)));
  await stage.client.call("session/reload", { sessionId: session.id });
  expect(await pathsAfter("~/d", "~e")).toEqual([join(home, "d"), join(cwd, "~e")]);
});

test("a token that may only observe gets no former text", async () => {
  await using stage = await startStage();
  const { client, daemon } = stage;
  const { id: sessionId } = await stage.session();
  const named = await client.call("token/create", { name: "reader", capabilities: ["observe", "payload"] });
  await using limited = await connect({ socketPath: daemon.file.socketPath, token: named.token });
  await expect(limited.call("session/subscribe", { sessionId, formerText: true })).rejects.toMatchObject({
    kind: "forbidden",
    data: { needs: "prompt" },
  });
});
