import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { isRecord } from "../../../protocol/objects.ts";
import { contextMessages, statsOf } from "../../../server/custody/stored-branch.ts";
import { installedPi } from "../../helpers/pi-reader.ts";
import { randomSession } from "../../helpers/random-session.ts";
import { Random } from "../../soak/random.ts";

test("the context of a stored session is the one that pi builds from it", async () => {
  const { buildSessionContext } = (await import(pathToFileURL(join(installedPi, "session-manager.js")).href)) as {
    buildSessionContext(entries: readonly unknown[]): { readonly messages: readonly unknown[] };
  };
  const random = new Random(1);
  for (let round = 0; round < 100; round += 1) {
    const entries = randomSession(random, 40)
      .entries.filter(isRecord)
      .filter(({ type }) => type !== "session");
    const leafId = String(entries.at(-1)?.["id"]);
    expect(contextMessages({ entries, leafId, at: 0 })).toEqual(buildSessionContext(entries).messages);
  }
});

test("entries of any form have checksums", () => {
  const entries = [
    {},
    { type: "usage", usage: 1 },
    { type: "message" },
    { type: "message", message: { role: "assistant" } },
  ];
  expect(statsOf({ entries, leafId: null, at: 0 })).toMatchObject({ totalMessages: 1, cost: 0, tokens: { total: 0 } });
});
