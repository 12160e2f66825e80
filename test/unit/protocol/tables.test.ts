import { describe, expect, test } from "vitest";
import { errorCatalogue, errorNameOf, WireError } from "../../../protocol/errors.ts";
import { exampleOf, exampleValue } from "../../../protocol/examples.ts";
import { isMethodName, methods } from "../../../protocol/methods.ts";
import { notifications } from "../../../protocol/notifications.ts";
import { openRpcDocument } from "../../../protocol/openrpc.ts";
import { createValidator } from "../../../protocol/validation.ts";

describe("the method table", () => {
  test("names methods as noun/verb in camelCase, and notifications as noun/pastParticiple", () => {
    for (const name of Object.keys(methods)) expect(name).toMatch(/^(rpc\.discover|[a-z]+\/[a-z][A-Za-z]*)$/);
    for (const name of Object.keys(notifications)) expect(name).toMatch(/^[a-z]+\/[a-z][A-Za-z]*$/);
  });

  test("allows no unknown parameter in any method", () => {
    const validator = createValidator();
    for (const name of Object.keys(methods)) {
      if (!isMethodName(name)) throw new Error(name);
      const findings = validator.params(name, { surprise: 1 });
      expect(findings, name).toContainEqual({ path: "/surprise", message: "is not a known parameter" });
    }
  });

  test("finds no method by an inherited name", () => {
    for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty", ""])
      expect(isMethodName(name)).toBe(false);
  });

  test("has an example of each method that its schemas allow, in the OpenRPC document too", () => {
    const validator = createValidator();
    const described = openRpcDocument("0")["methods"] as {
      readonly name: string;
      readonly examples: readonly unknown[];
    }[];
    for (const { name, examples } of described) {
      if (!isMethodName(name)) throw new Error(name);
      const { params, result } = exampleOf(name);
      expect(validator.params(name, params), name).toEqual([]);
      expect(validator.result(name, result), name).toEqual([]);
      expect(validator.result(name, exampleValue(methods[name].result, { withOptional: true })), name).toEqual([]);
      const named = Object.entries(params).map(([parameter, value]) => ({ name: parameter, value }));
      expect(examples).toEqual([{ name, params: named, result: { name: "result", value: result } }]);
    }
  });

  test("has the params of each notification by their own names in the OpenRPC document", () => {
    const described = openRpcDocument("0")["x-notifications"] as {
      readonly name: keyof typeof notifications;
      readonly params: readonly { readonly name: string; readonly required: boolean }[];
    }[];
    for (const { name, params } of described) {
      const { properties, required = [] } = notifications[name].params as { properties: object; required?: string[] };
      expect(params.map((one) => one.name)).toEqual(Object.keys(properties));
      expect(
        params
          .filter((one) => one.required)
          .map((one) => one.name)
          .toSorted(),
      ).toEqual([...required].toSorted());
    }
  });
});

describe("the error catalogue", () => {
  test("assigns each name its own code within the range that JSON-RPC leaves to servers", () => {
    const codes = Object.values(errorCatalogue).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const [name, { code }] of Object.entries(errorCatalogue)) {
      expect(code >= -32099 && code <= -32000 ? "server" : "specification", name).toBe(
        ["parse_error", "invalid_request", "method_not_found", "invalid_params", "internal_error"].includes(name)
          ? "specification"
          : "server",
      );
      expect(errorNameOf(code)).toBe(name);
    }
  });

  test("allows no detail to hide an error's name", () => {
    expect(new WireError("conflict", "m", { name: "other", retryable: true, x: 1 }).data).toEqual({
      name: "conflict",
      retryable: false,
      x: 1,
    });
  });
});

describe("the validator", () => {
  const validator = createValidator();

  test("returns each finding with its path", () => {
    expect(
      validator.params("delivery/push", { sessionId: "s", content: [{ type: "text" }], deliverAs: "later" }),
    ).toEqual(
      expect.arrayContaining([
        { path: "/customType", message: "is required" },
        { path: "/content/0/text", message: "is required" },
        { path: "/deliverAs", message: 'must be one of "steer", "followUp", "nextTurn"' },
      ]),
    );
  });

  test("returns one finding for a value with very many, with little time and memory", () => {
    const content = Array.from({ length: 500_000 }, () => ({ type: "nothing" }));
    expect(validator.params("delivery/push", { sessionId: "s", customType: "t", content }).length).toBeLessThan(10);
  });

  test.each(["-model", "--tools", " x", "", "a b"])("refuses the model %j, which could become an option", (model) => {
    expect(validator.params("session/create", { cwd: "/", model })).not.toEqual([]);
  });

  test.each([["-x"], ["a,b"], ["a b"], [""]])("refuses the tool %j", (tool) => {
    expect(validator.params("session/create", { cwd: "/", tools: [tool] })).not.toEqual([]);
  });
});
