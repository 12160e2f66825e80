import { expect, test } from "vitest";
import { SignIn } from "../../../web/sign-in.ts";
import { code, credentials, FakeTabs, json } from "./fake-browser.ts";

const signedIn = { kind: "signed_in", credentials };

test("exchanges the code of the address for a token, clears the address, and keeps the token", async () => {
  const tabs = new FakeTabs();
  tabs.answer = () => json(credentials);
  const tab = tabs.tab(`#${code}`);
  expect(await new SignIn(tab).obtain()).toEqual(signedIn);
  expect(tab.cleared).toBe(1);
  expect(tabs.posts).toEqual([{ path: "/exchange", body: { code }, token: undefined }]);
  expect([...tab.kept.values()].join()).not.toContain(code);
  // The same tab, loaded again.
  expect(await new SignIn(tabs.tab("", tab.kept)).obtain()).toEqual(signedIn);
  expect(tabs.posts).toHaveLength(1);
});

test("says with the daemon's words that a code was refused, and keeps nothing", async () => {
  const tabs = new FakeTabs();
  tabs.answer = () => json({ title: "unauthorized", detail: "The code was used before." }, 401);
  const tab = tabs.tab(`#${code}`);
  expect(await new SignIn(tab).obtain()).toEqual({ kind: "refused", words: "The code was used before." });
  expect(tab.cleared).toBe(1);
  expect(tab.kept.size).toBe(0);
  tabs.answer = () => new Response("no JSON", { status: 200 });
  expect(await new SignIn(tabs.tab(`#${code}`)).obtain()).toMatchObject({ kind: "refused" });
});

test.each(["#", "#short", `#${code}&x=1`, "#/sessions/abc", `#<img src=x>${code}`])(
  "takes nothing but a code from the address: not %s",
  async (fragment) => {
    const tabs = new FakeTabs();
    const tab = tabs.tab(fragment);
    expect(await new SignIn(tab).obtain()).toEqual({ kind: "no_token" });
    expect(tabs.posts).toEqual([]);
    expect(tab.cleared).toBe(1);
  },
);

test("gets the token from another tab, if that one is connected", async () => {
  const tabs = new FakeTabs();
  new SignIn(tabs.tab()).connected(undefined);
  const other = new SignIn(tabs.tab());
  expect(await new SignIn(tabs.tab()).obtain()).toEqual({ kind: "no_token" });
  other.connected(credentials);
  const tab = tabs.tab();
  expect(await new SignIn(tab).obtain()).toEqual(signedIn);
  expect(tab.kept.size).toBe(1);
  other.connected(undefined);
  expect(await new SignIn(tabs.tab()).obtain()).toEqual({ kind: "no_token" });
});

test("ignores answers to other tabs, and what is no answer", async () => {
  const tabs = new FakeTabs();
  const [asking, hostile] = [tabs.tab(), tabs.tab()];
  hostile.channel.addEventListener("message", ({ data }) => {
    for (const answer of [
      null,
      1,
      { kind: "give", id: "other", credentials },
      { kind: "give", id: data.id, credentials: { token: 1 } },
    ])
      hostile.channel.postMessage(answer);
  });
  expect(await new SignIn(asking).obtain()).toEqual({ kind: "no_token" });
});

test("forgets a token, and one that is damaged is none", async () => {
  const tabs = new FakeTabs();
  const tab = tabs.tab();
  const signIn = new SignIn(tab);
  tab.storage.setItem("pi-rpcd.credentials", JSON.stringify(credentials));
  signIn.forget();
  expect(tab.kept.size).toBe(0);
  tab.storage.setItem("pi-rpcd.credentials", "{");
  expect(await signIn.obtain()).toEqual({ kind: "no_token" });
});

test("ends the token at the daemon", async () => {
  const tabs = new FakeTabs();
  const signIn = new SignIn(tabs.tab());
  await signIn.signOut(credentials);
  expect(tabs.posts).toEqual([{ path: "/sign-out", body: {}, token: "secret" }]);
});
