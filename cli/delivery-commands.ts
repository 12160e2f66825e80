import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

/** The commands about pushes and their deliveries. */
export const deliveryCommands = {
  push: {
    summary: "Pushes a custom message to the agent; can wait until the model has received it.",
    description:
      "Prints the delivery's id and, with --wait, each state that it reaches: accepted, held, inserted, prepared, delivered, answered. If the daemon ends meanwhile, the command waits up to a minute for the next daemon.",
    arguments: [
      session,
      { name: "TEXT", many: true, optional: true, description: "The message. `-`, or no TEXT, reads it from stdin." },
    ],
    options: {
      type: {
        type: "string",
        placeholder: "TYPE",
        description: "The custom type that extensions see.",
        default: "pi-rpcd.push",
      },
      as: {
        type: "string",
        placeholder: "HOW",
        choices: ["steer", "followUp", "nextTurn"],
        description:
          "When to insert the message during a run: before the next request, when the run would end, or with the next prompt.",
        default: "steer",
      },
      "no-trigger": { type: "boolean", description: "Does not start a run if the agent is idle." },
      id: {
        type: "string",
        placeholder: "ID",
        description: "The delivery's id. A repeated push with the same id has no effect.",
        default: "a new one",
      },
      expires: {
        type: "string",
        placeholder: "SECONDS",
        description: "Expires the push if it is not inserted within this time.",
        default: "never",
      },
      "on-abort": {
        type: "string",
        placeholder: "WHAT",
        choices: ["park", "drop"],
        description: "The effect of an abort while the push is held.",
        default: "park",
      },
      "on-clear": {
        type: "string",
        placeholder: "WHAT",
        choices: ["keep", "drop"],
        description: "The effect of clearing the queue while the push is held.",
        default: "keep",
      },
      details: {
        type: "string",
        placeholder: "JSON",
        description: "An object that is stored with the message and never sent to the model.",
      },
      wait: {
        type: "string",
        placeholder: "STATE",
        choices: ["inserted", "prepared", "delivered", "answered"],
        description: "Waits until the delivery has this state. The exit code shows the outcome.",
      },
      timeout: {
        type: "string",
        placeholder: "SECONDS",
        description: "The time limit of --wait.",
        default: "no limit",
      },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the delivery as JSON; with --wait one line for each change." },
      help,
    },
    examples: [
      'pi-rpcd push last "The build is green." --wait delivered --timeout 60',
      "make test 2>&1 | pi-rpcd push last --as followUp",
    ],
    exitCodes: [0, 1, 2, 3, 4, 5, 130],
  },
  deliveries: {
    summary: "Lists the deliveries, newest first, or watches their changes.",
    description:
      "--watch prints a line for each new state, until Ctrl-C. If the daemon ends, the command waits for the next daemon and then shows the missed changes.",
    arguments: [{ ...session, optional: true, description: `${session.description} Default: all sessions.` }],
    options: {
      state: {
        type: "string",
        placeholder: "LIST",
        description: "Lists only deliveries in one of these states, separated by commas.",
        default: "all",
      },
      limit: { type: "string", placeholder: "N", description: "The number of deliveries, at most 500.", default: "20" },
      watch: { type: "boolean", description: "Shows each change until Ctrl-C." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description: "Prints one JSON document: {deliveries: [...]}; with --watch one line for each change.",
      },
      help,
    },
    examples: ["pi-rpcd deliveries", "pi-rpcd deliveries last --state parked,held", "pi-rpcd deliveries --watch"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  delivery: {
    summary: "Shows one delivery as a timeline, cancels it, or sends a parked one again.",
    description:
      "`show` prints its states with their times and its attempts with their evidence. `cancel` exits with 4 and prints the delivery's state if it is too late to cancel.",
    arguments: [
      { name: "ACTION", choices: ["show", "cancel", "resend"], description: "What to do." },
      { name: "ID", description: "The delivery's id, or at least 4 characters of its end or start." },
    ],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the delivery as one JSON document." },
      help,
    },
    examples: ["pi-rpcd delivery show build-318", "pi-rpcd delivery cancel build-318"],
    exitCodes: [0, 1, 2, 3, 4, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
