import { describe, expect, test } from "vitest";
import { sources } from "../../../context/cost/tally.ts";
import { COST_CHANNEL } from "../../../context/cost/tracker.ts";
import { repairCodes } from "../../../context/document/document.ts";
import { exportNotes } from "../../../context/document/export-notes.ts";
import { AsleepReason } from "../../../protocol/cached.ts";
import { ControlChange } from "../../../protocol/control.ts";
import { SessionFileReason } from "../../../protocol/custody.ts";
import { Attempt, Delivery, Reason } from "../../../protocol/delivery.ts";
import { DialogResolution } from "../../../protocol/dialog.ts";
import { type ErrorName, errorCatalogue } from "../../../protocol/errors.ts";
import { Gap } from "../../../protocol/event.ts";
import { isMethodName, methods } from "../../../protocol/methods.ts";
import { type NotificationName, notifications } from "../../../protocol/notifications.ts";
import { DYNAMIC_TOOLS, SKILL_TOOL } from "../../../protocol/optimisation/config.ts";
import { PruningDegraded } from "../../../protocol/pruning/notices.ts";
import { maxPromptBytes } from "../../../protocol/pruning/prompts.ts";
import { ChildExit, SessionInfo } from "../../../protocol/session.ts";
import { createValidator } from "../../../protocol/validation.ts";
import { PROTOCOL_VERSION } from "../../../protocol/wire.ts";
import { withGeneratedParts, withoutGeneratedParts } from "../../../scripts/lib/documents.ts";
import { maxFileBytes } from "../../../server/context/cost/file-fold.ts";
import { retryDelaysMs } from "../../../server/core/restart-policy.ts";
import { protocolLimits, quantity } from "../../../server/edge/protocol-limits.ts";
import { maxToldStderrBytes } from "../../../server/log/stderr-watch.ts";
import { documents, fencesOf, found, read, spansOf } from "./documents.ts";

const protocol = read("PROTOCOL.md");
const prose = withoutGeneratedParts(protocol);
/** The protocol and the documents that complete it. docs/pi-notes.md is about pi and uses pi's names. */
const whole = ["PROTOCOL.md", ...documents.filter((name) => /^docs\/(?!pi-notes)/.test(name))];

test("the generated parts of PROTOCOL.md match the code", () => {
  expect(protocol === withGeneratedParts(protocol), "run: npm run schema").toBe(true);
});

test("PROTOCOL.md states the version of the protocol", () => {
  expect(found(protocol, /^Version (\d+)\./gm)).toEqual([String(PROTOCOL_VERSION)]);
});

describe("the names in the documents", () => {
  const names = new Set([...Object.keys(methods), ...Object.keys(notifications)]);

  test.each(documents)("%s names only methods and notifications that exist", (document) => {
    const named = spansOf(read(document)).filter((span) =>
      /^((cache|context|cost|daemon|session|delivery|dialog|optimisation|prompt|pruning|run)\/|provider\/request|rpc\.)[A-Za-z]+$/.test(
        span,
      ),
    );
    expect(named.filter((name) => !names.has(name))).toEqual([]);
  });

  test("CHANGELOG.md names every method and notification", () => {
    expect(spansOf(read("CHANGELOG.md"))).toEqual(expect.arrayContaining([...names]));
  });

  test.each(whole)("%s uses only names with underscores that are ours or pi's", (document) => {
    const ours = [
      ...Object.keys(errorCatalogue),
      ...Reason.properties.code.enum,
      ...Gap.properties.reason.enum,
      ...ControlChange.enum,
      ...DialogResolution.properties.by.enum,
      ...exportNotes,
      ...PruningDegraded.properties.reason.enum,
      ...DYNAMIC_TOOLS,
      SKILL_TOOL,
      "skills_prefetched",
      ...sources,
      COST_CHANNEL,
      "rpcd_diagnostic",
      ...["provider_request_prepared", "provider_request_delivered", "provider_request_failed"],
      // Kinds of diagnostics.
      ...SessionFileReason.enum,
      ...AsleepReason.enum,
      "cancelled_by_extension",
      ...repairCodes,
      ...["missing_parent", "above_threshold", "reasoning_dropped", "duplicate_prompt"],
      // Words used in documents.
      ...["prior_instructions", "tool_call", "tool_result"],
      ...["not_an_object", "record_too_large", "invalid_utf8", "unknown_response", "cut_off", "rpcd_entry"],
    ];
    const ofPi = [
      "tool_search",
      "project_context",
      // Types of entries in pi's session files.
      ...["branch_summary", "context_edit", "custom_message", "model_change", "session_info", "thinking_level_change"],
      ...[
        "prompt",
        "steer",
        "follow_up",
        "abort",
        "clear_queue",
        "set_editor_text",
        "new_session",
        "switch_session",
        "extension_ui_response",
      ],
      ...[
        "get_commands",
        "get_entries",
        "get_messages",
        "get_state",
        "list_models",
        "agent_start",
        "agent_settled",
        "message_end",
        "entry_appended",
        "message_update",
        "tool_execution_end",
        "tool_execution_update",
        "bash_execution_update",
        "text_delta",
        "thinking_delta",
        "toolcall_delta",
        "extension_ui_request",
        "before_provider_request",
      ],
    ];
    const named = spansOf(withoutGeneratedParts(read(document))).filter((span) => /^[a-z]+(_[a-z0-9]+)+$/.test(span));
    expect(named.filter((name) => ![...ours, ...ofPi].includes(name))).toEqual([]);
  });

  test("daemon.json has the fields that PROTOCOL.md lists", () => {
    const [, declared = ""] = /interface DaemonFile \{(.*?)\n\}/s.exec(read("protocol/daemon-file.ts")) ?? [];
    const [, section = ""] = /### Finding the daemon(.*?)\n### /s.exec(protocol) ?? [];
    expect(found(section, /^\| `(\w+)` \|/gm)).toEqual(found(declared, /readonly (\w+):/g));
  });

  test("the table has every code with which the daemon closes a WebSocket", () => {
    const table = found(prose, /^\| (1\d\d\d(?:, 1\d\d\d)*) \|/gm).flatMap((codes) => codes.split(", "));
    const inCode = found(read("server/edge/connection.ts"), /\b(10\d\d)\b/g);
    expect(inCode.length).toBeGreaterThan(0);
    expect(table).toEqual(expect.arrayContaining([...inCode]));
  });
});

describe("the numbers in the documents", () => {
  test.each(documents)("every quantity in the prose of %s matches the code", (document) => {
    const [, hours = ""] = /keepMs = (\d+) \* 60 \* 60 \* 1_000/.exec(read("server/store/idempotency.ts")) ?? [];
    const delays = retryDelaysMs.map((delay) => `${delay / 1_000} s`);
    const [, page = ""] = /maxBytes = (\d+) \* 1_024/.exec(read("context/parts/recall/tool.ts")) ?? [];
    const costs = `${maxFileBytes / 1_024 ** 3} GiB`;
    const prompts = `${maxPromptBytes / 1_024} KiB`;
    const limits = protocolLimits.map(({ value }) => value);
    const stderr = `${maxToldStderrBytes / 1_024} KiB`;
    const known = [...limits, `${hours} hours`, `${page} KiB`, ...delays, costs, prompts, stderr];
    const said = found(
      // Plain text blocks are program output.
      withoutGeneratedParts(read(document)).replaceAll(/^```text\n.*?^```$/gms, ""),
      /\b(\d[\d.]* ?(?:[KMG]iB|ms|s|seconds|minutes|hours))\b/g,
    );
    expect(said.filter((value) => !known.includes(value))).toEqual([]);
  });

  /** Numbers in schemas that come from other files. */
  test.each([
    ["protocol/delivery-machine.ts", /maxAttempts = (\d+)/, Delivery.properties.attempts],
    ["protocol/delivery-machine.ts", /maxHistory = (\d+)/, Delivery.properties.history],
    ["server/prompts/prompt-ledger.ts", /maxLost = (\d+)/, SessionInfo.properties.lostPrompts],
    [
      "server/rpc/handlers/delivery.ts",
      /defaultWaitMs = ([\d_]+)/,
      methods["delivery/wait"].params.properties.timeoutMs,
    ],
    ["protocol/delivery-machine.ts", /error\.slice\(0, ([\d_]+)\)/, Attempt.properties.error],
    ["server/configuration/limits.ts", /maxStderrBytes: (\d+ \* 1024)/, ChildExit.properties.stderrTail],
  ])("what %s says with %s is in the schema", (file, pattern, schema) => {
    const [, written = ""] = pattern.exec(read(file)) ?? [];
    const value = written.split("*").reduce((product, factor) => product * Number(factor.replaceAll("_", "")), 1);
    const { description, default: preset } = schema as { readonly description?: string; readonly default?: number };
    if (preset !== undefined) return expect(preset).toBe(value);
    const said = description?.includes("KiB") === true ? quantity("Bytes", value) : String(value);
    expect(description).toMatch(new RegExp(`\\b${said}\\b`));
  });
});

describe("the frames in the documents", () => {
  const validator = createValidator();
  const blocks = whole
    .flatMap((document) => fencesOf(read(document)))
    .filter(({ info }) => info[0] === "json" && info.length > 1);
  const frames = blocks.flatMap(({ info: [, kind = "", of = ""], text }) =>
    text.split(/\n\n+/).map((frame) => ({ kind, of, frame: JSON.parse(frame) as Record<string, unknown> })),
  );
  const ofKind = (wanted: string): readonly Record<string, unknown>[] =>
    frames.filter(({ kind }) => kind === wanted).map(({ frame }) => frame);

  test("each frame is of a known kind", () => {
    expect(new Set(frames.map(({ kind }) => kind))).toEqual(new Set(["request", "response", "error", "notification"]));
    for (const { frame } of frames) expect(frame["jsonrpc"]).toBe("2.0");
  });

  test.each(ofKind("request"))("request $id, $method, has valid params", ({ method, params, id }) => {
    if (typeof method !== "string" || !isMethodName(method)) throw new Error(`there is no method ${String(method)}`);
    expect(id).toBeTypeOf("number");
    expect(validator.params(method, params)).toEqual([]);
  });

  test.each(frames.filter(({ kind }) => kind === "response"))(
    "the response of $of matches its schema",
    ({ of, frame }) => {
      if (!isMethodName(of)) throw new Error(`there is no method ${of}`);
      expect(validator.result(of, frame["result"])).toEqual([]);
    },
  );

  test.each(ofKind("notification"))("notification $params.seq matches its schema", ({ method, params }) => {
    expect(validator.notification(method as NotificationName, params)).toEqual([]);
  });

  test.each(ofKind("error"))("error $error.code is in the catalogue", ({ error }) => {
    const { code, data } = error as { code: number; data: { name: ErrorName; retryable: boolean } };
    expect(errorCatalogue[data.name]).toMatchObject({ code, retryable: data.retryable });
  });
});
