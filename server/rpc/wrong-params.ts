import { configurationKeys, sorted } from "../../protocol/configuration/configurations.ts";
import { inWords } from "../../protocol/configuration/mistakes.ts";
import { asFinding } from "../../protocol/configuration/refusal.ts";
import { type ParamsFinding, WireError } from "../../protocol/errors.ts";
import type { MethodName } from "../../protocol/methods.ts";

/** What strangers have named is shown only so far: a key, or a method's name, may be of any length. */
export const maxNameLength = 200;

/** `invalid_params`: what of the params is a configuration is told in the words of its keys. */
export function wrongParams(method: MethodName, params: unknown, found: readonly ParamsFinding[]): WireError {
  const { findings, mistakes } = sorted(
    found,
    params,
    configurationKeys.map((key) => [key]),
  );
  const shown = findings.map(({ path, message }) => ({ path: path.slice(0, maxNameLength), message }));
  const list = shown.map(({ path, message }) => `${path === "" ? "params" : path} ${message}`).join("; ");
  const sentences = [
    ...(list === "" ? [] : [`The params of ${method} are wrong: ${list}.`]),
    ...mistakes.map(({ mistake }) => inWords(mistake)),
  ];
  return new WireError("invalid_params", sentences.join(" "), {
    findings: [...shown, ...mistakes.map(({ mistake }) => asFinding(mistake))],
  });
}
