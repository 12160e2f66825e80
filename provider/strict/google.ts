import type { StrictRules, Target, Violation } from "../dialect.ts";
import { isObject, type JsonObject, objectsOf, stringOf } from "../json.ts";
import { isIdentifier, refuse } from "./rules.ts";

/** The requests that Google's generateContent refuses. */
export function googleViolations(body: JsonObject, target: Target, rules: StrictRules): readonly Violation[] {
  const contents = objectsOf(body["contents"]);
  return [
    ...model(target.model ?? "", rules),
    ...(contents.length > 0 ? [] : [refuse("* GenerateContentRequest.contents: contents is not specified")]),
    ...contents.flatMap(shape),
    ...pairing(contents),
    ...objectsOf(body["tools"]).flatMap((tool, n) => objectsOf(tool["functionDeclarations"]).flatMap(declaration(n))),
  ];
}

function model(name: string, rules: StrictRules): readonly Violation[] {
  if (rules.models?.includes(name) !== false) return [];
  const message = `models/${name} is not found for API version v1beta, or is not supported for generateContent.`;
  return [{ message, status: 404 }];
}

function shape(content: JsonObject, index: number): readonly Violation[] {
  const isKnown = content["role"] === undefined || content["role"] === "user" || content["role"] === "model";
  const parts = objectsOf(content["parts"]);
  return [
    ...(isKnown ? [] : [refuse("Please use a valid role: user, model.")]),
    ...(parts.length > 0
      ? []
      : [refuse(`* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.`)]),
    ...parts.flatMap((part, n) => {
      const named = part["functionCall"] ?? part["functionResponse"];
      if (!isObject(named) || isFunctionName(named["name"])) return [];
      return [refuse(`* GenerateContentRequest.contents[${index}].parts[${n}].function.name: [INVALID_ARGUMENT]`)];
    }),
  ];
}

function declaration(tool: number): (declared: JsonObject, index: number) => readonly Violation[] {
  return (declared, index) => {
    if (isFunctionName(declared["name"])) return [];
    const at = `GenerateContentRequest.tools[${tool}].function_declarations[${index}].name`;
    return [refuse(`* ${at}: Invalid function name. Must start with a letter or an underscore.`)];
  };
}

function isFunctionName(name: unknown): boolean {
  return isIdentifier(name) && /^[A-Za-z_]/.test(name);
}

interface Turn {
  readonly isModel: boolean;
  readonly calls: string[];
  readonly results: string[];
}

/** A turn of calls must be followed by a turn with as many responses of the same names; the last turn is the user's. */
function pairing(contents: readonly JsonObject[]): readonly Violation[] {
  const turns = turnsOf(contents);
  const found: Violation[] = [];
  for (const [index, turn] of turns.entries()) {
    if (turn.calls.length > 0 && turns[index - 1] === undefined) {
      found.push(
        refuse(
          "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        ),
      );
    }
    const asked = turns[index - 1]?.calls ?? [];
    if (!turn.isModel && !isSameSet(asked, turn.results)) found.push(uneven());
  }
  const last = turns.at(-1);
  if (last?.isModel === true) {
    if (last.calls.length > 0) found.push(uneven());
    found.push(refuse("Please ensure that single turn requests end with a user role or the role field is empty."));
  }
  return found;
}

function uneven(): Violation {
  return refuse(
    "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
  );
}

function isSameSet(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.toSorted().join("\n") === right.toSorted().join("\n");
}

function turnsOf(contents: readonly JsonObject[]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const content of contents) {
    const isModel = content["role"] === "model";
    let turn = turns.at(-1);
    if (turn?.isModel !== isModel) {
      turn = { isModel, calls: [], results: [] };
      turns.push(turn);
    }
    for (const part of objectsOf(content["parts"])) {
      if (isObject(part["functionCall"])) turn.calls.push(stringOf(part["functionCall"]["name"]));
      if (isObject(part["functionResponse"])) turn.results.push(stringOf(part["functionResponse"]["name"]));
    }
  }
  return turns;
}
