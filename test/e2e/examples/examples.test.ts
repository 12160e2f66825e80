import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import { answer, call } from "../../../provider/reply.ts";
import { patience } from "../../helpers/patience.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

const examples = join(import.meta.dirname, "..", "..", "..", "examples");
const pushed = "The nightly build is green.";

/** Runs a program in the stage's directory, like a user of that stage's daemon. */
async function play(stage: Stage, file: string, args: readonly string[], cwd = stage.cwd): Promise<string> {
  mkdirSync(cwd, { recursive: true });
  const env = { ...process.env, PI_RPCD_STATE_DIR: stage.stateDir };
  return (await promisify(execFile)(file, args, { cwd, env, ...patience })).stdout;
}

test("push-while-running.ts gets its receipt for the very request that carries the push", async () => {
  await using stage = await startStage({
    provider: { script: [answer("I run them.", call("bash", { command: "sleep 2" })), answer("All is green.")] },
  });
  const output = await play(stage, process.execPath, [join(examples, "push-while-running.ts")]);
  expect(output.split("\n")).toEqual([
    "pi has taken the prompt: started.",
    "The model has it. Evidence: headers; requests that carried it: 1.",
    "It went through accepted, held, inserted, prepared, delivered, answered.",
    "",
  ]);
  expect(stage.provider.requests.map((request) => request.countText(pushed, { roles: ["user"] }))).toEqual([0, 1]);
  expect(await stage.client.listSessions()).toEqual([]);
});

test("curl.sh calls the daemon over the Unix socket and over TCP, and leaves no session", async () => {
  await using stage = await startStage();
  const output = await play(stage, "bash", [join(examples, "curl.sh")], join(stage.cwd, 'odd", "name": "forged'));
  const answers = output.trim().split("\n");
  const [delivered, answered, closed] = answers.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(answers).toHaveLength(3);
  expect(delivered).toMatchObject({ state: expect.stringMatching(/^(delivered|answered)$/), customType: "build" });
  expect(answered).toMatchObject({ state: "answered", deliveryId: delivered?.["deliveryId"] });
  expect(closed).toMatchObject({ id: 2, result: {} });
  const validator = createValidator();
  expect(validator.result("delivery/push", delivered)).toEqual([]);
  expect(validator.result("delivery/wait", answered)).toEqual([]);
  expect(validator.result("session/close", closed?.["result"])).toEqual([]);
  expect(stage.provider.requests.at(-1)?.countText(pushed, { roles: ["user"] })).toBe(1);
  expect(await stage.client.listSessions()).toEqual([]);
});

test("answer-dialogs.ts accepts before the tool runs", async () => {
  const asking = join(examples, "..", "test", "fixtures", "extension", "asking.ts");
  await using stage = await startStage({
    agent: { settings: { extensions: [asking] } },
    provider: { script: [answer("I run them.", call("bash", { command: "echo ask-first" })), answer("All is green.")] },
  });
  const output = await play(stage, process.execPath, [join(examples, "answer-dialogs.ts")]);
  expect(output.split("\n").sort()).toEqual(["", '"Run it?" is over.', "All is green.", "confirm: Run it?"]);
});
