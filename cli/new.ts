import { resolve } from "node:path";
import { type Command, noStart, oneOf, text } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";

export const newSession: Command = {
  name: "new",
  summary: "create a session and print its id",
  arguments: "",
  positionals: { min: 0, max: 0 },
  options: {
    cwd: { value: "DIR", summary: "the session's working directory", fallback: "the present one" },
    model: { value: "MODEL", summary: "provider/id, or a pattern as pi takes it", fallback: "pi's own choice" },
    thinking: { value: "LEVEL", summary: "off, minimal, low, medium, high, xhigh or max", fallback: "pi's own choice" },
    name: { value: "NAME", summary: "a name for lists" },
    tools: { value: "A,B", summary: "the only tools the model may call" },
    "exclude-tools": { value: "A,B", summary: "tools the model may not call" },
    approve: { summary: "trust the project's own pi settings and extensions" },
    ...noStart,
  },
  startsDaemon: true,
  examples: ["pi-rpcd new", "pi-rpcd new --cwd ~/src/app --model anthropic/claude-sonnet-5 --name app"],
  run: async ({ connect, options, directory, output, json }) => {
    const [model, name, tools, excludeTools] = ["model", "name", "tools", "exclude-tools"].map((option) => text(options, option));
    const thinking = oneOf(options, "thinking", ["off", "minimal", "low", "medium", "high", "xhigh", "max"]);
    const client = await connect();
    try {
      const session = await client.createSession({
        cwd: resolve(directory, text(options, "cwd") ?? "."),
        ...(model === undefined ? {} : { model }),
        ...(thinking === undefined ? {} : { thinking }),
        ...(name === undefined ? {} : { name }),
        ...(tools === undefined ? {} : { tools: tools.split(",") }),
        ...(excludeTools === undefined ? {} : { excludeTools: excludeTools.split(",") }),
        ...(options["approve"] === true ? { approve: true } : {}),
      });
      if (json) output.json(session.info);
      else output.line(session.id);
      return exitCodes.done;
    } finally {
      await client.close();
    }
  },
};
