import { expect, test } from "vitest";
import { estimateText } from "../../../context/document/estimate.ts";
import type { PartsConfig } from "../../../protocol/link.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { toolCatalogue } from "../../fixtures/tool-catalogue.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { type PiOptions, startPi } from "../extension/driver.ts";

/** Whether this pi can run one tool on behalf of another. */
const canRun = piUnderTest().version !== "0.87.1";
const builtIn = ["read", "bash", "edit", "write"];
const three = ["search_tools", "describe_tools", "execute_tool"];

function parts(dynamicTools: NonNullable<OptimisationOptions["dynamicTools"]>): PartsConfig {
  return { optimisation: resolveOptimisation({ dynamicTools }), spillDirectory: "/nonexistent", labels: {} };
}

function options(dynamicTools: NonNullable<OptimisationOptions["dynamicTools"]>, env: PiOptions["env"] = {}) {
  return {
    api: "scripted",
    after: ["many-tools"],
    parts: parts({ enabled: true, allowActivation: true, ...dynamicTools }),
    env,
  } as const;
}

const toolsOf = ({ body }: LogEntry): string => JSON.stringify(body["tools"]);
const run = (id: string, params: object = {}) => call("execute_tool", { id, params });

/** The answers of the tools, in order. */
function results(request: LogEntry | undefined): string[] {
  return (request?.messages ?? []).flatMap(({ toolResults }) => toolResults.map(({ text }) => text));
}

test("a hundred tools become three, which find, describe and run them; the tool block stays the same, also after a restart", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, ...options({}) });
  provider.add(
    answer(call("search_tools", { query: "Will it rain in Hamburg tomorrow?" })),
    answer(call("describe_tools", { ids: ["weather_forecast", "wether_forcast"] })),
    answer(run("weather_forecast", { days: [] }), run("execute_tool"), run("wether_forcast")),
    answer(
      run("web_fetch", { url: "x".repeat(300_000) }),
      call("bash", { command: "ls" }),
      run("bash", { command: "ls" }),
    ),
    answer(run("weather_forecast", { place: "Hamburg" }), run("git_stash", { action: "save" })),
    // Once activated, it registers a tool during the run.
    answer(canRun ? run("git_stash", { action: "pop" }) : call("git_stash", { action: "pop" })),
    answer(run("web_search", { query: "pi" })),
    "Done.",
    answer(call("search_tools", { query: "late" })),
    "Done again.",
    "Still there.",
  );
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.settled();
  await pi.rpc({ type: "prompt", message: "/tools-late late_between" });
  await pi.rpc({ type: "prompt", message: "And now?" });
  await pi.settled(2);
  await pi.restart();
  await pi.rpc({ type: "prompt", message: "Are you still there?" });
  await pi.settled();

  const requests = provider.requests;
  expect(requests.flatMap(({ violations }) => violations)).toEqual([]);
  expect(requests[0]?.toolNames).toEqual([...builtIn, ...three]);
  const sent = requests[0]?.body["tools"] as readonly object[];
  const without = [
    ...sent.slice(0, builtIn.length),
    ...toolCatalogue.map((tool) => ({ type: "function", function: tool })),
  ];
  const tokens = (tools: readonly object[]): number => estimateText(JSON.stringify(tools));
  expect(tokens(sent) / tokens(without)).toBeLessThan(0.1);

  const said = results(requests[7]);
  expect(said[0]).toContain("- weather_forecast(place, days?): Predict temperature");
  expect(said[1]).toContain('"required":["place"]');
  expect(said[1]).toContain('There is no tool "wether_forcast". The nearest are weather_forecast, ');
  expect(said[2]).toContain("must have required property 'place' (#/required)");
  expect(said[2]).toContain("params/days must be string (#/properties/days/type)");
  expect(said[3]).toContain("execute_tool does not run execute_tool");
  expect(said[4]).toMatch(/^There is no tool "wether_forcast". The nearest are weather_forecast, \w+, \w+\./);
  expect(said[5]).toContain("at most 262144 are taken");
  expect(said[6]).toBe("No shell here.");
  expect(said[7]).toContain(canRun ? "No shell here." : "bash is declared to you: call it by its name.");
  expect(said[10]).toContain("git_stash got");
  expect(results(requests[9]).at(-1)).toContain("- late_between(): Comes later");
  expect(results(requests[9]).at(-1)).toContain("- late_in_run(): Comes later");

  const blocks = requests.map(toolsOf);
  if (canRun) {
    expect(said[8]).toBe('weather_forecast got {"place":"Hamburg"}');
    expect(said[11]).toBe('web_search got {"query":"pi"}');
    expect(new Set(blocks).size).toBe(1);
  } else {
    // It changes once in the first run, at the model's request, and once before the second, for a request that came too
    // late.
    expect(said[8]).toContain("It is declared to you from now on");
    expect(said[11]).toContain("have changed in this one");
    expect(requests[5]?.toolNames).toEqual([...builtIn, ...three, "weather_forecast", "git_stash"]);
    expect(requests[8]?.toolNames).toEqual([...builtIn, ...three, "weather_forecast", "git_stash", "web_search"]);
    const changes = blocks.flatMap((block, at) => (at > 0 && block !== blocks[at - 1] ? [at] : []));
    expect(changes).toEqual([5, 8]);
  }
});
