import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { answer } from "../../provider/reply.ts";
import { lines, Scene } from "../e2e/cli/scene.ts";
import { program } from "../helpers/programs.ts";

const root = join(import.meta.dirname, "..", "..");
const asking = join(root, "test", "fixtures", "extension", "asking.ts");
const connect = [...program, "connect", "--framing", "content-length"];

/** What the user of an editor saw, one step per line. */
type Step = Readonly<Record<string, unknown>>;

const editors: readonly (readonly [name: string, program: string, args: readonly string[]])[] = [
  [
    "Emacs, by jsonrpc.el",
    "emacs",
    ["-Q", "--batch", "-L", join(root, "examples", "emacs"), "-l", join(root, "test", "editors", "scenario.el")],
  ],
  [
    "Neovim, by vim.lsp.rpc",
    "nvim",
    [
      "--clean",
      "--headless",
      "--cmd",
      `set runtimepath+=${join(root, "examples", "neovim")}`,
      "-c",
      `luafile ${join(root, "test", "editors", "scenario.lua")}`,
    ],
  ],
];

function play(scene: Scene, program: string, args: readonly string[]): Promise<{ code: number | null; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number | null; text: string }>();
  const editor = spawn(program, args, {
    cwd: scene.cwd,
    env: { ...scene.env, HOME: scene.root, PI_RPCD_CONNECT: connect.join("\n") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  let words = "";
  editor.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  editor.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    words += chunk;
  });
  editor.once("error", reject);
  editor.once("close", (code) => {
    if (code !== 0) process.stderr.write(words);
    resolve({ code, text });
  });
  return promise;
}

describe.each(editors)("a plugin for %s", (_name, program, args) => {
  test("prompts, streams into a buffer, pushes a selection until it is delivered, and answers dialogs", async () => {
    await using scene = await Scene.open({ script: [answer("Built: Grüße zurück, 世界."), answer("I have read it.")] });
    const extensions = join(scene.env["PI_CODING_AGENT_DIR"] ?? "", "extensions");
    mkdirSync(extensions, { recursive: true });
    writeFileSync(join(extensions, "asking.ts"), `export { default } from ${JSON.stringify(asking)};\n`);
    writeFileSync(join(scene.cwd, "notes.txt"), "Erste Zeile: süß\nthe second line 世界\n");

    const { code, text } = await play(scene, program, args);
    const steps = lines<Step>(text);
    expect(code).toBe(0);
    expect(steps.at(-1)).toEqual({ ended: true });
    expect(steps.some(({ delivered }) => delivered !== undefined)).toBe(true);
    expect(steps.flatMap(({ question }) => (question === undefined ? [] : [question]))).toEqual([
      expect.stringContaining("Which one?"),
      expect.stringContaining("Sure? For good."),
    ]);
    const buffer = steps.find((step) => "buffer" in step)?.["buffer"];
    expect(buffer).toContain("> Build it: Grüße 世界");
    expect(buffer).toContain("Built: Grüße zurück, 世界.");
    expect(buffer).toContain("I have read it.");
    const [first, second] = scene.provider.requests;
    expect(scene.provider.requests).toHaveLength(2);
    expect(first?.countText("Build it: Grüße 世界", { roles: ["user"] })).toBe(1);
    expect(second?.countText("Erste Zeile: süß\nthe second line 世界", { roles: ["user"] })).toBe(1);
  });
});
