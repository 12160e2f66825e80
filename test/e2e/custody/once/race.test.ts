import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { expect, test } from "vitest";
import { type Client, connect, type SessionHandle } from "../../../../client/index.ts";
import { startDaemon } from "../../../../server/daemon.ts";
import { startForeignPi } from "../../../helpers/foreign-pi.ts";
import { Notifications } from "../../../helpers/notifications.ts";
import { piUnderTest } from "../../../helpers/pi-versions.ts";
import { helper } from "../../../helpers/programs.ts";
import { type Stage, startStage } from "../../../helpers/stage.ts";
import { Random } from "../../../soak/random.ts";

// CUSTODY_ROUNDS makes it longer, and CUSTODY_SEED repeats a run.
const rounds = Number(process.env["CUSTODY_ROUNDS"] ?? 3);
const seed = Number(process.env["CUSTODY_SEED"] ?? 1);

interface Rival extends AsyncDisposable {
  readonly stateDir: string;
  readonly client: Client;
}

/** Another daemon for the same user's pi. */
async function startRival(stage: Stage): Promise<Rival> {
  const stateDir = join(stage.root, "rival");
  const env = { ...process.env, ...stage.agentDir.env, PI_RPCD_VALIDATE: "1" };
  const daemon = await startDaemon({ stateDir, pi: piUnderTest().cli, helper, env, log: pino({ level: "silent" }) });
  const client = await connect({ stateDir, validateResults: true });
  return {
    stateDir,
    client,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await daemon.stop();
    },
  };
}

/** Entries with more than one successor. */
function forksIn(file: string): number {
  const parents = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => (JSON.parse(line) as { parentId: string | null }).parentId);
  return parents.length - new Set(parents).size;
}

const outcome = async (work: Promise<unknown>): Promise<string> =>
  await work.then(
    () => "done",
    (error: { kind?: string }) => error.kind ?? String(error),
  );

test("of two daemons one holds a session's file, and a foreign pi's changes to it never go unnoticed", {
  timeout: 600_000 + rounds * 20_000,
}, async () => {
  const random = new Random(seed);
  await using stage = await startStage();
  await using rival = await startRival(stage);
  const made = await stage.session();
  await made.promptAndWait("the beginning");
  const { file } = await made.get();
  await made.close();
  let seen = 0;
  for (let round = 0; round < rounds; round += 1) {
    const text = `seed ${seed}, round ${round}`;
    const before = forksIn(file);
    const houses = [stage, rival];
    const opened = await Promise.allSettled(
      houses.map(async ({ client }) => {
        await delay(random.integer(0, 30));
        return await client.openSession({ file });
      }),
    );
    const winners = opened.flatMap((result, index) =>
      result.status === "fulfilled" ? [{ session: result.value, house: houses[index] as Rival }] : [],
    );
    expect([text, winners.length]).toEqual([text, 1]);
    const refusals = opened.flatMap((result) => (result.status === "rejected" ? [result.reason.kind] : []));
    expect([text, refusals]).toEqual([text, ["session_in_use"]]);
    const [winner] = winners;
    if (winner === undefined) return;
    const { session, house } = winner;
    await using told = await Notifications.of(house.stateDir, session.id);
    await compete(stage, session, random, file);
    // Whatever the result, the next run continues from the file's content, or reports why it does not.
    expect([text, await outcome(session.promptAndWait("once more"))]).toEqual([
      text,
      expect.stringMatching(/^(done|foreign_write)$/),
    ]);
    await expect.poll(async () => (await session.get()).state).toBe("idle");
    const notices = told.named("session/foreignWrite");
    if (forksIn(file) > before) {
      seen += 1;
      expect([text, notices.length > 0]).toEqual([text, true]);
    }
    await session.close();
  }
  process.stderr.write(`custody race: seed ${seed}, ${rounds} rounds, ${seen} divergent, all of them told\n`);
});

/** The session and a foreign pi write at random moments. */
async function compete(stage: Stage, session: SessionHandle, random: Random, file: string): Promise<void> {
  const ownPause = random.integer(0, 400);
  const foreignPause = random.integer(0, 100);
  const own = (async () => {
    for (const text of ["own one", "own two"]) {
      await delay(ownPause);
      expect(await outcome(session.promptAndWait(text))).toMatch(/^(done|foreign_write|child_exited)$/);
      await expect.poll(async () => (await session.get()).state).toMatch(/^(idle|hibernated)$/);
    }
  })();
  await delay(foreignPause);
  {
    await using terminal = await startForeignPi(stage, file);
    await terminal.prompt("from the terminal");
    await delay(foreignPause);
    await terminal.prompt("from the terminal again");
  }
  await own;
}
