import { expect, test } from "vitest";
import { highlight } from "../../../../cli/attach/highlight.ts";

const marked = (code: string, language?: string): string =>
  highlight(code, language, (format, text) => `<${format}:${text}>`).join("\n");

test("comments, strings, numbers and keywords are painted, row by row", () => {
  expect(marked("const a = 'b'; // c", "ts")).toBe("<magenta:const> a = <green:'b'>; <dim:// c>");
  expect(marked("/* a\nb */ x1 = 12.5", "js")).toBe("<dim:/* a>\n<dim:b */> x1 = <yellow:12.5>");
  expect(marked('def f(): # why\n  """a\n  b"""', "python")).toBe(
    '<magenta:def> f(): <dim:# why>\n  <green:"""a>\n<green:  b""">',
  );
  expect(marked("SELECT 1 -- all", "sql")).toBe("SELECT <yellow:1> <dim:-- all>");
  expect(marked('<a href="b">', "html")).toBe('<magenta:<a> href=<green:"b"><magenta:>>');
  expect(marked("if x", "Go title=x")).toBe("<magenta:if> x");
  expect(marked("+a\n-b\n c\n@@ 1", "diff")).toBe("<green:+a>\n<red:-b>\n c\n<cyan:@@ 1>");
});

test("code of an unknown language, and unfinished code, stay complete", () => {
  expect(marked("const a", "brainfuck")).toBe("const a");
  expect(marked("const a", "constructor")).toBe("const a");
  expect(marked("const a")).toBe("const a");
  for (const unfinished of ['"abc', "/* abc", "`abc", '"""abc', "'a\\"]) {
    for (const language of ["ts", "py", "sql", "html"]) {
      expect(highlight(unfinished, language, (_, text) => text)).toEqual([unfinished]);
    }
  }
});
