import { signal } from "@preact/signals";
import { expect, test } from "vitest";
import { ConnectionClosedError, type ConnectionEvent, type SessionInfo, WireError } from "../../../client/browser.ts";
import { SessionComposer } from "../../../web/state/composer.ts";
import type { SessionNotification } from "../../../web/state/daemon.ts";
import { Draft } from "../../../web/state/drafts.ts";
import { FakeDaemon, sessionInfo, settled } from "./fake-daemon.ts";

const lost: ConnectionEvent = {
  kind: "lost",
  reason: new ConnectionClosedError({ kind: "ended", code: 1006, reason: "" } as never),
  attempt: 1,
  nextTryInMs: 1,
};

class Desk {
  readonly daemon = new FakeDaemon();
  readonly draft = new Draft();
  readonly info = signal<SessionInfo | undefined>(sessionInfo("s1"));
  readonly isConnected = signal(true);
  readonly mayPrompt = signal(true);
  readonly isGone = signal(false);
  readonly composer: SessionComposer;

  constructor() {
    const { daemon, draft, info, isConnected, mayPrompt, isGone } = this;
    for (const method of ["session/prompt", "session/steer", "session/followUp"] as const)
      daemon.answer(method, { promptId: "p", disposition: "started" });
    this.composer = new SessionComposer({ daemon, sessionId: "s1", draft, info, isConnected, mayPrompt, isGone });
  }

  get sent(): readonly unknown[] {
    const methods = ["session/prompt", "session/steer", "session/followUp"];
    return this.daemon.calls.filter(({ method }) => methods.includes(method)).map(({ params }) => params);
  }
}

test.each([
  ["prompt", "session/prompt", { ifRunning: "refuse" }],
  ["steer", "session/steer", {}],
  ["followUp", "session/followUp", {}],
] as const)("sends a draft as %s, and empties it", async (way, method, params) => {
  const desk = new Desk();
  desk.draft.write("Fix it");
  expect(await desk.composer.send(way)).toMatchObject({ kind: "done" });
  expect(desk.daemon.calls.find((call) => call.method === method)?.params).toMatchObject({
    sessionId: "s1",
    text: "Fix it",
    ...params,
  });
  expect(desk.draft.text.value).toBe("");
});

test("keeps a draft that was refused, with the daemon's words", async () => {
  const desk = new Desk();
  desk.daemon.on("session/prompt", () => Promise.reject(new WireError("session_busy", "The session is running.")));
  desk.draft.write("Fix it");
  expect(await desk.composer.send("prompt")).toEqual({ kind: "refused", words: "The session is running." });
  expect(desk.draft.text.value).toBe("Fix it");
  expect(desk.draft.problem.value).toBe("The session is running.");
  desk.draft.write("Fix it!");
  expect(desk.draft.problem.value).toBeUndefined();
});

test("keeps what was written while a message was being sent", async () => {
  const desk = new Desk();
  const answer = Promise.withResolvers<never>();
  desk.daemon.on("session/prompt", () => answer.promise);
  desk.draft.write("First");
  const sending = desk.composer.send("prompt");
  expect(desk.composer.isSending.value).toBe(true);
  expect(await desk.composer.send("prompt")).toMatchObject({ kind: "done" });
  desk.draft.write("Second");
  answer.resolve({ promptId: "p", disposition: "started" } as never);
  await sending;
  expect(desk.draft.text.value).toBe("Second");
  expect(desk.sent).toHaveLength(1);
});

test("a message that the daemon never got stays, and needs another press after the connection is back", async () => {
  const desk = new Desk();
  desk.daemon.on("session/prompt", () => new Promise<never>(() => {}));
  desk.daemon.on("prompt/get", () => Promise.reject(new WireError("prompt_not_found", "There is no such prompt.")));
  desk.draft.write("Fix it");
  const sending = desk.composer.send("prompt");
  desk.daemon.connection(lost);
  desk.daemon.connection({ kind: "connected", daemon: "same" });
  expect(await sending).toMatchObject({ kind: "refused", words: "The connection was lost. The message was not sent." });
  expect(desk.draft.text.value).toBe("Fix it");
  expect(desk.sent).toHaveLength(1);
  desk.daemon.answer("session/prompt", { promptId: "p", disposition: "started" });
  await desk.composer.send("prompt");
  // The same id: the daemon would recognise it.
  expect(new Set(desk.sent.map((params) => (params as { promptId: string }).promptId)).size).toBe(1);
  expect(desk.draft.text.value).toBe("");
});

test("a message whose answer was lost is not sent twice", async () => {
  const desk = new Desk();
  desk.daemon.on("session/prompt", () => new Promise<never>(() => {}));
  desk.daemon.answer("prompt/get", { promptId: "p", state: "started", text: "Fix it" });
  desk.draft.write("Fix it");
  const sending = desk.composer.send("prompt");
  desk.daemon.connection(lost);
  desk.daemon.connection({ kind: "connected", daemon: "same" });
  expect(await sending).toMatchObject({ kind: "done" });
  expect(desk.draft.text.value).toBe("");
  expect(desk.sent).toHaveLength(1);
});

test("says why one cannot write here, and sends nothing then", async () => {
  const desk = new Desk();
  const why = (): string | undefined => {
    const { value } = desk.composer.permission;
    return value.kind === "no" ? value.words : undefined;
  };
  expect(why()).toBeUndefined();
  desk.isConnected.value = false;
  expect(why()).toBe("There is no connection to the daemon.");
  desk.isConnected.value = true;
  desk.mayPrompt.value = false;
  expect(why()).toContain("--read-only");
  desk.mayPrompt.value = true;
  desk.isGone.value = true;
  expect(why()).toBe("The session is closed.");
  desk.isGone.value = false;
  const control = (clientId: string): Partial<SessionInfo> => ({
    control: { policy: "exclusive", controller: { clientId, name: "editor" } },
  });
  desk.info.value = sessionInfo("s1", control("this-page"));
  expect(why()).toBeUndefined();
  desk.info.value = sessionInfo("s1", control("other-client"));
  expect(why()).toBe("editor controls the session. Only it can change the session.");
  desk.draft.write("Fix it");
  await desk.composer.send("prompt");
  expect(desk.sent).toEqual([]);
  expect(desk.draft.text.value).toBe("Fix it");
});

test("shows what waits in order, each with its way back", async () => {
  const desk = new Desk();
  desk.daemon.answer("session/getQueue", {
    steering: [{ text: "Now", promptId: "p1", by: { clientId: "this-page" } }],
    followUp: [{ text: "Later", promptId: "p2", by: { clientId: "other-client" } }, { text: "Of an extension" }],
  });
  desk.daemon.answer("delivery/list", {
    deliveries: [{ deliveryId: "d1", customType: "build", deliverAs: "nextTurn", state: "held", preview: "It failed" }],
  });
  desk.composer.refresh();
  await settled();
  const waiting = desk.composer.waiting.value;
  expect(waiting.map(({ kind, how, words, takeBack }) => `${kind} ${how} ${words} ${takeBack !== undefined}`)).toEqual([
    "prompt steer Now true",
    "prompt followUp Later true",
    "prompt followUp Of an extension false",
    "push nextTurn build: It failed true",
  ]);
  desk.daemon.on("prompt/cancel", ({ promptId }) => ({
    cancelled: true,
    prompt: { promptId, by: { clientId: promptId === "p1" ? "this-page" : "other-client" } } as never,
  }));
  desk.draft.write("Half a thought");
  await waiting[0]?.takeBack?.();
  expect(desk.draft.text.value).toBe("Now\n\nHalf a thought");
  await waiting[1]?.takeBack?.();
  expect(desk.draft.text.value).toBe("Now\n\nHalf a thought");
  desk.daemon.answer("delivery/cancel", { cancelled: false });
  expect(await waiting[3]?.takeBack?.()).toMatchObject({ kind: "refused" });
});

test("reads what waits again when it changes, and when the connection is back", async () => {
  const desk = new Desk();
  await settled();
  const count = (): number => desk.daemon.calls.filter(({ method }) => method === "session/getQueue").length;
  const before = count();
  const params = { sessionId: "s1", seq: 1, at: 1, generation: 1, event: { type: "queue_update" } };
  desk.composer.notified({ name: "session/event", params } as SessionNotification);
  await settled();
  desk.daemon.connection({ kind: "connected", daemon: "same" });
  await settled();
  expect(count()).toBe(before + 2);
});

test("says what stopping did to what waits", async () => {
  const desk = new Desk();
  desk.daemon.answer("session/abort", {
    aborted: true,
    deliveries: [
      { deliveryId: "d1", state: "parked" },
      { deliveryId: "d2", state: "dropped" },
    ],
  });
  desk.daemon.answer("session/getQueue", { steering: [{ text: "Now" }], followUp: [] });
  expect(await desk.composer.stop()).toEqual({
    kind: "done",
    value: "The run was stopped. 1 message still waits. 1 push waits for the next run. 1 push was dropped.",
  });
});

test("sends a lost prompt again with its complete text", async () => {
  const desk = new Desk();
  desk.daemon.answer("prompt/get", { promptId: "p1", text: "All of it", state: "lost" });
  expect(await desk.composer.resend("p1")).toMatchObject({ kind: "done" });
  expect(desk.sent).toMatchObject([{ text: "All of it" }]);
});

test("a text that is too long for the field is a piece, which is sent with it", async () => {
  const desk = new Desk();
  const long = "x".repeat(10_000_000);
  expect(desk.draft.paste("short")).toBe(false);
  expect(desk.draft.paste(long)).toBe(true);
  desk.draft.write("And this");
  expect(desk.draft.text.value).toBe("And this");
  expect(desk.draft.pieces.value).toMatchObject([{ chars: 10_000_000 }]);
  expect(desk.draft.pieces.value[0]?.preview.length).toBeLessThan(100);
  desk.draft.write(long.slice(0, 60_000));
  expect(desk.draft.text.value).toBe("");
  await desk.composer.send("prompt");
  expect(desk.sent).toMatchObject([{ text: `${long}\n\n${long.slice(0, 60_000)}` }]);
  expect(desk.draft.pieces.value).toEqual([]);
});

test("refuses what the daemon would not take in one message", async () => {
  const desk = new Desk();
  desk.draft.paste("\u0001".repeat(3_000_000));
  expect(await desk.composer.send("prompt")).toEqual({
    kind: "refused",
    words: "The message has 17.2 MiB, and 15 MiB is the limit.",
  });
  desk.draft.clear();
  expect(await desk.composer.send("prompt")).toEqual({ kind: "refused", words: "There is nothing to send." });
  expect(desk.sent).toEqual([]);
});

test("takes images by their bytes, sends them, and frees them", async () => {
  const desk = new Desk();
  const png = new Blob(["\x89PNG\r\n\x1a\n".replace("\x89", "")]);
  expect(await desk.draft.addImages([png])).toMatchObject({ kind: "refused" });
  const bytes = Uint8Array.from("\x89PNG\r\n\x1a\nrest", (character) => character.charCodeAt(0));
  await desk.draft.addImages([new File([bytes], "a.txt", { type: "text/plain" }), new Blob([bytes])]);
  const [first, second] = desk.draft.images.value;
  expect(first).toMatchObject({ name: "a.txt", mimeType: "image/png" });
  desk.draft.removeImage(second?.id ?? "");
  await expect(fetch(second?.url ?? "")).rejects.toThrow();
  await desk.composer.send("prompt");
  expect(desk.sent).toMatchObject([
    { text: "", images: [{ type: "image", mimeType: "image/png", data: btoa("\x89PNG\r\n\x1a\nrest") }] },
  ]);
  await expect(fetch(first?.url ?? "")).rejects.toThrow();
});
