import { join } from "node:path";
import { expect, test } from "vitest";
import { answer } from "../../provider/reply.ts";
import { Scene } from "../e2e/cli/scene.ts";
import { Browser, bundle, Site } from "./chromium.ts";

const page = await bundle(join(import.meta.dirname, "page.ts"));

test("a page of an allowed origin uses the client library; a page of another origin can do nothing", async () => {
  await using scene = await Scene.open({ script: [answer("Something, for a page."), answer("I have it.")] });
  const order = () => ({ url: scene.daemonFile?.url, token: scene.daemonFile?.token, cwd: scene.cwd });
  await using allowed = await Site.open(page, order);
  await using foreign = await Site.open(page, order);
  await scene.json(["start", "--allow-origins", allowed.origin]);

  await using first = new Browser(`${allowed.origin}/`);
  expect(await allowed.told).toEqual({
    text: expect.stringContaining("Something, for a page."),
    state: expect.stringMatching(/^(delivered|answered)$/),
    http: ["refused", "refused", "refused"],
  });
  expect(scene.provider.requests.at(-1)?.countText("From a page: 世界", { roles: ["user"] })).toBe(1);

  await using second = new Browser(`${foreign.origin}/`);
  expect(await foreign.told).toEqual({ error: "ConnectionFailedError", http: ["refused", "refused", "refused"] });
  expect((await scene.json<{ sessions: unknown[] }>(["ls"])).sessions).toHaveLength(1);
  void [first, second];
});
