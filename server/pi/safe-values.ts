/** Maximum length of a displayed session name, in characters. */
const maxNameLength = 200;

/**
 * A session's name for display: extensions and session files can contain anything, so it is reduced to one line and
 * cut to 200 characters. Undefined if nothing is left.
 */
export function shownName(name: string): string | undefined {
  // A character has at most two code units, so this cut keeps enough.
  const line = name.slice(0, 2 * maxNameLength).replace(/\p{Cc}+/gu, " ");
  const shown = Array.from(line).slice(0, maxNameLength).join("").trim();
  return shown === "" ? undefined : shown;
}

/** A session's name for pi's command line: never an option. Undefined if nothing is left. */
export function spawnName(name: string): string | undefined {
  return shownName(name.replace(/^[-\s]+/, ""));
}

/**
 * Whether a model or a thinking level reported by pi can be used on its command line: not an option, and of bounded
 * length.
 */
export function isSpawnValue(value: string): boolean {
  return /^[^-\s\p{Cc}]\P{Cc}{0,511}$/u.test(value);
}
