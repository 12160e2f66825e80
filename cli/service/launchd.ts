import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { ServiceFacts, ServicePlan } from "./plan.ts";

const label = "pi-rpcd";

/** A launch agent of the user that starts at login, and again after a failure. */
export function launchdPlan({ program, stateDir, logFile, home, environment, uid }: ServiceFacts): ServicePlan {
  const path = agentFile(home);
  const command = [...program, "start", "--foreground", "--state-dir", stateDir, "--log-file", logFile];
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${label}</string>
  <key>ProgramArguments</key>
  <array>
${command.map((word) => `    <string>${escaped(word)}</string>`).join("\n")}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${Object.entries(environment)
  .map(([name, value]) => `    <key>${escaped(name)}</key>\n    <string>${escaped(value)}</string>`)
  .join("\n")}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>AbandonProcessGroup</key>
  <true/>
  <key>ExitTimeOut</key>
  <integer>30</integer>
  <key>Umask</key>
  <integer>63</integer>
</dict>
</plist>
`;
  const domain = `gui/${uid}`;
  return {
    files: [{ path, text, isSecret: true }],
    enable: [["launchctl", "bootstrap", domain, path]],
    disable: [["launchctl", "bootout", `${domain}/${label}`]],
    forget: [],
    status: ["launchctl", "print", `${domain}/${label}`],
  };
}

/** Whether launchd starts the daemon of a state directory. */
export function isLaunchAgent(stateDir: string, env: NodeJS.ProcessEnv): boolean {
  const option = `<string>--state-dir</string>\n    <string>${escaped(stateDir)}</string>`;
  return textOf(agentFile(env["HOME"] || homedir()))?.includes(option) === true;
}

/** Whether launchd also ends the daemon's pi processes when the daemon crashes, as it does by an older agent. */
export function endsChildren(env: NodeJS.ProcessEnv): boolean {
  return textOf(agentFile(env["HOME"] || homedir()))?.includes("<key>AbandonProcessGroup</key>") === false;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function agentFile(home: string): string {
  return join(home, "Library", "LaunchAgents", `${label}.plist`);
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
