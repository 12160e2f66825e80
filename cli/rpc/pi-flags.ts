// Reads a command line as pi's own parser does (`dist/cli/args.js`). The unit test compares the two.

/** The tested versions of pi. Each reads some command lines in its own way. */
export const testedPis = ["0.87.1", "1.5.2"] as const;
export type TestedPi = (typeof testedPis)[number];

type Switch =
  | "help"
  | "version"
  | "continue"
  | "resume"
  | "print"
  | "noSession"
  | "noTools"
  | "noBuiltinTools"
  | "noExtensions"
  | "noSkills"
  | "noPromptTemplates"
  | "noThemes"
  | "noContextFiles"
  | "noMcp"
  | "verbose"
  | "offline";
type Text =
  | "provider"
  | "model"
  | "apiKey"
  | "systemPrompt"
  | "name"
  | "session"
  | "sessionId"
  | "fork"
  | "sessionDir"
  | "export"
  | "useTheme"
  | "tuiMode";
type Texts = "appendSystemPrompt" | "extensions" | "skills" | "promptTemplates" | "themes";
type Names = "models" | "tools" | "excludeTools";

const modes = ["text", "json", "rpc"] as const;
const tuiModes: readonly string[] = ["regular", "fullscreen"];
const thinkingLevels = ["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** A line that pi prints before it starts. An error ends pi. */
export interface Diagnostic {
  readonly type: "warning" | "error";
  readonly message: string;
}

interface Flags
  extends Partial<Record<Switch, true>>,
    Partial<Record<Text, string>>,
    Partial<Record<Texts | Names, string[]>> {
  mode?: (typeof modes)[number];
  thinking?: (typeof thinkingLevels)[number];
  projectTrustOverride?: boolean;
  /** The text to search for, or true. */
  listModels?: string | true;
  readonly messages: string[];
  /** Words that begin with `@`, without it. */
  readonly fileArgs: string[];
  /** Flags that only an extension can know, without their `--`. True: without a value. */
  readonly unknownFlags: Map<string, string | true>;
  readonly diagnostics: Diagnostic[];
}

/** The flags of a command line, under pi's own names. A flag that was not given is absent. */
export type PiFlags = Readonly<Flags>;

/** The words of a command line that were not read yet. */
class Words {
  readonly #words: readonly string[];
  #place = 0;

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  get next(): string | undefined {
    return this.#words[this.#place];
  }

  take(): string | undefined {
    const word = this.next;
    this.#place += 1;
    return word;
  }

  takeAll(): readonly string[] {
    const rest = this.#words.slice(this.#place);
    this.#place = this.#words.length;
    return rest;
  }
}

/** Reads what follows a flag. Returns false if pi takes the flag for an unknown one, because no word follows. */
type Read = (flags: Flags, words: Words, spelling: string) => boolean;

const sharedReaders = [
  ...switchOf("help", "--help", "-h"),
  ...switchOf("version", "--version", "-v"),
  ...switchOf("continue", "--continue", "-c"),
  ...switchOf("resume", "--resume", "-r"),
  ...switchOf("noSession", "--no-session"),
  ...switchOf("noTools", "--no-tools", "-nt"),
  ...switchOf("noBuiltinTools", "--no-builtin-tools", "-nbt"),
  ...switchOf("noExtensions", "--no-extensions", "-ne"),
  ...switchOf("noSkills", "--no-skills", "-ns"),
  ...switchOf("noPromptTemplates", "--no-prompt-templates", "-np"),
  ...switchOf("noThemes", "--no-themes"),
  ...switchOf("noContextFiles", "--no-context-files", "-nc"),
  ...switchOf("verbose", "--verbose"),
  ...switchOf("offline", "--offline"),
  ...textOf("provider", "--provider"),
  ...textOf("model", "--model"),
  ...textOf("apiKey", "--api-key"),
  ...textOf("systemPrompt", "--system-prompt"),
  ...textOf("session", "--session"),
  ...textOf("sessionId", "--session-id"),
  ...textOf("fork", "--fork"),
  ...textOf("sessionDir", "--session-dir"),
  ...textOf("export", "--export"),
  ...textsOf("appendSystemPrompt", "--append-system-prompt"),
  ...textsOf("extensions", "--extension", "-e"),
  ...textsOf("skills", "--skill"),
  ...textsOf("promptTemplates", "--prompt-template"),
  ...textsOf("themes", "--theme"),
  ...flag(readNames("excludeTools"), "--exclude-tools", "-xt"),
  ...flag(readApproval(true), "--approve", "-a"),
  ...flag(readApproval(false), "--no-approve", "-na"),
  ...flag(readMode, "--mode"),
  ...flag(readName, "--name", "-n"),
  ...flag(readThinking, "--thinking"),
  ...flag(readPrint, "--print", "-p"),
  ...flag(readListModels, "--list-models"),
  ...flag(readTheme, "--use-theme"),
  ...flag(readTuiMode, "--tui-mode"),
];

const readers: Readonly<Record<TestedPi, ReadonlyMap<string, Read>>> = {
  "0.87.1": new Map([...sharedReaders, ...flag(readModels, "--models"), ...flag(readNames("tools"), "--tools", "-t")]),
  "1.5.2": new Map([
    ...sharedReaders,
    ...flag(readNames("models"), "--models"),
    ...flag(readTools, "--tools", "-t"),
    ...switchOf("noMcp", "--no-mcp"),
  ]),
};

function flag(read: Read, ...spellings: readonly string[]): (readonly [string, Read])[] {
  return spellings.map((spelling) => [spelling, read] as const);
}

function switchOf(name: Switch, ...spellings: readonly string[]): (readonly [string, Read])[] {
  return flag(
    (flags) => {
      flags[name] = true;
      return true;
    },
    ...spellings,
  );
}

function textOf(name: Text, ...spellings: readonly string[]): (readonly [string, Read])[] {
  return flag(
    (flags, words) => {
      const text = words.take();
      if (text === undefined) return false;
      flags[name] = text;
      return true;
    },
    ...spellings,
  );
}

function textsOf(name: Texts, ...spellings: readonly string[]): (readonly [string, Read])[] {
  return flag(
    (flags, words) => {
      const text = words.take();
      if (text === undefined) return false;
      flags[name] = [...(flags[name] ?? []), text];
      return true;
    },
    ...spellings,
  );
}

function readNames(name: Names): Read {
  return (flags, words) => {
    const names = takeNames(words);
    if (names === undefined) return false;
    flags[name] = names.filter((word) => word !== "");
    return true;
  };
}

function takeNames(words: Words): string[] | undefined {
  return words
    .take()
    ?.split(",")
    .map((word) => word.trim());
}

function readModels(flags: Flags, words: Words): boolean {
  const models = takeNames(words);
  if (models === undefined) return false;
  flags.models = models;
  return true;
}

function readTools(flags: Flags, words: Words, spelling: string): boolean {
  const tools = takeNames(words)?.filter((word) => word !== "");
  if (tools === undefined) return false;
  const problem = toolListProblem(tools);
  if (problem !== undefined) return refuse(flags, `${spelling}: ${problem}`);
  flags.tools = tools;
  return true;
}

/** A list names the tools, or consists of changes to pi's own list. */
function toolListProblem(tools: readonly string[]): string | undefined {
  const changes = tools.filter((tool) => /^[+-]/.test(tool));
  if (changes.length === 0) return undefined;
  if (changes.length < tools.length) return "tool names cannot be mixed with +name or -name entries";
  const pattern = changes.find((tool) => tool.includes("*"));
  if (pattern === undefined) return undefined;
  return `+name and -name entries take exact tool names, not patterns: ${pattern}`;
}

function readApproval(isApproved: boolean): Read {
  return (flags) => {
    flags.projectTrustOverride = isApproved;
    return true;
  };
}

function readMode(flags: Flags, words: Words): boolean {
  if (isFlagOrNothing(words.next)) return refuse(flags, "--mode requires text, json, or rpc");
  const word = words.take();
  const mode = modes.find((known) => known === word);
  if (mode === undefined) return refuse(flags, `Invalid mode "${word}". Valid values: ${modes.join(", ")}`);
  flags.mode = mode;
  return true;
}

function readName(flags: Flags, words: Words): boolean {
  const name = words.take();
  if (name === undefined) return refuse(flags, "--name requires a value");
  flags.name = name;
  return true;
}

function readThinking(flags: Flags, words: Words): boolean {
  const word = words.take();
  if (word === undefined) return false;
  const level = thinkingLevels.find((known) => known === word);
  if (level !== undefined) flags.thinking = level;
  else {
    const message = `Invalid thinking level "${word}". Valid values: ${thinkingLevels.join(", ")}`;
    flags.diagnostics.push({ type: "warning", message });
  }
  return true;
}

function readPrint(flags: Flags, words: Words): boolean {
  flags.print = true;
  const { next } = words;
  if (next === undefined || next.startsWith("@") || (next.startsWith("-") && !next.startsWith("---"))) return true;
  flags.messages.push(next);
  words.take();
  return true;
}

function readListModels(flags: Flags, words: Words): boolean {
  flags.listModels = isValue(words.next) ? (words.take() ?? true) : true;
  return true;
}

function readTheme(flags: Flags, words: Words): boolean {
  if (isFlagOrNothing(words.next)) return refuse(flags, "--use-theme requires a theme name");
  flags.useTheme = words.take() ?? "";
  return true;
}

function readTuiMode(flags: Flags, words: Words): boolean {
  if (isFlagOrNothing(words.next)) return refuse(flags, `--tui-mode requires ${tuiModes.join(" or ")}`);
  const word = words.take() ?? "";
  if (!tuiModes.includes(word))
    return refuse(flags, `Invalid TUI mode "${word}". Valid values: ${tuiModes.join(", ")}`);
  flags.tuiMode = word;
  return true;
}

function refuse(flags: Flags, message: string): true {
  flags.diagnostics.push({ type: "error", message });
  return true;
}

function isFlagOrNothing(word: string | undefined): boolean {
  return word === undefined || word.startsWith("-");
}

function isValue(word: string | undefined): boolean {
  return !isFlagOrNothing(word) && word?.startsWith("@") !== true;
}

/** Reads the words after pi's name. */
export function readPiFlags(argv: readonly string[], pi: TestedPi): PiFlags {
  const flags: Flags = { messages: [], fileArgs: [], unknownFlags: new Map(), diagnostics: [] };
  const words = new Words(argv);
  for (let word = words.take(); word !== undefined; word = words.take()) {
    if (word === "--") for (const rest of words.takeAll()) readPositional(flags, rest);
    else if (readers[pi].get(word)?.(flags, words, word) !== true) readOther(flags, word, words);
  }
  return flags;
}

function readPositional(flags: Flags, word: string): void {
  if (word.startsWith("@")) flags.fileArgs.push(word.slice(1));
  else flags.messages.push(word);
}

function readOther(flags: Flags, word: string, words: Words): void {
  if (!word.startsWith("-")) readPositional(flags, word);
  else if (!word.startsWith("--")) refuse(flags, `Unknown option: ${word}`);
  else readUnknown(flags, word.slice(2), words);
}

function readUnknown(flags: Flags, text: string, words: Words): void {
  const equals = text.indexOf("=");
  if (equals !== -1) flags.unknownFlags.set(text.slice(0, equals), text.slice(equals + 1));
  else flags.unknownFlags.set(text, isValue(words.next) ? (words.take() ?? true) : true);
}
