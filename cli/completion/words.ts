import type { ArgumentSpec, CommandSpec, OptionSpec } from "../command-spec.ts";

/** What can complete a place of a command line. */
export type Completes =
  | { readonly kind: "nothing" }
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "files" }
  | { readonly kind: "directories" }
  | { readonly kind: "sessions" }
  /** Sessions and files. */
  | { readonly kind: "sources" }
  | { readonly kind: "commands" };

export type Commands = Readonly<Record<string, CommandSpec>>;

/** The value of an option; undefined if it has none. */
export function wordsAfter({ type, choices, placeholder }: OptionSpec): Completes | undefined {
  if (type === "boolean") return undefined;
  if (choices !== undefined) return { kind: "words", words: choices };
  if (placeholder === "DIR") return { kind: "directories" };
  return { kind: placeholder === "FILE" || placeholder === "PATH" ? "files" : "nothing" };
}

export function argumentOf({ name, choices }: ArgumentSpec): Completes {
  if (choices !== undefined) return { kind: "words", words: choices };
  if (name === "SESSION") return { kind: "sessions" };
  if (name === "SOURCE") return { kind: "sources" };
  return { kind: name === "COMMAND" ? "commands" : "nothing" };
}

/** All spellings of an option, longest first. */
export function namesOf(option: string, { short }: OptionSpec): readonly string[] {
  return short === undefined ? [`--${option}`] : [`--${option}`, `-${short}`];
}

/**
 * The shell command that prints the ids of the sessions, one per line; nothing if no daemon runs. Lines that are not
 * ids are dropped, because a shell could interpret them.
 */
export const listSessions = "pi-rpcd ls --ids 2>/dev/null | grep -E '^[0-9A-Za-z][0-9A-Za-z._-]{0,127}$'";

/** Quotes a text for a shell, in single quotes. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The first sentence of a description, without Markdown. */
export function brief(description: string): string {
  const [first = ""] = description.split(/(?<=[.:]) /);
  return first.replaceAll("`", "").replace(/[.:]$/, "");
}
