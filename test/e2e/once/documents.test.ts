import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold } from "../../../provider/reply.ts";
import { fencesOf, read, root } from "../../contract/docs/documents.ts";
import { Scene } from "../cli/scene.ts";

/**
 * A text without the values that differ between runs: ids, times, amounts, and the spaces that depend on their width.
 */
function withoutValues(text: string): readonly string[] {
  return text
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|…[0-9a-f]{8}/g, "ID")
    .replaceAll(/\d\d:\d\d:\d\d|\d[\d.]*k?(?= (?:s|ms|tokens|out)\b)|\$[\d.]+/g, "N")
    .split("\n")
    .map((line) => line.trim().replaceAll(/ {2,}|─+/g, " "))
    .filter((line) => line !== "");
}

test("the commands of README.md print the documented output, and attach shows their run", async () => {
  const blocks = fencesOf(read("README.md"));
  const first = blocks.findIndex(({ text }) => text.startsWith("pi-rpcd new"));
  const [shell, pushed, attached] = blocks.slice(first);
  const gate = new Gate();
  const script = [
    answer("The suite is slow. ", "I run it.", call("bash", { command: "./run-tests" })),
    answer(
      "One test fails: parser.test.ts.\n",
      hold(gate),
      "The build on main is green, so the fault comes from this branch.\n",
    ),
  ];
  await using scene = await Scene.open({ script });
  // It ends when the push waits in the helper.
  const tests = "#!/bin/sh\nuntil [ -e held ]; do sleep 0.1; done\necho '42 passed, 1 failed: parser.test.ts'\n";
  writeFileSync(join(scene.cwd, "run-tests"), tests, { mode: 0o755 });

  const [create = "", ...others] = shell?.text.split("\n") ?? [];
  const created = await scene.shell(create);
  const view = scene.start(["attach", "last"]);
  await view.said(/ idle ──/);
  const output = await scene.shell(others.join("\n"), (text) => {
    if (text.includes("held")) writeFileSync(join(scene.cwd, "held"), "");
  });
  await view.said(/ delivered\n/);
  gate.open();
  await view.said(/── settled .*──/);
  view.kill("SIGINT");
  const { stdout } = await view.ended;
  expect(withoutValues(created + output)).toEqual(withoutValues(pushed?.text ?? ""));
  const shown = stdout.replace(scene.cwd, "/home/ada/project");
  // The receipt can arrive before or after the beginning of the answer.
  expect(withoutValues(shown).toSorted()).toEqual(withoutValues(attached?.text ?? "").toSorted());
});

test("the examples of docs/clients.md list sessions over a pipe, and adopt the stored ones", async () => {
  await using scene = await Scene.open();
  const { sessionId } = await scene.json<{ readonly sessionId: string }>(["new"]);
  await scene.run(["prompt", sessionId, "Hello"]);
  const fences = fencesOf(read("docs/clients.md"));
  const piped = fences.find(({ text }) => text.includes("pi-rpcd connect"))?.text ?? "";
  const listed = JSON.parse(await scene.shell(piped)) as { readonly result: { readonly sessions: readonly object[] } };
  expect(listed.result.sessions).toEqual([expect.objectContaining({ sessionId })]);

  await scene.json(["close", sessionId]);
  const program = fences.find(({ info }) => info[0] === "ts")?.text ?? "";
  const file = join(scene.root, "adopt.ts");
  writeFileSync(file, program.replace('"pi-rpcd/client"', JSON.stringify(join(root, "client", "index.ts"))));
  expect(await scene.shell(`"${process.execPath}" "${file}"`)).toBe(`${sessionId}\n`);
});
