import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import type { DaemonFile } from "../../../protocol/daemon-file.ts";
import { answer, call, delay } from "../../../provider/reply.ts";
import type { Responder } from "../../../provider/script.ts";
import { type KillableStage, startKillableStage } from "../../helpers/killable-stage.ts";
import { LogReader, messagesIn } from "../../helpers/log-reader.ts";
import { endingWithDaemon } from "../../helpers/stage.ts";
import { Random } from "../../soak/random.ts";

const wanted = Number(process.env["PI_RPCD_DISCONNECTS"] ?? 120);
const seed = Number(process.env["PI_RPCD_DISCONNECTS_SEED"] ?? Math.floor(Math.random() * 0x7fffffff));
/** About how many disconnects happen during a daemon's life. */
const perLife = 40;

/** Answers of many deltas, sometimes with a tool call. */
function streaming(random: Random): Responder {
  return () => {
    const words = Array.from({ length: random.integer(20, 80) }, () => [
      delay(random.integer(0, 4)),
      `ö${random.next()} `,
    ]);
    const tool = random.chance(0.25) ? [call("bash", { command: "printf 'one\\ntwo\\n'" })] : [];
    return answer(...words.flat(), ...tool);
  };
}

function daemonOf({ stateDir }: KillableStage): DaemonFile {
  return JSON.parse(readFileSync(join(stateDir, "daemon.json"), "utf8")) as DaemonFile;
}

/** Prompts until it is told to stop; work interrupted by a killed daemon is abandoned. */
async function converse(session: SessionHandle, isOver: () => boolean): Promise<void> {
  for (let turn = 1; !isOver(); turn += 1) {
    try {
      await session.promptAndWait(`turn ${turn}`);
    } catch {
      return;
    }
  }
}

test(`a transcript built over ${wanted} broken connections and killed daemons equals pi's own (seed ${seed})`, {
  timeout: 600_000 + wanted * 600,
}, async () => {
  const random = new Random(seed);
  await using stage = await startKillableStage({
    provider: { otherwise: streaming(random.fork()) },
    // Otherwise the log has no gap.
    config: endingWithDaemon,
  });
  const { id } = await stage.session();
  const reader = new LogReader(id, random.fork());
  let deaths = 0;
  while (reader.counts.disconnects < wanted) {
    let isOver = false;
    const talk = converse(stage.client.session(id), () => isOver);
    const until = Math.min(wanted, reader.counts.disconnects + random.integer(perLife / 2, perLife));
    const daemon = daemonOf(stage);
    while (reader.counts.disconnects < until) await reader.cutOne(daemon);
    isOver = true;
    if (reader.counts.disconnects < wanted) {
      await stage.restart();
      deaths += 1;
    }
    await talk;
  }
  const session = stage.client.session(id);
  await session.command({ type: "get_state" });
  const { cursor, file } = await session.get();
  await reader.readTo(daemonOf(stage), cursor);

  const { counts } = reader;
  process.stdout.write(`disconnects: ${JSON.stringify({ seed, deaths, ...counts })}\n`);
  expect(reader.wrong).toEqual([]);
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const entries = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((entry) => entry["type"] !== "session");
  expect(messagesIn(reader.transcript)).toEqual(messagesIn(entries));
  expect(counts.midStream).toBeGreaterThanOrEqual(wanted / 3);
  expect(counts.texts).toBeGreaterThan(0);
  expect(counts.restarts).toBeGreaterThan(0);
});
