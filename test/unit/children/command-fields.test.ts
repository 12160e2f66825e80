import { expect, test } from "vitest";
import { methods } from "../../../protocol/methods.ts";
import { commandRoute, piCommands } from "../../../protocol/pi-commands.ts";
import { createValidator } from "../../../protocol/validation.ts";
import { checkCommand, checkFields } from "../../../server/children/client-command.ts";

const validator = createValidator();

function paths(command: { readonly type: string }): string[] {
  try {
    checkCommand(command, true);
    checkFields(command, validator);
    return [];
  } catch (error) {
    return (error as { data: { findings: { path: string }[] } }).data.findings.map(({ path }) => path);
  }
}

test.each([
  ["/command/name", { type: "set_session_name", name: "--help" }],
  ["/command/name", { type: "set_session_name", name: "x".repeat(201) }],
  ["/command/name", { type: "set_session_name", name: "a\nb" }],
  ["/command/provider", { type: "set_model", provider: "", modelId: "m" }],
  ["/command/modelId", { type: "set_model", provider: "p", modelId: "m".repeat(257) }],
  ["/command/customInstructions", { type: "compact", customInstructions: "x".repeat(65_537) }],
  ["/command/customInstructions", { type: "compact", customInstructions: { toString: 1 } }],
])("a field that the method refuses is refused in the command, too: %s", (path, command) => {
  expect(paths(command)).toEqual([path]);
});

test("a command without a method is left to pi", () => {
  expect(paths({ type: "set_session_name", name: "x", later: { any: 1 } } as never)).toEqual([]);
  expect(paths({ type: "a_later_command", name: "--x" } as never)).toEqual([]);
});

test("every generic command is validated by the params of its method", () => {
  const own = new Set(["sessionId", "idempotencyKey", "confirmShared", "cached"]);
  const refusals = Object.keys(piCommands).flatMap((type) => {
    const route = commandRoute(type);
    if (route?.asItIs !== true) return [];
    const { properties = {} } = methods[route.method].params as { properties?: object };
    const fields = Object.keys(properties).filter((name) => !own.has(name));
    // No param of a method is an array of arrays.
    return fields.map((name) => {
      const others = { name: "x", provider: "p", modelId: "m", level: "off", mode: "all", enabled: true };
      return [type, paths({ type, ...others, [name]: [[]] }).includes(`/command/${name}`)];
    });
  });
  expect(refusals.length).toBeGreaterThan(6);
  expect(refusals.filter(([, isRefused]) => isRefused !== true)).toEqual([]);
});
