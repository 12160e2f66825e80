import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { service } from "../../../../cli/service.ts";
import { memoryOutput } from "../memory-output.ts";

const { signal } = new AbortController();

test.each([
  [
    "systemd",
    3,
    ["systemctl --user daemon-reload", "systemctl --user enable --now pi-rpcd.socket"],
    /^MY_API_KEY="…"$/m,
  ],
  ["launchd", 1, [/^launchctl bootstrap gui\/\d+ .*pi-rpcd\.plist$/], /<key>MY_API_KEY<\/key>\n +<string>…<\/string>/],
] as const)(
  "a dry run for %s prints each file and command, no value of a variable, and does nothing",
  async (platform, files, commands, masked) => {
    const root = mkdtempSync(join(tmpdir(), "dry-"));
    const home = join(root, "a home");
    const env = { HOME: home, MY_API_KEY: 'very-"secret" <b>$x</b>', PATH: "/nowhere" };
    const options = { platform, "dry-run": true, keep: "MY_API_KEY,PATH" } as const;
    const run = async (json: boolean): Promise<string> => {
      const { output, stdout, stderr } = memoryOutput({ json });
      expect(await service({ options, arguments: ["install"], output, env, signal })).toBe(0);
      expect(`${stdout()}${stderr()}`).not.toMatch(/very-|secret|nowhere/);
      return stdout();
    };
    const text = await run(false);
    expect(text.match(/^# \/.*a home.*$/gm)).toHaveLength(files);
    expect(text).toMatch(masked);
    const shown = Array.from(text.matchAll(/^\$ (.*)$/gm), ([, command]) => command);
    expect(shown).toEqual(
      commands.map((command) => (typeof command === "string" ? command : expect.stringMatching(command))),
    );
    const document = JSON.parse(await run(true));
    expect([document.files.length, document.commands.length]).toEqual([files, commands.length]);
    expect(existsSync(home)).toBe(false);
    rmSync(root, { recursive: true });
  },
);

test.each(["HOME", "XDG_CONFIG_HOME", "PI_RPCD_STATE_DIR"])(
  "no unit is created with a line break in %s",
  async (name) => {
    const env = { HOME: "/nowhere", OK: "1", [name]: "/nowhere\nExecStartPre=/bin/evil" };
    const { output } = memoryOutput();
    const options = { platform: "systemd", "dry-run": true, keep: "OK" } as const;
    const made = service({ options, arguments: ["install"], output, env, signal });
    await expect(made).rejects.toMatchObject({
      name: "UsageError",
      message: expect.stringContaining("control characters"),
    });
  },
);
