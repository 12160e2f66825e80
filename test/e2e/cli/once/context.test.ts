import { execFile } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { fencesOf, read } from "../../../contract/docs/documents.ts";
import { main } from "../../../helpers/programs.ts";
import { errorName, Scene } from "../scene.ts";

const call = { type: "toolCall", id: "c9", name: "bash", arguments: {} };

/** The blocks of docs/context.md about the command line: a document, and shell commands. */
function documented(): { readonly document: string; readonly script: string } {
  const [, section = ""] = /\n## On the command line\n(.*?)\n## /s.exec(read("docs/context.md")) ?? [];
  const [document, script] = ["json", "bash"].map(
    (kind) => fencesOf(section).find(({ info }) => info[0] === kind)?.text,
  );
  return { document: document ?? "", script: script ?? "" };
}

function roles(scene: Scene): readonly string[] | undefined {
  return scene.provider.requests.at(-1)?.messages.map(({ role }) => role);
}

test("the commands in docs/context.md turn a document into a session's past, and export it again", async () => {
  await using scene = await Scene.open();
  const { document, script } = documented();
  const at = (name: string): string => join(scene.cwd, name);
  writeFileSync(at("past.json"), document);
  const command = `"${process.execPath}" --disable-warning=ExperimentalWarning "${main}"`;
  const lines = script.replaceAll("npm run --silent pi-rpcd --", command);
  expect(lines).not.toBe(script);
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", `${lines}\necho "$session"`], {
    cwd: scene.cwd,
    env: scene.env,
  });
  const said = stdout.trimEnd().split("\n");
  const session = said.at(-1) ?? "";
  expect(said.at(-2)).toBe(at("now.json"));
  expect(stdout).toMatch(/^mode +session\nitems +4 of 4 nodes; 1 tool call with its result\n/);
  expect(stdout).toContain("Echo: And three times that?");
  expect(roles(scene)).toEqual(["system", "user", "assistant", "tool", "assistant", "user"]);
  const [, , asked, answered] = scene.provider.requests[0]?.messages ?? [];
  expect(asked?.toolCalls).toEqual([{ id: "c1", name: "bash", arguments: { command: "expr 2 + 2" } }]);
  expect(answered?.toolResults).toEqual([{ callId: "c1", text: "4", isError: false }]);

  expect(statSync(at("now.json")).mode & 0o777).toBe(0o600);
  const exported = JSON.parse(readFileSync(at("now.json"), "utf8")) as { items: { role: string; content: unknown }[] };
  expect(exported.items.map(({ role }) => role)).toEqual([
    ...["user", "assistant", "toolResult", "assistant", "user", "assistant"],
  ]);
  const again = await scene.run(["context", "export", session, "--output", "now.json", "--json"]);
  expect([again.code, errorName(again.stderr)]).toEqual([1, "file_exists"]);
  const inspected = await scene.json<{ mode: string }>(["context", "inspect", session]);
  expect(inspected).toMatchObject({ mode: "session", counts: { items: 4, pairs: 1 }, repairs: [] });

  const dryRun = ["context", "inspect", session, "--model", "scripted-anthropic/model-1"];
  expect(await scene.json(dryRun)).toMatchObject({ mode: "session", counts: { items: 6, pairs: 1 }, warnings: [] });

  // From a session, for another model; and from a file that is too long for a call.
  const other = await scene.run(["context", "import", session, "--model", "scripted-anthropic/model-1"]);
  expect([other.code, other.stderr]).toEqual([0, expect.stringMatching(/^context: 6 messages, about \d+ tokens\n$/)]);
  expect((await scene.run(["prompt", other.stdout.trim(), "And now?"])).code).toBe(0);
  expect(scene.provider.requests.at(-1)).toMatchObject({ api: "anthropic", violations: [] });
  expect(roles(scene)).toEqual(["system", "user", "assistant", "user", "assistant", "user", "assistant", "user"]);

  const long = { ...JSON.parse(document), nodes: undefined, leafId: undefined };
  const items = [
    { role: "user", content: `Read this. ${"word ".repeat(300_000)}` },
    { role: "assistant", content: [], toolCalls: [call] },
    { role: "toolResult", toolCallId: "nobody", content: "x" },
  ];
  writeFileSync(at("long.json"), JSON.stringify({ ...long, items }));
  const refused = await scene.run(["context", "import", "long.json", "--on-overflow", "error", "--json"]);
  expect([refused.code, errorName(refused.stderr)]).toEqual([1, "context_over_budget"]);
  const made = await scene.run(["context", "import", "long.json", "--max-tokens", "none"]);
  expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^[0-9a-f-]{36}\n$/)]);
  expect(made.stderr.split("\n")).toEqual(
    expect.arrayContaining(["repaired: 1 orphan_result", "repaired: 1 missing_result"]),
  );
  const strict = await scene.run(["context", "import", "long.json", "--no-repair", "--json"]);
  expect([strict.code, errorName(strict.stderr)]).toEqual([1, "context_invalid"]);
});
