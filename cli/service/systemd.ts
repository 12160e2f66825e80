import { join } from "node:path";
import type { ServiceFacts, ServicePlan } from "./plan.ts";

/** Longer than the daemon takes to end its children. */
const stopSeconds = 30;
const watchdogSeconds = 60;

/** Where the unit of the socket is, by which a start through systemd is recognised. */
export function socketUnit(configHome: string): string {
  return join(configHome, "systemd", "user", "pi-rpcd.socket");
}

/** A user unit that is started by the first connection to its socket, and watched. */
export function systemdPlan({ program, stateDir, logFile, configHome, environment }: ServiceFacts): ServicePlan {
  const folder = join(configHome, "systemd", "user");
  const environmentFile = join(configHome, "pi-rpcd", "service.env");
  const command = [...program, "start", "--foreground", "--state-dir", stateDir, "--log-file", logFile];
  const service = `[Unit]
Description=pi-rpcd, a daemon for the pi coding agent
Requires=pi-rpcd.socket
After=pi-rpcd.socket

[Service]
Type=notify
# The daemon speaks to systemd by systemd-notify, which is a process of its own.
NotifyAccess=all
WatchdogSec=${watchdogSeconds}
ExecStart=${commandLine(command)}
EnvironmentFile=-${escaped(environmentFile)}
Restart=on-failure
RestartSec=2
# The daemon ends its pi processes itself, and has time to.
KillMode=mixed
TimeoutStopSec=${stopSeconds}
UMask=0077

[Install]
Also=pi-rpcd.socket
WantedBy=default.target
`;
  const socket = `[Unit]
Description=The socket of pi-rpcd

[Socket]
ListenStream=${escaped(join(stateDir, "daemon.sock"))}
SocketMode=0600
DirectoryMode=0700

[Install]
WantedBy=sockets.target
`;
  const systemctl = (...args: readonly string[]): readonly string[] => ["systemctl", "--user", ...args];
  return {
    files: [
      { path: environmentFile, text: environmentText(environment), isSecret: true },
      { path: join(folder, "pi-rpcd.service"), text: service, isSecret: false },
      { path: socketUnit(configHome), text: socket, isSecret: false },
    ],
    enable: [systemctl("daemon-reload"), systemctl("enable", "--now", "pi-rpcd.socket")],
    disable: [systemctl("disable", "--now", "pi-rpcd.service", "pi-rpcd.socket")],
    forget: [systemctl("daemon-reload")],
    status: systemctl("is-active", "pi-rpcd.socket", "pi-rpcd.service"),
  };
}

/** `%` begins a specifier. */
function escaped(text: string): string {
  return text.replaceAll("%", "%%");
}

/** What systemd takes in no name of a program, in whatever quotes; nor does it take a doubled dollar for one there. */
const unnameable = /["'\\$]/;

/** A program of such a name is for `env` to start, which becomes it. */
function commandLine(words: readonly string[]): string {
  const [program = ""] = words;
  return (unnameable.test(program) ? ["/usr/bin/env", ...words] : words).map(quoted).join(" ");
}

/** One word of a command line of systemd's, which has quotes, escapes, specifiers and variables. */
function quoted(word: string): string {
  return `"${escaped(word).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("$", "$$$$")}"`;
}

function environmentText(environment: Readonly<Record<string, string>>): string {
  const lines = Object.entries(environment).map(
    ([name, value]) => `${name}="${value.replaceAll(/[\\"`$]/g, (character) => `\\${character}`)}"`,
  );
  return `# What pi-rpcd and pi have in their environment; made by: pi-rpcd service install\n${lines.join("\n")}\n`;
}
