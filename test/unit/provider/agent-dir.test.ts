import { access, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createAgentDir } from "../../../provider/agent-dir.ts";
import { startProvider } from "../../../provider/server.ts";

async function json(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, "utf8"));
}

test("an agent directory names the provider's models for each API, and has settings for tests", async () => {
  await using provider = await startProvider({ apiKey: "key-of-the-test" });
  await using dir = await createAgentDir({ provider });
  expect(dir.env).toMatchObject({ PI_CODING_AGENT_DIR: dir.path, PI_OFFLINE: "1" });
  expect(dir.model).toBe("scripted/model-1");
  expect(dir.models).toContain("scripted-anthropic/model-2");
  expect(await json(join(dir.path, "models.json"))).toMatchObject({
    providers: {
      scripted: {
        api: "openai-completions",
        baseUrl: provider.baseUrls.openai,
        apiKey: "key-of-the-test",
        models: [{ id: "model-1" }, { id: "model-2" }],
      },
      "scripted-responses": { api: "openai-responses", baseUrl: provider.baseUrls.openai },
      "scripted-anthropic": { api: "anthropic-messages", baseUrl: provider.baseUrls.anthropic },
      "scripted-google": { api: "google-generative-ai", baseUrl: provider.baseUrls.google },
    },
  });
  expect(await json(join(dir.path, "settings.json"))).toMatchObject({
    defaultProvider: "scripted",
    defaultModel: "model-1",
    cacheWarming: "off",
    retry: { baseDelayMs: 20 },
  });
});

test("models, settings and the default can be replaced by the caller", async () => {
  await using provider = await startProvider();
  await using dir = await createAgentDir({
    provider,
    models: [{ id: "small", contextWindow: 8_000, promptCache: { short: 300 } }],
    defaultProvider: "scripted-anthropic",
    settings: { cacheWarming: "idle", retry: { enabled: false } },
  });
  expect(dir.model).toBe("scripted-anthropic/small");
  expect(await json(join(dir.path, "models.json"))).toMatchObject({
    providers: {
      scripted: { models: [{ id: "small", contextWindow: 8_000, maxTokens: 16_384, promptCache: { short: 300 } }] },
    },
  });
  expect(await json(join(dir.path, "settings.json"))).toMatchObject({
    defaultProvider: "scripted-anthropic",
    defaultModel: "small",
    cacheWarming: "idle",
    retry: { enabled: false },
  });
});

test("it is private to its owner, and removed by dispose", async () => {
  await using provider = await startProvider();
  const dir = await createAgentDir({ provider });
  expect((await stat(dir.path)).mode & 0o777).toBe(0o700);
  expect((await stat(join(dir.path, "models.json"))).mode & 0o777).toBe(0o600);
  await Promise.all([dir.dispose(), dir.dispose()]);
  await dir.dispose();
  await expect(access(dir.path)).rejects.toThrow("ENOENT");
});
