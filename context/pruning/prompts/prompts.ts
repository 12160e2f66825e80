import { join } from "node:path";
import { messageOf } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { checkPrompt, maxPromptBytes, type PromptName, promptFiles } from "../../../protocol/pruning/prompts.ts";
import { smallFile } from "../../small-file.ts";
import * as files from "./built-in.ts";

const builtIn: Readonly<Record<PromptName, string>> = { ...files };

/** The number of a statement, for readers of the file. */
const numberPattern = /^<!-- [0-9]{1,2} --> ?/gm;

/** The texts for the model. */
export interface Prompts {
  /** The text without statement numbers. It stays the same until pi is reconfigured. */
  text(name: PromptName): string;
}

interface PromptSources {
  /** The directory of the user's own texts. `null`: none. */
  readonly directory: () => string | null;
  /** The current configuration object; a new object causes the files to be read again. */
  readonly configured?: () => unknown;
  /** A file is unusable, so the built-in text is used. */
  readonly degraded: (why: string) => void;
}

/** Reads each file once, when its text is first needed. */
export function createPrompts({ directory, configured, degraded }: PromptSources): Prompts {
  const known = new Map<PromptName, string>();
  let of: unknown;
  let by: unknown;
  return {
    text(name) {
      const now = directory();
      const configuration = configured?.();
      if (now !== of || configuration !== by) known.clear();
      of = now;
      by = configuration;
      const text = known.get(name) ?? (now === null ? builtInPrompt(name) : loaded(now, name, degraded));
      known.set(name, text);
      return text;
    },
  };
}

/** The built-in text. */
export function builtInPrompt(name: PromptName): string {
  return withoutNumbers(builtIn[name]);
}

function withoutNumbers(text: string): string {
  return text.replaceAll(numberPattern, "").trim();
}

function loaded(directory: string, name: PromptName, degraded: PromptSources["degraded"]): string {
  const file = promptFiles[name];
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(smallFile(join(directory, file), maxPromptBytes));
    const finding = checkPrompt(name, text)[0];
    if (finding === undefined) return withoutNumbers(text);
    degraded(`${file}:${finding.line}: ${finding.message} The built-in text is used.`);
  } catch (thrown) {
    if (isRecord(thrown) && thrown["code"] === "ENOENT") return builtInPrompt(name);
    degraded(`${file} cannot be read, so the built-in text is used: ${messageOf(thrown)}`);
  }
  return builtInPrompt(name);
}
