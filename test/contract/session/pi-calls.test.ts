import { expect, test } from "vitest";
import type { Session } from "../../../server/session/session.ts";
import { type Core, recorder, startCore } from "../../helpers/core.ts";

const never = new AbortController().signal;

async function kindOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => "no error",
    (error: { kind?: string; message: string }) => error.kind ?? error.message,
  );
}

function pidOf({ state }: Session): number {
  if (state.kind !== "idle" && state.kind !== "running") throw new Error(state.kind);
  return state.child.pid;
}

/** A session whose shell commands run until they are ended. */
async function withBash(core: Core) {
  const session = await core.registry.create({ cwd: core.cwd });
  const log = recorder();
  session.subscribe(log, { after: 0 });
  const begun = (bashId: string) =>
    log.until(({ params }) => params.event?.type === "bash_execution_update" && params.event.id === `bash:${bashId}`);
  return { session, log, begun };
}

test("shell commands run one at a time, and a caller that disconnects ends only its own", async () => {
  await using core = await startCore();
  const { session, log, begun } = await withBash(core);
  const first = new AbortController();
  const running = session.calls.bash({ command: "wait", bashId: "a" }, first.signal);
  await begun("a");
  const gone = new AbortController();
  const waiting = session.calls.bash({ command: "wait", bashId: "b" }, gone.signal);
  const next = session.calls.bash({ command: "wait", bashId: "c" }, never);
  gone.abort(new Error("no patience"));
  first.abort(new Error("enough"));
  expect(await kindOf(running)).toBe("enough");
  expect(await kindOf(waiting)).toBe("no patience");
  await begun("c");
  await session.calls.send({ type: "abort_bash" }, never);
  expect(await next).toMatchObject({ bashId: "c", cancelled: true });
  const seen = log.heard.flatMap(({ params }) =>
    params.event?.type === "bash_execution_update" ? params.event.id : [],
  );
  expect(seen).toEqual(["bash:a", "bash:c"]);
});

test("the number of waiting shell commands is bounded", async () => {
  await using core = await startCore();
  const { session, begun } = await withBash(core);
  const all = Array.from({ length: 18 }, (_, at) => session.calls.bash({ command: "wait", bashId: `${at}` }, never));
  for (const one of all) one.catch(() => {});
  expect(await kindOf(all[17] as Promise<unknown>)).toBe("overloaded");
  await begun("0");
  process.kill(pidOf(session), "SIGKILL");
  expect(await kindOf(all[0] as Promise<unknown>)).toBe("child_exited");
});

test("an unanswered command ends for the client that cancels it, and for all with the child; their number is limited", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd });
  const patience = new AbortController();
  const cancelled = session.calls.send({ type: "hang" }, patience.signal);
  await session.calls.send({ type: "echo" }, never);
  patience.abort(new Error("enough"));
  expect(await kindOf(cancelled)).toBe("enough");
  // An abandoned command still counts, because pi is working on it.
  const hanging = Array.from({ length: 255 }, () => session.calls.send({ type: "hang" }, never));
  for (const one of hanging) one.catch(() => {});
  await Promise.resolve();
  expect(await kindOf(session.calls.send({ type: "echo" }, never))).toBe("overloaded");
  process.kill(pidOf(session), "SIGKILL");
  for (const one of hanging) expect(await kindOf(one)).toBe("child_exited");
  expect(await session.calls.send({ type: "echo" }, never)).toMatchObject({ type: "echo" });
});

test("a compaction is refused during a run, and an answer that is too large is reported", async () => {
  await using core = await startCore();
  core.behave("keep-running");
  const session = await core.registry.create({ cwd: core.cwd });
  expect(await kindOf(session.calls.send({ type: "giant" }, never))).toBe("too_large");
  await session.prompting.prompt({ text: "go on", ifRunning: "refuse" });
  expect(await kindOf(session.calls.compact(undefined, never))).toBe("session_busy");
  // Also when sent as a generic command.
  expect(await kindOf(session.calls.send({ type: "compact" }, never))).toBe("session_busy");
  await session.prompting.abort();
  expect(await kindOf(session.calls.send({ type: "compact", customInstructions: 1 }, never))).toBe("invalid_params");
  expect(await session.calls.compact("keep the names", never)).toEqual({});
});

test("a session name that looks like a command line option does not prevent the session's next start", async () => {
  await using core = await startCore();
  core.behave("odd-names");
  const session = await core.registry.create({ cwd: core.cwd });
  expect(session.info().name).toBe(`--help ${"😀".repeat(193)}`);
  await session.supervisor.hibernate(true);
  expect(session.state.kind).toBe("hibernated");
  expect(await session.calls.send({ type: "get_state" }, never)).toMatchObject({ thinkingLevel: "--thinking" });
});
