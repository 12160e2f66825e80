/** What the exit codes of all commands mean. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  noDaemon: 3,
  otherOutcome: 4,
  deadline: 5,
  interrupted: 130,
} as const;

export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  done: "done",
  failed: "failed; the message says why",
  usage: "wrong arguments",
  noDaemon: "no daemon runs",
  otherOutcome: "push: it ended, or is parked, without what was waited for",
  deadline: "push: not within --timeout; nothing was cancelled",
  interrupted: "interrupted by Ctrl-C",
};
