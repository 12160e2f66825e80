import { createHash } from "node:crypto";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CARRIER_TYPE, LINK_VERSION } from "../../../protocol/link.ts";
import { startProvider } from "../../../provider/server.ts";
import { fixture, push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

test("the helper says hello before pi's first response, and leaves no trace of its configuration", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider });
  const { data } = await pi.rpc({ type: "get_state" });
  const { sessionId, sessionFile } = data as { sessionId: string; sessionFile: string };
  expect(pi.hello).toMatchObject({ link: LINK_VERSION, reason: "startup", sessionId, sessionFile });
  expect(pi.hello.command).toMatch(/^pi-rpcd-[0-9a-f]{32}$/);
  expect(existsSync(pi.configFile)).toBe(false);
  const bash = await pi.rpc({ type: "bash", command: "env" });
  expect((bash["data"] as { output: string }).output).not.toMatch(/PI_RPCD_HELPER_CONFIG|link-/);
  const commands = await pi.rpc({ type: "get_commands" });
  const names = (commands["data"] as { commands: { name: string }[] }).commands.map(({ name }) => name);
  expect(names).toContain(pi.hello.command);
});

test("a frame of a wrong shape is refused by name and changes nothing", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  for (const text of ["", "{", "[]", '{"kind":"ping"}', '{"kind":"ping","rid":7}']) {
    // pi's response comes after everything that the command has sent.
    await pi.rpc({ type: "prompt", message: `/${pi.hello.command} ${text}` });
  }
  expect(pi.frames("fault").map(({ error }) => error)).toEqual([
    "The frame is not valid JSON.",
    "The frame is not an object.",
    "The frame has no rid.",
  ]);
  expect(pi.frames("reply")).toEqual([]);
  for (const fields of [
    { kind: "explode" },
    { kind: "constructor" },
    { kind: "hold" },
    { kind: "hold", pushes: [], handOver: "sometime" },
    { kind: "release", deliveryIds: [1] },
    { kind: "file", path: "/etc/passwd", bytes: 1 },
    { kind: "file", path: "/etc/passwd", bytes: 1, sha256: "0".repeat(64) },
  ]) {
    await expect(pi.send(fields), JSON.stringify(fields)).rejects.toThrow();
  }
  expect(await pi.send({ kind: "ping" })).toEqual({ running: false, held: [] });
  expect(provider.requests).toHaveLength(0);
});

test("a push that cannot be accepted does not affect others, and is named", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  const bad = [{}, { ...push("d2", "Bad."), triggerTurn: "yes" }, { ...push("d3", "Bad."), customType: CARRIER_TYPE }];
  const good = push("d1", "Good.", { deliverAs: "nextTurn" });
  expect(await pi.send({ kind: "hold", pushes: [...bad, good] })).toMatchObject({
    held: ["d1"],
    refused: [{ deliveryId: "d2" }, { deliveryId: "d3" }],
  });
});

test("a push that was parked or waits for a prompt starts no run by itself", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  await pi.send({ kind: "hold", pushes: [{ ...push("d1", "Parked before."), parked: true }] });
  await pi.send({ kind: "hold", pushes: [push("d2", "With the prompt.")], handOver: "later" });
  expect(await pi.send({ kind: "ping" })).toEqual({ running: false, held: ["d1", "d2"] });
  expect(await pi.send({ kind: "beforePrompt" })).toMatchObject({ held: [], running: false });
  expect(provider.requests).toHaveLength(0);
});

test("a frame in a file is accepted only if the file matches the frame and belongs to this user", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  const text = JSON.stringify({ kind: "ping", rid: "x" });
  const path = join(pi.directory, "frame.json");
  const frame = {
    kind: "file",
    rid: "x",
    path,
    bytes: text.length,
    sha256: createHash("sha256").update(text).digest("hex"),
  };
  const write = (content: string, mode = 0o600): void => {
    writeFileSync(path, content);
    chmodSync(path, mode);
  };
  const send = async (changes: object = {}): Promise<unknown> =>
    await pi.sendRaw(JSON.stringify({ ...frame, ...changes }), String({ ...frame, ...changes }.rid));
  write(text, 0o644);
  await expect(send({ rid: "a" })).rejects.toThrow(/only this user/);
  expect(existsSync(path)).toBe(true);
  write(text);
  await expect(send({ rid: "b", bytes: 1 })).rejects.toThrow(/bytes/);
  expect(existsSync(path)).toBe(false);
  write(`${text} `);
  await expect(send({ rid: "c", bytes: text.length + 1 })).rejects.toThrow(/hash/);
  write(text);
  await expect(send({ rid: "d" })).rejects.toThrow(/rid of the frame/);
  await expect(send({ rid: "e" })).rejects.toThrow(/could not be read/);
  write(text);
  expect(await send()).toEqual({ running: false, held: [] });
});

test("a broken stage or draft is reported, and the request is made without it", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, entry: fixture("throwing-part") });
  await pi.hold(push("d1", "Hello."));
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
  const faults = pi.frames("fault").map(({ where, error }) => `${where}: ${error}`);
  expect(faults).toContain("context_with_system/tags: tags are broken");
  expect(faults).toContain("before_provider_request/marks: marks are broken");
  expect(faults).toContain("message_end/learn: learning is broken");
  expect(faults).toContain("turn_end/broken: drafts are broken");
  expect(faults.some((fault) => fault.startsWith("turn_end/context_edit: A draft was left out"))).toBe(true);
});

test("without a daemon the helper does nothing", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, isConfigured: false });
  await pi.rpc({ type: "prompt", message: "Hello." });
  await pi.event("agent_settled");
  const commands = await pi.rpc({ type: "get_commands" });
  expect(JSON.stringify(commands)).not.toContain("pi-rpcd");
  expect(pi.log.records.filter(({ method }) => method === "setStatus")).toEqual([]);
  expect(pi.log.records.filter(({ type }) => type === "extension_error")).toEqual([]);
});

test("a second copy of the helper does nothing", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["second-copy"] });
  await pi.hold(push("d1", "Hello."));
  await pi.settled();
  expect(pi.frames("hello")).toHaveLength(1);
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
});

test("a configuration that others may read is refused, and pi runs without the helper", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, isConfigured: false, env: { PI_RPCD_HELPER_CONFIG: "/etc/passwd" } });
  await pi.rpc({ type: "get_state" });
  expect(pi.log.stderr).toContain("only this user");
});
