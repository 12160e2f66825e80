import { expect, test } from "vitest";
import type { OptimisationOptions } from "../../../../protocol/optimisation/options.ts";
import { fallAsleep } from "../../../helpers/asleep.ts";
import { Notifications } from "../../../helpers/notifications.ts";
import { startStage } from "../../../helpers/stage.ts";

const policy = (tool: string): OptimisationOptions => ({ toolResults: { tools: { [tool]: { keep: "none" } } } });
const words = (tool: string) =>
  `optimisation.toolResults.tools.${tool}: pi does not have the tool "${tool}"; did you mean "grep"?`;

test("a policy for a tool that pi lacks is refused in a create call, and only degrades if it is for all sessions", async () => {
  const profiles = { wrong: { optimisation: { masking: { excludeTools: ["grepp"] } } } };
  await using stage = await startStage({ config: JSON.stringify({ optimisation: policy("grap"), profiles }) });
  const create = (more: object) => stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", ...more });

  await expect(create({ optimisation: policy("grepp") })).rejects.toMatchObject({
    kind: "invalid_params",
    message: words("grepp"),
    data: { findings: [{ path: "/optimisation/toolResults/tools/grepp" }] },
  });
  await expect(create({ profile: "wrong" })).rejects.toMatchObject({
    kind: "invalid_params",
    message: 'optimisation.masking.excludeTools[0]: pi does not have the tool "grepp"; did you mean "grep"?',
  });
  expect(await stage.client.listSessions()).toEqual([]);

  // Inactive tools are pi's too, and recall is ours.
  const session = await create({ optimisation: { masking: { excludeTools: ["grep", "find", "ls", "recall"] } } });
  await using told = await Notifications.of(stage.stateDir, session.id);
  const configure = (tool: string) =>
    stage.client.call("optimisation/configure", { sessionId: session.id, optimisation: policy(tool) });
  await expect(configure("gerp")).rejects.toMatchObject({ kind: "invalid_params", message: words("gerp") });
  await fallAsleep(stage.client, session.id);
  expect((await configure("gerp")).from).toBe("nextPi");
  expect(await session.runUntilSettled("Are you there?")).toMatchObject({ stopReason: "stop" });
  const next = await told.until(({ params }) => params["reason"] === words("gerp"));
  expect([next.name, next.params["part"]]).toEqual(["optimisation/degraded", "toolResults"]);

  // Faults of the daemon's configuration are reported at the first start; each new daemon reports them again.
  await stage.restart();
  await using again = await Notifications.of(stage.stateDir, session.id);
  await stage.client.session(session.id).runUntilSettled("And now?");
  expect((await again.until(({ params }) => params["reason"] === words("grap"))).name).toBe("optimisation/degraded");
});
