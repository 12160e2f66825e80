import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { httpCall } from "../../../../client/index.ts";
import type { Delivery } from "../../../../protocol/delivery.ts";
import type { SessionInfo } from "../../../../protocol/session.ts";
import { Gate } from "../../../../provider/gate.ts";
import { answer, hold, type Reply, status } from "../../../../provider/reply.ts";
import { piUnderTest } from "../../../helpers/pi-versions.ts";
import { type ScriptOptions, Scripts, type TestsProvider } from "../../../helpers/scripts.ts";
import { errorName, lines, Scene } from "../scene.ts";

interface Envelope {
  readonly seq: number;
  readonly event: { readonly type: string };
}

/** A configuration with a profile, by its path from the scene's directory. */
function configIn(scene: Scene): string {
  writeFileSync(join(scene.cwd, "config.json"), '{ "profiles": { "lean": { "labels": { "kind": "lean" } } } }');
  return "config.json";
}

function refusal(): Reply {
  return status(400, { message: "no" });
}

/** A scene for the duration of one test, with a session of its own, which is the newest. */
interface Turn extends AsyncDisposable {
  readonly scene: Scene;
  readonly provider: TestsProvider;
  /** Reports that everything is in order, so the next test may reuse the scene. Otherwise it gets another. */
  done(): void;
}

const scripts = new Scripts();
let shared: Scene | undefined;

async function endShared(): Promise<void> {
  const ended = shared;
  shared = undefined;
  await ended?.[Symbol.asyncDispose]();
}
afterAll(endShared);

async function useScene(script: ScriptOptions = {}): Promise<Turn> {
  shared ??= await Scene.open({ otherwise: scripts.respond });
  const provider = scripts.begin(shared.provider, script);
  let isDone = false;
  const scene = shared;
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  return {
    ...{ scene, provider },
    done: () => {
      isDone = true;
    },
    [Symbol.asyncDispose]: async () => {
      if (isDone) await httpCall("session/close", { sessionId }, { stateDir: scene.stateDir });
      else await endShared();
      scripts.end();
    },
  };
}

describe("from start to stop", () => {
  test("every command works, in JSON and in words", async () => {
    await using scene = await Scene.open();
    const started = await scene.json<{ readonly url: string; readonly pid: number }>([
      "start",
      "--config",
      configIn(scene),
    ]);
    expect(started).toMatchObject({ started: true, stateDir: scene.stateDir, log: join(scene.stateDir, "daemon.log") });
    expect(await scene.json(["status"])).toMatchObject({
      running: true,
      pid: started.pid,
      url: started.url,
      pi: { version: piUnderTest().version, source: "environment" },
      sessions: {},
    });

    const session = await scene.json<SessionInfo>([
      ...["new", "--name", "trip", "--thinking", "off", "--profile", "lean", "--label", "team=a,draft"],
    ]);
    expect(session).toMatchObject({
      ...{ state: "idle", cwd: scene.cwd, name: "trip", profile: "lean" },
      labels: { kind: "lean", team: "a", draft: "" },
    });
    const { sessionId } = session;

    const prompted = await scene.run(["prompt", sessionId, "hello", "there"]);
    expect(prompted).toMatchObject({ code: 0, stdout: "Echo: hello there\n" });

    const streamed = await scene.run(["prompt", "last", "-", "--json"], { stdin: "from stdin\n" });
    expect(streamed.code).toBe(0);
    const envelopes = lines<Envelope>(streamed.stdout);
    expect(envelopes.at(-1)?.event.type).toBe("agent_settled");
    expect(envelopes.map(({ event }) => event.type)).toContain("message_update");
    expect(envelopes.map(({ seq }) => seq)).toEqual(envelopes.map(({ seq }) => seq).toSorted((a, b) => a - b));
    expect(scene.provider.requests.at(-1)?.hasText("from stdin")).toBe(true);

    const push = ["push", sessionId.slice(-6), "the build is green", "--details", '{"build":7}', "--id", "build-7"];
    const pushed = await scene.run([...push, "--wait", "delivered", "--timeout", "60", "--json"]);
    expect(pushed.code).toBe(0);
    const delivery = lines<Delivery>(pushed.stdout).at(-1);
    expect(delivery).toMatchObject({
      deliveryId: "build-7",
      customType: "pi-rpcd.push",
      history: expect.arrayContaining([expect.objectContaining({ state: "delivered", evidence: "headers" })]),
    });
    expect(scene.provider.requests.at(-1)?.countText("the build is green")).toBe(1);

    const repeated = await scene.run([...push, "--wait", "answered"]);
    expect(repeated.code).toBe(0);
    expect(repeated.stdout).toMatch(/^build-7\n/);
    for (const state of ["accepted", "held", "inserted", "prepared", "delivered", "answered"]) {
      expect(repeated.stdout).toMatch(new RegExp(`^ +\\d+\\.\\d\\d s +${state} `, "m"));
    }

    expect(await scene.json(["ls"])).toMatchObject({ sessions: [{ sessionId, state: "idle", name: "trip" }] });
    const table = await scene.run(["ls"]);
    expect(table.stdout).toMatch(/^SESSION +STATE +AGE +MODEL +NAME +DIRECTORY\n/);
    expect(table.stdout).toContain(`\n${sessionId.slice(-8)} `);
    expect((await scene.run(["status"])).stdout).toMatch(/sessions +1 idle/);

    expect(await scene.json(["stop"])).toEqual({ stopped: true, pid: started.pid, stateDir: scene.stateDir });
    expect(await scene.json(["stop"])).toEqual({ stopped: false, reason: "absent", stateDir: scene.stateDir });
    const ended = await scene.run(["status", "--json"]);
    expect(ended.code).toBe(3);
    expect(lines(ended.stdout)).toMatchObject([{ running: false, reason: "absent" }]);
  });

  test("the first command that needs a daemon starts one and reports it, unless an option forbids it", async () => {
    await using scene = await Scene.open();
    for (const args of [
      ["ls", "--no-start"],
      ["new", "--no-start"],
      ["push", "last", "x", "--no-start"],
    ]) {
      const { code, stderr } = await scene.run([...args, "--json"]);
      expect([code, errorName(stderr)]).toEqual([3, "daemon_not_running"]);
    }
    const folder = join(scene.root, "elsewhere");
    mkdirSync(folder);
    // As `npm run pi-rpcd` starts it: in the checkout's folder, with the caller's directory in INIT_CWD.
    const env = { npm_lifecycle_event: "pi-rpcd", INIT_CWD: scene.root };
    const created = await scene.run(["new", "--cwd", "elsewhere"], { cwd: "/", env });
    expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[\w-]+\n$/) });
    // On a busy machine a line about a slow start may follow.
    expect(created.stderr).toMatch(
      /^pi-rpcd: no daemon was running; started one \(process \d+, log .*daemon\.log\)\n(pi-rpcd: pi is still starting after 3 s\. [^\n]+\n)?$/,
    );
    expect(await scene.json(["ls"])).toMatchObject({ sessions: [{ sessionId: created.stdout.trim(), cwd: folder }] });
  });
});

describe("prompt", () => {
  test("exits with 7 when the run fails, and gives the reason", async () => {
    await using turn = await useScene({ otherwise: refusal });
    const { scene } = turn;
    const plain = await scene.run(["prompt", "last", "hello"]);
    expect(plain.code).toBe(7);
    expect(plain.stderr).toMatch(/^pi-rpcd: The run failed: .*400.*\(run_failed\)\n$/);
    const json = await scene.run(["prompt", "last", "hello", "--json"]);
    expect([json.code, errorName(json.stderr)]).toEqual([7, "run_failed"]);
    expect(lines<Envelope>(json.stdout).at(-1)?.event.type).toBe("agent_settled");
    turn.done();
  });

  test("is refused during a run, joins the run if told to, and is aborted by Ctrl-C", async () => {
    const gate = new Gate();
    await using turn = await useScene({ script: [answer("working ", hold(gate), "done")] });
    const { scene } = turn;
    const running = scene.start(["prompt", "last", "work"]);
    await running.said(/working/);

    const refused = await scene.run(["prompt", "last", "more", "--json"]);
    expect([refused.code, errorName(refused.stderr)]).toEqual([1, "session_busy"]);
    const queued = await scene.json(["prompt", "last", "more", "--if-running", "steer", "--no-wait"]);
    expect(queued).toMatchObject({ disposition: "queued", promptId: expect.any(String) });

    running.kill("SIGINT");
    const aborted = await running.ended;
    expect(aborted.code).toBe(130);
    expect(aborted.stdout).toMatch(/^working/);
    expect(aborted.stderr).toContain("aborting the run");
    const [request] = turn.provider.requests;
    expect(await request?.ended).toBe("closed_by_client");
    turn.done();
  });

  test("that is detached leaves the run alone", async () => {
    const gate = new Gate();
    await using turn = await useScene({ script: [answer("working ", hold(gate), "done")] });
    const { scene } = turn;
    const running = scene.start(["prompt", "last", "work"]);
    await running.said(/working/);
    running.kill("SIGTERM");
    expect((await running.ended).code).toBe(143);
    gate.open();
    expect(await turn.provider.requests[0]?.ended).toBe("answered");
    turn.done();
  });
});

describe("push --wait", () => {
  test("exits with 4 when the delivery is parked instead", async () => {
    await using turn = await useScene({ otherwise: refusal });
    const { scene } = turn;
    const { code, stdout, stderr } = await scene.run(["push", "last", "news", "--wait", "delivered"]);
    expect(code).toBe(4);
    expect(stdout).toMatch(/parked +.*\(run_failed\)\n$/);
    expect(stderr).toMatch(/did not reach "delivered"\. The push is parked: .*\(delivery\)\n$/);
    turn.done();
  });

  test("exits with 5 on timeout, and cancels nothing", async () => {
    await using turn = await useScene();
    const { scene } = turn;
    const args = ["push", "last", "-", "--no-trigger", "--id", "late", "--wait", "delivered", "--timeout", "0.2"];
    const { code, stderr } = await scene.run([...args, "--json"], { stdin: "later" });
    expect([code, errorName(stderr)]).toEqual([5, "deadline_exceeded"]);
    expect((await scene.run(["prompt", "last", "hello"])).code).toBe(0);
    expect(turn.provider.requests.at(-1)?.countText("later")).toBe(1);
    turn.done();
  });
});
