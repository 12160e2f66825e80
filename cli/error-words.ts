import { isRecord } from "../protocol/objects.ts";
import type { CommandSpec } from "./command-spec.ts";
import { commands } from "./commands.ts";

const table: Readonly<Record<string, CommandSpec>> = commands;

type Wording = readonly [clientsText: RegExp, text: string | ((command: CommandSpec | undefined) => string)];

/** What the daemon and the client library say to programs, and what a person at the command line can do. */
export const wordings: readonly Wording[] = [
  [
    /Wait for agent_settled, or set ifRunning: "steer" or "followUp"\./,
    (command) =>
      command?.options["if-running"] === undefined
        ? "Wait until it is idle, or abort its run: pi-rpcd abort."
        : "Wait until it is idle, or choose --if-running steer or --if-running followUp.",
  ],
  [
    /Wait (?:for agent_settled|until it has ended), or abort it\./,
    "Wait until it has ended, or abort it: pi-rpcd abort.",
  ],
  [/force: true does it\./, "--force does it."],
  [
    /Call session\/acquireControl to become the controller, with takeOver: true if another client is\./,
    "Commands do not take control; the client can release it.",
  ],
  [
    /session\/command, a prompt, or session\/subscribe with awake: true starts one; then call again/,
    "a prompt starts one",
  ],
  [/prompt\/get has its text; send it again if you want to\./, "Send it again if you want to."],
  [
    /cost\/setBudget raises or removes the session's; a phase's ends with cost\/endPhase\./,
    'The prompt "/cost budget USD" raises the session\'s, "/cost budget none" removes it; a phase\'s ends with "/cost end".',
  ],
  [
    /session\/reload continues with the current file\./,
    "`pi-rpcd close` and then `pi-rpcd open` continue with the current file.",
  ],
  [/cost\/report says what is there\./, "`pi-rpcd cost` says what is there."],
  [/\/answer must have confirmed, or be cancelled\./, "answer it with --yes, --no or --cancel."],
  [/\/answer must have a value, or be cancelled\./, "answer it with TEXT or --cancel."],
  [/\/answer\/value must/, "TEXT must"],
  [/does not allow this [a-z]+\/[A-Za-z]+:/, "does not allow this command:"],
  [/was used before for another [a-z]+\/[A-Za-z]+\./, "was used before for another call."],
  [
    /^There is no method .*$/,
    "The daemon does not know this command. If it is older than this program, `pi-rpcd start --restart` replaces it.",
  ],
  [/^pi refused "[a-z_]+": /, "pi refused: "],
  [/\bexcludeTools\b/, "--exclude-tools"],
  [/, or let the program do it: connect\(\{ start: true \}\)/, ""],
  [/, of extensions, /, ", of --extension, "],
  [/ before [a-z]+\/[A-Za-z]+ was answered: the call may/, " before the daemon answered: the command may"],
  [
    /^[a-z]+\/[A-Za-z]+ was not sent: the connection .*$/,
    "The command was not sent: the connection to the daemon is lost.",
  ],
  [
    / Set `token`, or the `stateDir` whose daemon\.json names this address\./,
    " Name its state directory with --state-dir.",
  ],
  [/^The stream was read too slowly: .*$/, "The output was read too slowly, and the daemon's next events did not fit."],
  [/ Run `pi-rpcd pi`, then `\/login`, or start the daemon with a provider's key\.$/, ""],
  [/model\/list lists the models\./, "`pi-rpcd model list` lists the models."],
  [/ Set onGap to continue without them\./, ""],
];

/** What commands call the fields of calls, where it is not the field's name in kebab case. */
const names: Readonly<Record<string, readonly string[]>> = {
  capabilities: ["--capabilities"],
  content: ["TEXT"],
  customInstructions: ["TEXT"],
  customType: ["--type"],
  cwds: ["--cwd"],
  deliverAs: ["--as"],
  deliveryId: ["--id", "ID"],
  dialogId: ["ID"],
  dialogPolicy: ["--dialogs"],
  entryId: ["--at"],
  expiresAfterMs: ["--expires"],
  extensions: ["--extension"],
  file: ["STORED"],
  labels: ["--label"],
  leafId: ["--leaf"],
  modelId: ["MODEL"],
  name: ["--name", "NAME"],
  nodeId: ["--node"],
  onClearQueue: ["--on-clear"],
  provider: ["MODEL"],
  sessionId: ["SESSION", "STORED", "SOURCE"],
  text: ["TEXT"],
};

/** Returns a message in words of the command line: options and arguments instead of fields and methods. */
export function inCommandWords(message: string, command?: string): string {
  const spec = command === undefined ? undefined : table[command];
  return wordings.reduce(
    (text, [clientsText, words]) => text.replace(clientsText, () => (typeof words === "string" ? words : words(spec))),
    message,
  );
}

/** Describes the findings of a check of params, by the command's own options and arguments. */
export function findingsInWords(findings: unknown, command?: string): string | undefined {
  if (!Array.isArray(findings) || findings.length === 0) return undefined;
  const sentences = findings.slice(0, 8).map((finding) => {
    const { path, message } = isRecord(finding) ? finding : {};
    return `${optionOf(String(path ?? ""), command)} ${String(message ?? "is not valid")}`;
  });
  return `${sentences.join("; ")}.`;
}

/** The option or argument that a JSON pointer into a call's params came from. */
function optionOf(path: string, command: string | undefined): string {
  const spec = command === undefined ? undefined : table[command];
  const has = (word: string): boolean =>
    word.startsWith("--")
      ? spec?.options[word.slice(2)] !== undefined
      : spec?.arguments.some(({ name }) => name === word) === true;
  const kebab = (field: string): string => `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const [, field = "", ...rest] = path.split("/");
  // The fields of the context option are options of their own.
  const [name = "", ...inner] = field === "context" ? rest : [field, ...rest];
  const found = [...(Object.hasOwn(names, name) ? (names[name] ?? []) : []), kebab(name)].find(has);
  if (found === undefined) return "A value";
  return inner.length === 0 ? found : `An item of ${found}`;
}
