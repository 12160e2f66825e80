import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import { fencesOf, read } from "../../contract/docs/documents.ts";
import { startStage } from "../../helpers/stage.ts";

test("the curl commands in docs/clients.md do what the document says", async () => {
  await using stage = await startStage();
  const cwd = join(stage.cwd, `odd", "name": "$(touch forged) 'x'`);
  mkdirSync(cwd);
  const [, section = ""] = /\n## With curl\n(.*?)\n## /s.exec(read("docs/clients.md")) ?? [];
  const blocks = fencesOf(section).map(({ text }) => text);
  // curl adds no line end to an answer.
  const script = blocks.join("\n").replaceAll(/^(unix "?\/(?:[^\\\n]|\\\n)*)$/gm, "$1; echo");
  const child = spawn("bash", ["-euo", "pipefail", "-c", script], {
    cwd,
    env: { ...process.env, PI_RPCD_STATE_DIR: stage.stateDir },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  let output = "";
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += String(chunk);
  });
  const streams = Promise.withResolvers<void>();
  child.stdout.on("data", (chunk) => {
    output += String(chunk);
    // The stream begins with past events, and continues until the session is closed.
    if (
      output
        .split("data: ")
        .slice(1)
        .filter((event) => event.includes('"run/ended"')).length === 2
    )
      streams.resolve();
  });
  await Promise.race([streams.promise, exited]);
  const [session] = await stage.client.listSessions();
  expect([session?.cwd, session?.name, readdirSync(cwd)]).toEqual([cwd, undefined, []]);
  await stage.client.call("session/close", { sessionId: session?.sessionId ?? "" });
  expect(await exited, `${output}\n${errors}`).toEqual([0, null]);
  expect(await stage.client.listSessions()).toEqual([]);

  const [prompted, delivered, answered, listed, page, ...events] = output.split("\n");
  const validator = createValidator();
  const isResult = (method: Parameters<typeof validator.result>[0], line = "null"): void =>
    expect(validator.result(method, JSON.parse(line))).toEqual([]);
  isResult("session/prompt", prompted);
  expect(JSON.parse(prompted ?? "")).toMatchObject({ outcome: "settled", text: expect.any(String) });
  isResult("delivery/push", delivered);
  isResult("delivery/wait", answered);
  expect(JSON.parse(answered ?? "")).toMatchObject({ state: "answered", customType: "build" });
  isResult("session/list", listed);
  isResult("session/events", page);
  expect(JSON.parse(page ?? "").events).toHaveLength(5);
  expect(events.slice(0, 2)).toEqual([expect.stringMatching(/^retry: \d+$/), "event: subscribed"]);
  expect(events.filter((line) => line !== "").slice(-2)).toEqual(["event: end", 'data: {"reason":"session_closed"}']);
});
