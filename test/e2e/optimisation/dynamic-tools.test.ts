import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call } from "../../../provider/reply.ts";
import { toolCatalogue } from "../../fixtures/tool-catalogue.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { startStage } from "../../helpers/stage.ts";

const fixture = join(import.meta.dirname, "..", "..", "fixtures", "extension", "many-tools.ts");
const canHide = piUnderTest().version !== "0.87.1";
const builtIn = ["read", "bash", "edit", "write"];
const three = ["search_tools", "describe_tools", "execute_tool"];
const dynamicTools = { enabled: true, allowActivation: true } as const;

test("with all tools deferred pi's own search is used, or the three tools if this pi has no search", async () => {
  await using stage = await startStage({ env: () => ({ MANY_TOOLS_EXPOSURE: "deferred" }) });
  const { provider, client, cwd } = stage;
  const session = await client.createSession({
    ...{ cwd, model: "scripted/model-1", extensions: [fixture], optimisation: { dynamicTools } },
  });
  const search = canHide ? "tool_search" : "search_tools";
  provider.add(answer(call(search, { query: "weather forecast" })), "Found.");
  await session.runUntilSettled("Go.");
  const { parts } = await client.call("optimisation/inspect", { sessionId: session.id });
  const names = provider.requests.map(({ toolNames }) => toolNames.toSorted());
  expect(names[0]).toEqual([...builtIn, ...(canHide ? ["tool_search"] : three)].toSorted());
  expect(provider.requests[1]?.countText("weather_forecast")).toBe(1);
  expect(parts["dynamicTools"]).toMatchObject({ state: "on", figures: { tools: canHide ? "native" : "taking" } });
});

test("a session with a list of tools also has the three, until the part is turned off", async () => {
  await using stage = await startStage();
  const { provider, client, cwd } = stage;
  const listed = toolCatalogue.slice(30, 60).map(({ name }) => name);
  const session = await client.createSession({
    ...{ cwd, model: "scripted/model-1", extensions: [fixture], tools: ["read", "bash", ...listed] },
    optimisation: { dynamicTools },
  });
  provider.add(
    answer(call("execute_tool", { id: "bash", params: { command: "ls" } }), call("bash", { command: "ls" })),
    "Blocked.",
  );
  await session.runUntilSettled("Go.");
  expect(provider.requests[0]?.toolNames.toSorted()).toEqual(["read", "bash", ...three].toSorted());
  expect(provider.requests[1]?.countText("No shell here.")).toBe(canHide ? 2 : 1);

  const configured = { sessionId: session.id, optimisation: { dynamicTools: { enabled: false } } };
  await client.call("optimisation/configure", configured);
  await session.runUntilSettled("And now?");
  expect(provider.requests.at(-1)?.toolNames.toSorted()).toEqual(["read", "bash", ...listed].toSorted());
});
