import { existsSync } from "node:fs";
import { piVersions } from "../../scripts/pi-versions.ts";

export interface PiUnderTest {
  readonly version: string;
  /** Its program, to be run by `process.execPath`. */
  readonly cli: string;
}

/** The pi version of this project of the test run. Only for tests in integration/, e2e/ and faults/. */
export function piUnderTest(): PiUnderTest {
  const { PI_RPCD_TEST_PI: cli, PI_RPCD_TEST_PI_VERSION: version } = process.env;
  if (cli === undefined || version === undefined) throw new Error("this test does not belong to a project with a pi");
  if (!existsSync(cli)) throw new Error(`pi ${version} is not there yet; "npm test" gets it once`);
  return { version, cli };
}

/** Whether long tests run completely on this pi: on the newest, or on each if the run is of everything. */
export function isThorough(): boolean {
  return process.env["PI_RPCD_TEST_ALL"] === "1" || piUnderTest().version === Object.keys(piVersions).at(-1);
}
