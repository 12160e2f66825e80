/** The exit codes of all commands. A command that a signal ends exits with 128 + the signal's number. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  noDaemon: 3,
  unmet: 4,
  deadline: 5,
  aborted: 6,
  runFailed: 7,
  runInterrupted: 8,
  restarting: 75,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  0: "Done.",
  1: "Failed; stderr says why.",
  2: "Invalid usage: nothing was done.",
  3: "No daemon runs.",
  4: "The delivery ended or was parked without reaching the state, or the dialog had ended.",
  5: "The time limit was reached; nothing was cancelled.",
  6: "The run was aborted.",
  7: "The run failed: its last answer is an error.",
  8: "The run was interrupted: pi or the daemon ended during it, or the session was closed.",
  75: "The daemon ended for a restart, as SIGUSR2 asks; a service manager starts the next one.",
  130: "Interrupted by Ctrl-C. (Other signals: 128 + their number.)",
};
