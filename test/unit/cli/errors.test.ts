import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { inCommandWords, wordings } from "../../../cli/error-words.ts";
import { CommandError, exitCodeOf, InterruptedError, reportOf, UsageError } from "../../../cli/errors.ts";
import {
  DaemonNotRunningError,
  DeliveryError,
  InvalidParamsError,
  RunFailedError,
  RunInterruptedError,
} from "../../../client/local-errors.ts";
import type { Delivery } from "../../../protocol/delivery.ts";
import type { DialogAnswer } from "../../../protocol/dialog.ts";
import { WireError } from "../../../protocol/errors.ts";
import { methods } from "../../../protocol/methods.ts";
import { checkAnswer, type Question } from "../../../server/dialogs/dialog-question.ts";
import { StartError } from "../../../server/lib/start-error.ts";
import { memoryOutput } from "./memory-output.ts";

const root = join(import.meta.dirname, "..", "..", "..");
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

describe("in words of the command line", () => {
  const busy = new WireError(
    "session_busy",
    'The session is busy (a run is active). Wait for agent_settled, or set ifRunning: "steer" or "followUp".',
  );

  test.each([
    [
      busy,
      "prompt",
      "The session is busy (a run is active). Wait until it is idle, or choose --if-running steer or --if-running followUp.",
    ],
    [busy, "compact", "The session is busy (a run is active). Wait until it is idle, or abort its run: pi-rpcd abort."],
    [
      new WireError("session_busy", "The session cannot hibernate now: a run is active. force: true does it."),
      "hibernate",
      "The session cannot hibernate now: a run is active. --force does it.",
    ],
    [
      new WireError("forbidden", 'The token "ci" does not allow this session/prompt: it lacks "prompt".'),
      "prompt",
      'The token "ci" does not allow this command: it lacks "prompt".',
    ],
    [
      new WireError("method_not_found", 'There is no method "session/new". rpc.discover lists all.'),
      "tree",
      "The daemon does not know this command. If it is older than this program, `pi-rpcd start --restart` replaces it.",
    ],
    [
      new InvalidParamsError("session/create", [{ path: "/excludeTools/0", message: "must be short" }]),
      "new",
      "An item of --exclude-tools must be short.",
    ],
    [
      new WireError("invalid_params", "The params of delivery/push are wrong: /customType must be short.", {
        findings: [
          { path: "/customType", message: "must be short" },
          { path: "/deliveryId", message: "must be long" },
          { path: "/unheardOf", message: "must be 7" },
        ],
      }),
      "push",
      "--type must be short; --id must be long; A value must be 7.",
    ],
  ])("%s of %s is: %s", (error, command, message) => {
    expect(reportOf(error, command).message).toBe(message);
  });

  /** Texts of the daemon and the client library that name a method, a field of a call or an event of pi. */
  function clientsTexts(): readonly string[] {
    const fields = Object.values(methods).flatMap(({ params }) => Object.keys(params.properties));
    const words = [...Object.keys(methods), ...fields.filter((field) => /[A-Z]/.test(field)), "agent_settled", "onGap"];
    const wire = new RegExp(`\\b(?:${words.join("|")})\\b|\\b[a-z]\\w*: (?:true|")`);
    const isSentence = /[A-Za-z]+ [a-z]+ .*[.:]/;
    return texts("…").filter((text) => isSentence.test(text) && wire.test(inCommandWords(text, "prompt")));
  }

  test("no text of the daemon or of the client library names a method or a field, except in calls of no command", () => {
    expect(clientsTexts().filter((text) => !ofNoCommand.some((part) => text.includes(part)))).toEqual([]);
  });

  test("every replaced wording is in a text of the daemon or of the client library", () => {
    const answers: readonly (readonly [Question, DialogAnswer])[] = [
      [{ requestId: "q", method: "confirm", title: "?" }, { value: "yes" }],
      [{ requestId: "q", method: "input", title: "?" }, { confirmed: true }],
      [{ requestId: "q", method: "input", title: "?" }, { value: "too long" }],
    ];
    const refusals = answers.map(([question, answer]) => messageOf(() => checkAnswer(question, answer, 3)));
    const inserted = ["session/prompt", "get_state", "extensions"];
    const said = [...refusals, ...inserted.flatMap((text) => texts(text, "protocol"))];
    const unused = wordings.map(([wording]) => wording).filter((wording) => !said.some((text) => wording.test(text)));
    expect(unused).toEqual([]);
    const all = texts("…");
    expect(ofNoCommand.filter((part) => !all.some((text) => text.includes(part)))).toEqual([]);
  });
});

function messageOf(act: () => void): string {
  try {
    act();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return "";
}

/** The texts of the daemon and the client library, with `inserted` for each inserted value. */
function texts(inserted: string, ...more: readonly string[]): readonly string[] {
  return ["server", "client", ...more].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !/reference|protocol-limits/.test(file))
      .flatMap((file) => textsOf(readFileSync(join(root, folder, file), "utf8"), inserted)),
  );
}

/** The texts in a file's string literals. */
function textsOf(source: string, inserted: string): readonly string[] {
  const literals = source.match(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g) ?? [];
  return literals.map((text) =>
    text
      .slice(1, -1)
      .replaceAll(/\$\{[^}]*\}/g, inserted)
      .replaceAll(/\\(["`])/g, "$1"),
  );
}

/** Parts of texts about calls that no command makes, and of texts that are no errors. */
const ofNoCommand: readonly string[] = [
  "Set confirmShared: true to allow it.",
  "context/inspect takes … with context alone",
  "created with ephemeral: true",
  "one without ephemeral: true",
  "session/getEntries returns them as a list.",
  " A deliveryId does that for it.",
  "session/open requires a sessionId or a file.",
  "pruning/configure with ",
];
