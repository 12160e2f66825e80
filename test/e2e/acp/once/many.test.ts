import { describe, expect, test } from "vitest";
import { answer, call } from "../../../../provider/reply.ts";
import { clientState } from "../../../helpers/acp-client-state.ts";
import { patience } from "../../../helpers/patience.ts";
import type { Editor, Json } from "../editor.ts";
import { Scene, transports } from "../scene.ts";

// The provider answers each prompt with the prompt's words, where nothing else is written.

const kills = Number(process.env["PI_RPCD_TEST_KILLS"] ?? 20);
const yes: Json = { outcome: { outcome: "selected", optionId: "0" } };

describe.each(transports)("over %s", (over) => {
  test("a hundred prompts on five sessions at once are answered in their own sessions", async () => {
    await using scene = await Scene.open([], { over });
    const editor = await scene.editor();
    const sessions = await Promise.all(Array.from({ length: 5 }, () => editor.create(scene.cwd)));
    await Promise.all(
      sessions.map(async (sessionId, number) => {
        for (let count = 0; count < 20; count += 1) {
          const text = `Prompt ${count} of session ${number}.`;
          expect(await editor.prompt(sessionId, text)).toMatchObject({ stopReason: "end_turn" });
          const said = editor.text(sessionId);
          expect(said.split(text)).toHaveLength(2);
          expect(said.lastIndexOf(`Prompt ${count} of`)).toBe(said.lastIndexOf("Prompt "));
        }
      }),
    );
    for (const [number, sessionId] of sessions.entries())
      expect(editor.text(sessionId)).not.toMatch(new RegExp(`of session (?!${number})`));
  });

  test("two editors and a push on one session get every message once and in order, and each question has one answer", async () => {
    const runs = 40;
    await using scene = await Scene.open([], { over });
    const editors = [await scene.editor({ answer: () => yes }), await scene.editor({ answer: () => yes })] as const;
    const sessionId = await editors[0].create(scene.cwd);
    await editors[1].call("session/resume", { sessionId, cwd: scene.cwd });
    const session = scene.stage.client.session(sessionId);
    for (let run = 0; run < runs; run += 1) {
      const editor = editors[run % 2] as Editor;
      const push = session.push({ customType: "note", content: `Push ${run}.`, triggerTurn: false });
      await push.accepted;
      const isQuestion = run % 5 === 4;
      const text = isQuestion ? `/ask [{"method":"confirm","title":"Question ${run}?"}]` : `Prompt ${run}.`;
      expect(await editor.prompt(sessionId, text)).toMatchObject({ stopReason: "end_turn" });
      if (!isQuestion) await push.answered;
    }
    await session.waitForIdle();
    const { cursor } = await session.get();
    expect(cursor).toBeGreaterThan(runs);
    const loader = await scene.editor();
    await loader.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
    const answered = (editor: Editor): readonly string[] => editor.text(sessionId).match(/Prompt \d+\./g) ?? [];
    const asked = Array.from({ length: runs }, (_, run) => run).filter((run) => run % 5 !== 4);
    for (const editor of [...editors, loader]) {
      await expect.poll(() => answered(editor), patience).toEqual(asked.map((run) => `Prompt ${run}.`));
      const pushed = editor.of(sessionId, "user_message_chunk").map(({ content }) => String((content as Json)["text"]));
      const pushes = pushed.filter((text) => text.startsWith("Push"));
      expect(new Set(pushes).size).toBe(pushes.length);
      expect(pushes).toHaveLength(runs);
    }
    const confirmed = editors.map((editor) => editor.text(sessionId).match(/\[(?:true|false)\]/g)?.length);
    expect(confirmed).toEqual([runs / 5, runs / 5]);
  });

  test("49 sessions with open questions do not hold up another one", async () => {
    await using scene = await Scene.open([], { over });
    const editor = await scene.editor();
    const waiting = await Promise.all(Array.from({ length: 49 }, () => editor.create(scene.cwd)));
    const prompts = waiting.map((sessionId) =>
      editor.prompt(sessionId, `/ask [{"method":"confirm","title":"Go on?"}]`),
    );
    await editor.until(() => editor.asked.length === waiting.length);
    const quiet = await editor.create(scene.cwd);
    expect(await editor.prompt(quiet, "Hello.")).toMatchObject({ stopReason: "end_turn" });
    for (const sessionId of waiting) editor.notify("session/cancel", { sessionId });
    await Promise.all(prompts);
  });

  test.each([
    { whom: "an editor", isKillable: false },
    { whom: "an editor, with its daemon,", isKillable: true },
  ])("$whom that is killed again and again finds what one that stayed has", async ({ isKillable }) => {
    const script = Array.from({ length: 10 * kills }, (_, index) =>
      index % 2 === 0 ? answer(`Part ${index}. `, call("bash", { command: `echo ${index}` })) : answer(`End ${index}.`),
    );
    await using scene = await Scene.open(script, { isKillable, over });
    // A connection to the daemon itself does not outlive it.
    const stayed = await scene.editor(isKillable ? { over: "stdin and stdout" } : {});
    const sessionId = await stayed.create(scene.cwd);
    for (let kill = 0; kill < kills; kill += 1) {
      const editor = await scene.editor();
      await editor.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
      const before = editor.messages;
      const prompt = editor.prompt(sessionId, `Prompt ${kill}.`).catch(() => {});
      const some = editor.until(() => editor.messages >= before + 1 + (kill % 12)).catch(() => {});
      // A prompt that was steered into the end of a run brings few messages.
      await Promise.race([prompt, some]);
      await editor.kill();
      if (isKillable && kill % 4 === 3) await scene.stage.restart();
    }
    await scene.stage.client.session(sessionId).waitForIdle();
    const loader = await scene.editor();
    await loader.call("session/load", { sessionId, cwd: scene.cwd, mcpServers: [] });
    const wanted = clientState(loader.of(sessionId) as never);
    const found = () => clientState(stayed.of(sessionId) as never);
    await expect.poll(() => found().timeline, patience).toEqual(wanted.timeline);
    expect(found().tools).toEqual(wanted.tools);
  });
});
