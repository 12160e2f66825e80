import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RolldownOutput, rolldown } from "rolldown";
import { root } from "./command.ts";

/** The files that the daemon serves to a browser: the path in the address, the file in dist/web/, the content type. */
const files = [
  { path: "/", file: "index.html", type: "text/html; charset=utf-8" },
  { path: "/main.js", file: "main.js", type: "text/javascript; charset=utf-8" },
  { path: "/styles.css", file: "styles.css", type: "text/css; charset=utf-8" },
  { path: "/icon.svg", file: "icon.svg", type: "image/svg+xml" },
];

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
    // The list of the files has one script.
    experimental: { attachDebugInfo: "none" },
  });
  const output = await build.generate({ format: "esm", minify: true, comments: false, codeSplitting: false });
  mkdirSync(target, { recursive: true });
  const write = (file: string, text: string): void => {
    const unfinished = join(target, `${file}.${process.pid}`);
    writeFileSync(unfinished, text);
    renameSync(unfinished, join(target, file));
  };
  write("main.js", output.output[0].code);
  for (const file of ["styles.css", "icon.svg", "index.html"]) write(file, readFileSync(join(source, file), "utf8"));
  write("files.json", `${JSON.stringify({ files })}\n`);
  return output;
}
