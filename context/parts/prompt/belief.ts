/** Names and titles looked up in a source; our texts never contain more. */
const maxQuoted = 1_000;

const pointers: readonly RegExp[] = [
  /^\[Same text as below, in (?<path>.+)\.\]$/,
  /^\[Same text below\.\]$/,
  /^\[Left out to save space: read (?<path>.+) when it matters\.\]$/,
  /^\[Left out: "(?<titles>.*)"(?: and \d+ more)?\. Read (?<path>.+) when they matter\.\]$/,
];

/**
 * Whether a text can be derived from these context files: it has only whole lines of theirs, and generated lines that
 * name only things in them. A foreign session file can contain any text for the prompt.
 */
export function canBeMadeOf(source: string, text: string): boolean {
  const lines = new Set(source.split("\n").map((line) => line.trimEnd()));
  const quoted = new Set<string>();
  return text.split("\n").every((written) => {
    const line = written.trimEnd();
    if (lines.has(line)) return true;
    const names = namesIn(line);
    if (names === undefined) return false;
    return names.every((name) => {
      if (quoted.has(name)) return true;
      quoted.add(name);
      return quoted.size <= maxQuoted && source.includes(name);
    });
  });
}

/** The names in a generated line. `undefined`: not a generated line. */
function namesIn(line: string): readonly string[] | undefined {
  for (const pointer of pointers) {
    const found = pointer.exec(line);
    if (found === null) continue;
    const { path, titles } = found.groups ?? {};
    return [...(path === undefined ? [] : [path]), ...(titles?.split('", "') ?? [])];
  }
  return undefined;
}
