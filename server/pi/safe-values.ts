/** What is shown of a session's name, in characters. */
const maxNameLength = 200;

/**
 * A session's name as pi says it, which an extension or a session file may have made of anything: in one line, cut to 200
 * characters. Undefined where nothing is left.
 */
export function shownName(name: string): string | undefined {
  // No character has more than two code units: what is cut first is more than enough.
  const line = name.slice(0, 2 * maxNameLength).replace(/\p{Cc}+/gu, " ");
  const shown = Array.from(line).slice(0, maxNameLength).join("").trim();
  return shown === "" ? undefined : shown;
}

/** A session's name as pi's command line can have it: no option. Undefined where nothing is left. */
export function spawnName(name: string): string | undefined {
  return shownName(name.replace(/^[-\s]+/, ""));
}

/** Whether pi's command line can have a model or a thinking level that pi has said: none is an option, or endless. */
export function isSpawnValue(value: string): boolean {
  return /^[^-\s\p{Cc}]\P{Cc}{0,511}$/u.test(value);
}
