import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { recorder, startCore } from "../../helpers/core.ts";

const never = new AbortController().signal;
const policy = { toolResults: { tools: { grepp: { keep: "none" } } } } as const;
const words = 'optimisation.toolResults.tools.grepp: pi does not have the tool "grepp"; did you mean "grep"?';
const refusal = {
  kind: "invalid_params",
  message: words,
  data: {
    findings: [
      {
        path: "/optimisation/toolResults/tools/grepp",
        message: 'pi does not have the tool "grepp"; did you mean "grep"?',
      },
    ],
  },
};

test("a create call that names a tool that pi lacks fails, and leaves no session", async () => {
  await using core = await startCore();
  core.behave("names-tools");
  await expect(core.registry.create({ cwd: core.cwd, optimisation: policy })).rejects.toMatchObject(refusal);
  expect(core.registry.all()).toEqual([]);
  const agent = join(core.root, "agent");
  const left = existsSync(agent) ? readdirSync(agent, { recursive: true, encoding: "utf8" }) : [];
  expect(left.filter((name) => name.endsWith(".jsonl"))).toEqual([]);
  const right = { toolResults: { tools: { grep: { keep: "none" } } } } as const;
  expect((await core.registry.create({ cwd: core.cwd, optimisation: right })).info().state).toBe("idle");
});

test("unknown tools in a project's file are reported as degraded, and the session starts", async () => {
  await using core = await startCore();
  core.behave("names-tools");
  mkdirSync(join(core.cwd, ".pi"));
  writeFileSync(join(core.cwd, ".pi", "pi-rpcd.jsonc"), JSON.stringify({ optimisation: policy }));
  const optimisation = { masking: { excludeTools: ["bash"] } };
  const session = await core.registry.create({ cwd: core.cwd, approve: true, optimisation });
  const heard = recorder();
  session.subscribe(heard, { after: 0 });
  const { params } = await heard.until(({ method }) => method === "optimisation/degraded");
  expect(params).toMatchObject({ part: "toolResults", reason: words });
});

test("a running session refuses unknown tools; a hibernated session reports them when its next pi starts", async () => {
  await using core = await startCore();
  core.behave("names-tools");
  const session = await core.registry.create({ cwd: core.cwd });
  await expect(session.parts.configuring.configure(policy, never)).rejects.toMatchObject(refusal);
  expect(session.stored.options).not.toHaveProperty("optimisation");
  await session.supervisor.hibernate(false);
  expect((await session.parts.configuring.configure(policy, never)).from).toBe("nextPi");
  expect(session.stored.options.optimisation).toEqual(policy);
  const heard = recorder();
  session.subscribe(heard);
  await session.awake();
  const { params } = await heard.until(({ method }) => method === "optimisation/degraded");
  expect(params).toMatchObject({ part: "toolResults", reason: words });
});

test("a pi that does not list its tools is not checked for them", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd, optimisation: policy });
  expect(session.info().state).toBe("idle");
});
