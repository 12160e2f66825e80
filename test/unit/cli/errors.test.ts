import { describe, expect, test } from "vitest";
import { CommandError, exitCodeOf, InterruptedError, reportOf, UsageError } from "../../../cli/errors.ts";
import {
  DaemonNotRunningError,
  DeliveryError,
  InvalidParamsError,
  RunFailedError,
  RunInterruptedError,
} from "../../../client/local-errors.ts";
import type { Delivery } from "../../../protocol/delivery.ts";
import { WireError } from "../../../protocol/errors.ts";
import { StartError } from "../../../server/lib/start-error.ts";
import { memoryOutput } from "./memory-output.ts";

const parked = { deliveryId: "d", state: "parked" } as Delivery;

const run = { promptId: "p", disposition: "started", state: "inserted", text: "" } as const;

describe("an error's exit code", () => {
  test.each([
    [2, new UsageError("no")],
    [2, new InvalidParamsError("session/create", [])],
    [2, new WireError("invalid_params", "no")],
    [3, new DaemonNotRunningError("missing", "no file")],
    [4, new DeliveryError(parked, "delivered")],
    [5, new WireError("deadline_exceeded", "late")],
    [5, new CommandError("deadline_exceeded", "late", { exitCode: 5 })],
    [130, new InterruptedError("SIGINT")],
    [143, new InterruptedError("SIGTERM")],
    [1, new WireError("session_busy", "a run is on")],
    [6, new RunFailedError({ ...run, outcome: "aborted" })],
    [7, new RunFailedError({ ...run, outcome: "failed", errorMessage: "overloaded" })],
    [8, new RunInterruptedError("s", { ...run, outcome: "interrupted" })],
    [1, new Error("whatever")],
    [1, "thrown text"],
  ])("is %i for %s", (code, error) => {
    expect(exitCodeOf(error)).toBe(code);
  });
});

describe("an error's report", () => {
  test("has the wire's name, code and data", () => {
    expect(reportOf(new WireError("session_busy", "a run is on", { runId: "r" }))).toEqual({
      name: "session_busy",
      code: -32011,
      message: "a run is on",
      data: { runId: "r", name: "session_busy", retryable: true },
    });
  });

  test("names errors of the daemon's start by their kind", () => {
    expect(reportOf(new StartError("port_in_use", "taken"))).toEqual({ name: "port_in_use", message: "taken" });
  });

  test("names errors of the system by their code", () => {
    expect(reportOf(Object.assign(new Error("no"), { code: "EACCES" }))).toEqual({ name: "EACCES", message: "no" });
  });

  test("has the delivery that missed the awaited state", () => {
    expect(reportOf(new DeliveryError(parked, "delivered"))).toMatchObject({
      name: "delivery",
      data: { delivery: parked, until: "delivered" },
    });
  });
});

describe("a printed error", () => {
  test("is one line on stderr with its name", () => {
    const { output, stdout, stderr } = memoryOutput();
    output.error(new WireError("start_failed", "pi ended with code 1. It said: first\nsecond"));
    expect(stderr()).toBe("pi-rpcd: pi ended with code 1. It said: first | second (start_failed)\n");
    expect(stdout()).toBe("");
  });

  test("is an object on stderr with --json", () => {
    const { output, stderr } = memoryOutput({ json: true });
    output.error(new StartError("port_in_use", "taken"));
    expect(JSON.parse(stderr())).toEqual({ error: { name: "port_in_use", message: "taken" } });
  });

  test("of usage says where to find help", () => {
    const { output, stderr } = memoryOutput();
    output.error(new UsageError("SESSION is missing.", "push"));
    expect(stderr()).toBe("pi-rpcd: SESSION is missing.\nSee: pi-rpcd push --help\n");
  });

  test("cannot write control sequences to a terminal", () => {
    const { output, stderr } = memoryOutput({ isTerminal: true, env: { NO_COLOR: "1" } });
    output.error(new Error("\u001b[2Jgone\u0007"));
    expect(stderr()).toBe("pi-rpcd: [2Jgone (unexpected)\n");
  });
});
