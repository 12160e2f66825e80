import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Plugin, type RolldownOutput, rolldown } from "rolldown";
import { root } from "./command.ts";

/** The files that the daemon serves to a browser: the path in the address, the file in dist/web/, the content type. */
const files = [
  { path: "/", file: "index.html", type: "text/html; charset=utf-8" },
  { path: "/styles.css", file: "styles.css", type: "text/css; charset=utf-8" },
  { path: "/places.css", file: "places.css", type: "text/css; charset=utf-8" },
  { path: "/icon.svg", file: "icon.svg", type: "image/svg+xml" },
];

const scriptType = "text/javascript; charset=utf-8";

/**
 * The page uses the lexer of marked alone. The function `marked` has the rest as its properties, which a bundler cannot
 * leave out.
 */
const lexerOnly: Plugin = {
  name: "lexer-only",
  transform: {
    filter: { id: /\/marked\/lib\/marked\.esm\.js$/ },
    handler: (code) => {
      const rest = code.search(/var (\w+)=new \w+;function \w+\(\w+,\w+\)\{return \1\.parse/);
      const exported = /export\{.*\}/.exec(code.slice(rest))?.[0] ?? "";
      const kept = exported.match(/\w+ as (?:Lexer|Tokenizer)\b/g) ?? [];
      if (rest === -1 || kept.length !== 2)
        throw new Error("marked has another form: read what this plugin leaves out.");
      return { code: `${code.slice(0, rest)}export{${kept.join()}};`, map: null };
    },
  },
};

/**
 * highlight.js can go on where it ended, which it does for itself alone: a long code is read in pieces, because reading it at
 * once could hold up the page.
 */
const inPieces: Plugin = {
  name: "in-pieces",
  transform: {
    filter: { id: /\/highlight\.js\/lib\/core\.js$/ },
    handler: (code) => {
      const call = "_highlight(context.language, context.code, ignoreIllegals)";
      if (code.split(call).length !== 2)
        throw new Error("highlight.js has another form: read what this plugin changes.");
      return { code: code.replace(call, call.replace(")", ", optionsOrCode.continuation)")), map: null };
    },
  },
};

/** The page only calls. A bundler cannot leave the server out of json-rpc-2.0, because that is CommonJS. */
const callsOnly: Plugin = {
  name: "calls-only",
  resolveId: {
    filter: { id: /^json-rpc-2\.0$/ },
    handler: () => join(root, "node_modules", "json-rpc-2.0", "dist", "client.js"),
  },
};

/** A browser makes ids itself. Those of a page need no order in time. */
const browserIds: Plugin = {
  name: "browser-ids",
  resolveId: { filter: { id: /^uuid$/ }, handler: () => "\0browser-ids" },
  load: {
    filter: { id: /^\0browser-ids$/ },
    handler: () => "export const v7 = () => crypto.randomUUID();",
  },
};

/** What each error means is for documents. A browser shows the daemon's words. */
const errorsWithoutMeanings: Plugin = {
  name: "errors-without-meanings",
  transform: {
    filter: { id: /\/protocol\/errors\.ts$/ },
    handler: (code) => ({ code: code.replace(/(: row\([^"()]*)"[^"]*"/g, '$1""'), map: null }),
  },
};

/** Writes dist/web/, with the list of its files last. Several builds at the same time leave whole files. */
export async function bundleWeb(): Promise<RolldownOutput> {
  const source = join(root, "web");
  const target = join(root, "dist", "web");
  await using build = await rolldown({
    cwd: root,
    platform: "browser",
    input: join(source, "main.tsx"),
    tsconfig: join(source, "tsconfig.json"),
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
    plugins: [lexerOnly, inPieces, callsOnly, browserIds, errorsWithoutMeanings],
    experimental: { attachDebugInfo: "none" },
  });
  const output = await build.generate({ format: "esm", minify: true, comments: false, chunkFileNames: "[name].js" });
  mkdirSync(target, { recursive: true });
  const write = (file: string, text: string): void => {
    const unfinished = join(target, `${file}.${process.pid}`);
    writeFileSync(unfinished, text);
    renameSync(unfinished, join(target, file));
  };
  const scripts = output.output.flatMap((part) => (part.type === "chunk" ? [part] : []));
  for (const { fileName, code } of scripts) write(fileName, code);
  const read = (file: string): string => readFileSync(join(source, file), "utf8");
  for (const file of ["styles.css", "places.css"]) write(file, shortened(read(file)));
  for (const file of ["icon.svg", "index.html"]) write(file, read(file));
  const listed = scripts.map(({ fileName: file }) => ({ path: `/${file}`, file, type: scriptType }));
  write("files.json", `${JSON.stringify({ files: [...files, ...listed] })}\n`);
  return output;
}

/** Styles without comments, and without white space that has no meaning. */
function shortened(styles: string): string {
  return styles
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,>]) ?/g, "$1")
    .replace(/: /g, ":")
    .replaceAll(";}", "}");
}
