import { expect, it } from "vitest";
import { authorization, http, startEdge } from "../../helpers/edge.ts";

it.each(["/", "/index.html", "/ui", "/favicon.ico", "/v1"])("there is no page for a browser at %s", async (path) => {
  await using edge = await startEdge();
  expect((await http(edge, { path })).status).toBe(401);
  const answer = await http(edge, { path, headers: { ...authorization, accept: "text/html" } });
  expect(answer).toMatchObject({
    status: 404,
    headers: { "content-type": expect.stringMatching(/^application\/problem\+json/) },
  });
  expect(answer.headers["set-cookie"]).toBeUndefined();
});
