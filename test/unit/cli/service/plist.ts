/** The content of a property list. Throws if it is not well-formed XML, or not a property list. */
export function plistOf(xml: string): unknown {
  const tokens = Array.from(xml.matchAll(/<[^<>]*>|[^<]+/g), ([token]) => token);
  if (tokens.join("") !== xml) throw new Error("There is a < that begins no tag.");
  let at = 0;
  const next = (): string => {
    while (tokens[at]?.trim() === "") at += 1;
    const token = tokens[at];
    if (token === undefined) throw new Error("It ends too early.");
    at += 1;
    return token;
  };
  const expectTag = (tag: string): void => {
    const found = next();
    if (found !== tag) throw new Error(`${tag} is awaited, and there is ${found}.`);
  };
  const text = (tag: string): string => {
    const content = tokens[at]?.startsWith("<") === true ? "" : (tokens[at++] ?? "");
    expectTag(`</${tag}>`);
    return unescaped(content);
  };
  const value = (tag: string): unknown => {
    switch (tag) {
      case "<string>":
        return text("string");
      case "<integer>":
        return Number(text("integer"));
      case "<true/>":
      case "<false/>":
        return tag === "<true/>";
      case "<array>": {
        const items: unknown[] = [];
        for (let each = next(); each !== "</array>"; each = next()) items.push(value(each));
        return items;
      }
      case "<dict>": {
        const entries: [string, unknown][] = [];
        for (let each = next(); each !== "</dict>"; each = next()) {
          if (each !== "<key>") throw new Error(`A key is awaited, and there is ${each}.`);
          entries.push([text("key"), value(next())]);
        }
        return Object.fromEntries(entries);
      }
      default:
        throw new Error(`${tag} is no value.`);
    }
  };
  expectTag('<?xml version="1.0" encoding="UTF-8"?>');
  if (!next().startsWith("<!DOCTYPE plist PUBLIC ")) throw new Error("It is no property list.");
  expectTag('<plist version="1.0">');
  const found = value(next());
  expectTag("</plist>");
  if (tokens.slice(at).join("").trim() !== "") throw new Error("There is text after its end.");
  return found;
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">" };

function unescaped(text: string): string {
  if (text.includes("]]>")) throw new Error("]]> may not stand in text.");
  return text.replaceAll(/&([^;&]{0,8};)?/g, (all, name?: string) => {
    const character = entities[name?.slice(0, -1) ?? ""];
    if (character === undefined) throw new Error(`${all} is no entity.`);
    return character;
  });
}
