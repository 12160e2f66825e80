import { describe, expect, test } from "vitest";
import { type Capability, capabilities } from "../../../protocol/capability.ts";
import type { WireError } from "../../../protocol/errors.ts";
import { type MethodRow, subjectsOf } from "../../../protocol/method-row.ts";
import { type MethodName, methods } from "../../../protocol/methods.ts";
import { piCommands } from "../../../protocol/pi-commands.ts";
import { sessionOptions } from "../../../protocol/session-options.ts";
import { authority } from "../../../server/rpc/authority.ts";
import type { Call } from "../../../server/rpc/call.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { paramNames, rows, sessionsBy, under } from "../../helpers/policies.ts";

const { signal } = new AbortController();
const command = { type: "get_state" };

const policy = authority({
  sessionOf: sessionsBy((id) => id),
  scopeOf: (sessionId) => (sessionId === "inside" ? { cwd: "/project/inside" } : { cwd: "/other" }),
});

const grantOf = (...allowed: readonly Capability[]): Grant => new Grant({ name: "ci", capabilities: allowed });

/** The result of a call: the method's name, or the error's with the missing capability. */
function outcome(method: MethodName, params: object, grant: Grant | undefined): unknown {
  try {
    const row: MethodRow = methods[method];
    return under(policy, method, () => method)(params, { grant, signal, isLocal: row.isLocal === true });
  } catch (error) {
    const { kind, data } = error as WireError;
    return `${kind} ${data["needs"] ?? ""}`.trim();
  }
}

describe("a capability", () => {
  test("is required by every method of the table as its row says, and admin is enough for all", () => {
    for (const [name, { capability }] of rows) {
      const given = { command };
      const others = capabilities.filter((other) => other !== capability && other !== "admin");
      const refused = capability === "any" ? name : `forbidden ${capability}`;
      expect([name, outcome(name, given, grantOf(...others))]).toEqual([name, refused]);
      expect([name, outcome(name, given, grantOf("admin"))]).toEqual([name, name]);
      if (capability === "any") continue;
      const enough = name === "session/command" ? grantOf(capability, "observe") : grantOf(capability);
      expect([name, outcome(name, given, enough)]).toEqual([name, name]);
    }
  });

  test("is not needed for hello and for asking for the protocol, and for nothing else", () => {
    const free = rows.filter(([, { capability }]) => capability === "any").map(([name]) => name);
    expect(free).toEqual(["daemon/info", "rpc.discover", "daemon/hello"]);
  });

  test.each([
    ["session/create", { extensions: ["/x"] }],
    // An extension may be the one that asks before a tool runs.
    ["session/create", { noExtensions: true }],
    ["session/create", { flags: { plan: true } }],
    ["session/create", { skills: ["/x"] }],
    ["session/create", { approve: true }],
    ["session/create", { env: { A: "b" } }],
    ["session/create", { sessionDir: "/x" }],
    ["session/create", { file: "/x.jsonl" }],
    ["session/open", { approve: true }],
    ["session/create", { mcpServers: [{ name: "m", command: "c" }] }],
    ["session/open", { mcpServers: [] }],
    // A path is read, or its existence is revealed.
    ["session/create", { optimisation: { compaction: { prompt: "/x" } } }],
    ["session/create", { optimisation: { dynamicTools: { synonyms: "/x" } } }],
    ["optimisation/configure", { sessionId: "s", optimisation: { compaction: { prompt: "/x" } } }],
    ["session/create", { pruning: { prompts: { dir: "/x" } } }],
    ["pruning/configure", { sessionId: "s", pruning: { prompts: { dir: "/x" } } }],
    [
      "optimisation/configure",
      { sessionId: "s", optimisation: { contextFiles: { sections: [{ heading: "a" }, { heading: "b", path: "x" }] } } },
    ],
  ] as const)("admin is needed for %s with %j", (method, params) => {
    expect(outcome(method, params, grantOf("observe", "prompt", "bash", "payload"))).toBe("forbidden admin");
    expect(outcome(method, params, grantOf("admin"))).toBe(method);
  });

  test("an environment needs admin and the Unix socket, on every method that takes one", () => {
    const taking = rows.filter(([, row]) => paramNames(row).includes("environment")).map(([name]) => name);
    expect(taking).toEqual(["session/create", "session/open"]);
    for (const name of taking) {
      const made = (grant: Grant, isLocal: boolean): unknown => {
        try {
          return under(policy, name, () => name)({ environment: { A: "b" } }, { grant, signal, isLocal });
        } catch (error) {
          const { kind, data } = error as WireError;
          return { kind, ...data };
        }
      };
      expect(made(grantOf("admin"), true)).toBe(name);
      expect(made(grantOf("admin"), false)).toMatchObject({ kind: "forbidden", param: "environment" });
      expect(made(grantOf("prompt"), true)).toMatchObject({ kind: "forbidden", needs: "admin" });
      expect(methods[name]).toMatchObject(
        name === "session/create" ? { unstored: ["environment", "mcpServers"] } : { retry: "safe" },
      );
    }
  });

  test("the web console is opened and closed over the Unix socket only", () => {
    const only = rows.filter(([, row]) => row.isLocal === true).map(([name]) => name);
    expect(only).toEqual(["web/open", "web/close"]);
    for (const name of only) {
      const made = (isLocal: boolean): unknown =>
        under(policy, name, () => name)({}, { grant: grantOf("admin"), signal, isLocal });
      expect(made(true)).toBe(name);
      expect(() => made(false)).toThrow("Unix socket");
      expect(outcome(name, {}, grantOf("observe", "prompt", "bash", "payload"))).toBe("forbidden admin");
    }
  });

  test("other options for an open session need admin", () => {
    const params = { sessionId: "s", options: { tools: ["read"] } };
    expect(outcome("session/open", params, grantOf("prompt"))).toBe("forbidden admin");
    expect(outcome("session/open", params, grantOf("admin"))).toBe("session/open");
  });

  test("admin is not needed for the options of a configured profile, nor to turn off an option that guards nothing", () => {
    const params = { cwd: "/project", profile: "trusted", approve: false, noExtensions: false, noSkills: true };
    expect(outcome("session/create", params, grantOf("prompt"))).toBe("session/create");
    const optimisation = {
      compaction: { prompt: null, thresholdPercent: 0.6 },
      contextFiles: { sections: [{ heading: "a", label: "b" }] },
    };
    expect(outcome("session/create", { optimisation }, grantOf("prompt"))).toBe("session/create");
  });

  test("is decided for every option of a session: those that run code need admin, and a new option fails this test", () => {
    const needAdmin = Object.keys(sessionOptions).filter(
      (option) => outcome("session/create", { [option]: true }, grantOf("prompt")) === "forbidden admin",
    );
    // pi's prompt templates are texts with placeholders, and run nothing.
    const others = [
      "model",
      "models",
      "provider",
      "thinking",
      "name",
      "tools",
      "customUi",
      "excludeTools",
      "noTools",
      "promptTemplates",
      "optimisation",
      "pruning",
    ];
    const off = ["noMcp", "noSkills", "noPromptTemplates", "noContextFiles", "ephemeral", "labels"];
    const texts = ["systemPrompt", "appendSystemPrompt"];
    expect(needAdmin.sort()).toEqual(["approve", "env", "extensions", "flags", "noExtensions", "sessionDir", "skills"]);
    expect([...needAdmin, ...others, ...off, ...texts].sort()).toEqual(Object.keys(sessionOptions).sort());
  });

  test("payload is needed for the provider's payloads, and prompt to answer dialogs or keep a pi awake", () => {
    const asked = (params: object, ...allowed: Capability[]) =>
      outcome("session/subscribe", { sessionId: "s", ...params }, grantOf("observe", ...allowed));
    expect(asked({ provider: "payload" })).toBe("forbidden payload");
    expect(asked({ provider: "payload" }, "payload")).toBe("session/subscribe");
    expect(asked({ provider: "messages", dialogs: false, awake: false })).toBe("session/subscribe");
    expect(asked({ dialogs: true })).toBe("forbidden prompt");
    expect(asked({ awake: true })).toBe("forbidden prompt");
    expect(asked({ dialogs: true, awake: true }, "prompt")).toBe("session/subscribe");
  });

  test("of a pi command is that of its method, and admin if the command is unknown", () => {
    const sent = (type: string, ...allowed: Capability[]) =>
      outcome("session/command", { sessionId: "s", command: { type } }, grantOf("prompt", ...allowed));
    for (const type of ["bash", "abort_bash", "export_html"]) {
      expect([type, sent(type, "observe", "payload")]).toEqual([type, "forbidden bash"]);
      expect([type, sent(type, "bash")]).toEqual([type, "session/command"]);
    }
    for (const type of ["set_root", "__proto__", "constructor", "toString"]) {
      expect([type, sent(type, "observe", "bash", "payload")]).toEqual([type, "forbidden admin"]);
    }
    for (const [type, { method }] of Object.entries(piCommands)) {
      const { capability } = methods[method as MethodName] as MethodRow;
      if (capability !== "any") expect([type, sent(type, capability)]).toEqual([type, "session/command"]);
      if (capability === "observe") expect([type, sent(type)]).toEqual([type, "forbidden observe"]);
    }
  });

  test("of a call without a token's grant is empty, whatever the call claims", () => {
    for (const [name] of rows) {
      expect([name, outcome(name, { command, capabilities: ["admin"], grant: "admin" }, undefined)]).toEqual([
        name,
        "unauthorized",
      ]);
    }
  });
});

describe("a token that has ended", () => {
  test("is refused from the next call on", () => {
    const grant = grantOf("admin");
    expect(outcome("session/list", {}, grant)).toBe("session/list");
    grant.end();
    for (const [name] of rows) expect([name, outcome(name, { command }, grant)]).toEqual([name, "unauthorized"]);
  });

  test("gets neither the result nor the error of a call in progress, but the answer of the call that ended it", async () => {
    for (const end of ["resolve", "reject"] as const) {
      const wait = Promise.withResolvers<unknown>();
      const grant = grantOf("admin");
      const call: Call = { grant, signal };
      const answer = under(policy, "session/prompt", () => wait.promise)({}, call);
      const rotate = under(policy, "token/rotate", async () => {
        grant.end();
        return await Promise.resolve("the new secret");
      });
      expect(await rotate({ name: "ci" }, call)).toBe("the new secret");
      wait[end](new Error("what has come about"));
      await expect(answer).rejects.toMatchObject({ kind: "unauthorized" });
    }
  });
});

describe("a token that is limited to some sessions", () => {
  const grant = new Grant({ name: "ci", capabilities: ["observe", "prompt", "bash"], cwds: ["/project"] });
  test("gets for foreign objects the same answer as for missing ones, from every method", () => {
    const checked = new Set<string>();
    for (const [name, row] of rows) {
      for (const { kind, param, isChosen } of subjectsOf(row)) {
        if (isChosen === true) continue;
        checked.add(`${name} ${param}`);
        expect([name, param, outcome(name, { command, [param]: "outside" }, grant)]).toEqual([
          name,
          param,
          `${kind}_not_found`,
        ]);
        expect([name, outcome(name, { command, [param]: "inside" }, grant)]).toEqual([name, name]);
      }
    }
    // Every id in params is checked, except new ones, and those that the methods compare with the grant themselves.
    const named = rows.flatMap(([name, row]) => {
      const params = paramNames(row).filter((param) => /^(session|delivery|dialog|prompt)Id$/.test(param));
      return params.map((param) => `${name} ${param}`);
    });
    expect(named.filter((param) => !checked.has(param))).toEqual([
      "session/create sessionId",
      "session/open sessionId",
      "session/unsubscribe sessionId",
      "session/prompt promptId",
      "session/steer promptId",
      "session/followUp promptId",
      "delivery/push deliveryId",
      "delivery/list sessionId",
    ]);
  });

  test("learns no position in a list from an id outside its limits", () => {
    expect(outcome("delivery/list", { after: "outside" }, grant)).toBe("delivery_not_found");
    expect(outcome("dialog/list", { after: "outside" }, grant)).toBe("dialog_not_found");
    expect(outcome("delivery/list", { after: "inside" }, grant)).toBe("delivery/list");
  });

  test("changes no settings that all sessions share", () => {
    const params = { sessionId: "inside", enabled: true, confirmShared: true };
    expect(outcome("session/setAutoRetry", params, grant)).toBe("forbidden admin");
    expect(outcome("session/setAutoRetry", params, grantOf("prompt"))).toBe("session/setAutoRetry");
  });
});
