import type { MethodRow, PiCommandFacts } from "./method-row.ts";
import { type MethodName, methods } from "./methods.ts";

/** How clients reach a documented command of pi. */
export interface PiCommandRoute extends Omit<PiCommandFacts, "command"> {
  readonly method: MethodName;
}

/** Every command of pi's RPC (docs/rpc-commands.md of pi 1.5.2), with the method whose row has it. */
export const piCommands: Readonly<Record<string, PiCommandRoute>> = Object.fromEntries(
  (Object.entries(methods) as [MethodName, MethodRow][]).flatMap(([method, { pi }]) => {
    if (pi === undefined) return [];
    const { command, ...facts } = pi;
    return [[command, { method, ...facts }]];
  }),
);

/** The answer to a dialog is a record for pi's stdin too. pi's documents do not list it as a command. */
const dialogAnswer = { type: "extension_ui_response", route: { method: "dialog/respond", asItIs: false } } as const;

/** How clients reach a record for pi's stdin, if pi's documents have it. */
export function commandRoute(type: string): PiCommandRoute | undefined {
  if (type === dialogAnswer.type) return dialogAnswer.route;
  return Object.hasOwn(piCommands, type) ? piCommands[type] : undefined;
}
