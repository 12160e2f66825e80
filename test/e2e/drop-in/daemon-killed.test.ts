import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, hold } from "../../../provider/reply.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { dropInMain } from "../../helpers/programs.ts";
import { RestoreStage } from "../../helpers/restore-stage.ts";
import { Front, started } from "./stage.ts";

const words = (from: number, count: number): string[] => Array.from({ length: count }, (_, n) => `word${from + n} `);

test("a front end goes on when the daemon is killed in a run: all deltas, one end, and commands that wait", async () => {
  const gates = [new Gate(), new Gate()] as const;
  const script = [answer(...words(0, 300), hold(gates[0]), ...words(300, 300), hold(gates[1]), ...words(600, 300))];
  await using stage = await RestoreStage.open({ pi: piUnderTest(), provider: { script } });
  const env = { ...process.env, ...stage.agentDir.env, PI_RPCD_STATE_DIR: stage.stateDir };
  const front = new Front(started([dropInMain, "--mode", "rpc", "--model", "scripted/model-1"], { world: stage, env }));
  const settled = front.event("agent_settled");
  await front.call({ id: 1, type: "prompt", message: "Write." });
  await front.said(words(0, 300).join(""));
  await stage.kill();
  gates[0].open();
  const asked = front.call({ id: 2, type: "get_state" });
  await stage.start();
  expect(await asked).toMatchObject({ success: true, data: { isStreaming: true } });
  gates[1].open();
  await settled;
  expect(front.text).toBe(words(0, 900).join(""));
  const { data } = (await front.call({ id: 3, type: "get_last_assistant_text" })) as { data: { text: string } };
  expect(data.text).toBe(front.text.trim());
  expect(front.ends).toBe(1);
  expect(front.stderr).toBe("");
  expect(stage.faults).toEqual([]);
});
