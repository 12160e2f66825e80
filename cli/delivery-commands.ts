import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

/** The commands about pushes and their deliveries. */
export const deliveryCommands = {
  push: {
    summary: "Pushes a custom message to the agent, running or not; can wait until the model has it.",
    description:
      "Prints the delivery's id and, with --wait, each state that it comes to: accepted, held, inserted, prepared, delivered, answered. A daemon that ends meanwhile is waited for, for a minute.",
    arguments: [
      session,
      { name: "TEXT", many: true, optional: true, description: "The message. `-`, or none, reads it from stdin." },
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
        description: "During a run: into its next request, when it would end, or with the next prompt.",
        default: "steer",
      },
      "no-trigger": { type: "boolean", description: "An idle agent does not start a run for it." },
      id: {
        type: "string",
        placeholder: "ID",
        description: "The delivery's id. Pushing the same again under it changes nothing.",
        default: "a new one",
      },
      expires: {
        type: "string",
        placeholder: "SECONDS",
        description: "Gives the push up when it is not inserted within this time.",
        default: "never",
      },
      "on-abort": {
        type: "string",
        placeholder: "WHAT",
        choices: ["park", "drop"],
        description: "What an abort does to it while it is held.",
        default: "park",
      },
      "on-clear": {
        type: "string",
        placeholder: "WHAT",
        choices: ["keep", "drop"],
        description: "What clearing the queue does to it while it is held.",
        default: "keep",
      },
      details: {
        type: "string",
        placeholder: "JSON",
        description: "An object that is kept with the message and never sent to the model.",
      },
      wait: {
        type: "string",
        placeholder: "STATE",
        choices: ["inserted", "prepared", "delivered", "answered"],
        description: "Waits for this state; the exit code says the outcome.",
      },
      timeout: {
        type: "string",
        placeholder: "SECONDS",
        description: "How long --wait waits.",
        default: "no limit",
      },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the delivery as JSON; with --wait one line at each change." },
      help,
    },
    examples: [
      'pi-rpcd push last "The build is green." --wait delivered --timeout 60',
      "make test 2>&1 | pi-rpcd push last --as followUp",
    ],
    exitCodes: [0, 1, 2, 3, 4, 5, 130],
  },
  deliveries: {
    summary: "Lists the deliveries, the newest first, or watches them as they change.",
    description:
      "With --watch each new state is a line, until Ctrl-C; a daemon that ends is waited for, and what happened meanwhile is told.",
    arguments: [{ ...session, optional: true, description: `${session.description} Default: all sessions.` }],
    options: {
      state: {
        type: "string",
        placeholder: "LIST",
        description: "Only those in one of these states, with commas between them.",
        default: "all",
      },
      limit: { type: "string", placeholder: "N", description: "How many, at most 500.", default: "20" },
      watch: { type: "boolean", description: "Goes on and shows each change." },
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
    summary: "Shows one delivery as a timeline, takes it back, or sends a parked one again.",
    description:
      "`show` prints its states with their times and its attempts with their evidence. `cancel` exits with 4 if it came too late, and says in which state the delivery is.",
    arguments: [
      { name: "ACTION", choices: ["show", "cancel", "resend"], description: "What to do." },
      { name: "ID", description: "The delivery's id." },
    ],
    options: {
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the delivery as one JSON document." },
      help,
    },
    examples: ["pi-rpcd delivery show build-318", "pi-rpcd delivery cancel build-318"],
    exitCodes: [0, 1, 2, 3, 4, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
