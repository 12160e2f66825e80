type Token = "dim" | "green" | "yellow" | "magenta" | "cyan" | "red";
type Paint = (format: Token, text: string) => string;

/** Longer code is not highlighted. */
const maxCharacters = 200_000;

const keywords = new Set(
  (
    "abstract and as async await begin bool boolean break byte case catch chan char class const constructor continue def " +
    "default defer del delete do done double elif else elsif end ensure enum esac except export extends extern false " +
    "False fi final finally float fn for foreach from func function go goto if impl implements import in include int " +
    "interface internal is lambda let local long loop map match mod module move mut namespace new nil None not null of " +
    "operator or out override package pass private protected protocol pub public raise range readonly ref require rescue " +
    "return select self Self short signed sizeof static string struct super switch template then this throw throws trait " +
    "true True try type typedef typename typeof undefined union unless unsafe unsigned until use using val var virtual " +
    "void volatile when where while with yield"
  ).split(" "),
);

const text = String.raw`"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?`;
const templates = String.raw`\x60(?:[^\x60\\]|\\[\s\S])*\x60?`;
const blockComment = String.raw`\/\*[\s\S]*?(?:\*\/|$)`;
const rest = String.raw`\b\d[\w.]*|[A-Za-z_$][\w$]*`;

const families = {
  c: new RegExp(String.raw`\/\/[^\n]*|${blockComment}|${text}|${templates}|${rest}`, "g"),
  hash: new RegExp(String.raw`#[^\n]*|"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|${text}|${rest}`, "g"),
  dashes: new RegExp(String.raw`--[^\n]*|${blockComment}|${text}|${rest}`, "g"),
  markup: new RegExp(String.raw`<!--[\s\S]*?(?:-->|$)|<\/?[\w:-]+|\/?>|${text}`, "g"),
};

const languages: Readonly<Record<string, keyof typeof families>> = {
  ...named(
    "hash",
    "sh bash shell zsh console py python rb ruby yaml yml toml ini perl r dockerfile makefile make cmake",
  ),
  ...named("dashes", "sql lua haskell hs ada"),
  ...named("markup", "html xml svg vue"),
  ...named(
    "c",
    "js jsx ts tsx javascript typescript json json5 jsonc c h cpp c++ cs csharp java kotlin kt scala go rust",
  ),
  ...named("c", "rs swift php dart css scss less zig proto groovy"),
};

function named(family: keyof typeof families, words: string): Record<string, keyof typeof families> {
  return Object.fromEntries(words.split(" ").map((word) => [word, family]));
}

/** Returns the lines of `code` with its comments, strings, numbers and keywords painted, if the language is known. */
export function highlight(code: string, language: string | undefined, paint: Paint): string[] {
  // The first word after a fence is the language.
  const [name = ""] = (language ?? "").toLowerCase().split(/\s/);
  if (name === "diff" || name === "patch") return code.split("\n").map((line) => highlightChange(line, paint));
  const family = Object.hasOwn(languages, name) ? languages[name] : undefined;
  if (family === undefined || code.length > maxCharacters) return code.split("\n");
  const painted = code.replace(families[family], (token) => {
    const format = formatOf(token);
    if (format === undefined) return token;
    // A style does not continue on the next row.
    return token
      .split("\n")
      .map((line) => paint(format, line))
      .join("\n");
  });
  return painted.split("\n");
}

/** Returns a line of a diff with the colour of its change. */
export function highlightChange(line: string, paint: Paint): string {
  if (line.startsWith("+")) return paint("green", line);
  if (line.startsWith("-")) return paint("red", line);
  return line.startsWith("@@") ? paint("cyan", line) : line;
}

function formatOf(token: string): Token | undefined {
  if (/^(?:\/\/|\/\*|#|--|<!)/.test(token)) return "dim";
  if (/^["'`]/.test(token)) return "green";
  if (/^\d/.test(token)) return "yellow";
  if (/^[</>]/.test(token)) return "magenta";
  return keywords.has(token) ? "magenta" : undefined;
}
