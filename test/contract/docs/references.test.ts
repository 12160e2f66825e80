import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CommandSpec } from "../../../cli/command-spec.ts";
import { commands } from "../../../cli/commands.ts";
import { methods } from "../../../protocol/methods.ts";
import { notifications } from "../../../protocol/notifications.ts";
import { withCommandReference } from "../../../scripts/lib/documents.ts";
import { anchorsOf, codeOf, documents, fencesOf, found, read, root, spansOf } from "./documents.ts";

const table: Readonly<Record<string, CommandSpec>> = commands;
const { scripts, exports, files } = JSON.parse(read("package.json")) as {
  readonly files: readonly string[];
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
};
const folders = "protocol|client|cli|context|server|extension|provider|test|scripts|examples|bench|\\.ci";
/** Names that look like files in one of our folders. */
const otherNames: readonly string[] = ["provider/id", ...Object.keys(notifications), ...Object.keys(methods)];
/** A file in a project that pi works in. */
const projectFiles: readonly string[] = ["AGENTS.md"];
const piDocs = join(root, "node_modules", "@earendil-works", "pi-coding-agent", "docs");

const rooms = [
  ...["protocol", "client", "cli", "extension", "provider", "context", "context/document", "server"],
  ...readdirSync(join(root, "server"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !["configuration", "frames", "lib"].includes(entry.name))
    .map(({ name }) => `server/${name}`),
];

test.each(rooms)("the README of %s is short and names only files that exist", (room) => {
  const markdown = read(join(room, "README.md"));
  const named = spansOf(markdown).filter((span) => /^[\w./-]+(?:\.ts|\/)$/.test(span));
  const isThere = (path: string): boolean => existsSync(join(root, room, path)) || existsSync(join(root, path));
  expect(named.filter((path) => !isThere(path))).toEqual([]);
  expect(markdown.split("\n").length).toBeLessThanOrEqual(22);
});

describe.each(documents)("%s", (document) => {
  const markdown = read(document);

  test("has no broken link", () => {
    const links = found(markdown.replaceAll(/`[^`\n]+`/g, ""), /\]\(((?!https?:)[^)\s]+)\)/g);
    const broken = links.filter((link) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? document : join(dirname(document), path);
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !anchorsOf(read(target)).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  test("names only files that exist", () => {
    const whole = spansOf(markdown).filter(
      (span) => new RegExp(`^(${folders})/[\\w./-]*$`).test(span) && !otherNames.includes(span),
    );
    const inBlocks = fencesOf(markdown)
      .filter(({ info }) => info[0] === "bash")
      .flatMap(({ text }) => found(text, new RegExp(`(?<![\\w/])((?:${folders})/[\\w./-]+\\.\\w+)`, "g")));
    const atRoot = spansOf(markdown).filter((span) => /^[A-Z]+\.md$/.test(span) && !projectFiles.includes(span));
    expect([...whole, ...inBlocks, ...atRoot].filter((path) => !existsSync(join(root, path)))).toEqual([]);
    const pis = found(markdown, /`docs\/([\w-]+\.md)/g);
    expect(pis.filter((page) => !existsSync(join(piDocs, page)))).toEqual([]);
  });

  test("names only npm scripts that exist", () => {
    const named = [
      ...found(markdown, /\bnpm run (?:--silent )?([a-z][a-z:-]*)/g),
      ...found(markdown, /\bnpm (test)\b/g),
    ];
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });

  test("names only commands and options of the command line that exist", () => {
    const wrong = codeOf(markdown).flatMap((line) => {
      const [, name, rest = ""] = /\bpi-rpcd (?:-- )?([a-z][a-z-]*)(.*)/.exec(line) ?? [];
      if (name === undefined) return [];
      const options = found(rest, /(?<=\s)--([a-z][a-z0-9-]*)/g);
      const known = table[name]?.options;
      return known !== undefined && options.every((option) => option in known) ? [] : [line];
    });
    const everyOption = new Set(Object.values(table).flatMap(({ options }) => Object.keys(options)));
    const alone = spansOf(markdown).flatMap((span) => found(span, /^--([a-z][a-z0-9-]*)/g));
    expect([...wrong, ...alone.filter((option) => !everyOption.has(option))]).toEqual([]);
  });

  test("has no absolute path of a particular machine", () => {
    expect(found(markdown, /(?<![\w.-])((?:\/work|\/root|\/tmp|\/Users|\/home\/(?!ada\/))\b\S*)/g)).toEqual([]);
  });
});

/** The non-empty lines of a text. */
function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** The first line that does not follow the line before it in `text`; undefined if all are there in order. */
function firstMissing(lines: readonly string[], text: string): string | undefined {
  const others = linesOf(text);
  let from = 0;
  return lines.find((line) => {
    from = others.indexOf(line, from) + 1;
    return from === 0;
  });
}

test("the commands in docs/cli.md match the table", () => {
  const document = read("docs/cli.md");
  expect(document === withCommandReference(document), "run: npm run schema").toBe(true);
  const [, section = ""] = /## Commands\n([\s\S]*?)\n## /.exec(document) ?? [];
  expect(found(section, /^\| `([a-z-]+)/gm)).toEqual(Object.keys(table));
});

test("the package ships the files that README.md links to, except tests", () => {
  const links = found(read("README.md"), /\]\(((?!https?:)[^)#\s]+)/g);
  const shipped = [...files, "README.md", "LICENSE", "package.json"];
  const isShipped = (link: string): boolean => shipped.some((file) => link === file || link.startsWith(`${file}/`));
  expect(links.filter((link) => !link.startsWith("test/") && !isShipped(link))).toEqual([]);
});

describe("the code in the documents", () => {
  test("in TypeScript in README.md matches the example, which imports the checkout's client", () => {
    const [block] = fencesOf(read("README.md")).filter(({ info }) => info[0] === "ts");
    const source = exports["./client"]?.default.replace("./dist/", "../").replace(/js$/, "ts") ?? "";
    const lines = linesOf(block?.text ?? "").map((line) => line.replace('"pi-rpcd/client"', `"${source}"`));
    expect(lines.length).toBeGreaterThan(8);
    expect(lines.length).toBeLessThanOrEqual(12);
    expect(firstMissing(lines, read("examples/push-while-running.ts"))).toBeUndefined();
  });

  test("in docs/extensions.md matches the example, which imports the checkout's extension", () => {
    const [block] = fencesOf(read("docs/extensions.md")).filter(({ info }) => info[0] === "ts");
    const source = exports["./extension"]?.default.replace("./dist/", "../../").replace(/js$/, "ts") ?? "";
    const lines = linesOf(block?.text ?? "").map((line) => line.replace('"pi-rpcd/extension"', `"${source}"`));
    expect(lines.length).toBeGreaterThan(8);
    expect(firstMissing(lines, read("examples/extensions/tell.ts"))).toBeUndefined();
  });

  test("with curl in docs/clients.md begins like the example", () => {
    const [block] = fencesOf(read("docs/clients.md")).filter(({ text }) => text.includes("curl"));
    const lines = linesOf(block?.text ?? "");
    expect(lines.length).toBeGreaterThan(4);
    expect(firstMissing(lines, read("examples/curl.sh"))).toBeUndefined();
  });
});
