import { stateDirectory } from "../client/discovery.ts";
import { createValidator } from "../protocol/validation.ts";
import { type Configuration, configure, type Origin } from "../server/configuration/configuration.ts";
import { configurationSchema, type SettingName, settings } from "../server/configuration/settings.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { noteMisspelt } from "./misspelt-variables.ts";
import { oneLine, table } from "./text.ts";

/** Shows the effective configuration with the origin of each value. */
export async function config({ options, output, env }: Invocation<"config">): Promise<number> {
  if (options.schema === true) {
    output.printText(JSON.stringify(configurationSchema(), null, 2));
    return exitCodes.done;
  }
  noteMisspelt(env, output);
  const stateDir = stateDirectory(options["state-dir"], env);
  const configuration = configure({ file: options.config, env }, createValidator());
  const { values, origins, file } = configuration;
  const names = Object.keys(settings) as SettingName[];
  if (output.json) {
    const rows = names.map((name) => [name, { value: values[name] ?? null, origin: origins[name] }]);
    output.document({ stateDir, file, settings: Object.fromEntries(rows) });
    return exitCodes.done;
  }
  output.aside(`State directory: ${stateDir}`);
  output.aside(file.exists ? `File: ${file.path}` : `File: ${file.path} (does not exist)`);
  const [head, ...rows] = table(
    [["SETTING", "VALUE", "FROM"], ...names.map((name) => row(name, configuration))],
    output.columns,
  );
  output.print(output.paint("dim", head ?? ""));
  for (const line of rows) output.print(line);
  return exitCodes.done;
}

function row(name: SettingName, { values, origins }: Configuration): readonly string[] {
  const { defaultInWords } = settings[name] as { readonly defaultInWords?: string };
  const origin = origins[name];
  const inWords = origin.kind === "default" && defaultInWords !== undefined;
  return [name, inWords ? defaultInWords : JSON.stringify(values[name]), from(origin)].map(oneLine);
}

function from(origin: Origin): string {
  switch (origin.kind) {
    case "default":
      return "default";
    case "file":
      return `file, line ${origin.line}`;
    case "environment":
    case "option":
      return origin.name;
  }
}
