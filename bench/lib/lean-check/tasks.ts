import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Random } from "../../../test/soak/random.ts";
import { identifier, log, prose } from "../traces/words.ts";

/** Texts by path. */
export type Files = Readonly<Record<string, string>>;

/** A task with long context. The same seed always makes the same task. */
export interface Task {
  readonly prompts: readonly string[];
  readonly files: Files;
  /** The tools that the model has, apart from those of `lean`. */
  readonly tools: readonly string[];
  /** The files that a right result changes or adds. */
  readonly solution: Files;
  /** What a session with bare pi is expected to need. */
  readonly expected: { readonly requests: number; readonly contextTokens: number };
  /** Returns why the result in the directory is wrong; undefined if it is right. */
  judge(directory: string): Promise<string | undefined>;
}

export interface TaskSize {
  readonly seed: number;
  /** Of the number of files. 1: as the check needs it. */
  readonly scale: number;
}

/** More requests than this many times the expected ones end a session. */
export const limitFactor = 4;
/** How long a program that the model has changed may run. */
const programTimeoutMs = 20_000;
const answerFile = "answer.txt";
const charactersPerToken = 4.8;

const makers = { detail, edit, fault, rename, log: logTask } as const;
export type TaskName = keyof typeof makers;
export const taskNames = Object.keys(makers) as TaskName[];

export function makeTask(name: TaskName, { seed, scale }: TaskSize): Task {
  const random = new Random(seed * 8 + taskNames.indexOf(name));
  return makers[name](random, (count) => Math.max(4, Math.round(count * scale)));
}

export function writeFiles(directory: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
}

type Scaled = (count: number) => number;

/** Asks for values that were read at the beginning of a long chain of notes. */
function detail(random: Random, scaled: Scaled): Task {
  const count = scaled(60);
  const paths = names(random, count).map((name) => `notes/${name}.md`);
  const stations = names(random, count);
  const offsets = stations.map(() => random.integer(10_000, 99_999));
  const notes = paths.map((path, at) => {
    const next = paths[at + 1];
    const value = `The station ${stations[at]} has the offset ${offsets[at]}.`;
    const end = next === undefined ? "This is the last note." : `Next: ${next}`;
    return [path, `${prose(random, 5_000)}\n\n${value}\n\n${prose(random, 5_000)}\n\n${end}\n`] as const;
  });
  const asked = [0.05, 0.2, 0.4].map((place) => Math.floor(place * count) + 1);
  const right = asked.map((at) => String(offsets[at]));
  const wanted = asked.map((at) => stations[at]).join(", ");
  return {
    prompts: [
      `Read ${paths[0]} with the tool read, and follow the line "Next:" at its end from note to note, to the last note. Read each note whole. Then say that you are done.`,
      `Which offsets do the stations ${wanted} have? Write these numbers, in this order and each on its own line, to ${answerFile}.`,
    ],
    files: Object.fromEntries(notes),
    tools: ["read", "write"],
    solution: { [answerFile]: `${right.join("\n")}\n` },
    expected: expected(notes, count + 5),
    judge: async (directory) => unlike(textOf(directory, answerFile).match(/\d+/g) ?? [], right),
  };
}

/** Asks for an edit of a long file that was read before many others. */
function edit(random: Random, scaled: Scaled): Task {
  const path = "src/settings.mjs";
  const settings = names(random, 160).map((name) => ({ name, value: random.integer(100, 999) }));
  const comments = settings.map(() => prose(random, 110).replaceAll("\n", " "));
  const textWith = (values: ReadonlyMap<string, number>): string => {
    const lines = settings.map(
      ({ name, value }, at) => `  // ${comments[at]}\n  "${name}": ${values.get(name) ?? value},\n`,
    );
    return `export const settings = {\n${lines.join("")}};\n`;
  };
  const values = new Map<string, number>();
  const demands = Array.from({ length: scaled(48) }, (_, at) => {
    const name = random.pick(settings.slice(20, -20)).name;
    const value = random.integer(1_000, 9_999);
    values.set(name, value);
    const demand = `The setting ${name} must have the value ${value}.`;
    const text = `${prose(random, 5_600)}\n\n${demand}\n\n${prose(random, 5_600)}\n`;
    return [`demands/${String(at + 1).padStart(3, "0")}.md`, text] as const;
  });
  const right = textWith(values);
  return {
    prompts: [
      `Read ${path}. Then say how many settings it has.`,
      `Read ${demands[0]?.[0]} to ${demands.at(-1)?.[0]}, each whole and in this order, with the tool read. Each demands a value of a setting. Then say that you are done.`,
      `Edit ${path} so that each demand is met. Of several demands about one setting only the last one counts. Other settings keep their values.`,
    ],
    files: { [path]: textWith(new Map()), ...Object.fromEntries(demands) },
    tools: ["read", "edit"],
    solution: { [path]: right },
    expected: expected(demands, demands.length),
    judge: async (directory) => {
      const all = Object.fromEntries(settings.map(({ name, value }) => [name, values.get(name) ?? value]));
      const program = `const { settings } = await import(${urlIn(directory, path)}); console.log(JSON.stringify(settings));`;
      return await unlikeOutput(directory, program, all);
    },
  };
}

/** A program of many modules, one of which does not do what its comment says. */
function fault(random: Random, scaled: Scaled): Task {
  const count = scaled(100);
  const modules = names(random, count).map((name) => ({
    path: `src/${name}.mjs`,
    added: random.integer(12, 98),
    factor: random.integer(2, 9),
    comment: prose(random, 200).replaceAll("\n", " "),
    rest: functions(random, 4_300),
  }));
  const faultyAt = Math.floor((0.7 + 0.25 * random.next()) * count);
  const text = ({ added, factor, comment, rest }: (typeof modules)[number], actual: number): string => {
    const claim = `Adds ${added} to the value, and multiplies the sum by ${factor}. ${comment}`;
    const code = `export function run(value) {\n  const sum = value + ${actual};\n  return (sum * ${factor}) % 1000003;\n}\n`;
    return `${rest}\n/** ${claim} */\n${code}`;
  };
  const imports = modules.map(({ path }, at) => `import { run as run${at} } from "./${path.slice(4)}";\n`);
  const steps = modules.map((_, at) => `run${at}`).join(", ");
  const main = `${imports.join("")}\nexport function main(value) {\n  return [${steps}].reduce((all, run) => run(all), value);\n}\n`;
  const inputs = [1, 2, 3, 500, 77_777];
  const right = inputs.map((input) =>
    modules.reduce((value, { added, factor }) => ((value + added) * factor) % 1_000_003, input),
  );
  const files = modules.map((one, at) => [one.path, text(one, one.added + (at === faultyAt ? 7 : 0))] as const);
  const faulty = modules[faultyAt];
  if (faulty === undefined) throw new Error("The task has no faulty module.");
  return {
    prompts: [
      `In src/main.mjs, main(1) should return ${right[0]}, but it does not. In one of the imported modules the code of the function run does something different from what its comment says. The comments are right. Find the module and correct it.`,
    ],
    files: { "src/main.mjs": main, ...Object.fromEntries(files) },
    tools: ["read", "edit"],
    solution: { [faulty.path]: text(faulty, faulty.added) },
    expected: expected(files, 50),
    judge: async (directory) => {
      const program = `const { main } = await import(${urlIn(directory, "src/main.mjs")}); console.log(JSON.stringify(${JSON.stringify(inputs)}.map(main)));`;
      return await unlikeOutput(directory, program, right);
    },
  };
}

/** A function is renamed across many files; some of them use another one of the same name. */
function rename(random: Random, scaled: Scaled): Task {
  const [from, to] = ["loadRow", "fetchRow"];
  const definition = (name: string, value: number): string =>
    `${functions(random, 2_000)}\nexport function ${name}(id) {\n  return id * ${value};\n}\n`;
  const storage = definition(from, 3);
  const files: Record<string, string> = { "src/storage.mjs": storage, "src/cache.mjs": definition(from, 5) };
  const solution: Record<string, string> = { "src/storage.mjs": storage.replaceAll(from, to) };
  const paths = names(random, scaled(60)).map((name) => `src/${name}.mjs`);
  paths.forEach((path, at) => {
    const isChanged = at % 5 < 3;
    // Every eighth is long enough that lean cuts what is read.
    const size = at % 8 === 0 ? 7_500 : 2_400;
    const use = (): string => `\nexport const ${identifier(random)}${at} = (id) => ${from}(id + ${at});\n\n`;
    const source = isChanged ? "storage" : "cache";
    const head = `import { ${from} } from "./${source}.mjs";\n\n${functions(random, size)}`;
    files[path] = `${head}${use()}${functions(random, size)}`;
    if (isChanged) solution[path] = files[path].replaceAll(from, to);
  });
  files["files.txt"] = `${paths.join("\n")}\n`;
  return {
    prompts: [
      `Rename the function ${from} of src/storage.mjs to ${to}: its definition, and its imports and uses in the files that files.txt lists. src/cache.mjs has another function of the same name, which keeps it, as do the files that import it from there. Read each file before you decide. Change nothing else.`,
    ],
    files,
    tools: ["read", "edit"],
    solution,
    expected: expected(Object.entries(files), 70),
    judge: async (directory) => {
      const wrong = Object.entries({ ...files, ...solution }).filter(
        ([path, text]) => textOf(directory, path).trim() !== text.trim(),
      );
      return wrong.length === 0 ? undefined : `${wrong.length} files differ, for example ${wrong[0]?.[0]}`;
    },
  };
}

/** A log of 2 MB with many chains of causes; one leads to the answer. */
function logTask(random: Random, scaled: Scaled): Task {
  const [chains, length] = [scaled(120), 14];
  const ids = names(random, chains * length);
  const causes = names(random, chains).map((name) => `limit-${name}`);
  const waits = ["waits for", "is blocked by", "was cancelled, because it needs", "timed out on", "gave up on"];
  const lines = causes.flatMap((cause, chain) =>
    Array.from({ length }, (_, hop) => {
      const [id, next] = [ids[chain * length + hop], ids[chain * length + hop + 1]];
      return hop === length - 1
        ? `error ${id} stopped: the setting ${cause} does not allow it`
        : `warn ${id} ${random.pick(waits)} ${next}`;
    }),
  );
  const noise = ids.flatMap((id) =>
    Array.from({ length: 5 }, () => `info ${id} ${prose(random, 110).replaceAll("\n", " ")}`),
  );
  const others = log(random, 300_000 * Math.min(1, chains / 120)).split("\n");
  const all = random.shuffled([...lines, ...noise, ...others]);
  const text = all.map((line, at) => `${new Date(1_700_000_000_000 + at * 1_313).toISOString()} ${line}\n`).join("");
  const asked = random.integer(0, chains - 1);
  const right = causes[asked] ?? "";
  return {
    prompts: [
      `The log in server.log says why jobs stopped; its lines are not sorted by job. ${ids[asked * length]} did not finish, because it depends on another job, which depends on another one, and so on. Which setting is the cause at the end of this chain? Write its name, and nothing else, to ${answerFile}. Follow the chain by searching, step by step, without a script.`,
    ],
    files: { "server.log": text },
    tools: ["read", "bash", "write"],
    solution: { [answerFile]: `${right}\n` },
    expected: { requests: length + 8, contextTokens: 30_000 },
    judge: async (directory) => unlike([textOf(directory, answerFile).trim()], [right]),
  };
}

function expected(files: readonly (readonly [string, string])[], requests: number): Task["expected"] {
  const characters = files.reduce((sum, [, text]) => sum + text.length, 0);
  return { requests, contextTokens: Math.round(5_000 + characters / charactersPerToken) };
}

/** Names that occur once and cannot be guessed from each other. */
function names(random: Random, count: number): readonly string[] {
  const found = new Set<string>();
  while (found.size < count) found.add(`${identifier(random).toLowerCase()}-${random.integer(1_000, 9_999)}`);
  return [...found];
}

/** Functions that do nothing for the task. */
function functions(random: Random, length: number): string {
  let text = "";
  for (let number = 0; text.length < length; number += 1) {
    const comment = prose(random, 160).replaceAll("\n", " ");
    const [a, b, c] = [random.integer(2, 99), random.integer(100, 999), random.integer(2, 9)];
    text += `/** ${comment} */\nfunction ${identifier(random)}${number}(value) {\n  if (value > ${b}) return value - ${a};\n  return value * ${c} + ${b};\n}\n\n`;
  }
  return text;
}

function textOf(directory: string, path: string): string {
  try {
    return readFileSync(join(directory, path), "utf8");
  } catch {
    return "";
  }
}

function unlike(found: readonly string[], right: readonly string[]): string | undefined {
  if (found.join("\n") === right.join("\n")) return undefined;
  return `${found.join(", ").slice(0, 120) || "no answer"} instead of ${right.join(", ")}`;
}

function urlIn(directory: string, path: string): string {
  return JSON.stringify(pathToFileURL(join(realpathSync(directory), path)).href);
}

/** Runs a program on the model's files: it may read them and nothing else, and has no environment. */
async function unlikeOutput(directory: string, program: string, right: unknown): Promise<string | undefined> {
  const may = ["--permission", `--allow-fs-read=${realpathSync(directory)}`];
  const args = [...may, "--input-type=module", "--eval", program];
  try {
    const options = { cwd: directory, env: {}, timeout: programTimeoutMs, killSignal: "SIGKILL" } as const;
    const { stdout } = await promisify(execFile)(process.execPath, args, options);
    return stdout.trim() === JSON.stringify(right) ? undefined : `it returns ${stdout.trim().slice(0, 120)}`;
  } catch (error) {
    const { stderr = "", message } = error as Error & { readonly stderr?: string };
    return `it does not run: ${/^\w*Error.*$/m.exec(stderr)?.[0] ?? message.slice(0, 200)}`;
  }
}
