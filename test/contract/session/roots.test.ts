import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startCore } from "../../helpers/core.ts";

const outside = { kind: "cwd_invalid", data: { name: "cwd_invalid", reason: "outside" } };

test("no pi is started outside the roots: not for a new session, a known one, or an opened one", async () => {
  const roots: string[] = [];
  await using core = await startCore({ roots: () => [...roots] });
  const other = join(core.root, "other");
  mkdirSync(other);
  roots.push(other);
  await core.restart();
  await expect(core.registry.create({ cwd: core.cwd })).rejects.toMatchObject(outside);
  expect(existsSync(join(core.root, "agent"))).toBe(false);

  roots.length = 0;
  await core.restart();
  const { sessionId, file } = await core.registry.create({ cwd: core.cwd });

  roots.push(other);
  await core.restart();
  await expect(core.registry.get(sessionId).awake()).rejects.toMatchObject(outside);

  // A session's file without entries is deleted with the session.
  const header = readFileSync(file);
  await core.registry.close(sessionId);
  writeFileSync(file, header);
  await expect(core.registry.files.open({ file })).rejects.toMatchObject(outside);
  expect(core.registry.find(sessionId)).toBeUndefined();
  roots.push(core.cwd);
  await core.restart();
  expect((await core.registry.files.open({ file })).sessionId).toBe(sessionId);
});

test("no pi is started in a directory that was replaced by a link out of the roots", async () => {
  const roots: string[] = [];
  await using core = await startCore({ roots: () => [...roots] });
  roots.push(core.cwd);
  await core.restart();
  const project = join(realpathSync(core.cwd), "project");
  mkdirSync(project);
  const { sessionId } = await core.registry.create({ cwd: project });
  await core.restart();
  renameSync(project, join(core.root, "elsewhere"));
  symlinkSync(join(core.root, "elsewhere"), project);
  await expect(core.registry.get(sessionId).awake()).rejects.toMatchObject(outside);
});

test("a hibernated session is not woken in a directory that was replaced by a link out of the roots", async () => {
  await using core = await startCore();
  const project = join(realpathSync(core.cwd), "project");
  mkdirSync(project);
  const { sessionId } = await core.registry.create({ cwd: project });
  await core.restart();
  renameSync(project, join(core.root, "elsewhere"));
  symlinkSync(join(core.root, "elsewhere"), project);
  const moved = { kind: "cwd_invalid", data: { name: "cwd_invalid", cwd: project, reason: "moved" } };
  await expect(core.registry.get(sessionId).awake()).rejects.toMatchObject(moved);
  rmSync(project);
  renameSync(join(core.root, "elsewhere"), project);
  await core.registry.get(sessionId).awake();
});
