import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "./driver.ts";

const example = "../../../examples/extensions/watch-build";

/** Writes the file atomically. */
function put(pi: Pi, text: string): void {
  const draft = join(pi.directory, "draft.txt");
  writeFileSync(draft, text);
  renameSync(draft, join(pi.cwd, "build-status.txt"));
}

const helpers = [
  ["without the daemon's helper", { entry: "none", isConfigured: false }],
  ["with the daemon's helper", {}],
] as const;

test.for(helpers)("the example with a command sends the model a message during its work %s", async ([, options]) => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["../../../examples/extensions/tell"], ...options });
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Green, then.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.rpc({ type: "prompt", message: "/tell The build is green." });
  await tool.release();
  await pi.log.until(
    ({ method, message }) => method === "notify" && message === "The model has it. Evidence: headers.",
  );
  await pi.event("agent_settled");
  expect(provider.requests.map((request) => request.countText("The build is green."))).toEqual([0, 1]);
});

test.for(helpers)("the example that watches a build reports it to the model %s", async ([, options]) => {
  await using provider = await startProvider({ script: ["I see.", "Good."] });
  await using pi = await startPi({ provider, after: [example], ...options });
  const known = "The model knows of the build. Evidence: headers.";
  const isKnown = ({ method, message }: Readonly<Record<string, unknown>>): boolean =>
    method === "notify" && message === known;
  await pi.rpc({ type: "get_state" });
  put(pi, "red: lint has 3 findings\n");
  await pi.log.until(isKnown);
  await pi.event("agent_settled");
  put(pi, "green\n");
  await pi.log.until(() => pi.log.records.filter(isKnown).length === 2);
  expect(provider.requests.map(({ messages }) => messages.at(-1)?.texts)).toEqual([
    ["The build says: red: lint has 3 findings"],
    ["The build says: green"],
  ]);
});
