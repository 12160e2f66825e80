import { describe, expect, it } from "vitest";
import { limits } from "../../../server/configuration/limits.ts";
import { DialogFixture } from "../../helpers/dialog-fixture.ts";

const { maxDialogsPerSession, maxDialogMs, maxAwayMs } = limits.dialogs;

describe("a dialog", () => {
  it("is reported with its content and a deadline, and is stored", () => {
    const room = new DialogFixture();
    room.runId = "r1";
    room.ask({ method: "select", title: "Which?", options: ["a", "b"], prefill: "none of a select" });
    const { dialogId, openedAt, deadline, ...rest } = room.only;
    expect(dialogId).toMatch(/^[0-9a-f]{32}$/);
    expect(deadline - openedAt).toBe(maxDialogMs);
    expect(rest).toEqual({
      sessionId: "s1",
      generation: 1,
      runId: "r1",
      requestId: "q1",
      method: "select",
      title: "Which?",
      options: ["a", "b"],
      state: "open",
      unattendedUntil: undefined,
    });
    expect(room.said).toEqual([{ method: "dialog/opened", params: { dialog: room.only } }]);
    expect(room.stored.get(dialogId)).toEqual(room.only);
    expect(room.dialogs.summaries()).toEqual([
      { dialogId, requestId: "q1", method: "select", title: "Which?", deadline },
    ]);
  });

  it.each([
    ["select", { options: ["a", "b"] }, { value: "b" }],
    ["select", { options: ["a\u2028\n"] }, { value: "a\u2028\n" }],
    ["confirm", {}, { confirmed: false }],
    ["input", {}, { value: "" }],
    ["editor", { prefill: "x" }, { value: "line\nline" }],
    ["editor", {}, { cancelled: true }],
  ] as const)("of %s sends pi the first valid answer, once", (method, fields, answer) => {
    const room = new DialogFixture();
    const id = room.ask({ method, ...fields });
    const { dialogId } = room.only;
    const resolution = room.respond(dialogId, answer, "c7");
    expect(resolution).toMatchObject({
      by: "client",
      client: { clientId: "c7" },
      how: "cancelled" in answer ? "cancelled" : "answered",
    });
    expect(room.refusal(dialogId, answer)).toBe("stale");
    expect(room.posted).toEqual([{ type: "extension_ui_response", id, ...answer }]);
    expect(room.said.map((said) => said.method)).toEqual(["dialog/opened", "dialog/resolved"]);
    expect(room.stored.get(dialogId)).toMatchObject({ state: "resolved", resolution });
    expect(room.clock.waiting).toBe(0);
  });

  it.each([
    ["select", { options: ["a", "b"] }, { value: "c" }],
    ["select", { options: ["a", "b"] }, { value: "A" }],
    ["select", { options: "ab" }, { value: "a" }],
    ["select", { options: ["a"] }, { confirmed: true }],
    ["confirm", {}, { value: "yes" }],
    ["input", {}, { confirmed: true }],
    ["editor", {}, { value: "é".repeat(limits.dialogs.maxAnswerBytes / 2 + 1) }],
  ] as const)("of %s stays open after an answer that is none", (method, fields, answer) => {
    const room = new DialogFixture();
    room.ask({ method, ...fields });
    const { dialogId } = room.only;
    expect(room.refusal(dialogId, answer)).toBe("invalid_params");
    expect(room.posted).toEqual([]);
    expect(room.refusal(dialogId, { cancelled: true })).toBe("none");
  });

  it("is kept and reported in short form when it has ended, or was too large to be opened", () => {
    const room = new DialogFixture();
    const long = "x".repeat(1_000);
    room.ask({ title: long });
    const { dialogId } = room.only;
    room.respond(dialogId, { confirmed: true });
    expect(room.stored.get(dialogId)?.title).toBe(long.slice(0, 200));
    room.dialogs.look({ type: "extension_ui_request", id: long, method: "confirm", title: long });
    expect(room.endings).toEqual(["answered by client", "cancelled by too_large"]);
    expect(room.said.at(-1)?.params).toMatchObject({ title: long.slice(0, 200), requestId: long.slice(0, 200) });
    // pi waits for the answer to its exact id.
    expect(room.posted.at(-1)).toEqual({ type: "extension_ui_response", id: long, cancelled: true });
    expect(() => room.respond(room.said.at(-1)?.params.dialogId, { cancelled: true })).toThrow(
      expect.objectContaining({ kind: "stale" }),
    );
  });

  it("tells a late answer which client answered, even if only the store knows", () => {
    const room = new DialogFixture({ kind: "wait" }, { maxEndedDialogsInMemory: 1 });
    room.ask();
    const first = room.only.dialogId;
    room.respond(first, { confirmed: true }, "c9");
    room.ask();
    room.respond(room.only.dialogId, { confirmed: true });
    for (const _ of [1, 2]) {
      expect(() => room.respond(first, { confirmed: false })).toThrow(
        expect.objectContaining({
          data: expect.objectContaining({ resolution: expect.objectContaining({ client: { clientId: "c9" } }) }),
        }),
      );
    }
    expect(room.refusal("no-such-dialog", { cancelled: true })).toBe("dialog_not_found");
  });

  it("gives the call that answered it the same result again, also after a restart", () => {
    const room = new DialogFixture();
    room.ask();
    const { dialogId } = room.only;
    const answer = { confirmed: true } as const;
    const call = { id: "call-1", isRepeated: false };
    const result = room.registry.respond(dialogId, answer, { clientId: "c1" }, call);
    room.kill();
    const repeated = { ...call, isRepeated: true };
    expect(room.registry.respond(dialogId, answer, { clientId: "c1" }, repeated)).toEqual(result);
    const other = { id: "call-2", isRepeated: true };
    expect(() => room.registry.respond(dialogId, answer, { clientId: "c1" }, other)).toThrow(
      expect.objectContaining({ kind: "stale" }),
    );
    expect(JSON.stringify(room.said)).not.toContain("call-1");
  });

  it("is not stale for a repeated call if its pi may have got the answer before it died with the daemon", () => {
    const room = new DialogFixture();
    room.ask();
    const { dialogId } = room.only;
    room.kill();
    const respond = (isRepeated: boolean) => () =>
      room.registry.respond(dialogId, { confirmed: true }, { clientId: "c1" }, { id: "call-1", isRepeated });
    expect(respond(true)).toThrow(expect.objectContaining({ kind: "outcome_unknown" }));
    expect(respond(false)).toThrow(expect.objectContaining({ kind: "stale" }));
  });

  it("is kept without its texts when it has ended", () => {
    const room = new DialogFixture();
    room.ask({ method: "editor", prefill: "a secret" });
    const { dialogId } = room.only;
    room.respond(dialogId, { value: "another secret" });
    expect(JSON.stringify([room.stored.get(dialogId), room.said.slice(1)])).not.toContain("secret");
  });

  it("that pi writes twice is one dialog", () => {
    const room = new DialogFixture();
    room.dialogs.look({ type: "extension_ui_request", id: "same", method: "confirm", title: "a" });
    room.dialogs.look({ type: "extension_ui_request", id: "same", method: "confirm", title: "b" });
    expect(room.only.title).toBe("a");
  });

  it("is opened only for records that pi awaits an answer to", () => {
    const room = new DialogFixture();
    for (const method of ["notify", "setStatus", "setWidget", "setTitle", "set_editor_text", "__proto__", 7]) {
      room.ask({ method });
    }
    room.dialogs.look({ type: "extension_ui_request", id: 7, method: "confirm" });
    expect([room.open, room.posted, room.said]).toEqual([[], [], []]);
  });
});

describe("without a responder", () => {
  it("`cancel` dismisses a dialog immediately, and reports it", () => {
    const room = new DialogFixture({ kind: "cancel" });
    const id = room.ask();
    expect(room.posted).toEqual([{ type: "extension_ui_response", id, cancelled: true }]);
    expect(room.said).toEqual([
      {
        method: "dialog/resolved",
        params: {
          dialogId: expect.any(String),
          requestId: id,
          method: "confirm",
          title: "Sure?",
          how: "cancelled",
          by: "no_responder",
        },
      },
    ]);
    expect(room.refusal(room.said[0]?.params.dialogId, { confirmed: true })).toBe("stale");
  });

  it("`cancel` gives one that was shown some time for its responder to return", () => {
    const room = new DialogFixture({ kind: "cancel" });
    room.attend(1);
    room.ask();
    const { dialogId } = room.only;
    room.attend(0);
    expect(room.only.unattendedUntil).toBeGreaterThan(Date.now());
    room.clock.advance(maxAwayMs - 1);
    room.attend(1);
    expect(room.only).toMatchObject({ dialogId });
    expect(room.only.unattendedUntil).toBeUndefined();
    room.clock.advance(maxAwayMs * 2);
    expect(room.only.dialogId).toBe(dialogId);
    room.attend(0);
    room.clock.advance(maxAwayMs);
    expect(room.endings).toEqual(["cancelled by no_responder"]);
  });

  it("has some time, under every policy, for a responder that left it to those that have abstained", () => {
    const room = new DialogFixture({ kind: "wait" });
    room.attend(2);
    room.ask();
    const { dialogId } = room.only;
    expect(room.dialogs.abstain(dialogId, "s1")).toBeUndefined();
    room.attend(1);
    room.clock.advance(maxAwayMs - 1);
    room.attend(2);
    room.clock.advance(maxAwayMs * 2);
    expect(room.only).toMatchObject({ dialogId });
    room.attend(1);
    room.clock.advance(maxAwayMs);
    expect(room.endings).toEqual(["cancelled by no_responder"]);
  });

  it("`default` measures its time while responders are away", () => {
    const room = new DialogFixture({ kind: "default", afterMs: 5_000 });
    room.ask();
    room.clock.advance(4_999);
    room.attend(1);
    room.clock.advance(60_000);
    expect(room.open).toHaveLength(1);
    room.attend(0);
    room.clock.advance(4_999);
    expect(room.open).toHaveLength(1);
    room.clock.advance(1);
    expect(room.endings).toEqual(["cancelled by no_responder"]);
    expect(room.posted).toHaveLength(1);
  });

  it("`wait` keeps it until its deadline, with or without responders", () => {
    const room = new DialogFixture({ kind: "wait", deadlineMs: 10_000 });
    room.ask();
    room.attend(1);
    room.attend(0);
    room.clock.advance(9_999);
    expect(room.open).toHaveLength(1);
    room.clock.advance(1);
    expect(room.endings).toEqual(["cancelled by deadline"]);
    expect(room.posted).toHaveLength(1);
  });
});

describe("a question that a client's prompt led to", () => {
  const asked = (fields = {}): DialogFixture => {
    const room = new DialogFixture();
    room.owner = "ada";
    room.clients = new Set(["ada", "bob"]);
    room.attend(2);
    room.ask(fields);
    return room;
  };

  it("is reserved for that client first: others' answers are refused until `openToOthersAt`, and may be repeated then", () => {
    const room = asked();
    const { dialogId, openedAt, openToOthersAt = 0, owner } = room.only;
    expect([owner, openToOthersAt - openedAt]).toEqual([{ clientId: "ada" }, 5_000]);
    room.clock.advance(1_000);
    expect(() => room.respond(dialogId, { confirmed: true }, "bob")).toThrow(
      expect.objectContaining({
        kind: "dialog_reserved",
        data: expect.objectContaining({ owner, openToOthersAt, retryAfterMs: 4_000, retryable: true }),
      }),
    );
    room.clock.advance(3_999);
    expect(room.refusal(dialogId, { confirmed: true }, "bob")).toBe("dialog_reserved");
    expect([room.posted, room.open]).toEqual([[], [room.only]]);
    room.clock.advance(1);
    expect(room.refusal(dialogId, { confirmed: true }, "bob")).toBe("none");
  });

  it("can be answered by its owner immediately", () => {
    const room = asked();
    expect(room.refusal(room.only.dialogId, { confirmed: true }, "ada")).toBe("none");
  });

  it("is reserved for at most a third of the time until its deadline", () => {
    const room = asked({ timeout: 3_500 });
    const { openedAt, openToOthersAt = 0, deadline } = room.only;
    expect([openToOthersAt - openedAt, deadline - openedAt]).toEqual([1_000, 3_000]);
  });

  it("opens to others when its owner leaves, and stays open; all are notified", () => {
    const room = asked();
    const { dialogId, requestId } = room.only;
    room.clients = new Set(["bob"]);
    room.attend(1);
    const { openToOthersAt = Number.NaN } = room.only;
    expect(openToOthersAt).toBeLessThanOrEqual(Date.now());
    expect(room.said.at(-1)).toEqual({ method: "dialog/updated", params: { dialogId, requestId, openToOthersAt } });
    room.clients = new Set(["ada", "bob"]);
    room.attend(2);
    expect(room.said).toHaveLength(2);
    expect(room.refusal(dialogId, { confirmed: true }, "bob")).toBe("none");
  });

  it("is open to all from the start if its owner cannot answer, or the setting is 0", () => {
    const away = new DialogFixture();
    away.owner = "ada";
    away.attend(1);
    away.ask();
    const off = new DialogFixture({ kind: "wait" }, { dialogDelayMs: 0 });
    off.owner = "ada";
    off.clients = new Set(["ada"]);
    off.ask();
    for (const room of [away, off]) {
      expect(room.only).toMatchObject({ owner: { clientId: "ada" } });
      expect(room.only.openToOthersAt).toBeUndefined();
      expect(room.refusal(room.only.dialogId, { confirmed: true }, "bob")).toBe("none");
    }
  });
});

describe("a question that no client can answer", () => {
  it("is reported to the extensions before pi gets its answer", async () => {
    const room = new DialogFixture({ kind: "cancel" });
    const { promise, resolve } = Promise.withResolvers<void>();
    room.announcing = promise;
    const id = room.ask({ title: "x".repeat(300) });
    expect(room.announced).toEqual([{ requestId: id, method: "confirm", title: "x".repeat(200) }]);
    expect([room.endings, room.posted]).toEqual([["cancelled by no_responder"], []]);
    resolve();
    await promise;
    expect(room.posted).toEqual([{ type: "extension_ui_response", id, cancelled: true }]);
    expect(room.clock.waiting).toBe(0);
  });

  it("makes pi wait only for a limited time for unresponsive extensions, and a flood of them is bounded", () => {
    const room = new DialogFixture({ kind: "cancel" });
    room.announcing = new Promise(() => {});
    for (let i = 0; i < 1_000; i += 1) room.ask();
    expect(room.announced).toHaveLength(maxDialogsPerSession);
    expect(room.posted).toHaveLength(1_000 - maxDialogsPerSession);
    room.clock.advance(limits.dialogs.announceMs);
    expect(room.posted).toHaveLength(1_000);
    room.ask();
    expect(room.announced).toHaveLength(maxDialogsPerSession + 1);
  });

  it("is not reported to extensions if it ends for another reason", () => {
    const room = new DialogFixture();
    room.ask();
    room.dialogs.cancelAll("abort");
    expect(room.announced).toEqual([]);
  });
});

describe("a dialog that pi ends itself", () => {
  it("ends half a second before pi's timeout, and pi gets no answer", () => {
    const room = new DialogFixture();
    room.ask({ timeout: 10_000 });
    expect(room.only.deadline - room.only.openedAt).toBe(9_500);
    room.clock.advance(9_499);
    expect(room.open).toHaveLength(1);
    room.clock.advance(1);
    expect([room.endings, room.posted]).toEqual([["ended by pi"], []]);
  });

  it("is not offered at all when there is no time left", () => {
    const room = new DialogFixture();
    for (const timeout of [500, 1, -5]) room.ask({ timeout });
    expect(room.said.map((said) => said.method)).toEqual(Array.from({ length: 3 }, () => "dialog/resolved"));
    expect([room.endings, room.posted]).toEqual([["ended by pi", "ended by pi", "ended by pi"], []]);
  });

  it("ends with its run, and pi is told in case it still waits", () => {
    const room = new DialogFixture();
    room.ask();
    room.runId = "r1";
    const id = room.ask();
    room.runId = undefined;
    room.dialogs.runSettled("r1");
    expect(room.endings).toEqual(["ended by pi"]);
    expect(room.posted).toEqual([{ type: "extension_ui_response", id, cancelled: true }]);
    expect(room.only.runId).toBeUndefined();
    room.dialogs.runSettled(undefined);
    expect(room.open).toHaveLength(1);
  });

  it("ends with its child", () => {
    const room = new DialogFixture();
    room.ask();
    room.die();
    expect([room.endings, room.posted]).toEqual([["ended by child_exited"], []]);
  });
});

describe("an abort", () => {
  it("cancels open dialogs as soon as pi has it, and new ones until it has ended", async () => {
    const room = new DialogFixture();
    room.ask();
    const { promise, resolve } = Promise.withResolvers<string>();
    const aborted = room.dialogs.whileAborting((onSent) => {
      expect(room.open).toHaveLength(1);
      onSent();
      return promise;
    });
    room.ask();
    expect(room.endings).toEqual(["cancelled by abort", "cancelled by abort"]);
    expect(room.posted).toHaveLength(2);
    resolve("done");
    expect(await aborted).toBe("done");
    room.ask();
    expect(room.open).toHaveLength(1);
  });

  it("goes to pi before the answers that come after it", () => {
    const room = new DialogFixture();
    const id = room.ask();
    void room.dialogs.whileAborting((onSent) => {
      room.respond(room.only.dialogId, { confirmed: false });
      expect([room.endings, room.posted]).toEqual([["answered by client"], []]);
      onSent();
      return new Promise(() => {});
    });
    expect(room.posted).toEqual([{ type: "extension_ui_response", id, confirmed: false }]);
  });

  it("that does not reach pi holds answers up for a second", () => {
    const room = new DialogFixture();
    room.ask();
    void room.dialogs.whileAborting(() => new Promise(() => {}));
    room.respond(room.only.dialogId, { confirmed: true });
    room.ask();
    room.clock.advance(999);
    expect(room.posted).toEqual([]);
    room.clock.advance(1);
    expect(room.posted).toHaveLength(2);
    expect(room.endings).toEqual(["answered by client", "cancelled by abort"]);
  });

  it("that fails leaves the dialogs open, and lets answers go", async () => {
    const room = new DialogFixture();
    room.ask();
    room.ask();
    await room.dialogs.whileAborting(async () => {
      room.respond(room.open[0]?.dialogId ?? "", { confirmed: true });
      expect(room.posted).toEqual([]);
    });
    expect([room.posted.length, room.open.length]).toEqual([1, 1]);
  });

  it("that pi has not got yet cancels the dialogs that delay it", () => {
    const room = new DialogFixture();
    room.ask();
    const { asked } = room.dialogs;
    room.ask();
    room.dialogs.cancelAll("abort", asked);
    expect(room.only.requestId).toBe("q1");
  });
});

describe("a daemon that was killed", () => {
  it("has its open dialogs ended by the next one, once", () => {
    const room = new DialogFixture();
    room.ask();
    const { dialogId } = room.only;
    room.kill();
    expect(room.endings).toEqual(["ended by daemon_restart"]);
    expect(room.refusal(dialogId, { confirmed: true })).toBe("stale");
    room.kill();
    expect(room.endings).toHaveLength(1);
  });
});

describe("while pi starts", () => {
  it("nothing is offered; pending questions are offered as soon as pi reads", () => {
    const room = new DialogFixture();
    room.isReady = false;
    room.dialogs.childStarting();
    room.ask({ timeout: 2_000 });
    room.ask({ timeout: 10_000 });
    expect(room.said).toEqual([]);
    room.clock.advance(3_000);
    room.isReady = true;
    room.dialogs.childReady();
    expect(room.endings).toEqual(["ended by pi"]);
    expect(room.only.deadline - room.only.openedAt).toBe(6_500);
    room.isReady = false;
    room.ask();
    room.dialogs.childStarting();
    room.isReady = true;
    room.dialogs.childReady();
    expect(room.open).toHaveLength(1);
  });
});

describe("a flood", () => {
  it("of 10,000 questions leaves a limited number open, and cancels the others by name", () => {
    const room = new DialogFixture();
    for (let i = 0; i < 10_000; i += 1) room.ask();
    expect(room.open).toHaveLength(maxDialogsPerSession);
    expect(room.posted).toHaveLength(10_000 - maxDialogsPerSession);
    expect(new Set(room.endings)).toEqual(new Set(["cancelled by too_many"]));
    expect(room.dialogs.summaries()).toHaveLength(maxDialogsPerSession);
  });

  it("of text is cancelled by name, and the total size of texts is bounded too", () => {
    const room = new DialogFixture(
      { kind: "wait" },
      { maxDialogBytes: 1_000, maxDialogsBytes: 2_500, maxDialogOptions: 3 },
    );
    room.ask({ title: "x".repeat(1_000) });
    room.ask({ method: "select", options: ["a", "b", "c", "d"] });
    expect(room.endings).toEqual(["cancelled by too_large", "cancelled by too_large"]);
    expect(room.said[0]?.params.title).toHaveLength(200);
    for (let i = 0; i < 4; i += 1) room.ask({ title: "x".repeat(800) });
    expect(room.endings.slice(2)).toEqual(["cancelled by too_many", "cancelled by too_many"]);
    room.respond(room.open[0]?.dialogId ?? "", { cancelled: true });
    room.ask({ title: "x".repeat(800) });
    expect(room.open).toHaveLength(2);
  });
});

describe("the list", () => {
  it("comes in pages, which continue even if a dialog has ended in the meantime", () => {
    const room = new DialogFixture();
    for (let i = 0; i < 5; i += 1) room.ask();
    const all = room.open.map(({ requestId }) => requestId);
    const first = room.registry.page({ limit: 2 });
    expect(first.dialogs.map(({ requestId }) => requestId)).toEqual(all.slice(0, 2));
    room.respond(first.next ?? "", { cancelled: true });
    const second = room.registry.page({ limit: 3, after: first.next });
    expect(second.dialogs.map(({ requestId }) => requestId)).toEqual(all.slice(2));
    expect(second.next).toBeUndefined();
    expect(room.registry.page({ sessionId: "another" }).dialogs).toEqual([]);
    expect(() => room.registry.page({ after: "never-given" })).toThrow(
      expect.objectContaining({ kind: "dialog_not_found" }),
    );
  });

  it("limits a page in bytes, but always returns at least one dialog", () => {
    const room = new DialogFixture({ kind: "wait" }, { maxDialogPageBytes: 1_000 });
    for (let i = 0; i < 3; i += 1) room.ask({ title: "x".repeat(900) });
    const page = room.registry.page({});
    expect(page.dialogs).toHaveLength(1);
    expect(page.next).toBe(page.dialogs[0]?.dialogId);
  });
});

describe("subscribers of the session", () => {
  it("are notified when the first dialog opens and when the last has ended", () => {
    const room = new DialogFixture();
    room.ask();
    room.ask();
    expect(room.pendingChanges).toBe(1);
    room.dialogs.cancelAll("clear_queue");
    expect(room.pendingChanges).toBe(2);
  });

  it("are notified while one is open that was asked in a run", () => {
    const room = new DialogFixture();
    room.ask();
    expect(room.runWaits).toEqual([]);
    room.runId = "run";
    room.ask();
    room.ask();
    expect(room.runWaits).toEqual([true]);
    room.dialogs.runSettled("run");
    expect(room.runWaits).toEqual([true, false]);
  });
});
