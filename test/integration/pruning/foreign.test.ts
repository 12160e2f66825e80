import { expect, test } from "vitest";
import { answer, call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { startPi } from "../extension/driver.ts";
import { degradedOf, named, prompt } from "./visible.ts";

test.each(["before", "after"] as const)(
  "changes to a request by an extension loaded %s ours are left alone, and reported if they are invalid",
  async (place) => {
    await using provider = await startProvider({ strict: false });
    const fixtures = { after: ["emitting"], ...(place === "before" ? { before: ["foreign-edits"] } : {}) };
    if (place === "after") fixtures.after = ["emitting", "foreign-edits"];
    await using pi = await startPi({ provider, pruning: { enabled: true }, ...fixtures });
    const asked = async (message: string) => {
      provider.add(answer("Done."));
      await prompt(pi, message);
      return provider.requests.at(-1);
    };
    provider.add(answer(call("emit", { text: "output" })));
    await asked("first");
    const own = { m001: "first", m002: "output" };

    // A message without an entry belongs to another extension: it has no tag, and ours have theirs.
    const inserted = await asked("INSERT");
    expect(inserted?.hasText("INSERTED")).toBe(true);
    expect(Object.keys(named(inserted))).toEqual(["m001", "m002", "m003"]);
    expect(named(await asked("CLONE"))).toEqual({ ...own, m003: "INSERT", m004: "CLONE" });
    // Hooks that throw never stop a request.
    expect(named(await asked("THROW"))).toEqual({ ...own, m003: "INSERT", m004: "CLONE", m005: "THROW" });
    expect(degradedOf(pi)).toEqual([]);

    const doubled = await asked("DOUBLE");
    if (place === "before") {
      expect(named(doubled)).toEqual({});
      expect(degradedOf(pi)).toEqual([
        "mapping: The messages of a request cannot be told from each other: it goes out unpruned.",
      ]);
    } else expect(Object.keys(named(doubled))).toHaveLength(6);
    const dropped = await asked("DROP");
    expect(dropped?.hasText("first", { roles: ["user"] })).toBe(false);
    const changed = "foreign_edit: Another extension has changed or left out messages that pruning has given to pi.";
    const noUser =
      "foreign_edit: Another extension has changed the messages of a request so that it has no message of the user in front.";
    expect(degradedOf(pi)).toEqual([noUser, ...(place === "after" ? [changed] : [])]);
    await asked("ORPHAN");
    expect(degradedOf(pi)).toEqual([
      "foreign_edit: Another extension has changed the messages of a request so that it has a result without its call.",
    ]);
  },
);
