import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { http } from "../../../helpers/edge.ts";
import { exchange, openPageSocket, post, signIn, startWebPage } from "../../../helpers/web-page.ts";

const get = (port: number, path = "/", headers: Record<string, string> = {}) =>
  http({ port, socketPath: "" }, { path, headers });

/** Resolves with the error of a connection; undefined: something listens. */
function refusal(port: number): Promise<string | undefined> {
  return new Promise((done) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("error", ({ code }: NodeJS.ErrnoException) => done(code));
    socket.once("connect", () => {
      socket.destroy();
      done(undefined);
    });
  });
}

const listeners = (): number => process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap").length;

test("nothing listens, is read or loaded before the first opening; closing shuts the port and ends everything", async () => {
  const before = listeners();
  await using console = startWebPage();
  const { page, files, tokens } = console;
  rmSync(join(files, "files.json"));
  expect(listeners()).toBe(before);
  expect(await page.close()).toBe(false);
  await expect(page.open({})).rejects.toMatchObject({
    kind: "web_not_built",
    message: expect.stringContaining("npm run"),
  });
  expect(listeners()).toBe(before);
  writeFileSync(join(files, "files.json"), '{"files":[{"path":"/","file":"index.html","type":"text/html"}]}');
  const open = await page.open({});
  expect(open).toMatchObject({ url: `http://127.0.0.1:${open.port}/`, code: expect.stringMatching(/^[\w-]{43}$/) });
  expect(listeners()).toBe(before + 1);
  expect((await get(open.port)).status).toBe(200);
  const token = await signIn(open);
  await using socket = await openPageSocket(open.port, token);
  expect(await page.close()).toBe(true);
  expect(await socket.closed).toEqual({ code: 4401, reason: "the token has ended" });
  expect(await refusal(open.port)).toBe("ECONNREFUSED");
  expect([listeners(), tokens.size, tokens.find(token)]).toEqual([before, 0, undefined]);

  // Only an import at run time loads it.
  const server = resolve(import.meta.dirname, "../../../../server");
  const sources = readdirSync(server, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const early = sources.filter((name) => {
    const imports = readFileSync(join(server, name), "utf8").matchAll(/^import (?!type )[^;]*?from "([^"]+)"/gms);
    return !name.startsWith("edge/web/") && [...imports].some(([, from = ""]) => /\/web\//.test(from));
  });
  expect(early).toEqual([]);
});

test("the listener ends with the last unused code and the last token, and another opening has another port", async () => {
  await using console = startWebPage({ limits: { webCodeMs: 1 } });
  const { page, tokens } = console;
  const late = await page.open({});
  await expect.poll(() => refusal(late.port)).toBe("ECONNREFUSED");
  const open = await page.open({ print: true });
  const token = await signIn(open);
  expect(await refusal(open.port)).toBeUndefined();
  tokens.end(tokens.find(token)?.name ?? "");
  await expect.poll(() => refusal(open.port)).toBe("ECONNREFUSED");
});

test("a port that is given is used, must be free, and is not changed while it is open", async () => {
  await using console = startWebPage();
  const { page } = console;
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => taken.once("listening", done));
  const { port } = taken.address() as { port: number };
  await expect(page.open({ port })).rejects.toMatchObject({ kind: "port_unavailable", data: { port } });
  await new Promise((done) => taken.close(done));
  expect((await page.open({ port })).port).toBe(port);
  expect((await page.open({})).port).toBe(port);
  await expect(page.open({ port: port === 65_535 ? 1 : port + 1 })).rejects.toMatchObject({ kind: "conflict" });
  await expect(page.open({ readOnly: true, bash: true })).rejects.toMatchObject({ kind: "invalid_params" });
});

test("two openings at once share one listener, and a closing in between ends what was before it", async () => {
  await using console = startWebPage();
  const { page } = console;
  const [first, second, closed, third] = await Promise.all([page.open({}), page.open({}), page.close(), page.open({})]);
  expect([first.port === second.port, closed]).toEqual([true, true]);
  expect((await exchange({ port: third.port, code: first.code })).status).toBe(401);
  expect((await exchange(third)).status).toBe(200);
});

describe("the files", () => {
  test("are those of the list, with headers that let them load nothing else", async () => {
    await using console = startWebPage();
    const { port, code } = await console.page.open({});
    const index = await get(port);
    expect(index.text).toContain("<!doctype html>");
    expect(index.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
    expect(await get(port, "/main.js")).toMatchObject({ status: 200, text: 'document.title = "console";' });
    const head = await http({ port, socketPath: "" }, { method: "HEAD", path: "/main.js" });
    expect([head.status, head.text, head.headers["content-length"]]).toEqual([200, "", "27"]);
    const paths = [
      "/unlisted.txt",
      "/files.json",
      "/../x",
      "/%2e%2e/x",
      "//",
      "/?",
      `/?${code}`,
      "/main.js?",
      "/index.html",
    ];
    for (const path of paths) expect([path, (await get(port, path)).status]).toEqual([path, 404]);
    expect((await post(port, "/", "{}")).status).toBe(401);
    expect(await get(port, "/exchange")).toMatchObject({ status: 405, headers: { allow: "POST" } });
    expect((await get(port, "/ws")).status).toBe(426);
    // None of this has used the code up.
    expect((await exchange({ port, code })).status).toBe(200);
  });

  test("are read again at each opening, and a list that leads elsewhere or is too long is refused", async () => {
    await using console = startWebPage({ limits: { maxWebFilesBytes: 1_000 } });
    const { page, files } = console;
    const { port } = await page.open({});
    writeFileSync(join(files, "main.js"), "changed");
    expect((await get(port, "/main.js")).text).not.toBe("changed");
    await page.open({});
    expect((await get(port, "/main.js")).text).toBe("changed");
    const listed = (entry: object) =>
      writeFileSync(
        join(files, "files.json"),
        JSON.stringify({ files: [{ path: "/", file: "index.html", type: "text/html", ...entry }] }),
      );
    for (const entry of [
      { file: "../x" },
      { file: "/etc/passwd" },
      { file: "a/../../x" },
      { path: "x" },
      { type: "a\r\nb: c" },
      { type: 1 },
    ]) {
      listed(entry);
      const message = expect.stringContaining("an entry that is not valid");
      await expect(page.open({})).rejects.toMatchObject({ kind: "web_not_built", message });
    }
    listed({ path: "/other" });
    await expect(page.open({})).rejects.toMatchObject({ kind: "web_not_built" });
    writeFileSync(join(files, "index.html"), "x".repeat(1_001));
    listed({});
    await expect(page.open({})).rejects.toMatchObject({
      kind: "web_not_built",
      message: expect.stringContaining("1000 bytes"),
    });
    expect((await get(port, "/main.js")).text).toBe("changed");
  });
});

test("signing in gives a token of the asked rights, the daemon's name, and a title of host and state directory", async () => {
  await using console = startWebPage({ taken: ["web-2"] });
  const { page, tokens } = console;
  const rights = async (params: object) => {
    const open = await page.open(params);
    const { body, headers, status } = await exchange(open);
    expect([status, headers["cache-control"], Object.keys(body).sort()]).toEqual([
      200,
      "no-store",
      ["instance", "letterKeys", "title", "token"],
    ]);
    expect(body).toMatchObject({ instance: "this-daemon", title: `${hostname()}:/state`, letterKeys: false });
    const grant = tokens.find(body.token);
    expect(open.tokenName).toBe(grant?.name);
    return [
      grant?.name,
      ...["observe", "prompt", "bash", "payload", "admin"].filter((one) => grant?.allows(one as never)),
    ];
  };
  expect(await rights({})).toEqual(["web-1", "observe", "prompt"]);
  expect(await rights({ readOnly: true })).toEqual(["web-3", "observe"]);
  expect(await rights({ readOnly: true, payload: true })).toEqual(["web-4", "observe", "payload"]);
  expect(await rights({ bash: true, payload: true })).toEqual(["web-5", "observe", "prompt", "bash", "payload"]);
  expect(tokens.list().map(({ name }) => name)).toEqual(["web-1", "web-3", "web-4", "web-5"]);
});

test("signing out ends the token and its connections, those of other tabs included", async () => {
  await using console = startWebPage();
  const open = await console.page.open({});
  const other = await signIn(await console.page.open({}));
  const token = await signIn(open);
  await using tab = await openPageSocket(open.port, token);
  await using kept = await openPageSocket(open.port, other);
  const signedOut = await post(open.port, "/sign-out", "", { authorization: `Bearer ${token}` });
  expect([signedOut.status, signedOut.text]).toEqual([200, "{}"]);
  expect((await tab.closed).code).toBe(4401);
  await expect(openPageSocket(open.port, token)).rejects.toThrow("401");
  expect((await post(open.port, "/sign-out", "", { authorization: `Bearer ${token}` })).status).toBe(401);
  expect((await kept.call("session/list")).result).toEqual({ sessions: [] });
});
