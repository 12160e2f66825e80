import { expect, test } from "vitest";
import { olderDaemon, skewOf } from "../../../cli/version-skew.ts";

test.each([
  ["0.2.0", "0.1.9", "older"],
  ["0.10.0", "0.9.0", "older"],
  ["1.0.0", "1.0.0-rc.1", "older"],
  ["1.0.0-rc.2", "1.0.0-rc.1", "older"],
  ["0.1.0", "0.1.1", "newer"],
  ["1.0.0-rc.1", "1.0.0", "newer"],
])("to a command line %s, a daemon %s is %s", (own, version, how) => {
  expect(skewOf(own, { version, protocol: 1 })).toContain(how);
  const said = olderDaemon({ version, protocol: 1 }, own);
  if (how === "older") expect(said).toContain("pi-rpcd start --restart");
  else expect(said).toBeUndefined();
});

test("the same version is not mentioned, another protocol is", () => {
  expect(skewOf("1.2.3", { version: "1.2.3", protocol: 1 })).toBeUndefined();
  expect(skewOf("1.2.3", { version: "1.2.3", protocol: 2 })).toContain("version 2 of the protocol");
});
