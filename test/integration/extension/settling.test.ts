import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startProvider } from "../../../provider/server.ts";
import { push, startPi } from "./driver.ts";

/** A FIFO that another extension's handler waits on. */
function fifo(): { readonly path: string; release(): Promise<void> } & Disposable {
  const directory = mkdtempSync(join(tmpdir(), "pi-helper-fifo-"));
  const path = join(directory, "fifo");
  execFileSync("mkfifo", [path]);
  return {
    path,
    release: () => writeFile(path, "x"),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

const delivered = ["inserted", "prepared", "delivered headers 200 confirmed", "answered"];

test("a push between the last boundary and the end of a run is handed over when the run has settled", async () => {
  using slow = fifo();
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["slow-hooks"], env: { SLOW_BEFORE_SETTLE: slow.path } });
  await pi.rpc({ type: "prompt", message: "Hello." });
  await pi.log.stderrHas("waiting: SLOW_BEFORE_SETTLE");
  expect(await pi.hold(push("d1", "One more."), push("d2", "And another."))).toMatchObject({
    held: ["d1", "d2"],
    running: true,
  });
  await slow.release();
  await pi.settled(2);
  expect(pi.frames("settled")[0]).toMatchObject({ aborted: false, held: [] });
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(pi.receiptsOf("d2")).toEqual(delivered);
  expect(provider.requests).toHaveLength(2);
  expect(provider.requests[1]?.messages.slice(-2).map(({ texts }) => texts[0])).toEqual(["One more.", "And another."]);
  expect((await pi.inserted()).filter((id) => id !== "-")).toEqual(["d1", "d2"]);
});

test("a frame that arrives while pi reports its settling is handled afterwards, and its push starts a run", async () => {
  using slow = fifo();
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["slow-hooks"], env: { SLOW_SETTLED: slow.path } });
  await pi.rpc({ type: "prompt", message: "Hello." });
  await pi.log.stderrHas("waiting: SLOW_SETTLED");
  const reply = pi.hold(push("d1", "One more."));
  await pi.rpc({ type: "get_state" });
  expect(pi.frames("reply")).toHaveLength(0);
  await slow.release();
  expect(await reply).toEqual({ held: ["d1"], inserted: [], running: true });
  await pi.settled(2);
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(await pi.inserted()).toEqual(["d1"]);
});

test("a push is not handed over twice while another extension still works at the same boundary", async () => {
  using slow = fifo();
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["slow-hooks"], env: { SLOW_TURN_END: slow.path } });
  const tool = pi.blockingCommand();
  const { call, answer } = await import("../../../provider/reply.ts");
  provider.add(answer(call("bash", { command: tool.command })), "Done.", "Indeed.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(push("d1", "Steer."));
  await tool.release();
  await pi.log.stderrHas("waiting: SLOW_TURN_END");
  expect(await pi.hold(push("d1", "Steer."), push("d2", "Late."))).toMatchObject({ held: ["d1", "d2"] });
  expect(await pi.send({ kind: "release", deliveryIds: ["d1"] })).toEqual({
    released: [],
    tooLate: [],
    pending: ["d1"],
  });
  await slow.release();
  await pi.settled();
  expect(await pi.inserted()).toEqual(["d1", "d2"]);
  expect(provider.requests.map((request) => request.countText("Steer."))).toEqual([0, 1, 1]);
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(pi.receiptsOf("d2")).toEqual(delivered);
});
