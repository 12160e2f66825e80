import type { Random } from "../../../test/soak/random.ts";

// Texts that resemble those of agents and their tools. Only ASCII, so that a character is a byte.

const nouns =
  "session cursor daemon record budget window request payload section token cache ledger worker reader writer stream buffer segment index entry branch model prompt answer socket timer queue store handler router parser schema option layer report marker offset".split(
    " ",
  );
const verbs =
  "load store merge drop open close read write count split parse check build start stop keep send wait resolve cut mark find".split(
    " ",
  );
const others =
  "the a this that every no one before behind while because unless and then so which its what only once again is was has must may cannot here there first last twice empty stale early late whole broken".split(
    " ",
  );

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

export function identifier(random: Random): string {
  return random.pick(verbs) + capital(random.pick(nouns)) + (random.chance(0.3) ? capital(random.pick(nouns)) : "");
}

export function filePath(random: Random, ending = "ts"): string {
  const folders = Array.from({ length: random.integer(1, 3) }, () => random.pick(nouns)).join("/");
  return `src/${folders}/${random.pick(nouns)}-${random.pick(nouns)}-${random.integer(1, 999)}.${ending}`;
}

function sentence(random: Random): string {
  const words = Array.from({ length: random.integer(6, 16) }, () =>
    random.pick(random.chance(0.6) ? others : random.chance(0.6) ? nouns : verbs),
  );
  if (random.chance(0.25)) words.splice(random.integer(1, words.length - 1), 0, `\`${identifier(random)}\``);
  return `${capital(words.join(" "))}.`;
}

/** Lines of one kind, up to `length` characters. The last one is cut. */
function lines(length: number, line: (number: number) => string): string {
  const all: string[] = [];
  for (let got = 0, number = 1; got < length; number += 1) {
    const next = line(number);
    all.push(next);
    got += next.length + 1;
  }
  return all.join("\n").slice(0, length);
}

export function prose(random: Random, length: number): string {
  let text = "";
  while (text.length < length) text += `${text === "" ? "" : random.chance(0.15) ? "\n\n" : " "}${sentence(random)}`;
  return text.slice(0, Math.max(1, length)).trimEnd();
}

export function code(random: Random, length: number): string {
  return lines(length, () => {
    const indent = "  ".repeat(random.integer(0, 4));
    const name = random.pick(nouns);
    switch (random.integer(0, 7)) {
      case 0:
        return `${indent}const ${name} = await ${identifier(random)}(${random.pick(nouns)}, { ${random.pick(nouns)}: ${random.integer(0, 9_999)} });`;
      case 1:
        return `${indent}if (${name}.${random.pick(nouns)} !== undefined) return ${identifier(random)}(${name});`;
      case 2:
        return `${indent}export function ${identifier(random)}(${name}: ${capital(random.pick(nouns))}): ${capital(random.pick(nouns))} {`;
      case 3:
        return `${indent}// ${sentence(random)}`;
      case 4:
        return `${indent}this.#${name}.set(${random.pick(nouns)}.id, ${random.pick(nouns)});`;
      case 5:
        return "";
      case 6:
        return `${indent}}`;
      default:
        return `${indent}for (const ${name} of ${random.pick(nouns)}s) ${identifier(random)}(${name}, ${random.integer(0, 99)});`;
    }
  });
}

export function log(random: Random, length: number): string {
  return lines(length, (number) => {
    const path = filePath(random, "test.ts");
    switch (random.integer(0, 4)) {
      case 0:
        return ` ok ${number} ${path} (${random.integer(1, 900)} ms)`;
      case 1:
        return `[${random.pick(["info", "debug", "warn"])}] ${random.pick(nouns)} ${random.integer(1, 99_999)}: ${sentence(random)}`;
      case 2:
        return `    at ${identifier(random)} (${path}:${random.integer(1, 400)}:${random.integer(1, 80)})`;
      case 3:
        return `${random.pick(nouns)}=${random.integer(0, 99_999)} ${random.pick(nouns)}=${random.next().toString(16).slice(2, 10)}`;
      default:
        return ` ${random.pick(verbs)} ${random.pick(nouns)} ... ${random.pick(["done", "skipped", "cached"])}`;
    }
  });
}

/** In the format of search results. */
export function hits(random: Random, length: number): string {
  return lines(length, () => `${filePath(random)}:${random.integer(1, 600)}: ${sentence(random)}`);
}

/** A JSON list of records, not cut: at most `length` characters. */
export function records(random: Random, length: number): string {
  const items: string[] = [];
  for (let left = length - 4; ; ) {
    const item = JSON.stringify({
      id: `${random.pick(nouns)}-${random.integer(1, 99_999)}`,
      state: random.pick(["open", "closed", "late"]),
      [random.pick(nouns)]: random.integer(0, 9_999),
      note: sentence(random),
    });
    left -= item.length + 4;
    if (left < 0 && items.length > 0) return `[\n  ${items.join(",\n  ")}\n]`;
    items.push(item);
  }
}

/** A text in which every twentieth line is different, including the first. */
export function changed(random: Random, text: string): string {
  return text
    .split("\n")
    .map((line, at) => (at % 20 === 0 ? `// ${sentence(random)}`.slice(0, Math.max(12, line.length)) : line))
    .join("\n");
}
