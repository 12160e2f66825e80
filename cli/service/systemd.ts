import { join } from "node:path";
import type { ServiceFacts, ServicePlan } from "./plan.ts";

/** Longer than the daemon takes to end its children. */
const stopSeconds = 30;
const watchdogSeconds = 60;

/** The path of the socket's unit, which shows that systemd starts the daemon. */
export function socketUnit(configHome: string): string {
  return join(configHome, "systemd", "user", "pi-rpcd.socket");
}

/** A user unit with a watchdog that the first connection to its socket starts. */
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

/** Characters that systemd does not accept in the name of a program, quoted or not. */
const unnameable = /["'\\$]/;

/** `env` starts a program with such a name, and is replaced by it. */
function commandLine(words: readonly string[]): string {
  const [program = ""] = words;
  return (unnameable.test(program) ? ["/usr/bin/env", ...words] : words).map(quoted).join(" ");
}

/** Quotes one word of a systemd command line, which has quotes, escapes, specifiers and variables. */
function quoted(word: string): string {
  return `"${escaped(word).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("$", "$$$$")}"`;
}

function environmentText(environment: Readonly<Record<string, string>>): string {
  const lines = Object.entries(environment).map(
    ([name, value]) => `${name}="${value.replaceAll(/[\\"`$]/g, (character) => `\\${character}`)}"`,
  );
  return `# What pi-rpcd and pi have in their environment; made by: pi-rpcd service install\n${lines.join("\n")}\n`;
}
