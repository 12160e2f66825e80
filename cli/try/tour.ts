import type { RequestMessage } from "../../provider/messages.ts";
import { answer, call, delay, type Part, type Reply } from "../../provider/reply.ts";
import { howToLogin } from "../credentials.ts";

/** The command of the tool call during which the push arrives. */
export const slowCommand = "sleep 2 && echo '42 of 42 checks passed'";

/** The pushed text; the model's next answer quotes it. */
export function pushText(build: string): string {
  return `Build ${build} is green.`;
}

const pushPattern = /^Build \S+ is green\.\s*$/;

/** The receipt is shown before the text that names it. */
const firstDelayMs = 300;
const wordDelayMs = 25;
const question = "What do you want to know?";
const explanations: Readonly<Record<string, string>> = {
  "What does the receipt promise?":
    "`delivered` always names its evidence, here the status of the provider's response. A push that is lost is never called delivered.",
  "Who else sees this session?":
    "Every client that is attached to it: a terminal, an editor, a web page, a script. All of them see the same events in the same order.",
  "Nothing, thank you": "Then only this is left to say:",
};

/** The parts of a request that the tour reads. */
export interface TourRequest {
  readonly messages: readonly RequestMessage[];
  readonly toolNames: readonly string[];
}

/** The scripted model: its answer depends only on the conversation in the request. */
export function tourReply({ messages, toolNames }: TourRequest): Reply {
  // pi asks for summaries without tools.
  if (toolNames.length === 0) return spoken("A scripted model showed the user a tour of pi-rpcd.");
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const newer = messages.slice(last + 1);
  const results = newer.flatMap(({ toolResults }) => toolResults.map(({ text }) => text));
  const texts = newer.filter(({ role }) => role === "user").flatMap((message) => message.texts);
  if (results.some((text) => text.includes("checks passed"))) return afterTool(texts);
  const chosen = results
    .map((text) => /^The user chose(?:: (.*)| nothing\.)/.exec(text))
    .find((match) => match !== null);
  if (chosen !== undefined) return afterQuestion(chosen[1]);
  const prompt = texts.at(-1) ?? "";
  const hasToured = messages.some(
    ({ role, texts: said }) => role === "assistant" && said.join("").includes("the tour"),
  );
  return hasToured && !/\bagain\b/i.test(prompt) ? briefly(prompt) : welcome(prompt);
}

function welcome(prompt: string): Reply {
  return spoken(
    `You wrote: ${quoted(prompt)}

I am a **scripted model** and give everyone this tour. The rest is real: pi, the daemon, this terminal.

1. This text **streams**, word by word.
2. Now I call a **tool** that takes two seconds. Meanwhile another program pushes a message into this session.
`,
    call("bash", { command: slowCommand }),
  );
}

function afterTool(texts: readonly string[]): Reply {
  const push = texts.find((text) => pushPattern.test(text));
  const typed = texts.filter((text) => text !== push).at(-1);
  const news =
    push === undefined
      ? "No push has reached me: it will be in my next request."
      : `The **push** has reached me: “${push.trim()}” Its **receipt** is the line that says \`delivered\`: the provider has accepted the request with the message.`;
  const more = typed === undefined ? "" : ` What you typed meanwhile has come with the same request: ${quoted(typed)}`;
  return spoken(
    `The tool has ended: 42 of 42 checks passed.${more}

3. ${news}
4. Last, an extension's **question**. Every attached client sees it, and the first answer counts.
`,
    call("ask_user", { question, options: Object.keys(explanations) }),
  );
}

function afterQuestion(chosen: string | undefined): Reply {
  const explained = chosen === undefined ? "You dismissed the question." : `You chose **${chosen}**`;
  const explanation = explanations[chosen ?? ""];
  return spoken(`${explained}${explanation === undefined ? "" : `\n\n${explanation}`}

That was the tour. For a real model: ${howToLogin}, once, or set a key such as \`ANTHROPIC_API_KEY\`. Then:

\`\`\`bash
pi-rpcd new
pi-rpcd attach last
pi-rpcd push last "The build on main is green."
\`\`\`

To see the tour once more, type the word “again” and press Enter. Ctrl-D leaves, and removes everything that was started.`);
}

function briefly(prompt: string): Reply {
  return spoken(
    `You wrote: ${quoted(prompt)}

I am a scripted model and cannot answer that. To see the tour once more, type the word “again” and press Enter. Ctrl-D leaves.`,
  );
}

/** The beginning of a user's text, on one line. */
function quoted(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return `“${line.length > 60 ? `${line.slice(0, 59)}…` : line}”`;
}

/** Text that streams word by word. */
function spoken(text: string, ...more: readonly Part[]): Reply {
  const words = text.split(/(?<=\s)(?=\S)/);
  const stream = words.flatMap((word): Part[] => [{ kind: "text", text: word }, delay(wordDelayMs)]);
  return answer(delay(firstDelayMs), ...stream, ...more);
}
