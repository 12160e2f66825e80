import { h } from "preact";
import { expect, test } from "vitest";
import { visibleParts } from "../../../web/text/hidden-characters.ts";
import { Visible } from "../../../web/text/visible.tsx";
import { hostileTexts } from "../../helpers/hostile-texts.ts";
import { shown, textOf } from "./elements.ts";

const visible = (text: string): string =>
  visibleParts(text)
    .map(({ kind, text: part }) => (kind === "name" ? `[${part}]` : part))
    .join("");

test.each([
  ["rm -rf / # \u202edone", "rm -rf / # [RLO]done"],
  ["\u2066a\u2069\u200b\u00adb", "[LRI]a[PDI][ZWSP][SHY]b"],
  ["\u001b[31mred\u0007", "[ESC][31mred[BEL]"],
  ["a\u0000b\rc\u0085d\u2028e", "a[NUL]b[CR]c[NEL]d[LSEP]e"],
  ["no\u00a0break \u2800\u3164", "no[NBSP]break [U+2800][U+3164]"],
  ["\ud800x", "[U+D800]x"],
  ["\u{e0069}\u{e0100}\ue000", "[U+E0069][U+E0100][U+E000]"],
  ["Za\u0300\u0301\u0302\u0303\u0304\u0305", "Za\u0300\u0301\u0302\u0303[U+0304][U+0305]"],
  ["two lines\n\tand a tab", "two lines\n\tand a tab"],
  ["\u05e9\u05dc\u05d5\u05dd na\u00efve 日本語", "\u05e9\u05dc\u05d5\u05dd na\u00efve 日本語"],
  [
    "\u26a0\ufe0f \u{1f469}\u200d\u{1f4bb} \u{1f44d}\u{1f3fd}",
    "\u26a0\ufe0f \u{1f469}\u200d\u{1f4bb} \u{1f44d}\u{1f3fd}",
  ],
  ["pass\ufe0fword\u200d", "pass[U+FE0F]word[ZWJ]"],
])("shows %j as %j", (text, expected) => {
  expect(visible(text)).toBe(expected);
  expect(textOf(shown(h(Visible, { text })))).toBe(expected.replaceAll(/\[([A-Z0-9+]+)\]/g, "$1"));
});

test.each(hostileTexts)("leaves no hidden character in $name", ({ text }) => {
  const left = visibleParts(text).flatMap((part) => (part.kind === "text" ? [part.text] : []));
  expect(left.join("")).not.toMatch(/(?![\n\t ])[\p{C}\p{Z}]/u);
});
