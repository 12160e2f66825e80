import { resolve } from "node:path";
import { readDaemonFile } from "../client/discovery.ts";
import { type Capability, capabilities as known } from "../protocol/capability.ts";
import type { Params, Result } from "../protocol/methods.ts";
import type { TokenInfo } from "../protocol/token-methods.ts";
import { callDaemon } from "./daemon-call.ts";
import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { duration } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { oneLine, table } from "./text.ts";
import { labels, list } from "./values.ts";
import { ensured } from "./with-client.ts";

type Token = Invocation<"token">;

/** The name of the daemon's own token. */
const main = "main";

/** Shows the daemon's token, and manages named tokens with fewer permissions. */
export async function token(invocation: Token): Promise<number> {
  const { options, output, signal } = invocation;
  const [action = "show", given] = invocation.arguments;
  checkOptions(invocation, action);
  const name = action === "create" || action === "revoke" ? required(given, action) : (given ?? main);
  const limits = limitsOf(options);
  const stateDir = await ensured(invocation);
  const where = { stateDir, signal };
  switch (action) {
    case "create":
      printSecret(await callDaemon("token/create", { name, ...limits }, where), invocation);
      return exitCodes.done;
    case "list": {
      const { tokens } = await callDaemon("token/list", {}, where);
      if (output.json) output.document({ tokens });
      else show(tokens, invocation);
      return exitCodes.done;
    }
    case "rotate":
      printSecret(await callDaemon("token/rotate", { name }, where), invocation);
      return exitCodes.done;
    case "revoke":
      await callDaemon("token/revoke", { name }, where);
      if (output.json) output.document({ revoked: name });
      else output.print(`${name} is revoked; its connections are closed.`);
      return exitCodes.done;
    default: {
      const file = await readDaemonFile(stateDir);
      if (output.json) output.document({ name: main, token: file.token });
      else output.print(file.token);
      return exitCodes.done;
    }
  }
}

function required(name: string | undefined, action: string): string {
  if (name !== undefined) return name;
  throw new UsageError(`NAME is missing: name the token to ${action}.`, "token");
}

function checkOptions({ options, arguments: [, name] }: Token, action: string): void {
  const given = (["capabilities", "label", "cwd"] as const).find((option) => options[option] !== undefined);
  if (action !== "create" && given !== undefined) throw new UsageError(`--${given} only works with create.`, "token");
  if (name !== undefined && (action === "show" || action === "list")) {
    throw new UsageError(`${action} takes no NAME: the secret of a named token is only shown once.`, "token");
  }
}

function limitsOf({ capabilities = "observe", label, cwd }: Token["options"]): Omit<Params<"token/create">, "name"> {
  return {
    capabilities: list(capabilities, { option: "capabilities", command: "token" }).map(capability),
    ...(label !== undefined && { labels: labels(label, { option: "label", command: "token" }) }),
    ...(cwd !== undefined && {
      cwds: list(cwd, { option: "cwd", command: "token" }).map((directory) => resolve(directory)),
    }),
  };
}

function capability(word: string): Capability {
  const found = known.find((each) => each === word);
  if (found !== undefined) return found;
  throw new UsageError(`Unknown capability "${word}". The capabilities are: ${known.join(", ")}.`, "token");
}

/** Only the secret goes to stdout: `TOKEN=$(pi-rpcd token create ci)`. */
function printSecret(made: Result<"token/create">, { output }: Token): void {
  if (output.json) {
    output.document(made);
    return;
  }
  output.print(made.token);
  output.aside(oneLine(`${made.name}: ${made.capabilities.join(", ")}; the secret is not shown again`));
}

function show(tokens: readonly TokenInfo[], { output }: Token): void {
  const [head, ...rows] = table(
    [["NAME", "CAPABILITIES", "ONLY", "AGE", "LAST USED"], ...tokens.map(row)],
    output.columns,
  );
  output.print(output.paint("dim", head ?? ""));
  for (const line of rows) output.print(line);
}

function row({
  name,
  capabilities,
  labels: only = {},
  cwds = [],
  createdAt,
  lastUsedAt,
}: TokenInfo): readonly string[] {
  const now = Date.now();
  const limits = [...Object.entries(only).map(([label, text]) => (text === "" ? label : `${label}=${text}`)), ...cwds];
  const used = lastUsedAt === undefined ? "-" : `${duration(now - lastUsedAt)} ago`;
  return [name, capabilities.join(","), limits.join(" ") || "-", duration(now - createdAt), used].map(oneLine);
}
