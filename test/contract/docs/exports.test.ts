import { expect, test } from "vitest";
import { exportNotes } from "../../../context/document/export-notes.ts";
import { STATE_EVENT_PREFIX } from "../../../context/document/native-entry.ts";
import { nativeEventTypes } from "../../../context/document/native-event.ts";
import { found, read, spansOf } from "./documents.ts";

const [section = ""] = found(read("docs/context.md"), /^## Exports\n(.*)/gms);

test("docs/context.md explains every possible loss of an export, and only those", () => {
  const [table = ""] = found(section, /^\| note \| means \|\n(.*?)\n\n/gms);
  const notes = table.split("\n").flatMap((row) => spansOf(row.split("|")[1] ?? ""));
  expect(new Set(notes)).toEqual(new Set(exportNotes));
});

test("docs/context.md has the types of the events that an export makes", () => {
  const types = [...Object.values(nativeEventTypes), STATE_EVENT_PREFIX];
  expect(spansOf(section)).toEqual(
    expect.arrayContaining(types.map((type) => (type.endsWith(":") ? `${type}TYPE` : type))),
  );
});
