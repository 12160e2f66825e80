import { describe, expect, test } from "vitest";
import { holds } from "../../../../../context/parts/prompt/start.ts";
import { FakeSession } from "./fake-session.ts";

const labels = { area: "web=shop", empty: "" };

describe("a rule's condition", () => {
  test.each([
    [{ label: "area" }, true],
    [{ label: "area=web=shop" }, true],
    [{ label: "area=web" }, false],
    [{ label: "empty=" }, true],
    [{ label: "toString" }, false],
    [{ path: "extension/index.ts" }, true],
    [{ path: "/" }, true],
    [{ path: "extension/nowhere" }, false],
    [{ label: "area", path: "extension/nowhere" }, false],
    [{ label: "area", path: "extension" }, true],
    [{}, true],
  ])("%j: %s", (rule, expected) => {
    expect(holds({ heading: "*", ...rule }, labels, process.cwd())).toBe(expected);
  });
});

test("a session without a request yet uses the configuration at its first request, and keeps it", () => {
  const fake = new FakeSession({ contextFiles: { dedupe: true } });
  const start = fake.start();
  start.begin(fake.ctx);
  fake.configure({ contextFiles: { budgetTokens: 500 }, skills: { prefetch: ["x"] } });
  expect(start.at(fake.ctx)).toMatchObject({ contextFiles: { dedupe: false, budgetTokens: 500 }, prefetch: ["x"] });
  fake.configure({});
  expect(start.at(fake.ctx)).toMatchObject({ contextFiles: { enabled: true, budgetTokens: 500 }, prefetch: ["x"] });
});

test("skills that are configured and turned off are in no prompt", () => {
  const fake = new FakeSession({ skills: { enabled: false, prefetch: ["x"] } });
  expect(fake.start().at(fake.ctx).prefetch).toEqual([]);
});
