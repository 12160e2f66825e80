import { expect, test } from "vitest";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { Normaliser } from "./normalise.ts";
import { dropInProgram, piProgram } from "./program.ts";
import type { Scenario } from "./scenario.ts";
import { scenarios } from "./scenarios/all.ts";
import { difference, type Run, runScenario } from "./twins.ts";
import { World } from "./world.ts";

const { cli, version } = piUnderTest();
const runsOfPi = new Map<Scenario, Promise<Run>>();

/** Pi's own run, which several tests compare with. */
function runOfPi(scenario: Scenario): Promise<Run> {
  const run = runsOfPi.get(scenario) ?? runScenario(scenario, piProgram(cli));
  runsOfPi.set(scenario, run);
  return run;
}

/** All scenarios if the run is of everything, otherwise every sixth. */
const repeated = scenarios.filter((_, index) => process.env["PI_RPCD_TEST_ALL"] === "1" || index % 6 === 0);

test("pi writes the same records each time", async () => {
  const found: string[] = [];
  for (const scenario of repeated) {
    const [one, other] = await Promise.all([runOfPi(scenario), runScenario(scenario, piProgram(cli))]);
    const differs = difference(one, other);
    if (differs !== undefined) found.push(`${scenario.name}: ${differs}`);
  }
  expect(found).toEqual([]);
});

test("only an answer that was aborted before its first piece may have a time in one run alone", async () => {
  await using world = await World.open({});
  const isSame = (message: object): boolean => {
    const [timed, untimed] = [{ ...message, durationMs: 3 }, message].map((one) =>
      new Normaliser(world).records([{ type: "message_end", message: one }]),
    );
    return JSON.stringify(timed) === JSON.stringify(untimed);
  };
  const begun = [{ type: "text", text: "a" }];
  expect(isSame({ role: "assistant", stopReason: "aborted", content: [] })).toBe(true);
  expect(isSame({ role: "assistant", stopReason: "aborted", content: begun })).toBe(false);
  expect(isSame({ role: "assistant", stopReason: "error", content: [] })).toBe(false);
  expect(isSame({ role: "assistant", stopReason: "stop", content: [] })).toBe(false);
});

test.for(scenarios.map((scenario) => [scenario.name, scenario] as const))(
  "the drop-in writes what pi writes: %s",
  async ([, scenario]) => {
    const [pi, { problem, ...dropIn }] = await Promise.all([
      runOfPi(scenario),
      runScenario(scenario, dropInProgram(cli)),
    ]);
    const hasBecomePi = problem?.startsWith("it became pi: ") === true;
    expect(hasBecomePi, problem).toBe(scenario.becomesPi === true);
    const differs = difference(pi, problem === undefined || hasBecomePi ? dropIn : { ...dropIn, problem });
    const known = scenario.known?.[version];
    if (known !== undefined) expect(differs).toMatch(known);
    else if (differs !== undefined) expect.fail(`\n${differs}`);
  },
);
