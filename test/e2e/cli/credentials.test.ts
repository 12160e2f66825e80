import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Finding, Report } from "../../../cli/doctor/finding.ts";
import { connect } from "../../../client/index.ts";
import { keyVariablesIn } from "../../../protocol/key-variables.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, hold } from "../../../provider/reply.ts";
import { filesBelow } from "../../helpers/files.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { lines, Scene } from "./scene.ts";

const secret = "sk-ant-this-must-not-be-sent";
const key = { ANTHROPIC_API_KEY: secret };

/** A user's machine on which pi has no login and no key. */
async function keyless(): Promise<Scene> {
  const scene = await Scene.open();
  const home = join(scene.root, "home");
  mkdirSync(home);
  for (const name of [...keyVariablesIn(scene.env), "PI_CODING_AGENT_DIR"]) delete scene.env[name];
  Object.assign(scene.env, { HOME: home, XDG_CONFIG_HOME: join(home, "config"), PI_RPCD_WARM_CHILDREN: "0" });
  return scene;
}

/** A pi that records each start of its RPC mode. */
function counted(scene: Scene): { readonly path: string; readonly starts: () => number } {
  const [path, record] = [join(scene.root, "pi.mjs"), join(scene.root, "starts")];
  const text = `import { appendFileSync } from "node:fs";
if (process.argv.includes("rpc")) appendFileSync(${JSON.stringify(record)}, "x");
await import(${JSON.stringify(piUnderTest().cli)});
`;
  writeFileSync(path, text);
  writeFileSync(record, "");
  return { path, starts: () => readFileSync(record, "utf8").length };
}

function modelRow(stdout: string): Finding | undefined {
  return lines<Report>(stdout)[0]?.findings.find(({ name }) => name === "model");
}

/** All texts in the files of the state directory. */
function stored(scene: Scene): string {
  return [...filesBelow(scene.stateDir).values()].join("\n");
}

describe("a pi without login and key", () => {
  test("is named for a push to a session with a model, too", async () => {
    await using scene = await keyless();
    await scene.json(["new", "--model", "anthropic/claude-sonnet-4-5"]);
    const { code, stderr } = await scene.run(["push", "last", "--wait", "delivered", "The build is green."]);
    expect([code, stderr]).toEqual([
      4,
      expect.stringContaining("parked: pi has no credentials for anthropic. Run `pi-"),
    ]);
  });

  test("is named by new, by each error that names /login, by a parked push and by doctor", async () => {
    await using scene = await keyless();
    const pi = counted(scene);
    scene.env["PI_RPCD_PI"] = pi.path;
    const login =
      "Run `pi-rpcd pi`, then `/login`, or restart the daemon (pi-rpcd start --restart) with ANTHROPIC_API_KEY";
    const created = await scene.run(["new"]);
    expect([created.code, created.stdout]).toEqual([0, expect.stringMatching(/^[0-9a-f-]{36}\n$/)]);
    expect(created.stderr).toContain(`No model has credentials: prompts will fail. ${login}`);
    // The session's own pi is asked.
    expect(pi.starts()).toBe(1);

    for (const command of [
      ["prompt", "last", "hello"],
      ["prompt", "last", "--no-wait", "hello"],
    ]) {
      const { code, stderr } = await scene.run(command);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^pi-rpcd: pi refused: No .*\/login.*\n/);
      expect(stderr.split("pi-rpcd pi`")).toHaveLength(2);
      expect(stderr.trim().split("\n").at(-1)).toContain(
        `/login is a command of pi's terminal, not of pi-rpcd. ${login}`,
      );
    }
    const pushed = await scene.run(["push", "last", "The build is green."]);
    expect([pushed.code, pushed.stdout]).toEqual([0, expect.stringMatching(/^[0-9a-f-]{36}\n$/)]);
    expect(pushed.stderr).toContain(`The push is parked: no model has credentials. ${login}`);
    const awaited = await scene.run(["push", "last", "--wait", "delivered", "The build is green."]);
    expect(awaited.code).toBe(4);
    expect(awaited.stderr).toMatch(/^pi-rpcd: The delivery did not reach "delivered"\. The push is parked: .*\n$/);
    expect(awaited.stderr).toContain(`no model has credentials. ${login}`);

    const parked = `no model has credentials. ${login}`;
    const id = pushed.stdout.trim();
    for (const command of [
      ["delivery", "show", id],
      ["deliveries", "last"],
      ["tail", "last", "--no-follow"],
      ["tree", "last"],
    ]) {
      const { code, stderr } = await scene.run(command);
      expect([command, code, stderr]).toEqual([command, 0, expect.stringContaining(parked)]);
      expect(stderr.split(login)).toHaveLength(2);
    }
    const resent = await scene.run(["delivery", "resend", id]);
    expect(resent).toMatchObject({ code: 4, stdout: "", stderr: expect.stringContaining(`parked: ${parked}`) });
    expect((await scene.run(["model", "list"])).stdout).toContain("Run `pi-rpcd pi`, then `/login`");

    const client = await connect({ stateDir: scene.stateDir });
    const [session] = await client.listSessions();
    await expect(client.session(session?.sessionId ?? "").prompt("hello")).rejects.toThrow(
      /Run `pi-rpcd pi`, then `\/login`, or start the daemon with a provider's key\.$/,
    );
    await client.close();
    const unknown = await scene.run(["new", "--model", "bogus"]);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("`pi-rpcd model list` lists")]);
    expect(unknown.stderr).not.toContain("--list-models");
    expect((await scene.run(["model", "show"])).stderr).toContain("SESSION is missing. `last` is the newest session.");

    const checked = await scene.run(["doctor", "--json"]);
    expect([checked.code, lines<Report>(checked.stdout)[0]?.ok]).toEqual([1, false]);
    expect(modelRow(checked.stdout)).toMatchObject({ state: "bad", found: "no model has credentials" });
    expect(modelRow(checked.stdout)?.todo).toContain(login);
    await scene.json(["stop"]);
    const alone = await scene.run(["doctor"]);
    expect(alone.code).toBe(1);
    expect(alone.stdout).toMatch(
      /^✘ model +no model has credentials\n +→ Run `pi-rpcd pi`, then `\/login`, or start the daemon with ANTHROPIC_API_KEY/m,
    );
    expect(alone.stdout).toMatch(/\n1 problem found\.\n$/);
  });

  test("is given a key that only the command has, after a restart, and the key's value is not sent before", async () => {
    await using scene = await keyless();
    const { pid } = await scene.json<{ readonly pid: number }>(["start"]);
    const todo = "Restart it from here: pi-rpcd start --restart";
    const advice = `ANTHROPIC_API_KEY is set here, but not in the running daemon. ${todo}`;
    for (const command of [["start"], ["status"], ["new"], ["new", "--model", "anthropic/claude-sonnet-4-5"]]) {
      const { code, stderr } = await scene.run(command, { env: key });
      expect([command, code, stderr]).toEqual([command, 0, expect.stringContaining(advice)]);
    }
    const failed = await scene.run(["prompt", "last", "hello"], { env: key });
    expect(failed.stderr.trim().split("\n").at(-1)).toContain(advice);
    const quick = await scene.run(["doctor", "--quick", "--json"], { env: key });
    expect(modelRow(quick.stdout)).toMatchObject({ state: "odd", todo });
    expect(stored(scene)).not.toContain(secret);

    const restarted = await scene.json<{ readonly pid: number }>(["start", "--restart"], { env: key });
    expect(restarted.pid).not.toBe(pid);
    expect(await scene.json(["status"])).toMatchObject({ keyVariables: ["ANTHROPIC_API_KEY"] });
    const created = await scene.run(["new", "--json"], { env: key });
    expect([created.code, created.stderr]).toEqual([0, expect.not.stringMatching(/key|credentials|login/i)]);
    expect(JSON.parse(created.stdout)).toMatchObject({ model: { provider: "anthropic" } });
    const checked = await scene.run(["doctor", "--json"], { env: key });
    expect(modelRow(checked.stdout)).toMatchObject({ state: "good", found: expect.stringMatching(/anthropic$/) });
    expect(stored(scene)).not.toContain(secret);
  });
});

interface Listed {
  readonly sessions: readonly { readonly state: string }[];
}

test.each([
  { liveRestore: true, says: "The next daemon continues it." },
  { liveRestore: false, says: "then interrupts the remaining runs." },
])("start --restart says that runs are active, and loses no accepted push: live restore $liveRestore", async (row) => {
  const gate = new Gate();
  await using scene = await Scene.open({
    script: [answer("I begin.", hold(gate)), answer("I see."), answer("Gone on.")],
  });
  const env = { PI_RPCD_DRAIN_MS: "0", PI_RPCD_LIVE_RESTORE: `${row.liveRestore}` };
  await scene.json(["start"], { env });
  await scene.json(["new"]);
  await scene.json(["prompt", "last", "--no-wait", "Begin."]);
  await expect.poll(() => scene.provider.requests.length).toBe(1);
  const { deliveryId } = await scene.json<{ readonly deliveryId: string }>(["push", "last", "The build is green."]);
  const { code, stderr } = await scene.run(["start", "--restart"], { env });
  expect([code, stderr]).toEqual([0, expect.stringContaining("1 run is active.")]);
  expect(stderr).toContain(row.says);
  expect(stderr).toContain("Accepted pushes are kept.");
  gate.open();
  const kept = await scene.json<{ readonly deliveries: readonly object[] }>(["deliveries"]);
  expect(kept.deliveries).toEqual([expect.objectContaining({ deliveryId })]);
  await expect.poll(async () => (await scene.json<Listed>(["ls"])).sessions[0]?.state).not.toBe("running");
  await scene.run(["prompt", "last", "Go on."]);
  expect(await scene.json(["delivery", "show", deliveryId])).toMatchObject({
    state: expect.stringMatching(/^(delivered|answered)$/),
  });
  expect(scene.provider.requests.at(-1)?.countText("The build is green.", { roles: ["user"] })).toBe(1);
});

test("the known key variables are those of pi's documentation", () => {
  const providers = join(dirname(piUnderTest().cli), "..", "..", "docs", "providers.md");
  const named = readFileSync(providers, "utf8").match(/\b[A-Z][A-Z0-9_]*(?:_API_KEY|_TOKEN|_TOKEN_BEDROCK)\b/g) ?? [];
  // A session token is only used with an access key.
  const keys = [...new Set(named)].filter((name) => name !== "AWS_SESSION_TOKEN");
  expect(keys.length).toBeGreaterThan(30);
  expect(keyVariablesIn(Object.fromEntries(keys.map((name) => [name, "x"]))).toSorted()).toEqual(keys.toSorted());
});
