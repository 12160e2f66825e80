/** One instruction of a Dockerfile. */
export interface Instruction {
  readonly name: string;
  /** The text after the name, on one line. */
  readonly text: string;
  readonly words: readonly string[];
}

/** The instructions of a Dockerfile, without comments. */
export function instructionsOf(dockerfile: string): readonly Instruction[] {
  return dockerfile
    .split("\n")
    .filter((line) => !/^\s*#/.test(line))
    .join("\n")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [, name = "", text = ""] = /^(\S+) (.*)$/.exec(line) ?? [];
      return { name, text, words: text.split(" ") };
    });
}

/** Whether a file is sent to the builder: the last matching line of `.dockerignore` decides. */
export function isInContext(path: string, ignore: string): boolean {
  let isIn = true;
  for (const line of ignore.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const pattern = line.replace(/^!/, "");
    if (pattern === "*" || path === pattern || path.startsWith(`${pattern}/`)) isIn = line.startsWith("!");
  }
  return isIn;
}
